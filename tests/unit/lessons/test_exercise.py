"""An exercise by itself, on an invented one; and what holds for every exercise of the course."""

from __future__ import annotations

import ast

import pytest

from labkit.errors import InvalidArgument
from labkit.lessons import exercises, lessons
from labkit.lessons.exercise import DEVICES, Exercise, call_of, fits
from labkit.lessons.result import right, wrong
from labkit.lessons.stored import UNJUDGED

COURSE = exercises()


def _start(a, b):
    return 0


def _plus(a, b):
    return a + b


def _times(a, b):
    return a * b + 0 * b


def judge(answer, device):
    value = answer(2, 2)
    return right("Four.") if value + 0 == 4 else wrong("Two and two are not that.", yours=value, expected=4)


SUM = Exercise(
    number="9.1",
    name="four",
    title="Four",
    task="""
    Make four,
    whatever it takes.
    """,
    starter=_start,
    solutions=(_plus, _times),
    hints=("Think.", "Add.", "a + b"),
    judge=judge,
    measure=lambda answer, device: float(answer(5, 5)),
    unit="us",
)


def test_a_check_says_yours_and_expected():
    result = SUM.check(_start)
    assert (result.passed, result.says, result.yours, result.expected) == (False, "Two and two are not that.", "0", "4")
    assert (result.number, result.title) == ("9.1", "Four")
    assert SUM.check(_plus)


def test_an_answer_that_exits_ends_itself_alone():
    def four(a, b):
        raise SystemExit(3)

    assert "raised SystemExit" in SUM.check(four).says


def test_what_an_answer_raises_is_said_with_its_line():
    def four(a, b):
        return a / 0

    result = SUM.check(four)
    assert not result
    assert "Your function raised ZeroDivisionError at line" in result.says
    assert "return a / 0" in result.says
    assert (result.yours, result.expected) == ("division by zero", "no error")


def test_an_answer_that_the_check_cannot_use_is_not_called_an_error_of_its_own():
    result = SUM.check(lambda a, b: None)
    assert not result
    assert "cannot work with what your function gives" in result.says
    assert "NoneType" in result.yours


@pytest.mark.parametrize("answer", [lambda: 4, lambda a: 4, lambda a, b, c: 4, lambda a, *, b: 4])
def test_another_signature_is_named_beside_the_one_that_is_called(answer):
    result = SUM.check(answer)
    assert not result
    assert "other arguments" in result.says
    assert result.expected == "four(a, b)"
    assert result.yours == call_of(answer, "four") != result.expected


@pytest.mark.parametrize("answer", [lambda x, y: 4, lambda *numbers: 4, lambda a, b, c=0: 4, max])
def test_other_names_and_more_defaults_fit(answer):
    assert fits(answer, _start)


def test_an_interrupt_is_no_result():
    def four(a, b):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        SUM.check(four)


@pytest.mark.parametrize("answer", [4, None, "four", _plus(2, 2)])
def test_a_value_in_place_of_the_function_is_refused(answer):
    with pytest.raises(InvalidArgument, match="without parentheses"):
        SUM.check(answer)


def test_devices_are_named():
    with pytest.raises(InvalidArgument, match="virtual, cuda"):
        SUM.check(_plus, "gpu")


def test_hints_and_solutions_are_counted_from_one():
    assert [SUM.hint(n).markdown for n in (1, 2, 3)] == [
        f"**Hint {n} of 3** (9.1): {SUM.hints[n - 1]}" for n in (1, 2, 3)
    ]
    assert SUM.solution(2).markdown == "```python\ndef four(a, b):\n    return a * b + 0 * b\n```"
    for call, number in [(SUM.hint, 0), (SUM.hint, 4), (SUM.hint, True), (SUM.solution, 3), (SUM.solution, "1")]:
        with pytest.raises(InvalidArgument, match="1 to "):
            call(number)


def test_the_code_of_a_notebook_carries_the_exercise_s_name():
    assert SUM.starter_source() == "def four(a, b):\n    return 0\n"
    assert SUM.solution_source() == "def four(a, b):\n    return a + b\n"


def test_a_score_needs_an_answer_that_passes():
    assert (SUM.score(_plus).value, SUM.score(_plus).best) == (10, 10)
    assert SUM.score(_times).value == 25
    assert SUM.score(_start).value is None


def test_an_exercise_without_a_measure_has_no_score():
    plain = Exercise(**{**vars(SUM), "measure": None})
    with pytest.raises(InvalidArgument, match="passes or does not"):
        plain.score(_plus)


def test_an_exercise_shows_its_task():
    assert SUM.show().markdown == SUM._repr_markdown_() == "**Exercise 9.1: Four**\n\nMake four,\nwhatever it takes."
    assert repr(SUM) == "Exercise 9.1: Four. Answer it with a function four(a, b)."


# The course.


def ids(pairs):
    return [it.number for it in pairs]


every_exercise = pytest.mark.parametrize("exercise", COURSE.values(), ids=ids(COURSE.values()))


def test_no_number_is_given_twice_and_each_is_of_its_lesson():
    for name, module in lessons().items():
        own = [it for it in vars(module).values() if isinstance(it, Exercise)]
        numbers = sorted(int(it.number.removeprefix(f"{int(name[:2])}.")) for it in own)
        assert numbers == list(range(1, len(own) + 1)), name
        assert [vars(module)[it.name] for it in own] == own, "an exercise is found under its name"


@every_exercise
def test_the_starter_is_refused_by_a_sentence_with_yours_and_expected(exercise):
    result = exercise.check(exercise.starter)
    assert not result.passed
    assert not result.says.startswith(UNJUDGED), result
    assert result.says.rstrip()[-1] in ".?!:" and len(result.says) > 20
    assert result.yours and result.expected and result.yours != result.expected


@every_exercise
def test_every_solution_passes(exercise):
    assert exercise.solutions
    for solution in exercise.solutions:
        result = exercise.check(solution)
        assert result.passed, result


@every_exercise
def test_an_answer_without_sense_is_refused_and_never_raises(exercise):
    def raises(*arguments):
        raise ValueError("nonsense")

    for answer in (raises, lambda *arguments: None, lambda: None):
        result = exercise.check(answer)
        assert not result.passed, answer
        assert result.yours and result.expected


@every_exercise
def test_a_score_is_of_the_solution_s_own_kind(exercise):
    if exercise.measure is None:
        assert exercise.unit == ""
        return
    assert exercise.unit
    found = exercise.score(exercise.solutions[0])
    assert found.value == found.best >= 0
    assert exercise.score(exercise.starter).value is None


@every_exercise
def test_there_are_three_hints_a_task_and_code_that_a_notebook_can_show(exercise):
    assert len(exercise.hints) == len({hint.strip() for hint in exercise.hints}) == 3
    assert all(len(hint.strip()) > 20 for hint in exercise.hints)
    assert len(exercise.task.strip()) > 40 and exercise.title.strip() == exercise.title != ""
    for code in (exercise.starter_source(), *(exercise.solution_source(n + 1) for n in range(len(exercise.solutions)))):
        (function,) = ast.parse(code).body
        assert isinstance(function, ast.FunctionDef) and function.name == exercise.name


def test_what_is_not_judged_begins_as_a_stored_notebook_is_searched_for():
    results = [SUM.check(it) for it in (lambda a, b: None, lambda: 4)]
    assert all(result.says.startswith(UNJUDGED) for result in results)


def test_devices_are_the_two_that_a_notebook_can_name():
    assert DEVICES == ("virtual", "cuda")
