"""The recorded files, and the judges that read traces."""

from __future__ import annotations

import gzip

import pytest

from labkit.analysis.kernels import with_kernels
from labkit.analysis.occupancy import report
from labkit.lessons.support.arrows import (
    RECORDINGS,
    judge_arrows,
    judge_calls,
    profile_path,
    recorded_trace,
    small_run,
)
from labkit.trace.profiler import load_profile_trace


def test_the_two_recordings_are_of_the_same_four_steps():
    trace, profile = recorded_trace(), load_profile_trace(profile_path())
    both = with_kernels(trace, profile)
    assert both.meta["kernels"]["outside"] == 0
    assert report(both).steps == 4
    assert 0.5 < report(both).gpu_active < report(both).stream_active < 1


def test_the_recordings_say_where_they_come_from_and_nothing_of_the_machine_s_folders():
    meta = recorded_trace().meta
    assert all(meta[name] for name in ("device", "model", "torch", "cuda", "date", "command"))
    for path in RECORDINGS.iterdir():
        text = gzip.decompress(path.read_bytes()).decode()
        assert not any(folder in text for folder in ("/root", "/home", "/tmp", "/work"))


def slices_named(events, name, step):
    return [
        e
        for e in events
        if e["ph"] == "X" and e["name"] == name and e["cat"] != "phase" and e["args"].get("step") == step
    ]


def follow(events, name, step, *, arrive="f", begin="s", same_thread=True, last=False):
    slices = [event for event in events if event["ph"] == "X" and event["cat"] != "phase"]
    (mine,) = slices_named(events, name, step)

    def inside(end, it):
        until = it["ts"] + it["dur"] + (1e6 if last else 0)
        return (not same_thread or end["tid"] == it["tid"]) and it["ts"] <= end["ts"] < until

    ids = {event["id"] for event in events if event["ph"] == arrive and inside(event, mine)}
    ends = [event for event in events if event["ph"] == begin and event["id"] in ids]
    return {it["name"] for end in ends for it in slices if inside(end, it)}


def test_arrows_that_are_followed_pass():
    assert judge_arrows(follow, "virtual").passed
    assert judge_arrows(lambda *a: sorted(follow(*a)), "virtual").passed


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda events, name, step: set(), "No arrow was found."),
        (lambda events, name, step: {e["name"] for e in events if e["ph"] == "s"}, "names of arrows"),
        (lambda *a: follow(*a, arrive="s", begin="f"), "the other way"),
        (lambda *a: follow(*a, same_thread=False), "compare tids"),
        (lambda *a: {"sample"}, "Some arrows are missing."),
        (lambda *a: {"plan"}, "not what it waited for"),
        (lambda *a: "upload", "A set of names"),
        (lambda *a: None, "A set of names"),
    ],
)
def test_arrow_slips(answer, says):
    result = judge_arrows(answer, "virtual")
    assert not result.passed
    assert says in result.says, result


def issued(profile, lanes=("compute",), named="before", divide=True):
    spans = {span.id: span for span in profile.spans}
    found: dict[str, list[int]] = {}
    for edge in profile.edges:
        if edge.kind == "issue" and spans[edge.after].lane in lanes:
            found.setdefault(spans[getattr(edge, named)].name, []).append(edge.before)
    return {name: len(calls) / (len(set(calls)) if divide else 1) for name, calls in found.items()}


def test_calls_that_are_counted_pass():
    assert issued(load_profile_trace(profile_path())) == {"cudaGraphLaunch": 386}
    assert judge_calls(issued, "virtual").passed


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda profile: {}, "No call was found."),
        (lambda profile: issued(profile, ("compute", "H2D", "D2H")), "Copies between host and device"),
        (lambda profile: issued(profile, named="after"), "The keys are the names of the calls"),
        (lambda profile: issued(profile, divide=False), "divided by how many calls"),
        (lambda profile: {"cudaGraphLaunch": "480"}, "divided by how many calls"),
        (lambda profile: 480, "A dict"),
    ],
)
def test_call_slips(answer, says):
    result = judge_calls(answer, "virtual")
    assert not result.passed
    assert says in result.says, result


def test_the_small_run_is_short_and_has_no_graphs():
    trace = small_run("virtual", "carry_over")
    assert report(trace).steps == 10
    assert not list(trace.of_kind("graph"))
