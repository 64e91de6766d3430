"""How big things are: frozen numbers, derived ones properties. Mechanisms are in ``switches``, costs in ``costs``."""

from __future__ import annotations

from dataclasses import dataclass, fields

from labkit.errors import InvalidArgument


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Capacities of an engine.

    max_rows       requests in one batch, R
    token_budget   tokens in one batch, T: decode rows plus prefill chunks; below max_rows, rows take turns
    block_size     tokens per KV block
    num_blocks     KV blocks in the pool; one more, the trash block, takes the writes of padding rows
    max_model_len  prompt plus generated tokens of one request
    graph_rows     row counts that a CUDA graph is captured for, ascending up to max_rows; () takes 1, 2, 4, 8, then
                   every 8: more sizes waste fewer padding rows and cost memory and start-up time
    """

    max_rows: int = 32
    token_budget: int = 256
    block_size: int = 16
    num_blocks: int = 1024
    max_model_len: int = 2048
    graph_rows: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name in COUNTS:
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InvalidArgument(name, value, "a size is an integer of at least 1")
        rows = self.graph_rows
        whole = isinstance(rows, tuple) and all(type(count) is int for count in rows)
        if not whole or (rows and (sorted({*rows}) != [*rows] or rows[0] < 1 or rows[-1] != self.max_rows)):
            raise InvalidArgument(
                "graph_rows", rows, f"ascending row counts, the last max_rows ({self.max_rows}); or ()"
            )

    @property
    def blocks_per_request(self) -> int:
        """Columns of the block table, M."""
        return -(-self.max_model_len // self.block_size)

    @property
    def kv_slots(self) -> int:
        """Token places in the pool, the trash block not counted."""
        return self.num_blocks * self.block_size

    @property
    def trash_block(self) -> int:
        """Index of the block that padding rows write to."""
        return self.num_blocks

    @property
    def padded_rows(self) -> tuple[int, ...]:
        """Row counts that a CUDA graph is captured for, ascending."""
        if self.graph_rows:
            return self.graph_rows
        small = [n for n in (1, 2, 4) if n < self.max_rows]
        return (*small, *range(8, self.max_rows, 8), self.max_rows)

    def pad(self, rows: int) -> int:
        """The smallest captured row count that holds ``rows``."""
        return next(size for size in self.padded_rows if size >= rows)


COUNTS: tuple[str, ...] = tuple(field.name for field in fields(Sizes) if field.name != "graph_rows")
