"""A new figure in an old FigureWidget: only what differs is set, in one message, so that zoom and legend stay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import plotly.graph_objects as go

Path = tuple[str, ...]
_KEPT = ("template", "uirevision")  # the same in every figure of a panel, and slow to compare


class Canvas:
    """A FigureWidget that shows one plain figure after another. Traces are matched by type and name.

    Raises:
        ImportError: FigureWidget needs anywidget.
    """

    def __init__(self, figure: go.Figure) -> None:
        shown = _named(figure)
        self.widget = go.FigureWidget(figure)
        self._places = {name: place for place, name in enumerate(shown)}
        self._traces: dict[str, dict[str, Any]] = shown
        self._layout = _layout(figure)

    def show(self, figure: go.Figure) -> None:
        """Show another figure."""
        shown, layout = _named(figure), _layout(figure)
        fresh = [name for name in shown if name not in self._places]
        with self.widget.batch_update():
            for name in self._places:
                self._update(name, shown.get(name))
            for path, value in differences(self._layout, layout):
                self.widget.layout[".".join(path)] = value
        self._layout = layout
        if fresh:
            self._add(fresh, shown, figure)

    def _update(self, name: str, new: dict[str, Any] | None) -> None:
        """A trace that the new figure has not is hidden; it may come back."""
        old = self._traces[name]
        new = {**old, "visible": False} if new is None else new
        trace = self.widget.data[self._places[name]]
        for path, value in differences(old, new):
            trace[".".join(path)] = value
        self._traces[name] = new

    def _add(self, names: list[str], shown: Mapping[str, dict[str, Any]], figure: go.Figure) -> None:
        self.widget.add_traces([figure.data[place] for place, name in enumerate(shown) if name in names])
        for name in names:
            self._places[name] = len(self._places)
            self._traces[name] = shown[name]


def _named(figure: go.Figure) -> dict[str, dict[str, Any]]:
    """The traces as plain dicts by type and name; ``meta`` is the name of one whose legend entry changes."""
    named: dict[str, dict[str, Any]] = {}
    for trace in figure.data:
        name = f"{trace.type} {trace.meta or trace.name or ''}"
        while name in named:
            name += "+"
        named[name] = {"visible": True, **trace.to_plotly_json()}
    return named


def _layout(figure: go.Figure) -> dict[str, Any]:
    plain: dict[str, Any] = figure.layout.to_plotly_json()
    return {name: value for name, value in plain.items() if name not in _KEPT}


def differences(old: Mapping[str, Any], new: Mapping[str, Any], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Paths at which ``new`` differs, and its value there (None for what it lacks). ``meta`` is ours, and one value."""
    for name in {**old, **new}:
        before, after = old.get(name), new.get(name)
        if name != "meta" and isinstance(before, Mapping) and isinstance(after, Mapping):
            yield from differences(before, after, (*path, name))
        elif not _same(before, after):
            yield (*path, name), after


def _same(a: Any, b: Any) -> bool:
    """Equality that also holds for arrays."""
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return list(a) == list(b)
    if hasattr(a, "tolist") or hasattr(b, "tolist"):
        return _plain(a) == _plain(b)
    return bool(a == b)


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value
