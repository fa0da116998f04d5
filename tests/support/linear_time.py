"""A check that work grows linearly with its input, which a busy machine cannot fail."""

from __future__ import annotations

import time
from collections.abc import Callable

FACTOR = 8
LIMIT = FACTOR**1.5
"""Growth between that of a linear function (8) and of a quadratic one (64)."""
ROUNDS = 6
"""Noise only adds to a time, so the smallest of the rounds is nearest to the truth."""
LEAST_S = 0.3
"""A time at the larger size that linear code stays far below. The quadratic patterns that were found took 10 seconds
and more there. Shorter times are not compared: their ratio is the noise of the machine."""


def assert_linear(run: Callable[[int], object], size: int) -> None:
    """Fails if `run(8 * size)` takes far more than eight times as long as `run(size)`."""
    short = long = float("inf")
    for number in range(ROUNDS):
        short = min(short, _cpu_seconds(run, size + number))
        long = min(long, _cpu_seconds(run, size * FACTOR + number))
        if long < max(LEAST_S, LIMIT * short):
            return
    raise AssertionError(f"{FACTOR} times the size takes {long / short:.0f} times as long: {long:.2f} s")


def _cpu_seconds(run: Callable[[int], object], size: int) -> float:
    start = time.process_time()
    run(size)
    return time.process_time() - start
