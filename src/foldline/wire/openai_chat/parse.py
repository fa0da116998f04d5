"""Parses OpenAI chat messages, including fields that other servers add. One element is one message.

Fields other than `content` (calls, a refusal, a server's reasoning) become parts too. Each such part keeps its fields
as wire value. A legacy `function_call` becomes a call with the id "". A message with the legacy role `function` becomes
a result with the id "". A reply's message is kept in the form in which it may be sent back.
"""

from __future__ import annotations

from typing import Any

from foldline.errors import WireError
from foldline.json_text import dumps
from foldline.message import Media, Message, Meta, Opaque, Part, Text, Thinking, ToolCall, ToolResult, Wire
from foldline.wire.field_access import string_at
from foldline.wire.openai_chat.usage import chat_usage
from foldline.wire.part_mapping import document, media_from, sdk_json

NAME = "openai"
ROLES = {"developer": "system", "function": "tool"}
"""The `Message.role` for each role on the wire."""
_REASONING = ("reasoning_content", "reasoning", "reasoning_details")
"""Fields in which other servers (DeepSeek, vLLM, OpenRouter) return the model's reasoning."""
SIDE_FIELDS = (*_REASONING, "refusal", "audio", "function_call")
"""Fields other than `content` and `tool_calls` that become parts."""
OTHER_CALL = "tool_call "
"""Prefix of the kind of a call that is neither a function call nor a custom tool call."""
_ONLY_IN_REPLIES = ("annotations", "parsed", "provider_specific_fields")
"""Message fields of a reply that a strict server refuses in a request."""


def parse(value: Any, raw: str | None = None) -> Message:
    """The message for one element of `messages`."""
    if not isinstance(value, dict):
        value, raw = sdk_json(value), None
        if not isinstance(value, dict):
            raise WireError("a message must be an object", field="message")
        value = _sendable(value)
    role, content = value.get("role"), value.get("content")
    if not isinstance(role, str) or not role:
        raise WireError("a message needs a role", field="role", hint='such as "user"')
    parts: tuple[Part, ...] = ()
    if isinstance(content, list):
        parts = tuple([content_part(part) for part in content])
    elif isinstance(content, str):
        parts = (Text(text=content),) if content else ()
    elif content is not None:
        raise WireError("content must be a string, a list of parts or null", field="content")
    if role in ("tool", "function"):
        parts = (_result(value, parts),)
    elif content is None or len(value) > 2:
        value = _plain(value)
        parts = (*thinking(value), *parts, *side_parts(value), *_calls(value))
    return Message(role=ROLES.get(role, role), parts=parts, wire=Wire(NAME, value, raw))


def _plain(value: dict[str, Any]) -> dict[str, Any]:
    """The message with its calls as JSON. Clients may put the SDK's call objects into their own dicts."""
    calls = value.get("tool_calls")
    if not isinstance(calls, list) or all(isinstance(call, dict) for call in calls):
        return value
    return {**value, "tool_calls": [sdk_json(call) for call in calls]}


def content_part(value: Any) -> Part:
    """The part for one piece of a message's content."""
    if isinstance(value, str):
        return Text(text=value)
    kind = value.get("type") if isinstance(value, dict) else None
    inner = value.get(kind) if isinstance(kind, str) else None
    wire = Wire(NAME, value)
    if kind in ("text", "refusal") and isinstance(inner, str):
        return Text(text=inner, wire=wire)
    if is_call_part(value):
        key = value.get("call_id") or value.get("id")
        return ToolCall(
            id=key if isinstance(key, str) else "", name=value["name"], arguments=_arguments(value), wire=wire
        )
    if kind == "image_url":
        url = inner.get("url") if isinstance(inner, dict) else inner
        if isinstance(url, str):
            return media_from("image", url, wire)
    if kind == "input_audio" and isinstance(inner, dict) and isinstance(inner.get("data"), str):
        return Media(kind="audio", mime=f"audio/{inner.get('format', '')}", data=inner["data"], wire=wire)
    if kind == "file" and isinstance(inner, dict):
        if isinstance(inner.get("file_data"), str):
            return document(inner["file_data"], wire)
        if isinstance(inner.get("file_id"), str):
            return Media(kind="document", wire=wire)
    return Opaque(kind=kind if isinstance(kind, str) else "untyped", value=value, wire=wire)


def is_call_part(value: Any) -> bool:
    """True for a call among the content parts.

    Some clients that store items of OpenAI's Responses API write calls in this way.
    """
    return isinstance(value, dict) and value.get("type") == "function_call" and isinstance(value.get("name"), str)


def thinking(value: dict[str, Any]) -> tuple[Part, ...]:
    """The reasoning that a server returned, as one part."""
    fields = {key: value[key] for key in _REASONING if value.get(key)}
    if not fields:
        return ()
    listed = fields.get("reasoning_details")
    details = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    texts = [fields[key] for key in _REASONING[:2] if isinstance(fields.get(key), str)]
    text = texts[0] if texts else "".join(_strings(details, "text", "summary"))
    return (Thinking(text=text, signature="".join(_strings(details, "signature", "data")), wire=Wire(NAME, fields)),)


def _strings(entries: list[dict[str, Any]], *keys: str) -> list[str]:
    return [entry[key] for entry in entries for key in keys if isinstance(entry.get(key), str)]


def side_parts(value: dict[str, Any]) -> list[Part]:
    """The parts for fields other than the content: a refusal, audio, a legacy call."""
    parts: list[Part] = []
    refusal = value.get("refusal")
    if isinstance(refusal, str) and refusal:
        parts.append(Text(text=refusal, wire=Wire(NAME, {"refusal": refusal})))
    audio = value.get("audio")
    if audio is not None:
        parts.append(Opaque(kind="audio", value=audio, wire=Wire(NAME, {"audio": audio})))
    call = value.get("function_call")
    if isinstance(call, dict):
        name, wire = _text(call, "name", "function_call.name"), Wire(NAME, {"function_call": call})
        parts.append(ToolCall(id="", name=name, arguments=_arguments(call), wire=wire))
    elif call is not None:
        raise WireError("a call must be an object", field="function_call")
    return parts


def _calls(value: dict[str, Any]) -> list[Part]:
    calls = value.get("tool_calls")
    if calls is None:
        return []
    if not isinstance(calls, list):
        raise WireError("tool_calls must be a list", field="tool_calls")
    return [call(entry, f"tool_calls[{place}]") for place, entry in enumerate(calls)]


def call(value: Any, field: str) -> Part:
    """The part for one of a message's calls."""
    if not isinstance(value, dict):
        raise WireError("a tool call must be an object", field=field)
    kind = value.get("type") or "function"
    body = value.get(kind) if kind in ("function", "custom") else None
    if not isinstance(body, dict):
        return Opaque(kind=f"{OTHER_CALL}{kind}", value=value, wire=Wire(NAME, value))
    custom = kind == "custom"
    return ToolCall(
        id=_text(value, "id", f"{field}.id", missing=True),
        name=_text(body, "name", f"{field}.{kind}.name"),
        arguments=_text(body, "input", f"{field}.custom.input") if custom else _arguments(body),
        kind="custom_tool" if custom else "function",
        wire=Wire(NAME, value),
    )


def _arguments(body: dict[str, Any]) -> str:
    """The arguments of a call as text. The text need not be valid JSON.

    If a server sends an object, the object becomes JSON text.
    """
    arguments = body.get("arguments")
    if isinstance(arguments, str):
        return arguments
    return dumps(arguments) if arguments is not None else "{}"


def _text(value: dict[str, Any], key: str, field: str, *, missing: bool = False) -> str:
    found = value.get(key)
    if isinstance(found, str):
        return found
    if found is None and missing:
        return ""
    raise WireError(f"{key} must be text", field=field)


def _result(value: dict[str, Any], parts: tuple[Part, ...]) -> ToolResult:
    """The result in a message. SWE-agent writes the call id as a list with one element."""
    ids = value.get("tool_call_ids")
    if "tool_call_id" not in value and isinstance(ids, list) and len(ids) == 1 and isinstance(ids[0], str):
        call_id = ids[0]
    else:
        call_id = _text(value, "tool_call_id", "tool_call_id", missing=True)
    return ToolResult(call_id=call_id, name=_text(value, "name", "name", missing=True), parts=parts)


def is_side_fields(value: Any) -> bool:
    """True for a wire value that holds fields of the message instead of a content part."""
    return isinstance(value, dict) and "type" not in value and any(key in value for key in SIDE_FIELDS)


def parse_reply(value: Any) -> tuple[Message, ...]:
    """The message in a `chat.completion` object, in the form in which it may be sent back."""
    value = sdk_json(value)
    choices = value.get("choices") if isinstance(value, dict) else None
    if not isinstance(choices, list):
        raise WireError("a reply must be an object with choices", field="choices")
    if not choices:
        return ()
    message = choices[0].get("message") if isinstance(choices[0], dict) else None
    if not isinstance(message, dict):
        raise WireError("a choice must hold a message", field="choices[0].message")
    at = value.get("created")
    meta = Meta(
        reply=string_at(value, "id"),
        model=string_at(value, "model"),
        stop=string_at(choices[0], "finish_reason"),
        usage=chat_usage(value.get("usage")),
        at=float(at) if isinstance(at, (int, float)) else None,
    )
    return (parse(_sendable(message)).with_meta(meta),)


def _sendable(message: dict[str, Any]) -> dict[str, Any]:
    """A reply's message without the values that only replies have: nulls, citations, audio data, stream positions."""
    fields = {
        key: value
        for key, value in message.items()
        if key not in _ONLY_IN_REPLIES and (value is not None or key == "content")
    }
    audio, calls = fields.get("audio"), fields.get("tool_calls")
    if isinstance(audio, dict):
        fields["audio"] = {"id": audio.get("id")}
    if isinstance(calls, list):
        fields["tool_calls"] = [
            {key: value for key, value in call.items() if key != "index"} if isinstance(call, dict) else call
            for call in calls
        ]
    return fields
