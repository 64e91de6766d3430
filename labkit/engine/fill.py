"""Write a planned batch into a slot's host buffer: the whole of the ``fill`` phase."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from labkit.engine.batch import Batch
from labkit.engine.scheduler import Scheduler
from labkit.sizes import Sizes

PLACEHOLDER = 0  # a real token id, so that an index is in range even where the placeholder reaches the model


class Filler:
    """Fills slots; holds the constant arrays that padding is copied from."""

    def __init__(self, sizes: Sizes, scheduler: Scheduler) -> None:
        self.sizes, self.scheduler = sizes, scheduler
        self._ramp = np.arange(max(sizes.max_rows, sizes.token_budget) + 1, dtype=np.int32)
        self._trash = sizes.num_blocks * sizes.block_size + self._ramp % sizes.block_size

    def fill(self, host: SimpleNamespace, batch: Batch) -> None:
        """Fill every field for the batch's rows, and padding up to the size a graph would replay."""
        rows = batch.rows
        starts = np.array(batch.starts, np.int32)
        counts = np.array(batch.counts, np.int32)
        seats = np.array([request.seat for request in batch.requests], np.intp)
        host.seq_lens[:rows] = starts + counts
        host.sample_position[:rows] = host.seq_lens[:rows]
        host.carry_from[:rows] = batch.carries
        host.block_table[:rows] = self.scheduler.block_table[seats]
        if batch.random:
            self._fill_sampling(host, rows, seats)
        self._fill_decodes(host, batch, starts, seats)
        if batch.shape.decode_only:
            self._pad(host, rows, self.sizes.pad(rows))
        else:
            self._fill_chunks(host, batch, counts)

    def _fill_sampling(self, host: SimpleNamespace, rows: int, seats: np.ndarray) -> None:
        for name in ("temperature", "top_p", "top_k", "seed"):
            getattr(host, name)[:rows] = getattr(self.scheduler, name)[seats]

    def _fill_decodes(self, host: SimpleNamespace, batch: Batch, starts: np.ndarray, seats: np.ndarray) -> None:
        """Rows of one token: token i belongs to row i."""
        count = batch.shape.decode_rows
        host.token_ids[:count] = [
            PLACEHOLDER if request.pending and start >= len(request.tokens) else request.tokens[start]
            for request, start in zip(batch.requests[:count], batch.starts, strict=False)
        ]
        positions = starts[:count]
        host.positions[:count] = positions
        block_size = self.sizes.block_size
        blocks = self.scheduler.block_table[seats[:count], positions // block_size]
        host.slot_mapping[:count] = blocks * block_size + positions % block_size
        host.cu_seqlens_q[: count + 1] = self._ramp[: count + 1]
        host.output_index[:count] = self._ramp[:count]

    def _fill_chunks(self, host: SimpleNamespace, batch: Batch, counts: np.ndarray) -> None:
        """Rows of several tokens, one after the other."""
        rows, at, block_size = batch.rows, batch.shape.decode_rows, self.sizes.block_size
        for row in range(batch.shape.decode_rows, rows):
            request, start, count = batch.requests[row], batch.starts[row], batch.counts[row]
            positions = np.arange(start, start + count, dtype=np.int32)
            host.token_ids[at : at + count] = request.tokens[start : start + count]
            host.positions[at : at + count] = positions
            blocks = self.scheduler.block_table[request.seat, positions // block_size]
            host.slot_mapping[at : at + count] = blocks * block_size + positions % block_size
            at += count
        host.cu_seqlens_q[0] = 0
        host.cu_seqlens_q[1 : rows + 1] = np.cumsum(counts)
        host.output_index[:rows] = host.cu_seqlens_q[1 : rows + 1] - 1

    def _pad(self, host: SimpleNamespace, rows: int, padded: int) -> None:
        """Rows that a graph computes for nothing: one token each, written to and read from the trash block."""
        host.token_ids[rows:padded] = PLACEHOLDER
        host.positions[rows:padded] = 0
        host.carry_from[rows:padded] = -1
        host.seq_lens[rows:padded] = 1
        host.slot_mapping[rows:padded] = self._trash[rows:padded]
        host.block_table[rows:padded] = self.sizes.trash_block
        host.cu_seqlens_q[rows : padded + 1] = self._ramp[rows : padded + 1]
        host.output_index[rows:padded] = self._ramp[rows:padded]
        host.temperature[rows:padded] = 0
