"""Measures whether the time of every public entry grows linearly with the size of hostile text.

Each text of `hostile_texts.py` goes through each entry of `hostile_entries.py` at sizes n, 2n and 4n. n is chosen so
that the smallest run takes some milliseconds. Time is CPU time, the minimum of several runs. A pair fails when its time
grows by more than 2.3 per doubling, or is more than a second per megabyte of the text that the entry was given.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import sys
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

from bench.hostile_entries import ENTRIES, Entry
from bench.hostile_texts import TEXTS, HostileText

GROWTH_GOAL, SECONDS_GOAL = 2.3, 1.0
_START_CHARS, _MAX_BYTES = 2_000, 400_000
"""Number of characters of the first text, and maximum number of bytes that an entry gets."""
_LEAST_SECONDS = 0.001
"""A shorter time counts as this one in a ratio, because the fixed time of an entry varies by about as much."""
_DOUBLINGS = 2
_ROUNDS = 3
"""Number of measurements of a pair that fails. The minimum of all runs counts."""
_NUMBERS = itertools.count()
_PATIENCE = 4.0
"""If a run takes this many times the goal, the pair fails, and larger sizes are not tried."""


class Result(NamedTuple):
    """The measurement of one text in one entry."""

    entry: str
    text: str
    chars: int
    """The largest size of the text, in characters."""
    milliseconds: float
    """The time for the largest size, minus the time for a short text."""
    growth: float
    """The growth of the time per doubling of the size: the mean of all doublings."""
    seconds_per_mb: float

    @property
    def is_linear(self) -> bool:
        """Whether the figures meet both goals."""
        return self.growth <= GROWTH_GOAL and self.seconds_per_mb <= SECONDS_GOAL


def run_seconds(entry: Entry, text: str) -> float:
    """CPU seconds of one run."""
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()
        entry.run(text)
        return time.process_time() - start
    finally:
        gc.enable()


def measure(name: str, text: HostileText, *, least_ms: float = 4.0) -> Result:
    """Measure one text in one entry. The smallest size is chosen so that it takes at least `least_ms`."""
    entry = ENTRIES[name]
    fixed = _fixed_seconds(entry)
    chars, limit = _START_CHARS, _MAX_BYTES // entry.copies >> _DOUBLINGS
    while run_seconds(entry, text.make(chars)) - fixed < least_ms / 1000 and 2 * chars <= limit:
        chars *= 2
    times: dict[int, float] = {}
    for round_ in range(_ROUNDS):
        # measured again, because it varies with the load of the machine
        fixed = min(fixed, _fixed_seconds(entry))
        for size in (chars << doubling for doubling in range(_DOUBLINGS + 1)):
            new = text.make(size + len(text.unit) * (round_ + 1))  # no cache knows it
            took = run_seconds(entry, new)
            times[size] = min(took, times.get(size, took))
            if size > chars and (took - fixed) / _megabytes(entry, new) > SECONDS_GOAL * _PATIENCE:
                break
        result = _result(name, text, {size: max(1e-6, took - fixed) for size, took in times.items()})
        if result.is_linear:
            break
    return result


def _fixed_seconds(entry: Entry) -> float:
    """The time of an entry for a short text. This time does not depend on the text."""
    return min(run_seconds(entry, f"word {next(_NUMBERS)}") for _ in range(4))


def _megabytes(entry: Entry, text: str) -> float:
    return entry.copies * len(text.encode("utf-8", "surrogatepass")) / 1e6


def _result(name: str, text: HostileText, times: dict[int, float]) -> Result:
    first, last = min(times), max(times)
    growth = (times[last] / max(times[first], _LEAST_SECONDS)) ** (1 / ((last // first).bit_length() - 1))
    per_mb = times[last] / _megabytes(ENTRIES[name], text.make(last))
    return Result(name, text.name, last, round(times[last] * 1000, 1), round(growth, 2), round(per_mb, 3))


def _chosen(only: Iterable[str]) -> tuple[list[str], list[HostileText]]:
    """The entries and texts that `--only` names: an entry by its name, a text by a part of its name."""
    names = [name for name in only if name in ENTRIES]
    parts = [part for part in only if part not in ENTRIES]
    return names or list(ENTRIES), [text for text in TEXTS if not parts or any(part in text.name for part in parts)]


def _print_worst(results: list[Result], count: int) -> None:
    print(f"{'entry':8} {'text':40} {'KB':>6} {'ms':>9} {'growth':>7} {'s/MB':>7}")
    for row in sorted(results, key=lambda row: (row.is_linear, -row.growth))[:count]:
        size, sign = row.chars // 1000, "" if row.is_linear else "  fails"
        print(
            f"{row.entry:8} {row.text:40} {size:6} {row.milliseconds:9.1f} {row.growth:7.2f} "
            f"{row.seconds_per_mb:7.3f}{sign}",
            flush=True,
        )


def main(argv: list[str]) -> int:
    """Print the slowest texts of every entry. The exit status is 1 if a pair is not linear."""
    options = argparse.ArgumentParser(prog="python -m bench hostile", description=(__doc__ or "").split("\n\n")[0])
    options.add_argument("--only", action="append", default=[], help="an entry, or a part of the names of texts")
    options.add_argument("--quick", action="store_true", help="measure every fifth text")
    options.add_argument("--worst", type=int, default=5, help="how many texts of each entry to print")
    options.add_argument("--json", action="store_true", help="print every figure as JSON")
    given = options.parse_args(argv)
    names, texts = _chosen(given.only)
    texts = texts[::5] if given.quick else texts
    report: list[dict[str, Any]] = []
    failed = 0
    for name in names:
        results: list[Result] = []
        for number, text in enumerate(texts, 1):
            results.append(measure(name, text))
            if number % 20 == 0:
                print(f"{name}: {number} of {len(texts)} texts measured", file=sys.stderr, flush=True)
        bad = sum(not result.is_linear for result in results)
        failed += bad
        report += [{**result._asdict(), "linear": result.is_linear} for result in results]
        if not given.json:
            _print_worst(results, max(given.worst, bad))
            slowest, steepest = max(row.seconds_per_mb for row in results), max(row.growth for row in results)
            print(
                f"{name}: {len(results) - bad} of {len(results)} texts are linear; "
                f"at most {slowest:.2f} s per MB, growth at most {steepest:.2f}\n",
                flush=True,
            )
    if given.json:
        print(json.dumps(report, indent=1))
    else:
        goals = f"growth at most {GROWTH_GOAL} per doubling, at most {SECONDS_GOAL} s per MB"
        print(f"{len(report) - failed} of {len(report)} pairs are linear ({goals})")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
