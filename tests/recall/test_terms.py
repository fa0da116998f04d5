"""Terms: any text gives terms, and different spellings of a name share them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.recall.terms import STOP, TERM_CHARS, stem, terms
from support.linear_time import assert_linear

ANY = st.text(st.characters(codec=None, categories=None))
"""Also lone surrogates, control characters and what is not assigned."""
WORD = st.from_regex(r"[a-z]{2,12}", fullmatch=True).filter(lambda word: word not in STOP)


@given(ANY)
def test_any_text_gives_terms_that_any_database_accepts(text: str) -> None:
    found = terms(text)
    assert found == terms(text) == list(dict.fromkeys(found))
    for term in found:
        assert 0 < len(term) <= TERM_CHARS
        term.encode()
        assert not any(letter.isspace() or letter in "\0'\"" for letter in term)


@given(ANY, ANY)
def test_a_text_keeps_its_terms_beside_others(one: str, other: str) -> None:
    assert set(terms(f"{one}\n{other}")) >= set(terms(one)) | set(terms(other))


@given(st.lists(WORD, min_size=2, max_size=5))
def test_spellings_of_a_name_share_terms(words: list[str]) -> None:
    camel = words[0] + "".join(word.capitalize() for word in words[1:])
    spelled = [camel, camel[0].upper() + camel[1:], "_".join(words), "-".join(words), "_".join(words).upper()]
    wholes = {terms(name)[0] for name in spelled}
    assert wholes == {"".join(words)[:TERM_CHARS]}
    for name in spelled[2:]:
        assert set(terms(name)) >= set(terms(" ".join(words)))


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("edited src/foldline/recall/terms.py twice", "terms.py"),
        ("edited src/foldline/recall/terms.py twice", "recall/terms"),
        ("commit 4d9a5ca1b2c3d4e5f60718293a4b5c6d7e8f9012", "4d9a5ca"),
        ("worker listens on 0.0.0.0:8081", "8081"),
        ("it cost 1,234,567 tokens", "1234567"),
        ("ticket AB-1234 is open", "ab1234"),
        ("on 2023-04-10 we met", "20230410"),
        ("HTTPServer2 answered", "http server"),
        ("the APIs changed", "api"),
        ("https://example.org/docs?page=2", "example.org"),
        ("foldline.plan.timeline is imported", "plan timeline"),
        ("Größe und naïveté", "grosse naivete"),
        ("ＦＵＬＬ width ﬁne", "full fine"),
        ("黒猫が好きです", "猫"),
        ("黒猫が好きです", "黒猫"),
        ("東京都庁", "京都"),
        ("한국어를 배웁니다", "한국어"),
        ("ภาษาไทยง่าย", "ไทย"),
        ("हिन्दी में लिखो", "हिन्दी"),
        ("Привет, мир", "мир"),
        ("شُكْرًا جزيلا", "شكرا"),
        ("She was studying families of running processes", "study family run process"),
        ("retried", "retry"),
    ],
)
def test_a_text_is_found_by_a_query(text: str, question: str) -> None:
    assert set(terms(question)) & set(terms(text)) == set(terms(question)) != set()


@pytest.mark.parametrize("forms", ["parse parses parsed parsing", "stop stops stopped stopping", "use uses used using"])
def test_the_forms_of_a_word_are_one_term(forms: str) -> None:
    assert len(terms(forms)) == 1


@pytest.mark.parametrize("word", ["class", "bus", "analysis", "bed", "thing", "speed", "a", "", "über"])
def test_letters_that_only_look_like_an_ending_stay(word: str) -> None:
    assert stem(word) == word


@pytest.mark.parametrize(
    "piece", ["A", "a.a", "aB", "1,234", "_", "日", "a-", "\ud800", "the parser of things ", "e" * 9]
)
def test_terms_are_made_in_linear_time(piece: str) -> None:
    assert_linear(lambda count: terms(piece * count), 10_000)
