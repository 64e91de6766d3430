"""``labkit calibrate`` and ``labkit bench`` on the virtual GPU."""

import json

import pytest

from labkit.cli import main
from labkit.device.costs import load_profile


def test_calibrate_writes_a_profile_that_runs(capsys, tmp_path):
    path = tmp_path / "mine.json"
    small = ["--rows", "1,4", "--contexts", "40,80", "--quick"]
    assert main(["calibrate", "--device", "virtual", *small, "-o", str(path)]) == 0
    text = capsys.readouterr().out
    assert "sync graphs, 4 rows" in text and "mine, measured: virtual (h200-8b)" in text
    profile, truth = load_profile(path), load_profile("h200-8b")
    assert profile.name == "mine"
    assert profile.launch_ns == truth.launch_ns
    assert {rows for rows, *_ in profile.kernels["forward"].points} == {1, 4}
    assert main(["run", "--profile", str(path), "--requests", "2", "--max-new-tokens", "3"]) == 0


def test_bench_prints_a_table_and_writes_it(capsys, tmp_path):
    path = tmp_path / "rows.json"
    arguments = ["--batch", "2", "--context", "40,20", "--steps", "3", "--modes", "sync,async-graphs"]
    assert main(["bench", "--device", "virtual", *arguments, "--json", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:4] for line in lines if line.startswith("fused ")] == [
        ["fused", mode, "2", context] for mode in ("sync", "async-graphs") for context in ("20", "40")
    ]
    found = json.loads(path.read_text())
    assert [row["mode"] for row in found["rows"]] == ["sync"] * 2 + ["async-graphs"] * 2
    assert found["about"] == "virtual (h200-8b)"
    assert found["command"].startswith("labkit ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["calibrate", "-o", "x.txt"], "--out='x.txt': a name that ends in .json"),
        (["calibrate", "-o", "x.json", "--device", "virtual", "--rows", "1,x"], "--rows='1,x': positive integers"),
        (["calibrate", "-o", "/nowhere/x.json", "--device", "virtual"], "--out='/nowhere/x.json': a file in a folder"),
        (["bench", "--device", "virtual", "--json", "/"], "--json='/': a file; this is a folder"),
        (["bench", "--device", "virtual", "--batch", "\u00b2"], "--batch='\u00b2': positive integers"),
        (["bench", "--device", "virtual", "--context", "512,6"], "--context=6: at least 7"),
        (["bench", "--device", "virtual", "--model", "nope"], "model='nope': one of toy"),
        (["bench", "--device", "virtual", "--batch", "0"], "--batch='0': positive integers"),
        (["bench", "--device", "virtual", "--modes", "fast"], "--modes='fast': some of sync"),
        (["bench", "--device", "virtual", "--forms", ""], "--forms='': some of hf"),
        (["bench", "--device", "virtual", "--steps", "1"], "--steps=1: at least 2"),
        (["bench", "--device", "virtual", "--profile", "nope"], "profile='nope'"),
        (["bench", "--device", "virtual", "--peer", "--context", "20"], "--peer='toy': a model of transformers"),
    ],
)
def test_bad_input_is_one_line_and_status_2(capsys, arguments, message):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("labkit: ") and error.count("\n") == 1
    assert message in error
