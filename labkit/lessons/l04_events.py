"""Lesson 04: record, wait, synchronize."""

from __future__ import annotations

from labkit.lessons.exercise import Exercise
from labkit.lessons.support import event_judges
from labkit.lessons.support.event_programs import short_program, starts

__all__ = [
    "fewest_waits",
    "missing_edge",
    "short_program",
    "starts",
    "three_edges",
    "two_in_flight",
    "work_while_waiting",
]

# -- 4.1 ---------------------------------------------------------------------------------------------------------------


def _three_edges(play):
    # 4.1: add what orders the five lines below
    play.write(21)
    play.upload()
    play.double()
    play.download()
    return play.read()


def _with_three_edges(play):
    uploaded, doubled, downloaded = play.event("uploaded"), play.event("doubled"), play.event("downloaded")
    play.write(21)
    play.upload()
    uploaded.record(play.h2d)
    play.compute.wait_event(uploaded)
    play.double()
    doubled.record(play.compute)
    play.d2h.wait_event(doubled)
    play.download()
    downloaded.record(play.d2h)
    downloaded.synchronize()
    return play.read()


three_edges = Exercise(
    number="4.1",
    name="three_edges",
    title="Three edges",
    task="""
    `play` is a device with three streams, `play.h2d`, `play.compute` and `play.d2h`. `play.upload()` copies `x_host`
    to `x` on the first, `play.double()` runs `y = 2 * x` on the second, and `play.download()` copies `y` to `y_host` on
    the third. Nothing orders them. Make events with `play.event("name")` and add what is missing, so that the host
    reads 42. Let the host wait once.
    """,
    starter=_three_edges,
    solutions=(_with_three_edges,),
    hints=(
        "Which operation writes the bytes that the next one reads? There are three such pairs; the last reader is the "
        "host.",
        "An event is recorded on the stream of the writer, after it: `uploaded.record(play.h2d)`. The stream of the "
        "reader waits for it, before the reader is enqueued: `play.compute.wait_event(uploaded)`.",
        "The host waits with `downloaded.synchronize()`; `uploaded`, `doubled` and `downloaded` are three events.",
    ),
    judge=event_judges.three_edges,
)

# -- 4.2 ---------------------------------------------------------------------------------------------------------------


def _two_in_flight(play, first, second):
    # 4.2: the host should have the first result while the second step still runs
    done = play.event("done")
    play.run(first)
    done.record(play.d2h)
    play.run(second)
    done.record(play.d2h)
    done.synchronize()
    one = play.read(first.y_host)
    done.synchronize()
    return one, play.read(second.y_host)


def _with_two_events(play, first, second):
    first_done, second_done = play.event("first_done"), play.event("second_done")
    play.run(first)
    first_done.record(play.d2h)
    play.run(second)
    second_done.record(play.d2h)
    first_done.synchronize()
    one = play.read(first.y_host)
    second_done.synchronize()
    return one, play.read(second.y_host)


two_in_flight = Exercise(
    number="4.2",
    name="two_in_flight",
    title="Two steps in flight",
    task="""
    `play.run(step)` enqueues a whole step (upload, kernel, download, and the waits between its streams) and returns at
    once. Below, two steps are put in flight and the host reads both results. The values are right, and the host gets
    the first one far too late. Change that: both steps are enqueued before the host waits for anything, and the host
    waits for the first one alone before it reads its result.
    """,
    starter=_two_in_flight,
    solutions=(_with_two_events,),
    hints=(
        "How many records has `done` had when the host first waits for it, and which of them counts?",
        "`synchronize` looks at the latest record. The record that the first result needs must not be overwritten "
        "before the host has waited for it.",
        "Two events: `first_done` is recorded after `play.run(first)`, `second_done` after `play.run(second)`.",
    ),
    judge=event_judges.two_in_flight,
)

# -- 4.3 ---------------------------------------------------------------------------------------------------------------


def _work_while_waiting(landed, work, read):
    # 4.3: work while the GPU does
    landed.synchronize()
    return read()


def _with_queries(landed, work, read):
    while not landed.query():
        work()
    return read()


work_while_waiting = Exercise(
    number="4.3",
    name="work_while_waiting",
    title="Work while you wait",
    task="""
    An upload, a kernel and a download are in flight, and the event `landed` is recorded after the download. `work()`
    does one piece of the host's own work (10 us), `read()` reads the result. Let the host work for as long as the
    result is not there, and read it then. No `synchronize`.
    """,
    starter=_work_while_waiting,
    solutions=(_with_queries,),
    hints=(
        "There is a call that asks whether an event is reached, and does not wait.",
        "`landed.query()` is False until everything in front of the record is done. Ask, work, ask again.",
        "`while not landed.query(): work()`, and then `return read()`.",
    ),
    judge=event_judges.work_while_waiting,
)

# -- 4.4 ---------------------------------------------------------------------------------------------------------------


def _missing_edge(moment, slot, streams):
    # 4.4: one line stands at the wrong moment, and one names the wrong event
    if moment == "uploaded":
        slot.h2d_done.record(streams.h2d)
    if moment == "before_compute":
        streams.compute.wait_event(slot.h2d_done)
        slot.compute_done.record(streams.compute)
    if moment == "before_download":
        streams.d2h.wait_event(slot.compute_done)
    if moment == "downloaded":
        slot.d2h_done.record(streams.d2h)
    if moment == "before_read":
        slot.compute_done.synchronize()


def _with_all_edges(moment, slot, streams):
    if moment == "uploaded":
        slot.h2d_done.record(streams.h2d)
    if moment == "before_compute":
        streams.compute.wait_event(slot.h2d_done)
    if moment == "computed":
        slot.compute_done.record(streams.compute)
    if moment == "before_download":
        streams.d2h.wait_event(slot.compute_done)
    if moment == "downloaded":
        slot.d2h_done.record(streams.d2h)
    if moment == "before_read":
        slot.d2h_done.synchronize()


missing_edge = Exercise(
    number="4.4",
    name="missing_edge",
    title="The order of the engine",
    task="""
    The engine asks your function for order at six moments of every step: `"uploaded"`, `"before_compute"`,
    `"computed"`, `"before_download"`, `"downloaded"` and `"before_read"` (the host is about to read the tokens). `slot`
    has the events `h2d_done`, `compute_done` and `d2h_done`; `streams` has `h2d`, `compute` and `d2h`. The code below
    has two mistakes. Mend it: the tokens of rung 0, no race, and one wait of the host in a step.
    """,
    starter=_missing_edge,
    solutions=(_with_all_edges,),
    hints=(
        "Follow one event at a time: where is it recorded, what is in front of that record in its stream, and who "
        "waits for it?",
        "A record captures what is in the stream at the call. At `before_compute` the kernels of this step are not in "
        "it yet. And which event says that the tokens are in host memory?",
        "Record `compute_done` at the moment `computed`, and let the host wait for `d2h_done`.",
    ),
    judge=event_judges.missing_edge,
)

# -- 4.5 ---------------------------------------------------------------------------------------------------------------


def _fewest_waits(play):
    # 4.5: take out every wait that orders nothing new
    loaded, doubled, tripled, added, landed = (
        play.event(name) for name in ("loaded", "doubled", "tripled", "added", "landed")
    )
    play.write(21)
    play.upload()
    loaded.record(play.h2d)
    loaded.synchronize()
    play.compute.wait_event(loaded)
    play.double()
    doubled.record(play.compute)
    play.side.wait_event(loaded)
    play.side.wait_event(doubled)
    play.triple()
    tripled.record(play.side)
    play.compute.wait_event(tripled)
    play.add()
    added.record(play.compute)
    play.d2h.wait_event(tripled)
    play.d2h.wait_event(added)
    play.download()
    landed.record(play.d2h)
    landed.synchronize()
    return play.read()


def _with_five_waits(play):
    loaded, tripled, added, landed = (play.event(name) for name in ("loaded", "tripled", "added", "landed"))
    play.write(21)
    play.upload()
    loaded.record(play.h2d)
    play.compute.wait_event(loaded)
    play.double()
    play.side.wait_event(loaded)
    play.triple()
    tripled.record(play.side)
    play.compute.wait_event(tripled)
    play.add()
    added.record(play.compute)
    play.d2h.wait_event(added)
    play.download()
    landed.record(play.d2h)
    landed.synchronize()
    return play.read()


fewest_waits = Exercise(
    number="4.5",
    name="fewest_waits",
    title="Waits you can do without",
    task="""
    Two kernels both read `x`: `play.double()` on `compute` (`y = 2 * x`) and `play.triple()` on a fourth stream,
    `play.side` (`z = 3 * x`). Each fills half of the GPU. `play.add()` on `compute` adds the two (`y = y + z`). Someone
    put in every wait that came to mind. Take out all that order nothing new; where one of two has to stay, keep the one
    that lets more run at once. A record for which nobody waits any more costs a call, and can go too.
    `lesson.fewest_waits.score(fewest_waits, device)` says how long your version takes.
    """,
    starter=_fewest_waits,
    solutions=(_with_five_waits,),
    hints=(
        "A wait is needed if without it some pair of accesses to the same bytes has no order. Leave one out and look.",
        "Order is passed on: whoever waits for `added` also waits for everything that the add kernel waited for.",
        "Five waits are enough: `compute` for `loaded`, `side` for `loaded`, `compute` for `tripled`, `d2h` for "
        "`added`, and the host for `landed`. Nobody waits for `doubled` then, so its record can go too.",
    ),
    judge=event_judges.fewest_waits,
    measure=event_judges.diamond_us,
    unit="us",
)
