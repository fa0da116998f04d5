"""Messages read one at a time are the messages of the whole request, and render to the same bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foldline import Session
from foldline.errors import FormatUnknown
from foldline.message import Message, assistant, user
from foldline.wire import REQUEST_FORMATS, Request, parse, render, sign_of
from foldline.wire.formats import format_of
from strategies import arrived
from support.openai_elements import CHAT_MESSAGES, INPUT_ITEMS, JSON, WORDS
from support.replies import REPLIES
from support.samples import SAMPLES

CITATION = {"type": "char_location", "cited_text": "Ulm", "document_index": 0}
EXTRAS = st.fixed_dictionaries(
    {},
    optional={
        "cache_control": st.just({"type": "ephemeral"}),
        "citations": st.just([CITATION]),
        "x_unknown": JSON,
    },
)
PLAIN_MESSAGES = st.builds(
    lambda role, content, extra: {"role": role, "content": content, **extra},
    st.sampled_from(["user", "assistant"]),
    WORDS | st.lists(st.builds(lambda text, extra: {"type": "text", "text": text, **extra}, WORDS, EXTRAS), min_size=1),
    st.fixed_dictionaries({}, optional={"x_unknown": JSON}),
)
"""Messages of nothing but text, with fields that only one format has: no sign tells their format."""
READ_PLAIN = [name for name in REQUEST_FORMATS if format_of(name).plain_fields]
ELEMENTS = {"openai": CHAT_MESSAGES, "openai-responses": INPUT_ITEMS}


def whole(name: str, elements: list[Any]) -> tuple[Message, ...]:
    """The messages of a request body that holds these elements."""
    return Request.parse({format_of(name).list_key: elements}, name).messages


def assert_same(one: tuple[Message, ...], other: tuple[Message, ...], name: str) -> None:
    """Fail unless both are the same messages, with the same wire values, and render to the same bytes."""
    assert one == other
    assert [message.wire for message in one] == [message.wire for message in other]
    assert json.dumps(render(one, name).body) == json.dumps(render(other, name).body)


def elements_of(name: str, messages: list[Message]) -> list[Any]:
    """The messages as elements of a request."""
    elements: list[Any] = render(messages, name).body[format_of(name).list_key]
    return elements


@pytest.mark.parametrize("name", REQUEST_FORMATS)
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_conversation_added_message_by_message_is_the_conversation_sent_whole(name: str, data: st.DataObject) -> None:
    elements = elements_of(name, data.draw(arrived(name)))
    expected = whole(name, elements)
    for known in ({"format": name}, {"default": name}):
        single = [message for element in elements for message in parse(element, **known).messages]
        assert_same(tuple(single), expected, name)
    assert_same(parse(elements, name).messages, expected, name)
    assert_same(parse(elements, default=name).messages, expected, name)
    assert render(expected, name).body[format_of(name).list_key] == elements


@pytest.mark.parametrize("name", ELEMENTS)
@settings(max_examples=100, deadline=None)
@given(st.data())
def test_any_element_of_a_known_format_reads_alone_as_in_its_list(name: str, data: st.DataObject) -> None:
    elements = data.draw(st.lists(ELEMENTS[name], min_size=1, max_size=4))
    single = [message for element in elements for message in parse([element], name).messages]
    assert_same(tuple(single), whole(name, elements), name)


@pytest.mark.parametrize("name", READ_PLAIN)
@settings(max_examples=100, deadline=None)
@given(st.lists(PLAIN_MESSAGES, min_size=1, max_size=4))
def test_text_only_messages_are_read_in_the_default_format_and_lose_nothing(
    name: str, elements: list[dict[str, Any]]
) -> None:
    single = tuple(message for element in elements for message in parse(element, default=name).messages)
    assert_same(single, whole(name, elements), name)
    rendered = render(single, name)
    assert json.dumps(rendered.body[format_of(name).list_key]) == json.dumps(elements)
    assert rendered.lost == ()
    assert all(sign_of(element) is None for element in elements)


@pytest.mark.parametrize("name", REQUEST_FORMATS)
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_message_with_a_clear_sign_needs_no_format(name: str, data: st.DataObject) -> None:
    elements = elements_of(name, data.draw(arrived(name)))
    other = "openai" if name != "openai" else "anthropic"
    for element in elements:
        if sign_of(element) == name:
            expected = whole(name, [element])
            assert_same(parse(element).messages, expected, name)
            assert_same(parse(element, default=other).messages, expected, name)


@pytest.mark.parametrize(("name", "sample"), [(name, key) for name, samples in SAMPLES.items() for key in samples])
def test_every_sample_reply_shows_its_format(name: str, sample: str) -> None:
    reply = SAMPLES[name][sample]
    expected = parse(reply, name).messages
    assert sign_of(reply) == name
    assert_same(parse(reply).messages, expected, name)
    for other in REQUEST_FORMATS:
        assert_same(parse(reply, default=other).messages, expected, name)


@pytest.mark.parametrize("name", REQUEST_FORMATS)
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_reply_reads_the_same_with_its_format_named_or_as_the_default(name: str, data: st.DataObject) -> None:
    reply = data.draw(REPLIES[name])
    assert_same(parse(reply, name).messages, parse(reply, default=name).messages, name)


def test_a_default_never_overrides_a_clear_sign() -> None:
    result = {"role": "tool", "tool_call_id": "c", "content": "x"}
    assert parse(result, default="anthropic").format == "openai"
    assert parse({"role": "user", "parts": [{"text": "x"}]}, default="openai").format == "gemini"


def test_a_default_that_cannot_read_a_message_leaves_it_to_openai() -> None:
    assert parse({"role": "user", "content": "x"}, default="gemini").format == "openai"


def test_a_session_log_as_default_stands_for_the_format_of_its_messages() -> None:
    message = {"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]}
    assert parse(message, default="claude-code").format == "anthropic"
    assert parse(message, default="codex").format == "openai-responses"


def test_a_body_of_plain_messages_is_in_the_default_format_unless_a_field_tells() -> None:
    body: dict[str, Any] = {"messages": [{"role": "user", "content": "x"}]}
    assert parse(body).format == "openai"
    assert parse(body, default="anthropic").format == "anthropic"
    assert parse({**body, "response_format": {}}, default="anthropic").format == "openai"


def test_messages_that_are_values_already_stay_themselves() -> None:
    messages = [user("x"), assistant("y")]
    assert parse(messages, default="anthropic").messages == tuple(messages)
    assert parse(messages[0]).messages == (messages[0],)
    assert sign_of(messages[0]) is None
    assert sign_of(parse({"role": "user", "parts": [{"text": "x"}]}).messages[0]) == "gemini"


def test_an_unclear_format_raises_an_error_that_names_the_format_argument() -> None:
    with pytest.raises(FormatUnknown, match="format=") as caught:
        parse({"role": "user"})
    assert "anthropic" in str(caught.value)
    assert parse({"role": "user", "content": []}, format="anthropic").format == "anthropic"


def test_a_placeholder_at_the_front_stays_when_a_prompt_arrives_later() -> None:
    session = Session(model="gpt-4o", format="openai")
    call = {"id": "c1", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    session.add({"role": "assistant", "content": None, "tool_calls": [call]})
    session.add({"role": "tool", "tool_call_id": "c1", "content": "done"})
    before = session.view().render().body["messages"]
    session.add({"role": "user", "content": "go on"})
    assert session.view().render().body["messages"][: len(before)] == before
