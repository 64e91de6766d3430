"""The mechanisms, the ladder of named settings, and what each combination will do.

A *mechanism* is a thing a switch turns on; a *rung* is a named set of switches, each one a function of the rung
before. Beyond the ladder is what changes how the model runs and the order of nothing. Only ``engine/assemble.py`` turns
switches into objects; nothing else in the engine looks at them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

from labkit.errors import InvalidSwitches


@dataclass(frozen=True, kw_only=True)
class Switches:
    """Which mechanisms are on. All off is the synchronous engine on the default stream.

    streams           pinned memory, non-blocking copies, one stream each for H2D, compute and D2H
    events            record / wait between those streams, and the host's wait for the download
    lookahead         plan and enqueue step N+1 while step N runs
    double_buffering  two slots (sets of host and device buffers) used in turn
    carry_over        a token still on the device replaces its placeholder there, before the forward pass
    cuda_graphs       a decode step is one graph launch: one graph per slot and padded size, one memory pool

    Beyond the ladder, on top of any rung:

    compiled          the model in its compiled form: merged weights, fused kernels between attention calls
    """

    streams: bool = False
    events: bool = False
    lookahead: bool = False
    double_buffering: bool = False
    carry_over: bool = False
    cuda_graphs: bool = False
    compiled: bool = False

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, bool):
                raise InvalidSwitches(field.name, value, "a switch is True or False")

    def with_(self, **changes: bool) -> Switches:
        """The same switches with some changed. Raises InvalidSwitches on an unknown name."""
        for name, value in changes.items():
            if name not in SWITCHES:
                raise InvalidSwitches(name, value, f"the mechanisms are {', '.join(SWITCHES)}")
        return replace(self, **changes)

    @property
    def on(self) -> tuple[str, ...]:
        """The names of the mechanisms that are on, in ladder order, those beyond the ladder last."""
        return tuple(name for name in SWITCHES if getattr(self, name))


SWITCHES: tuple[str, ...] = tuple(field.name for field in fields(Switches))
BEYOND: tuple[str, ...] = ("compiled",)
MECHANISMS: tuple[str, ...] = tuple(name for name in SWITCHES if name not in BEYOND)  # those of the ladder


# The ladder: each rung adds one mechanism to the rung before.


def default_stream() -> Switches:
    return Switches()


def streams() -> Switches:
    return replace(default_stream(), streams=True)


def events() -> Switches:
    return replace(streams(), events=True)


def lookahead() -> Switches:
    return replace(events(), lookahead=True)


def double_buffering() -> Switches:
    return replace(lookahead(), double_buffering=True)


def carry_over() -> Switches:
    return replace(double_buffering(), carry_over=True)


def cuda_graphs() -> Switches:
    return replace(carry_over(), cuda_graphs=True)


RUNGS: tuple[Callable[[], Switches], ...] = (
    default_stream,
    streams,
    events,
    lookahead,
    double_buffering,
    carry_over,
    cuda_graphs,
)
RUNG_NAMES: tuple[str, ...] = tuple(rung.__name__ for rung in RUNGS)


def ladder(rung: str | int) -> Switches:
    """The switches of a rung, by name or number (0 to 6).

    Raises:
        InvalidSwitches: no rung has that name or number.
    """
    known = ", ".join(f"{number} {name}" for number, name in enumerate(RUNG_NAMES))
    if isinstance(rung, int) and not isinstance(rung, bool) and 0 <= rung < len(RUNGS):
        return RUNGS[rung]()
    if isinstance(rung, str) and rung in RUNG_NAMES:
        return RUNGS[RUNG_NAMES.index(rung)]()
    raise InvalidSwitches("rung", rung, f"the rungs are {known}")


@dataclass(frozen=True)
class Finding:
    """One sentence about a combination. ``kind`` is ``wrong``, ``unused``, ``slow`` or ``note``."""

    kind: str
    mechanism: str
    text: str


@dataclass(frozen=True)
class Explanation:
    """What a combination of switches will do. ``right`` is the prediction: tokens equal rung 0's."""

    right: bool
    findings: tuple[Finding, ...]
    why: str

    def __str__(self) -> str:
        more = [finding.text for finding in self.findings if finding.text not in self.why]
        return "\n".join([self.why, *(f"- {text}" for text in more)])


@dataclass(frozen=True)
class _Rule:
    kind: str
    mechanism: str
    applies: Callable[[Switches], bool]
    text: str


_RULES: tuple[_Rule, ...] = (
    _Rule(
        "wrong",
        "events",
        lambda s: s.streams and not s.events,
        "Nothing orders the three streams: compute starts before the upload has arrived, the download copies before "
        "compute has written, and the host reads before the download has landed. Missing: compute waits for h2d_done, "
        "d2h waits for compute_done, the host waits for d2h_done.",
    ),
    _Rule(
        "wrong",
        "double_buffering",
        lambda s: s.lookahead and not s.double_buffering,
        "With one slot, step N+1 fills and uploads the buffers that step N still uses, and its download replaces "
        "step N's tokens before the host has read them.",
    ),
    _Rule(
        "wrong",
        "carry_over",
        lambda s: s.lookahead and not s.carry_over,
        "Step N+1 is filled before step N's tokens are known, so the placeholder itself reaches the model.",
    ),
    _Rule(
        "slow",
        "streams",
        lambda s: s.lookahead and not s.streams,
        "The copies still block the host on the default stream, so looking ahead overlaps nothing.",
    ),
    _Rule(
        "slow",
        "lookahead",
        lambda s: s.streams and s.events and not s.lookahead,
        "The host is free while the GPU computes but has nothing to do: "
        "it plans the next step only after the download.",
    ),
    _Rule(
        "unused",
        "events",
        lambda s: s.events and not s.streams,
        "Everything is on one stream and every copy blocks: "
        "the events are recorded and waited for, and order nothing new.",
    ),
    _Rule(
        "unused",
        "double_buffering",
        lambda s: s.double_buffering and not s.lookahead,
        "One step is in flight at a time, so the second slot only costs memory.",
    ),
    _Rule(
        "unused",
        "carry_over",
        lambda s: s.carry_over and not s.lookahead,
        "The host knows every token before it fills the next step, so nothing is ever carried over.",
    ),
    _Rule(
        "note",
        "compiled",
        lambda s: s.compiled,
        "The model runs in its compiled form: fewer, larger kernels and the same tokens, up to rounding. A model that "
        "has no such form (toy) runs as it is, and the virtual GPU prices both alike.",
    ),
)


def explain(switches: Switches) -> Explanation:
    """Say in sentences what a combination will do and what is missing."""
    findings = tuple(Finding(r.kind, r.mechanism, r.text) for r in _RULES if r.applies(switches))
    wrong = [finding for finding in findings if finding.kind == "wrong"]
    return Explanation(right=not wrong, findings=findings, why=_summary(switches, wrong))


def _summary(switches: Switches, wrong: list[Finding]) -> str:
    if wrong:
        return f"Wrong without {' and '.join(finding.mechanism for finding in wrong)}: " + wrong[0].text
    graphs = " A decode step is one graph launch." if switches.cuda_graphs else ""
    if switches.lookahead and switches.streams:
        return (
            "Right: the host plans step N+1 while the GPU runs step N, and carries tokens over on the device." + graphs
        )
    if switches.streams:
        return "Right: events order the three streams; host and GPU still take turns." + graphs
    return (
        "Right: everything on the default stream, host and GPU take turns, so the GPU idles while the host works."
        + graphs
    )
