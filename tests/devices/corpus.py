"""Synchronisation bugs that were made in real programs, each as a small program before and after its fix.

Every entry must be reported before and be clean after (``test_corpus.py``). ``benchmarks/sanitizer_table.py`` shows
what PyTorch's own CUDA sanitizer finds in the same programs.

What each real bug was is taken from its discussion; the programs here are ours, and as small as the bug permits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.devices.program import Virtual


@dataclass(frozen=True)
class Bug:
    """``run(dev, fixed)`` is the program. ``found_as`` is what the checker calls it: a kind of race, or of notice."""

    name: str
    source: str
    what: str
    fix: str
    found_as: str
    run: Callable[[Virtual, bool], None]


BUGS: list[Bug] = []


def bug(name: str, source: str, what: str, fix: str, found_as: str) -> Callable[[Any], Any]:
    """Register a program."""

    def add(run: Callable[[Virtual, bool], None]) -> Callable[[Virtual, bool], None]:
        BUGS.append(Bug(name, source, what, fix, found_as, run))
        return run

    return add


# -- the host and its pinned buffers ---------------------------------------------------------------------------------


@bug(
    "reused inputs",
    "vLLM PR 24527",
    "step 2 fills the pinned inputs while step 1's upload may still read them",
    "an event after the upload; wait for it before the inputs are filled again",
    "write after read",
)
def reused_inputs(dev: Virtual, fixed: bool) -> None:
    s, uploaded = dev.Stream(), dev.Event()
    h, x = dev.tensor_of(10, "pinned", 0), dev.tensor_of(10, "device", 0)
    for step in range(2):
        if fixed:
            uploaded.synchronize()
        h.fill_(step)
        dev.copy(x, h, s)
        uploaded.record(s)
        dev.kernel(30, s, reads=[x], name="forward")


@bug(
    "event covers too little",
    "vLLM PR 25279",
    "the event is recorded after the first upload; the second reused buffer is uploaded later",
    "record after the last upload",
    "write after read",
)
def event_covers_too_little(dev: Virtual, fixed: bool) -> None:
    s, uploaded = dev.Stream(), dev.Event()
    inputs, sampling = dev.tensor_of(10, "pinned", 0), dev.tensor_of(10, "pinned", 0)
    x, y = dev.tensor_of(10, "device", 0), dev.tensor_of(10, "device", 0)
    for step in range(2):
        uploaded.synchronize()
        inputs.fill_(step)
        sampling.fill_(step)
        dev.copy(x, inputs, s)
        if not fixed:
            uploaded.record(s)
        dev.copy(y, sampling, s)
        if fixed:
            uploaded.record(s)
        dev.kernel(30, s, reads=[x, y], name="forward")


@bug(
    "early read",
    "vLLM PR 36013, issue 36942",
    "the host reads the download's target before it waits for the event",
    "wait first",
    "read after write",
)
def early_read(dev: Virtual, fixed: bool) -> None:
    s, downloaded = dev.Stream(), dev.Event()
    x, h = dev.tensor_of(10, "device", 0), dev.tensor_of(10, "pinned", 0)
    dev.fill(x, 8, 30, s, name="forward")
    dev.copy(h, x, s)
    downloaded.record(s)
    if fixed:
        downloaded.synchronize()
    h.tolist()
    downloaded.synchronize()


@bug(
    "one buffer",
    "vLLM PR 31841",
    "one pinned mask for all steps, filled for step N+1 while step N's upload is pending",
    "two buffers in turn; the host has waited for step N-1 before it fills N+1",
    "write after read",
)
def one_buffer(dev: Virtual, fixed: bool) -> None:
    s, done = dev.Stream(), [dev.Event(), dev.Event()]
    masks, x = [dev.tensor_of(10, "pinned", 0) for _ in range(2)], dev.tensor_of(10, "device", 0)
    for step in range(4):
        done[step % 2].synchronize()  # the result of step - 2
        mask = masks[step % 2 if fixed else 0]
        mask.fill_(step)
        dev.copy(x, mask, s)
        dev.kernel(30, s, reads=[x], name="forward")
        done[step % 2].record(s)


@bug(
    "reused download",
    "vLLM PR 29288",
    "step 2's draft tokens are downloaded into the buffer from which the host still reads step 1's",
    "read before the next download is enqueued",
    "read after write",
)
def reused_download(dev: Virtual, fixed: bool) -> None:
    s, downloaded = dev.Stream(), dev.Event()
    x, h = dev.tensor_of(10, "device", 0), dev.tensor_of(10, "pinned", 0)
    for step in range(2):
        dev.fill(x, step, 30, s, name="draft")
        dev.copy(h, x, s)
        if step == 0:
            downloaded.record(s)
            if fixed:
                downloaded.synchronize()
                h.tolist()
    downloaded.synchronize()
    if not fixed:
        h.tolist()


@bug(
    "guard missing in a second path",
    "vLLM PR 54269",
    "the guarded buffer is also filled by a dummy run, which does not wait",
    "the same wait there",
    "write after read",
)
def guard_missing_in_a_second_path(dev: Virtual, fixed: bool) -> None:
    s, uploaded = dev.Stream(), dev.Event()
    h, x = dev.tensor_of(10, "pinned", 0), dev.tensor_of(10, "device", 0)

    def step(value: float, guarded: bool) -> None:
        if guarded:
            uploaded.synchronize()
        h.fill_(value)
        dev.copy(x, h, s)
        uploaded.record(s)

    step(1, guarded=True)
    step(2, guarded=True)
    step(0, guarded=fixed)


@bug(
    "reused ids of a zeroing kernel",
    "vLLM PR 48085",
    "block ids are written into one pinned buffer for every call; an earlier upload of it may be pending",
    "a fresh pinned tensor for every call: the host allocator does not hand it out again too early",
    "write after read",
)
def reused_ids(dev: Virtual, fixed: bool) -> None:
    s = dev.Stream()
    ids, on_device = dev.tensor_of(1, "pinned", 0), dev.tensor_of(1, "device", 0)
    dev.kernel(100, s, name="forward")
    for call in range(2):
        if fixed:
            ids = dev.tensor_of(1, "pinned", 0)
        ids.fill_(call)
        dev.copy(on_device, ids, s)
        dev.kernel(5, s, reads=[on_device], name="zero blocks")


@bug(
    "one event for two steps",
    "vLLM issue 53960",
    "the event is recorded again for step 2, on another stream, before the host has waited for step 1",
    "an event for each step in flight",
    "read after write",
)
def one_event_for_two_steps(dev: Virtual, fixed: bool) -> None:
    streams, events = [dev.Stream(), dev.Stream()], [dev.Event(), dev.Event()]
    xs = [dev.tensor_of(10, "device", 0) for _ in range(2)]
    hs = [dev.tensor_of(10, "pinned", 0) for _ in range(2)]
    for step in range(2):
        dev.fill(xs[step], 8, 30, streams[step], name="forward")
        dev.copy(hs[step], xs[step], streams[step])
        events[step if fixed else 0].record(streams[step])
    events[0].synchronize()
    hs[0].tolist()


@bug(
    "non_blocking download read at once",
    "PyTorch pin-memory tutorial",
    "x.to('cpu', non_blocking=True) does not wait: its result is pinned",
    "wait for an event before reading",
    "read after write",
)
def download_read_at_once(dev: Virtual, fixed: bool) -> None:
    x = dev.tensor_of(10, "device", 0)
    dev.fill(x, 8, 30, name="forward")
    h = x.to("cpu", non_blocking=True)
    if fixed:
        dev.current_stream().synchronize()
    h.tolist()


# -- streams and device memory ---------------------------------------------------------------------------------------


@bug(
    "weights buffer reused",
    "vLLM PR 32881",
    "the next layer's weights are uploaded into the buffer that compute still reads",
    "the copy stream waits for compute",
    "write after read",
)
def weights_buffer_reused(dev: Virtual, fixed: bool) -> None:
    copies, compute = dev.Stream(), dev.Stream()
    weights, buffer = [dev.tensor_of(10, "pinned", n) for n in range(2)], dev.tensor_of(10, "device", 0)
    for layer in range(2):
        if fixed:
            copies.wait_stream(compute)
        dev.copy(buffer, weights[layer], copies)
        compute.wait_stream(copies)
        dev.kernel(30, compute, reads=[buffer], name=f"layer {layer}")


@bug(
    "offload before compute is done",
    "vLLM PR 31341",
    "KV blocks are downloaded on a copy stream that does not wait for the kernel that writes them",
    "the copy stream waits for compute",
    "read after write",
)
def offload_too_early(dev: Virtual, fixed: bool) -> None:
    copies, compute = dev.Stream(), dev.Stream()
    kv, h = dev.tensor_of(10, "device", 0), dev.tensor_of(10, "pinned", 0)
    dev.fill(kv, 8, 30, compute, name="forward")
    if fixed:
        copies.wait_stream(compute)
    dev.copy(h, kv, copies)


@bug(
    "sum before normal_",
    "PyTorch notes/cuda, CUDA streams",
    "A is filled on the default stream and summed on a side stream",
    "s.wait_stream(default_stream)",
    "read after write",
)
def sum_before_normal(dev: Virtual, fixed: bool) -> None:
    s = dev.Stream()
    a = dev.empty(100, 100, device="cuda").normal_(0.0, 1.0)
    if fixed:
        s.wait_stream(dev.default_stream())
    with dev.stream(s):
        a.sum()


@bug(
    "matmul and its input on two streams",
    "PyTorch issue 2702",
    "M is filled on the default stream; M -= M @ M on a new one",
    "the new stream waits for the default stream",
    "read after write",
)
def matmul_on_two_streams(dev: Virtual, fixed: bool) -> None:
    s, m = dev.Stream(), dev.empty(4, 4, device="cuda")
    m.fill_(0.1)
    if fixed:
        s.wait_stream(dev.default_stream())
    with dev.stream(s):
        k = m @ m
        m.add_(k * -1)


@bug(
    "mul after rand",
    "PyTorch PR 83984",
    "a is made on the default stream and multiplied in place on a second one",
    "the second stream waits for the first",
    "write after write",
)
def mul_after_rand(dev: Virtual, fixed: bool) -> None:
    s = dev.Stream()
    a = dev.empty(4, 2, device="cuda").normal_()
    if fixed:
        s.wait_stream(dev.default_stream())
    with dev.stream(s):
        a.mul_(5)


@bug(
    "no record_stream",
    "PyTorch Tensor.record_stream",
    "x is freed while another stream reads it, and its memory is used again",
    "x.record_stream(t)",
    "write after read",
)
def no_record_stream(dev: Virtual, fixed: bool) -> None:
    s, t = dev.Stream(), dev.Stream()
    with dev.stream(s):
        x = dev.empty(1000, device="cuda").fill_(8)
    t.wait_stream(s)
    dev.kernel(100, t, reads=[x], name="reader")
    if fixed:
        x.record_stream(t)
    del x
    with dev.stream(s):
        dev.empty(1000, device="cuda").fill_(1)


# -- graphs ----------------------------------------------------------------------------------------------------------


@bug(
    "static input overwritten",
    "PyTorch notes/cuda, CUDA graphs",
    "the next input is uploaded on another stream while the replay reads the last one",
    "the copy stream waits for the replay",
    "write after read",
)
def static_input_overwritten(dev: Virtual, fixed: bool) -> None:
    s, t, g = dev.Stream(), dev.Stream(), dev.CUDAGraph()
    x, h = dev.tensor_of(10, "device", 0), dev.tensor_of(10, "pinned", 1)
    with dev.graph(g, stream=s):
        dev.kernel(30, reads=[x], name="forward")
    dev.copy(x, h, t)
    s.wait_stream(t)
    dev.replay(g, s)
    if fixed:
        t.wait_stream(s)
    dev.copy(x, h, t)


@bug(
    "graphs of one pool in another order",
    "PyTorch notes/cuda, sharing memory across captures",
    "g2's output lies where g1 has a temporary, and g1 is replayed before it is read",
    "read it first",
    "graph output clobbered",
)
def shared_pool_clobbered(dev: Virtual, fixed: bool) -> None:
    g1, g2 = dev.CUDAGraph(), dev.CUDAGraph()
    with dev.graph(g1):
        temporary = dev.empty(1000, device="cuda")
        dev.fill(temporary, 2, 10, name="temporary")
        del temporary
    with dev.graph(g2, pool=g1.pool()):
        out = dev.empty(1000, device="cuda")
        dev.fill(out, 9, 10, name="out")
    g2.replay()
    if fixed:
        dev.kernel(1, reads=[out], name="consumer")
    g1.replay()
    if not fixed:
        dev.kernel(1, reads=[out], name="consumer")
