"""Pictures of a trace, and panels. The only part of labkit that needs plotly: ``pip install 'labkit[lab]'``."""

from typing import Any

from labkit.errors import MissingExtra

try:
    import plotly  # noqa: F401
except ImportError:
    raise MissingExtra("plotly", "lab") from None

from labkit.viz.figures import (
    batch_view,
    blame,
    carry_over_view,
    compare,
    kv_view,
    memory,
    sweep,
    table,
    table_of,
    timeline,
)
from labkit.viz.html import save_html

_PANELS = ["Live", "Prediction", "StepThrough", "Switchboard"]

__all__ = [
    "batch_view",
    "blame",
    "carry_over_view",
    "compare",
    "kv_view",
    "memory",
    "save_html",
    "sweep",
    "table",
    "table_of",
    "timeline",
    *_PANELS,
]


def __getattr__(name: str) -> Any:
    """A panel. Figures need plotly alone, so ipywidgets is imported for the panels only (MissingExtra without it)."""
    if name in _PANELS:
        from labkit.viz import panels

        return getattr(panels, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
