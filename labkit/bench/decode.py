"""An engine in the state that benchmarks are about: every request decodes, at a chosen context length."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from labkit.device.api import Device
from labkit.engine.assemble import assemble
from labkit.engine.sampling import SamplingParams
from labkit.experiments import synthetic_prompts
from labkit.model.api import BatchInputs, Model
from labkit.sizes import Sizes
from labkit.switches import Switches

WARM = 6  # steps before anything is measured: the first replay of a graph uploads it
PREFILL = 8192  # tokens in a step while prompts are taken in


class Prefilled:
    """A model whose prompts are in the cache already, with random K and V: steps with a prompt in them cost nothing.

    A decode step takes as long as after a real prefill, since its kernels do not depend on what K and V are.
    """

    def __init__(self, model: Model, block_size: int) -> None:
        self.model, self.block_size = model.for_block_size(block_size), block_size
        self._filled: set[int] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def for_block_size(self, block_size: int) -> Prefilled:
        return self if block_size == self.block_size else Prefilled(self.model, block_size)

    def forward(self, inputs: BatchInputs, kv: Sequence[torch.Tensor]) -> torch.Tensor:
        if inputs.shape.decode_only:
            return self.model.forward(inputs, kv)
        for tensor in kv:
            if tensor.is_floating_point() and tensor.data_ptr() not in self._filled:
                self._filled.add(tensor.data_ptr())
                tensor.normal_()
        return torch.zeros(inputs.shape.rows, self.vocab_size, device=inputs.token_ids.device)


@dataclass(frozen=True)
class Steady:
    """Step times of a steady state, ns. ``blocks`` are the medians of stretches of steps, in order."""

    blocks: tuple[float, ...]
    p95: float

    @property
    def ns(self) -> float:
        """The median of the quietest stretch: a host that others use too is disturbed for a while, then is not."""
        return min(self.blocks)

    @property
    def ms(self) -> float:
        return self.ns / 1e6


def decode_sizes(batch: int, longest: int, block_size: int) -> Sizes:
    """Room for ``batch`` requests of ``longest`` tokens, and one graph size."""
    room = longest + prefill_steps(batch, longest)
    return Sizes(
        max_rows=batch,
        token_budget=max(batch, PREFILL),
        block_size=block_size,
        max_model_len=room,
        num_blocks=batch * -(-room // block_size),
        graph_rows=(batch,),
    )


def prefill_steps(batch: int, context: int) -> int:
    """Steps until all prompts are taken in, in which the first requests decode already."""
    return -(-batch * context // PREFILL) + 1


class Decode:
    """``batch`` requests on one engine; ``start`` brings them to a context length, again and again.

    Args:
        longest: tokens of the longest context that will be asked for, generated ones included.
        observers: see ``engine/hooks.py``.
    """

    def __init__(
        self,
        model: Model,
        switches: Switches,
        device: Device,
        *,
        batch: int,
        longest: int,
        block_size: int,
        observers: Iterable[Any] = (),
    ) -> None:
        self.device, self.batch = device, batch
        sizes = decode_sizes(batch, longest, block_size)
        self.core = assemble(switches, sizes, device, model, observers=observers)

    def start(self, context: int, steps: int) -> None:
        """End what runs, and bring all requests to ``context`` tokens or a few more; ``steps`` will be asked for."""
        self.finish()
        room = steps + 2 * WARM + prefill_steps(self.batch, context)
        params = SamplingParams(max_new_tokens=room, eos_token_ids=())
        for prompt in synthetic_prompts(self.core.model, self.batch, context - WARM):
            self.core.submit(prompt, params)
        scheduler = self.core.scheduler
        while scheduler.waiting or any(not request.generated for request in scheduler.running):
            self.core.step()
        self.steps(WARM)

    def finish(self) -> None:
        """Cancel every request and let the steps in flight end."""
        for request in list(self.core.scheduler.running):
            self.core.cancel(request.id)
        self.run_out()

    def run_out(self) -> None:
        """Run what there is to its end."""
        while self.core.busy:
            self.core.step()

    def steps(self, count: int) -> list[int]:
        """Time of each of the next steps, ns on the device's clock."""
        clock, step, times = self.device.now_ns, self.core.step, []
        last = clock()
        for _ in range(count):
            step()
            now = clock()
            times.append(now - last)
            last = now
        return times

    def steady(self, context: int, steps: int, blocks: int = 3) -> Steady:
        """Step times around ``context``."""
        total = steps * blocks
        self.start(max(WARM + 1, context - total // 2), total)
        times = [self.steps(steps) for _ in range(blocks)]
        p95 = statistics.quantiles([t for block in times for t in block], n=20)[-1]
        return Steady(tuple(statistics.median(block) for block in times), p95)

    def close(self) -> None:
        """Free the engine's memory."""
        self.core.close()

    def __enter__(self) -> Decode:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
