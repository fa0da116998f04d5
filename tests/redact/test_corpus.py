"""Redaction of a corpus: `secrets.jsonl` and `harmless.jsonl`, one JSON object per line.

A row has the text, the secret in it, a note, and who wrote it: `own` (with the patterns at hand) or `fresh` (by
somebody who had not seen the patterns). All values are invented.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bench.secrets import stays
from foldline.redact.redact import redact

HERE = Path(__file__).parent


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]


SECRETS, HARMLESS = rows("secrets.jsonl"), rows("harmless.jsonl")


def test_the_corpus_is_large_and_half_of_it_was_written_with_fresh_eyes() -> None:
    for lines in (SECRETS, HARMLESS):
        by = Counter(row["by"] for row in lines)
        assert by["fresh"] >= 300
        assert by["own"] >= 300


@pytest.mark.parametrize("row", SECRETS, ids=lambda row: row["note"])
def test_no_part_of_a_secret_stays(row: dict[str, Any]) -> None:
    assert not stays(row), redact(row["text"])


@pytest.mark.parametrize("row", HARMLESS, ids=lambda row: row["text"][:40].encode("unicode_escape").decode())
def test_a_harmless_line_stays_letter_for_letter(row: dict[str, Any]) -> None:
    assert redact(row["text"]) == row["text"]


def test_redacting_the_corpus_twice_changes_nothing() -> None:
    for row in (*SECRETS, *HARMLESS):
        once = redact(row["text"])
        assert redact(once) == once
