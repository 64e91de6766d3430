"""Whole experiments: the ladder, rung by rung against rung 0, on given or made-up prompts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from labkit.analysis.races import RaceReport, check, count_races
from labkit.analysis.redundant import Wait, redundant_waits
from labkit.device.api import Device
from labkit.device.costs import Profile, load_profile, scaled_host
from labkit.engine.ordering import WAITS
from labkit.engine.sampling import SamplingParams
from labkit.entry import Engine, Prompt, default_sizes
from labkit.errors import InvalidArgument
from labkit.model.api import Model
from labkit.run import Run
from labkit.sizes import Sizes
from labkit.switches import RUNG_NAMES, Explanation, Switches, explain, ladder

Progress = Callable[[int, int, str], None]  # (done, total, what)
MOST_TOKENS = 50_000_000  # of made-up prompts together: two gigabytes of Python integers


@dataclass(frozen=True)
class RungResult:
    """One rung of the ladder, measured.

    right       its tokens equal rung 0's
    races       how many different races the checker found (``analysis/races.py``); None without a trace
    gpu_active  share of the run in which a kernel runs (``analysis/occupancy.py``)
    """

    rung: int
    name: str
    right: bool
    races: int | None
    gpu_active: float
    idle_ms: float
    total_ms: float
    ms_per_step: float
    host_waits_per_step: float
    tokens_per_s: float
    why: str


@dataclass(frozen=True)
class LadderResult:
    """All rungs of one experiment, and the runs they came from."""

    device: str
    model: str
    profile: str
    rungs: tuple[RungResult, ...]
    runs: dict[str, Run]

    def to_dict(self) -> dict[str, Any]:
        """The result as plain JSON types, without the runs."""
        rungs = [asdict(rung) for rung in self.rungs]
        return {"device": self.device, "model": self.model, "profile": self.profile, "rungs": rungs}


def run_ladder(
    model: Model,
    prompts: Sequence[Prompt],
    params: SamplingParams,
    *,
    rungs: Iterable[int | str] = range(len(RUNG_NAMES)),
    device: str | Device = "virtual",
    profile: str | Path | Profile = "h200-8b",
    sizes: Sizes | None = None,
    keep_runs: bool = True,
    progress: Progress = lambda done, total, what: None,
) -> LadderResult:
    """Run the same requests on each rung and compare the tokens with rung 0's.

    Rung 0 is run first in any case, since it is the oracle; it is reported only if asked for.
    """
    numbers = list(dict.fromkeys(_number(rung) for rung in rungs))
    if not numbers:
        raise InvalidArgument("rungs", numbers, f"at least one rung: {', '.join(RUNG_NAMES)}")
    sizes = sizes or sizes_for(model, prompts, params)
    order = [0, *(number for number in numbers if number != 0)]
    reference: list[list[int]] | None = None
    results, runs, names = {}, {}, ("", "")
    for done, number in enumerate(order):
        progress(done, len(order), f"rung {number} {RUNG_NAMES[number]}")
        engine = Engine(model, switches=number, device=device, profile=profile, sizes=sizes, unsafe=True)
        with engine:
            run = engine.generate(prompts, params)
            names = (engine.device.name, getattr(getattr(engine.device.inner, "profile", None), "name", ""))
        reference = run.tokens if reference is None else reference
        results[number] = measure(number, run, right=run.tokens == reference)
        if keep_runs:
            runs[RUNG_NAMES[number]] = run
    progress(len(order), len(order), "done")
    return LadderResult(names[0], model.name, names[1], tuple(results[number] for number in numbers), runs)


def measure(rung: int, run: Run, *, right: bool) -> RungResult:
    """The row of the ladder's table for one run."""
    report = run.report()
    seconds = report.window_ns / 1e9
    tokens = sum(map(len, run.tokens))
    return RungResult(
        rung=rung,
        name=RUNG_NAMES[rung],
        right=right,
        races=None if run.trace is None else count_races(run.trace),
        gpu_active=round(report.gpu_active, 6),
        idle_ms=round(report.idle_ns / 1e6, 3),
        total_ms=round(report.window_ns / 1e6, 3),
        ms_per_step=round(report.window_ns / 1e6 / max(1, run.stats["steps"]), 4),
        host_waits_per_step=round(report.host_waits / max(1, run.stats["steps"]), 3),
        tokens_per_s=round(tokens / seconds, 1) if seconds else 0.0,
        why=explain(run.switches).why,
    )


@dataclass(frozen=True)
class RaceResult:
    """What orders the accesses of one run, and what does not.

    report        races and other mistakes, with fixes
    redundant     waits that a clean run does without
    tokens_right  they equal those of the synchronous engine on the default stream, rung 0
    explanation   what the switches say, dropped waits apart
    """

    report: RaceReport
    redundant: tuple[Wait, ...]
    tokens_right: bool
    explanation: Explanation

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {
            **self.report.to_dict(),
            "redundant": [wait.name for wait in self.redundant],
            "needed_if_dropped": {wait.name: list(wait.needed_if) for wait in self.redundant},
            "tokens_right": self.tokens_right,
            "why": self.explanation.why,
        }

    def __str__(self) -> str:
        parts = [str(self.report), f"The tokens are {'right' if self.tokens_right else 'WRONG'}."]
        parts += [f"{wait.name} is redundant{_partners(wait)}." for wait in self.redundant]
        return "\n\n".join(parts if self.explanation.right else [*parts, str(self.explanation)])


def _partners(wait: Wait) -> str:
    return f", until {' or '.join(wait.needed_if)} is dropped" if wait.needed_if else ""


def run_races(
    model: Model,
    prompts: Sequence[Prompt],
    params: SamplingParams,
    *,
    switches: Switches | int | str,
    dropped_waits: Sequence[str] = (),
    device: str | Device = "virtual",
    profile: str | Path | Profile = "h200-8b",
    sizes: Sizes | None = None,
) -> RaceResult:
    """Run requests with some switches, without some waits (of ``engine/ordering.py``), and check the trace.

    Raises:
        InvalidArgument: there is no wait of that name.
    """
    for name in dropped_waits:
        if name not in WAITS:
            raise InvalidArgument("dropped_waits", name, f"the waits are {', '.join(WAITS)}")
    sizes = sizes or sizes_for(model, prompts, params)

    def generate(switches: Switches | int | str, dropped: Sequence[str]) -> Run:
        with Engine(
            model, switches=switches, device=device, profile=profile, sizes=sizes, unsafe=True, dropped_waits=dropped
        ) as engine:
            return engine.generate(prompts, params)

    reference, run = generate(0, ()), generate(switches, dropped_waits)
    assert run.trace is not None
    right = run.tokens == reference.tokens
    return RaceResult(check(run.trace), redundant_waits(run.trace), right, explain(run.switches))


@dataclass(frozen=True)
class SweepRow:
    """Total time of a synchronous and an asynchronous run at one ``x``; ``over`` says what x is."""

    over: str
    x: int | float | str
    sync_ms: float
    async_ms: float


SWEPT = (ladder("events").with_(cuda_graphs=True), ladder("cuda_graphs"))  # they differ in asynchrony alone


def sweep_batch(model: Model, batches: Iterable[int] = (1, 2, 4, 8, 16, 32), **options: Any) -> tuple[SweepRow, ...]:
    """The same decoding with more and more requests at once, on the virtual GPU; options as for ``sweep_host``."""
    return tuple(_sweep_row("batch size", batch, model, **{**options, "requests": batch}) for batch in batches)


def sweep_host(
    model: Model,
    factors: Iterable[float] = (0.25, 0.5, 1, 2, 4, 8),
    *,
    profile: str | Path | Profile = "h200-8b",
    **options: Any,
) -> tuple[SweepRow, ...]:
    """Hosts that are ``factor`` times as slow, beside the same virtual GPU.

    Args:
        options: ``requests`` (8), ``prompt_tokens`` (16) and ``new_tokens`` (16); ``switches``, the pair to compare.
    """
    own = load_profile(profile)
    return tuple(_sweep_row("host slowdown", f, model, profile=scaled_host(own, f), **options) for f in factors)


def sweep_model(model: Model, profiles: Iterable[str | Path | Profile], **options: Any) -> tuple[SweepRow, ...]:
    """The same requests at the costs of other models and GPUs; options as for ``sweep_host``."""
    loaded = [load_profile(profile) for profile in profiles]
    return tuple(_sweep_row("model and GPU", one.name, model, profile=one, **options) for one in loaded)


def _sweep_row(
    over: str,
    x: int | float | str,
    model: Model,
    *,
    profile: str | Path | Profile = "h200-8b",
    requests: int = 8,
    prompt_tokens: int = 16,
    new_tokens: int = 16,
    switches: tuple[Switches | int | str, Switches | int | str] = SWEPT,
) -> SweepRow:
    prompts = synthetic_prompts(model, requests, prompt_tokens)
    params = SamplingParams(max_new_tokens=new_tokens, eos_token_ids=())
    times = []
    for mechanisms in switches:
        with Engine(model, switches=mechanisms, profile=profile, sizes=sizes_for(model, prompts, params)) as engine:
            times.append(engine.generate(prompts, params).report().window_ns / 1e6)
    return SweepRow(over, x, *times)


def sizes_for(model: Model, prompts: Sequence[Prompt], params: SamplingParams, **changes: int) -> Sizes:
    """Sizes that hold these requests all at once (up to 32 rows), unless ``changes`` say otherwise."""
    longest = max((len(_tokens(model, prompt)) for prompt in prompts), default=1)
    rows = max(1, min(32, len(prompts)))
    defaults = {"max_rows": rows, "max_model_len": min(model.max_model_len, longest + params.max_new_tokens)}
    return default_sizes(model, **{**defaults, **changes})


def read_prompts(path: str | Path) -> list[str]:
    """Prompts from a text file, one a line; blank lines and lines that start with # are left out.

    Raises:
        InvalidArgument: no such file, or no prompt in it.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InvalidArgument("prompts", str(path), f"a readable text file: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidArgument("prompts", str(path), f"a UTF-8 text file: {error}") from error
    prompts = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if not prompts:
        raise InvalidArgument("prompts", str(path), "at least one line with a prompt")
    return prompts


def synthetic_prompts(model: Model, requests: int, prompt_tokens: int) -> list[list[int]]:
    """Made-up prompts of one length: token ids from a fixed formula, the same on every machine."""
    for name, value in (("requests", requests), ("prompt_tokens", prompt_tokens)):
        if value < 1:
            raise InvalidArgument(name, value, "at least 1")
    if prompt_tokens >= model.max_model_len:
        allowed = f"at most {model.max_model_len - 1}: the model's max_model_len is {model.max_model_len}"
        raise InvalidArgument("prompt_tokens", prompt_tokens, allowed)
    if requests * prompt_tokens > MOST_TOKENS:
        allowed = f"at most {MOST_TOKENS // prompt_tokens} with {prompt_tokens} tokens each"
        raise InvalidArgument("requests", requests, allowed)
    return [
        [(7919 * request + 104729 * place + 13) % model.vocab_size for place in range(prompt_tokens)]
        for request in range(requests)
    ]


def _tokens(model: Model, prompt: Prompt) -> Sequence[int]:
    return model.encode(prompt) if isinstance(prompt, str) else prompt


def _number(rung: int | str) -> int:
    ladder(rung)
    return rung if isinstance(rung, int) else RUNG_NAMES.index(rung)
