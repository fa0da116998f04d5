"""Generates random transcripts, valid and broken, for `bench repair`.

A transcript is generated as foldline messages. Most are then written in the format of one provider and parsed again;
the writers are in this module, and use no code of foldline's formats. Then the transcript is broken in ways that occur
in real histories. A transcript depends only on its seed, so a failure can be repeated.
"""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random
from typing import Any

from foldline.message import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult, assistant, system, user
from foldline.wire.formats import REQUEST_FORMATS, format_of

WORDS = (
    *(
        "fix the parser",
        "done",
        "a",
        "日本語のテキストです",
        "정말 긴 문장",
        "emoji 🎉👩‍👩‍👧",
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB" * 4,
    ),
    *(
        "<|endoftext|><|im_start|>",
        "[INST] <<SYS>>",
        "\x00nul",
        "x" * 3000,
        "line\nline\n",
        "\ud800 lone",
        '{"json": [1]}',
    ),
)
BLANKS = ("", " ", "\n\n", "\t ")
NAMES = ("read", "run", "search", "read", "mcp__files__read")
ODD_NAMES = ("files.read", "", "name with spaces", "x" * 90)
PNG = "iVBORw0KGgo="


def text(rng: Random) -> str:
    """A text with a unique mark, so that it can be found again."""
    return f"{WORDS[int(rng.random() * len(WORDS))]} #{rng.getrandbits(40):x}"


def sound(rng: Random) -> list[Message]:
    """A transcript that every provider accepts."""
    made: list[Message] = [system(text(rng)) for _ in range(int(rng.random() * 1.5))]
    count = 0
    for _ in range(1 + int(rng.random() * 2.7)):
        media: tuple[Part, ...] = (Media(kind="image", mime="image/png", data=PNG),) if rng.random() < 0.1 else ()
        made.append(Message(role="user", parts=(Text(text=text(rng)), *media)))
        for _ in range(int(rng.random() * 2.7)):
            calls = [ToolCall(id=f"call_{count + n}", name=_name(rng)) for n in range(1 + int(rng.random() ** 3 * 4))]
            count += len(calls)
            said: list[Part] = [Text(text=text(rng))] if rng.random() < 0.4 else []
            thought = [Thinking(text=text(rng), signature="c2ln")] if rng.random() < 0.3 else []
            made.append(Message(role="assistant", parts=(*thought, *said, *calls)))
            made.append(Message(role="tool", parts=tuple(_result(call, rng) for call in calls)))
        if rng.random() < 0.8:
            made.append(assistant(text(rng)))
    if made[-1].role == "assistant":
        made.append(user(text(rng)))
    return made


def _name(rng: Random) -> str:
    return NAMES[int(rng.random() * len(NAMES))]


def _result(call: ToolCall, rng: Random) -> ToolResult:
    inner: tuple[Part, ...] = (Text(text=text(rng)),)
    return ToolResult(call_id=call.id, name=call.name, parts=inner, is_error=rng.random() < 0.1)


# The wire forms, written without the codecs -------------------------------------------------------------------------


def on_wire(messages: list[Message], provider: str, rng: Random) -> list[Message]:
    """The transcript, written in the format of a provider and parsed again. Some of its elements are broken before
    parsing.
    """
    parse = format_of(provider).parse
    written = [(message, value) for message in messages for value in _WRITERS[provider](message)]
    return [
        message if message.role == "system" else parse(_spoilt(value, rng) if rng.random() < 0.03 else value, None)
        for message, value in written
    ]


def _anthropic(message: Message) -> list[Any]:
    blocks: list[Any] = []
    for part in message.parts:
        if isinstance(part, Text):
            blocks.append({"type": "text", "text": part.text})
        elif isinstance(part, Thinking):
            blocks.append({"type": "thinking", "thinking": part.text, "signature": part.signature})
        elif isinstance(part, ToolCall):
            blocks.append({"type": "tool_use", "id": part.id, "name": part.name, "input": json.loads(part.arguments)})
        elif isinstance(part, ToolResult):
            block = {"type": "tool_result", "tool_use_id": part.call_id, "content": part.text}
            blocks.append({**block, "is_error": True} if part.is_error else block)
        elif isinstance(part, Media):
            source = {"type": "base64", "media_type": part.mime, "data": part.data}
            blocks.append({"type": "image", "source": source})
    return [{"role": "assistant" if message.role == "assistant" else "user", "content": blocks}]


def _openai(message: Message) -> list[Any]:
    made: list[Any] = []
    content: list[Any] = []
    calls: list[Any] = []
    for part in message.parts:
        if isinstance(part, Text):
            content.append({"type": "text", "text": part.text})
        elif isinstance(part, ToolCall):
            calls.append({"id": part.id, "type": "function", "function": {"name": part.name, "arguments": "{}"}})
        elif isinstance(part, ToolResult):
            made.append({"role": "tool", "tool_call_id": part.call_id, "content": part.text})
        elif isinstance(part, Media):
            url = f"data:{part.mime};base64,{part.data}"
            content.append({"type": "image_url", "image_url": {"url": url}})
    if content or calls:
        said: dict[str, Any] = {"role": message.role, "content": content or None}
        made.append({**said, "tool_calls": calls} if calls else said)
    return made


def _responses(message: Message) -> list[Any]:
    made: list[Any] = []
    for part in message.parts:
        if isinstance(part, Text):
            kind = "output_text" if message.role == "assistant" else "input_text"
            item = {"type": "message", "role": message.role, "content": [{"type": kind, "text": part.text}]}
            made.append({**item, "id": f"msg_{part.text[-10:]}"} if message.role == "assistant" else item)
        elif isinstance(part, Thinking):
            made.append({"type": "reasoning", "id": f"rs_{part.text[-10:]}", "summary": [], "encrypted_content": "e"})
        elif isinstance(part, ToolCall):
            item = {"type": "function_call", "call_id": part.id, "name": part.name, "arguments": part.arguments}
            made.append({**item, "id": f"fc_{part.id}"})
        elif isinstance(part, ToolResult):
            made.append({"type": "function_call_output", "call_id": part.call_id, "output": part.text})
        elif isinstance(part, Media):
            image = {"type": "input_image", "image_url": f"data:{part.mime};base64,{part.data}"}
            made.append({"role": "user", "content": [image]})
    return made


def _gemini(message: Message) -> list[Any]:
    parts: list[Any] = []
    for part in message.parts:
        if isinstance(part, Text):
            parts.append({"text": part.text})
        elif isinstance(part, Thinking):
            parts.append({"text": part.text, "thought": True, "thoughtSignature": part.signature})
        elif isinstance(part, ToolCall):
            parts.append({"functionCall": {"name": part.name, "args": {}}})
        elif isinstance(part, ToolResult):
            parts.append({"functionResponse": {"name": part.name, "response": {"output": part.text}}})
        elif isinstance(part, Media):
            parts.append({"inlineData": {"mimeType": part.mime, "data": part.data}})
    return [{"role": "model" if message.role == "assistant" else "user", "parts": parts}]


_WRITERS = {"anthropic": _anthropic, "openai": _openai, "openai-responses": _responses, "gemini": _gemini}


def _spoilt(value: dict[str, Any], rng: Random) -> dict[str, Any]:
    """An element of a request with a fault that parsing keeps."""
    key = "parts" if "parts" in value else "content"
    content = value.get(key)
    way = int(rng.random() * 6)
    if way == 0 and key in value and value.get("role") != "tool":
        return {**value, key: []}
    if isinstance(content, list) and content and isinstance(content[0], dict):
        first = content[0]
        if way == 1 and "text" in first:
            return {**value, key: [{**first, "text": BLANKS[int(rng.random() * 4)]}, *content[1:]]}
        if way == 2 and first.get("type") == "tool_result":
            empty = [{"type": "text", "text": ""}]
            return {**value, key: [{**first, "content": empty, "is_error": rng.random() < 0.5}, *content[1:]]}
        if way == 3 and first.get("type") == "thinking":
            return {**value, key: [{**first, "signature": ""}, *content[1:]]}
        if way == 4 and first.get("type") in ("text", "tool_use", "thinking"):
            server = {"type": "server_tool_use", "id": f"srv_{rng.getrandbits(8)}", "name": "web_search", "input": {}}
            answer = {"type": "web_search_tool_result", "tool_use_id": server["id"], "content": []}
            return {**value, key: [server, answer, *content] if rng.random() < 0.6 else [server, *content]}
    if way == 5 and value.get("tool_calls"):
        return {**value, "tool_calls": [] if rng.random() < 0.5 else value["tool_calls"][:1]}
    return value


# How histories break ------------------------------------------------------------------------------------------------


def broken(messages: list[Message], rng: Random) -> list[Message]:
    """The transcript with several faults."""
    made = list(messages)
    for _ in range(1 + int(rng.random() * 4)):
        if not made:
            made.append(user(text(rng)))
        place, other = int(rng.random() * len(made)), int(rng.random() * (len(made) + 1))
        way = int(rng.random() * 12)
        if way == 0:
            del made[place]
        elif way == 1:
            made.insert(other, made[place])
        elif way == 2:
            made.insert(other, made.pop(place))
        elif way == 3:
            del made[other:]
        elif way == 4:
            del made[:other]
        elif way == 5:
            made.insert(other, _stray(rng))
        elif way == 6 and place + 1 < len(made) and {made[place].role, made[place + 1].role} <= {"user", "tool"}:
            after = made.pop(place + 1)
            both = (*made[place].parts, *after.parts)
            made[place] = Message(role="user", parts=both if rng.random() < 0.5 else both[::-1])
        else:
            made[place] = _edited(made[place], made, rng)
    return made


def _edited(message: Message, made: list[Message], rng: Random) -> Message:
    """A message with one part removed, repeated, moved, emptied or changed."""
    parts = list(message.parts)
    if not parts:
        return message
    place = int(rng.random() * len(parts))
    part = parts[place]
    way = int(rng.random() * 9)
    if way == 0:
        del parts[place]
    elif way == 1:
        parts.insert(0, part)
    elif way == 2:
        parts.append(parts.pop(place))
    elif way == 3:
        parts[place] = Text(text=BLANKS[int(rng.random() * 4)])
    elif way == 4:
        parts.insert(place, _stray_part(rng))
    elif way == 5:
        return replace(
            message, role=("narrator", "user", "assistant", "system", "tool")[int(rng.random() * 5)], wire=None
        )
    elif way == 6:
        return replace(message, kind=("note", "digest", "shell")[int(rng.random() * 3)], role="user", wire=None)
    elif isinstance(part, ToolResult):
        parts[place] = _other_result(part, way, made, rng)
    elif isinstance(part, ToolCall):
        name = ODD_NAMES[int(rng.random() * 4)] if way == 7 else part.name
        wire = part.wire and part.wire._replace(exact=False)
        parts[place] = replace(part, id=_some_id(made, rng), name=name, wire=wire)
    return message.with_parts(*parts)


def _other_result(part: ToolResult, way: int, made: list[Message], rng: Random) -> ToolResult:
    wire = part.wire and part.wire._replace(exact=False)
    if way == 7:
        return replace(part, interim=rng.random() < 0.5, is_error=rng.random() < 0.5, parts=(), wire=wire)
    return replace(part, call_id=_some_id(made, rng), wire=wire)


def _some_id(made: list[Message], rng: Random) -> str:
    ids = [call.id for message in made for call in message.calls]
    if not ids or rng.random() < 0.2:
        return ("gone", "", "terminal:0", "i" * 80)[int(rng.random() * 4)]
    return ids[int(rng.random() * len(ids))]


def _stray(rng: Random) -> Message:
    """A message that is not allowed at a random position, such as a result without a call."""
    way = int(rng.random() * 9)
    if way == 0:
        return Message(
            role="tool", parts=(ToolResult(call_id=f"call_{rng.getrandbits(2)}", parts=(Text(text=text(rng)),)),)
        )
    if way == 1:
        return assistant("", ToolCall(id=f"call_{rng.getrandbits(2)}", name="run"))
    if way == 2:
        return Message(role="assistant", parts=(Thinking(text=text(rng)),))
    if way == 3:
        return system(text(rng))
    if way == 4:
        return Message(role="user" if rng.random() < 0.5 else "assistant", parts=())
    if way == 5:
        value = {"role": "system", "content": text(rng)}
        return format_of("anthropic" if rng.random() < 0.5 else "openai").parse(value, None)
    if way == 6:
        search = {"type": "web_search_call", "id": f"ws_{rng.getrandbits(4)}", "status": "completed"}
        return format_of("openai-responses").parse(search, None)
    if way == 7:
        item: dict[str, Any] = {
            "type": "reasoning",
            "id": f"rs_{rng.getrandbits(4)}",
            "summary": [],
            "encrypted_content": "e",
        }
        return format_of("openai-responses").parse(item, None)
    return Message(role="narrator", parts=(Text(text=text(rng)),), kind="legend")


def _stray_part(rng: Random) -> Part:
    parts: tuple[Part, ...] = (
        Text(text=text(rng)),
        Thinking(text="unsigned"),
        Media(kind="audio", mime="audio/wav", data="UklGRg=="),
        Media(kind="image", url="https://example.org/a.png"),
        ToolResult(call_id="nobody", parts=(Text(text=text(rng)), Media(kind="image", mime="image/png", data=PNG))),
        ToolCall(id="stray", name="run", arguments='{"cut off'),
        Opaque(kind="mystery", value={"a": 1}),
    )
    return parts[int(rng.random() * len(parts))]


def transcript(seed: int) -> tuple[list[Message], bool]:
    """The transcript of a seed, and whether it is certainly unbroken."""
    rng = Random(seed)
    made = sound(rng)
    wire = int(rng.random() * 7)
    if wire < 4:
        made = on_wire(made, REQUEST_FORMATS[wire], rng)
    whole = rng.random() < 0.1
    return (made if whole else broken(made, rng)), whole and wire >= 4
