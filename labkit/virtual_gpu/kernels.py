"""How operations on tensors become kernels: which stream, which bytes, and what the result looks like."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import torch

from labkit.device.api import Work
from labkit.errors import InvalidArgument
from labkit.virtual_gpu.reading import Reading
from labkit.virtual_gpu.streams import Stream, check_handle

if TYPE_CHECKING:
    from labkit.virtual_gpu.gpu import VirtualGPU


_OVERWRITES = frozenset({"fill", "normal"})  # in-place operations that do not read their target


class Kernels:
    """Launches for a ``VirtualGPU``."""

    def __init__(self, gpu: VirtualGPU) -> None:
        ns_of(gpu.op_us, "op_us")
        self._gpu = gpu

    def launch(
        self,
        name: str,
        us: float,
        reads: Sequence[Reading],
        writes: Sequence[Reading],
        fn: Callable[..., Any] | None,
        fraction: float = 1.0,
        stream: Stream | None = None,
    ) -> Any:
        """One kernel. ``fn`` gets the plain tensors, those read first; it runs when the kernel ends."""
        duration = ns_of(us)
        if not isinstance(fraction, Real) or not 0 < fraction <= 1:
            raise InvalidArgument("fraction", fraction, "a part of the GPU, above 0 and at most 1")
        if stream is not None:
            check_handle(self._gpu, stream, Stream, "stream")
        for tensor in (*reads, *writes):
            check_tensor(self._gpu, tensor)
            if tensor.storage.buffer.place == "pageable":
                raise InvalidArgument("tensor", tensor.name, "a kernel touches device or pinned memory")
        stream = stream or self._gpu.current_stream()
        plain = [tensor.data for tensor in (*reads, *writes)]
        return self._gpu.device.launch(
            (lambda: fn(*plain)) if fn is not None else None,
            stream.inner,
            reads=[tensor.access for tensor in reads],
            writes=[tensor.access for tensor in writes],
            work=Work("fixed", fixed_ns=duration, fraction=fraction),
            label=name,
        )

    def in_place(self, name: str, target: Reading, fn: Callable[..., Any], others: Sequence[Any]) -> None:
        """``fn(target, *others)`` changes the target."""
        if not target.is_cuda:
            with target.part() as part, self._gpu.device.host_write(part) as data:
                fn(data, *(_host(other, name) for other in others))
            return
        tensors = [other for other in others if isinstance(other, Reading)]
        reads = tensors if name in _OVERWRITES else [target, *tensors]
        values = [_plain(value) for value in (target, *others)]
        if others:  # a wrong shape or type is an error of this call, not of a wait to come
            numbers = all(isinstance(value, Real) for value in others)
            fn(values[0].new_zeros(() if numbers else target.shape), *map(_zeros, values[1:]))
        self.launch(name, self._gpu.op_us, reads, [target], lambda *_: fn(*values))

    def new(
        self, name: str, fn: Callable[..., torch.Tensor], inputs: Sequence[Any], like: torch.Tensor | None = None
    ) -> Any:
        """``fn(*inputs)`` as a new tensor, beside the first input. Its shape is found by trying ``fn`` on zeros."""
        first = inputs[0]
        if not first.is_cuda:
            return self._gpu.tensor(fn(*(_host(value, name) for value in inputs)))
        values = [_plain(value) for value in inputs]
        like = fn(*map(_zeros, values)) if like is None else like
        result = self._gpu.empty(*like.shape, dtype=like.dtype, device=first.device)
        reads = [value for value in inputs if isinstance(value, Reading)]
        out = result.data
        self.launch(name, self._gpu.op_us, reads, [result], lambda *_: out.copy_(fn(*values)))
        return result

    def sized_by_data(self, name: str, fn: Callable[..., torch.Tensor], inputs: Sequence[Any]) -> Any:
        """The same where only the values say how large the result is: a kernel counts, the host waits for the count."""
        first, values = inputs[0], [_plain(value) for value in inputs]
        if not first.is_cuda:
            return self.new(name, fn, inputs)
        self._gpu.copies.about_to_wait(name)
        count = self._gpu.empty(1, dtype=torch.int64, device=first.device)
        reads, out = [value for value in inputs if isinstance(value, Reading)], count.data
        self.launch(f"{name} count", self._gpu.op_us, reads, [count], lambda *_: out.fill_(len(fn(*values))))
        self._gpu.copies.fetch(count, name)
        return self.new(name, fn, inputs, like=fn(*values))


def ns_of(us: float, name: str = "us") -> int:
    """Microseconds as ns. ``name``: of the argument.

    Raises:
        InvalidArgument: no number, or one that no clock could pass.
    """
    if not isinstance(us, Real) or not math.isfinite(us) or not 0 <= us <= 1e12:
        raise InvalidArgument(name, us, "microseconds, from 0 to 1e12")
    return round(us * 1000)


def check_tensor(gpu: VirtualGPU, tensor: object) -> None:
    """Raises InvalidArgument for what is no tensor of this machine."""
    if not isinstance(tensor, Reading):
        raise InvalidArgument("tensor", tensor, "a tensor that this VirtualGPU made")
    if tensor.gpu is not gpu:
        raise InvalidArgument(
            "tensor", tensor.name, "made by this VirtualGPU; it is of another, perhaps an earlier one"
        )


def _plain(value: Any) -> Any:
    return value.data if isinstance(value, Reading) else value


def _host(value: Any, what: str) -> Any:
    return value.fetch(what) if isinstance(value, Reading) else value


def _zeros(value: Any) -> Any:
    """No bytes for a large shape; and no meta tensors, whose first use imports for seconds."""
    return value.new_zeros(()).expand(value.shape) if isinstance(value, torch.Tensor) else value
