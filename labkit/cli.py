"""``labkit run``, ``ladder``, ``trace``, ``races``, ``calibrate``, ``bench``, ``start``, ``export`` and ``doctor``.

Bad input is one line on stderr and status 2.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from labkit import experiments
from labkit.bench.commands import add_commands, check_output
from labkit.device import check_device
from labkit.device.costs import profile_names
from labkit.engine.ordering import WAITS
from labkit.engine.sampling import SamplingParams
from labkit.entry import Engine
from labkit.errors import InvalidArgument, LabkitError
from labkit.lessons import commands as course
from labkit.model import load_model
from labkit.model.api import Model
from labkit.settings import Settings, parse_settings
from labkit.switches import RUNG_NAMES, explain, ladder


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status: 0 done, 1 failed, 2 bad input, 130 interrupted."""
    arguments = _parser().parse_args(argv)
    try:
        status: int = arguments.command(arguments)
    except LabkitError as error:
        print(f"labkit: {error}", file=sys.stderr)
        return 2 if isinstance(error, ValueError) else 1
    except OSError as error:  # a file that cannot be read or written; the message has its name
        print(f"labkit: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("labkit: interrupted", file=sys.stderr)
        return 130
    return status


# -- commands ----------------------------------------------------------------------------------------------------------


def _run(arguments: argparse.Namespace) -> int:
    settings = parse_settings(arguments.set)
    model = _model(arguments)
    switches = ladder(_rung(arguments.rung)).with_(**settings.switches)
    prompts, params = _prompts(arguments, model), _sampling(arguments, settings)
    sizes = experiments.sizes_for(model, prompts, params, **settings.sizes)
    engine = Engine(
        model,
        switches=switches,
        device=arguments.device,
        profile=arguments.profile,
        sizes=sizes,
        unsafe=arguments.unsafe,
    )
    with engine:
        run = engine.generate(prompts, params)
    if arguments.json:
        _print_json(
            {
                "device": engine.device.name,
                "model": model.name,
                "switches": list(switches.on),
                "tokens": run.tokens,
                "texts": run.texts,
                "logprobs": run.logprobs,
                "finish_reasons": run.finish_reasons,
                "stats": run.stats,
                "report": run.report().to_dict(),
            }
        )
        return 0
    for prompt, text, reason in zip(prompts, run.texts, run.finish_reasons, strict=True):
        print(f"> {_shorten(prompt)}\n{text}\n  [{reason}]\n")
    print(run.report())
    print(explain(switches))
    return 0


def _ladder(arguments: argparse.Namespace) -> int:
    settings = parse_settings(arguments.set)
    if settings.switches:
        raise InvalidArgument("-s", next(iter(settings.switches)), "the ladder sets the switches; use labkit run")
    model = _model(arguments)
    prompts, params = _prompts(arguments, model), _sampling(arguments, settings)
    result = experiments.run_ladder(
        model,
        prompts,
        params,
        rungs=_rungs(arguments.rungs),
        device=arguments.device,
        profile=arguments.profile,
        sizes=experiments.sizes_for(model, prompts, params, **settings.sizes),
        keep_runs=False,
        progress=_progress,
    )
    if arguments.json:
        _print_json(result.to_dict())
    else:
        print(_ladder_table(result))
    return 0


def _trace(arguments: argparse.Namespace) -> int:
    if not arguments.output.endswith((".html", ".json", ".json.gz")):
        raise InvalidArgument("--output", arguments.output, "a name that ends in .html, .json or .json.gz")
    check_output("--output", arguments.output)
    settings = parse_settings(arguments.set)
    model = _model(arguments)
    prompts, params = _prompts(arguments, model), _sampling(arguments, settings)
    switches = ladder(_rung(arguments.rung)).with_(**settings.switches)
    sizes = experiments.sizes_for(model, prompts, params, **settings.sizes)
    engine = Engine(
        model, switches=switches, device=arguments.device, profile=arguments.profile, sizes=sizes, unsafe=True
    )
    with engine:
        run = engine.generate(prompts, params)
    assert run.trace is not None
    if arguments.output.endswith(".html"):
        from labkit.viz.html import save_html

        save_html(run.trace, arguments.output, title=f"{model.name}, {', '.join(switches.on) or 'default stream'}")
    else:
        run.trace.save(arguments.output)
    print(f"{arguments.output}: {run.trace.steps} steps, {len(run.trace)} spans")
    return 0


def _races(arguments: argparse.Namespace) -> int:
    if arguments.list:
        print("\n".join(WAITS))
        return 0
    settings = parse_settings(arguments.set)
    model = _model(arguments)
    prompts, params = _prompts(arguments, model), _sampling(arguments, settings)
    result = experiments.run_races(
        model,
        prompts,
        params,
        switches=ladder(_rung(arguments.rung)).with_(**settings.switches),
        dropped_waits=arguments.drop,
        device=arguments.device,
        profile=arguments.profile,
        sizes=experiments.sizes_for(model, prompts, params, **settings.sizes),
    )
    if arguments.json:
        _print_json(result.to_dict())
    else:
        print(result)
    return 0


def _doctor(arguments: argparse.Namespace) -> int:
    from labkit.doctor import doctor

    found = doctor(fetch=arguments.fetch)
    if arguments.json:
        _print_json(found.to_dict())
    else:
        print(found)
    return 0


# -- arguments ---------------------------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="labkit", description="Learn asynchronous continuous batching by switching its mechanisms on and off."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="generate text on one rung and report what the GPU did")
    _add_common(run)
    _add_rung(run)
    run.add_argument("--unsafe", action="store_true", help="run a combination that cannot be right")
    run.set_defaults(command=_run)
    rungs = commands.add_parser("ladder", help="run every rung on the same requests and compare")
    _add_common(rungs)
    rungs.add_argument("--rungs", default=",".join(map(str, range(len(RUNG_NAMES)))), help="numbers or names, by comma")
    rungs.set_defaults(command=_ladder)
    trace = commands.add_parser("trace", help="run one rung and write its timeline")
    _add_common(trace)
    _add_rung(trace)
    trace.add_argument("-o", "--output", required=True, help=".html: a page; .json: for Perfetto and chrome://tracing")
    trace.set_defaults(command=_trace)
    races = commands.add_parser("races", help="run one rung and say which accesses nothing orders, and what to add")
    _add_common(races)
    _add_rung(races)
    races.add_argument("--drop", action="append", default=[], metavar="WAIT", help="leave out this wait of the loop")
    races.add_argument("--list", action="store_true", help="print the names of the loop's waits")
    races.set_defaults(command=_races)
    add_commands(commands)
    course.add_commands(commands)
    check = commands.add_parser("doctor", help="what is installed here, and how to mend what is not")
    check.add_argument("--json", action="store_true")
    check.add_argument("--fetch", action="store_true", help="first load smollm2 once, which converts its weights")
    check.set_defaults(command=_doctor)
    return parser


def _add_rung(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rung", default="carry_over", help=f"0 to {len(RUNG_NAMES) - 1}, or {', '.join(RUNG_NAMES)}")


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", default="toy", help="toy, smollm2, llama-8b, a local path or a hub id")
    parser.add_argument("--prompts", help="text file, one prompt a line")
    parser.add_argument("--requests", type=int, help="this many made-up prompts instead")
    parser.add_argument("--prompt-tokens", type=int, default=32, help="tokens of a made-up prompt")
    parser.add_argument("--max-new-tokens", type=int, default=32)
    parser.add_argument("--device", default="virtual", choices=["virtual", "cuda"])
    parser.add_argument("--profile", default="h200-8b", help=f"costs: {', '.join(profile_names())}, or a .json file")
    parser.add_argument(
        "-s", "--set", action="append", default=[], metavar="KEY=VALUE", help="a switch, size or setting"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")


def _model(arguments: argparse.Namespace) -> Model:
    check_device(arguments.device)
    options: dict[str, Any] = {} if arguments.model == "toy" else {"device": _where(arguments)}
    model = load_model(arguments.model, **options)
    if arguments.model == "toy" and arguments.device == "cuda":
        import torch

        return model.to(torch.device("cuda"))
    return model


def _where(arguments: argparse.Namespace) -> str:
    return "cuda" if arguments.device == "cuda" else "cpu"


def _prompts(arguments: argparse.Namespace, model: Model) -> list[Any]:
    if arguments.prompts is not None and arguments.requests is not None:
        raise InvalidArgument("--requests", arguments.requests, "give --prompts or --requests, not both")
    if arguments.prompts is not None:
        return list(experiments.read_prompts(arguments.prompts))
    requests = 8 if arguments.requests is None else arguments.requests
    return list(experiments.synthetic_prompts(model, requests, arguments.prompt_tokens))


def _sampling(arguments: argparse.Namespace, settings: Settings) -> SamplingParams:
    return SamplingParams(**{"max_new_tokens": arguments.max_new_tokens, **settings.sampling})


def _rung(text: str) -> str | int:
    return int(text) if text.isdecimal() else text


def _rungs(text: str) -> list[str | int]:
    return [_rung(part.strip()) for part in text.split(",") if part.strip()]


# -- output ------------------------------------------------------------------------------------------------------------


def _print_json(value: dict[str, Any]) -> None:
    print(json.dumps(value, indent=2))


def _ladder_table(result: experiments.LadderResult) -> str:
    lines = [
        f"{result.model} on {result.device}",
        f"{'rung':<20}{'tokens':>8}{'GPU active':>12}{'idle ms':>12}{'total ms':>13}{'ms/step':>10}"
        f"{'waits/step':>12}{'tokens/s':>11}",
    ]
    lines += [
        f"{rung.rung} {rung.name:<18}{'right' if rung.right else 'WRONG':>8}{rung.gpu_active:>12.1%}"
        f"{rung.idle_ms:>12.1f}{rung.total_ms:>13.1f}{rung.ms_per_step:>10.2f}{rung.host_waits_per_step:>12.2f}{rung.tokens_per_s:>11.1f}"
        for rung in result.rungs
    ]
    return "\n".join([*lines, "", *(f"{rung.rung} {rung.name}: {rung.why}" for rung in result.rungs)])


def _shorten(prompt: Any, width: int = 100) -> str:
    text = str(prompt)
    return text if len(text) <= width else text[: width - 3] + "..."


def _progress(done: int, total: int, what: str) -> None:
    """A bar on a terminal's stderr; nothing in a pipe."""
    if sys.stderr.isatty():
        bar = "#" * (20 * done // total)
        print(
            f"\r[{bar:<20}] {done}/{total} {what:<30}", end="\n" if done == total else "", file=sys.stderr, flush=True
        )
