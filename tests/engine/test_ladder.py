"""The ladder as an experiment, and the prompts and sizes it runs with."""

from __future__ import annotations

from pathlib import Path

import pytest

from labkit.engine.sampling import SamplingParams
from labkit.errors import InvalidArgument
from labkit.experiments import LadderResult, read_prompts, run_ladder, sizes_for, synthetic_prompts
from labkit.model.toy import ToyModel

MODEL = ToyModel()
PARAMS = SamplingParams(max_new_tokens=6)
PROMPTS = synthetic_prompts(MODEL, 4, 7)


@pytest.fixture(scope="module")
def ladder() -> LadderResult:
    return run_ladder(MODEL, PROMPTS, PARAMS)


def test_right_rungs_are_right_and_their_runs_kept(ladder: LadderResult) -> None:
    assert [rung.right for rung in ladder.rungs] == [True, False, True, False, False, True, True]
    for rung in ladder.rungs:
        assert (ladder.runs[rung.name].tokens == ladder.runs["default_stream"].tokens) == rung.right


def test_races_are_found_on_the_rungs_that_have_them(ladder: LadderResult) -> None:
    assert [bool(rung.races) for rung in ladder.rungs] == [False, True, False, True, False, False, False]


def test_the_host_waits_once_per_step_where_it_is_asynchronous(ladder: LadderResult) -> None:
    assert [rung.host_waits_per_step for rung in ladder.rungs[2:]] == [1.0] * 5


def test_the_last_rung_takes_the_least_time(ladder: LadderResult) -> None:
    totals = {rung.total_ms: rung.rung for rung in ladder.rungs if rung.right}
    assert totals[min(totals)] == 6


def test_only_the_rungs_asked_for_in_that_order() -> None:
    seen: list[tuple[int, int]] = []
    result = run_ladder(
        MODEL,
        PROMPTS,
        PARAMS,
        rungs=[6, "events"],
        keep_runs=False,
        progress=lambda done, total, what: seen.append((done, total)),
    )
    assert [rung.rung for rung in result.rungs] == [6, 2]
    assert all(rung.right for rung in result.rungs), "compared with rung 0, which was run too"
    assert result.runs == {}
    assert seen == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert result.to_dict()["rungs"][0]["name"] == "cuda_graphs"


def test_no_rung_at_all() -> None:
    with pytest.raises(InvalidArgument, match="at least one rung"):
        run_ladder(MODEL, PROMPTS, PARAMS, rungs=[])


def test_a_rung_twice_is_one_rung() -> None:
    result = run_ladder(MODEL, PROMPTS, PARAMS, rungs=[2, 2, "events"])
    assert [rung.rung for rung in result.rungs] == [2]


def test_sizes_hold_all_requests_at_once() -> None:
    sizes = sizes_for(MODEL, [[1] * 10, [1] * 3], SamplingParams(max_new_tokens=7))
    assert (sizes.max_rows, sizes.max_model_len) == (2, 17)
    assert sizes.num_blocks == 2 * sizes.blocks_per_request
    assert sizes_for(MODEL, [[1]] * 100, PARAMS).max_rows == 32
    assert sizes_for(MODEL, [[1]] * 100, PARAMS, max_rows=50).max_rows == 50


def test_prompts_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "prompts.txt"
    path.write_text("# no prompt\n\nfirst \n\tsecond, naïve\n", encoding="utf-8")
    assert read_prompts(path) == ["first", "second, naïve"]
    path.write_text("# nothing\n", encoding="utf-8")
    with pytest.raises(InvalidArgument, match="at least one line with a prompt"):
        read_prompts(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidArgument, match="a UTF-8 text file"):
        read_prompts(path)
    with pytest.raises(InvalidArgument, match="a readable text file: Is a directory"):
        read_prompts(tmp_path)


def test_synthetic_prompts_differ_and_are_in_range() -> None:
    prompts = synthetic_prompts(ToyModel(vocab_size=50), 3, 9)
    assert [len(prompt) for prompt in prompts] == [9] * 3
    assert len({tuple(prompt) for prompt in prompts}) == 3
    assert all(0 <= token < 50 for prompt in prompts for token in prompt)
