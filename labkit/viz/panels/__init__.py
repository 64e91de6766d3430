"""Panels for a notebook: switches to flip while looking at what they do.

Each panel is a plain state object, which needs neither a kernel nor widgets, and a view that only sets widget traits.
The views need ipywidgets and anywidget: ``pip install 'labkit[lab]'``; they are imported when first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from labkit.errors import MissingExtra

__all__ = ["Live", "Prediction", "StepThrough", "Switchboard"]

_HOMES = {"Live": "live", "Prediction": "prediction", "StepThrough": "step_through", "Switchboard": "switchboard"}


def __getattr__(name: str) -> Any:
    """The view of that name. Raises MissingExtra where the widgets are not installed."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    for package in ("ipywidgets", "anywidget"):
        try:
            import_module(package)
        except ImportError:
            raise MissingExtra(package, "lab") from None
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
