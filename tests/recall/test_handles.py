"""Recall by handle: messages verbatim, in pages within the token limit."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import strategies
from foldline import ledger
from foldline.errors import InputError
from foldline.measure.estimator import Estimator
from foldline.message import Message, Meta, assistant, tool, user
from foldline.plan.prune import stub_result
from foldline.plan.timeline import handle
from foldline.policy import Policy
from foldline.recall.excerpt import searchable_text
from foldline.recall.handles import Handle, fetch, parse_handle
from foldline.recall.search import RecallQuery, search
from support.recalls import stored

FEW = settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])


@FEW
@given(messages=strategies.sound(), data=st.data(), tokens=st.integers(50, 400))
def test_a_handle_gives_the_messages_verbatim(
    ground: str, messages: list[Message], data: st.DataObject, tokens: int
) -> None:
    first = data.draw(st.integers(0, len(messages) - 1))
    last = data.draw(st.integers(first, len(messages) - 1))
    with stored(ground, messages) as (store, branch):
        read: dict[int, str] = {}
        wanted: Handle | None = parse_handle(handle(first, last))
        while wanted is not None:
            page = fetch(store, branch, wanted, tokens)
            assert Estimator().count(str(page)).upper == page.tokens <= tokens
            for line in page[0].messages:
                read[line.position] = read.get(line.position, "") + line.text
            assert not page.rest or page.rest == str(parse_handle(page.rest))
            assert page.rest != str(wanted)
            wanted = parse_handle(page.rest) if page.rest else None
        assert read == {at: searchable_text(messages[at]) for at in range(first, last + 1)}


@given(st.integers(0, 10**9), st.integers(0, 10**6), st.none() | st.integers(1, 10**9), st.integers(0, 10**6))
def test_a_printed_handle_parses_to_itself(first: int, more: int, segment: int | None, skip: int) -> None:
    wanted = Handle(first=first, last=first + more, segment=segment, skip=skip)
    assert parse_handle(str(wanted)) == wanted


@pytest.mark.parametrize(
    "text",
    [
        *("#0", "#", "#-5", "#5-", "#9-3", "#1e3", "#１２", "#5;DROP TABLE messages", "../../etc/passwd", ""),
        *("#5 #6", "0#5", "#99999999999999999999", "a#5", "#5+", "\x00#5", "#5\x00", "#" * 100_000, "1" * 100_000),
    ],
    ids=lambda text: ascii(text[:20]),
)
def test_a_malformed_handle_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="#120-131") as caught:
        parse_handle(text)
    assert len(str(caught.value)) < 300


@given(strategies.texts())
def test_any_text_is_a_handle_or_is_refused(text: str) -> None:
    with suppress(InputError):
        assert parse_handle(str(parse_handle(text))) == parse_handle(text)


@pytest.mark.promise("F18", "I19")
def test_the_handle_of_a_stub_gives_the_whole_message(ground: str) -> None:
    whole = "\n".join(f"line {number} of a large result" for number in range(3000))
    result = tool("c", whole)
    shown = stub_result(result.results[0], handle(1), Policy())
    assert "the whole is #2" in shown.text
    with stored(ground, [user("run it"), result]) as (store, branch):
        read, wanted = "", parse_handle("#2")
        for _ in range(100):
            page = fetch(store, branch, wanted)
            read += "".join(line.text for line in page[0].messages)
            if not page.rest:
                break
            wanted = parse_handle(page.rest)
        assert read == whole


def test_an_unknown_handle_is_refused(ground: str) -> None:
    with stored(ground, [user("one"), assistant("two")]) as (store, branch):
        for text in ("#3", "#1-3", "999999#1"):
            with pytest.raises(InputError, match="unknown handle"):
                fetch(store, branch, parse_handle(text))
        with pytest.raises(InputError, match="too few"):
            fetch(store, branch, parse_handle("#1"), 10)


@pytest.mark.promise("I17")
def test_a_handle_reaches_other_sessions_but_no_other_owner(ground: str) -> None:
    with stored(ground, [user("the code is 4711")], session="first") as (store, _):
        second = store.session("second")
        store.append(second, [user("unrelated")])
        found = search(store, second, RecallQuery(query="code 4711", everywhere=True)).results[0]
        assert fetch(store, second, parse_handle(found.handle))[0].messages[0].text == "the code is 4711"
        stranger = ledger.for_owner(store, "a stranger with a long name")
        stranger.append(stranger.session("second"), [user("mine")])
        with pytest.raises(InputError, match="unknown handle"):
            fetch(stranger, stranger.session("second"), parse_handle(found.handle))


def test_handles_count_on_the_current_branch(ground: str) -> None:
    with stored(ground, [user("zero"), assistant("one"), user("two of main")]) as (store, main):
        side = store.fork(main, "side", at=2)
        store.append(side, [user("two of side")])
        for branch, text in ((main, "two of main"), (side, "two of side")):
            lines = fetch(store, branch, parse_handle("#1-3"))[0].messages
            assert [line.text for line in lines] == ["zero", "one", text]


def test_a_handle_in_an_empty_session_is_refused(ground: str) -> None:
    with stored(ground, []) as (store, branch), pytest.raises(InputError, match="the session has no messages"):
        fetch(store, branch, parse_handle("#1"))


def test_hidden_messages_are_not_recalled(ground: str) -> None:
    hidden = Message(role="user", parts=user("the inner password").parts, meta=Meta(hidden=True))
    with stored(ground, [hidden, user("hello")]) as (store, branch):
        assert "password" not in str(fetch(store, branch, parse_handle("#1-2")))
        assert not search(store, branch, RecallQuery(query="password")).results
