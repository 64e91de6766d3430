"""What the benchmarks for a real GPU share: what machine this is, models by shape, and how long a part took."""

from __future__ import annotations

import datetime
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

from labkit.model.hf import HFModel, random_model
from labkit.model.hf_shapes import SHAPES


def about() -> dict[str, str]:
    """GPU, versions of what matters, date (UTC) and command line."""
    return {
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else "none",
        "python": platform.python_version(),
        **{name: _version(name) for name in ("torch", "transformers", "flash-attn")},
        "cuda": str(torch.version.cuda),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "command": " ".join(["python", *sys.argv]),
    }


def header() -> None:
    """One line that says where the numbers below it come from."""
    print(", ".join(f"{name} {value}" if name != "gpu" else value for name, value in about().items()), flush=True)


def shaped(shape: str, *, layers: int | None = None, dtype: torch.dtype = torch.bfloat16, seed: int = 0) -> HFModel:
    """A Llama shape (``135M``, ``1B``, ``8B``) with seeded random weights, made on the GPU (CPU if there is none)."""
    config = SHAPES[shape.lower()]()
    if layers:
        config.num_hidden_layers = layers
    name = f"llama-{shape}" + (f"-{layers}-layers" if layers else "")
    return HFModel(random_model(config, seed, dtype, where(), std=None), name=name)


def where() -> torch.device:
    """The GPU, or the CPU where there is none."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


@contextmanager
def took(what: str) -> Iterator[None]:
    """Say how long a part took."""
    start = time.perf_counter()
    yield
    print(f"  ({what}: {time.perf_counter() - start:.1f} s)", flush=True)


def table(rows: list[tuple[Any, ...]]) -> None:
    """Columns, the first row their names; numbers to the right."""
    texts = [tuple(f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    for text, row in zip(texts, [rows[-1], *rows[1:]], strict=True):
        cells = [
            t.ljust(width) if isinstance(cell, str) else t.rjust(width)
            for t, width, cell in zip(text, widths, row, strict=True)
        ]
        print("  ".join(cells).rstrip(), flush=True)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"
