"""A query that is a name or a quotation: the messages that contain it come first, at the place where they do."""

from __future__ import annotations

import pytest

import foldline
from foldline.message import Message, ToolCall, assistant, tool, user
from foldline.recall.verbatim import phrases

LINES = "\n".join(f"{number:4}  value_{number} = self.limits[{number}]" for number in range(200))
SOURCE = LINES + "\n 201  if self.policy.prune_arrival_ratio is not None:\n" + LINES


def talk() -> list[Message]:
    """A large file with one line that matters, and many short messages with the words of its name."""
    found: list[Message] = [user("Read the plan."), assistant("", ToolCall(id="c", name="read", arguments="{}"))]
    found.append(tool("c", SOURCE))
    for number in range(40):
        found += [user(f"Prune item {number}: what is the ratio?"), assistant(f"On arrival the ratio is {number}.")]
    return found


def session() -> foldline.Session:
    made = foldline.Session(model="claude-sonnet-5")
    for message in talk():
        made.add(message)
    return made


def test_the_message_that_contains_a_name_comes_first_at_its_line() -> None:
    for query in ("prune_arrival_ratio", "PRUNE_ARRIVAL_RATIO", "policy.prune_arrival_ratio"):
        first = session().recall(query)[0]
        assert [message.position for message in first.messages] == [2]
        assert "if self.policy.prune_arrival_ratio is not None" in first.messages[0].text


def test_a_pasted_line_is_found_where_it_was() -> None:
    first = session().recall("if self.policy.prune_arrival_ratio is not")[0]
    assert first.handle == "#3"
    assert "prune_arrival_ratio is not None" in first.messages[0].text


def test_a_name_in_a_question_is_shown_with_its_line() -> None:
    shown = session().recall("Why do we test prune_arrival_ratio there?")
    assert "if self.policy.prune_arrival_ratio is not None" in str(shown[0])


def test_a_neighbour_of_a_match_is_told_from_a_match() -> None:
    found = session().recall("prune_arrival_ratio").to_dict()
    assert found["results"][0]["lines"][0]["match"] is True
    shown = [line for passage in found["results"] for line in passage["lines"]]
    assert all(line["match"] or "ratio" not in line["text"] for line in shown)


def test_a_word_that_many_messages_contain_is_ranked_as_before() -> None:
    found = session().recall("ratio")
    assert len(found) <= 10
    assert all("ratio" in message.text for message in found[0].messages)


def test_only_words_that_look_like_names_are_looked_up() -> None:
    assert [phrase.text for phrase in phrases("what is the well-known port?")] == ["what is the well-known port?"]
    assert [phrase.text for phrase in phrases("did FL-2231 touch src/a_b.py or getUserId")][1:] == [
        "src/a_b.py",
        "getuserid",
        "fl-2231",
    ]
    assert phrases("of the and") == phrases("") == []


@pytest.mark.parametrize("query", ["service with port 7009", "7009 port", "Which service listens on the port 7009?"])
def test_a_message_with_the_number_in_a_question_comes_before_messages_with_other_numbers(query: str) -> None:
    made = foldline.Session()
    for number in range(30):
        filler = "the port of each service is a small part of a long plan " * 20
        made.add(user(f"Turn {number}: service {number} listens on port {7_000 + number}. {filler}"))
        made.add(assistant("Noted."))
    first = made.recall(query)[0]
    assert first.messages[0].position == 18
    assert "listens on port 7009" in first.messages[0].text
