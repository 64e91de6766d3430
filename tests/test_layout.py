"""The rules of DESIGN.md that can be read off the source: who imports what, who reads switches, which test is where.

Each rule is a function from a source text to the places that break it, and is first tried on a text that does.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from labkit.switches import SWITCHES

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "labkit"
SOURCES = sorted(PACKAGE.rglob("*.py"))
WIDGETS = {"plotly", "ipywidgets", "anywidget"}
OPTIONAL = WIDGETS | {
    "transformers",
    "gguf",
    "accelerate",
    "safetensors",
    "jupyterlab",
    "ipykernel",
    "IPython",
    "flash_attn",
}
LONGEST_FILE = 300  # lines; a longer one gives its reason in DESIGN.md


def name_of(path: Path) -> str:
    """``engine/loop.py`` for a file of the package."""
    return path.relative_to(PACKAGE).as_posix()


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and full dotted name of everything that is imported, wherever the statement stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute here, so that these rules see them"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def without_type_checking(tree: ast.Module) -> ast.Module:
    """The module without its ``if TYPE_CHECKING`` blocks: naming a type is not reading a value."""

    class Drop(ast.NodeTransformer):
        def visit_If(self, node: ast.If) -> ast.AST | None:
            return None if "TYPE_CHECKING" in ast.unparse(node.test) else self.generic_visit(node)

    return Drop().visit(tree)


def imports_of(source: str, packages: set[str]) -> list[str]:
    """Imports of these packages or anything below them."""
    found = imports(ast.parse(source))
    return [f"{line}: {name}" for line, name in found if any(f"{name}.".startswith(f"{p}.") for p in packages)]


def uses_of_torch_cuda(source: str) -> list[str]:
    tree = ast.parse(source)
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "cuda"]
    used = [node.lineno for node in attributes if ast.unparse(node.value) == "torch"]
    imported = [line for line, name in imports(tree) if f"{name}.".startswith("torch.cuda.")]
    return [f"{line}: torch.cuda" for line in sorted(used + imported)]


def reads_of_switches(source: str) -> list[str]:
    """Imports of the switches, and a mechanism read off something called switches."""
    tree = without_type_checking(ast.parse(source))
    found = [f"{line}: {name}" for line, name in imports(tree) if f"{name}.".startswith("labkit.switches.")]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in {*SWITCHES, "on"}:
            owner = ast.unparse(node.value)
            if owner.split(".")[-1] in ("switches", "_switches"):
                found.append(f"{node.lineno}: {owner}.{node.attr}")
    return found


def reads_of_the_environment(source: str) -> list[str]:
    tree = ast.parse(source)
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    used = [n.lineno for n in attributes if ast.unparse(n) in ("os.environ", "os.getenv", "os.environb")]
    imported = [line for line, name in imports(tree) if name in ("os.environ", "os.getenv")]
    return [f"{line}: environment" for line in sorted(used + imported)]


HIGHER = {f"labkit.{part}" for part in ("trace", "analysis", "viz", "lessons")}


def outside(*allowed: str) -> Callable[[str], bool]:
    return lambda name: not name.startswith(allowed)


# Title, where the rule holds, the rule, and a text that breaks it once.
RULES: list[tuple[str, Callable[[str], bool], Callable[[str], list[str]], str]] = [
    (
        "the engine imports nothing that looks at it",
        lambda name: name.startswith("engine/"),
        lambda source: imports_of(source, HIGHER),
        "def f():\n    from labkit.trace import recorder",
    ),
    (
        "plotly and widgets are imported in viz alone",
        outside("viz/"),
        lambda source: imports_of(source, WIDGETS),
        "import plotly.graph_objects as go",
    ),
    (
        "transformers is imported in model/hf*.py alone",
        outside("model/hf"),
        lambda source: imports_of(source, {"transformers", "gguf"}),
        "try:\n    from transformers import AutoModel\nexcept ImportError:\n    pass",
    ),
    (
        "torch.cuda is used in device/cuda.py and model/attention.py alone",
        outside("device/cuda", "model/attention.py"),
        uses_of_torch_cuda,
        "import torch\ntorch.cuda.synchronize()",
    ),
    (
        "of the engine, device, model and trace only assemble.py reads switches",
        lambda name: name.startswith(("engine/", "device/", "model/", "trace/")) and name != "engine/assemble.py",
        reads_of_switches,
        "def f(self):\n    return self.switches.lookahead",
    ),
    (
        "no setting comes from the environment (the cache directory is the system's, not a setting)",
        outside("model/weights.py"),
        reads_of_the_environment,
        "import os\nos.environ['LABKIT_FAST']",
    ),
]


@pytest.mark.parametrize(("holds", "rule", "bad"), [rule[1:] for rule in RULES], ids=[rule[0] for rule in RULES])
def test_rule(holds: Callable[[str], bool], rule: Callable[[str], list[str]], bad: str) -> None:
    assert len(rule(bad)) == 1, "the rule does not see what breaks it"
    files = [path for path in SOURCES if holds(name_of(path))]
    assert files
    broken = {name_of(path): found for path in files if (found := rule(path.read_text()))}
    assert not broken


def test_naming_a_type_is_not_reading_switches() -> None:
    assert reads_of_switches("if TYPE_CHECKING:\n    from labkit.switches import Switches") == []
    assert reads_of_switches("from labkit.switches import Switches") == ["1: labkit.switches.Switches"]


# Modules without a unit test of their own name, and the tests that cover them.
TESTED_ELSEWHERE = {
    "engine/": "tests/engine",  # the whole engine, case by case
    "device/": "tests/devices",  # one contract suite for every device
    "model/api.py": "tests/unit/model/test_hf.py",
    "model/decoder.py": "tests/unit/model/test_hf.py",
    "model/flash.py": "tests/unit/model/test_attention.py",
    "model/varlen.py": "tests/unit/model/test_attention.py",
    "trace/captured.py": "tests/unit/trace/test_export.py",
    "viz/compare_drawing.py": "tests/unit/viz/test_compare.py",
    "viz/sides.py": "tests/unit/viz/test_compare.py",
    "viz/drawing.py": "tests/unit/viz/test_figures.py",
}


def test_unit_tests_mirror_the_package() -> None:
    modules = {name_of(path) for path in SOURCES if not path.name.startswith("__")}
    tests = ROOT / "tests" / "unit"
    tested = {path.relative_to(tests).as_posix().replace("test_", "") for path in tests.rglob("test_*.py")}
    assert sorted(tested - modules) == [], "tests/unit/a/test_b.py tests labkit/a/b.py, and these modules do not exist"
    own = {name for name in modules if not name.startswith(tuple(TESTED_ELSEWHERE))}
    assert sorted(own - tested) == [], "these modules have no tests/unit/.../test_NAME.py"


@pytest.mark.parametrize("where", sorted(set(TESTED_ELSEWHERE.values())))
def test_tests_that_cover_other_modules_exist(where: str) -> None:
    path = ROOT / where
    assert path.is_file() or list(path.glob("test_*.py"))


def test_a_long_file_gives_its_reason() -> None:
    reasons = (ROOT / "DESIGN.md").read_text()
    long = {name_of(path): n for path in SOURCES if (n := len(path.read_text().splitlines())) > LONGEST_FILE}
    assert not {name: lines for name, lines in long.items() if name not in reasons}


def test_the_public_names_are_exactly_all() -> None:
    import labkit

    public = {name for name, value in vars(labkit).items() if not name.startswith("_") and not is_module(value)}
    assert public == {name for name in labkit.__all__ if not name.startswith("_")}


def is_module(value: object) -> bool:
    return type(value) is type(sys)


BLOCKED_IMPORT = f"""
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {sorted(OPTIONAL)!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}} (blocked)", name=name)

sys.meta_path.insert(0, Blocked())
"""

RUN_TOY = """
from labkit import Engine, ladder
with Engine.from_pretrained("toy", switches=ladder("carry_over"), device="virtual") as engine:
    run = engine.generate([[1, 2, 3]], max_new_tokens=4)
print(len(run.tokens[0]))
"""


def run_blocked(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BLOCKED_IMPORT + code], cwd=ROOT, capture_output=True, text=True, timeout=120
    )


def test_torch_alone_is_enough_to_import_labkit_and_to_generate() -> None:
    result = run_blocked(RUN_TOY)
    assert (result.returncode, result.stdout.strip()) == (0, "4"), result.stderr


def test_the_blocked_packages_are_really_blocked() -> None:
    result = run_blocked("import plotly")
    assert result.returncode == 1
    assert "blocked" in result.stderr
