"""Errors of predictions, from invented measurements."""

import pytest

from labkit.bench.accuracy import HEADER, Compared, gains, verdict
from labkit.bench.decode import Steady
from labkit.bench.predict import Case, Measured
from labkit.switches import ladder

SYNC, ASYNC = ladder("events"), ladder("carry_over")


def compared(switches, real, virtual, *, batch=8, busy=(50, 50)):
    sides = [Measured(Steady((float(ns),), float(ns)), float(b)) for ns, b in zip((real, virtual), busy, strict=True)]
    return Compared(Case(batch, 100, switches), *sides)


def test_errors_of_one_case():
    one = compared(SYNC, 100, 110, busy=(80, 77))
    assert one.step_error == pytest.approx(0.10)
    assert one.idle_error == pytest.approx(0.10), "20 % measured, 30 % predicted"
    assert one.to_dict()["real"] == {"ms": 100 / 1e6, "idle": pytest.approx(0.2), "blocks_ms": [100 / 1e6]}
    assert one.row().split()[:3] == ["8", "100", "sync"]
    assert len(one.row()) == len(HEADER)


def test_gains_pair_the_loops_of_a_size():
    found = gains(
        [
            compared(SYNC, 100, 100),
            compared(ASYNC, 80, 90),
            compared(SYNC, 200, 200, batch=2),
            compared(SYNC.with_(cuda_graphs=True), 60, 60),
            compared(ASYNC.with_(cuda_graphs=True), 60, 54),
        ]
    )
    assert [(gain.batch, gain.graphs) for gain in found] == [(8, False), (8, True)]
    assert [gain.real for gain in found] == pytest.approx([0.2, 0.0])
    assert [gain.error for gain in found] == pytest.approx([-0.1, 0.1])


@pytest.mark.parametrize(("real", "virtual", "wrong"), [(80, 90, 0), (95, 105, 1), (99.5, 105, 0), (105, 103, 0)])
def test_a_wrong_sign_is_a_gain_that_is_a_loss(real, virtual, wrong):
    assert verdict([compared(SYNC, 100, 100), compared(ASYNC, real, virtual)]).wrong_signs == wrong


def test_a_verdict_names_median_tail_and_worst():
    found = verdict([compared(SYNC, 100, 100 + error, busy=(100, 100 + error)) for error in (1, 2, 3, 4, 9)])
    assert (found.step_median, found.step_worst) == pytest.approx((0.03, 0.09))
    assert 0.04 < found.step_p95 < 0.09
    assert found.good and "met" in str(found)
    assert found.to_dict()["cases"] == 5


def test_one_aim_missed_is_not_met():
    found = verdict([compared(SYNC, 100, 101, busy=(90, 80))])
    assert found.idle_worst > 0.05
    assert not found.good
    assert "NOT met" in str(found)
