"""transformers' ``generate_batch`` as rows of the same table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from labkit.bench.models import floor_ns
from labkit.bench.table import BenchRow
from labkit.errors import InvalidArgument
from labkit.experiments import synthetic_prompts
from labkit.model.api import Model

STEPS = 96


def peer_rows(
    model: Model, batches: Iterable[int], contexts: Iterable[int], bandwidth: float, steps: int = STEPS
) -> Iterator[BenchRow]:
    """Steps of the synchronous and the asynchronous peer, on the model's own weights.

    Raises:
        InvalidArgument: a model that transformers does not know.
    """
    module = getattr(model, "module", None)
    if module is None:
        raise InvalidArgument("--peer", model.name, "a model of transformers, on a real GPU")
    from labkit.model.hf_peer import peer_step_ns

    for batch in batches:
        for context in contexts:
            prompts = synthetic_prompts(model, batch, context)
            floor = floor_ns(model, batch, context, bandwidth)
            for mode in ("sync", "async"):
                ns = peer_step_ns(module, prompts, steps, use_async=mode == "async")
                yield BenchRow(model.name, "peer", mode, batch, context, ns, floor_ns=floor)
