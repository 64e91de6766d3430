"""``labkit calibrate`` and ``labkit bench``."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from labkit.bench.calibrate import QUICK, calibrate
from labkit.bench.decode import WARM
from labkit.bench.models import FORMS, bench_model, in_form, open_rig
from labkit.bench.peer import peer_rows
from labkit.bench.step_costs import Grid
from labkit.bench.table import HEADER, LEGEND, MODES, BenchRow, bench, line_of
from labkit.errors import InvalidArgument


def add_commands(commands: Any) -> None:
    """Add both to argparse's subparsers."""
    cost = commands.add_parser("calibrate", help="measure a GPU and a model, and write a cost profile")
    _add_device(cost)
    cost.add_argument("--model", default="8b", help="a shape (135m, 1b, 8b, tiny) with random weights, or a model")
    cost.add_argument("--form", default="compiled", choices=FORMS, help="how the model runs")
    cost.add_argument("--name", help="the profile's name; by default that of the file")
    cost.add_argument("--rows", help="row counts to measure, by comma")
    cost.add_argument("--contexts", help="context lengths to measure, by comma")
    cost.add_argument("--quick", action="store_true", help="fewer sizes and repeats")
    cost.add_argument("-o", "--out", type=Path, required=True, help="the .json file to write")
    cost.set_defaults(command=_calibrate)
    table = commands.add_parser("bench", help="steady steps: tokens/s, ms, GPU active, host time, beside the floor")
    _add_device(table)
    table.add_argument("--model", default="8b", help="a shape (135m, 1b, 8b, tiny) with random weights, or a model")
    table.add_argument("--forms", default="fused", help=f"by comma: {', '.join(FORMS)}")
    table.add_argument("--modes", default=",".join(MODES), help=f"by comma: {', '.join(MODES)}")
    table.add_argument("--batch", default="32", help="by comma")
    table.add_argument("--context", default="512,4096", help="by comma")
    table.add_argument("--steps", type=int, default=15, help="steps in each of three stretches")
    table.add_argument("--peer", action="store_true", help="transformers' generate_batch too, sync and async")
    table.add_argument("--json", type=Path, help="write all rows here")
    table.set_defaults(command=_bench)


def _add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", default="cuda", choices=["virtual", "cuda"])
    parser.add_argument("--profile", default="h200-8b", help="costs of the virtual GPU")


def _calibrate(arguments: argparse.Namespace) -> int:
    if arguments.out.suffix != ".json":
        raise InvalidArgument("--out", str(arguments.out), "a name that ends in .json")
    check_output("--out", arguments.out)
    grid = _grid(arguments)
    watch = _Watch()
    rig = open_rig(arguments.device, arguments.profile)
    model = bench_model(arguments.model, arguments.form, arguments.device)
    watch(f"{rig.about}, {arguments.model} {arguments.form}")
    found = calibrate(
        rig,
        model,
        arguments.name or arguments.out.stem,
        command=_command(),
        grid=grid,
        quick=arguments.quick,
        progress=watch,
    )
    arguments.out.write_text(found.profile.to_json())
    print("\n".join(map(str, found.rests)))
    print(f"{arguments.out}: {found.profile.name}, {found.profile.source}")
    return 0


def _bench(arguments: argparse.Namespace) -> int:
    forms, modes = _words(arguments.forms, FORMS, "--forms"), _words(arguments.modes, tuple(MODES), "--modes")
    batches, contexts = _ints("--batch", arguments.batch), _ints("--context", arguments.context)
    if min(contexts) <= WARM:
        raise InvalidArgument("--context", min(contexts), f"at least {WARM + 1}: {WARM} tokens are the warm-up's")
    if arguments.steps < 2:
        raise InvalidArgument("--steps", arguments.steps, "at least 2")
    if arguments.json:
        check_output("--json", arguments.json)
    watch = _Watch()
    rig = open_rig(arguments.device, arguments.profile)
    bandwidth = rig.read_bandwidth()
    rig.release()
    model = bench_model(arguments.model, "hf", arguments.device)
    watch(f"{rig.about}, {arguments.model}, copy bandwidth {bandwidth:.0f} GB/s\n{HEADER}")
    rows: list[BenchRow] = []
    if arguments.peer:  # first: the other forms merge the weights
        rows += _printed(peer_rows(model, batches, contexts, bandwidth))
        rig.release()
        watch("peer")
    for form in forms:
        formed = model if arguments.device == "virtual" else in_form(model, form)
        found = bench(rig, formed, form, modes, batches, contexts, bandwidth=bandwidth, steps=arguments.steps)
        rows += _printed(found)
        watch(form)
    print(LEGEND)
    if arguments.json:
        whole = {"about": rig.about, "command": _command(), "bandwidth": bandwidth, "rows": [r.to_dict() for r in rows]}
        arguments.json.write_text(json.dumps(whole, indent=1))
    return 0


def check_output(name: str, path: str | Path) -> None:
    """Say before anything is measured, not after, that its file could not be written.

    Raises:
        InvalidArgument: a folder, or a file in a folder that is not there or not to be written to.
    """
    path = Path(path)
    if path.is_dir():
        raise InvalidArgument(name, str(path), "a file; this is a folder")
    if not path.parent.is_dir():
        raise InvalidArgument(name, str(path), f"a file in a folder that is there; {path.parent} is not")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InvalidArgument(name, str(path), "a file that can be written")


def _printed(rows: Iterable[BenchRow]) -> Iterator[BenchRow]:
    """The rows, each printed as it comes."""
    for row in rows:
        print(line_of(row), flush=True)
        yield row


def _words(text: str, known: tuple[str, ...], name: str) -> tuple[str, ...]:
    """Words by comma, each a known one.

    Raises:
        InvalidArgument: another word, or none.
    """
    words = tuple(part.strip() for part in text.split(",") if part.strip())
    if not words or not set(words) <= set(known):
        raise InvalidArgument(name, text, f"some of {', '.join(known)}, by comma")
    return words


def _command() -> str:
    return " ".join(["labkit", *sys.argv[1:]])


def _grid(arguments: argparse.Namespace) -> Grid | None:
    """The grid that was asked for; None: the default, or the quick one."""
    if not (arguments.rows or arguments.contexts):
        return None
    plain = QUICK if arguments.quick else Grid()
    rows, contexts = _ints("--rows", arguments.rows), _ints("--contexts", arguments.contexts)
    return replace(plain, rows=rows or plain.rows, contexts=contexts or plain.contexts)


def _ints(name: str, text: str | None) -> tuple[int, ...]:
    """Ascending positive integers by comma.

    Raises:
        InvalidArgument: something else.
    """
    if not text:
        return ()
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) for part in parts):
        raise InvalidArgument(name, text, "positive integers, by comma")
    return tuple(sorted({int(part) for part in parts}))


class _Watch:
    """Says what was done and how long it took."""

    def __init__(self) -> None:
        self._last = time.perf_counter()

    def __call__(self, what: str) -> None:
        now = time.perf_counter()
        print(f"[{now - self._last:5.1f} s] {what}", flush=True)
        self._last = now
