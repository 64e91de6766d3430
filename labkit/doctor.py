"""What this machine can run: each part is probed by trying it, and what is missing comes with the line to type."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import platform
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any, Literal

State = Literal["ok", "note", "missing"]

FETCH = "python -m labkit doctor --fetch"
GPU_BUILD = "conda env create -f environment.yml (it asks for the CUDA build by name: pytorch-gpu)"


@dataclass(frozen=True)
class Check:
    """One part. ``state`` is ``ok``, ``note`` (a remark) or ``missing``; ``fix`` is what to type, or empty."""

    name: str
    state: State
    found: str
    fix: str = ""


@dataclass(frozen=True)
class Doctor:
    """The checks, shown as a table; ``print`` it, end a notebook cell with it, or take ``to_dict``."""

    checks: tuple[Check, ...]

    @property
    def complete(self) -> bool:
        """Whether nothing is missing; a note is fine. The engine on the virtual GPU needs none of what can be."""
        return all(check.state != "missing" for check in self.checks)

    def __getitem__(self, name: str) -> Check:
        """The check of that name; KeyError if there is none."""
        for check in self.checks:
            if check.name == name:
                return check
        raise KeyError(name)

    def to_dict(self) -> dict[str, Any]:
        return {"complete": self.complete, "checks": [asdict(check) for check in self.checks]}

    def __str__(self) -> str:
        lines = []
        for check in self.checks:
            lines.append(f"{check.state:<8} {check.name:<13} {check.found}")
            if check.fix:
                lines.append(f"{'':<8} {'':<13} fix: {check.fix}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{check.state}</td><td>{escape(check.name)}</td><td>{escape(check.found)}</td>"
            f"<td><code>{escape(check.fix)}</code></td></tr>"
            for check in self.checks
        )
        head = "".join(f"<th scope='col'>{title}</th>" for title in ("state", "part", "found", "fix"))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def doctor(*, fetch: bool = False) -> Doctor:
    """Probe this machine.

    Args:
        fetch: first load ``smollm2`` once, which converts its weights into the local cache.

    Raises:
        MissingExtra: ``fetch`` without the ``hf`` extra.
    """
    if fetch:
        from labkit.model.hf import load

        load("smollm2")
    return Doctor(tuple(probe() for probe in PROBES))


def nvidia_driver() -> bool:
    """Whether this machine has an NVIDIA driver, whatever torch thinks of it."""
    return Path("/proc/driver/nvidia").exists() or shutil.which("nvidia-smi") is not None


def _python() -> Check:
    return Check("python", "ok", platform.python_version())


def _torch() -> Check:
    import torch

    if torch.version.cuda:
        return Check("torch", "ok", f"{torch.__version__}, built for CUDA {torch.version.cuda}")
    if nvidia_driver():
        return Check("torch", "note", f"{torch.__version__}, a CPU build on a machine with an NVIDIA driver", GPU_BUILD)
    return Check("torch", "ok", f"{torch.__version__}, a CPU build")


def _gpu() -> Check:
    from labkit.device.cuda import probe

    gpu = probe()
    if gpu["available"]:
        failure = _failure(_run_on_gpu)
        if failure:
            return Check("GPU", "note", f"{gpu['name']}: a first operation failed: {failure}", "nvidia-smi")
        return Check("GPU", "ok", gpu["name"])
    if nvidia_driver() and gpu["torch_cuda"]:
        why = (
            f"none that torch can use, although there is an NVIDIA driver: is it too old for CUDA {gpu['torch_cuda']}?"
        )
        return Check("GPU", "note", why, "nvidia-smi")
    return Check("GPU", "note", "none: the lab runs on the virtual GPU")


def _run_on_gpu() -> None:
    import torch

    assert torch.ones(1, device="cuda").add(1).item() == 2


def _package(name: str, extra: str) -> Callable[[], Check]:
    """A probe that imports the package, which the extra brings."""

    def probe() -> Check:
        fix = f"pip install 'labkit[{extra}]'"
        if importlib.util.find_spec(name) is None:
            return Check(name, "missing", "not installed", fix)
        broken = _failure(lambda: importlib.import_module(name))
        return Check(name, "missing", f"broken: {broken}", fix) if broken else Check(name, "ok", _version(name))

    return probe


def _jupyterlab() -> Check:
    """Looked up and not imported: it runs in a process of its own, and its import takes seconds."""
    if importlib.util.find_spec("jupyterlab") is None:
        return Check("jupyterlab", "missing", "not installed", "pip install 'labkit[lab]'")
    return Check("jupyterlab", "ok", _version("jupyterlab"))


def _flash_attn() -> Check:
    """Tried on the GPU, against SDPA: a wheel for another torch or GPU can be installed and still not work."""
    from labkit.device.cuda import probe

    if not probe()["available"]:
        return Check("flash-attn", "note", "not used without a GPU: attention is PyTorch's SDPA")
    import torch

    from labkit.model.flash import choose

    backend = choose(torch.device("cuda"), torch.bfloat16, heads=(8, 2, 64), block_size=256)
    if backend.name == "flash":
        return Check("flash-attn", "ok", f"{_version('flash-attn')}, paged kernels tried")
    instead = {"varlen": "varlen_attn", "sdpa": "SDPA"}[backend.name]
    return Check("flash-attn", "note", f"{backend.why}; attention is PyTorch's {instead}", GPU_BUILD)


def _smollm2() -> Check:
    from labkit.model.weights import SMOLLM2_PIP, smollm2_cache, smollm2_gguf

    gguf = smollm2_gguf()
    if gguf is None:
        return Check("smollm2", "missing", "no weights: loading needs a model hub", SMOLLM2_PIP)
    cache = smollm2_cache(gguf)
    if not cache.is_dir():
        return Check("smollm2", "note", "weights not converted yet: the first load takes longer", FETCH)
    shown = Path("~") / cache.relative_to(Path.home()) if cache.is_relative_to(Path.home()) else cache
    return Check("smollm2", "ok", f"weights in {shown}")


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "installed, version unknown"


def _failure(operation: Callable[[], object]) -> str:
    """Empty if the operation works, else the first line of what it raised."""
    try:
        operation()
    except Exception as error:
        return _first_line(error)
    return ""


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


PROBES: tuple[Callable[[], Check], ...] = (
    _python,
    _torch,
    _gpu,
    _flash_attn,
    _package("transformers", "hf"),
    _package("gguf", "hf"),
    _smollm2,
    _package("plotly", "lab"),
    _package("ipywidgets", "lab"),
    _package("anywidget", "lab"),
    _jupyterlab,
)
