"""A rule is skipped only if the text contains none of its marks."""

from __future__ import annotations

import json
import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from foldline.redact.context_patterns import CONTEXT_PATTERNS
from foldline.redact.keys import find_word_keys
from foldline.redact.patterns import SECRET_NAMES, WORD_KEYS, KeyShape
from foldline.redact.searched_text import RulesByMark, SearchedText

MARKS = sorted({*SECRET_NAMES, *(mark for row in CONTEXT_PATTERNS for mark in row.marks)})
PREFIXES = [(prefix, shape) for shape in WORD_KEYS for prefix in shape.prefixes]
AROUND = st.text(st.sampled_from("ab nrtAé密 \n\\_-.:=/0→İ\ud800"), max_size=6)


@given(st.sampled_from(MARKS), AROUND, AROUND)
def test_a_mark_is_found_whatever_surrounds_it(mark: str, before: str, behind: str) -> None:
    rules = RulesByMark([(mark, mark)])
    assert rules.possible(SearchedText(before + mark + behind)) == [(mark, mark)]


@given(
    st.sampled_from(PREFIXES),
    st.sampled_from(["", " ", "\n", "\\n", "\\t", "\\r", "→", "密", '"', "=", "a ", "é", "__"]),
)
def test_a_key_is_found_at_every_start_of_a_word(key: tuple[str, KeyShape], before: str) -> None:
    prefix, shape = key
    kinds = {hit.kind for hit in find_word_keys(SearchedText(f"{before}{prefix}{_letters(shape)}"))}
    assert shape.kind in kinds


def _letters(shape: KeyShape) -> str:
    """Letters and digits that may follow the prefix of a key, as many as it needs."""
    allowed = "".join(re.findall(f"[{shape.letters}]", "A7b9C2d4E6f8a1B3"))
    return (allowed * 20)[: shape.least]


def test_a_line_that_matches_a_pattern_also_matches_its_probe() -> None:
    lists = [Path(__file__).parent / name for name in ("secrets.jsonl", "harmless.jsonl")]
    texts = [json.loads(line)["text"] for path in lists for line in path.read_text("utf-8").splitlines()]
    matched = set()
    for number, row in enumerate(CONTEXT_PATTERNS):
        for text in texts if row.probe is not None else ():
            for found in row.pattern.finditer(text) if any(mark in text for mark in row.marks) else ():
                assert row.probe is not None
                assert row.probe.search(text, text.rfind("\n", 0, found.start()) + 1), (row.kind, text)
                matched.add(number)
    assert len(matched) > 15  # the lists have an example of nearly every pattern
