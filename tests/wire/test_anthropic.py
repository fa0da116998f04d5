"""Anthropic messages come back as they came, and what comes from elsewhere is carried or reported."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foldline.errors import WireError
from foldline.message import (
    Media,
    Message,
    Opaque,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    Wire,
    assistant,
    system,
    tool,
    user,
)
from foldline.wire import rendering
from foldline.wire.anthropic import FORMAT
from foldline.wire.anthropic.parse import parse, parse_system
from foldline.wire.anthropic.render import render
from foldline.wire.formats import LossCollector, format_of

WORDS = st.text(max_size=8)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), WORDS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(WORDS, inner, max_size=3)),
    max_leaves=5,
)
EXTRA = st.dictionaries(st.sampled_from(["cache_control", "citations", "x_unknown", "caller"]), JSON, max_size=2)
SOURCES = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("base64"), "media_type": st.sampled_from(["image/png", "image/bmp", "application/pdf"])},
        optional={"data": st.just("AAAA")},
    ),
    st.fixed_dictionaries({"type": st.just("url"), "url": WORDS}),
    st.fixed_dictionaries({"type": st.just("text"), "media_type": st.just("text/plain"), "data": WORDS}),
    st.fixed_dictionaries({"type": st.just("content"), "content": st.one_of(WORDS, st.just([{"text": "a"}, {}]))}),
    st.fixed_dictionaries({"type": st.just("file"), "file_id": WORDS}),
)


def block(kind: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    known = st.fixed_dictionaries({"type": st.just(kind), **fields})
    return st.builds(lambda known, extra: {**known, **extra}, known, EXTRA)


SAID = st.one_of(
    block("text", text=WORDS),
    block("image", source=SOURCES),
    block("document", source=SOURCES, title=WORDS),
    block("search_result", source=WORDS, content=st.just([{"type": "text", "text": "found"}])),
)
RESULTS = st.one_of(
    block("tool_result", tool_use_id=WORDS),
    block(
        "tool_result", tool_use_id=WORDS, content=st.one_of(WORDS, st.lists(SAID, max_size=2)), is_error=st.booleans()
    ),
)
BLOCKS = st.one_of(
    SAID,
    RESULTS,
    block("thinking", thinking=WORDS, signature=WORDS),
    block("redacted_thinking", data=WORDS),
    block("tool_use", id=WORDS, name=WORDS, input=st.dictionaries(WORDS, JSON, max_size=2)),
    block("server_tool_use", id=WORDS, name=WORDS, input=JSON),
    block("web_search_tool_result", tool_use_id=WORDS, content=JSON),
    block("compaction", content=st.one_of(st.none(), WORDS)),
    block("kind_of_tomorrow", anything=JSON),
)
REQUESTS = st.builds(
    lambda role, content, extra: {"role": role, **extra, "content": content},
    st.sampled_from(["user", "assistant", "system", "other"]),
    st.one_of(WORDS, st.lists(BLOCKS, max_size=4)),
    st.dictionaries(st.sampled_from(["name", "x_unknown"]), JSON, max_size=2),
)

TEXTS = st.builds(Text, text=WORDS)
MEDIA = st.builds(
    Media,
    kind=st.sampled_from(["image", "document", "audio"]),
    mime=st.sampled_from(["", "image/png", "image/tiff", "application/pdf"]),
    data=st.sampled_from(["", "AAAA"]),
    url=st.sampled_from(["", "https://a/b", "gs://a", "data:image/png;base64,BBBB"]),
    text=WORDS,
)
FOREIGN = Wire("openai", {})
PARTS = st.one_of(
    TEXTS,
    MEDIA,
    st.builds(Thinking, text=WORDS, signature=WORDS, wire=st.sampled_from([None, FOREIGN])),
    st.builds(
        ToolCall,
        id=WORDS,
        name=WORDS,
        arguments=st.one_of(WORDS, st.sampled_from(["", "{}", "[1]", "NaN", '{"a":NaN}', '{"a":1e999}', "[" * 99_999])),
        kind=st.sampled_from(["function", "custom"]),
    ),
    st.builds(ToolResult, call_id=WORDS, parts=st.lists(st.one_of(TEXTS, MEDIA), max_size=2).map(tuple)),
    st.builds(Opaque, kind=WORDS, value=JSON, wire=st.sampled_from([None, FOREIGN])),
)
FROM_ELSEWHERE = st.builds(
    Message,
    role=st.sampled_from(["user", "assistant", "tool", "system", "developer"]),
    parts=st.lists(PARTS, max_size=4).map(tuple),
    kind=st.sampled_from(["", "shell", "note", "digest", "branch_digest"]),
)


@given(st.lists(REQUESTS, max_size=4))
def test_untouched_messages_are_their_own_rendering(values: list[dict[str, Any]]) -> None:
    before = json.dumps(values)
    body = rendering.render([parse(value, None) for value in values], "anthropic").body["messages"]
    assert all(made is value for made, value in zip(body, values, strict=True))
    assert json.dumps(values) == before


@given(REQUESTS)
def test_rebuilding_from_the_parts_gives_the_same_bytes(value: dict[str, Any]) -> None:
    message = parse(value, None)
    made = render(message.with_parts(*message.parts), LossCollector())
    if message.parts:
        assert json.dumps(made) == json.dumps([value])
    else:
        assert made == []


@given(REQUESTS, st.data())
def test_an_edit_leaves_every_other_block_verbatim(value: dict[str, Any], data: st.DataObject) -> None:
    message = parse(value, None)
    if len(message.parts) < 2:
        return
    gone = data.draw(st.integers(0, len(message.parts) - 1))
    loss = LossCollector()
    [made] = render(message.with_parts(*message.parts[:gone], *message.parts[gone + 1 :]), loss)
    left = value["content"][:gone] + value["content"][gone + 1 :]
    assert all(new is old for new, old in zip(made["content"], left, strict=True))
    assert {**made, "content": 0} == {**value, "content": 0}
    assert not loss.items


@given(st.one_of(JSON, st.fixed_dictionaries({"role": JSON, "content": st.one_of(JSON, st.lists(JSON, max_size=2))})))
def test_any_json_is_a_message_or_a_typed_error(value: Any) -> None:
    with suppress(WireError):
        assert render(parse(value, None), LossCollector()) == [value]


BROKEN = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "tool_use", "tool_result", "image", "thinking", "redacted_thinking"])},
    optional=dict.fromkeys(
        ["text", "id", "name", "input", "tool_use_id", "content", "source", "thinking", "data"], JSON
    ),
)


@given(st.lists(st.one_of(JSON, BROKEN), max_size=3))
def test_any_block_is_a_part_or_a_typed_error(blocks: list[Any]) -> None:
    if all(isinstance(block, dict) for block in blocks):
        assert len(parse({"role": "user", "content": blocks}, None).parts) == len(blocks)
    else:
        with pytest.raises(WireError) as caught:
            parse({"role": "user", "content": blocks}, None)
        assert caught.value.field.startswith("content[")


@settings(max_examples=200)
@given(FROM_ELSEWHERE)
def test_parts_of_other_formats_are_carried_or_reported(message: Message) -> None:
    loss = LossCollector()
    made = render(message, loss)
    json.dumps(made, allow_nan=False)
    lost = [item.what for item in loss.items]
    carried: tuple[Part, ...] = parse(made[0], None).parts if made else ()
    silent = sum(isinstance(part, Text) and not part.text for part in message.parts)
    thoughts = sum(isinstance(part, Thinking) for part in message.parts)
    opaque = sum(isinstance(part, Opaque) for part in message.parts)
    assert lost.count("thinking") == thoughts
    assert sum(what.startswith("opaque") for what in lost) == opaque
    assert len(carried) in (len(message.parts) - thoughts - opaque - silent, 1 if silent else -1)
    texts = [part.text for part in carried if isinstance(part, Text)]
    assert all(part.text in texts for part in message.parts if isinstance(part, Text) and part.text)
    for part, back in zip(message.results, [part for part in carried if isinstance(part, ToolResult)], strict=True):
        said = [inner for inner in back.parts if isinstance(inner, Text)]
        assert all(inner in said for inner in part.parts if isinstance(inner, Text) and inner.text)


@given(FROM_ELSEWHERE)
def test_calls_and_results_keep_their_tie_in_allowed_letters(message: Message) -> None:
    made = render(message, LossCollector())
    ids = [part.id for part in message.parts if isinstance(part, ToolCall)]
    if not made or not ids:
        return
    sent = [block["id"] for block in made[0]["content"] if block["type"] == "tool_use"]
    answers = [render(tool(call, "x"), LossCollector())[0]["content"][0]["tool_use_id"] for call in ids]
    assert sent == answers
    assert len(set(sent)) == len(set(ids))
    assert all(char.isascii() and (char.isalnum() or char in "_-") for text in sent for char in text)


REPLY: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-opus-5",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
        {"type": "text", "text": "Done.", "citations": None},
        {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls", "n": 1.0}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 3, "cache_read_input_tokens": 97, "output_tokens": 5},
    "container": None,
}


def test_a_reply_is_a_message_with_its_facts() -> None:
    message = parse(REPLY, json.dumps(REPLY))
    assert message.role == "assistant"
    assert message.text == "Done."
    assert [type(part) for part in message.parts] == [Thinking, Opaque, Text, ToolCall]
    assert message.calls[0].arguments == '{"command":"ls","n":1.0}'
    meta = message.meta
    assert (meta.reply, meta.model, meta.stop) == ("msg_1", "claude-opus-5", "tool_use")
    assert meta.usage == Usage(input=3, cache_read=97, output=5)


def test_no_field_of_a_reply_goes_into_a_request() -> None:
    message = parse(REPLY, None)
    assert render(message, LossCollector()) == [{"role": "assistant", "content": REPLY["content"]}]
    edited = render(message.with_parts(*message.parts[2:]), LossCollector())
    assert edited == [{"role": "assistant", "content": REPLY["content"][2:]}]
    made = rendering.elements([parse(REPLY, json.dumps(REPLY))], FORMAT, LossCollector())
    assert made == [({"role": "assistant", "content": REPLY["content"]}, None)]


def test_st02_a_server_call_keeps_its_input() -> None:
    [made] = render(parse(REPLY, None), LossCollector())
    assert made["content"][1] == {
        "type": "server_tool_use",
        "id": "srvtoolu_1",
        "name": "web_search",
        "input": {"query": "x"},
    }


def test_sdk_objects_in_a_history_are_read() -> None:
    types = pytest.importorskip("anthropic.types")
    reply = types.Message.model_validate(REPLY)
    assert parse(reply, None) == parse(REPLY, None)
    [made] = render(parse({"role": "assistant", "content": reply.content}, None), LossCollector())
    assert made == {"role": "assistant", "content": REPLY["content"]}


def test_results_alone_are_the_tools_and_with_text_the_users() -> None:
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "ok"}], "is_error": True}
    assert parse({"role": "user", "content": [result]}, None) == Message(
        role="tool", parts=(ToolResult(call_id="t1", parts=(Text(text="ok"),), is_error=True),)
    )
    mixed = parse({"role": "user", "content": [result, {"type": "text", "text": "go on"}]}, None)
    assert (mixed.role, len(mixed.results), mixed.text) == ("user", 1, "go on")
    empty = parse({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1"}]}, None)
    assert empty.results[0].parts == ()


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({"content": "x"}, "role"),
        ({"role": 5, "content": "x"}, "role"),
        ({"role": "user"}, "content"),
        ({"role": "user", "content": 5}, "content"),
        ({"role": "user", "content": None}, "content"),
        ({"role": "user", "content": [{"type": "text", "text": "a"}, 7]}, "content[1]"),
        ("x", ""),
        (None, ""),
    ],
)
def test_an_element_that_is_no_message_raises_an_error_with_the_field(value: Any, field: str) -> None:
    with pytest.raises(WireError) as caught:
        parse(value, None)
    assert caught.value.field == field


def test_media_of_every_source_is_read() -> None:
    def media(kind: str, **source: Any) -> Part:
        return parse({"role": "user", "content": [{"type": kind, "source": source}]}, None).parts[0]

    assert media("image", type="base64", media_type="image/png", data="AA") == Media(
        kind="image", mime="image/png", data="AA"
    )
    assert media("document", type="url", url="https://a/b.pdf") == Media(kind="document", url="https://a/b.pdf")
    assert media("document", type="text", media_type="text/plain", data="abc") == Media(
        kind="document", mime="text/plain", text="abc"
    )
    inner = [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]
    assert media("document", type="content", content=inner) == Media(kind="document", mime="text/plain", text="a\nb")
    assert media("image", type="file", file_id="file_1") == Media(kind="image")
    assert isinstance(media("image", type="tomorrow"), Opaque)


def test_media_from_elsewhere_goes_by_value_or_address_or_is_marked() -> None:
    parts = (
        Media(kind="image", mime="image/png", data="AA"),
        Media(kind="image", url="data:image/gif;base64,BB"),
        Media(kind="image", url="https://a/b.png"),
        Media(kind="document", mime="application/pdf", data="CC"),
        Media(kind="document", mime="text/markdown", text="# hi"),
        Media(kind="image", mime="image/tiff", data="DD"),
        Media(kind="audio", mime="audio/wav", data="EE"),
    )
    loss = LossCollector()
    [made] = render(Message(role="user", parts=parts), loss)
    assert [found.get("source", {}).get("type", "mark") for found in made["content"]] == (
        ["base64", "base64", "url", "base64", "text", "mark", "mark"]
    )
    assert made["content"][1]["source"]["media_type"] == "image/gif"
    assert [item.what for item in loss.items] == ["media image", "media audio"]
    assert made["content"][6] == {"type": "text", "text": "[audio audio/wav left out]"}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"a": 1}', {"a": 1}),
        ("", {}),
        ("  ", {}),
        ("ls -la", {"input": "ls -la"}),
        ("[1, 2]", {"input": "[1, 2]"}),
        ("null", {"input": "null"}),
        ('{"a": NaN}', {"a": "NaN"}),
        ('{"a": 1e999}', {"a": "1e999"}),
        ('{"a": ', {"input": '{"a": '}),
    ],
)
def test_arguments_become_an_object(arguments: str, expected: dict[str, Any]) -> None:
    [made] = render(assistant("", ToolCall(id="c1", name="run", arguments=arguments)), LossCollector())
    assert made["content"] == [{"type": "tool_use", "id": "c1", "name": "run", "input": expected}]


def test_pr01_changed_thinking_leaves_and_the_rest_stays() -> None:
    message = parse(REPLY, None)
    thought = message.parts[0]
    assert isinstance(thought, Thinking)
    assert thought.wire is not None
    changed = replace(thought, text="shorter", wire=thought.wire._replace(exact=False))
    loss = LossCollector()
    [made] = render(message.with_parts(changed, *message.parts[2:]), loss)
    assert made["content"] == REPLY["content"][2:]
    assert [item.what for item in loss.items] == ["thinking"]


def test_an_edited_result_keeps_its_other_fields() -> None:
    value = {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": "long", "cache_control": {"type": "ephemeral"}}
        ],
    }
    message = parse(value, None)
    result = message.results[0]
    assert result.wire is not None
    stub = replace(result, parts=(Text(text="[stub]"),), wire=result.wire._replace(exact=False))
    [made] = render(message.with_parts(stub), LossCollector())
    assert made["content"] == [
        {"type": "tool_result", "tool_use_id": "t1", "cache_control": {"type": "ephemeral"}, "content": "[stub]"}
    ]


def test_roles_and_kinds_without_a_place_are_the_users() -> None:
    made = rendering.render(
        [
            user("ls", kind="shell"),
            user("fyi", kind="note"),
            user("so far", kind="digest"),
            Message(role="developer", parts=(Text(text="be brief"),)),
            assistant("ok"),
            system("late"),
        ],
        "anthropic",
    )
    assert [element["role"] for element in made.body["messages"]] == ["user", "assistant", "user"]
    assert [block["text"] for block in made.body["messages"][0]["content"]] == ["ls", "fyi", "so far", "be brief"]
    assert [(item.message, item.what) for item in made.lost] == [(5, "system role")]


def test_all_results_of_a_step_are_one_message() -> None:
    calls = [ToolCall(id=f"c{n}", name="run") for n in range(2)]
    made = rendering.render(
        [user("go"), assistant("", *calls), tool("c0", "a"), tool("c1", "b"), user("and?")], "anthropic"
    )
    go, said, results = made.body["messages"]
    assert go == {"role": "user", "content": "go"}
    assert [block["type"] for block in said["content"]] == ["tool_use", "tool_use"]
    assert [block["type"] for block in results["content"]] == ["tool_result", "tool_result", "text"]


def test_a_result_is_never_moved_behind_other_content() -> None:
    made = rendering.render([user("wait"), tool("c0", "a")], "anthropic").body["messages"]
    assert [element["role"] for element in made] == ["user", "user"]


def test_system_prompts() -> None:
    blocks = [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "b"}]
    kept = rendering.render([parse_system(blocks), user("x")], "anthropic")
    assert kept.body["system"] == blocks
    assert rendering.render([system("a"), user("x")], "anthropic").body["system"] == "a"
    both = rendering.render([parse_system(blocks), system("c"), user("x")], "anthropic")
    assert both.body["system"] == [*blocks, {"type": "text", "text": "c"}]
    assert both.body["messages"] == [{"role": "user", "content": "x"}]
    inline = {"role": "system", "content": "from now on"}
    assert rendering.render([parse(inline, None), user("x")], "anthropic").body["messages"][0] is inline


@pytest.mark.parametrize("value", [5, None, {"a": 1}, ["x"], [5]])
def test_a_system_prompt_must_be_text(value: Any) -> None:
    with pytest.raises(WireError) as caught:
        parse_system(value)
    assert caught.value.field.startswith("system")


def legacy(name: str, arguments: str) -> Message:
    return assistant("", ToolCall(id="", name=name, arguments=arguments))


@pytest.mark.parametrize("provider", ["anthropic", "openai", "openai-responses"])
def test_calls_without_ids_are_tied_by_name_and_order(provider: str) -> None:
    talk = [
        user("go"),
        legacy("look", '{"at":1}'),
        tool("", "first", name="look"),
        legacy("look", '{"at":1}'),
        legacy("find", "{}"),
        tool("", "third", name="find"),
        tool("", "second", name="look"),
    ]
    tied = rendering.with_ids(talk, format_of(provider))
    ids = [part.id for message in tied for part in message.calls]
    answers = {part.text: part.call_id for message in tied for part in message.results}
    assert len(set(ids)) == 3
    assert [answers["first"], answers["second"], answers["third"]] == ids
    assert rendering.with_ids([*talk, user("more")], format_of(provider))[:-1] == tied
    assert talk[1].calls[0].id == ""


@given(st.lists(st.tuples(st.sampled_from("ab"), st.booleans()), max_size=8))
def test_ids_are_stable_as_the_list_grows(steps: list[tuple[str, bool]]) -> None:
    talk: list[Message] = []
    for name, answered in steps:
        talk += [legacy(name, "{}"), *([tool("", "x", name=name)] if answered else [])]
    whole = rendering.with_ids(talk, FORMAT)
    for end in range(len(talk)):
        assert list(rendering.with_ids(talk[:end], FORMAT)) == list(whole[:end])
    assert all(part.id for message in whole for part in message.calls)


def test_messages_with_ids_are_not_touched() -> None:
    talk = [assistant("", ToolCall(id="c1", name="run")), tool("c1", "x")]
    assert rendering.with_ids(talk, FORMAT) is talk
