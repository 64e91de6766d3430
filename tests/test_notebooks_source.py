"""The course as its sources say it.

Every notebook is built from one, uses each exercise of its lesson once, asks before it runs, and links rules that are
there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from labkit.lessons import exercises, lessons, stored
from notebooks import build

ROOT = Path(__file__).parent.parent
NAMES = build.names()
COURSE = [
    "00_start_here",
    "01_continuous_batching",
    "02_synchronous",
    "03_streams",
    "04_events",
    "05_double_buffering",
    "06_carry_over",
    "07_cuda_graphs",
    "08_full_async",
    "09_your_gpu",
    "10_detective",
]
EXERCISES = 30  # in the whole course
EXERCISES_EACH = {name: 0 if name < "01" else 1 if name < "02" else 10 if name >= "10" else 3 for name in COURSE}
RULE = re.compile(r"^(\d+)\. ", re.MULTILINE)
RULES_LINKED = re.compile(r"\[rules? ([^\]]+)\]\((?:\.\./)+docs/semantics\.md(?:#[^)]*)?\)")
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)")

each_name = pytest.mark.parametrize("name", NAMES)


def text_of(name: str) -> str:
    return (build.SOURCES / f"{name}.md").read_text(encoding="utf-8")


def semantics() -> str:
    """The numbered rules of the semantics document: those of section 1."""
    return (ROOT / "docs" / "semantics.md").read_text(encoding="utf-8").partition("\n## 2.")[0].partition("\n## 1.")[2]


def test_the_course_is_complete() -> None:
    assert NAMES == COURSE
    assert sorted(path.stem for path in build.HERE.glob("*.ipynb")) == COURSE


@pytest.mark.parametrize("solved", [False, True], ids=["unsolved", "solved"])
@each_name
def test_a_notebook_is_what_its_source_builds(name: str, solved: bool) -> None:
    if not solved or build.own_exercises(name):
        assert build.differences(name, solved) == []


def test_there_is_no_solved_notebook_without_a_source() -> None:
    assert {path.stem for path in build.SOLUTIONS.glob("*.ipynb")} == {
        name for name in NAMES if build.own_exercises(name)
    }


def test_every_lesson_has_a_notebook() -> None:
    assert set(lessons()) <= set(NAMES)


@each_name
def test_every_exercise_is_used_once(name: str) -> None:
    used = re.findall(r'^```python exercise="(\w+)"$', text_of(name), re.MULTILINE)
    assert sorted(used) == sorted(it.name for it in build.own_exercises(name))


@pytest.mark.parametrize("name", COURSE)
def test_there_are_enough_exercises_in(name: str) -> None:
    assert len(build.own_exercises(name)) >= EXERCISES_EACH[name]


def test_there_are_enough_exercises() -> None:
    assert len(exercises()) >= EXERCISES


# What a text has to have. Each rule is a function from a source's text to what breaks it.


def linked_rules(text: str) -> list[int]:
    """``[rules 2 and 17](../docs/semantics.md)`` gives 2 and 17."""
    return [int(number) for group in RULES_LINKED.findall(text) for number in re.findall(r"\d+", group)]


def unknown_rules(text: str) -> list[str]:
    known = set(map(int, RULE.findall(semantics())))
    return [f"rule {number}" for number in linked_rules(text) if number not in known]


def unlinked_rules(text: str) -> list[str]:
    """A rule that is named without a link, outside of code."""
    prose = re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)
    return re.findall(r"\brules? \d+", re.sub(r"\[[^\]]*\]\([^)]*\)", "", prose))


def broken_links(text: str) -> list[str]:
    return [link for link in LINK.findall(text) if not (build.HERE / link).exists()]


def no_device_line(text: str) -> list[str]:
    found = text.split("\n").count(stored.DEVICE_LINE)
    return [] if found == 1 else [f"{found} lines {stored.DEVICE_LINE}"]


def no_rule_linked(text: str) -> list[str]:
    return [] if linked_rules(text) else ["no rule is linked"]


def no_prediction_before_the_run(text: str) -> list[str]:
    """The first prediction stands before the first picture; a run to compare with may come before both."""
    cells = re.findall(r"^```python[^\n]*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    asked = [n for n, cell in enumerate(cells) if re.search(r"prediction|Prediction\(|predicted", cell)]
    shown = [n for n, cell in enumerate(cells) if re.search(PICTURES, FUNCTION.sub("", cell))]
    if not asked:
        return ["no prediction"]
    return (
        []
        if not shown or asked[0] <= shown[0]
        else [f"code cell {shown[0]} draws, the first prediction is in {asked[0]}"]
    )


FUNCTION = re.compile(r"^def .*?(?=^\S|\Z)", re.DOTALL | re.MULTILINE)  # what is defined is not yet drawn
PICTURES = r"\b(timeline|compare|sweep|blame|memory|batch_view|kv_view|carry_over_view)\("

# Title, from which notebook on, the rule, a text that breaks it, and one that does not.
ASK, RUN = "```python\nmy_prediction = 10\n```\n", "```python\ntimeline(engine.generate(x).trace)\n```\n"
LINKED = "see [rules 2 and 17](../docs/semantics.md)"
TEXT_RULES: list[tuple[str, str, Callable[[str], list[str]], str, str]] = [
    ("rules that are linked exist", "00", unknown_rules, "[rule 69](../docs/semantics.md#x)", LINKED),
    ("rules that are named are linked", "00", unlinked_rules, "by rule 17 it waits", f"{LINKED} `rule 17`"),
    ("files that are linked exist", "00", broken_links, "[x](../docs/none.md)", f"{LINKED} [y](https://x.org)"),
    (
        "the device is a line of its own",
        "00",
        no_device_line,
        'device = "virtual"',
        f"```python\n{stored.DEVICE_LINE}\n```",
    ),
    ("claims about CUDA are linked", "03", no_rule_linked, "[rule 3](x.md)", LINKED),
    ("a prediction comes first", "01", no_prediction_before_the_run, RUN + ASK, ASK + RUN),
]


@pytest.mark.parametrize(
    ("name", "title"), [(name, rule[0]) for rule in TEXT_RULES for name in NAMES if name >= rule[1]]
)
def test_text(name: str, title: str) -> None:
    (rule,) = (rule for it, _, rule, _, _ in TEXT_RULES if it == title)
    assert rule(text_of(name)) == []


@pytest.mark.parametrize(("rule", "bad", "good"), [it[2:] for it in TEXT_RULES], ids=[it[0] for it in TEXT_RULES])
def test_each_rule_sees_its_fault(rule: Callable[[str], list[str]], bad: str, good: str) -> None:
    assert len(rule(bad)) == 1
    assert rule(good) == []


def test_what_is_only_defined_is_no_picture() -> None:
    defined = "```python\ndef draw():\n    with engine:\n        return timeline(engine.generate(x))\n```\n"
    assert no_prediction_before_the_run(defined + ASK + RUN) == []
    assert len(no_prediction_before_the_run(defined.replace("\n```", "\n\ntimeline(x)\n```") + ASK + RUN)) == 1


def test_a_text_without_any_prediction_is_seen() -> None:
    assert no_prediction_before_the_run(RUN) == ["no prediction"]


def test_the_rules_of_the_semantics_are_numbered_one_after_another() -> None:
    assert list(map(int, RULE.findall(semantics()))) == list(range(1, 69))


# The builder, on a lesson that exists, with another source.

SOURCE = """# Title

[x](../README.md)

```python tags=["nbval-ignore-output"]
1 + 1
```

```python exercise="NAME"
```
"""


@pytest.fixture
def name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A notebook with one exercise of a lesson, and its two files, in a folder of its own."""
    name = next(iter(lessons()))
    for attribute, folder in (("SOURCES", tmp_path), ("HERE", tmp_path), ("SOLUTIONS", tmp_path / "solutions")):
        monkeypatch.setattr(build, attribute, folder)
    (tmp_path / f"{name}.md").write_text(SOURCE.replace("NAME", build.own_exercises(name)[0].name))
    for solved in (False, True):
        build.store(name, solved, with_outputs=False)
    return name


def test_both_notebooks_come_from_one_source(name: str) -> None:
    exercise = build.own_exercises(name)[0]
    unsolved, solved = build.build(name, solved=False).cells, build.build(name, solved=True).cells
    assert [cell.cell_type for cell in unsolved] == ["markdown", "code", "markdown", "code", "code"]
    assert unsolved[1].metadata.tags == ["nbval-ignore-output"]
    assert exercise.title in unsolved[2].source
    assert unsolved[3].source == exercise.starter_source().rstrip()
    assert stored.exercise_of(unsolved[4]) == exercise.name
    assert solved[1].source == build.SOLVED_NOTE
    assert solved[4].source == exercise.solution_source().rstrip()
    assert (unsolved[0].source[-17:], solved[0].source[-20:]) == ("[x](../README.md)", "[x](../../README.md)")


def test_a_notebook_that_is_not_its_source_is_told_cell_by_cell(name: str) -> None:
    assert build.differences(name, True) == build.differences(name, False) == []
    source = build.SOURCES / f"{name}.md"
    source.write_text(source.read_text().replace("1 + 1", "1 + 2") + "\nMore.\n")
    assert build.differences(name, False) == ["cell 1: '1 + 2'", "-1 cells"]
    build.path_of(name, False).unlink()
    assert build.differences(name, False) == ["no such notebook: run notebooks/build.py"]


def test_an_unknown_exercise_is_named(name: str) -> None:
    (build.SOURCES / f"{name}.md").write_text('```python exercise="nonsense"\n```\n')
    with pytest.raises(SystemExit, match="no exercise 'nonsense'"):
        build.build(name, solved=False)
