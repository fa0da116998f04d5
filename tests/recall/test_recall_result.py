"""What `Session.recall` returns: a value that iterates, prints and serialises, and that says what answers."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import foldline
from foldline.message import Message, ToolCall, assistant, tool, user
from foldline.recall.excerpt import excerpt
from foldline.recall.result import NOTHING_FOUND, RecallResult, is_recall_text
from foldline.recall.terms import TERM_CHARS, TermFinder
from foldline.recall.tools import Tools

TALK = [
    user("The worker listens on port 8081."),
    assistant("Noted: port 8081."),
    user("What about the weather?"),
    assistant("It rains."),
]


def session_of(messages: list[Message]) -> foldline.Session:
    session = foldline.Session()
    session.add(*messages)
    return session


def test_a_result_iterates_prints_and_serialises() -> None:
    found = session_of(TALK).recall("which port does the worker use?")
    assert isinstance(found, RecallResult)
    assert len(found) == len(list(found)) == len(found.results) > 0
    assert found
    assert found[0].handle.startswith("#1")
    assert "#1 user: The worker listens on port 8081." in str(found)
    as_json = json.loads(json.dumps(found.to_dict()))
    assert as_json["results"][0]["lines"][0] == {
        "message": 1,
        "role": "user",
        "text": "The worker listens on port 8081.",
        "whole": True,
        "match": True,
    }
    assert as_json["tokens"] == found.tokens


def test_a_result_without_passages_is_false_and_says_so() -> None:
    found = session_of(TALK).recall("zebra")
    assert not found
    assert str(found) == NOTHING_FOUND
    assert found.to_dict()["results"] == []


def test_a_handle_gives_the_same_type_page_by_page() -> None:
    session = session_of([user("word " * 3000), assistant("done")])
    found, text = session.recall(handle="#1-2", tokens=500), ""
    while True:
        text += "".join(message.text for message in found[0].messages)
        if not found.rest:
            break
        assert found.rest in str(found)
        found = session.recall(handle=found.rest, tokens=500)
    assert text == "word " * 3000 + "done"


@pytest.mark.parametrize("name", ["recall", "mcp__foldline__recall"])
@pytest.mark.parametrize("named_result", [True, False])
def test_earlier_calls_of_recall_and_their_answers_are_not_found(name: str, named_result: bool) -> None:
    session = session_of(TALK)
    for number in range(3):
        call = ToolCall(id=f"c{number}", name=name, arguments='{"query": "worker port"}')
        answer = Tools(session).run("recall", {"query": "worker port"}).text
        session.add(assistant("", call), tool(call.id, answer, name=name if named_result else ""))
    found = session.recall("worker port")
    assert {message.position for passage in found for message in passage.messages} <= {0, 1, 2, 3}
    assert str(found).count("8081") == 2
    assert is_recall_text(str(found))


def test_words_beside_a_call_of_recall_are_found() -> None:
    call = ToolCall(id="c", name="recall", arguments='{"query": "zebra"}')
    session = session_of([user("go on"), assistant("I look up the giraffe first.", call), tool("c", NOTHING_FOUND)])
    assert "giraffe" in str(session.recall("giraffe"))
    assert not session.recall("zebra")


def test_a_tool_result_that_begins_with_a_number_is_found() -> None:
    session = session_of([user("list"), assistant("", ToolCall(id="c", name="run")), tool("c", "#12 fix: the parser")])
    assert "#12 fix: the parser" in str(session.recall("parser"))


def test_a_long_reply_is_shown_with_the_answer_after_the_matching_words() -> None:
    steps = [f"{number}. Sand the board with grit {number * 40} and wipe the dust off.\n" for number in range(1, 40)]
    text = (
        "Here is how to varnish the oak table:\n" + "".join(steps[:8]) + "Let it dry for 36 hours.\n" + "".join(steps)
    )
    session = session_of([user("And my table?"), assistant(text), user("Thanks, and the weather?")])
    assert "36 hours" in str(session.recall("how long must the varnish of the oak table dry?"))


@settings(max_examples=200)
@given(
    words=st.lists(st.sampled_from(["port", "worker", "alpha", "beta", "x" * 45, "東京都", "it", "of"]), max_size=300),
    wanted=st.sets(st.sampled_from(["port", "worker", "東京"]), min_size=1),
    chars=st.integers(40, 400),
)
@example(words=["x" * 45] * 20 + ["port"] + ["x" * 45] * 20, wanted={"port"}, chars=40)
def test_an_excerpt_contains_a_matching_word(words: list[str], wanted: set[str], chars: int) -> None:
    text, weights = " ".join(words), dict.fromkeys(wanted, 1.0)
    shown = excerpt(text, weights, chars)
    finder = TermFinder(weights)
    assert bool(list(finder.occurrences(text))) == bool(list(finder.occurrences(shown)))
    assert max(map(len, wanted)) < TERM_CHARS


def test_a_long_reply_without_a_matching_word_is_left_out() -> None:
    session = session_of([user("The worker listens on port 8081."), assistant("Well, " * 400), user("Go on.")])
    assert "Well" not in str(session.recall("which port does the worker use?"))


def test_a_session_without_a_ledger_finds_what_was_added_since_and_not_what_was_cleared() -> None:
    session = session_of(TALK)
    store = session.record.search_target()[0]
    assert session.recall("port")
    session.add(user("The giraffe is new."))
    assert "giraffe" in str(session.recall("giraffe"))
    assert session.record.search_target()[0] is store
    session.clear()
    assert not session.recall("giraffe")
    session.add(user("Now there is a zebra."))
    assert session.recall("zebra")[0].handle == "#1"
