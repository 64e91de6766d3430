"""How fast the figures and the Switchboard are in a browser: headless Chromium, software rendering.

    python -m benchmarks.browser [--only figures|switchboard] [--repeat 10] [--new-tokens 2100]

First a page with plotly.js alone. The timeline of a run of some 50,000 spans, and that of a run of nearly as many bars
as are ever drawn, against a plain plotly figure of the long run's first 5,000 spans, all in turn: the time from the
figure's JSON to the second frame after it was drawn, and from a zoom to its half to the second frame after it. Medians,
and their ratio to the plain figure, which is what counts on a machine that does other things too.

Then the Switchboard in JupyterLab: the time from a click on a mechanism to the verdict, and to the first frame with the
new bars, for runs that were never made before and for runs that the panel has kept; and the processor time that the
kernel and the page's main thread need for it, which is what is left of it on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from labkit.entry import Engine, default_sizes
from labkit.experiments import synthetic_prompts
from labkit.model.toy import ToyModel
from labkit.run import Run
from labkit.switches import MECHANISMS
from labkit.viz import timeline
from labkit.viz.bars import select
from labkit.viz.frame import trace_of
from labkit.viz.html import CONFIG
from labkit.viz.panels import Switchboard
from tests.browser.lab import chromium, run_all, serving

PLAIN_SPANS, MOST_BARS = 5_000, 4_000
SETTLED_MS = 700  # after a flip: its races are marked meanwhile

DRAW = """async ([text, config]) => {
    const plot = document.createElement("div");
    document.body.replaceChildren(plot);
    const began = performance.now();
    const figure = JSON.parse(text);
    await Plotly.newPlot(plot, figure.data, figure.layout, config);
    await frames();
    const drawn = performance.now(), [low, high] = plot.layout.xaxis.range, quarter = (high - low) / 4;
    await Plotly.relayout(plot, {"xaxis.range": [low + quarter, high - quarter]});
    await frames();
    return [drawn - began, performance.now() - drawn];
}"""
FRAMES = (
    """globalThis.frames = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));"""
)

CLICK = """async (mechanism) => {
    const panel = document.querySelector(".widget-vbox.labkit-panel"), plot = panel.querySelector(".js-plotly-plot");
    const label = [...panel.querySelectorAll("label")].find((node) => node.textContent.trim() === mechanism);
    const verdict = panel.querySelector(".verdict").closest(".widget-html"), times = {};
    const said = new MutationObserver(() => { times.verdict ??= performance.now(); });
    said.observe(verdict, { childList: true, subtree: true, characterData: true });
    const drawn = new Promise((done) => plot.once("plotly_afterplot", done));
    const began = performance.now();
    label.querySelector("input").click();
    await drawn;
    await new Promise((done) => requestAnimationFrame(done));
    said.disconnect();
    return [(times.verdict ?? performance.now()) - began, performance.now() - began];
}"""


def run_of(new_tokens: int) -> Run:
    model = ToyModel()
    sizes = default_sizes(model, max_rows=8, max_model_len=8 + new_tokens)
    with Engine(model, switches="carry_over", profile="article-8b", sizes=sizes) as engine:
        return engine.generate(synthetic_prompts(model, 8, 8), max_new_tokens=new_tokens)


def plain_bars(run: Run) -> go.Figure:
    """The bar figure that everyone would write: one trace of bars per lane."""
    spans = [span for span in trace_of(run).spans if span.duration_ns][:PLAIN_SPANS]
    figure = go.Figure(layout={"barmode": "overlay", "height": 600})
    for lane in ("CPU", "H2D", "compute", "D2H"):
        here = [span for span in spans if span.lane == lane]
        starts, lengths = [span.start_ns / 1000 for span in here], [span.duration_ns / 1000 for span in here]
        figure.add_bar(name=lane, orientation="h", base=starts, x=lengths, y=[lane] * len(here))
    end = max(span.end_ns for span in spans) / 1000
    return figure.update_layout(xaxis_range=[0, end])


def run_with_most_bars() -> Run:
    """A run drawn whole, with nearly as many bars as a timeline ever has."""
    bars_of_100 = select(trace_of(run_of(100)), None, None, MOST_BARS).total
    return run_of(100 * MOST_BARS // (bars_of_100 + 20))


def figures(repeat: int, new_tokens: int) -> None:
    long, dense = run_of(new_tokens), run_with_most_bars()
    began = time.process_time()
    shown = timeline(long)
    print(f"timeline of {len(trace_of(long)):,} spans: built in {time.process_time() - began:.2f} s of processor time")
    candidates = {
        f"plain bars, {PLAIN_SPANS:,} spans": plain_bars(long),
        f"timeline, {len(trace_of(long)):,} spans": shown,
        f"timeline, {len(trace_of(dense)):,} spans": timeline(dense),
    }
    taken: dict[str, list[list[float]]] = {name: [] for name in candidates}
    with page_with_plotly() as page:
        for turn in range(repeat + 1):
            for name, figure in candidates.items():
                times = page.evaluate(DRAW, [figure.to_json(), CONFIG])
                if turn:  # the first one of each warms up
                    taken[name].append(times)
    base = [statistics.median(column) for column in zip(*next(iter(taken.values())), strict=True)]
    print(f"{'':<26}{'bars':>7}{'kB':>7}{'draw ms':>10}{'ratio':>7}{'zoom ms':>10}{'ratio':>7}")
    for name, figure in candidates.items():
        draw, zoom = (statistics.median(column) for column in zip(*taken[name], strict=True))
        bars = sum(len(trace.x) for trace in figure.data if trace.type == "bar")
        size = len(figure.to_json()) / 1000
        print(
            f"{name:<26}{bars:>7,}{size:>7,.0f}{draw:>10,.0f}{draw / base[0]:>7.2f}{zoom:>10,.0f}{zoom / base[1]:>7.2f}"
        )


@contextmanager
def page_with_plotly() -> Iterator[Any]:
    with chromium(height=1080) as (page, _):
        page.set_content("<!doctype html><body></body>")
        page.add_script_tag(content=get_plotlyjs())
        page.evaluate(FRAMES)
        yield page


def switchboard() -> None:
    """Every mechanism on, then off again: 11 setups that are new and one that is not; then the same once more."""
    times: dict[str, list[list[float]]] = {"runs not made before": [], "runs that are kept": []}
    on: set[str] = set()
    seen = {frozenset(on)}
    with serving(Path(tempfile.mkdtemp())) as server, chromium(height=1080) as (page, _):
        run_all(page, server, "panels.ipynb")
        page.locator(".labkit-panel .js-plotly-plot .main-svg").first.wait_for(timeout=60_000)
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        for name in [*MECHANISMS] * 4:
            on ^= {name}
            page.wait_for_timeout(SETTLED_MS)
            kind = "runs that are kept" if on in seen else "runs not made before"
            before = processor_ms(session)
            times[kind].append([*page.evaluate(CLICK, name), processor_ms(session) - before])
            seen.add(frozenset(on))
    kernel = dict(zip(times, kernel_ms(), strict=True))
    print(f"{'':<26}{'':>7}{'wall-clock ms':>30}{'processor ms':>18}")
    print(f"{'Switchboard':<26}{'flips':>7}{'verdict':>10}{'drawn':>10}{'longest':>10}{'kernel':>9}{'page':>9}")
    for name, rows in times.items():
        verdict, drawn, page_ms = (statistics.median(column) for column in zip(*rows, strict=True))
        longest = max(row[1] for row in rows)
        print(f"{name:<26}{len(rows):>7}{verdict:>10,.0f}{drawn:>10,.0f}{longest:>10,.0f}", end="")
        print(f"{kernel[name]:>9,.0f}{page_ms:>9,.0f}")


def processor_ms(session: Any) -> float:
    """What the page's main thread has used since it began, whatever else the machine does."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return 1000 * next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")


def kernel_ms() -> tuple[float, float]:
    """Processor time of a flip up to its answer, in this process: runs not made before, and runs that are kept."""
    taken = asyncio.run(_flip_all())
    return sum(taken[:2]) / 2, sum(taken[2:]) / 2


async def _flip_all() -> list[float]:
    """All mechanisms on, off, and both again; in an event loop, so that the races come after the answers."""
    board, taken = Switchboard(), []
    for _ in range(4):
        began = time.process_time()
        for box in board.controls.switches.values():
            box.value = not box.value
        taken.append((time.process_time() - began) / len(MECHANISMS) * 1000)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("figures", "switchboard"))
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--new-tokens", type=int, default=2100, help="per request of the long run")
    options = parser.parse_args()
    parts: dict[str, Callable[[], None]] = {
        "figures": lambda: figures(options.repeat, options.new_tokens),
        "switchboard": switchboard,
    }
    for name, part in parts.items():
        if options.only in (None, name):
            print(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
            part()


if __name__ == "__main__":
    main()
