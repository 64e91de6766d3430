"""The ten defects of lesson 10, each one broken part. Who solves the cases reads this file last."""

from __future__ import annotations

from dataclasses import dataclass, field

from labkit.engine.ordering import Streams
from labkit.engine.request import Request
from labkit.engine.slots import Slot
from labkit.lessons.support.parts import Part
from labkit.sizes import Sizes


@dataclass(frozen=True)
class Defect:
    """One sabotage.

    ticket   what somebody who uses the engine says
    broken   the part, by name
    verdict  what it was, once it is found
    """

    title: str
    ticket: str
    verdict: str
    broken: dict[str, Part] = field(default_factory=dict)


def _nothing(streams: Streams, slot: Slot) -> None:
    """Neither records nor waits."""


def _record_and_wait(streams: Streams, slot: Slot) -> None:
    streams.compute.wait_event(slot.h2d_done)
    slot.compute_done.record(streams.compute)


def _wait_for_the_other(streams: Streams, slot: Slot) -> None:
    streams.d2h.wait_event(slot.previous.compute_done)


def _one_input_buffer(what: str, slot: str) -> str:
    return "A" if what == "inputs_host" else slot


def _same_row(request: Request, row: int) -> int:
    return row


def _greedy_or_not(slot: str, rows: int, random: bool, logprobs: bool) -> object:
    return slot, rows, logprobs


def _leave_padding(sizes: Sizes, row: int) -> int | None:
    return None


def _wait_on_the_host(streams: Streams, slot: Slot) -> None:
    slot.compute_done.synchronize()


def _one_download_event(what: str, slot: str) -> str:
    return "A" if what == "d2h_done" else slot


def _pageable_outputs(what: str) -> str:
    return "pageable" if what == "outputs_host" else "pinned"


WORKED = Defect(
    "The worked case",
    "All tokens are right. A colleague ran the race checker and got a report nobody understands.",
    "The kernels did not wait for the upload.",
    {"before_compute": _nothing},
)

DEFECTS: tuple[Defect, ...] = (
    Defect(
        "Garbage from the first token",
        "Nothing that this engine says makes sense, for any request.",
        "The host read the tokens without waiting for the download, so it got what the buffer held before.",
        {"before_read": _nothing},
    ),
    Defect(
        "The event is there",
        "The download waits for compute_done, I checked. It still copies the tokens before they are sampled.",
        "compute_done was recorded before the kernels were enqueued. A record captures what its stream holds at that "
        "moment, so the download waited for the step before.",
        {"before_compute": _record_and_wait, "computed": _nothing},
    ),
    Defect(
        "Old news",
        "What arrives are real tokens. They are two steps old.",
        "The download waited for the other slot's kernels, which had long run: it copied what this slot's kernels had "
        "sampled two steps before.",
        {"before_download": _wait_for_the_other},
    ),
    Defect(
        "All tests are green",
        "Right tokens, full speed, here and on every machine we have. One customer with a slow link sees garbage.",
        "Both slots uploaded from one pinned buffer, and nothing kept the host from writing the next step's inputs "
        "into it while the copy of the last ones was still to come.",
        {"buffer_owner": _one_input_buffer},
    ),
    Defect(
        "Fine until somebody leaves",
        "A request alone is right. With others around, some go wrong in the middle.",
        "The carry-over took the token from the row that the request has now. In the step before it may have had "
        "another: rows move up when a request ends.",
        {"carry_row": _same_row},
    ),
    Defect(
        "Only the creative ones",
        "Requests with temperature 0 are right. The others answer, fluently, and never vary.",
        "The graph's key did not say whether rows are random: a batch with a random row replayed a graph whose sampler "
        "was captured greedy.",
        {"graph_key": _greedy_or_not},
    ),
    Defect(
        "Out of the blue",
        "Some requests go wrong from some token on, when nothing seems to happen. Alone, each of them is right.",
        "Padding rows wrote where the row's last owner had written, two steps before: into the cache of a request that "
        "has moved to another row, and reads that entry again only later.",
        {"padding_place": _leave_padding},
    ),
    Defect(
        "Looking ahead, seeing nothing",
        "All tokens are right, and we turned asynchrony on. It is no faster than before.",
        "The host waited for the kernels before it enqueued the download. The stream should wait; the host has the "
        "next step to plan.",
        {"before_download": _wait_on_the_host},
    ),
    Defect(
        "One wait a step",
        "Right, no race, one host wait a step as in the book. Still the GPU idles in every step.",
        "Both slots used one d2h_done. When the host came to wait for step N, the event had been recorded again behind "
        "step N+1, so it waited for that one.",
        {"event_owner": _one_download_event},
    ),
    Defect(
        "The copy that waits",
        "Right, no race, no wait that does not belong there. As slow as the synchronous engine.",
        "The tokens were downloaded to pageable memory, and such a copy returns only when the data is there, whatever "
        "non_blocking says.",
        {"host_place": _pageable_outputs},
    ),
)
