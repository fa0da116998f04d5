"""The status line of Claude Code: how full the window is, when a compaction is due, and what the session cost.

Claude Code runs the command many times a minute, so this module imports almost nothing. All figures come from Claude
Code as JSON.
"""

from __future__ import annotations

import json
import os
from typing import Any

from foldline.watch.stdio import print_answer, print_failure, read_stdin

BAR = 10
_COLOURS = {"calm": "", "warn": "\033[33m", "compact": "\033[31m"}
_RESET = "\033[0m"
_INPUTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
WARN, COMPACT = 0.70, 0.78
"""The thresholds of `watch/meter.py`, repeated here because importing that module takes too long.

A test checks that both modules have the same thresholds.
"""


def run() -> int:
    """Read Claude Code's JSON from standard input and print the status line; returns the exit status."""
    try:
        status = json.loads(read_stdin())
    except (ValueError, RecursionError):
        status = {}
    except OSError as error:
        return print_failure("statusline", f"standard input cannot be read ({error.strerror})")
    return print_answer("statusline", line(status, colour="NO_COLOR" not in os.environ))


def line(status: Any, *, colour: bool = False) -> str:
    """Status line for the JSON that Claude Code passes in; "" if the JSON has no figures.

    >>> line({"model": {"display_name": "Opus"}, "context_window": {"context_window_size": 200_000,
    ...       "current_usage": {"input_tokens": 150_000}}, "cost": {"total_cost_usd": 1.5}})
    'Opus ▰▰▰▰▰▰▰▱▱▱ 75% 150k/200k, compaction at 78% $1.50'
    """
    context, cost = _dict(status, "context_window"), _dict(status, "cost")
    model = _dict(status, "model").get("display_name")
    pieces = ["".join(filter(str.isprintable, model[:40]))] if isinstance(model, str) and model else []
    window, used = _count(context.get("context_window_size")), _used(context)
    if window and used is not None:
        share = used / window
        level = "compact" if share >= COMPACT else "warn" if share >= WARN else "calm"
        full = max(0, min(BAR, int(share * BAR)))
        bar = "▰" * full + "▱" * (BAR - full)
        paint, end = (_COLOURS[level], _RESET) if colour and level != "calm" else ("", "")
        note = {"calm": "", "warn": f", compaction at {COMPACT:.0%}", "compact": ", time to compact"}[level]
        pieces.append(f"{paint}{bar} {share:.0%} {_human(used)}/{_human(window)}{note}{end}")
    elif window:
        pieces.append(f"{'▱' * BAR} not measured yet")
    usd = _number(cost.get("total_cost_usd"))
    if usd:
        pieces.append(f"${usd:.2f}")
    return " ".join(pieces)


def _used(context: dict[str, Any]) -> int | None:
    """Tokens of the last call; None between a compaction and the next call."""
    usage = context.get("current_usage")
    if isinstance(usage, dict):
        return sum(_count(usage.get(name)) for name in _INPUTS)
    share = _number(context.get("used_percentage"))
    return int(_count(context.get("context_window_size")) * share / 100) if usage is None and share else None


def _dict(value: Any, key: str) -> dict[str, Any]:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def _count(value: Any) -> int:
    return value if type(value) is int and 0 < value < 2**53 else 0


def _number(value: Any) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and 0 < value < 1e9 else 0.0


def _human(tokens: int) -> str:
    if tokens >= 1_000_000:
        return f"{tokens / 1_000_000:.1f}M"
    return f"{tokens // 1000}k" if tokens >= 1000 else str(tokens)
