"""How a run and a trace show themselves in a notebook: the timeline with its numbers, and a table where there is none.

JupyterLab and Notebook prefer the plotly type of a bundle, others take the HTML, a terminal the text. The bundle is the
same for the same trace, so that a notebook's output can be compared.
"""

from __future__ import annotations

import json
from html import escape
from typing import Any

from labkit.viz.figures import timeline
from labkit.viz.html import CONFIG

PLOTLY = "application/vnd.plotly.v1+json"
_MOST_BARS = 600  # a notebook keeps every output: 150 kB at most


def mimebundle(shown: Any) -> dict[str, Any]:
    """Figure, HTML and text of a Run with a trace, or of a Trace."""
    figure = json.loads(timeline(shown, max_bars=_MOST_BARS).to_json())
    meta = figure["layout"]["meta"]
    told = f"<p><b>{escape(meta['summary'])}</b><br>{'<br>'.join(escape(note) for note in meta['notes'])}</p>"
    return {
        PLOTLY: {**figure, "config": CONFIG},
        "text/html": told + shown._repr_html_(),
        "text/plain": repr(shown),
    }
