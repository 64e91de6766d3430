"""CUDA graphs under torch.cuda's names: capture, replay, and the pool their tensors live in (46 to 60)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from labkit.device import api
from labkit.device.virtual.allocator import GraphPool
from labkit.errors import CaptureError, DeviceError
from labkit.virtual_gpu.streams import Stream

if TYPE_CHECKING:
    from labkit.virtual_gpu.gpu import VirtualGPU


class CUDAGraph:
    """A graph. Made by ``VirtualGPU.CUDAGraph``; captured with ``with gpu.graph(g):``."""

    def __init__(self, gpu: VirtualGPU, name: str) -> None:
        self._gpu, self.name = gpu, name
        self._inner: api.Graph | None = None
        self._pool: GraphPool | None = None
        self._under_way: tuple[ExitStack, Stream] | None = None

    def capture_begin(self, pool: GraphPool | None = None, capture_error_mode: str = "global") -> None:
        """Begin a capture on the current stream. Does not wait; ``VirtualGPU.graph`` does.

        Raises:
            DeviceError: this graph was captured before. CaptureError: the default stream, or a second capture.
        """
        self._begin(pool, capture_error_mode, synchronize=False)

    def _begin(self, pool: GraphPool | None, mode: str, *, synchronize: bool) -> None:
        if self._inner is not None:
            raise DeviceError("this CUDAGraph already owns a graph: make a new one, or reset() it")
        stream, stack = self._gpu.current_stream(), ExitStack()
        capture = self._gpu.device.capture(self.name, stream.inner, mode=mode, synchronize=synchronize)
        self._inner = stack.enter_context(capture)
        self._pool = self._gpu.capture_pool = pool or GraphPool()
        self._under_way = (stack, stream)

    def capture_end(self) -> None:
        """End the capture; on the stream and, unless relaxed, in the thread it began in.

        Raises:
            CaptureError: what went wrong; no graph exists then. 908 leaves the capture as it is.
        """
        if self._under_way is None:
            raise DeviceError("no capture of this graph is under way")
        stack, stream = self._under_way
        if self._gpu.current_stream() != stream:
            raise CaptureError(None, "a capture ends on the stream it began on")
        self._gpu.machine.check_end(stream.inner)
        self._close(stack, None)

    def _close(self, stack: ExitStack, error: BaseException | None) -> None:
        """Leave the capture, with the exception that ended it if there is one."""
        pool, self._under_way, self._gpu.capture_pool = self._pool, None, None
        try:
            stack.__exit__(type(error) if error else None, error, error.__traceback__ if error else None)
            if error is None and pool is not None:
                pool.graphs += 1
        except BaseException:
            self._inner = self._pool = None
            raise
        if error is not None:
            self._inner = self._pool = None

    def replay(self) -> Any:
        """Launch the graph in the current stream. Contents of memory are read anew, host scalars are frozen (55)."""
        if self._inner is None:
            raise DeviceError("replay of a graph that was never captured")
        return self._gpu.device.replay(self._inner, self._gpu.current_stream().inner)

    def pool(self) -> GraphPool:
        """The pool this graph was captured into, to capture another into it too."""
        if self._pool is None:
            raise DeviceError("the graph was never captured")
        return self._pool

    def reset(self) -> None:
        """Forget the graph; its pool goes when no graph and no tensor uses it."""
        if self._inner is not None and self._pool is not None:
            self._pool.graphs -= 1
        self._inner = self._pool = None


@contextmanager
def capturing(
    gpu: VirtualGPU, graph: CUDAGraph, pool: GraphPool | None, stream: Stream | None, mode: str
) -> Iterator[None]:
    """``torch.cuda.graph``: waits for the device, empties the cache, and captures on a side stream (46)."""
    gpu.synchronize()
    gpu.empty_cache()
    with gpu.stream(stream or gpu.capture_stream()):
        graph._begin(pool, mode, synchronize=True)
        try:
            yield
        except BaseException as error:
            if graph._under_way is not None:
                graph._close(graph._under_way[0], error)
            raise
        graph.capture_end()
