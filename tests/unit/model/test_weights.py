"""The cache of converted weights survives being killed and being raced; random weights depend on the seed alone."""

from __future__ import annotations

import os

import pytest
import torch

from labkit.model.weights import ByteTokenizer, build_once, fill_random, smollm2_cache, user_cache


def test_a_target_is_built_once(tmp_path) -> None:
    builds = []

    def build(path) -> None:
        builds.append(path)
        (path / "weights").write_text("w")

    for _ in range(2):
        assert (build_once(tmp_path / "a" / "model", build) / "weights").read_text() == "w"
    assert len(builds) == 1
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["model"]


def test_a_build_that_dies_leaves_nothing(tmp_path) -> None:
    def die(path) -> None:
        (path / "half").write_text("h")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_once(tmp_path / "model", die)
    assert list(tmp_path.iterdir()) == []


def test_the_loser_of_a_race_uses_the_winners_target(tmp_path) -> None:
    target = tmp_path / "model"

    def overtaken(path) -> None:
        (path / "weights").write_text("mine")
        target.mkdir()
        (target / "weights").write_text("theirs")

    assert (build_once(target, overtaken) / "weights").read_text() == "theirs"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_old_scratch_directories_are_swept_and_young_ones_kept(tmp_path) -> None:
    old, young = tmp_path / ".model.old", tmp_path / ".model.young"
    old.mkdir()
    young.mkdir()
    os.utime(old, (0, 0))
    build_once(tmp_path / "model", lambda path: None)
    assert {path.name for path in tmp_path.iterdir()} == {"model", ".model.young"}


def test_the_cache_follows_the_xdg_convention(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labkit.model.weights.sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert user_cache() == tmp_path
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert user_cache().name == ".cache"


def test_another_file_gets_another_place(tmp_path) -> None:
    gguf = tmp_path / "m.gguf"
    gguf.write_bytes(b"1234")
    first = smollm2_cache(gguf, tmp_path)
    gguf.write_bytes(b"12345")
    assert smollm2_cache(gguf, tmp_path) != first
    assert first.parent == tmp_path


def test_random_weights_depend_on_the_seed_alone() -> None:
    one, same, other = (torch.nn.Linear(64, 64) for _ in range(3))
    for module, seed in ((one, 1), (same, 1), (other, 2)):
        fill_random(module, seed)
    assert torch.equal(one.weight, same.weight)
    assert not torch.equal(one.weight, other.weight)
    assert one.weight.std().item() == pytest.approx(1 / 8, rel=0.1)
    assert one.bias.abs().max() == 0


def test_bytes_are_tokens() -> None:
    tokenizer = ByteTokenizer()
    assert tokenizer.encode("aé") == [97, 195, 169]
    assert tokenizer.decode([97, 195, 169, 300]) == "aé<300>"
