"""What judges the answers of lesson 06 about the carry-over kernel: the tokens it makes, and where it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from labkit.engine.core import EngineCore
from labkit.engine.slots import Slot
from labkit.lessons.playground import Playground
from labkit.lessons.result import Result, right, wrong
from labkit.lessons.support.host_waits import HostWaits
from labkit.lessons.support.judging import race_result
from labkit.lessons.support.patched import counted, reverse_rows, right_tokens, run_patched
from labkit.trace.events import Trace

Answer = Callable[..., Any]


# -- 6.1 -------------------------------------------------------------------------------------------------------------

_TOKEN_IDS, _CARRY_FROM, _PREVIOUS = [0, 0, 17, 0, 0], [3, 0, -1, 1, -1], [41, 42, 43, 44, 45, 46]
_REPLACED, _ROW_BY_ROW = [44, 41, 17, 42, 0], [41, 42, 17, 44, 0]


def judge_replace_placeholders(answer: Answer, device: str) -> Result:
    """By hand first, then before every forward pass of the real engine."""
    token_ids, carry_from, previous = (
        torch.tensor(values, dtype=torch.int32) for values in (_TOKEN_IDS, _CARRY_FROM, _PREVIOUS)
    )
    with HostWaits() as waits:
        answer(token_ids, carry_from, previous)
    problem = _replaced_wrongly(token_ids.tolist(), carry_from.tolist(), previous.tolist())
    if problem:
        given = f"token_ids {_TOKEN_IDS}, carry_from {_CARRY_FROM}, previous {_PREVIOUS}"
        return wrong(problem, yours=token_ids.tolist(), expected=f"{_REPLACED} for {given}")
    if waits.found:
        return wrong(
            f"The tokens are right, and the host waits: it needs the values on the device for {waits.found[0]}.",
            yours=f"host waits in every step for {', '.join(waits.found)}",
            expected="operations whose shapes do not depend on values, such as torch.where (semantics, rule 37)",
        )
    return _run_the_kernel(answer, device)


def _replaced_wrongly(token_ids: list[int], carry_from: list[int], previous: list[int]) -> str:
    """A sentence, or nothing."""
    if carry_from != _CARRY_FROM or previous != _PREVIOUS:
        return "carry_from or previous has changed: the previous step's output is still to be downloaded."
    if token_ids == _REPLACED:
        return ""
    if token_ids == _TOKEN_IDS:
        return "token_ids is as it was: the model reads that buffer, so the tokens have to be written into it."
    if token_ids == _ROW_BY_ROW:
        return "Row i got output i: fetch from row carry_from[i], since a request may have changed its row."
    if token_ids[2] != _TOKEN_IDS[2]:
        return "Row 2 has carry_from -1: the host wrote the right token there, and it has to stay."
    if token_ids[4] != _TOKEN_IDS[4]:
        return (
            "Row 4 has carry_from -1: its token 0 is no placeholder but a known token. carry_from says which is which."
        )
    if token_ids[1] == 0:
        return "Row 1 kept its placeholder: carry_from 0 is a row like any other, only -1 means keep."
    return "The tokens are not those that carry_from asks for."


class _Learners:
    """In place of the engine's ``CarryOver``."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer

    def kernel(self, slot: Slot, decode_rows: int) -> Callable[[], None] | None:
        if not decode_rows:
            return None
        token_ids, carry_from = slot.dev.token_ids[:decode_rows], slot.dev.carry_from[:decode_rows]
        return lambda: self.answer(token_ids, carry_from, slot.previous.outputs_dev.tensor[0])


def _run_the_kernel(answer: Answer, device: str) -> Result:
    def change(core: EngineCore) -> None:
        reverse_rows(core)
        kernels: Any = replace(core.launcher.kernels, carry=_Learners(answer))  # type: ignore[arg-type]
        core.launcher = replace(core.launcher, kernels=kernels)  # type: ignore[type-var]

    expected, run = run_patched(device, "default_stream"), run_patched(device, "carry_over", change)
    if run.tokens != expected.tokens:
        return wrong(
            "The example is right, and the engine's tokens are not: does the answer keep anything between two calls?",
            yours=right_tokens(run.tokens, expected.tokens),
            expected=f"all, in {run.stats['steps']} steps",
        )
    return right(f"In {run.stats['steps']} steps of the engine, with rows in reverse, every token is right.")


# -- 6.2 -------------------------------------------------------------------------------------------------------------

_FIRST = 5.0


class TwoSteps(Playground):
    """Two slots with an input token and an output each. ``sent`` are the events of the uploads."""

    def __init__(self, device: str) -> None:
        super().__init__(device)
        self.sent = {slot: self.event(f"sent[{slot}]") for slot in "AB"}
        self.tokens_host = {slot: self.buffer(f"tokens_host[{slot}]", "pinned") for slot in "AB"}
        self.tokens = {slot: self.buffer(f"tokens[{slot}]", "device") for slot in "AB"}
        self.outputs = {slot: self.buffer(f"outputs[{slot}]", "device") for slot in "AB"}
        self.write(_FIRST, self.tokens_host["A"])
        self.device.take()

    def send(self, slot: str) -> None:
        """Upload the input token of a slot on ``h2d``, and record ``sent[slot]`` there."""
        self.device.copy(self.tokens[slot], self.tokens_host[slot], self.h2d, non_blocking=True, label=f"send[{slot}]")
        self.sent[slot].record(self.h2d)

    def forward(self, slot: str) -> None:
        """On ``compute``: output = input + 1."""
        output, tokens = self.outputs[slot], self.tokens[slot]
        run = lambda: output.tensor.copy_(tokens.tensor).add_(1)  # noqa: E731
        self.launch(f"forward[{slot}]", run, self.compute, [tokens], [output])

    def carry(self, stream: Any) -> None:
        """Input of slot B = output of slot A."""
        output, tokens = self.outputs["A"], self.tokens["B"]
        self.launch("carry", lambda: tokens.tensor.copy_(output.tensor), stream, [output], [tokens], us=6)


def judge_carry_in_time(answer: Answer, device: str) -> Result:
    """No race, 7, and no wait of the host."""
    play = TwoSteps(device)
    answer(play)
    trace = play.trace()
    value = float(play.outputs["B"].tensor[-1])
    host_waits, race = list(trace.of_kind("synchronize")), race_result(trace, f"step 2 computed {value:g}", "7")
    if race is not None:
        upload = any(span.name == "send[B]" for span in race.spans)
        return replace(race, says=_UPLOAD_UNHEARD) if upload and _unheard_upload(trace) else race
    if value == 1:
        carried = [span for span in trace.of_kind("kernel") if span.name == "carry"]
        how = "after the forward pass had read it" if carried else "by nothing"
        return wrong(
            f"The placeholder 0 reached the model: it was replaced {how}.", yours="1", expected="7", spans=carried
        )
    if value != _FIRST + 2:
        return wrong("The order is right and the value is not.", yours=f"{value:g}", expected="7")
    if host_waits:
        return wrong(
            "The host waits for the device, so it cannot be a step ahead.",
            yours=f"{counted(len(host_waits), 'wait')} of the host",
            expected="waits between streams alone",
            spans=host_waits,
        )
    return right(f"Step 2 computed 7 from a token that the host has never seen, with {_waits(trace)} waits.")


_UPLOAD_UNHEARD = (
    "Nothing on `play.compute` waits for the upload of slot B: its event, sent[B], is recorded behind `send[B]`, and "
    "no stream waits for it. The wait for sent[A] covers the upload of slot A alone."
)


def _unheard_upload(trace: Trace) -> bool:
    """Whether slot B is uploaded and nobody waits for the event of that."""
    sent = any(span.kind == "record" and span.event == "sent[B]" for span in trace.spans)
    return sent and not any(span.event == "sent[B]" for span in trace.of_kind("wait", "synchronize"))


def _waits(trace: Any) -> int:
    return len(list(trace.of_kind("wait", "synchronize")))


def waits_of(answer: Answer, device: str) -> float:
    """How many waits an answer to 6.2 makes."""
    play = TwoSteps(device)
    answer(play)
    return _waits(play.trace())
