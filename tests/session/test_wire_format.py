"""A session has one wire format: from an argument, the first clear sign in what is added, or the model's vendor."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import foldline
from foldline.errors import ConfigError, FormatUnknown, InputError
from foldline.message import Message, ToolCall, assistant, tool, user
from foldline.policy import Policy
from foldline.session import Session
from foldline.testing import assert_sendable
from foldline.wire import REQUEST_FORMATS, parse, render
from foldline.wire.formats import format_of
from strategies import sound
from support.samples import SAMPLES

UNMARKED = Policy.preset("balanced").but(breakpoints=0)
OPENAI_CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "a", "type": "function", "function": {"name": "run", "arguments": "{}"}}],
}
ANTHROPIC_CALL = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "run", "input": {}}]}
PLAIN = {"role": "user", "content": "go"}


def elements(session: Session, format: str) -> list[Any]:
    """The list of messages that would be sent."""
    found: list[Any] = session.view().render(format).body[format_of(format).list_key]
    return found


@pytest.mark.promise("I1", "I2")
@pytest.mark.parametrize("format", REQUEST_FORMATS)
@pytest.mark.parametrize("model", ["deepseek-chat", "grok-4", "mistral-large-latest", "qwen3-max", "kimi-k2", "my-own"])
@pytest.mark.parametrize("call", [OPENAI_CALL, ANTHROPIC_CALL, assistant("", ToolCall(id="a", name="run"))])
def test_an_unanswered_call_can_be_sent_in_every_format_whatever_the_model(model: str, format: str, call: Any) -> None:
    session = Session(model=model)
    session.add(PLAIN, copy.deepcopy(call), {"role": "user", "content": "stop"})
    view = session.view()
    assert_sendable(view.render(format))
    assert view.render().body


@pytest.mark.parametrize(
    ("model", "format"),
    [
        ("claude-sonnet-5", "anthropic"),
        ("gpt-5", "openai"),
        ("gemini-2.5-pro", "gemini"),
        ("deepseek-chat", "openai"),
        ("my-own", "openai"),
        ("", "openai"),
    ],
)
def test_without_a_sign_the_format_is_the_usual_one_of_the_models_vendor(model: str, format: str) -> None:
    session = Session(model=model)
    session.add(PLAIN)
    assert session.format == format
    assert format_of(format).list_key in session.view().render().body


@pytest.mark.parametrize("model", ["", "deepseek-chat", "gpt-5"])
def test_the_first_clear_sign_decides_and_later_ones_do_not(model: str) -> None:
    session = Session(model=model)
    session.add(PLAIN, ANTHROPIC_CALL)
    assert session.format == "anthropic"
    session.add({"role": "tool", "tool_call_id": "a", "content": "done"})
    assert session.format == "anthropic"
    assert_sendable(session.view().render())


def test_an_argument_decides_over_model_and_signs() -> None:
    session = Session(model="claude-sonnet-5", format="openai-responses")
    session.add(PLAIN, ANTHROPIC_CALL)
    assert session.format == "openai-responses"
    session.use(format="gemini")
    assert session.format == "gemini"
    assert session.view().render().body["contents"]


def test_the_format_is_stored_with_the_session() -> None:
    with foldline.open(":memory:") as ledger:
        ledger.session("given", format="gemini").add(PLAIN)
        ledger.session("shown").add(ANTHROPIC_CALL)
        ledger.session("usual", model="gpt-5").add(PLAIN)
        names = ("given", "shown", "usual")
        assert [ledger.session(name).format for name in names] == ["gemini", "anthropic", "openai"]
        ledger.session("usual", model="claude-sonnet-5")
        assert ledger.session("usual").format == "anthropic", "nothing but the model spoke for a format"


def test_add_reads_one_call_in_another_format() -> None:
    block = {"type": "text", "text": "see", "citations": None}
    session = Session(format="openai", policy=UNMARKED)
    session.add({"role": "user", "content": [block]}, format="anthropic")
    assert session.format == "openai"
    assert elements(session, "anthropic") == [{"role": "user", "content": [block]}]


def test_a_text_message_keeps_its_fields_in_the_sessions_format() -> None:
    """Read as another format's, citations and cache marks would be left out without a word."""
    cited = {"type": "text", "text": "so", "citations": [{"type": "char_location", "cited_text": "x"}]}
    marked = {"type": "text", "text": "go", "cache_control": {"type": "ephemeral"}}
    given = [{"role": "user", "content": [marked]}, {"role": "assistant", "content": [cited]}, PLAIN]
    session = Session(model="claude-sonnet-5", policy=UNMARKED)
    for message in given:
        session.add(message)
    rendered = session.view().render()
    assert rendered.body["messages"] == given
    assert rendered.lost == ()


def test_what_cannot_be_read_is_asked_for_by_an_argument_that_exists() -> None:
    with pytest.raises(FormatUnknown, match="format=") as raised:
        Session().add({"what": "is this"})
    assert "format" in str(raised.value)
    with pytest.raises(ConfigError, match="unknown wire format 'grok'"):
        Session(format="grok")


@pytest.mark.promise("I7")
@given(st.sampled_from(REQUEST_FORMATS), sound(), st.booleans())
def test_messages_added_one_at_a_time_are_sent_like_a_whole_request(
    format: str, messages: list[Message], told: bool
) -> None:
    body = render([message for message in messages if message.role != "system"], format).body
    given = json.loads(json.dumps(body[format_of(format).list_key]))
    one, whole = (Session(format=format, policy=UNMARKED) for _ in range(2))
    for element in given:
        one.add(element, format=format if told else None)
    whole.add(body, format=format)
    assert one.view() == whole.view()
    assert one.view().render() == whole.view().render()
    assert one.view().render().lost == ()


@pytest.mark.parametrize(("format", "name"), [(format, name) for format in SAMPLES for name in SAMPLES[format]])
def test_a_reply_is_sent_back_alike_however_it_was_added(format: str, name: str) -> None:
    reply = SAMPLES[format][name]
    read = parse(reply, format).messages
    first, second = (Session(format=format, policy=UNMARKED) for _ in range(2))
    first.add(user("go"), reply)
    second.add(user("go"), *read)
    assert elements(first, format) == elements(second, format)


def test_a_view_in_the_sessions_format_is_repaired_once() -> None:
    """The messages of the view are those that are rendered; another format repairs its own copy."""
    session = Session(format="anthropic", policy=UNMARKED)
    session.add(user("go"), assistant("", ToolCall(id="a", name="run")), user("stop"))
    view = session.view()
    assert [message.role for message in view.messages].count("assistant") == 1
    assert any(result.call_id == "a" for message in view.messages for result in message.results), "the call is closed"
    assert_sendable(view.render())
    session.add(tool("a", "late"), user("and?"))
    assert_sendable(session.view().render())
    assert_sendable(session.view().render("openai"))


NOTHING = [(format, ()) for format in REQUEST_FORMATS]


@pytest.mark.parametrize(
    ("format", "texts"), [*NOTHING, ("anthropic", (" ",)), ("anthropic", ("", "\n\t")), ("gemini", ("",))]
)
def test_a_session_without_anything_to_send_is_an_error(format: str, texts: tuple[str, ...]) -> None:
    session = Session(format=format)
    session.add(*map(user, texts))
    with pytest.raises(InputError, match="nothing to send"):
        session.view().render()
