"""Continuous batching at iteration level: who is in the next step, with how many tokens.

Running requests first (one token each where they decode, a chunk where they prefill), then waiting ones in order of
arrival, all under the token budget. When the pool has no block left, the request that came last gives its blocks up and
is computed again later. ``plan`` may run while a step is in flight: a token that is not known yet counts as *pending*.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from operator import attrgetter

import numpy as np

from labkit.engine.batch import Batch
from labkit.engine.blocks import BlockPool
from labkit.engine.request import Request, State, TokenEvent
from labkit.model.api import BatchShape
from labkit.sizes import Sizes


class Scheduler:
    """Waiting and running requests, their blocks, and the host mirror of the block table."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        self.pool = BlockPool(sizes.num_blocks)
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self.steps = 0
        self.settled = -1  # last step whose results are known
        self.overruns = 0  # rows computed for a request that had already ended
        self.preemptions = 0
        self.block_table = np.full((sizes.max_rows, sizes.blocks_per_request), sizes.trash_block, np.int32)  # by seat
        self.temperature = np.zeros(sizes.max_rows, np.float32)
        self.top_p = np.ones(sizes.max_rows, np.float32)
        self.top_k = np.zeros(sizes.max_rows, np.int32)
        self.seed = np.zeros(sizes.max_rows, np.int32)
        self._seats = list(range(sizes.max_rows - 1, -1, -1))

    @property
    def in_flight(self) -> int:
        """Steps planned and not settled."""
        return self.steps - 1 - self.settled

    def submit(self, request: Request) -> None:
        """Into the waiting line, by arrival time and then by order of submission."""
        at = len(self.waiting)
        while at and self.waiting[at - 1].arrival_ns > request.arrival_ns:
            at -= 1
        self.waiting.insert(at, request)

    # -- plan --------------------------------------------------------------------------------------------------------

    def plan(self, now_ns: int) -> Batch | None:
        """The next step, or None if no request can be in one now."""
        budget = self.sizes.token_budget
        decodes: list[Request] = []
        chunks: list[tuple[Request, int]] = []
        for request in self._fair_order():
            if budget == 0:
                break
            need = request.total - request.computed
            if request.state is not State.RUNNING or request.total >= request.limit or need == 0:
                continue
            count = need if need < budget else budget
            if not self._reserve(request, request.computed + count):
                continue
            request.last_step = self.steps
            budget -= count
            if count == 1:
                decodes.append(request)
            else:
                chunks.append((request, count))
        self._admit(budget, decodes, chunks, now_ns)
        return self._batch(self.arrange(decodes), chunks) if decodes or chunks else None

    def arrange(self, decodes: list[Request]) -> list[Request]:
        """Order of the decode rows in the batch: any order is right."""
        return decodes

    def _fair_order(self) -> list[Request]:
        """Running requests in order of admission; if the budget cannot hold them all, longest unserved first."""
        if len(self.running) <= self.sizes.token_budget:
            return list(self.running)
        return sorted(self.running, key=attrgetter("last_step"))

    def _admit(self, budget: int, decodes: list[Request], chunks: list[tuple[Request, int]], now_ns: int) -> None:
        """First come, first served; a request enters when its whole known length fits the free blocks."""
        while budget and self.waiting and self._seats:
            request = self.waiting[0]
            if request.pending or request.arrival_ns > now_ns:
                return
            if self._blocks_for(request.total) > self.pool.free:
                return
            self.waiting.popleft()
            self._seat(request)
            count = min(request.total, budget)
            self._reserve(request, count)
            request.last_step = self.steps
            budget -= count
            if count == 1:
                decodes.append(request)
            else:
                chunks.append((request, count))

    def _seat(self, request: Request) -> None:
        request.state, request.seat, params = State.RUNNING, self._seats.pop(), request.params
        seat = request.seat
        self.temperature[seat], self.top_p[seat] = params.temperature, params.top_p
        self.top_k[seat], self.seed[seat] = params.top_k, params.seed
        self.running.append(request)

    def _batch(self, decodes: list[Request], chunks: list[tuple[Request, int]]) -> Batch:
        requests = decodes + [request for request, _ in chunks]
        counts = [1] * len(decodes) + [count for _, count in chunks]
        starts, samples, carries = [], [], []
        longest = context = 0
        random = logprobs = False
        for row, request in enumerate(requests):
            start = request.computed
            end = start + counts[row]
            last = end == request.total
            starts.append(start)
            samples.append(last)
            carries.append(request.row if request.pending else -1)
            context += end
            if end > longest:
                longest = end
            request.computed = end
            if last:
                request.pending += 1
                request.row = row
            params = request.params
            random = random or params.temperature > 0
            logprobs = logprobs or params.logprobs
        max_chunk = max((count for _, count in chunks), default=1)
        shape = BatchShape(len(requests), sum(counts), len(decodes), max_chunk, longest)
        step, self.steps = self.steps, self.steps + 1
        return Batch(step, requests, starts, counts, samples, carries, shape, context, random, logprobs)

    # -- blocks ------------------------------------------------------------------------------------------------------

    def _blocks_for(self, tokens: int) -> int:
        return -(-tokens // self.sizes.block_size)

    def _reserve(self, request: Request, tokens: int) -> bool:
        """Give the request the blocks for its first ``tokens`` tokens, preempting later arrivals if there are none."""
        blocks = request.blocks
        while len(blocks) * self.sizes.block_size < tokens:
            if self.pool.free:
                block = self.pool.allocate()
                self.block_table[request.seat, len(blocks)] = block
                blocks.append(block)
            elif not self._preempt_later_than(request):
                return False
        return True

    def _preempt_later_than(self, request: Request) -> bool:
        """Take the blocks of the last running request that is not in this step; False if none is free yet."""
        if self.pool.held:  # enough may come free when the step in flight ends: do not evict a second victim for it
            return False
        for victim in reversed(self.running):
            if victim is request:
                return False
            if victim.last_step != self.steps:
                self.preempt(victim)
                return self.pool.free > 0
        return False

    def preempt(self, request: Request) -> None:
        """Give up the request's blocks; it waits, first in line, and is computed again from its tokens."""
        self._leave(request)
        request.state, request.computed = State.WAITING, 0
        request.preemptions += 1
        self.preemptions += 1
        self.waiting.appendleft(request)

    def _leave(self, request: Request) -> None:
        """Out of the running requests: its blocks are free once no step in flight can write to them."""
        self.running.remove(request)
        self.pool.release(request.blocks, self.steps - 1 if self.in_flight else None)
        request.blocks = []
        self.block_table[request.seat] = self.sizes.trash_block
        self._seats.append(request.seat)
        request.seat = -1

    # -- settle ------------------------------------------------------------------------------------------------------

    def settle(self, batch: Batch, tokens: list[int], logprobs: list[float] | None) -> list[TokenEvent]:
        """Take in a step's sampled tokens, [R] each. A row whose request has ended is dropped."""
        self.settled = batch.step
        events = []
        for row, request in enumerate(batch.requests):
            if not batch.samples[row]:
                continue
            request.pending -= 1
            if request.state is State.FINISHED:
                self.overruns += 1
                continue
            logprob = logprobs[row] if logprobs is not None and request.params.logprobs else None
            events.append(self._append(request, tokens[row], logprob))
        self.pool.step_ended(batch.step)
        return events

    def _append(self, request: Request, token: int, logprob: float | None) -> TokenEvent:
        request.tokens.append(token)
        if logprob is not None:
            request.logprobs.append(logprob)
        reason = ""
        if token in request.eos_token_ids:
            reason = "eos"
        elif len(request.tokens) >= request.limit:
            reason = "length"
        if reason:
            self.finish(request, reason)
        return TokenEvent(request.id, token, len(request.tokens) - len(request.prompt) - 1, reason, logprob)

    def finish(self, request: Request, reason: str, error: BaseException | None = None) -> None:
        """End a request, wherever it stands."""
        if request.state is State.RUNNING:
            self._leave(request)
        elif request.state is State.WAITING:
            self.waiting.remove(request)
        request.state, request.finish_reason, request.error = State.FINISHED, reason, error

    def restart(self, requests: Iterable[Request]) -> None:
        """After a step was broken off anywhere: nothing is in flight, every block and seat is free, and these requests
        wait to be computed again from the tokens that the host knows."""
        self.settled = self.steps - 1
        self.pool.reset()
        self.block_table.fill(self.sizes.trash_block)
        self._seats = list(range(self.sizes.max_rows - 1, -1, -1))
        self.running.clear()
        self.waiting.clear()
        for request in requests:
            request.state, request.seat, request.blocks = State.WAITING, -1, []
            request.pending = request.computed = 0
            self.submit(request)
