"""Recordings: what ships is complete and usable, and what ``benchmarks/record.py`` writes is what is read here."""

import importlib.util
import sys
from pathlib import Path

import pytest

from labkit.analysis.occupancy import report
from labkit.analysis.races import check
from labkit.errors import InvalidArgument
from labkit.model.toy import ToyModel
from labkit.trace.events import PHASES
from labkit.trace.recorded import NAMES, RECORDINGS, load_recording, recordings, whole_runs
from labkit.viz import timeline

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The recorder run on the virtual GPU: two windows and two whole runs."""
    out = tmp_path_factory.mktemp("recordings")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        spec = importlib.util.spec_from_file_location("record", BENCHMARKS / "record.py")
        record = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(record)
        patch.setattr(record, "BATCH", 3)
        names = "sync-eager-512,async-graphs-512"
        options = ["--out", str(out), "--device", "virtual", "--names", names, "--steps", "6", "--whole", "70"]
        record.main(options, ToyModel())
        sys.modules.pop("gpu_common", None)
    return out


def assert_usable(trace):
    assert trace.meta["source"] == "recorded"
    assert {"device", "model", "switches", "batch", "context", "how", "gpu", "torch", "date", "command"} <= set(
        trace.meta
    )
    assert {span.name for span in trace.of_kind("phase")} == set(PHASES)
    found = report(trace)
    assert found.steps >= 6
    assert 0.3 < found.stream_active <= 1
    assert found.host_waits_per_step == pytest.approx(1, abs=0.2)
    assert check(trace).races == ()


def test_a_recording_is_a_trace(made):
    assert recordings(made) == ("async-graphs-512", "sync-eager-512")
    for name in recordings(made):
        assert_usable(load_recording(name, made))
        assert "GPU active: stream level" in timeline(load_recording(name, made)).layout.title.subtitle.text
    assert load_recording("async-graphs-512", made).meta["switches"][-2:] == ["cuda_graphs", "compiled"]


def test_whole_runs_in_numbers(made):
    sync, asynchronous = whole_runs(made)
    assert (sync.name, asynchronous.name) == ("sync-graphs", "async-graphs")
    for run in (sync, asynchronous):
        assert run.steps == 70
        assert len(run.contexts) == len(run.ms_per_step) == 69, "a stretch is one step here"
        assert run.contexts == tuple(range(129, 198))
        assert set(run.host_ms) == set(PHASES)
        assert sum(run.ms_per_step) == pytest.approx(run.seconds * 1000, rel=0.1)
    assert asynchronous.seconds < sync.seconds
    assert asynchronous.stream_active > sync.stream_active


def test_an_unknown_name_lists_the_known_ones(made, tmp_path):
    with pytest.raises(InvalidArgument, match="one of async-graphs-512, sync-eager-512"):
        load_recording("async-graphs", made)
    with pytest.raises(InvalidArgument, match="nothing: no recording is in"):
        load_recording("async-graphs-512", tmp_path)
    assert whole_runs(tmp_path) == ()


def test_what_ships_is_what_is_promised():
    assert recordings() == tuple(sorted(NAMES))
    assert sum(path.stat().st_size for path in RECORDINGS.glob("*")) < 2_000_000
    assert [run.name for run in whole_runs()] == ["sync-graphs", "async-graphs"]


def test_every_shipped_recording_is_from_a_gpu():
    for name in recordings():
        trace = load_recording(name)
        assert_usable(trace)
        mode, _, context = name.rpartition("-")
        assert trace.meta["context"] == int(context)
        assert ("lookahead" in trace.meta["switches"]) == mode.startswith("async")
        assert ("cuda_graphs" in trace.meta["switches"]) == mode.endswith("graphs")
        assert "NVIDIA" in trace.meta["gpu"] and "record.py" in trace.meta["command"]
