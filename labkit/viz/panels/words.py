"""What the Switchboard says, as HTML: verdict, explanation, numbers, tokens, races. Every text is escaped here.

No cue is colour alone: a verdict has its sign and its word, a wrong token is struck through and boxed.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from labkit.analysis.occupancy import Report
from labkit.analysis.units import share_text, time_text
from labkit.viz import style
from labkit.viz.panels.board import LUCKY, RIGHT, WRONG, Outcome

ADDS: dict[str, str] = {
    "streams": "pinned memory, copies that do not block, one stream each for H2D, compute and D2H",
    "events": "record and wait between the streams, and the host's wait for the download",
    "lookahead": "plan and enqueue step N+1 while step N runs",
    "double_buffering": "two slots, sets of host and device buffers, in turn",
    "carry_over": "a token still on the device replaces its placeholder there",
    "cuda_graphs": "a decode step is one graph launch",
}

CLASS = "labkit-panel"
CSS = f"""<style>
.{CLASS} {{ font: 17px/1.45 {style.FONT}; color: {style.INK}; background: {style.PAPER}; padding: 8px; }}
.{CLASS} .widget-html-content, .{CLASS} .jupyter-widgets label, .{CLASS} select, .{CLASS} input, .{CLASS} button,
.{CLASS} .widget-readout {{ font: 17px/1.45 {style.FONT}; color: {style.INK}; }}
.{CLASS} .widget-html-content {{ overflow: visible; height: auto; }}
.{CLASS} .widget-readout {{ min-width: 40px; }}
.{CLASS} .widget-checkbox input {{ width: 20px; height: 20px; }}
.{CLASS} :focus-visible {{ outline: 3px solid {style.CPU}; outline-offset: 2px; }}
.{CLASS} .verdict {{ font-size: 24px; font-weight: bold; padding: 6px 14px; border-left: 12px solid; }}
.{CLASS} .verdict.right {{ border-color: {style.COMPUTE}; background: #E3F4EE; }}
.{CLASS} .verdict.lucky {{ border-color: {style.H2D}; background: #FDF3DF; }}
.{CLASS} .verdict.wrong {{ border-color: {style.IDLE}; background: #FBE8DC; }}
.{CLASS} .badge {{ border: 3px solid {style.INK}; background: {style.PAPER}; padding: 0 8px; margin-left: 12px;
  white-space: nowrap; }}
.{CLASS} table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
.{CLASS} caption {{ text-align: left; font-weight: bold; }}
.{CLASS} th, .{CLASS} td {{ border-bottom: 1px solid {style.GRID}; padding: 2px 14px 2px 0; text-align: left;
  vertical-align: top; }}
.{CLASS} tbody th {{ white-space: nowrap; }}
.{CLASS} td.number {{ text-align: right; white-space: nowrap; }}
.{CLASS} pre, .{CLASS} code {{ font: 15px/1.4 'DejaVu Sans Mono', Consolas, monospace; color: {style.INK}; }}
.{CLASS} pre {{ white-space: pre; overflow-x: auto; }}
.{CLASS} s {{ border: 2px solid {style.IDLE}; padding: 0 2px; }}
.{CLASS} p, .{CLASS} ul, .{CLASS} ol {{ margin: 4px 0; }}
.{CLASS} summary {{ cursor: pointer; font-weight: bold; }}
</style>"""

_SIGNS = {RIGHT: "✓ RIGHT", LUCKY: "≈ LUCKY", WRONG: "✗ WRONG"}
_TOKENS_SHOWN = 8  # requests


def verdict(outcome: Outcome) -> str:
    """One line: right, lucky or wrong, and the badge of a combination that cannot be right."""
    kind, total = outcome.verdict, outcome.total_tokens
    tokens = (
        f"{outcome.wrong_tokens} of {total} tokens differ from rung 0's"
        if outcome.wrong_tokens
        else f"all {total} tokens equal rung 0's"
    )
    races = "no race" if not outcome.races else f"{outcome.races} race{'s' * (outcome.races != 1)}"
    badge = "" if outcome.explanation.right else ' <span class="badge" role="note">⚠ UNSAFE</span>'
    return f'<div class="verdict {kind}" role="status">{_SIGNS[kind]}: {tokens}, {races}{badge}</div>'


def explanation(outcome: Outcome) -> str:
    """What ``explain`` says about the combination."""
    said = outcome.explanation
    rest = [finding.text for finding in said.findings if finding.text not in said.why]
    items = "".join(f"<li>{escape(text)}</li>" for text in rest)
    return f"<p><b>{escape(said.why)}</b></p>" + (f"<ul>{items}</ul>" if items else "")


def numbers(now: Outcome, before: Outcome | None) -> str:
    """The numbers of this run beside those of the run before, with their definitions."""
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td class="number"><b>{escape(value)}</b></td>'
        f'<td class="number">{escape(old)}</td><td class="number">{escape(change)}</td><td>{escape(meaning)}</td></tr>'
        for name, value, old, change, meaning in _rows(now, before)
    )
    head = "".join(f'<th scope="col">{title}</th>' for title in ("", "now", "before", "difference", "definition"))
    return f"<table><caption>Numbers</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _rows(now: Outcome, before: Outcome | None) -> Iterator[tuple[str, str, str, str, str]]:
    a, b = now.report, None if before is None else before.report
    points = "" if b is None else f"{(a.gpu_active - b.gpu_active) * 100:+.1f} points"
    old = "" if b is None else share_text(b.gpu_active)
    yield "GPU active", share_text(a.gpu_active), old, points, a.gpu_active_means
    ratio = "" if b is None else speed_up(b.window_ns, a.window_ns)
    old = "" if b is None else time_text(b.window_ns)
    yield "time", time_text(a.window_ns), old, ratio, "start of the first span to the end of the last"
    old = "" if b is None else time_text(b.ns_per_step)
    yield "per step", time_text(a.ns_per_step), old, "", f"time divided by {a.steps} steps"
    old = "" if before is None else f"{before.tokens_per_s:,.0f}"
    yield "tokens/s", f"{now.tokens_per_s:,.0f}", old, "", "generated tokens divided by time"
    old = "" if b is None else f"{b.host_waits_per_step:.2f}"
    yield "host waits", f"{a.host_waits_per_step:.2f}", old, "", "per step: synchronize, blocking copy"
    yield "idle", time_text(a.idle_ns), "" if b is None else time_text(b.idle_ns), "", f"mostly {_largest(a)}"


def speed_up(before_ns: int, now_ns: int) -> str:
    """``-22.0 % (1.28x)``: both, since one is easily taken for the other."""
    if not before_ns or not now_ns:
        return ""
    return f"{(now_ns / before_ns - 1) * 100:+.1f} % ({before_ns / now_ns:.2f}x)"


def _largest(numbers: Report) -> str:
    if not numbers.idle:
        return "never idle"
    reason, ns = max(numbers.idle.items(), key=lambda item: item[1])
    return f"{reason} ({share_text(ns / numbers.idle_ns)})"


def tokens(outcome: Outcome) -> str:
    """The tokens request by request; a wrong one is struck through in a box, with the right one behind it."""
    pairs = list(zip(outcome.run.tokens, outcome.reference, strict=True))
    rows = "".join(
        f'<tr><th scope="row">request {number}</th><td><code>{_line(ours, theirs)}</code></td></tr>'
        for number, (ours, theirs) in enumerate(pairs[:_TOKENS_SHOWN])
    )
    more = f" (the first {_TOKENS_SHOWN} of {len(pairs)} requests)" if len(pairs) > _TOKENS_SHOWN else ""
    caption = f"Tokens against rung 0's{more}; a wrong one is struck through, the right one follows it"
    return (
        f"<details><summary>Tokens</summary><table><caption>{caption}</caption><tbody>{rows}</tbody></table></details>"
    )


def _line(ours: list[int], theirs: list[int]) -> str:
    return " ".join(str(a) if a == b else f"<s>{a}</s>→{b}" for a, b in zip(ours, theirs, strict=False))


def races(outcome: Outcome, *, looking: bool = False) -> str:
    """The races with their fixes; ``looking``: the fixes are still looked for."""
    if looking and outcome.races:
        return f"<p>{outcome.races} races; looking for the smallest fix of each ...</p>"
    report = outcome.race_report
    if report.clean:
        return "<p>✓ No race: every two accesses to the same bytes, one of them a write, are ordered.</p>"
    repair = "".join(f"<li>{escape(str(fix))}</li>" for fix in report.repair)
    fixes = f"<p><b>All of them are gone with:</b></p><ul>{repair}</ul>" if repair else ""
    items = "".join(f"<li><pre>{escape(str(race))}</pre></li>" for race in report.races)
    notes = "".join(f"<li>{escape(notice.kind)}: {escape(notice.text)}</li>" for notice in report.notices)
    found = f"<details><summary>Each race</summary><ol>{items}</ol><ul>{notes}</ul></details>"
    return f"<p><b>{len(report.races)} race{'s' * (len(report.races) != 1)}.</b></p>{fixes}{found}"


def failure(error: BaseException) -> str:
    """An exception inside a panel, for the reader of the panel."""
    return f'<div class="verdict wrong" role="alert">✗ {escape(type(error).__name__)}: {escape(str(error))}</div>'
