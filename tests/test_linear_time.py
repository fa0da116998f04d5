"""Time grows linearly with hostile text, through every entry. `python -m bench hostile` measures all texts."""

from __future__ import annotations

import time

import pytest

from bench.hostile_entries import ENTRIES
from bench.hostile_texts import TEXTS, HostileText

FACTOR = 8
LIMIT = FACTOR**1.5
"""Growth between that of a linear function (8) and of a quadratic one (64); a busy machine doubles a time at most."""
ROUNDS = 6
"""Noise only adds to a time, so the smallest of the rounds is nearest to the truth."""
LEAST = 0.01
"""Seconds that a quadratic pattern takes at least at the larger size; less is the noise of the machine."""

BY_NAME = {text.name: text for text in TEXTS}
SHORT = 4_000
COMMON = ["< and space", "carriage return", "sk- key", "eyJ line", "open system-reminder", "git commit", "SG."]
"""Texts that were slow in most entries."""
SLOW = {
    "redact": [*COMMON, "armoured line", "ghp_ line", "BEGIN PRIVATE KEY", "url at", "JQQJ9", "url parameter", "_key"],
    "fold": [*COMMON, "open command-message", "long word", "slash"],
    "digest": [*COMMON, "handle", "headings", "line end", "password and carriage return"],
    "recall": ["hex digit", "space", "words"],
    "inspect": ["sk- key", "JSON object"],
    "view": ["space", "lone surrogate"],
    "add": ["space", "combining mark"],
    "watch": COMMON,
    "hook": COMMON,
}
PAIRS = [(entry, name) for entry, names in SLOW.items() for name in names]


def seconds(entry: str, text: HostileText, chars: int) -> float:
    """CPU time for a text of this size."""
    given = text.make(chars)
    start = time.process_time()
    ENTRIES[entry].run(given)
    return time.process_time() - start


@pytest.mark.parametrize(("entry", "name"), PAIRS, ids=lambda value: value)
def test_time_grows_linearly_with_the_text(entry: str, name: str) -> None:
    text, copies = BY_NAME[name], ENTRIES[entry].copies
    chars = SHORT if copies == 1 else SHORT // 4
    seconds(entry, text, chars)
    fixed = short = long = float("inf")
    for number in range(ROUNDS):
        extra = number * len(text.unit)
        fixed = min(fixed, seconds(entry, HostileText("short", "word"), 20 + number))
        short = min(short, seconds(entry, text, chars + extra))
        long = min(long, seconds(entry, text, chars * FACTOR + extra))
        if long - fixed < max(LEAST, LIMIT * max(short - fixed, LEAST / FACTOR)):
            return
    growth = (long - fixed) / max(short - fixed, LEAST / FACTOR)
    pytest.fail(f"{entry} takes {growth:.0f} times as long for {FACTOR} times as much of {name!r}")
