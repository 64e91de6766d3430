"""The carry-over: a token that the host does not know yet is fetched on the device from the previous step's output.

The host writes a placeholder and, beside it, the row of the previous step that sampled the token. Before the forward
pass the device replaces the placeholder. Everything is on the compute stream, after the previous step's sampling, so no
further wait is needed.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from labkit.engine.slots import Slot


def carry_over(token_ids: torch.Tensor, carry_from: torch.Tensor, previous: torch.Tensor) -> None:
    """Replace placeholders in place.

    Args:
        token_ids: ``[D]`` int32, the decode rows' input tokens.
        carry_from: ``[D]`` int32, row of the previous output to take, or -1 to keep the token.
        previous: ``[R]`` int32, the tokens that the previous step sampled.
    """
    fetched = previous[carry_from.clamp(min=0).long()]
    token_ids.copy_(torch.where(carry_from >= 0, fetched, token_ids))


class CarryOver:
    """The mechanism on: one small launch before the forward pass."""

    def kernel(self, slot: Slot, decode_rows: int) -> Callable[[], None] | None:
        """The launch for a slot, or None where no row decodes."""
        if not decode_rows:
            return None
        token_ids, carry_from = slot.dev.token_ids[:decode_rows], slot.dev.carry_from[:decode_rows]
        previous = slot.previous.outputs_dev.tensor[0]
        return lambda: carry_over(token_ids, carry_from, previous)


class HostFeed:
    """The mechanism off: the model gets the tokens that the host wrote, placeholders included."""

    def kernel(self, slot: Slot, decode_rows: int) -> Callable[[], None] | None:
        return None
