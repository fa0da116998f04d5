"""Any message, in any spelling, is found by its words and given back exactly."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

import strategies
from foldline import ledger
from foldline.ledger import Branch, Store
from foldline.message import Message, ToolCall, assistant, tool, user
from foldline.recall.handles import fetch, parse_handle
from foldline.recall.search import RecallQuery, search
from foldline.recall.text_index import TextIndex
from support.recalls import stored

FEW = settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])

PIECE = st.from_regex(r"[bdfgkpvz][aeiou][kmnprtvx][aeiou]q", fullmatch=True)
"""A word that nobody else says, and that is no other word's form."""
CJK = st.characters(min_codepoint=0x4E00, max_codepoint=0x9FEF)
PLAIN = "the old mill by the river stood still and the water went on past it "


class Needle(NamedTuple):
    """Something that was said, and the ways to ask for it."""

    said: str
    asked: tuple[str, ...]


@st.composite
def needles(draw: DrawFn) -> Needle:
    """Names, paths, numbers, ids, dates and words without spaces."""
    one, two, three = draw(st.lists(PIECE, min_size=3, max_size=3, unique=True))
    number = draw(st.integers(10_000, 10**9))
    sha = draw(st.from_regex(r"[0-9][a-f][0-9a-f]{38}", fullmatch=True))
    first, second = draw(CJK), draw(CJK)
    kinds = [
        Needle(f"{one}_{two}_{three}", (f"{one}_{two}_{three}", two, f"{one}{two.title()}{three.title()}")),
        Needle(f"{one}{two.title()}{three.title()}", (three, f"{one} {two}", f"{one}-{two}-{three}")),
        Needle(f"src/{one}/{two}_{three}.py", (f"{two}_{three}.py", f"{one}/{two}_{three}", three)),
        Needle(f"{number:,} bytes", (str(number), f"{number:,}")),
        Needle(f"port={number};", (str(number), f"which port is {number}?")),
        Needle(f"commit {sha}.", (sha, sha[:7])),
        Needle(f"{one.upper()}-{number}", (f"{one}-{number}", f"{one.upper()} {number}")),
        Needle(f"她说{first}{second}很好", (f"{first}{second}",)),
        Needle(f"{one}é {two}", (f"{one}e", f"{one.title()}É")),
        Needle(f'"{one}\\n{two}": {{"{three}": 1}}', (one, three)),
    ]
    return draw(st.sampled_from(kinds))


def places_of(text: str) -> SearchStrategy[Message]:
    """Somebody says it: a person, a model, a call's arguments, a result."""
    return st.sampled_from(
        [
            user(text),
            assistant(text),
            assistant("", ToolCall(id="c", name="run", arguments=text)),
            tool("c", text),
        ]
    )


@pytest.mark.promise("I19")
@FEW
@given(data=st.data(), needle=needles(), before=st.integers(0, 90), after=st.integers(0, 90))
def test_every_message_is_found_by_its_words(
    ground: str, data: st.DataObject, needle: Needle, before: int, after: int
) -> None:
    """However long the message around it and whoever said it, and the words that were asked for can be seen."""
    message = data.draw(places_of(f"{PLAIN * before}{needle.said} {PLAIN * after}"))
    others = data.draw(
        st.lists(st.sampled_from([user(PLAIN), assistant(PLAIN * 8), tool("d", PLAIN * 20)]), max_size=8)
    )
    at = data.draw(st.integers(0, len(others)))
    talk = [*others[:at], message, *others[at:]]
    with stored(ground, talk) as (store, branch):
        for query in needle.asked:
            for everywhere in (False, True):
                found = search(store, branch, RecallQuery(query=query, everywhere=everywhere))
                shown = {line.position: line.text for result in found.results for line in result.messages}
                assert at in shown, query
                assert needle.said.split()[0].rstrip(".;") in shown[at], query


@FEW
@given(
    talks=st.lists(st.lists(PIECE, min_size=1, max_size=6), min_size=2, max_size=5),
    owners=st.lists(st.integers(0, 2), min_size=5, max_size=5),
)
def test_a_search_never_crosses_owners_or_sessions(talks: list[list[str]], owners: list[int]) -> None:
    """Whoever asks for any word gets what was said in the session, or by the owner when asked for, and nothing else."""
    first = ledger.open(":memory:", owner="owner 0", index=TextIndex())
    stores = [first, *(ledger.for_owner(first, f"owner {number}") for number in (1, 2))]
    where: list[tuple[Store, Branch]] = []
    for number, words in enumerate(talks):
        store = stores[owners[number]]
        where.append((store, store.session(f"talk {number}")))
        store.append(where[-1][1], [user(f"they call it {word}") for word in words])
    for number, (store, branch) in enumerate(where):
        own = {word for other, words in enumerate(talks) if owners[other] == owners[number] for word in words}
        for word in {word for words in talks for word in words}:
            assert (word in str(search(store, branch, RecallQuery(query=word)))) == (word in talks[number])
            assert (word in str(search(store, branch, RecallQuery(query=word, everywhere=True)))) == (word in own)
    first.close()


@pytest.mark.promise("I19")
@FEW
@given(text=strategies.texts(), copies=st.integers(1, 40), tokens=st.integers(60, 400))
def test_the_pages_of_a_handle_join_to_the_exact_message(ground: str, text: str, copies: int, tokens: int) -> None:
    """Page by page, each within its cap, from what a search said the handle is."""
    whole = f"needleq {text}" * copies
    with stored(ground, [user("hay"), user(whole)]) as (store, branch):
        assert search(store, branch, RecallQuery(query="needleq")).results
        got, where = "", parse_handle("#2")
        while True:
            page = fetch(store, branch, where, tokens=tokens)
            got += "".join(line.text for line in page[0].messages)
            if not page.rest:
                break
            where = parse_handle(page.rest)
        assert got.encode("utf-8", "surrogatepass") == whole.encode("utf-8", "surrogatepass")


def test_a_piece_of_an_identifier_finds_it(ground: str) -> None:
    """Of a long result the part with the name is shown, though the question names only a piece of it."""
    log = "INFO all quiet on this line\n" * 200
    with stored(ground, [tool("c", f"{log}raise resolveTenantId failed: 1,234,567 rows in Größentabelle\n{log}")]) as (
        store,
        branch,
    ):
        for query in ("tenant", "TenantID", "1234567", "grossentabelle"):
            assert "resolveTenantId" in str(search(store, branch, RecallQuery(query=query))), query
