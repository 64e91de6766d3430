"""Lesson 06: each plausible wrong answer gets its own sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from labkit.lessons.l06_carry_over import carry_in_time, carry_rows, deliver, replace_placeholders

Answer = Callable[..., Any]


def mask_assignment(token_ids: Any, carry_from: Any, previous: Any) -> None:
    mask = carry_from >= 0
    token_ids[mask] = previous[carry_from[mask].long()]


def host_loop(token_ids: Any, carry_from: Any, previous: Any) -> None:
    for row, place in enumerate(carry_from.tolist()):
        if place >= 0:
            token_ids[row] = previous[place]


def returns_it(token_ids: Any, carry_from: Any, previous: Any) -> Any:
    return torch.where(carry_from >= 0, previous[carry_from.clamp(min=0).long()], token_ids)


def by_the_token(token_ids: Any, carry_from: Any, previous: Any) -> None:
    token_ids[:] = torch.where(token_ids == 0, previous[carry_from.clamp(min=0).long()], token_ids)


def changes_previous(token_ids: Any, carry_from: Any, previous: Any) -> None:
    token_ids.copy_(torch.where(carry_from >= 0, previous[carry_from.clamp(min=0).long()], token_ids))
    previous.zero_()


KERNELS: list[tuple[Answer, str]] = [
    (mask_assignment, "the host waits: it needs the values on the device for indexing with a boolean mask"),
    (host_loop, "the host waits: it needs the values on the device for .tolist()"),
    (returns_it, "token_ids is as it was"),
    (changes_previous, "carry_from or previous has changed"),
    (lambda t, c, p: t.copy_(p[c.long()]), "Row 2 has carry_from -1"),
    (lambda t, c, p: t.copy_(torch.where(c > 0, p[c.clamp(min=0).long()], t)), "carry_from 0 is a row like any other"),
    (lambda t, c, p: t.copy_(torch.where(c >= 0, p[: len(t)], t)), "Row i got output i"),
    (lambda t, c, p: t.copy_(torch.where(c >= 0, p.flip(0)[: len(t)], t)), "not those that carry_from asks for"),
    (by_the_token, "its token 0 is no placeholder"),
    (lambda t, c: None, "takes other arguments"),
]


@pytest.mark.parametrize(("answer", "says"), KERNELS, ids=[says[:20] for _, says in KERNELS])
def test_replace_placeholders(answer: Answer, says: str) -> None:
    result = replace_placeholders.check(answer)
    assert not result
    assert says in result.says


def first_step(play: Any) -> None:
    play.send("A")
    play.compute.wait_event(play.sent["A"])
    play.forward("A")
    play.send("B")


def before_the_upload(play: Any) -> None:
    first_step(play)
    play.carry(play.compute)
    play.compute.wait_event(play.sent["B"])
    play.forward("B")


def on_h2d(play: Any) -> None:
    first_step(play)
    play.carry(play.h2d)
    play.compute.wait_event(play.sent["B"])
    play.forward("B")


def too_late(play: Any) -> None:
    first_step(play)
    play.compute.wait_event(play.sent["B"])
    play.forward("B")
    play.carry(play.compute)


def not_at_all(play: Any) -> None:
    first_step(play)
    play.compute.wait_event(play.sent["B"])
    play.forward("B")


def carried_without_the_upload(play: Any) -> None:
    first_step(play)
    play.carry(play.compute)
    play.forward("B")


def by_the_host(play: Any) -> None:
    first_step(play)
    play.sent["B"].synchronize()
    play.carry(play.compute)
    play.forward("B")


ORDERS: list[tuple[Answer, str]] = [
    (before_the_upload, "`carry` on compute, which writes tokens[B]"),
    (on_h2d, "`carry` on h2d, which reads outputs[A]"),
    (too_late, "replaced after the forward pass had read it"),
    (not_at_all, "replaced by nothing"),
    (carry_in_time.starter, "no stream waits for it"),
    (carried_without_the_upload, "no stream waits for it"),
    (by_the_host, "The host waits for the device"),
    (lambda play: None, "the value is not"),
]


@pytest.mark.parametrize(("answer", "says"), ORDERS, ids=[says[:20] for _, says in ORDERS])
def test_carry_in_time(answer: Answer, says: str) -> None:
    result = carry_in_time.check(answer)
    assert not result
    assert says in result.says


ROWS: list[tuple[Answer, str]] = [
    (lambda batch, before: list(range(len(batch))), "was in row 1 of the step before"),
    (lambda batch, before: [-1] * len(batch), "was in row 0 of the step before"),
    (lambda batch, before: [dict(before).get(r, -2) for r in batch], "each -1 or a row of the step before"),
    (lambda batch, before: [0], "A number for each row of the batch"),
    (lambda batch, before: None, "has to be a list"),
    (
        lambda batch, before: [[r for r, _ in before].index(r) if r in dict(before) else -1 for r in batch],
        "that samples nothing",
    ),
    (lambda batch, before: [[r for r, _ in before].index(r) for r in batch], "raised ValueError"),
    (
        lambda batch, before: [{r: i if s else -1 for i, (r, s) in enumerate(before)}.get(r, 0) for r in batch],
        "so the host knows its token",
    ),
]


@pytest.mark.parametrize(("answer", "says"), ROWS, ids=[says[:20] for _, says in ROWS])
def test_carry_rows(answer: Answer, says: str) -> None:
    result = carry_rows.check(answer)
    assert not result
    assert says in result.says


ENDS: list[tuple[Answer, str]] = [
    (lambda request, token: token not in request.eos_token_ids, "end-of-sequence token, which belongs to the output"),
    (lambda request, token: False, "the request had not ended"),
    (lambda request, token: request.finished, "the request had not ended"),
    (lambda request, token: None, "True or False"),
    (lambda request, token: True, "got 1 token more, of the step that was in flight"),
]


@pytest.mark.parametrize(("answer", "says"), ENDS, ids=[says[:20] for _, says in ENDS])
def test_deliver(answer: Answer, says: str) -> None:
    result = deliver.check(answer)
    assert not result
    assert says in result.says
