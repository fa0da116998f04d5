"""Time grows linearly with hostile text, through every entry. `python -m bench hostile` measures all texts."""

from __future__ import annotations

import pytest

from bench.hostile_entries import ENTRIES
from bench.hostile_texts import TEXTS
from support.linear_time import assert_linear

BY_NAME = {text.name: text for text in TEXTS}
CHARS = 16_000
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


@pytest.mark.parametrize(("entry", "name"), PAIRS, ids=lambda value: value)
def test_time_grows_linearly_with_the_text(entry: str, name: str) -> None:
    text, run, copies = BY_NAME[name], ENTRIES[entry].run, ENTRIES[entry].copies
    run(text.make(20))
    assert_linear(lambda chars: run(text.make(chars)), CHARS if copies == 1 else CHARS // 4)
