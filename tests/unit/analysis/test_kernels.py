"""Kernels of a profile inside the operations of a labkit trace of the same steps, whatever the two clocks say."""

from dataclasses import replace
from pathlib import Path

import pytest

import labkit
from labkit.analysis.kernels import align, with_kernels
from labkit.analysis.occupancy import report
from labkit.entry import Engine
from labkit.errors import InvalidArgument
from labkit.model.toy import ToyModel
from labkit.sizes import Sizes
from labkit.trace.export import load_chrome
from labkit.trace.profiler import load_profile_trace
from tests.unit.profiles import profile_of

REAL = Path(labkit.__file__).parent / "lessons" / "recordings"
SIZES = Sizes(max_rows=4, token_budget=32, block_size=16, num_blocks=16, max_model_len=64, graph_rows=(4,))


@pytest.fixture(params=[2, 5, 6], scope="module")
def trace(request):
    with Engine(ToyModel(), switches=request.param, sizes=SIZES) as engine:
        return engine.generate([[1, 2, 3], [4, 5]], max_new_tokens=6).trace


def operations(trace):
    return [span for span in trace.lane("compute") if span.kind in ("kernel", "graph")]


@pytest.mark.parametrize("later_ns", [0, 123_456_789, -7_000_001])
def test_the_offset_is_found_within_its_error(trace, tmp_path, later_ns):
    profile = load_profile_trace(profile_of(trace, tmp_path / "p.json", later_ns=later_ns))
    calls = [span for span in trace.spans if span.kind in ("launch", "wait", "synchronize", "record")]
    zero = min(call.start_ns + call.duration_ns // 4 for call in calls)
    found = align(trace, profile)
    waits = sum(span.kind in ("wait", "synchronize") for span in trace.spans)
    assert found.pairs == sum(span.kind == "copy" for span in trace.spans) + waits
    assert abs(found.offset_ns - zero) <= found.error_ns, "a profile begins at its first call"
    assert found.error_ns <= min(span.duration_ns for span in calls if span.kind in ("launch", "wait"))


def test_calls_that_do_not_pair_up_are_not_used(trace, tmp_path):
    profile = load_profile_trace(profile_of(trace, tmp_path / "p.json"))
    first = next(span for span in profile.spans if "WaitEvent" in span.name)
    fewer = replace(profile, spans=tuple(span for span in profile.spans if span is not first))
    waits = sum(span.kind == "wait" for span in trace.spans)
    assert align(trace, fewer).pairs == align(trace, profile).pairs - waits > 0


def test_every_kernel_finds_its_operation(trace, tmp_path):
    profile = load_profile_trace(profile_of(trace, tmp_path / "p.json", later_ns=5_000_000, kernels=4, gap_ns=200))
    merged = with_kernels(trace, profile)
    assert (merged.meta["kernels"]["count"], merged.meta["kernels"]["outside"]) == (4 * len(operations(trace)), 0)
    for before, after in zip(operations(trace), operations(merged), strict=True):
        assert after.busy_ns == 4 * (before.duration_ns // 4 - 200)
    assert [replace(span, busy_ns=0) for span in merged.spans] == [replace(span, busy_ns=0) for span in trace.spans]
    assert (merged.edges, merged.graphs) == (trace.edges, trace.graphs)


def test_stream_active_stays_and_gpu_active_is_the_kernels(trace, tmp_path):
    whole = replace(trace, spans=tuple(replace(s, busy_ns=s.duration_ns) for s in trace.spans))
    profile = load_profile_trace(profile_of(whole, tmp_path / "p.json", kernels=2, gap_ns=500))
    whole = replace(whole, meta={**whole.meta, "source": "live"})
    before, after = report(whole), report(with_kernels(whole, profile))
    assert (before.level, after.level) == ("stream", "kernel")
    assert "stream level: share of the run" in str(before) and "a kernel is running" in str(after)
    assert after.stream_active == before.stream_active == before.gpu_active
    assert before.busy_ns - after.busy_ns == sum(
        span.duration_ns - 2 * (span.duration_ns // 2 - 500) for span in operations(whole)
    )


def test_a_kernel_that_no_launch_issued_is_counted_and_left_out(trace, tmp_path):
    profile = load_profile_trace(profile_of(trace, tmp_path / "p.json"))
    calls = {edge.before for edge in profile.edges if profile.spans[edge.after].kind == "kernel"}
    late = replace(profile.spans[max(calls)], start_ns=10**12, end_ns=10**12 + 5)
    moved = replace(profile, spans=tuple(late if span.id == late.id else span for span in profile.spans))
    merged = with_kernels(trace, moved)
    assert merged.meta["kernels"]["outside"] == 3
    assert sum(span.busy_ns == 0 for span in operations(merged)) == 1


def test_a_clock_that_drifts_is_aligned_in_the_middle(trace, tmp_path):
    """Offsets of 0 to 90 ms: no offset fits all pairs, and the error says how far off the worst is."""
    profile = load_profile_trace(profile_of(trace, tmp_path / "p.json"))
    stretched = tuple(replace(s, start_ns=s.start_ns * 2, end_ns=s.end_ns * 2) for s in profile.spans)
    found = align(trace, replace(profile, spans=stretched))
    assert found.error_ns > align(trace, profile).error_ns
    assert found.error_ns >= trace.duration_ns // 4


def test_another_run_is_refused(trace, tmp_path):
    profile = load_profile_trace(profile_of(trace, tmp_path / "p.json"))
    fewer = trace.window(0, trace.end_ns // 2)
    with pytest.raises(InvalidArgument, match="a profile of the same steps"):
        with_kernels(fewer, profile)
    with pytest.raises(InvalidArgument, match="0 copies"):
        align(trace, replace(profile, edges=()))


def test_the_recording_of_a_real_gpu():
    """Four steps on an H200, as a labkit trace and as PyTorch's profiler saw them."""
    trace = load_chrome(REAL / "kernels-512.json.gz")
    profile = load_profile_trace(REAL / "kernels-512-profiler.json.gz")
    merged = with_kernels(trace, profile)
    kernels = list(profile.lane("compute"))
    assert merged.meta["kernels"]["count"] == len(kernels) > 1000
    assert merged.meta["kernels"]["outside"] == 0
    assert merged.meta["kernels"]["error_ns"] < 10_000
    before, after = report(trace), report(merged)
    assert (before.level, after.level) == ("stream", "kernel")
    assert before.gpu_active == after.stream_active > after.gpu_active > 0.8
    assert after.busy_ns == pytest.approx(sum(span.duration_ns for span in kernels), rel=0.01)
