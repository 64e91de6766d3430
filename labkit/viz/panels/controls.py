"""The Switchboard's controls, in reading order, which is the keyboard's order too. Each has a description."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import ipywidgets as widgets

from labkit.device.costs import profile_names
from labkit.switches import MECHANISMS, RUNG_NAMES, Switches, ladder
from labkit.viz.panels.board import BATCHES, BUDGETS, HOST_SPEEDS, Setup
from labkit.viz.panels.words import ADDS

_STYLE: dict[str, Any] = {"description_width": "initial"}


class Controls(widgets.VBox):
    """Rung, profile, one checkbox per mechanism, and the sliders; ``setup`` reads them, ``show`` sets them."""

    def __init__(self, setup: Setup) -> None:
        self.rung = dropdown("Rung", [*((f"{i} {name}", i) for i, name in enumerate(RUNG_NAMES)), ("none of them", -1)])
        self.profile = dropdown("Costs of", [(name, name) for name in profile_names()])
        self.switches = {name: checkbox(name) for name in MECHANISMS}
        self.batch = slider("Batch (requests)", [(str(n), n) for n in BATCHES])
        self.token_budget = slider("Token budget", [(str(n), n) for n in BUDGETS])
        self.host_speed = slider("Host speed", [(f"{speed:g}x", speed) for speed in HOST_SPEEDS])
        self._settling = False
        super().__init__(
            [
                row(self.rung, self.profile),
                row(*self.switches.values()),
                row(self.batch, self.token_budget, self.host_speed),
            ]
        )
        self.show(setup)

    @property
    def all(self) -> tuple[Any, ...]:
        """Every control, in reading order."""
        return (self.rung, self.profile, *self.switches.values(), self.batch, self.token_budget, self.host_speed)

    @property
    def setup(self) -> Setup:
        """What the controls say now."""
        return Setup(
            switches=Switches(**{name: box.value for name, box in self.switches.items()}),
            batch=self.batch.value,
            token_budget=self.token_budget.value,
            host_speed=self.host_speed.value,
            profile=self.profile.value,
        )

    @property
    def settling(self) -> bool:
        """Whether the panel itself is setting controls, so that a change asks for nothing."""
        return self._settling

    def show(self, setup: Setup) -> None:
        """Set every control to a setup."""
        with self._quiet():
            self._set_switches(setup.switches)
            self.rung.value = setup.rung
            for name in ("profile", "batch", "token_budget", "host_speed"):
                getattr(self, name).value = getattr(setup, name)

    def take_rung(self) -> None:
        """The checkboxes follow the rung that was picked; the entry for none of them changes nothing."""
        with self._quiet():
            if self.rung.value >= 0:
                self._set_switches(ladder(self.rung.value))

    def _set_switches(self, switches: Switches) -> None:
        for name, box in self.switches.items():
            box.value = getattr(switches, name)

    @contextmanager
    def _quiet(self) -> Iterator[None]:
        self._settling = True
        try:
            yield
        finally:
            self._settling = False


def dropdown(description: str, options: list[tuple[str, Any]]) -> Any:
    """A picker."""
    layout = widgets.Layout(width="auto", margin="2px 24px 2px 0")
    return widgets.Dropdown(description=description, options=options, style=_STYLE, layout=layout)


def checkbox(name: str) -> Any:
    """The switch of a mechanism."""
    layout = widgets.Layout(width="auto", margin="2px 22px 2px 0")
    return widgets.Checkbox(description=name, tooltip=f"{name}: {ADDS[name]}", indent=False, layout=layout)


def slider(description: str, options: list[tuple[str, Any]]) -> Any:
    """A slider over a few values, which speaks when it is let go."""
    layout = widgets.Layout(width="285px", margin="2px 14px 2px 4px")
    return widgets.SelectionSlider(
        description=description, options=options, style=_STYLE, layout=layout, continuous_update=False
    )


def row(*children: Any) -> Any:
    """Controls side by side, on more lines where the page is narrow."""
    return widgets.HBox(children, layout=widgets.Layout(flex_flow="row wrap"))


def button(description: str, tooltip: str, call: Callable[[], None]) -> Any:
    """A button that calls without an argument."""
    made = widgets.Button(description=description, tooltip=tooltip, layout=widgets.Layout(width="auto"))
    made.on_click(lambda _: call())
    return made
