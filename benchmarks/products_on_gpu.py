"""The matrix products of a decode step, plain and with a bias of zeros: two libraries take different kernels for them.

    python benchmarks/products_on_gpu.py [--shape 8B] [--rows 1,8,16,24,32,48,64,128,256]

Each cell is microseconds of one product of ``[rows, K]`` with a weight ``[N, K]`` in bfloat16, the best of six replays
of a CUDA graph over enough weights that none is still in the L2 cache; the gaps between kernels are in it. Without a
bias PyTorch asks cuBLAS, with one cuBLASLt; the fused form of a model (labkit/model/fused.py) does the second for the
O and down products at the row counts where it is faster. The floor is the bytes of the weight over the bandwidth of a
large copy.
"""

from __future__ import annotations

import argparse

import torch
import torch.nn.functional as F
from gpu_common import header, table

from labkit.device.cuda_rig import CudaRig
from labkit.model.hf_shapes import SHAPES

REPLAYS, BYTES = 6, 4 << 30  # the weights of one graph together: far more than an L2 cache


def products(shape: str) -> dict[str, tuple[int, int]]:
    """(N, K) of each product."""
    config = SHAPES[shape.lower()]()
    hidden, wide, heads = config.hidden_size, config.intermediate_size, config.num_attention_heads
    size = getattr(config, "head_dim", None) or hidden // heads
    qkv = (heads + 2 * config.num_key_value_heads) * size
    return {
        "QKV": (qkv, hidden),
        "O": (hidden, heads * size),
        "gate-up": (2 * wide, hidden),
        "down": (hidden, wide),
        "lm head": (config.vocab_size, hidden),
    }


def product_us(rows: int, weights: list[torch.Tensor], bias: torch.Tensor | None) -> float:
    """Microseconds of one product of so many rows."""
    x = torch.randn(rows, weights[0].shape[1], device="cuda", dtype=weights[0].dtype)
    F.linear(x, weights[0], bias)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for weight in weights:
            F.linear(x, weight, bias)
    best = float("inf")
    for _ in range(REPLAYS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        best = min(best, start.elapsed_time(end))
    return best * 1e3 / len(weights)


@torch.inference_mode()
def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", default="8B")
    parser.add_argument("--rows", default="1,8,16,24,32,48,64,128,256")
    arguments = parser.parse_args()
    header()
    bandwidth = CudaRig().read_bandwidth()
    rows = [int(count) for count in arguments.rows.split(",")]
    cells: list[tuple[object, ...]] = [("product", "bias", "floor", *(f"{count} rows" for count in rows))]
    for name, (n, k) in products(arguments.shape).items():
        weights = [torch.randn(n, k, device="cuda", dtype=torch.bfloat16) for _ in range(max(2, BYTES // (2 * n * k)))]
        zeros = torch.zeros(n, device="cuda", dtype=torch.bfloat16)
        floor = 2 * n * k / bandwidth / 1e3
        for what, bias in (("none", None), ("zeros", zeros)):
            times = (f"{product_us(count, weights, bias):.1f}" for count in rows)
            cells.append((name, what, f"{floor:.1f}", *times))
        del weights
        torch.cuda.empty_cache()
    table(cells)


if __name__ == "__main__":
    main()
