"""A profile made from a trace gives that trace back."""

from __future__ import annotations

import pytest

from labkit.errors import InvalidArgument
from labkit.lessons.support.from_recording import gpu_ns, host_ns, profile_of, step_ns, virtual_run
from labkit.switches import ladder
from labkit.trace.events import PHASES, Trace
from labkit.trace.recorded import load_recording

IN_TURNS = ladder("events").with_(cuda_graphs=True)


@pytest.fixture(scope="module")
def recorded() -> Trace:
    return load_recording("sync-graphs-512")


def test_host_time_is_per_phase_and_without_waits(recorded):
    host = host_ns(recorded)
    assert tuple(host) == PHASES
    assert sum(host.values()) < 0.1 * step_ns(recorded), "settle waits for most of a step"


def test_a_synchronous_step_is_longer_than_its_kernels(recorded):
    assert gpu_ns(recorded) < step_ns(recorded) < gpu_ns(recorded) + 1.5 * sum(host_ns(recorded).values())


def test_the_profile_gives_back_what_it_was_made_from(recorded):
    profile = profile_of(recorded)
    again = virtual_run(profile, IN_TURNS, requests=32, steps=8)
    assert gpu_ns(again) == gpu_ns(recorded)
    assert host_ns(again) == {name: round(ns) for name, ns in host_ns(recorded).items()}


def test_the_virtual_gpu_predicts_both_loops_of_the_recording_within_two_percent(recorded):
    profile = profile_of(recorded)
    ahead = load_recording("async-graphs-512")
    for real, switches in ((recorded, IN_TURNS), (ahead, ladder("cuda_graphs"))):
        virtual = virtual_run(profile, switches, requests=32, steps=8)
        assert step_ns(virtual) == pytest.approx(step_ns(real), rel=0.02)


def test_a_trace_without_steps_is_refused():
    for number in (gpu_ns, step_ns):
        with pytest.raises(InvalidArgument, match="trace"):
            number(Trace(()))
