"""Steady ms per decode step on a real GPU, by how the model runs and how it is driven, beside the byte floor.

    python benchmarks/gpu_steps.py [--model 8b] [--batch 32] [--context 512,4096] [--forms hf,fused,compiled] ...

The same as ``labkit bench`` over all three forms of the model.
"""

from __future__ import annotations

import sys

from labkit.cli import main


def bandwidth() -> float:
    """Device memory bandwidth of a large copy in GB/s, bytes read plus bytes written."""
    from labkit.device.cuda_rig import CudaRig

    return CudaRig().read_bandwidth()


if __name__ == "__main__":
    sys.exit(main(["bench", "--forms", "hf,fused,compiled", *sys.argv[1:]]))
