"""The numbers of a run, checked by hand on invented spans."""

import json

import pytest

from labkit.analysis.idle import CPU, LAUNCH
from labkit.analysis.occupancy import IN_OPERATION, PhaseTime, idle_gaps, occupancy, report
from labkit.errors import InvalidArgument
from labkit.trace.events import Span, Trace
from tests.unit.synthetic import US, async_trace, sync_trace


def kernel(number: int, start: int, end: int, busy: int, stream: str = "compute") -> Span:
    return Span(number, "kernel", "k", "compute", start, end, step=number, busy_ns=busy, stream=stream)


def test_the_synchronous_run_by_hand():
    """A step: 20 plan, 10 fill, 2+3+8 upload, 2 compute, 3 launch latency, 80 kernel, 5 download, 27 settle."""
    numbers = report(sync_trace(4))
    step = (20 + 10 + 13 + 5 + 80 + 5 + 27) * US
    assert numbers.window_ns == 4 * step
    assert numbers.stream_ns == 4 * 80 * US
    assert numbers.busy_ns == 4 * 72 * US
    assert numbers.gpu_active == pytest.approx(72 / 160)
    assert numbers.stream_active == pytest.approx(80 / 160)
    assert numbers.idle_ns == 4 * (step - 72 * US)
    assert (numbers.steps, numbers.host_waits, numbers.host_waits_per_step) == (4, 8, 2.0)
    assert numbers.ns_per_step == step
    assert (numbers.bytes_up, numbers.bytes_down) == (4 * 4096, 4 * 64)
    assert numbers.phases["plan"] == PhaseTime(4, 80 * US)
    assert numbers.phases["settle"].mean_ns == 27 * US
    assert list(numbers.phases) == ["plan", "fill", "upload", "compute", "download", "settle"]
    assert numbers.idle[IN_OPERATION] == 4 * 8 * US
    assert numbers.idle[LAUNCH] == 4 * 3 * US
    assert numbers.idle[CPU] == numbers.idle_ns - numbers.idle[IN_OPERATION] - numbers.idle[LAUNCH] - 32 * US


@pytest.mark.parametrize(
    "trace", [sync_trace(), async_trace(), async_trace(kernel_ns=10 * US)], ids=["sync", "async", "short"]
)
def test_the_reasons_sum_to_the_idle_time_exactly(trace):
    numbers = report(trace)
    assert sum(numbers.idle.values()) == numbers.idle_ns
    assert sum(gap.duration_ns for gap in idle_gaps(trace)) == numbers.window_ns - numbers.stream_ns


def test_a_step_in_which_the_device_did_nothing_is_not_counted():
    spans = (kernel(0, 0, 10, 10), kernel(1, 10, 20, 10), Span(2, "phase", "plan", "CPU", 20, 30, step=2))
    numbers = report(Trace(spans))
    assert (numbers.steps, numbers.ns_per_step) == (2, 15)


def test_overlapping_streams_count_once():
    numbers = report(Trace((kernel(0, 0, 10, 10, "a"), kernel(1, 5, 20, 15, "b"), kernel(2, 30, 40, 4, "a"))))
    assert numbers.stream_ns == 30
    assert numbers.busy_ns == 20 + 4
    assert numbers.gpu_active == pytest.approx(24 / 40)


def test_busy_never_exceeds_the_operation_that_claims_it():
    assert report(Trace((kernel(0, 0, 10, 99), kernel(1, 10, 30, 5)))).busy_ns == 15


def test_a_blocking_copy_and_a_synchronize_are_host_waits():
    spans = (
        Span(0, "copy", "c", "H2D", 0, 5, blocking=True),
        Span(1, "copy", "c", "H2D", 5, 9),
        Span(2, "synchronize", "e", "CPU", 0, 9),
    )
    assert report(Trace(spans)).host_waits == 2


def test_an_empty_trace_has_all_numbers_zero_and_prints():
    numbers = report(Trace(()))
    assert (numbers.window_ns, numbers.gpu_active, numbers.ns_per_step, numbers.host_waits_per_step) == (0, 0, 0, 0)
    assert "GPU active" in str(numbers)
    assert "<table>" in numbers._repr_html_()


def test_texts_give_the_number_with_its_definition():
    numbers = report(sync_trace())
    for text in (str(numbers), numbers._repr_html_()):
        assert "45.0 %" in text
        assert "a kernel is running on the compute lane" in text
        assert "waiting for the CPU" in text


def test_html_escapes_the_names_of_a_trace():
    page = report(Trace((Span(0, "phase", "<b>", "CPU", 0, 5),)))._repr_html_()
    assert "&lt;b&gt;" in page
    assert "<b>" not in page


def test_to_dict_survives_json_and_has_the_derived_numbers():
    numbers = report(async_trace())
    data = json.loads(json.dumps(numbers.to_dict()))
    assert data == numbers.to_dict()
    assert data["gpu_active"] == numbers.gpu_active
    assert data["phases"]["plan"]["count"] == numbers.steps


@pytest.mark.parametrize("bins", [1, 7, 400, 100_000])
@pytest.mark.parametrize("lane", ["CPU", "H2D", "compute", "D2H"])
def test_bins_sum_to_the_busy_time_of_the_lane(lane, bins):
    trace = async_trace()
    binned = occupancy(trace, lane, bins)
    assert len(binned.busy_ns) == len(binned.share) == bins
    if lane == "compute":
        assert sum(binned.busy_ns) == report(trace).stream_ns
    assert sum(binned.busy_ns) == sum(occupancy(trace, lane, 1).busy_ns)
    assert all(0 <= share <= 1 for share in binned.share)


def test_bins_by_hand():
    trace = Trace((kernel(0, 0, 15, 15), kernel(1, 35, 40, 5)))
    assert occupancy(trace, "compute", 4).busy_ns == (10, 5, 0, 5)
    assert occupancy(trace, "compute", 4).share == (1.0, 0.5, 0.0, 0.5)
    assert occupancy(Trace(()), "compute", 3).share == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(("lane", "bins"), [("gpu", 4), ("compute", 0), ("compute", 2.5), ("compute", True)])
def test_bad_arguments_name_themselves(lane, bins):
    with pytest.raises(InvalidArgument):
        occupancy(Trace(()), lane, bins)
