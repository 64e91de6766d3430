"""The smallest scheduler that drives a Model: block tables, ragged batches, greedy decoding. No streams, no slots."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import torch

from labkit.model.api import BatchInputs, BatchShape, Model
from labkit.model.kv_cache import allocate, pool_slots


@dataclass(eq=False)
class Row:
    """One request: its tokens so far, how many of them are in the cache, and its blocks."""

    tokens: list[int]
    cached: int = 0
    end: int = 0  # stop at this many tokens
    blocks: list[int] = field(default_factory=list)
    generated: bool = False


class PagedDriver:
    """A model, a pool filled with NaN (or with ``fill``), and blocks handed out in shuffled order."""

    def __init__(
        self,
        model: Model,
        block_size: int,
        num_blocks: int = 64,
        columns: int = 16,
        device: str = "cpu",
        fill: float = float("nan"),
    ) -> None:
        self.model, self.block_size, self.columns, self.device = model, block_size, columns, device
        self.trash = num_blocks
        self.kv = allocate(model.kv_specs(), num_blocks, block_size, device, fill=fill)
        self.free = random.Random(7).sample(range(num_blocks), num_blocks)

    def batch(self, decode: list[Row], prefill: list[tuple[Row, int]], context: int | None = None) -> BatchInputs:
        """One step's inputs: one token of each decode row, then a chunk of each prefill row."""
        rows = [(row, 1) for row in decode] + prefill
        spans = [(row, row.cached, row.cached + count) for row, count in rows]
        for row, _, stop in spans:
            while len(row.blocks) * self.block_size < stop:
                row.blocks.append(self.free.pop())
        lengths = [count for _, count in rows]
        starts = [sum(lengths[:i]) for i in range(len(rows) + 1)]
        longest = max(stop for _, _, stop in spans)
        return BatchInputs(
            token_ids=self._ints([token for row, start, stop in spans for token in row.tokens[start:stop]]),
            positions=self._ints([pos for _, start, stop in spans for pos in range(start, stop)]),
            slot_mapping=self._ints(
                [slot for row, start, stop in spans for slot in pool_slots(row.blocks, start, stop, self.block_size)]
            ),
            cu_seqlens_q=self._ints(starts),
            seq_lens=self._ints([stop for _, _, stop in spans]),
            block_table=self._ints([(row.blocks + [self.trash] * self.columns)[: self.columns] for row, _ in rows]),
            output_index=self._ints([start - 1 for start in starts[1:]]),
            shape=BatchShape(len(rows), starts[-1], len(decode), max(lengths), context or longest),
        )

    def step(self, decode: list[Row], prefill: list[tuple[Row, int]], context: int | None = None) -> torch.Tensor:
        """Logits ``[R, V]`` of one step, whose tokens count as cached afterwards."""
        logits = self.model.forward(self.batch(decode, prefill, context), self.kv)
        for row, count in [(row, 1) for row in decode] + prefill:
            row.cached += count
        return logits

    def greedy(self, prompts: list[list[int]], new_tokens: int, chunk: int) -> list[list[int]]:
        """Generated tokens of each prompt; a request joins every second step, so steps mix decode and prefill."""
        rows = [Row(list(prompt), end=len(prompt) + new_tokens) for prompt in prompts]
        step = 0
        while not all(self._done(row) for row in rows):
            self._advance([row for row in rows[: 1 + step // 2] if not self._done(row)], chunk)
            step += 1
        return [row.tokens[len(prompt) :] for row, prompt in zip(rows, prompts, strict=True)]

    def _advance(self, live: list[Row], chunk: int) -> None:
        left = {id(row): len(row.tokens) - row.cached for row in live}
        decode = [row for row in live if left[id(row)] == 1]
        prefill = [(row, min(chunk, left[id(row)])) for row in live if left[id(row)] > 1]
        if not live:  # the next request has not joined yet
            return
        tokens = self.step(decode, prefill).argmax(-1).tolist()
        for row, token in zip([*decode, *(row for row, _ in prefill)], tokens, strict=True):
            if row.cached == len(row.tokens):
                row.tokens.append(token)
                row.generated = True

    def _done(self, row: Row) -> bool:
        return len(row.tokens) == row.end or (row.generated and row.tokens[-1] in self.model.eos_token_ids)

    def _ints(self, values: list) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.int32, device=self.device)
