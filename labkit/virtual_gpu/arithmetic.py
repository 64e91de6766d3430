"""Arithmetic on tensors: on a device each operation is one kernel in the current stream, on the host it is immediate.

Operations whose result has a size that depends on the data must know that size on the host, so they wait for the
current stream (37): ``nonzero``, ``unique``, ``masked_select``, indexing with a mask.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import torch

from labkit.virtual_gpu.reading import Reading


class Arithmetic(Reading):
    """Part of ``Tensor``."""

    # -- in place ----------------------------------------------------------------------------------------------------

    def fill_(self, value: float) -> Self:
        return self._in_place("fill", lambda x: x.fill_(value))

    def zero_(self) -> Self:
        return self.fill_(0)

    def add_(self, other: Any) -> Self:
        return self._in_place("add", lambda x, y: x.add_(y), other)

    def mul_(self, other: Any) -> Self:
        return self._in_place("mul", lambda x, y: x.mul_(y), other)

    def normal_(self, mean: float = 0.0, std: float = 1.0) -> Self:
        """Normal random numbers, the same in every run of the same program."""
        generator = self.gpu.next_generator()
        return self._in_place("normal", lambda x: x.normal_(mean, std, generator=generator))

    # -- new tensors -------------------------------------------------------------------------------------------------

    def clone(self) -> Self:
        return self._new("clone", lambda x: x.clone())

    def sum(self) -> Self:
        return self._new("sum", lambda x: x.sum())

    def __add__(self, other: Any) -> Self:
        return self._new("add", lambda x, y: x + y, other)

    def __sub__(self, other: Any) -> Self:
        return self._new("sub", lambda x, y: x - y, other)

    def __mul__(self, other: Any) -> Self:
        return self._new("mul", lambda x, y: x * y, other)

    def __truediv__(self, other: Any) -> Self:
        return self._new("div", lambda x, y: x / y, other)

    def __matmul__(self, other: Any) -> Self:
        return self._new("matmul", lambda x, y: x @ y, other)

    def __gt__(self, other: Any) -> Self:
        return self._new("gt", lambda x, y: x > y, other)

    def __eq__(self, other: object) -> Self:  # type: ignore[override]
        return self._new("eq", lambda x, y: x == y, other)

    __hash__ = object.__hash__

    # -- results whose size depends on the data ----------------------------------------------------------------------

    def nonzero(self) -> Self:
        return self._sized_by_data("nonzero", lambda x: x.nonzero())

    def unique(self) -> Self:
        return self._sized_by_data("unique", lambda x: x.unique())

    def masked_select(self, mask: Any) -> Self:
        return self._sized_by_data("masked_select", lambda x, m: x.masked_select(m), mask)

    def repeat_interleave(self, repeats: Any, output_size: int | None = None) -> Self:
        """Waits unless ``output_size`` is given."""
        if output_size is None:
            return self._sized_by_data("repeat_interleave", lambda x, n: x.repeat_interleave(n), repeats)
        values = self.data.new_empty((output_size, *self.data.shape[1:]), device="meta")
        return self.gpu.kernels.new(
            "repeat_interleave", lambda x, n: x.repeat_interleave(n), (self, repeats), like=values
        )

    def is_nonzero(self) -> bool:
        return bool(self)

    # -- indexing ----------------------------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Self:
        """A view for integers and slices (device tensors as bounds wait); a gather for tensors and lists.

        A mask waits for its number of elements; a host tensor or a list is uploaded from pageable memory, which waits.
        """
        if not self._is_gather(index):
            plain = tuple(map(_plain, index)) if isinstance(index, tuple) else _plain(index)
            return self.view_of(self.data[plain])
        index = self._on_my_device(index)
        if index.dtype == torch.bool:
            return self._sized_by_data("index", lambda x, i: x[i], index)
        return self._new("index", lambda x, i: x[i], index)

    def __setitem__(self, index: Any, value: Any) -> None:
        """Assigning a Python number through a device index uploads the number, which waits."""
        if not self._is_gather(index):
            target = self[index]
            target.fill_(value) if isinstance(value, (int, float)) else target.copy_(value)
            return
        index = self._on_my_device(index)
        if self.is_cuda and isinstance(value, (int, float)):
            value = self.gpu.tensor(value, dtype=self.dtype, device=self.device)
        self._in_place("index_put", lambda x, i, v: x.__setitem__(i, v), index, value)

    # -- inner -------------------------------------------------------------------------------------------------------

    def _is_gather(self, index: Any) -> bool:
        return isinstance(index, (list, Arithmetic)) and not (isinstance(index, Arithmetic) and index.data.dim() == 0)

    def _on_my_device(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.gpu.tensor(index, device=self.device)
        return index.to(self.device) if self.is_cuda and not index.is_cuda else index

    def _in_place(self, name: str, fn: Callable[..., Any], *others: Any) -> Self:
        self.gpu.kernels.in_place(name, self, fn, others)
        return self

    def _new(self, name: str, fn: Callable[..., torch.Tensor], *others: Any, like: torch.Tensor | None = None) -> Self:
        result: Self = self.gpu.kernels.new(name, fn, (self, *others), like)
        return result

    def _sized_by_data(self, name: str, fn: Callable[..., torch.Tensor], *others: Any) -> Self:
        result: Self = self.gpu.kernels.sized_by_data(name, fn, (self, *others))
        return result


def _plain(index: Any) -> Any:
    """An index without tensors: a device tensor as a number or a bound is read by the host, which waits."""
    if isinstance(index, slice):
        return slice(*(None if bound is None else int(bound) for bound in (index.start, index.stop, index.step)))
    return int(index) if isinstance(index, Arithmetic) else index
