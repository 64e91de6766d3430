"""Lesson 03: streams, copies, and the failed attempt."""

from __future__ import annotations

from labkit.lessons.exercise import Exercise
from labkit.lessons.support import stream_judges
from labkit.lessons.support.stream_programs import InChunks, second_waits, stream_of, two_kernels

__all__ = [
    "InChunks",
    "bring_back",
    "must_wait",
    "pipeline",
    "second_waits",
    "stream_of",
    "two_kernels",
    "wait_before",
]

# -- 3.1 ---------------------------------------------------------------------------------------------------------------


def _must_wait(first, second):
    # 3.1: this is the short rule that is often given. Make it true
    return first == "default" or second == "default"


def _as_measured(first, second):
    if first == second:
        return first in ("default", "per_thread")  # one queue
    return "default" in (first, second) and "torch" not in (first, second)


must_wait = Exercise(
    number="3.1",
    name="must_wait",
    title="Who waits for whom",
    task="""
    Kernel A is launched into a stream of kind `first`, then kernel B into one of kind `second`; together they would fit
    on the GPU. Return True if B must wait for A, False if not. There are four kinds: `"default"` (the default stream),
    `"torch"` (a `torch.cuda.Stream()`), `"blocking"` (made by plain `cudaStreamCreate`) and `"per_thread"` (the
    thread's own default stream, which is a blocking one). Of default and per-thread streams a thread has one each; of
    the others `first` and `second` are two different streams. Your answer is compared with a virtual GPU, for all 16
    pairs.
    """,
    starter=_must_wait,
    solutions=(_as_measured,),
    hints=(
        "Two questions: is it the same stream (then it is one queue), and if not, does the default stream stand "
        "between the two?",
        "The default stream and the *blocking* streams wait for each other, in both directions. Streams made by "
        "PyTorch are not blocking. Two blocking streams do not wait for one another.",
        "True for: default and default, per_thread and per_thread (the same queue), and for default with blocking or "
        "per_thread, either way round. False for all others.",
    ),
    judge=stream_judges.must_wait,
)

# -- 3.2 ---------------------------------------------------------------------------------------------------------------


def _bring_back(play, work, pageable, pinned):
    # 3.2: the host should work while the GPU does
    play.download(pageable, play.y, play.compute)
    work()
    return play.read(pageable)


def _through_pinned_memory(play, work, pageable, pinned):
    play.download(pinned, play.y, play.compute)
    work()
    play.compute.synchronize()
    return play.read(pinned)


bring_back = Exercise(
    number="3.2",
    name="bring_back",
    title="Bring a result back",
    task="""
    `play` is a device of its own with streams and buffers. A kernel that writes `play.y` is running on `play.compute`.
    `play.download(dst, src, stream)` enqueues a non-blocking copy to the host; `pageable` and `pinned` are two host
    buffers to copy to. `work()` is 50 us of the host's own work. Let the host do that work while kernel and copy run,
    and then return what was copied, `play.read(...)`. A stream has `stream.synchronize()`.
    """,
    starter=_bring_back,
    solutions=(_through_pinned_memory,),
    hints=(
        "A non-blocking copy to pageable memory returns only when the data is there.",
        "A copy to pinned memory returns at once. Then nothing has told the host when the data is there.",
        "Download to `pinned` on `play.compute`, call `work()`, then `play.compute.synchronize()`, then read `pinned`.",
    ),
    judge=stream_judges.bring_back,
)

# -- 3.3 ---------------------------------------------------------------------------------------------------------------


def _pipeline(play, chunks, streams):
    # 3.3: right, and one after the other. Let the chunks overlap
    for chunk in chunks:
        play.upload(chunk.x, chunk.x_host, streams[0])
        play.double(chunk.y, chunk.x, streams[0])
        play.download(chunk.y_host, chunk.y, streams[0])
    streams[0].synchronize()
    return [play.read(chunk.y_host) for chunk in chunks]


def _a_stream_for_each(play, chunks, streams):
    for chunk, stream in zip(chunks, streams, strict=True):
        play.upload(chunk.x, chunk.x_host, stream)
        play.double(chunk.y, chunk.x, stream)
        play.download(chunk.y_host, chunk.y, stream)
    for stream in streams:
        stream.synchronize()
    return [play.read(chunk.y_host) for chunk in chunks]


pipeline = Exercise(
    number="3.3",
    name="pipeline",
    title="Overlap with streams alone",
    task="""
    Four chunks of data, each with its own buffers: upload it, double it, download it. Below, all of them are in one
    stream. There are four: `streams`. Let the chunks overlap, and keep the results right. No event is needed, and the
    host waits only when everything is enqueued. `lesson.pipeline.score(pipeline, device)` says how long it takes.
    """,
    starter=_pipeline,
    solutions=(_a_stream_for_each,),
    hints=(
        "What has to stay in order: the three operations of one chunk, or the four uploads?",
        "A stream keeps its own order for nothing. Operations that depend on each other can go to one stream, and "
        "those that do not to different ones.",
        "Give each chunk a stream: `for chunk, stream in zip(chunks, streams)`. At the end synchronise all four "
        "streams.",
    ),
    judge=stream_judges.pipeline,
    measure=stream_judges.pipeline_us,
    unit="us",
)

# -- 3.4 ---------------------------------------------------------------------------------------------------------------


def _wait_before(moment, streams):
    # 3.4: let the host wait where it has to
    if moment == "before_read":
        streams.d2h.synchronize()


def _wait_for_the_stream_before(moment, streams):
    if moment == "before_compute":
        streams.h2d.synchronize()
    if moment == "before_download":
        streams.compute.synchronize()
    if moment == "before_read":
        streams.d2h.synchronize()


wait_before = Exercise(
    number="3.4",
    name="wait_before",
    title="Right again, by waiting",
    task="""
    The engine of rung 1 calls your function at three moments of every step: `"before_compute"` (the kernels are about
    to be launched), `"before_download"` (the copy of the tokens is about to be enqueued) and `"before_read"` (the host
    is about to read them). Make it right with nothing but waits of the host: `streams.h2d`, `streams.compute` and
    `streams.d2h` each have `synchronize()`. At most three waits in a step.
    """,
    starter=_wait_before,
    solutions=(_wait_for_the_stream_before,),
    hints=(
        "At each of the three moments something must be done that was enqueued just before. In which stream is it?",
        "The kernels read what the upload writes, the download reads what the kernels write, the host reads what the "
        "download writes.",
        "`before_compute`: wait for `streams.h2d`. `before_download`: wait for `streams.compute`. `before_read`: wait "
        "for `streams.d2h`.",
    ),
    judge=stream_judges.host_waits_only,
    measure=stream_judges.step_ms,
    unit="ms a step",
)
