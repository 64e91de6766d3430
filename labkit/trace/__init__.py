"""What a run leaves behind, and how to keep it: ``events.py`` has the records, ``export.py`` the file format."""

from labkit.trace.events import LANES, PHASES, Edge, Span, Touch, Trace
from labkit.trace.export import load_chrome, save_chrome, to_chrome

__all__ = ["LANES", "PHASES", "Edge", "Span", "Touch", "Trace", "load_chrome", "save_chrome", "to_chrome"]
