"""What each step of a run was: which request sat in which row, with which blocks, and where its token came from.

A ``StepLog`` watches an engine from outside (``engine/hooks.py``); its records are plain numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from labkit.engine.batch import Batch
from labkit.engine.scheduler import Scheduler
from labkit.engine.slots import Slot


@dataclass(frozen=True, slots=True)
class RowRecord:
    """One row of a batch.

    request     id of the request
    start       position of the row's first token
    count       tokens of the row: 1 where it decodes, more in a prefill chunk
    samples     whether it samples a token; a chunk that does not reach the end of its prompt samples none
    carry_from  row of the step before whose output is the row's input token, -1 where the host knew the token
    token       what the host wrote as the row's first input token; a placeholder where ``carry_from`` >= 0
    sampled     the token that came back, None where none was sampled or the step was dropped
    blocks      the request's KV blocks, in the order of its tokens
    """

    request: int
    start: int
    count: int
    samples: bool
    carry_from: int
    token: int | None
    sampled: int | None
    blocks: tuple[int, ...]

    @property
    def placeholder(self) -> bool:
        return self.carry_from >= 0


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One step, with the rows that decode first.

    slot           A or B; empty for a step that was dropped before its inputs were written
    decode_rows    how many rows decode
    owners         who has which blocks of the pool after the step was planned: request, blocks; also of requests that
                   are not in this step
    held           blocks that were freed under a step in flight, and are not free yet
    num_blocks     blocks of the pool
    settled        whether its tokens arrived
    """

    step: int
    slot: str
    rows: tuple[RowRecord, ...]
    decode_rows: int
    owners: tuple[tuple[int, tuple[int, ...]], ...]
    held: tuple[int, ...]
    num_blocks: int
    settled: bool

    @property
    def tokens(self) -> int:
        """Tokens in the batch."""
        return sum(row.count for row in self.rows)


@dataclass(eq=False, slots=True)
class _Open:
    """A step that is being recorded."""

    batch: Batch
    owners: dict[int, tuple[int, ...]]
    held: tuple[int, ...]
    num_blocks: int
    slot: str = ""
    tokens: list[int] = field(default_factory=list)
    sampled: list[int] = field(default_factory=list)


class StepLog:
    """An observer that keeps the steps of an engine until they are taken."""

    def __init__(self) -> None:
        self._steps: dict[int, _Open] = {}

    def planned(self, batch: Batch, scheduler: Scheduler) -> None:
        owners, pool = {request.id: tuple(request.blocks) for request in scheduler.running}, scheduler.pool
        self._steps[batch.step] = _Open(batch, owners, tuple(pool.held_blocks), pool.num_blocks)

    def filled(self, slot: Slot, batch: Batch) -> None:
        step, host = self._steps.get(batch.step), slot.host
        if step is not None:
            step.slot = slot.name
            step.tokens = host.token_ids[host.cu_seqlens_q[: batch.rows]].tolist()

    def settled(self, slot: Slot, batch: Batch, tokens: list[int]) -> None:
        step = self._steps.get(batch.step)
        if step is not None:
            step.sampled = tokens

    def take(self) -> tuple[StepRecord, ...]:
        """The steps planned since the last call, in order."""
        steps, self._steps = self._steps, {}
        return tuple(_record(step) for step in steps.values())


def _record(step: _Open) -> StepRecord:
    batch = step.batch
    rows = tuple(
        RowRecord(
            request=request.id,
            start=batch.starts[row],
            count=batch.counts[row],
            samples=batch.samples[row],
            carry_from=batch.carries[row],
            token=step.tokens[row] if step.tokens else None,
            sampled=step.sampled[row] if step.sampled and batch.samples[row] else None,
            blocks=step.owners[request.id],
        )
        for row, request in enumerate(batch.requests)
    )
    return StepRecord(
        step=batch.step,
        slot=step.slot,
        rows=rows,
        decode_rows=batch.shape.decode_rows,
        owners=tuple(step.owners.items()),
        held=step.held,
        num_blocks=step.num_blocks,
        settled=bool(step.sampled),
    )
