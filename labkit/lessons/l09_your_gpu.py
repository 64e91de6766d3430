"""Lesson 09: measure a machine, predict from what was measured, and read what others measured."""

from __future__ import annotations

from labkit.lessons.exercise import Exercise
from labkit.lessons.support.arrows import judge_arrows, judge_calls, profile_path, recorded_trace, small_run
from labkit.lessons.support.from_recording import gpu_ns, host_ns, profile_of, step_ns, virtual_run
from labkit.lessons.support.machines import SIZES, Bench, copies, small_model
from labkit.lessons.support.measuring import judge_launch, judge_link, judge_step

__all__ = [
    "SIZES",
    "Bench",
    "copies",
    "gpu_ns",
    "host_ns",
    "profile_of",
    "profile_path",
    "recorded_trace",
    "small_model",
    "small_run",
    "step_ns",
    "virtual_run",
]


def _launch_start(bench):
    # 9.1: ns that the host spends on one launch
    start = bench.now_ns()
    bench.launch()
    bench.wait()
    return bench.now_ns() - start


def _launch_mean(bench):
    bench.wait()
    start = bench.now_ns()
    for _ in range(100):
        bench.launch()
    took = bench.now_ns() - start
    bench.wait()
    return took / 100


launch_cost = Exercise(
    number="9.1",
    name="launch_cost",
    title="What does a launch cost the host?",
    task="""
    Return the time, in ns, that the host spends on one launch. `bench.launch()` enqueues a small kernel,
    `bench.wait()` waits until all of them have run, `bench.now_ns()` reads the host's clock.

    The check tries your function on three virtual machines whose costs it knows, one with a kernel that takes longer
    than a launch, and then on `device`.
    """,
    starter=_launch_start,
    solutions=(_launch_mean,),
    hints=(
        "A launch returns before the kernel has run. What else does the time between your two readings contain?",
        "Let the device be idle, read the clock, launch many times, read the clock again: only then wait.",
        "`start = bench.now_ns()`, a loop of 100 launches, `took = bench.now_ns() - start`, `bench.wait()`, and "
        "`took / 100`.",
    ),
    judge=judge_launch,
)


def _link_start(sizes, times):
    # 9.2: latency in ns, bandwidth in bytes per ns
    latency = times[0]
    bandwidth = sizes[-1] / times[-1]
    return latency, bandwidth


def _link_line(sizes, times):
    per_byte = (times[-1] - times[0]) / (sizes[-1] - sizes[0])
    return times[0] - sizes[0] * per_byte, 1 / per_byte


def _link_fit(sizes, times):
    import numpy as np

    per_byte, latency = np.polyfit(sizes, times, 1)
    return float(latency), float(1 / per_byte)


link = Exercise(
    number="9.2",
    name="link",
    title="Latency and bandwidth",
    task="""
    Copies of some sizes took some times. Return the latency in ns and the bandwidth in bytes per ns (which is GB/s):
    a copy takes latency + size / bandwidth.

    The check measures the copies on three virtual machines with different links.
    """,
    starter=_link_start,
    solutions=(_link_line, _link_fit),
    hints=(
        "Time over size is a straight line. Two points of it are enough where nothing is disturbed.",
        "The slope is ns per byte: difference of two times over the difference of their sizes. In a difference the "
        "latency is gone.",
        "`per_byte = (times[-1] - times[0]) / (sizes[-1] - sizes[0])`; the bandwidth is `1 / per_byte`, the latency "
        "what is left of a time without its bytes.",
    ),
    judge=judge_link,
)


def _step_start(row):
    # 9.3: the time of an asynchronous step, ns
    return row.busy_ns


def _step_slower(row):
    return max(row.busy_ns, sum(row.host_ns.values()))


ahead_step = Exercise(
    number="9.3",
    name="ahead_step",
    title="What will asynchrony bring here?",
    task="""
    `row` is a line of `labkit bench` for the *synchronous* loop: `row.ns` is a step, `row.busy_ns` what its kernels
    take, `row.host_ns` the host's time per phase without waiting (a dict). Return the time of a step of the
    *asynchronous* loop on the same machine, in ns.

    The check compares with what three virtual machines measure, to 5 %. Their hosts are not equally fast.
    """,
    starter=_step_start,
    solutions=(_step_slower,),
    hints=(
        "While the GPU runs step N, the host settles step N-1 and prepares step N+1. Who waits for whom?",
        "If the host is done first it waits for the GPU; if the GPU is done first, it waits for the host.",
        "The host needs `sum(row.host_ns.values())` for a step, the GPU `row.busy_ns`; the slower one sets the pace.",
    ),
    judge=judge_step,
)


def _arrows_start(events, name, step):
    # 9.4: the names of the slices that this one waited for
    return {event["name"] for event in events if event["ph"] == "f"}


def _arrows_by_id(events, name, step):
    slices = [event for event in events if event["ph"] == "X" and event["cat"] != "phase"]
    (mine,) = [it for it in slices if it["name"] == name and it["args"].get("step") == step]

    def inside(end, it):
        return end["tid"] == it["tid"] and it["ts"] <= end["ts"] < it["ts"] + it["dur"]

    arriving = {event["id"] for event in events if event["ph"] == "f" and inside(event, mine)}
    begins = [event for event in events if event["ph"] == "s" and event["id"] in arriving]
    return {it["name"] for end in begins for it in slices if inside(end, it)}


arrows_into = Exercise(
    number="9.4",
    name="arrows_into",
    title="Follow the arrows",
    task="""
    `events` are the events of a trace file. Return the names of the slices from which an arrow leads to the slice
    `name` of step `step`: what it could not start before.

    A slice is an event with `"ph": "X"` (leave out those with `"cat": "phase"`); its step is in `args`. An arrow is two
    events with the same `id`: `"ph": "s"` where it begins and `"ph": "f"` where it arrives. Each lies in the slice of
    its `tid` that is open at its `ts`.
    """,
    starter=_arrows_start,
    solutions=(_arrows_by_id,),
    hints=(
        "Three steps: find the slice; find the `f` events in it, which gives ids; find the slices that hold the `s` "
        "events with these ids.",
        "A point lies in a slice if their tids are equal and `ts <= point < ts + dur`. The end belongs to the next "
        "slice, which may begin there.",
        "`arriving = {event['id'] for event in events if event['ph'] == 'f' and inside(event, mine)}`, and the same "
        "test the other way for the events with `'ph': 's'`.",
    ),
    judge=judge_arrows,
)


def _calls_start(profile):
    # 9.5: operations on the compute lane per call that issued some, by the call's name
    return {}


def _calls_counted(profile):
    from collections import Counter

    spans = {span.id: span for span in profile.spans}
    calls = [edge.before for edge in profile.edges if edge.kind == "issue" and spans[edge.after].lane == "compute"]
    operations = Counter(spans[call].name for call in calls)
    different = Counter(spans[call].name for call in set(calls))
    return {name: operations[name] / different[name] for name in operations}


kernels_per_call = Exercise(
    number="9.5",
    name="kernels_per_call",
    title="How many kernels does a call start?",
    task="""
    For every kind of call that issued work for the compute lane, return how many operations one such call issued, on
    average: a dict from the call's name to a number.

    `profile.spans` have an `id`, a `name` and a `lane`; `profile.edges` lead from a call (`edge.before`, an id) to an
    operation on the device (`edge.after`); those of `edge.kind == "issue"` mean "this call issued that operation". The
    check uses the recorded profile and a run of the engine without graphs.
    """,
    starter=_calls_start,
    solutions=(_calls_counted,),
    hints=(
        "Look up both ends of every edge by id, and keep the edges whose operation is on the compute lane.",
        "Count two things for each name: how many edges come from calls of that name, and from how many different "
        "calls they come.",
        "A list of `edge.before` over these edges has every call as often as it issued something; a `Counter` of the "
        "names over the list, and one over `set` of it, are the two counts.",
    ),
    judge=judge_calls,
)
