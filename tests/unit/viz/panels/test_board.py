from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from labkit import Engine, Switches, ladder
from labkit.analysis.races import check
from labkit.device.costs import load_profile, scaled_host
from labkit.engine.sampling import SamplingParams
from labkit.entry import default_sizes
from labkit.errors import InvalidArgument
from labkit.experiments import synthetic_prompts
from labkit.model.toy import ToyModel
from labkit.run import Run
from labkit.switches import MECHANISMS
from labkit.viz.panels.board import BATCHES, BUDGETS, HOST_SPEEDS, LUCKY, RIGHT, WRONG, Board, Outcome, Setup

COMBINATIONS = [Switches(**dict(zip(MECHANISMS, on, strict=True))) for on in product((False, True), repeat=6)]


def engine_says(setup: Setup) -> Run:
    """The same requests through the engine itself."""
    model = ToyModel()
    profile = scaled_host(load_profile(setup.profile), 1 / setup.host_speed)
    sizes = default_sizes(model, max_rows=setup.batch, token_budget=setup.token_budget, max_model_len=16)
    with Engine(model, switches=setup.switches, profile=profile, sizes=sizes, unsafe=True) as engine:
        return engine.generate(synthetic_prompts(model, setup.batch, 8), SamplingParams(max_new_tokens=8))


def assert_same(outcome: Outcome, run: Run, reference: Run) -> None:
    assert outcome.run.tokens == run.tokens
    assert outcome.reference == reference.tokens
    assert outcome.trace.spans == run.trace.spans
    assert outcome.report == run.report()
    assert (outcome.wrong_tokens == 0) == (run.tokens == reference.tokens)


@pytest.fixture(scope="module")
def board() -> Board:
    return Board()


@pytest.fixture(scope="module")
def reference() -> Run:
    return engine_says(Setup())


@pytest.mark.parametrize("switches", COMBINATIONS, ids=lambda switches: "+".join(switches.on) or "none")
def test_every_combination_gives_what_the_engine_gives(board: Board, reference: Run, switches: Switches) -> None:
    flips = {name: getattr(switches, name) for name in MECHANISMS}
    outcome = board.change(**flips)
    run = engine_says(Setup(switches=switches))
    assert_same(outcome, run, reference)
    found = check(run.trace)
    assert (outcome.races, outcome.race_report) == (len(found.races), found)
    assert outcome.explanation.right == (outcome.verdict == RIGHT)


@pytest.mark.parametrize(
    "change",
    [{"batch": BATCHES[-1]}, {"token_budget": BUDGETS[0]}, {"host_speed": HOST_SPEEDS[0]}, {"profile": "h200-8b"}],
    ids=lambda change: next(iter(change)),
)
def test_every_slider_gives_what_the_engine_gives(change: dict[str, object]) -> None:
    board = Board(Setup(switches=ladder(5)))
    before, after = board.outcome, board.change(**change)
    assert_same(after, engine_says(board.setup), engine_says(replace(board.setup, switches=Switches())))
    assert after.report != before.report
    assert after.verdict == RIGHT


def test_the_run_before_stays_to_compare_with() -> None:
    board = Board()
    first = board.outcome
    assert board.previous is None
    second = board.flip("streams")
    assert board.previous is first
    board.flip("events")
    assert board.previous is second


def test_no_change_keeps_the_run_before() -> None:
    board = Board()
    board.flip("streams")
    before = board.previous
    board.change(streams=True)
    assert board.previous is before


def test_going_back_runs_nothing_again() -> None:
    board = Board()
    first = board.outcome
    board.flip("streams")
    assert board.flip("streams") is first


def test_rungs_are_chosen_and_recognised() -> None:
    board = Board()
    assert board.choose_rung("lookahead").setup.rung == 3
    assert board.change(events=False).setup.rung == -1


def test_a_right_answer_in_spite_of_a_race_is_luck() -> None:
    wrong = Board().choose_rung(1)
    assert wrong.verdict == WRONG and wrong.races
    assert Outcome(wrong.setup, wrong.run, wrong.run.tokens).verdict == LUCKY


def test_missing_tokens_are_wrong_tokens() -> None:
    outcome = Board().outcome
    shorter = replace(outcome.run, tokens=[tokens[:-1] for tokens in outcome.run.tokens])
    assert Outcome(outcome.setup, shorter, outcome.reference).wrong_tokens == 8


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"batch": 3}, "batch=3: one of 1, 2, 4"),
        ({"profile": "x"}, "profile='x': one of article-8b"),
        ({"streems": True}, "streems=True: one of batch"),
        ({"host_speed": 0}, "host_speed=0"),
    ],
)
def test_what_is_not_offered_is_refused_and_changes_nothing(change: dict[str, object], said: str) -> None:
    board = Board()
    with pytest.raises(InvalidArgument, match=said):
        board.change(**change)
    assert board.setup == Setup()


def test_an_unknown_mechanism_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="streems"):
        Board().flip("streems")


def test_the_largest_run_is_drawn_whole() -> None:
    largest = Board().change(batch=max(BATCHES), token_budget=min(BUDGETS), switches=ladder(5))
    assert not largest.selection.reduced
    assert len(largest.selection.bars) > len(Board().outcome.selection.bars)
