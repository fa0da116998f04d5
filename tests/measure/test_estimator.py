"""Counting without a tokenizer: any text, in linear time, high enough for every script, marked as an estimate."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foldline.errors import ConfigError
from foldline.measure.estimator import (
    CHARS_4,
    CHARS_36,
    WORDS,
    Count,
    Counter,
    Estimator,
    format_tokens,
    with_margin,
)
from foldline.measure.estimator_weights import families
from foldline.measure.text_features import cut_repeats
from foldline.measure.tokenizers import exact_counter
from foldline.testing.provider.token_rules import CLAUDE_47_RATIO, CLAUDE_RATIO
from support.linear_time import assert_linear
from support.odd_texts import ODD, odd_text
from support.scripts import DENSE, HOSTILE, corpus, dense_text, hostile

TEXTS = st.text(st.characters(exclude_categories=()), max_size=300)
"""Any string Python can hold, lone surrogates included."""
COUNTERS: list[Counter] = [CHARS_4, CHARS_36, WORDS, *(Estimator(family) for family in families())]
COUNTS = st.builds(Count, st.integers(0, 10**9), st.booleans(), st.sampled_from(["a", "b", "c"]))
PUBLIC = [family for family in families() if not family.startswith("claude")]
"""Families whose own vocabulary can be asked."""
CLAUDE = {"claude_le46": CLAUDE_RATIO, "claude_ge47": CLAUDE_47_RATIO}


def real_tokens(text: str, family: str) -> float:
    """The tokens of a text. Claude's vocabularies are not public: their counts are those of o200k times a factor.

    No text has more tokens than bytes.
    """
    vocabulary = "o200k_base" if family in CLAUDE else family
    exact = exact_counter(vocabulary, vocabulary)
    assert exact is not None
    return min(exact.count(text).tokens * CLAUDE.get(family, 1), len(text.encode("utf-8", "surrogatepass")))


@pytest.mark.promise("S2.7", "I10")
@settings(deadline=None)
@given(TEXTS, st.sampled_from(COUNTERS))
def test_any_text_has_a_size(text: str, counter: Counter) -> None:
    count = counter.count(text)
    assert (count.tokens == 0) == (text == "")
    assert 0 <= count.tokens <= len(text.encode("utf-8", "surrogatepass"))
    assert count == counter.count(text)
    assert count.exact is counter.exact is False
    assert count.source == counter.name


@settings(deadline=None)
@given(st.lists(COUNTS, max_size=6))
def test_a_sum_is_exact_only_if_every_part_is(counts: list[Count]) -> None:
    total = sum(counts, Count(0, True, ""))
    assert total.tokens == sum(count.tokens for count in counts)
    assert total.exact is all(count.exact for count in counts)
    assert set(filter(None, total.source.split(" + "))) == {count.source for count in counts}
    assert len(total.source) <= len("a + b + c")


@settings(deadline=None)
@given(COUNTS)
def test_the_size_to_check_is_never_below_the_size_shown(count: Count) -> None:
    assert count.upper >= count.tokens
    assert (count.upper == count.tokens) == (count.exact or count.tokens == 0)


@pytest.mark.promise("S2.10")
@pytest.mark.parametrize(
    ("tokens", "shown"),
    [
        (0, "0"),
        (812, "812"),
        (1_000, "1k"),
        (9_540, "9.5k"),
        (9_999, "10k"),
        (77_000, "77k"),
        (999_499, "999k"),
        (999_500, "1M"),
        (1_048_576, "1M"),
        (1_260_000, "1.3M"),
        (123_456_789, "123M"),
    ],
)
def test_a_size_is_shown_as_short_text(tokens: int, shown: str) -> None:
    assert format_tokens(tokens, True) == str(Count(tokens, True, "")) == shown
    assert format_tokens(tokens, False) == str(Count(tokens, False, "")) == "~" + shown


@settings(deadline=None)
@given(st.integers(0, 10**12), st.booleans())
def test_a_shown_size_is_short_and_close_to_the_exact_one(tokens: int, exact: bool) -> None:
    shown = format_tokens(tokens, exact)
    number = shown.lstrip("~").replace(",", "")
    value = float(number.rstrip("kM")) * {"k": 1e3, "M": 1e6}.get(number[-1], 1)
    assert value == pytest.approx(tokens, rel=0.051)
    assert tokens >= 999_500_000 or len(number) <= 4  # from a billion on, rounded, millions have four digits
    assert shown.startswith("~") != exact


@pytest.mark.promise("S2.8", "S0.17")
def test_rules_of_thumb_count_characters_and_words() -> None:
    assert [CHARS_4.count("x" * n).tokens for n in (0, 1, 4, 5, 4_000)] == [0, 1, 1, 2, 1_000]
    assert [CHARS_36.count("x" * n).tokens for n in (0, 1, 3, 4, 36, 37, 36_000)] == [0, 1, 1, 2, 10, 11, 10_000]
    assert [WORDS.count(text).tokens for text in ("", "  \n", "one", " two  words\n", "三个字")] == [0, 1, 1, 2, 1]
    assert [counter.name for counter in (CHARS_4, CHARS_36, WORDS)] == ["chars/4", "chars/3.6", "words"]


def test_the_error_for_an_unknown_family_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"unknown vocabulary family 'gpt'.*o200k_base"):
        Estimator("gpt")


@pytest.mark.promise("I10")
@pytest.mark.parametrize("family", PUBLIC)
def test_co01_co03_no_script_is_counted_low(family: str) -> None:
    exact = exact_counter(family, family)
    assert exact is not None
    short = {}
    for name, text in corpus().items():
        real, seen = exact.count(text).tokens, Estimator(family).count(text).upper
        if seen < real:
            short[name] = f"{seen} < {real}"
    assert not short


@pytest.mark.promise("I10")
@pytest.mark.parametrize("family", families())
@pytest.mark.parametrize("name", DENSE)
def test_dense_text_is_not_counted_low(name: str, family: str) -> None:
    for seed in range(3):
        text = dense_text(name, seed, 4_000)
        assert Estimator(family).count(text).upper >= real_tokens(text, family)


@pytest.mark.promise("I10")
@pytest.mark.parametrize("family", families())
def test_no_kind_of_odd_text_is_counted_low(family: str) -> None:
    """Tables of single digits and letters, numbers, dumps, notations, layouts and scripts."""
    assert len(ODD) > 190
    short = {}
    for kind in ODD:
        for seed, size in ((0, 4_000), (1, 4_000), (2, 400)):
            text = odd_text(kind, seed, size)
            real, seen = real_tokens(text, family), Estimator(family).count(text).upper
            if seen < real:
                short[kind] = f"{seen} < {real}"
    assert not short


@pytest.mark.promise("I10")
@pytest.mark.parametrize("family", ["o200k_base", "claude_le46"])
def test_a_dense_part_counts_as_much_inside_a_long_text(family: str) -> None:
    prose, minified = corpus()["english"] * 100, dense_text("nested brackets", 0, 100_000)
    count = Estimator(family).count
    assert count(prose + minified + prose).tokens == pytest.approx(
        2 * count(prose).tokens + count(minified).tokens, rel=0.01
    )


@pytest.mark.parametrize("family", PUBLIC)
@pytest.mark.parametrize("character", "-=#*_.!\\(aX0\n\t")
def test_a_run_of_one_character_is_counted_as_its_tokens(character: str, family: str) -> None:
    exact = exact_counter(family, family)
    assert exact is not None
    text = character * 2_000
    assert exact.count(text).tokens <= Estimator(family).count(text).upper <= 2.5 * exact.count(text).tokens


@pytest.mark.parametrize("follower", ["", "x", " ", "か", "\u00a0"])
def test_a_run_of_one_character_is_cut_before_any_character(follower: str) -> None:
    """In UTF-8, か begins with the byte of c plus 128."""
    raw, cut = cut_repeats(("c" * 9 + follower).encode())
    assert raw.decode() == "c" + follower
    assert cut == {ord("c"): 8}


@pytest.mark.parametrize("family", ["o200k_base", "cl100k_base", "gemma3"])
def test_the_estimate_is_close_on_what_sessions_are_made_of(family: str) -> None:
    exact = exact_counter(family, family)
    assert exact is not None
    texts = corpus()
    for name in ("english", "code", "minified", "log", "uuids"):
        assert Estimator(family).count(texts[name]).tokens == pytest.approx(exact.count(texts[name]).tokens, rel=0.2)


def test_newer_claude_counts_more_than_older() -> None:
    text = corpus()["english"]
    older, newer = (Estimator(family).count(text).tokens for family in ("claude_le46", "claude_ge47"))
    assert 1.15 < newer / older < 1.6


@pytest.mark.promise("I10")
@pytest.mark.parametrize("name", HOSTILE)
def test_co17_a_megabyte_of_anything_is_linear(name: str) -> None:
    counter = Estimator("o200k_base")
    assert 0 < counter.count(hostile(name, 1_000_000)).tokens <= 1_000_000
    assert_linear(lambda chars: counter.count(hostile(name, chars)), 125_000)


def test_only_with_margin_adds_the_margin() -> None:
    assert with_margin(0) == 0
    assert with_margin(1_000) == 1_150
    assert Count(1_000, True, "").upper == 1_000
