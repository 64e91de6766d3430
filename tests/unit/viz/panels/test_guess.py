from __future__ import annotations

import pytest

from labkit.errors import InvalidArgument
from labkit.viz.panels.guess import Guess


class Measure:
    def __init__(self, value: float = 24.2) -> None:
        self.value, self.calls = value, 0

    def __call__(self) -> float:
        self.calls += 1
        return self.value


def bars(guess: Guess) -> dict[str, float]:
    return {trace.name: trace.base[0] + trace.x[0] for trace in guess.figure().data}


def test_the_answer_is_stored_before_anything_is_measured() -> None:
    measure = Measure()
    guess = Guess("How much?", measure)
    with pytest.raises(InvalidArgument, match="store an answer before the run"):
        guess.run()
    assert (measure.calls, guess.measured, bars(guess)) == (0, None, {})
    guess.store(10)
    assert (measure.calls, guess.answer, bars(guess)) == (0, 10, {"your answer": 10})
    assert guess.run() == guess.run() == 24.2
    assert measure.calls == 1
    assert bars(guess) == {"your answer": 10, "measured": 24.2}


def test_a_stored_answer_stands() -> None:
    guess = Guess("How much?", Measure())
    guess.store(10)
    with pytest.raises(InvalidArgument, match="answer=20: 10 % is stored already"):
        guess.store(20)
    assert guess.answer == 10


@pytest.mark.parametrize("answer", [-1, 101, float("nan"), float("inf")])
def test_an_answer_out_of_range_is_refused(answer: float) -> None:
    guess = Guess("How much?", Measure())
    with pytest.raises(InvalidArgument, match="0 to 100 %"):
        guess.store(answer)
    assert guess.answer is None


def test_an_empty_range_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="low=1: below high, which is 1"):
        Guess("How much?", Measure(), low=1, high=1)


def test_after_a_failure_the_answer_stands_and_the_run_can_be_repeated() -> None:
    results = iter([ZeroDivisionError(), 5.0])

    def measure() -> float:
        result = next(results)
        if isinstance(result, Exception):
            raise result
        return result

    guess = Guess("How much?", measure)
    guess.store(4)
    with pytest.raises(ZeroDivisionError):
        guess.run()
    assert guess.answer == 4
    assert guess.run() == 5


def test_the_sentence_and_the_scale() -> None:
    guess = Guess("How long?", Measure(250), unit="ms", low=0, high=200)
    assert guess.sentence() == "Predict first: nothing has been run yet."
    guess.store(100)
    assert guess.sentence() == "You said 100 ms; not measured yet."
    guess.run()
    assert guess.sentence() == "You said 100 ms; measured: 250 ms (+150)."
    assert guess.figure().layout.xaxis.range[1] > 250
    assert guess.figure().layout.meta["summary"] == guess.sentence()
