"""The engine: six phases, and what keeps requests, blocks and the device together around them.

Every choice that a switch makes is an object handed in by ``assemble.py``: the loop, the streams, what orders them, the
slots, the carry-over, the launcher. Nothing here asks which mechanism is on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import index
from typing import Any

import torch

from labkit.device.api import Buffer, Device
from labkit.engine.batch import Batch
from labkit.engine.fill import Filler
from labkit.engine.hooks import Hooks
from labkit.engine.launch import EagerLauncher, GraphLauncher
from labkit.engine.ordering import Events, NoEvents, Streams
from labkit.engine.request import Request, State, TokenEvent
from labkit.engine.sampling import SamplingParams, check_integer
from labkit.engine.scheduler import Scheduler
from labkit.engine.slots import Slot, SlotSet
from labkit.errors import EngineClosed, EngineFault, InvalidArgument, RequestTooLarge
from labkit.model.api import Model
from labkit.sizes import Sizes

Loop = Callable[["EngineCore"], Iterator[list[TokenEvent]]]


class EngineCore:
    """Continuous batching over one model and one device. Single-threaded: the caller's ``step`` drives it."""

    def __init__(
        self,
        *,
        model: Model,
        device: Device,
        sizes: Sizes,
        loop: Loop,
        streams: Streams,
        order: Events | NoEvents,
        slots: SlotSet,
        launcher: EagerLauncher | GraphLauncher,
        kv: tuple[Buffer, ...],
        non_blocking: bool,
        observers: Iterable[Any] = (),
    ) -> None:
        self.model, self.device, self.sizes = model, device, sizes
        self.streams, self.order, self.slots, self.launcher = streams, order, slots, launcher
        self.kv, self.non_blocking = kv, non_blocking
        self.scheduler = Scheduler(sizes)
        self.requests: dict[int, Request] = {}
        self.closed = False
        self._filler, self._hooks = Filler(sizes, self.scheduler), Hooks(observers)
        self._new_loop = loop
        self._loop: Iterator[list[TokenEvent]] | None = None
        self._next_id = 0
        self._news: list[TokenEvent] = []
        launcher.warm_up(slots)

    # -- the six phases ----------------------------------------------------------------------------------------------

    def plan(self) -> Batch | None:
        """Choose the next step's requests and tokens; None if there is nothing to do now."""
        scheduler = self.scheduler
        self._sleep_until_arrival()
        rows = len(scheduler.running)
        with self.device.phase("plan", step=scheduler.steps, rows=rows):
            batch = scheduler.plan(self.device.now_ns())
        if batch is not None:
            for tell in self._hooks.planned:
                tell(batch, scheduler)
        return batch

    def fill(self, slot: Slot, batch: Batch) -> None:
        """Write the step's inputs into the slot's host buffer."""
        with self._phase("fill", slot, batch), self.device.host_write(slot.inputs_host):
            self._filler.fill(slot.host, batch)
        for tell in self._hooks.filled:
            tell(slot, batch)

    def upload(self, slot: Slot, batch: Batch) -> None:
        """Enqueue the copy of the inputs to the device."""
        with self._phase("upload", slot, batch):
            self.device.copy(
                slot.inputs_dev, slot.inputs_host, self.streams.h2d, non_blocking=self.non_blocking, label="upload"
            )
            self.order.uploaded(slot)

    def compute(self, slot: Slot, batch: Batch) -> None:
        """Enqueue carry-over, forward pass and sampling."""
        with self._phase("compute", slot, batch):
            self.order.before_compute(slot)
            self.launcher.run(slot, batch)
            self.order.computed(slot)

    def download(self, slot: Slot, batch: Batch) -> None:
        """Enqueue the copy of the sampled tokens to the host."""
        with self._phase("download", slot, batch):
            self.order.before_download(slot)
            self.device.copy(
                slot.outputs_host, slot.outputs_dev, self.streams.d2h, non_blocking=self.non_blocking, label="download"
            )
            self.order.downloaded(slot)

    def settle(self, slot: Slot, batch: Batch) -> list[TokenEvent]:
        """Wait for the download and hand the tokens to their requests."""
        with self._phase("settle", slot, batch):
            self.order.before_read(slot)
            outputs = self.device.host_read(slot.outputs_host)
            tokens = outputs[0, : batch.rows].tolist()
            logprobs = outputs[1, : batch.rows].view(torch.float32).tolist() if batch.logprobs else None
            events = self.scheduler.settle(batch, tokens, logprobs)
        for tell in self._hooks.settled:
            tell(slot, batch, tokens)
        return events

    def _phase(self, name: str, slot: Slot, batch: Batch):  # type: ignore[no-untyped-def]
        return self.device.phase(name, step=batch.step, slot=slot.name, rows=batch.rows, tokens=batch.tokens)

    # -- requests ----------------------------------------------------------------------------------------------------

    def submit(self, prompt: Sequence[int], params: SamplingParams, arrival_ns: int = 0) -> Request:
        """Queue a request.

        Args:
            prompt: token ids, at least one.
            params: how to sample and when to end.
            arrival_ns: earliest time, on the device's clock, at which it may enter a step; never before now.

        Raises:
            InvalidArgument: an argument out of range, named with its value.
            RequestTooLarge: the whole KV pool could not hold it.
            EngineClosed: after ``close``.
        """
        self._check_open()
        prompt, eos = self._check_prompt(prompt, params), self._eos_of(params)
        check_integer("arrival_ns", arrival_ns, 0)
        request = Request(self._next_id, prompt, params, eos, max(int(arrival_ns), self.device.now_ns()))
        self._next_id += 1
        self.requests[request.id] = request
        self.scheduler.submit(request)
        return request

    def withdraw(self, request: Request) -> None:
        """Take back a request that no step has seen, as if it had never been submitted."""
        self.scheduler.waiting.remove(request)
        del self.requests[request.id]

    def cancel(self, request_id: int) -> bool:
        """End a request early; False if it has ended already. An unknown id raises InvalidArgument."""
        request = self.requests.get(request_id)
        if request is None:
            raise InvalidArgument("request_id", request_id, "the id of a request submitted to this engine")
        if request.finished:
            return False
        self.scheduler.finish(request, "cancelled")
        self._news.append(_end(request))
        return True

    def step(self) -> list[TokenEvent]:
        """Run until the tokens of one more step are known; an empty list once nothing is left to do.

        Raises:
            EngineFault: the step failed. Every request in the engine has ended with that error; the engine goes on.
        """
        self._check_open()
        if self._news:
            news, self._news = self._news, []
            return news
        if self._loop is None:
            self._loop = self._new_loop(self)
        try:
            return next(self._loop)
        except StopIteration:
            self._loop = None
            return []
        except Exception as error:
            raise self._fail(error) from error
        except BaseException:  # an interrupt: the step is lost, its requests are not
            self._recover()
            raise

    @property
    def busy(self) -> bool:
        """Whether a request is waiting, running, or in flight."""
        scheduler = self.scheduler
        work = scheduler.running or scheduler.waiting or scheduler.in_flight or self._news
        return bool(work) and not self.closed

    def close(self) -> None:
        """End every request as cancelled, wait for the device and free its memory. Closing twice does nothing."""
        if self.closed:
            return
        for request in self._live():
            self.scheduler.finish(request, "cancelled")
        self._loop, self.closed = None, True
        self.launcher.clear()
        self.device.reset()
        self.slots.free(self.device)
        for buffer in self.kv:
            self.device.free(buffer)

    # -- inner -------------------------------------------------------------------------------------------------------

    def _sleep_until_arrival(self) -> None:
        """With nothing else to do, let the clock run to the next arrival."""
        scheduler = self.scheduler
        if scheduler.waiting and not scheduler.running and not scheduler.in_flight:
            self.device.sleep_until(scheduler.waiting[0].arrival_ns)

    def _check_open(self) -> None:
        if self.closed:
            raise EngineClosed("the engine is closed; build a new one")

    def _check_prompt(self, prompt: Sequence[int], params: SamplingParams) -> list[int]:
        if isinstance(prompt, str) or not isinstance(prompt, Iterable):
            raise InvalidArgument("prompt", prompt, "a sequence of token ids")
        values = prompt.tolist() if hasattr(prompt, "tolist") else prompt  # an array or a tensor
        prompt = [self._check_token("prompt", token) for token in values]
        if not prompt:
            raise InvalidArgument("prompt", prompt, "at least one token")
        longest = self.sizes.max_model_len
        if len(prompt) >= longest:
            raise InvalidArgument(
                "prompt", f"{len(prompt)} tokens", f"at most {longest - 1}: max_model_len is {longest}"
            )
        room = longest - len(prompt)
        if params.max_new_tokens > room:
            allowed = f"1 to {room}: the prompt has {len(prompt)} tokens and max_model_len is {longest}"
            raise InvalidArgument("max_new_tokens", params.max_new_tokens, allowed)
        self._check_fits(len(prompt) + params.max_new_tokens - 1)
        return prompt

    def _eos_of(self, params: SamplingParams) -> frozenset[int]:
        if params.eos_token_ids is None:
            return frozenset(self.model.eos_token_ids)
        return frozenset(self._check_token("eos_token_ids", token) for token in params.eos_token_ids)

    def _check_token(self, argument: str, token: Any) -> int:
        """A token id as an int; integers of NumPy and torch are taken too."""
        vocab = self.model.vocab_size
        try:
            number = -1 if isinstance(token, bool) else index(token)
        except TypeError:
            number = -1
        if not 0 <= number < vocab:
            raise InvalidArgument(argument, token, f"token ids are integers from 0 to {vocab - 1}")
        return number

    def _check_fits(self, tokens: int) -> None:
        """The last token is never computed, so its K and V need no place."""
        need, have, size = -(-tokens // self.sizes.block_size), self.sizes.num_blocks, self.sizes.block_size
        if need > have:
            raise RequestTooLarge(
                f"the request needs {need} KV blocks of {size} tokens ({tokens} tokens), the pool has {have}"
            )

    def _live(self) -> list[Request]:
        return [request for request in self.requests.values() if not request.finished]

    def _fail(self, cause: Exception) -> EngineFault:
        """Tell every caller, free every block, and leave the engine ready for new requests."""
        self._recover()
        for request in self._live():
            self.scheduler.finish(request, "error", cause)
            self._news.append(_end(request))
        return EngineFault(f"step failed: {type(cause).__name__}: {cause}")

    def _recover(self) -> None:
        """Drop the steps in flight, wherever they were broken off; live requests wait to be computed again."""
        self.device.reset()
        self._loop = None
        self.scheduler.restart(self._live())
        for tell in self._hooks.dropped:
            tell()


def _end(request: Request) -> TokenEvent:
    """The event that ends a request without a token."""
    assert request.state is State.FINISHED
    return TokenEvent(request.id, None, len(request.output), request.finish_reason)
