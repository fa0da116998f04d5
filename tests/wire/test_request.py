"""A request that nobody touched is sent as it came; one that was folded keeps every byte it can."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.errors import ConfigError, FormatUnknown, InputError, WireError
from foldline.message import Message, Text, system, user
from foldline.wire import Request, render
from foldline.wire.formats import LossCollector
from support.jsontext import duplicated, written

TEXTS = st.text(max_size=30)
RANDOM = st.randoms(use_true_random=False)
SYSTEM_KEYS = {"anthropic": "system", "openai-responses": "instructions", "gemini": "systemInstruction"}
LIST_KEYS = {"anthropic": "messages", "openai": "messages", "openai-responses": "input", "gemini": "contents"}

ELEMENTS: dict[str, st.SearchStrategy[Any]] = {
    "anthropic": st.one_of(
        TEXTS.map(lambda text: {"role": "user", "content": text}),
        TEXTS.map(lambda text: {"role": "assistant", "content": [{"type": "text", "text": text, "new": 1}]}),
        TEXTS.map(lambda t: {"role": "assistant", "content": [{"type": "thinking", "thinking": t, "signature": "s"}]}),
    ),
    "openai": st.one_of(
        TEXTS.map(lambda text: {"role": "user", "content": text, "unknown": None}),
        TEXTS.map(lambda text: {"role": "tool", "tool_call_id": "c", "content": text}),
        TEXTS.map(lambda text: {"content": text, "role": "system"}),
    ),
    "openai-responses": st.one_of(
        TEXTS.map(lambda text: {"role": "user", "content": text}),
        TEXTS.map(lambda text: {"type": "function_call_output", "call_id": "c", "output": text}),
        TEXTS.map(lambda text: {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": text}),
    ),
    "gemini": st.one_of(
        TEXTS.map(lambda text: {"role": "user", "parts": [{"text": text}]}),
        TEXTS.map(lambda text: {"role": "model", "parts": [{"thought_signature": "s", "text": text, "x": 1}]}),
    ),
}
SYSTEMS: dict[str, st.SearchStrategy[Any]] = {
    "anthropic": TEXTS | TEXTS.map(lambda text: [{"type": "text", "text": text, "cache_control": {"type": "x"}}]),
    "openai-responses": TEXTS,
    "gemini": TEXTS.map(lambda text: {"role": "system", "parts": [{"text": text}]}),
}


@st.composite
def bodies(draw: st.DrawFn) -> tuple[str, str]:
    """A format and the text of a request body in it, written oddly."""
    form = draw(st.sampled_from(list(ELEMENTS)))
    fields: dict[str, Any] = {"model": "m", LIST_KEYS[form]: draw(st.lists(ELEMENTS[form], max_size=6))}
    if form in SYSTEMS and draw(st.booleans()):
        fields[SYSTEM_KEYS[form]] = draw(SYSTEMS[form])
    order = draw(st.permutations(list(fields)))
    random = draw(RANDOM)
    ordered = {key: fields[key] for key in order}
    return form, duplicated(ordered, random) if draw(st.booleans()) else written(ordered, random)


def same_bytes(request: Request, messages: tuple[Message, ...]) -> bytes:
    sent = request.render(messages)
    assert isinstance(sent, bytes)
    return sent


@given(bodies())
def test_untouched_requests_keep_every_byte(case: tuple[str, str]) -> None:
    form, text = case
    data = text.encode("utf-8", "surrogatepass")
    request = Request.parse(data, form)
    assert same_bytes(request, request.messages) == data
    copies = tuple(Message(role=m.role, parts=m.parts, kind=m.kind, wire=m.wire) for m in request.messages)
    assert same_bytes(request, copies) == data


@given(bodies(), st.data())
def test_kept_messages_keep_their_bytes(case: tuple[str, str], data: st.DataObject) -> None:
    """Fold: drop some, put a digest in their place. What is kept is in the body as it was, and so is all around."""
    form, text = case
    request = Request.parse(text, form)
    head = [m for m in request.messages if m.role == "system" and m.wire and m.wire.raw is None]
    listed = list(request.messages[len(head) :])
    cut = data.draw(st.integers(0, len(listed)))
    digest = user("[digest] what was said before", kind="digest")
    sent = same_bytes(request, (*head, digest, *listed[cut:])).decode("utf-8", "surrogatepass")
    value, before = json.loads(sent), json.loads(text)
    key = LIST_KEYS[form]
    assert value[key][1:] == before[key][cut:]
    assert {k: v for k, v in value.items() if k != key} == {k: v for k, v in before.items() if k != key}
    assert all(m.wire is not None and m.wire.raw is not None and m.wire.raw in sent for m in listed[cut:])
    whole = request.places.fields[key] if request.places else None
    assert whole is not None
    assert sent.startswith(text[: whole.start])
    assert sent.endswith(text[whole.end :])


@given(bodies())
def test_only_an_edited_message_is_rewritten(case: tuple[str, str]) -> None:
    form, text = case
    request = Request.parse(text, form)
    listed = [index for index, m in enumerate(request.messages) if m.wire and m.wire.raw is not None]
    for place in listed:
        edited = list(request.messages)
        edited[place] = edited[place].with_parts(Text(text="edited"))
        sent = same_bytes(request, tuple(edited)).decode("utf-8", "surrogatepass")
        span = request.places.elements[LIST_KEYS[form]][place - listed[0]] if request.places else None
        assert span is not None
        assert sent.startswith(text[: span.start])
        assert sent.endswith(text[span.end :])
        assert "edited" in sent[span.start : len(sent) - len(text) + span.end]


@given(bodies())
def test_a_mapping_gives_a_mapping_in_the_same_order(case: tuple[str, str]) -> None:
    form, text = case
    body = json.loads(text)
    request = Request.parse(body, form)
    sent = request.render(request.messages)
    assert isinstance(sent, dict)
    assert json.dumps(sent) == json.dumps(body)
    changed = request.render((*request.messages, user("more")))
    assert isinstance(changed, dict)
    assert list(changed) == list(body)
    assert changed[LIST_KEYS[form]][:-1] == body[LIST_KEYS[form]]


@pytest.mark.parametrize("form", SYSTEM_KEYS)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_system_field_changes_only_with_the_system_message(form: str, place: int) -> None:
    key, elements = SYSTEM_KEYS[form], LIST_KEYS[form]
    element = {"role": "user", "parts": [{"text": "hi"}]} if form == "gemini" else {"role": "user", "content": "hi"}
    fields = [f'"{elements}" : [ {json.dumps(element)} ]', '"x": 1.50']
    fields.insert(place, f'"{key}" :\n {json.dumps("old")}')
    text = "{ " + " , ".join(fields) + " }"
    request = Request.parse(text, form)
    assert [m.role for m in request.messages] == ["system", "user"]
    equal = same_bytes(request, (system("old"), request.messages[1])).decode()
    assert equal == text
    replaced = same_bytes(request, (system("new"), request.messages[1])).decode()
    assert '"x": 1.50' in replaced
    assert "old" not in replaced
    again = Request.parse(replaced, form)
    assert again.messages[0].text == "new"
    removed = same_bytes(request, request.messages[1:]).decode()
    assert key not in json.loads(removed)
    assert '"x": 1.50' in removed
    added = same_bytes(Request.parse(removed, form), (system("late"), request.messages[1])).decode()
    assert Request.parse(added, form).messages[0].text == "late"


def test_broken_utf8_and_lone_surrogates_survive() -> None:
    data = b'{"messages":[{"role":"user","content":"\xff\xfe bytes"},{"role":"user","content":"\\ud800 escape"}]}'
    request = Request.parse(data, "openai")
    assert same_bytes(request, request.messages) == data
    assert b"\xff\xfe bytes" in same_bytes(request, (*request.messages, user("x")))
    edited = request.messages[1].with_parts(Text(text="\ud800"))
    sent = same_bytes(request, (request.messages[0], edited))
    assert b"\\ud800" in sent
    assert b"\xff\xfe bytes" in sent


def test_a_text_as_input_stays_one_until_it_changes() -> None:
    text = '{"model":"gpt-5.6", "input": "hello"}'
    request = Request.parse(text)
    assert request.format == "openai-responses"
    assert request.messages == (user("hello"),)
    assert same_bytes(request, request.messages) == text.encode()
    longer = json.loads(same_bytes(request, (*request.messages, user("more"))))
    assert [item["role"] for item in longer["input"]] == ["user", "user"]


def test_a_request_knows_its_tools_and_model() -> None:
    request = Request.parse({"model": "claude-sonnet-5", "system": "s", "tools": [{"name": "t"}], "messages": []})
    assert (request.format, request.model, request.tools) == ("anthropic", "claude-sonnet-5", ({"name": "t"},))
    assert request.body["model"] == "claude-sonnet-5"
    assert Request.parse({"messages": [{"role": "function", "content": "x", "name": "f"}], "functions": [1]}).tools == (
        1,
    )


def test_snake_case_of_the_gemini_sdk_keeps_its_spelling() -> None:
    body = {"system_instruction": {"parts": [{"text": "be brief"}]}, "contents": [{"role": "user", "parts": []}]}
    request = Request.parse(body)
    assert request.messages[0].text == "be brief"
    changed = request.render((system("be long"), *request.messages[1:]))
    assert isinstance(changed, dict)
    assert changed["system_instruction"] == {"parts": [{"text": "be long"}]}
    assert "systemInstruction" not in changed


def test_losses_of_a_new_message_are_collected_on_request() -> None:
    claude = Request.parse({"messages": [{"role": "user", "content": "hi"}], "system": "s"})
    told = render(claude.messages, "gemini")
    assert not told.lost
    thought = Request.parse(
        {"messages": [{"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": "s"}]}]}
    )
    loss = LossCollector()
    gemini = Request.parse({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]})
    gemini.render((*gemini.messages, *thought.messages), loss)
    assert [(item.message, item.what) for item in loss.items] == [(1, "thinking")]


@pytest.mark.parametrize(
    ("data", "form", "message"),
    [
        ('{"messages": [{"role": "user"}, 7]}', "openai", r"line 1|messages\[1\]"),
        ('{"messages":\n[{"role": "user", "content": ""},\n{"role": 7}]}', "openai", r"^3, field messages\[1\]"),
        ('{"messages": {}}', "openai", "must be a list"),
        ('{"model": "m"}', "anthropic", "are missing"),
        ('{"messages": [', "openai", "not JSON"),
        ("[1]", "openai", "not JSON"),
        ('{"messages": [], "x": ' + "[" * 100_000, "openai", "nested too deeply"),
        ('{"messages": [], "x": ' + "1" * 5000 + "}", "openai", "not JSON"),
        (b"\x00\x01", "openai", "not JSON"),
        ('{"contents": [{"parts": 3}]}', "gemini", r"contents\[0\].parts"),
    ],
)
def test_broken_bodies_are_typed_errors_with_their_place(data: Any, form: str, message: str) -> None:
    with pytest.raises(WireError, match=message):
        Request.parse(data, form)


def test_an_unclear_body_asks_for_its_format() -> None:
    with pytest.raises(FormatUnknown, match="format="):
        Request.parse('{"model": "m"}')
    with pytest.raises(FormatUnknown, match=r"anthropic .*openai"):
        Request.parse({"system": "s", "response_format": {}, "messages": [{"role": "user", "content": "x"}]})
    with pytest.raises(ConfigError, match="claude-code"):
        Request.parse("{}", "claude-code")
    with pytest.raises(WireError, match="must be bytes"):
        Request.parse(7)  # type: ignore[arg-type] # what a careless caller gives


@given(st.binary(max_size=60) | st.text(max_size=60))
def test_any_bytes_give_a_request_or_an_input_error(data: bytes | str) -> None:
    for form in (None, *LIST_KEYS):
        with suppress(InputError):
            assert Request.parse(data, form).messages is not None
