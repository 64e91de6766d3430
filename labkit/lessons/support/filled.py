"""What the host wrote for each row of a step: the instrument of lesson 10 for data that is in order and wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from labkit.engine.batch import Batch
from labkit.engine.slots import Slot
from labkit.sizes import Sizes
from labkit.steplog import StepRecord


@dataclass(frozen=True, slots=True)
class FilledRow:
    """One row as the device gets it.

    request     id, or -1 for a padding row
    position    of its first token
    place       in the KV pool, that this token's K and V are written to
    carry_from  row of the previous step's output that holds the token, -1 where the host wrote it
    """

    request: int
    random: bool
    position: int
    place: int
    carry_from: int


class FillLog:
    """An observer (``engine/hooks.py``) that reads every step's host buffer when it has been filled."""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        self.steps: dict[int, tuple[FilledRow, ...]] = {}

    def filled(self, slot: Slot, batch: Batch) -> None:
        padded = self._sizes.pad(batch.rows) if batch.shape.decode_only else batch.rows
        self.steps[batch.step] = tuple(self._row(slot, batch, row) for row in range(padded))

    def _row(self, slot: Slot, batch: Batch, row: int) -> FilledRow:
        host, request = slot.host, batch.requests[row] if row < batch.rows else None
        token = int(host.cu_seqlens_q[row])
        return FilledRow(
            request.id if request else -1,
            request is not None and request.params.temperature > 0,
            int(host.positions[token]),
            int(host.slot_mapping[token]),
            int(host.carry_from[row]),
        )


def rows_text(rows: tuple[FilledRow, ...], step: StepRecord, before: StepRecord | None, sizes: Sizes) -> Iterator[str]:
    """A line for each row: whose it is, ``at`` which position, ``->`` into which block, and whence its token."""
    owners = {block: request for request, blocks in step.owners for block in blocks}
    for number, row in enumerate(rows):
        block = row.place // sizes.block_size
        owner = "trash" if block == sizes.trash_block else f"request {owners[block]}" if block in owners else "free"
        whose = f"request {row.request}{' (random)' if row.random else ''}" if row.request >= 0 else "padding"
        place = f"at {row.position:>2} -> block {block:>2} ({owner})"
        yield f"  row {number}  {whose:<19}{place:<29}  {_source(row, before)}"


def _source(row: FilledRow, before: StepRecord | None) -> str:
    if row.carry_from < 0 or before is None:
        return "token: the host's"
    known = row.carry_from < len(before.rows)
    owner = f"request {before.rows[row.carry_from].request}" if known else "nobody"
    return f"token: row {row.carry_from} of step {before.step} ({owner})"
