"""What the Live panel knows: an engine that keeps running, and the flips on its way. No widgets here.

A flip waits for the next step boundary: the step in flight is settled (drain), the engine is built anew, and the
requests that were running start over. On the virtual GPU time stands still between two calls of ``advance``; on a real
one it does not, so a call ends with an idle device, and the time between calls is cut out.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import count

from labkit.analysis.occupancy import Report, report
from labkit.engine.request import Request, TokenEvent
from labkit.engine.sampling import SamplingParams
from labkit.entry import Engine, default_sizes
from labkit.errors import EngineClosed, InvalidArgument
from labkit.experiments import synthetic_prompts
from labkit.model.toy import ToyModel
from labkit.switches import MECHANISMS, Explanation, Switches, explain, ladder
from labkit.trace.events import Trace
from labkit.viz.panels.rolling import Rolling

REQUESTS, PROMPT_TOKENS, SHORTEST, LONGEST = 8, 8, 9, 23
STEPS_KEPT = 6
AHEAD = 4  # steps that a host without waits may be ahead of the virtual GPU: a real launch queue is finite too


@dataclass(frozen=True)
class Flip:
    """A change of switches on the time axis: the drain began at ``start_ns``, the new engine at ``end_ns``."""

    start_ns: int
    end_ns: int
    text: str


class Running:
    """An endless run: a request that ends makes room for another. Times are ns since the start.

    steps, tokens, finished, wrong    counts since the last flip; ``wrong`` of the finished requests
    held                              since then the host had to be made to wait, for it never waits by itself

    Args:
        switches: what to start with: Switches, or a rung's name or number.
        device: ``"virtual"`` or ``"cuda"``.
        profile: costs of the virtual GPU.

    Raises:
        DeviceError: "cuda" where there is no GPU.
    """

    def __init__(
        self, switches: Switches | int | str = 0, *, device: str = "virtual", profile: str = "article-8b"
    ) -> None:
        self.switches = switches if isinstance(switches, Switches) else ladder(switches)
        self.device, self.profile, self._wanted = device, profile, self.switches
        self._reference = self._oracle()
        self._numbers = count()
        self._rolling = Rolling(STEPS_KEPT)
        self.flips: deque[Flip] = deque(maxlen=8)
        self._start()

    # -- driving -----------------------------------------------------------------------------------------------------

    def want(self, **flips: bool) -> None:
        """Set mechanisms at the next step boundary.

        Raises:
            InvalidSwitches: an unknown mechanism.
        """
        self._wanted = self._wanted.with_(**flips)

    @property
    def pending(self) -> tuple[str, ...]:
        """The mechanisms that change at the next step boundary."""
        return tuple(name for name in MECHANISMS if getattr(self._wanted, name) != getattr(self.switches, name))

    def advance(self, steps: int = 1) -> None:
        """Apply the flips that wait, and run so many steps.

        Raises:
            EngineClosed: after ``close``. EngineFault: a step failed.
        """
        if steps < 1:
            raise InvalidArgument("steps", steps, "at least 1")
        if self._engine.core.closed:
            raise EngineClosed("this run was closed; start a new one")
        self._rolling.resume()
        if self.pending:
            self._rebuild()
        for _ in range(steps):
            self._step()
        if self.device != "virtual":
            self._engine.device.inner.synchronize()
            self._rolling.collect()

    def close(self) -> None:
        """Free the engine. A second call does nothing."""
        self._engine.close()

    # -- looking -----------------------------------------------------------------------------------------------------

    @property
    def trace(self) -> Trace:
        """What ended in the last steps."""
        return self._rolling.trace()

    @property
    def now_ns(self) -> int:
        return self._rolling.now_ns

    @property
    def tokens_per_s(self) -> float:
        """Over the last steps, from one settled step to another; 0 before there are two."""
        return self._rolling.tokens_per_s

    @property
    def device_name(self) -> str:
        return str(self._engine.device.name)

    @property
    def explanation(self) -> Explanation:
        return explain(self.switches)

    def report(self) -> Report:
        """The numbers of ``trace``."""
        return report(self.trace)

    # -- inner -------------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        self._engine = self._build(self.switches)
        self._rolling.follow(self._engine.device)
        self._live: dict[int, tuple[int, Request]] = {}  # id -> (which prompt, request)
        self.steps = self.tokens = self.finished = self.wrong = 0
        self.held = False
        while len(self._live) < REQUESTS:
            self._submit()

    def _build(self, switches: Switches) -> Engine:
        model_len = PROMPT_TOKENS + LONGEST
        sizes = default_sizes(ToyModel(), max_rows=REQUESTS, max_model_len=model_len)
        return Engine.from_pretrained(
            "toy", switches=switches, device=self.device, profile=self.profile, sizes=sizes, unsafe=True
        )

    def _oracle(self) -> list[list[int]]:
        """What rung 0 generates for each prompt; a shorter request generates the beginning of it."""
        self._prompts = synthetic_prompts(ToyModel(), REQUESTS, PROMPT_TOKENS)
        with self._build(Switches()) as engine:
            return engine.generate(self._prompts, SamplingParams(max_new_tokens=LONGEST)).tokens

    def _submit(self) -> None:
        number = next(self._numbers)
        which, length = number % REQUESTS, SHORTEST + number * 5 % (LONGEST - SHORTEST + 1)
        request = self._engine.submit(self._prompts[which], SamplingParams(max_new_tokens=length))
        self._live[request.id] = which, request

    def _step(self) -> None:
        before = self.tokens
        for event in self._engine.step():
            self._count(event)
        self.steps += 1
        self._engine.take_steps()  # nobody asks for them, and they would add up
        if self.device == "virtual":
            self._rolling.collect()
            if self._rolling.in_flight > 3 * AHEAD:
                self.held = True
                self._engine.device.synchronize()
                self._rolling.collect()
        self._rolling.step_settled(self.tokens - before)

    def _count(self, event: TokenEvent) -> None:
        self.tokens += event.token is not None
        if event.finish_reason:
            which, request = self._live.pop(event.request_id)
            self.finished += 1
            self.wrong += request.output != self._reference[which][: request.generated]
            self._engine.core.requests.pop(request.id)  # an endless run would keep them all
            self._submit()

    def _rebuild(self) -> None:
        """Drain, and build the engine that is wanted."""
        start_ns, text = self._rolling.now_ns, self._flip_text()
        for _, request in self._live.values():
            self._engine.cancel(request)
        while self._engine.busy:
            self._engine.step()
        self._engine.device.inner.synchronize()
        self._rolling.collect()
        self._engine.close()
        self.switches = self._wanted
        self._start()
        self.flips.append(Flip(start_ns, self._rolling.now_ns, text))

    def _flip_text(self) -> str:
        return ", ".join(f"{name} {'on' if getattr(self._wanted, name) else 'off'}" for name in self.pending)
