"""The command line: exit status, one-line errors, and the shape of what is printed."""

import json

import pytest
import torch

from labkit import experiments
from labkit.cli import main
from labkit.switches import RUNG_NAMES

SMALL = ["--requests", "3", "--prompt-tokens", "5", "--max-new-tokens", "4"]


def output(capsys, *arguments):
    assert main(arguments) == 0
    return capsys.readouterr().out


def test_run_prints_texts_a_report_and_an_explanation(capsys):
    text = output(capsys, "run", *SMALL, "--rung", "6")
    assert text.count("  [length]") == 3
    assert "Right: the host plans step N+1" in text


def test_run_as_json(capsys):
    found = json.loads(output(capsys, "run", *SMALL, "--json", "-s", "logprobs=true", "-s", "max_rows=2"))
    assert [len(tokens) for tokens in found["tokens"]] == [len(one) for one in found["logprobs"]] == [4] * 3
    assert found["switches"] == ["streams", "events", "lookahead", "double_buffering", "carry_over"]
    assert found["stats"]["steps"] > 4, "two rows for three requests"
    assert 0 < found["report"]["gpu_active"] < 1


def test_switches_over_a_rung(capsys):
    found = json.loads(output(capsys, "run", *SMALL, "--json", "--rung", "events", "-s", "cuda_graphs=on"))
    assert found["switches"] == ["streams", "events", "cuda_graphs"]


def test_a_switch_beyond_the_ladder(capsys):
    text = output(capsys, "run", *SMALL, "--rung", "6", "-s", "compiled=on")
    assert "The model runs in its compiled form" in text
    found = json.loads(output(capsys, "run", *SMALL, "--json", "--rung", "0", "-s", "compiled=on"))
    assert found["switches"] == ["compiled"]


def test_prompts_from_a_file(capsys, tmp_path):
    path = tmp_path / "prompts.txt"
    path.write_text("# a comment\n\none\n  two  \n", encoding="utf-8")
    found = json.loads(output(capsys, "run", "--prompts", str(path), "--max-new-tokens", "2", "--json"))
    assert len(found["tokens"]) == 2


def test_ladder_as_json_is_the_same_object_twice(capsys):
    first, second = (output(capsys, "ladder", *SMALL, "--json") for _ in range(2))
    assert first == second
    found = json.loads(first)
    assert list(found) == ["device", "model", "profile", "rungs"]
    assert [rung["name"] for rung in found["rungs"]] == list(RUNG_NAMES)
    assert [rung["right"] for rung in found["rungs"]] == [True, False, True, False, False, True, True]
    keys = "rung name right races gpu_active idle_ms total_ms ms_per_step host_waits_per_step tokens_per_s why"
    assert all(list(rung) == keys.split() for rung in found["rungs"])


def test_ladder_as_a_table_of_some_rungs(capsys):
    text = output(capsys, "ladder", *SMALL, "--rungs", "1, carry_over")
    rows = [line for line in text.splitlines() if "right" in line or "WRONG" in line]
    assert [row.split()[:3] for row in rows if row[0].isdigit() and ":" not in row] == [
        ["1", "streams", "WRONG"],
        ["5", "carry_over", "right"],
    ]


def test_trace_writes_a_page_and_a_file_for_perfetto(capsys, tmp_path):
    pytest.importorskip("plotly")
    for name in ("x.json", "x.json.gz", "x.html"):
        path = tmp_path / name
        assert "steps" in output(capsys, "trace", *SMALL, "-o", str(path))
        assert path.stat().st_size > 1000
    assert json.loads((tmp_path / "x.json").read_text())["traceEvents"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--rung", "9"], "rung=9: the rungs are 0 default_stream"),
        (["run", "--rung", "1", *SMALL], "Pass unsafe=True to run it all the same"),
        (["run", "-s", "x=1"], "-s='x': the settings are"),
        (["run", "-s", "max_rows=0", *SMALL], "max_rows=0: a size is an integer of at least 1"),
        (["run", "-s", "temperature=-1", *SMALL], "temperature=-1.0: a number from 0"),
        (["run", "--max-new-tokens", "0"], "max_new_tokens=0: an integer of at least 1"),
        (["run", "--requests", "0"], "requests=0: at least 1"),
        (["run", "--requests", "-2"], "requests=-2: at least 1"),
        (["run", "--prompt-tokens", "0"], "prompt_tokens=0: at least 1"),
        (["run", "--prompt-tokens", "20000"], "prompt_tokens=20000: at most 16383"),
        (["run", "--prompts", "/no/such/file"], "prompts='/no/such/file': a readable text file"),
        (["run", "--prompts", "x", "--requests", "2"], "give --prompts or --requests, not both"),
        (["run", "--profile", "fast", *SMALL], "profile='fast': "),
        (["run", "--model", "./nowhere"], "nowhere"),
        (["run", "-s", "num_blocks=1", *SMALL, "--prompt-tokens", "40"], "the pool has 1"),
        (["ladder", "-s", "streams=on"], "the ladder sets the switches; use labkit run"),
        (["ladder", "--rungs", "0,8"], "rung=8: the rungs are"),
        (["ladder", "--rungs", ""], "at least one rung"),
        (["run", "--rung", "\u00b2"], "rung='\u00b2': the rungs are"),
        (["run", "--prompts", ""], "prompts='': a readable text file"),
        (["trace", *SMALL, "-o", "/nowhere/x.json"], "--output='/nowhere/x.json': a file in a folder that is there"),
        (["trace", *SMALL, "-o", "x.txt"], "--output='x.txt': a name that ends in .html, .json or .json.gz"),
    ],
)
def test_bad_input_is_one_line_and_status_2(capsys, arguments, message):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("labkit: ")
    assert error.count("\n") == 1
    assert message in error


@pytest.mark.parametrize(
    "arguments", [[], ["walk"], ["run", "--requests", "two"], ["trace"], ["run", "--device", "tpu"]]
)
def test_argparse_answers_with_status_2_too(capsys, arguments):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: labkit" in capsys.readouterr().err


def test_help(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    assert all(command in text for command in ("run", "ladder", "trace", "races", "calibrate", "bench", "doctor"))


def test_an_unsafe_run_when_asked_for(capsys):
    text = output(capsys, "run", *SMALL, "--rung", "streams", "--unsafe")
    assert "Wrong without events" in text


def test_a_file_that_cannot_be_written_is_one_line_and_status_1(capsys, tmp_path):
    (tmp_path / "file").write_text("x")
    assert main(["start", str(tmp_path / "file" / "course")]) in (1, 2)
    error = capsys.readouterr().err
    assert error.startswith("labkit: ") and error.count("\n") == 1
    assert "file/course" in error


def test_an_interrupt_is_status_130(capsys, monkeypatch):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(experiments, "run_ladder", interrupt)
    assert main(["ladder", *SMALL]) == 130
    assert capsys.readouterr().err == "labkit: interrupted\n"


@pytest.mark.skipif(torch.cuda.is_available(), reason="a CUDA GPU is here")
@pytest.mark.parametrize(
    "command", ["run", "ladder", "races --rung 1", "trace -o x.html", "calibrate -o x.json", "bench"]
)
def test_without_a_gpu_cuda_is_one_sentence(command, capsys):
    assert main([*command.split(), "--device", "cuda"]) == 1
    assert capsys.readouterr().err.startswith("labkit: torch sees no CUDA GPU here")
