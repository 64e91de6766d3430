"""Runs and traces show themselves in a notebook: with plotly as a timeline, without it as a table."""

import json
import subprocess
import sys

import pytest
from IPython.core.formatters import DisplayFormatter

from labkit.analysis.occupancy import report
from labkit.analysis.units import share_text
from labkit.engine.sampling import SamplingParams
from labkit.entry import Engine
from labkit.model.toy import ToyModel
from labkit.viz import timeline
from labkit.viz.notebook import PLOTLY, mimebundle
from tests.unit.synthetic import async_trace
from tests.unit.viz.runs import mixed_run


def shown(thing) -> dict:
    """What a cell that evaluates to ``thing`` would store."""
    formatter = DisplayFormatter()
    formatter.active_types = list(formatter.format_types)
    return formatter.format(thing)[0]


@pytest.mark.parametrize("thing", [mixed_run(5), mixed_run(5).trace, async_trace()], ids=["run", "trace", "synthetic"])
def test_a_cell_shows_the_timeline_and_its_numbers(thing):
    bundle = shown(thing)
    trace = getattr(thing, "trace", thing)
    figure = bundle[PLOTLY]
    assert figure["layout"]["meta"]["summary"] == timeline(thing).layout.meta["summary"]
    assert share_text(report(trace).gpu_active) in figure["layout"]["title"]["text"]
    assert share_text(report(trace).gpu_active) in bundle["text/html"]
    assert len(bundle["text/plain"]) < 200
    assert figure["config"]["showSendToCloud"] is False


def test_the_bundle_is_the_same_every_time_and_plain_json():
    run = mixed_run(5)
    text = json.dumps(mimebundle(run), sort_keys=True)
    assert text == json.dumps(mimebundle(run), sort_keys=True)
    assert '"uid"' not in text
    assert len(text) < 200_000


def test_a_long_run_is_a_small_output():
    assert len(json.dumps(mimebundle(async_trace(500)))) < 200_000


def test_the_html_of_a_run_has_its_texts_and_numbers():
    html = mixed_run(5)._repr_html_()
    assert "ended by" in html
    assert report(mixed_run(5).trace)._repr_html_() in html


def test_a_run_without_a_trace_shows_its_texts():
    with Engine(ToyModel(), trace=False) as engine:
        run = engine.generate([[1, 2]], SamplingParams(max_new_tokens=2))
    assert set(run._repr_mimebundle_()) == {"text/html", "text/plain"}


def test_without_plotly_there_is_html_and_text():
    script = (
        "import sys; sys.modules['plotly'] = None\n"
        "from labkit import Engine\n"
        "with Engine.from_pretrained('toy') as engine:\n"
        "    run = engine.generate([[1, 2, 3]], max_new_tokens=2)\n"
        "for thing in (run, run.trace):\n"
        "    print(sorted(thing._repr_mimebundle_()), len(repr(thing)) < 200)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["['text/html', 'text/plain'] True"] * 2


def test_a_report_shows_itself_as_a_table():
    assert "<table>" in shown(report(async_trace()))["text/html"]
