"""The conda files, the constraints and pyproject.toml say the same. Conda itself is not run: these are parsed."""

from __future__ import annotations

import importlib.metadata
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
GPU, CPU = "environment.yml", "environment-cpu.yml"

# conda-forge's names where they differ from PyPI's.
CONDA_NAMES = {
    GPU: {"torch": "pytorch-gpu", "playwright": "playwright-python"},
    CPU: {"torch": "pytorch-cpu", "playwright": "playwright-python"},
}
GPU_PARTS = {"pytorch-gpu", "flash-attn"}


def environment(name: str) -> dict[str, Any]:
    return yaml.safe_load((ROOT / name).read_text())


def conda_specs(name: str) -> dict[str, str]:
    """Package name to version specifier, the pip section left out."""
    lines = [entry for entry in environment(name)["dependencies"] if isinstance(entry, str)]
    parsed = [Requirement(line.replace("python=3", "python==3")) for line in lines]
    return {requirement.name: str(requirement.specifier) for requirement in parsed}


def pyproject_specs(name: str) -> dict[str, str]:
    """What pyproject.toml asks for, under conda-forge's names."""
    extras = ["hf", "lab", "test"] + (["flash"] if name == GPU else [])
    lines = PROJECT["dependencies"] + [line for extra in extras for line in EXTRAS[extra]]
    names = CONDA_NAMES[name]
    return {names.get(r.name, r.name): str(r.specifier) for r in map(Requirement, lines)}


@pytest.mark.parametrize("name", [GPU, CPU])
def test_the_environment_holds_pyprojects_dependencies_with_the_same_ranges(name: str) -> None:
    specs = conda_specs(name)
    assert SpecifierSet(PROJECT["requires-python"]).contains(specs.pop("python").removeprefix("=="))
    assert specs.pop("pip") == ""
    assert specs == pyproject_specs(name)


@pytest.mark.parametrize("name", [GPU, CPU])
def test_the_pip_section_is_last_and_is_labkit_alone(name: str) -> None:
    assert environment(name)["dependencies"][-1] == {"pip": ["--editable ."]}
    assert environment(name)["channels"] == ["conda-forge", "nodefaults"]


def test_the_cpu_environment_is_the_gpu_one_without_its_gpu_parts() -> None:
    gpu, cpu = conda_specs(GPU), conda_specs(CPU)
    assert cpu.pop("pytorch-cpu") == gpu["pytorch-gpu"]
    assert cpu == {name: spec for name, spec in gpu.items() if name not in GPU_PARTS}


def constraints() -> dict[str, Version]:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    pins = {}
    for requirement in map(Requirement, lines):
        (specifier,) = requirement.specifier
        assert specifier.operator == "==", requirement
        assert specifier.version.count("+") == 0, f"{requirement}: a local version exists on one machine only"
        pins[canonicalize_name(requirement.name)] = Version(specifier.version)
    return pins


def requirements_of(extras: list[str]) -> list[Requirement]:
    return [
        Requirement(line) for line in PROJECT["dependencies"] + [line for extra in extras for line in EXTRAS[extra]]
    ]


def test_every_dependency_has_an_exact_version_inside_its_range() -> None:
    pins = constraints()
    for requirement in requirements_of(["hf", "lab", "test", "dev"]):
        assert pins[canonicalize_name(requirement.name)] in requirement.specifier, requirement


def test_everything_that_the_dependencies_bring_is_pinned_too() -> None:
    pins = constraints()
    brought = installed_with(requirements_of(["hf", "lab", "test"]))
    assert brought > {"torch", "jupyterlab", "transformers", "tornado"}
    assert not brought - set(pins), "installed and not in constraints.txt"


def installed_with(requirements: list[Requirement]) -> set[str]:
    """Names of what these requirements bring in this environment, themselves included."""
    seen: set[tuple[str, str]] = set()
    todo = list(requirements)
    while todo:
        requirement = todo.pop()
        for extra in ("", *requirement.extras):
            name = canonicalize_name(requirement.name)
            if (name, extra) not in seen:
                seen.add((name, extra))
                lines = importlib.metadata.requires(name) or []
                todo += [
                    need
                    for need in map(Requirement, lines)
                    if not need.marker or need.marker.evaluate({"extra": extra})
                ]
    return {name for name, _ in seen}
