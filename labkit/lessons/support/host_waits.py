"""Which operations of a function would make the host wait for the GPU, found without one (semantics, rule 37)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_NAMES = {
    "item": ".item()",
    "tolist": ".tolist()",
    "numpy": ".numpy()",
    "__array__": ".numpy()",
    "cpu": ".cpu()",
    "__bool__": "if or bool() on a tensor",
    "__int__": "int()",
    "__float__": "float()",
    "__index__": "a tensor as a Python index",
    "nonzero": "nonzero",
    "argwhere": "argwhere",
    "masked_select": "masked_select",
    "unique": "unique",
    "is_nonzero": "is_nonzero",
    "repeat_interleave": "repeat_interleave",
}
_INDEXING = {"__getitem__": "indexing with a boolean mask", "__setitem__": "indexing with a boolean mask"}


class HostWaits(TorchFunctionMode):
    """``with HostWaits() as waits:`` notes them; ``waits.found`` says what they were, each once."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        what = _what(getattr(func, "__name__", ""), args)
        if what and what not in self.found:
            self.found.append(what)
        return func(*args, **(kwargs or {}))


def _what(name: str, args: tuple[Any, ...]) -> str:
    if name == "where" and len(args) == 1:
        return "torch.where with one argument"
    if name in _INDEXING:
        return _INDEXING[name] if any(t.dtype == torch.bool for t in _tensors(args[1])) else ""
    return _NAMES.get(name, "")


def _tensors(index: Any) -> Iterator[torch.Tensor]:
    for part in index if isinstance(index, tuple) else (index,):
        if isinstance(part, torch.Tensor):
            yield part
