"""The peer's rows: which runs are made, and what becomes of their times."""

import pytest

from labkit.bench.peer import peer_rows
from labkit.errors import InvalidArgument
from labkit.model.toy import ToyModel

pytest.importorskip("transformers")


def test_both_loops_at_every_size(monkeypatch):
    from labkit.model import hf_peer
    from labkit.model.hf_shapes import load_shape

    calls = []

    def step_ns(module, prompts, steps, *, use_async, warm_up):
        calls.append((len(prompts), len(prompts[0]), use_async, warm_up))
        return 5e6

    monkeypatch.setattr(hf_peer, "peer_step_ns", step_ns)
    rows = list(peer_rows(load_shape("tiny"), (2, 3), (16,), bandwidth=1000.0))
    assert calls == [(2, 16, False, True), (2, 16, True, False), (3, 16, False, False), (3, 16, True, False)]
    assert [(row.form, row.mode, row.batch, row.ns) for row in rows[:2]] == [
        ("peer", "sync", 2, 5e6),
        ("peer", "async", 2, 5e6),
    ]
    assert rows[0].floor_ns > 0


def test_the_toy_model_has_no_peer():
    with pytest.raises(InvalidArgument, match="a model of transformers"):
        list(peer_rows(ToyModel(), (1,), (16,), bandwidth=1.0))
