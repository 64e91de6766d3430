"""The Live panel: an engine that keeps running while its switches are flipped. The state is ``running.py``."""

from __future__ import annotations

import time
from html import escape
from typing import Any

import ipywidgets as widgets

from labkit.analysis.units import share_text, time_text
from labkit.switches import MECHANISMS, Switches
from labkit.viz.panels import words
from labkit.viz.panels.controls import button, checkbox, row, slider
from labkit.viz.panels.driver import Driver, when_cell_runs_again
from labkit.viz.panels.live_figure import live_figure
from labkit.viz.panels.plot import Plot
from labkit.viz.panels.running import STEPS_KEPT, Running

SPEEDS = (1, 2, 4, 8, 16)  # steps/s
_FRAME_S = 0.25
_BURST = 8  # steps without a pause on a real GPU: in single steps it would only be seen waiting for the panel


class Live(widgets.VBox):
    """Run, flip, pause, step, stop. A flip takes effect at the next step boundary and is marked on the time axis.

    It stops by ``stop()``, by ``close()``, when its cell is run again, and when it is no longer shown anywhere.

    Args:
        switches: what to start with: Switches, or a rung's name or number.
        device: ``"virtual"`` or ``"cuda"``.
        profile: costs of the virtual GPU.

    Raises:
        DeviceError: "cuda" where there is no GPU.
    """

    _stopped = True  # until there is something to stop: a widget that was never finished is closed too

    def __init__(
        self, switches: Switches | int | str = 0, *, device: str = "virtual", profile: str = "article-8b"
    ) -> None:
        self._options = {"device": device, "profile": profile}
        self.state = Running(switches, **self._options)
        self._driver = Driver(self._beat, self._fail)
        self._burst = 1 if device == "virtual" else _BURST
        self.run, self.pause, self.step, self.end = (
            button(*texts)
            for texts in (
                ("Run", "Run on and on", self.start),
                ("Pause", "Hold after this step", self.hold),
                ("One step", "Run one step", self.one_step),
                ("Stop", "End the run and free the engine", self.stop),
            )
        )
        self.speed = slider("Steps per second", [(str(n), n) for n in SPEEDS])
        self.speed.value = 4
        self.switches = {name: checkbox(name) for name in MECHANISMS}
        self._show_switches(self.state.switches)
        for box in self.switches.values():
            box.observe(self._flipped, "value")
        self.verdict, self.numbers = widgets.HTML(), widgets.HTML()
        self.plot = Plot(live_figure(self.state.trace, ()))
        buttons = row(self.run, self.pause, self.step, self.end, self.speed)
        boxes = row(*self.switches.values())
        super().__init__([widgets.HTML(words.CSS), buttons, boxes, self.verdict, self.numbers, self.plot])
        self.add_class(words.CLASS)
        self._forget_cell = when_cell_runs_again(self.stop)
        self._view_count = 0  # from now on the front end counts the views
        self.observe(self._views_changed, "_view_count")
        self._stopped = False
        self._refresh()

    # -- what the buttons do -----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Run on and on, in the event loop of the notebook's kernel; after ``stop``, a new run.

        Raises:
            RuntimeError: no event loop runs here, as in a plain script; ``one_step`` works everywhere.
        """
        self._revive()
        self._driver.start()
        self._refresh()

    def hold(self) -> None:
        """Pause; the engine keeps its state."""
        self._driver.stop()
        self._refresh()

    def one_step(self) -> None:
        """Pause, and run one step."""
        self._driver.stop()
        self._revive()
        self._advance(1)

    def stop(self) -> None:
        """End the run and free the engine. A second call does nothing."""
        self._driver.stop()
        self.state.close()
        self._stopped = True
        self._refresh()

    def close(self) -> None:
        """Stop, and remove the panel everywhere."""
        if not self._stopped:
            self.stop()
        self._forget_cell()
        super().close()

    @property
    def going(self) -> bool:
        """Whether it runs on by itself."""
        return self._driver.going

    # -- inner -------------------------------------------------------------------------------------------------------

    def _beat(self) -> float:
        """One slice: some steps, one picture. Returns the seconds until the next."""
        began = time.monotonic()
        interval = max(_FRAME_S, 1 / self.speed.value)
        self._advance(max(self._burst, round(self.speed.value * interval)))
        return interval - (time.monotonic() - began)

    def _advance(self, steps: int) -> None:
        try:
            self.state.advance(steps)
        except Exception as error:  # a learner reads the panel, not the log
            self._fail(error)
        else:
            self._refresh()

    def _fail(self, error: Exception) -> None:
        self._driver.stop()
        self.verdict.value = words.failure(error)

    def _revive(self) -> None:
        if self._stopped:
            chosen = Switches(**{name: box.value for name, box in self.switches.items()})
            self.state, self._stopped = Running(chosen, **self._options), False

    def _flipped(self, change: dict[str, Any]) -> None:
        name = change["owner"].description
        if not self._stopped:
            self.state.want(**{name: change["new"]})
            self._say()

    def _show_switches(self, switches: Switches) -> None:
        for name, box in self.switches.items():
            box.value = getattr(switches, name)

    def _views_changed(self, change: dict[str, Any]) -> None:
        if change["new"] == 0 and change["old"] and not self._stopped:
            self.stop()

    def _refresh(self) -> None:
        self._say()
        self.plot.show(live_figure(self.state.trace, self.state.flips))

    def _say(self) -> None:
        self.verdict.value = _verdict(self.state, "stopped" if self._stopped else "running" if self.going else "paused")
        self.numbers.value = _numbers(self.state)


def _verdict(state: Running, mode: str) -> str:
    """One line: right or wrong so far since the last flip, what waits, and the badge."""
    if state.wrong:
        kind, said = "wrong", f"✗ WRONG: {state.wrong} of {state.finished} finished requests differ from rung 0's"
    elif state.finished:
        kind, said = "right", f"✓ RIGHT: all {state.finished} finished requests equal rung 0's"
    else:
        kind, said = "open", "… no request has finished yet"
    badge = "" if state.explanation.right else ' <span class="badge" role="note">⚠ UNSAFE</span>'
    wait = f"; at the next step: {escape(', '.join(state.pending))}" if state.pending else ""
    line = f'<div class="verdict {kind}" role="status">{said}{badge}</div>'
    held = " The host ran ahead of the GPU without end, so the panel makes it wait now and then." if state.held else ""
    return f"{line}<p><b>{mode}{wait}.</b> {escape(state.explanation.why)}{held}</p>"


def _numbers(state: Running) -> str:
    now = state.report()
    cells = (
        ("GPU active", share_text(now.gpu_active) if now.window_ns else "-", now.gpu_active_means),
        ("tokens/s", f"{state.tokens_per_s:,.0f}", "generated tokens divided by time"),
        (
            "per step",
            time_text(now.ns_per_step) if now.steps else "-",
            f"of the last {STEPS_KEPT} steps, as the others",
        ),
        ("steps", str(state.steps), f"since the last flip, on {state.device_name}"),
    )
    rows = "".join(
        f'<tr><th scope="row">{name}</th><td class="number"><b>{value}</b></td><td>{escape(meaning)}</td></tr>'
        for name, value, meaning in cells
    )
    return f"<table><caption>Numbers of the last {STEPS_KEPT} steps</caption><tbody>{rows}</tbody></table>"
