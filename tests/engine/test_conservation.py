"""Nothing gets lost and nothing is forged: a view against the record it was made from, part by part."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.message import Media, Message, Text, Thinking, ToolCall, ToolResult
from foldline.policy import Policy
from foldline.session import Session
from foldline.view.compose import View
from foldline.wire.formats import REQUEST_FORMATS, format_of
from support.knobs import folding, models, thorough
from support.paths import TALK, as_arrived, blocks, drive, spoken, talks, turning_points


@pytest.mark.promise("I6", "I20")
@thorough
@given(folding, models, talks())
def test_everything_said_is_shown_or_named(policy: Policy, model: str, messages: list[Message]) -> None:
    session = Session(model=model, policy=policy, clock=lambda: None)
    for sent in drive(session, messages):
        if sent.view is not None:
            account(session, sent.view, messages[: sent.given])


def account(session: Session, view: View, record: Sequence[Message]) -> None:
    """Hold a view against the record: every message whole, cut short under its handle, or in the digest's range."""
    lead, tail = session.timeline.lead, len(record) - view.cut
    head, kept = view.messages[: len(view.messages) - tail], view.messages[len(view.messages) - tail :]
    for index, (was, now) in enumerate(zip(record[view.cut :], kept, strict=True), start=view.cut):
        cut_short(was, now, f"#{index + 1}")
    known = {id(message): index for index, message in enumerate(record)}
    before = [known.get(id(message), -1) for message in head]
    shown = [index for index in before if index >= 0]
    assert shown == list(dict.fromkeys(shown))
    assert all(index < view.cut for index in shown)
    ours = [message for message, index in zip(head, before, strict=True) if index < 0]
    words = [message for message in ours if message.is_prompt]
    assert all(any(spoken(message) == spoken(was) for was in record[lead : view.cut]) for message in words)
    named = [message.text for message in ours if message.kind in {"digest", "note"}]
    assert len(ours) == len(named) + len(words)
    if view.cut > lead and session.policy.leave != "nothing":
        assert sum(bool(re.search(rf"#{lead + 1}(-{view.cut})?\b", text)) for text in named) >= 1


STUB = re.compile(
    r"(?s)(?P<shown>.*?)\n?\[pruned, [^\n]*?: (?P<count>[\d,]+) of (?P<all>[\d,]+) characters shown"
    r"(?P<left> and \d+ attachments? left out)?; the whole is (?P<name>#\d+)\]"
)
SHORT = re.compile(r"(?s)(?P<shown>.*)\[(?P<count>[\d,]+) characters left out; the whole is (?P<name>#\d+)\]")


def cut_short(was: Message, now: Message, name: str) -> None:
    """A message is the same object, or its results and arguments are honest pieces of what they were."""
    if was is now:
        return
    assert (was.role, was.kind, len(was.parts)) == (now.role, now.kind, len(now.parts))
    for old, new in zip(was.parts, now.parts, strict=True):
        if isinstance(old, ToolResult) and isinstance(new, ToolResult) and old != new:
            stub = STUB.fullmatch(new.text)
            assert stub is not None
            assert (stub["name"], stub["count"], stub["all"]) == (
                name,
                f"{len(stub['shown']):,}",
                f"{len(old.text):,}",
            )
            assert old.text.startswith(stub["shown"])
            assert len(stub["shown"]) < len(old.text) or stub["left"]
            assert (old.call_id, old.name, old.is_error) == (new.call_id, new.name, new.is_error)
            assert all(isinstance(part, Text) for part in new.parts)
        elif isinstance(old, ToolCall) and isinstance(new, ToolCall) and old != new:
            assert (old.id, old.name) == (new.id, new.name)
            same_keys(json.loads(old.arguments), json.loads(new.arguments), name)
        else:
            assert old is new


def same_keys(old: object, new: object, name: str) -> None:
    """JSON with the same keys, whose strings are whole or cut short under their handle."""
    if isinstance(old, dict):
        assert isinstance(new, dict)
        assert list(old) == list(new)
        for key in old:
            same_keys(old[key], new[key], name)
    elif isinstance(old, str) and old != new:
        short = SHORT.fullmatch(str(new))
        assert short is not None
        assert old.startswith(short["shown"])
        assert (short["name"], short["count"]) == (name, f"{len(old) - len(short['shown']):,}")
    else:
        assert old == new


# Opaque data


@pytest.mark.promise("I13")
@thorough
@given(folding, models, talks(kinds=(*TALK, "thinking", "thinking", "item", "arguments")))
def test_thinking_stays_as_it_was_or_leaves_with_its_message(
    policy: Policy, model: str, messages: list[Message]
) -> None:
    session = Session(model=model, policy=policy, clock=lambda: None)
    thoughts = {id(part): message for message in messages for part in message.parts if isinstance(part, Thinking)}
    for sent in drive(session, messages):
        if sent.view is None:
            continue
        for message in sent.view.messages:
            for part in message.parts:
                assert not isinstance(part, Thinking) or id(part) in thoughts
        for message in session.timeline.messages[sent.view.cut :]:
            assert {id(part) for part in message.parts if isinstance(part, Thinking)} <= {
                id(part) for shown in sent.view.messages for part in shown.parts
            }


@pytest.mark.promise("I13")
@thorough
@given(folding, models, talks(), st.sampled_from(REQUEST_FORMATS))
def test_untouched_messages_are_sent_as_they_came(
    policy: Policy, model: str, messages: list[Message], provider: str
) -> None:
    """Every block that came and stays whole goes out with the same bytes, signatures and ids included."""
    came = as_arrived(messages, provider)
    key = format_of(provider).list_key
    for sent in turning_points(Session(model=model, policy=policy, clock=lambda: None), came):
        if sent.view is not None:
            run = Counter(blocks(sent.view.render(provider).body))
            whole = [message for message in sent.view.messages if any(message is was for was in came)]
            if provider == "gemini" and model.startswith("gemini-2"):  # refuses media in results: they are replaced
                whole = [message for message in whole if not _has_media_in_results(message)]
            values = [message.wire.value for message in whole if message.wire and message.role != "system"]
            assert Counter(blocks({key: values})) <= run


def _has_media_in_results(message: Message) -> bool:
    return any(isinstance(part, Media) for result in message.results for part in result.parts)
