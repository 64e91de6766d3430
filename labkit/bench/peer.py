"""transformers' ``generate_batch`` as rows of the same table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

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

    warm_up = True
    for batch, context, mode in product(batches, contexts, ("sync", "async")):
        prompts = synthetic_prompts(model, batch, context)
        ns = peer_step_ns(module, prompts, steps, use_async=mode == "async", warm_up=warm_up)
        floor = floor_ns(model, batch, context, bandwidth)
        yield BenchRow(model.name, "peer", mode, batch, context, ns, floor_ns=floor)
        warm_up = False
