"""Draw docs/timeline.png, the picture of the README: rung 0 above rung 6, at the costs of the article.

    python docs/make_timeline_png.py [OUT.png]

Needs plotly (``pip install 'labkit[lab]'``) and Chromium or Chrome, which takes the picture without a window.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import plotly.graph_objects as go
from plotly.io import to_html

from labkit import Engine
from labkit.engine.sampling import SamplingParams
from labkit.experiments import sizes_for, synthetic_prompts
from labkit.model.toy import ToyModel
from labkit.run import Run
from labkit.viz import compare

WIDTH, HEIGHT = 1600, 700
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def run(rung: int) -> Run:
    """Eight requests, on the virtual GPU at the article's costs; step 0 is their prefill."""
    model, params = ToyModel(), SamplingParams(max_new_tokens=9, eos_token_ids=())
    prompts = synthetic_prompts(model, requests=8, prompt_tokens=16)
    sizes = sizes_for(model, prompts, params)
    with Engine(model, switches=rung, profile="article-8b", sizes=sizes) as engine:
        return engine.generate(prompts, params)


def picture() -> go.Figure:
    """Six steady steps of both, aligned at the first."""
    figure = compare(run(0), run(6), steps=(1, 6), beneath=False)
    return figure.update_layout(width=WIDTH, height=HEIGHT)


def take(figure: go.Figure, path: Path) -> None:
    """A screenshot of the figure alone."""
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        raise SystemExit(f"none of {', '.join(BROWSERS)} is installed")
    page = to_html(figure, include_plotlyjs=True, config={"displayModeBar": False})
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figure.html"
        file.write_text(page.replace("<head>", "<head><style>body { margin: 0 }</style>", 1), encoding="utf-8")
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=10000"]
        size, shot = f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={path.resolve()}"
        subprocess.run([browser, *flags, size, shot, file.as_uri()], check=True, capture_output=True, timeout=120)


if __name__ == "__main__":
    take(picture(), Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "timeline.png")
