"""Memory of CUDA graphs: both slots and all sizes in one pool, against a pool for each graph.

    python benchmarks/graph_memory.py [--layers 4] [--rows 32,256] [--shape 8B] [--form modules]

For each largest batch the engine captures its graphs twice, and the segments of PyTorch's caching allocator that belong
to private pools are counted (``torch.cuda.memory_snapshot``): reserved is what the pools have taken from the GPU,
allocated what the graphs' tensors use of it. Fewer layers give the same numbers, since a layer's intermediates are
freed before the next layer runs; that is checked with --layers. The warm-up's own memory is not in private pools.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Sequence
from typing import Any

import torch
from gpu_common import header, shaped, table, took

from labkit.device.cuda import CudaDevice
from labkit.engine.assemble import assemble
from labkit.model.api import Model
from labkit.model.fused import FusedModel
from labkit.sizes import Sizes
from labkit.switches import ladder

MIB = 1 << 20


class OwnPools(CudaDevice):
    """Every capture gets a memory pool of its own."""

    def capture(self, name: str, stream: Any, pool: Any = None) -> Any:
        return super().capture(name, stream, None)


def private_pools() -> tuple[int, int, int]:
    """How many private pools hold memory, bytes reserved for them, and bytes in use in them."""
    segments = [s for s in torch.cuda.memory_snapshot() if tuple(s["segment_pool_id"]) != (0, 0)]
    pools = {tuple(segment["segment_pool_id"]) for segment in segments}
    return len(pools), sum(s["total_size"] for s in segments), sum(s["allocated_size"] for s in segments)


def measure(model: Model, device: CudaDevice, rows: int) -> tuple[int, int, int, int, float]:
    """Graphs, pools, bytes reserved, bytes allocated, seconds for all captures."""
    size = model.preferred_block_size
    sizes = Sizes(max_rows=rows, token_budget=max(256, rows), block_size=size, num_blocks=rows, max_model_len=size)
    gc.collect()
    torch.cuda.empty_cache()
    before = private_pools()  # nothing, unless the process holds graphs of its own
    start = time.perf_counter()
    core = assemble(ladder("cuda_graphs"), sizes, device, model)
    seconds = time.perf_counter() - start
    pools, reserved, allocated = (now - then for now, then in zip(private_pools(), before, strict=True))
    graphs = len(core.launcher.graphs)  # type: ignore[union-attr]
    core.close()
    return graphs, pools, reserved, allocated, seconds


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", default="8B")
    parser.add_argument("--layers", default="4")
    parser.add_argument("--rows", default="32,256")
    parser.add_argument("--form", default="modules", choices=["modules", "merged"])
    arguments = parser.parse_args(argv)
    header()
    lines: list[tuple[object, ...]] = [
        ("model", "rows up to", "graphs", "memory", "pools", "reserved MiB", "allocated MiB", "seconds")
    ]
    with took("graph memory"):
        for layers in map(int, arguments.layers.split(",")):
            base = shaped(arguments.shape, layers=layers)
            model = base if arguments.form == "modules" else FusedModel(base)
            for rows in map(int, arguments.rows.split(",")):
                for what, kind in (("one pool", CudaDevice), ("one pool each", OwnPools)):
                    graphs, pools, reserved, allocated, seconds = measure(model, kind(), rows)
                    numbers = (pools, round(reserved / MIB, 1), round(allocated / MIB, 1), seconds)
                    lines.append((f"{base.name}, {arguments.form}", rows, graphs, what, *numbers))
            del base, model
    table(lines)


if __name__ == "__main__":
    main()
