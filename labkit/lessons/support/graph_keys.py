"""Engines whose graphs are found under the learner's key, or have the learner's sizes, and what judges them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

import torch

from labkit.device.api import Graph
from labkit.engine.core import EngineCore
from labkit.engine.launch import GraphKey, GraphLauncher
from labkit.engine.sampling import SamplingParams
from labkit.lessons.result import Result, right, wrong
from labkit.lessons.support.patched import Refusal, run_patched
from labkit.model.api import BatchInputs
from labkit.model.toy import ToyModel
from labkit.run import Run
from labkit.sizes import Sizes

Answer = Callable[..., Any]
FIELDS = ("slot", "rows", "context", "random", "logprobs")
SIZES = Sizes(max_rows=4, num_blocks=64, max_model_len=64, block_size=4)


class BoundedToy(ToyModel):
    """The toy model with a bound on the context baked into its launches, as attention kernels have it: tokens beyond
    the bound do not exist for it. The bounds are 16, 32 and so on up to the limit."""

    def context_bucket(self, context: int, limit: int) -> int:
        bound = 16
        while bound < context:
            bound *= 2
        return min(bound, limit)

    def forward(self, inputs: BatchInputs, kv: Sequence[torch.Tensor]) -> torch.Tensor:
        last = inputs.shape.context - 1
        return super().forward(replace(inputs, positions=inputs.positions.clamp(max=last)), kv)


# -- 7.4 -------------------------------------------------------------------------------------------------------------


class KeyedGraphs(dict[GraphKey, Graph]):
    """Graphs by the learner's key: two GraphKeys for which it answers the same share one graph."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer, self.captured = answer, 0
        self.asked_for: set[GraphKey] = set()
        self.before: dict[GraphKey, Graph] = {}  # the engine's own: they keep the pool alive
        self._found: dict[Hashable, Graph] = {}

    def _of(self, key: GraphKey) -> Hashable:
        self.asked_for.add(key)
        given: Any = self.answer(*(getattr(key, name) for name in FIELDS))
        if given is None or not isinstance(given, Hashable):
            says = "The answer has to return a key. A list or a dict cannot be one, a tuple can."
            raise Refusal(wrong(says, yours=repr(given), expected="a tuple, for example"))
        return given

    def get(self, key: GraphKey, default: Any = None) -> Any:
        return self._found.get(self._of(key), default)

    def __setitem__(self, key: GraphKey, graph: Graph) -> None:
        super().__setitem__(key, graph)
        self._found[self._of(key)] = graph
        self.captured += 1


def _use(core: EngineCore, graphs: KeyedGraphs) -> None:
    """Capture the engine's graphs again, into this dictionary."""
    launcher = core.launcher
    assert isinstance(launcher, GraphLauncher)
    graphs.before, launcher.graphs = launcher.graphs, graphs
    launcher.warm_up(core.slots)
    core.device.take()  # type: ignore[attr-defined]  # as an engine does after its warm-up


_GREEDY = SamplingParams(max_new_tokens=40, eos_token_ids=())
_WORK: dict[str, list[SamplingParams]] = {
    "greedy": [replace(_GREEDY, max_new_tokens=length) for length in (40, 12, 25, 40)],
    "random": [replace(_GREEDY, max_new_tokens=12, temperature=1.0, seed=seed) for seed in range(4)],
    "logprobs": [replace(_GREEDY, max_new_tokens=12, logprobs=True)] * 4,
}


def run_keyed(device: str, key: Answer | KeyedGraphs, work: str) -> Run:
    """Rung 6 with graphs under this key: ``greedy``, ``random`` or ``logprobs`` requests of the bounded model."""
    graphs = key if isinstance(key, KeyedGraphs) else KeyedGraphs(key)
    change = lambda core: _use(core, graphs)  # noqa: E731
    return run_patched(device, "cuda_graphs", change, model=_model(device), sizes=SIZES, params=_WORK[work])


def run_reference(device: str, work: str) -> Run:
    """The same requests on rung 0."""
    return run_patched(device, "default_stream", model=_model(device), sizes=SIZES, params=_WORK[work])


def _model(device: str) -> ToyModel:
    return BoundedToy().to(torch.device("cuda" if device == "cuda" else "cpu"))


def outcome(run: Run, reference: Run) -> tuple[int, int, bool]:
    """Right tokens, all tokens, and whether the log-probabilities are right."""
    pairs = list(zip(run.tokens, reference.tokens, strict=True))
    same = sum(a == b for mine, theirs in pairs for a, b in zip(mine, theirs, strict=False))
    near = all(
        abs(a - b) < 1e-3
        for mine, theirs in zip(run.logprobs, reference.logprobs, strict=True)
        for a, b in zip(mine, theirs, strict=False)
    )
    return same, sum(len(theirs) for _, theirs in pairs), near


def judge_graph_key(answer: Answer, device: str) -> Result:
    """Every workload right, and no more graphs than there have to be."""
    most = needed = 0
    for work in _WORK:
        graphs = KeyedGraphs(answer)
        try:
            run = run_keyed(device, graphs, work)
        except Refusal as refusal:
            return refusal.result
        same, total, near = outcome(run, run_reference(device, work))
        if same < total or not near:
            what = f"{same} of {total} tokens are right" if same < total else "the log-probabilities are wrong"
            return wrong(
                f"{_blame(answer)} No error and no warning: a wrong graph was found, and replayed.",
                yours=f"{work} requests: {what}",
                expected="every token and log-probability as on rung 0",
            )
        most, needed = max(most, graphs.captured), max(needed, len(graphs.asked_for))
    if most > needed:
        return wrong(
            "Right, but the key tells steps apart that could share a graph, so graphs are captured again and again.",
            yours=f"{most} captures",
            expected=f"{needed} captures",
        )
    return right(f"All tokens and log-probabilities are right, with {needed} graphs at most.")


_MISSING = {
    "slot": "Your key does not tell slots apart: a graph reads and writes the buffers of the slot it was captured for.",
    "rows": "Your key does not tell the numbers of rows apart: a graph computes as many rows as it was captured for.",
    "context": "Your key does not tell context bounds apart: tokens beyond the bound do not exist for the graph.",
    "random": "Your key does not tell random from greedy: a graph samples in the way that it was captured with.",
    "logprobs": "Your key does not tell whether log-probabilities are wanted: the graph may never write them.",
}


def _blame(answer: Answer) -> str:
    """Which field the key does not look at."""
    base: dict[str, Any] = {"slot": 0, "rows": 1, "context": 16, "random": False, "logprobs": False}
    others: dict[str, Any] = {"slot": 1, "rows": 4, "context": 64, "random": True, "logprobs": True}
    for name in FIELDS:
        if answer(**base) == answer(**{**base, name: others[name]}):
            return _MISSING[name]
    return "Two steps that need different graphs have the same key."


# -- 7.3 -------------------------------------------------------------------------------------------------------------

_LENGTHS = (4, 4, 4, 4, 4, 4, 10, 10, 20, 44, 44, 44)
ROWS = len(_LENGTHS)
BATCHES = tuple(sum(length > step for length in _LENGTHS) for step in range(1, max(_LENGTHS)))
MOST_SIZES = 3
ENOUGH = 30  # padding rows


def run_padded(device: str, sizes: Sequence[int]) -> tuple[Run, int]:
    """Twelve requests with graphs of these sizes: the run, and how many rows were computed for nothing."""
    capacities = Sizes(max_rows=ROWS, num_blocks=256, max_model_len=64, block_size=4, graph_rows=tuple(sizes))
    prompts = [[number + 1, 2, 3, 4] for number in range(ROWS)]
    params = [SamplingParams(max_new_tokens=length, eos_token_ids=()) for length in _LENGTHS]
    run = run_patched(device, "cuda_graphs", sizes=capacities, prompts=prompts, params=params)
    decodes = [step for step in run.steps if step.decode_rows == len(step.rows)]
    return run, sum(capacities.pad(len(step.rows)) - len(step.rows) for step in decodes)


def judge_graph_rows(answer: Answer, device: str) -> Result:
    """At most three sizes, the largest for a full batch, and little padding in the real engine."""
    sizes = answer(list(BATCHES), MOST_SIZES)
    if not isinstance(sizes, (list, tuple, set)) or not all(type(size) is int for size in sizes):
        return wrong("The answer has to be a list of whole numbers.", yours=sizes, expected="for example [6, 12]")
    sizes = sorted(set(sizes))
    if len(sizes) > MOST_SIZES or not sizes or sizes[0] < 1:
        return wrong("Too many sizes, or none.", yours=sizes, expected=f"1 to {MOST_SIZES} sizes, each at least 1")
    if sizes[-1] != ROWS:
        return wrong(
            f"The largest size has to be {ROWS}: a batch of {ROWS} rows needs a graph, and no batch has more.",
            yours=sizes,
            expected=f"the last size {ROWS}",
        )
    run, padding = run_padded(device, sizes)
    if padding > ENOUGH:
        return wrong(
            f"Sizes {sizes} compute {padding} rows for nothing. For each number of rows, count its steps times what is "
            "missing to the next size.",
            yours=f"{padding} padding rows",
            expected=f"at most {ENOUGH}",
        )
    return right(f"Sizes {sizes}: {padding} padding rows in {run.stats['steps']} steps.")


def padding_rows(answer: Answer, device: str) -> float:
    """Rows that the engine computes for nothing with these sizes."""
    return run_padded(device, sorted(set(answer(list(BATCHES), MOST_SIZES))))[1]
