"""The front door: ``Engine`` puts a model, a device, switches and a trace together, and takes text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from labkit.collector import no_collection
from labkit.device import check_device, open_device
from labkit.device.api import Device
from labkit.device.costs import Costs, Profile
from labkit.device.traced import TracedDevice
from labkit.engine.assemble import assemble
from labkit.engine.request import Request, TokenEvent
from labkit.engine.sampling import SamplingParams
from labkit.errors import Cancelled, EngineFault, InvalidArgument
from labkit.memory import check_host_memory, memory_of
from labkit.model import load_model
from labkit.model.api import Model
from labkit.run import Run
from labkit.sizes import Sizes
from labkit.steplog import StepLog, StepRecord
from labkit.switches import Switches, ladder

Prompt = str | Sequence[int]


class Engine:
    """A continuous-batching engine that one thread drives. Use it as a context manager, or call ``close``.

    Args:
        model: a ``Model``.
        switches: the mechanisms, or a rung's name or number.
        device: ``"virtual"``, ``"cuda"``, or a ``Device``.
        sizes: capacities; by default room for ``max_rows`` requests of ``max_model_len`` tokens.
        profile: cost profile of the virtual GPU.
        unsafe: build a combination that cannot be right, to see what goes wrong.
        trace: record every span, and what each step was.
        dropped_waits: waits of ``engine/ordering.py`` to leave out.
        observers: objects that are told what happens (``engine/hooks.py``).

    Raises:
        UnsafeSwitches, InvalidArgument: see ``engine/assemble.py``.
    """

    def __init__(
        self,
        model: Model,
        *,
        switches: Switches | str | int = "carry_over",
        device: str | Device = "virtual",
        sizes: Sizes | None = None,
        profile: str | Path | Profile | Costs = "h200-8b",
        unsafe: bool = False,
        trace: bool = True,
        dropped_waits: Collection[str] = (),
        observers: Iterable[Any] = (),
    ) -> None:
        self.switches = switches if isinstance(switches, Switches) else ladder(switches)
        if not hasattr(model, "kv_specs"):
            raise InvalidArgument("model", model, "a Model; one by name is Engine.from_pretrained(name)")
        if not isinstance(sizes, Sizes | None):
            raise InvalidArgument("sizes", sizes, "Sizes, or None for room for max_rows requests")
        if isinstance(dropped_waits, str):
            raise InvalidArgument("dropped_waits", dropped_waits, "a list of names")
        inner = open_device(device, profile, timing=trace)
        self.device: Any = inner
        if trace:
            self.device = TracedDevice(inner)
        self.model, self._traced = model, trace
        self._log = StepLog()
        self.sizes = sizes or default_sizes(model)
        if self.device.name.startswith("virtual"):
            check_host_memory(model, self.sizes, slots=2 if self.switches.double_buffering else 1)
        observers = (self._log, *observers) if trace else tuple(observers)
        options: dict[str, Any] = {"unsafe": unsafe, "dropped_waits": dropped_waits, "observers": observers}
        self.core = assemble(self.switches, self.sizes, self.device, model, **options)
        if trace:
            self.device.take()  # what the warm-up did is not part of any run

    @classmethod
    def from_pretrained(
        cls, name: str, *, dtype: Any = None, device: str | Device = "virtual", **options: Any
    ) -> Engine:
        """An engine for a model by name: ``toy``, ``smollm2``, ``tiny-llama``, ``llama-8b``, a local path or a hub id.

        ``dtype`` is a torch dtype (default: float32 on the virtual GPU, bfloat16 on a real one); the other options are
        the constructor's.
        """
        check_device(device)
        where = "cuda" if device == "cuda" else "cpu"
        if name == "toy":
            import torch

            return cls(load_model(name).to(torch.device(where)), device=device, **options)
        return cls(load_model(name, dtype=dtype, device=where), device=device, **options)

    # -- generate ----------------------------------------------------------------------------------------------------

    def generate(
        self,
        prompts: Sequence[Prompt],
        params: SamplingParams | Sequence[SamplingParams] | None = None,
        **sampling: Any,
    ) -> Run:
        """Run prompts to their end.

        Args:
            prompts: texts, or lists of token ids.
            params: one SamplingParams for all, or one per prompt; or give its fields as keywords.

        Raises:
            InvalidArgument, RequestTooLarge: a prompt cannot be run; none of them is then submitted.
            EngineFault: a step failed; its cause is chained.
        """
        requests = self._submit_all(prompts, params, sampling)
        before = self._counts()
        try:
            with no_collection():
                while any(not request.finished for request in requests):
                    self.core.step()
                self._drain()
        except BaseException:
            for request in requests:
                self.core.cancel(request.id)
            self.take_trace()  # it belongs to no run
            raise
        return self._run(requests, before)

    def stream(self, prompt: Prompt, params: SamplingParams | None = None, **sampling: Any) -> Iterator[TokenEvent]:
        """Yield the tokens of one request as they become known; other requests of the engine advance with it.

        The request is submitted at once, not at the first ``next``. The last event carries the ``finish_reason``.
        Leaving the loop early, or dropping the iterator unread, cancels the request.

        Raises:
            Cancelled: the request was cancelled by someone else. EngineFault: a step failed.
        """
        events = self._events(self.submit(prompt, params, **sampling))
        next(events)
        return events

    def submit(
        self, prompt: Prompt, params: SamplingParams | None = None, *, arrival_ns: int = 0, **sampling: Any
    ) -> Request:
        """Queue one request and return its handle; ``step`` moves it on. ``arrival_ns`` is on the device's clock."""
        return self.core.submit(self._encode(prompt), _params(params, sampling), arrival_ns)

    def cancel(self, request: Request | int) -> bool:
        """End a request early; False if it had ended. Its blocks are free once no step in flight uses them."""
        known = self.core.requests
        if isinstance(request, Request) and known.get(request.id) is not request:
            raise InvalidArgument("request", request.id, "a request submitted to this engine")
        return self.core.cancel(request.id if isinstance(request, Request) else request)

    def step(self) -> list[TokenEvent]:
        """Run until one more step's tokens are known; empty once nothing is left to do."""
        return self.core.step()

    @property
    def busy(self) -> bool:
        """Whether a request is waiting, running or in flight."""
        return self.core.busy

    def take_trace(self) -> Any:
        """The trace since the last run or call of this, or None without tracing. What the steps were is dropped."""
        self.take_steps()
        return self.device.take(**self._meta()) if self._traced else None

    def take_steps(self) -> tuple[StepRecord, ...]:
        """What each step since the last run or ``take_trace`` or call of this was; nothing without tracing."""
        return self._log.take()

    # -- lifetime ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Cancel what is left and free the device's memory. A second call does nothing."""
        self.core.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, where: TracebackType | None) -> None:
        self.close()

    # -- inner -------------------------------------------------------------------------------------------------------

    def _encode(self, prompt: Prompt) -> Sequence[int]:
        return self.model.encode(prompt) if isinstance(prompt, str) else prompt

    def _submit_all(self, prompts: Sequence[Prompt], params: Any, sampling: dict[str, Any]) -> list[Request]:
        if isinstance(prompts, str) or not isinstance(prompts, Iterable):
            raise InvalidArgument("prompts", prompts, "a list of prompts; for one prompt write [prompt]")
        prompts = list(prompts)
        given = list(params) if isinstance(params, (list, tuple)) else [params] * len(prompts)
        per_prompt = [_params(one, sampling) for one in given]
        if len(per_prompt) != len(prompts):
            raise InvalidArgument("params", f"{len(per_prompt)} entries", f"one for each of the {len(prompts)} prompts")
        requests: list[Request] = []
        try:
            for prompt, one in zip(prompts, per_prompt, strict=True):
                requests.append(self.core.submit(self._encode(prompt), one))
        except BaseException:
            for request in requests:
                self.core.withdraw(request)
            raise
        return requests

    def _events(self, request: Request) -> Iterator[Any]:
        """Tokens one by one, looked up anew each time: between two of them the consumer may do anything."""
        sent = 0
        try:
            yield None  # stream() has come here: from now on, dropping the iterator cancels the request
            while sent < request.generated or not request.finished:
                if sent < request.generated:
                    yield _token_event(request, sent)
                    sent += 1
                else:
                    self.core.step()
        finally:
            if not request.finished:
                self.core.cancel(request.id)
        _raise_unless_complete(request)

    def _drain(self) -> None:
        """Settle the steps still in flight once no request is left, so that a run ends at an idle device."""
        while self.busy and not self.core.scheduler.running and not self.core.scheduler.waiting:
            self.core.step()

    def _counts(self) -> dict[str, int]:
        scheduler = self.core.scheduler
        return {"steps": scheduler.steps, "overruns": scheduler.overruns, "preemptions": scheduler.preemptions}

    def _run(self, requests: list[Request], before: dict[str, int]) -> Run:
        stats = {name: count - before[name] for name, count in self._counts().items()}
        tokens = [request.output for request in requests]
        return Run(
            tokens=tokens,
            texts=[self.model.decode(output) for output in tokens],
            logprobs=[list(request.logprobs) for request in requests],
            finish_reasons=[request.finish_reason for request in requests],
            prompts=[list(request.prompt) for request in requests],
            switches=self.switches,
            steps=self.take_steps(),
            memory=memory_of(self.core),
            trace=self.take_trace(),
            stats=stats,
        )

    def _meta(self) -> dict[str, Any]:
        source = "virtual" if self.device.name.startswith("virtual") else "live"
        return {"source": source, "model": self.model.name, "switches": list(self.switches.on)}


def default_sizes(model: Model, **changes: Any) -> Sizes:
    """Sizes for a model: as many blocks as ``max_rows`` requests of ``max_model_len`` tokens could need."""
    sizes = Sizes(max_model_len=min(2048, model.max_model_len), block_size=model.preferred_block_size)
    known = [field.name for field in fields(Sizes)]
    for name, value in changes.items():
        if name not in known:
            raise InvalidArgument(name, value, f"the sizes are {', '.join(known)}")
    sizes = replace(sizes, **changes)
    if "num_blocks" not in changes:
        sizes = replace(sizes, num_blocks=sizes.max_rows * sizes.blocks_per_request)
    return sizes


def _params(params: SamplingParams | None, sampling: dict[str, Any]) -> SamplingParams:
    known = [field.name for field in fields(SamplingParams)]
    for name, value in sampling.items():
        if name not in known:
            raise InvalidArgument(name, value, f"the sampling parameters are {', '.join(known)}")
    if params is not None and not isinstance(params, SamplingParams):
        raise InvalidArgument("params", params, "a SamplingParams, or one for each prompt")
    return replace(params or SamplingParams(), **sampling)


def _token_event(request: Request, index: int) -> TokenEvent:
    last = request.finished and index == request.generated - 1
    logprob = request.logprobs[index] if request.params.logprobs else None
    token = request.tokens[len(request.prompt) + index]
    return TokenEvent(request.id, token, index, request.finish_reason if last else "", logprob)


def _raise_unless_complete(request: Request) -> None:
    if request.finish_reason == "cancelled":
        raise Cancelled(f"request {request.id} was cancelled after {len(request.output)} tokens")
    if request.finish_reason == "error":
        raise EngineFault(f"request {request.id} ended by a fault: {request.error}") from request.error
