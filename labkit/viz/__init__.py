"""Pictures of a trace. The only part of labkit that needs plotly: ``pip install 'labkit[lab]'``."""

from labkit.errors import MissingExtra

try:
    import plotly  # noqa: F401
except ImportError:
    raise MissingExtra("plotly", "lab") from None

from labkit.viz.figures import blame, compare, table, table_of, timeline
from labkit.viz.html import save_html

__all__ = ["blame", "compare", "save_html", "table", "table_of", "timeline"]
