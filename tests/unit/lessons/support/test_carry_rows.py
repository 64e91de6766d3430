"""The judges of 6.3 and 6.4: the workloads hold what the exercise is about."""

from __future__ import annotations

from labkit.lessons.l06_carry_over import carry_rows, deliver


def test_the_workload_moves_rows_skips_requests_and_has_chunks_that_sample_nothing() -> None:
    seen = {"moved": 0, "unsampled": 0, "absent": 0, "nothing in flight": 0}

    def spy(batch: list[int], before: list[tuple[int, bool]]) -> list[int]:
        places = {request: row for row, (request, _) in enumerate(before)}
        sampled = dict(before)
        seen["moved"] += any(places.get(request, row) != row for row, request in enumerate(batch))
        seen["unsampled"] += any(not sampled.get(request, True) for request in batch)
        seen["absent"] += any(request not in places for request in batch)
        return carry_rows.solutions[0](batch, before)

    assert carry_rows.check(spy)
    assert {name for name, count in seen.items() if count} >= {"moved", "unsampled", "absent"}


def test_two_requests_overrun() -> None:
    assert "2 overrun rows" in deliver.check(deliver.solutions[0]).says
