"""Compares foldline with other packages (peers) in one run on one machine: speed, valid views and stable prefixes.

`python -m bench peers` needs the `bench` extra. A peer that is not installed is listed as not installed. Every peer is
configured as its documentation says. Its summarizer is replaced by a stub, and its counter divides the number of
characters by 4. Five things are measured: the time of a turn, by the length of the history; the time of the first view
of 10,000 new messages; bad views of 200 random conversations that are cut once; bad views and prefix reuse in all
requests of 20 sessions with a budget of 20,000 tokens; and valid views of conversations whose last turn alone exceeds
the budget.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from typing import Any

from bench.peers import cells, talks

LENGTHS = (100, 1_000, 10_000, 100_000)
BAD, OVERLONG = 200, 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A peer: its name, its driver, and whether its record is complete after a fold."""

    name: str
    module: str
    maker: str
    package: str = ""
    kept: str = "yes"
    options: dict[str, Any] = field(default_factory=dict)
    speed_only: bool = False
    """Whether only speed is measured. Such a peer uses another counter, so its views cannot be compared."""


ENTRIES = (
    Entry(name="foldline balanced", module="ours", maker="Ours"),
    *(
        Entry(name=f"foldline {preset}", module="ours", maker="Ours", options={"preset": preset})
        for preset in ("thrifty", "indus", "ikigai", "awaken")
    ),
    Entry(name="foldline, local digest", module="ours", maker="Ours", options={"digest": True}),
    Entry(name="foldline, estimator", module="ours", maker="Ours", options={"counter": "model"}, speed_only=True),
    Entry(
        name="foldline, exact",
        module="ours",
        maker="Ours",
        options={"counter": "model", "model": "gpt-5"},
        speed_only=True,
    ),
    Entry(
        name="harness SlidingWindow",
        module="harness",
        maker="Harness",
        package="pydantic-ai-harness",
        kept="no",
        options={"tiered": False},
    ),
    Entry(
        name="harness Tiered",
        module="harness",
        maker="Harness",
        package="pydantic-ai-harness",
        kept="no",
        options={"tiered": True},
    ),
    Entry(name="deepagents", module="deep", maker="Deep", package="deepagents"),
    Entry(
        name="langchain middleware",
        module="langchain_middleware",
        maker="Middleware",
        package="langchain",
        kept="no",
    ),
    Entry(name="trim_messages", module="trim", maker="Trim", package="langchain-core", kept="caller"),
    Entry(name="llama-index Memory", module="llama", maker="Llama", package="llama-index-core"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The amount of work of a run."""

    lengths: tuple[int, ...] = LENGTHS
    repeats: int = 3
    bad: int = BAD
    sessions: int = talks.SESSIONS
    overlong: int = OVERLONG
    seconds: float = 300.0
    """Time limit for one measurement, in seconds."""


QUICK = Scale(lengths=LENGTHS[:2], repeats=1, bad=20, sessions=1, overlong=10, seconds=20.0)


def main(argv: Sequence[str]) -> int:
    """Measure all peers and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench peers", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one line of JSON for each peer")
    parser.add_argument("--only", action="append", default=[], help="only peers whose name contains this text")
    parser.add_argument("--quick", action="store_true", help="a tenth of the work, for a quick check")
    parser.add_argument("--seconds", type=float, help="time limit for one measurement")
    parser.add_argument("--here", metavar="NAME", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    scale = QUICK if options.quick else Scale()
    if options.seconds:
        scale = replace(scale, seconds=options.seconds)
    if options.here:
        _quiet()
        print(json.dumps(measure(next(it for it in ENTRIES if it.name == options.here), scale)))
        return 0
    chosen = [it for it in ENTRIES if not options.only or any(word in it.name for word in options.only)]
    rows = []
    for entry in chosen:
        rows.append(_apart(entry, argv))
        if options.json:
            print(json.dumps(rows[-1]), flush=True)
    if not options.json:
        print("\n".join(table(rows, scale)))
    return 0


def _apart(entry: Entry, argv: Sequence[str]) -> dict[str, Any]:
    """Measure a peer in a process of its own, so that it cannot affect the results of other peers."""
    command = [sys.executable, "-m", "bench", "peers", *argv, "--here", entry.name]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        return {**_about(entry), "missing": f"ended with status {done.returncode}"}
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return row


def _quiet() -> None:
    """Suppress the warnings and logs of peers."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)


def measure(entry: Entry, scale: Scale) -> dict[str, Any]:
    """All results of one peer. A measurement that failed has a text instead of a figure."""
    row = _about(entry)
    try:
        maker = getattr(import_module(f"bench.peers.{entry.module}"), entry.maker)
    except ImportError as error:
        return {**row, "missing": f"not installed ({error.name})"}
    make: cells.Make = partial(maker, **entry.options)
    gc.collect()
    gc.freeze()
    for length in scale.lengths:
        row[f"turn {length}"] = _cell(
            entry, f"turn at {length:,}", scale, partial(cells.turn_cost, make, length, scale.seconds / 10)
        )
    row["first"] = _cell(entry, "first view", scale, partial(cells.first_view, make, scale.repeats))
    if not entry.speed_only:
        cases = (talks.random_talk(seed) for seed in range(scale.bad))
        row["bad"] = _cell(entry, "random talks", scale, lambda: cells.bad_of(make, cases))
        row["drive"] = _cell(entry, "drive", scale, lambda: cells.drive(make, islice(talks.sessions(), scale.sessions)))
        longs = (talks.overlong(seed) for seed in range(scale.overlong))
        row["overlong"] = _cell(entry, "over-long turns", scale, lambda: cells.bad_of(make, longs))
    gc.unfreeze()
    return {key: _plain(value) for key, value in row.items()}


def _about(entry: Entry) -> dict[str, Any]:
    return {"name": entry.name, "version": _version(entry.package), "kept": entry.kept}


def _version(package: str) -> str:
    try:
        return version(package or "foldline")
    except PackageNotFoundError:
        return ""


def _cell(entry: Entry, what: str, scale: Scale, work: Callable[[], Any]) -> Any:
    print(f"{entry.name}: {what}", end=" ", file=sys.stderr, flush=True)
    try:
        with cells.limit(scale.seconds):
            found = work()
    except cells.TookTooLong:
        found = f"over {scale.seconds:.0f} s"
    except Exception as error:  # noqa: BLE001 (the finding)
        found = f"error: {type(error).__name__}"
        print(f"({error})"[:200], end=" ", file=sys.stderr)
    print(_plain(found), file=sys.stderr, flush=True)
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, cells.Tally):
        return {"bad": value.bad, "of": value.of, "reuse": round(value.reuse, 4), "why": dict(value.why.most_common())}
    return round(value, 1) if isinstance(value, float) else value


def table(rows: Sequence[dict[str, Any]], scale: Scale) -> Iterator[str]:
    """The results as a table with a row for each peer, followed by the reasons why views were bad."""
    turns = [f"{length:,}" for length in scale.lengths]
    head = ["peer", "version", "record", *turns, "first ms", "bad", "drive", "reuse", "over-long valid"]
    lines = [head, *(_line(row, scale) for row in rows)]
    widths = [max(len(line[column]) for line in lines if column < len(line)) for column in range(len(head))]
    yield f"turn cost in microseconds at {', '.join(turns)} messages"
    for line in lines:
        yield "  ".join(
            text.ljust(width) if column < 3 else text.rjust(width)
            for column, (text, width) in enumerate(zip(line, widths, strict=False))
        ).rstrip()
    added, most = cells.reuse_bound(islice(talks.sessions(), scale.sessions))
    yield f"in the sessions, a request adds {added:,.0f} tokens on average, so the largest possible reuse is {most:.3f}"
    for row in rows:
        for cell in ("bad", "drive", "overlong"):
            found = row.get(cell)
            if isinstance(found, dict) and found["why"]:
                said = ", ".join(f"{count} {why}" for why, count in found["why"].items())
                yield f"{row['name']}, {cell}: {said}"


def _line(row: dict[str, Any], scale: Scale) -> list[str]:
    start = [row["name"], row["version"], row["kept"]]
    if "missing" in row:
        return [*start, row["missing"]]
    speed = [_figure(row[f"turn {length}"]) for length in scale.lengths] + [_figure(row["first"])]
    bad, drive, long = (row.get(name, "–") for name in ("bad", "drive", "overlong"))
    counts = [f"{it['bad']:,} of {it['of']:,}" if isinstance(it, dict) else str(it) for it in (bad, drive)]
    reuse = f"{drive['reuse']:.3f}" if isinstance(drive, dict) else "–"
    valid = f"{long['of'] - long['bad']} of {long['of']}" if isinstance(long, dict) else str(long)
    return [*start, *speed, *counts, reuse, valid]


def _figure(value: Any) -> str:
    return (f"{value:,.0f}" if value >= 100 else f"{value:.1f}") if isinstance(value, (int, float)) else str(value)
