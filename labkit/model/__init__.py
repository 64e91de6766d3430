"""Models: the toy model needs torch alone, every other one is a transformers decoder."""

from __future__ import annotations

from typing import Any

from labkit.model.api import Model


def load_model(name: str, **options: Any) -> Model:
    """A model by name: ``toy``, or anything that ``labkit.model.hf.load`` knows.

    Options go to ``ToyModel`` or to ``hf.load`` (dtype, device, seed, cache_dir, block_size).

    Raises:
        InvalidArgument: no model has that name; ``__cause__`` says what was tried.
        MissingExtra: the name needs transformers and it is not installed.
    """
    if name == "toy":
        from labkit.model.toy import ToyModel

        return ToyModel(**options)
    from labkit.model import hf

    return hf.load(name, **options)
