"""OpenAI Chat Completions: the format that most servers imitate, with the additions they made.

One message is one element. What stands beside `content` (calls, a refusal, a server's reasoning) becomes parts as well,
each with the fields it came from as its wire value, so that an edited message loses exactly what was taken out of it.
Legacy `function_call` and role `function` have no ids; they are kept as calls and results with the id "".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from foldline.errors import WireError
from foldline.message import Media, Message, Meta, Opaque, Part, Text, Thinking, ToolCall, ToolResult, Wire
from foldline.wire import scan
from foldline.wire.carry import as_object, data_url, document, document_name, dumped, failed, left_out, media_from
from foldline.wire.codec import Codec, Loss
from foldline.wire.usage import chat_usage

NAME = "openai"

_ROLES = {"developer": "system", "function": "tool"}
"""Wire roles that planning knows by another name."""
_REASONING = ("reasoning_content", "reasoning", "reasoning_details")
"""Where servers other than OpenAI's put the model's reasoning (DeepSeek, vLLM, OpenRouter)."""
_ASIDE = (*_REASONING, "refusal", "audio", "function_call")
"""Fields beside `content` and `tool_calls` that say something."""
_SAID = frozenset((*_ASIDE, "content", "tool_calls"))
_ONLY_IN_REPLIES = ("annotations", "parsed", "provider_specific_fields")
"""Message fields that a reply has and a strict server refuses in a request."""
_SOUNDS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
_CALL = "tool_call "
"""Begins the kind of a call that is neither a function's nor a custom tool's."""


def parse(value: Any, raw: str | None = None) -> Message:
    """A message of one element of `messages`."""
    if not isinstance(value, dict):
        value, raw = dumped(value), None
        if not isinstance(value, dict):
            raise WireError("a message must be an object", field="message")
        value = _sendable(value)
    role = value.get("role")
    if not isinstance(role, str) or not role:
        raise WireError("a message needs a role", field="role", hint='such as "user"')
    content = value.get("content")
    parts: tuple[Part, ...]
    if isinstance(content, str):
        parts = (Text(text=content),) if content else ()
    elif content is None:
        parts = ()
    elif isinstance(content, list):
        parts = tuple([_content_part(part) for part in content])
    else:
        raise WireError("content must be text, a list of parts or null", field="content")
    if role in ("tool", "function"):
        parts = (_result(value, parts),)
    elif len(value) > 2:
        value = _plain(value)
        parts = (*_thinking(value), *parts, *_aside(value), *_calls(value))
    return Message(role=_ROLES.get(role, role), parts=parts, wire=Wire(NAME, value, raw))


def _plain(value: dict[str, Any]) -> dict[str, Any]:
    """A message whose calls are JSON: clients write it by hand around the call objects of the SDK."""
    calls = value.get("tool_calls")
    if not isinstance(calls, list) or all(isinstance(call, dict) for call in calls):
        return value
    return {**value, "tool_calls": [dumped(call) for call in calls]}


def _content_part(value: Any) -> Part:
    kind = value.get("type") if isinstance(value, dict) else None
    inner = value.get(kind) if isinstance(kind, str) else None
    wire = Wire(NAME, value)
    if kind in ("text", "refusal") and isinstance(inner, str):
        return Text(text=inner, wire=wire)
    if kind == "image_url":
        url = inner.get("url") if isinstance(inner, dict) else inner
        if isinstance(url, str):
            return media_from("image", url, wire)
    if kind == "input_audio" and isinstance(inner, dict) and isinstance(inner.get("data"), str):
        return Media(kind="audio", mime=f"audio/{inner.get('format', '')}", data=inner["data"], wire=wire)
    if kind == "file" and isinstance(inner, dict) and isinstance(inner.get("file_data"), str):
        return document(inner["file_data"], wire)
    return Opaque(kind=kind if isinstance(kind, str) else "untyped", value=value, wire=wire)


def _thinking(value: dict[str, Any]) -> tuple[Part, ...]:
    """The reasoning of servers that show it; what signs it makes it immutable."""
    fields = {key: value[key] for key in _REASONING if value.get(key)}
    if not fields:
        return ()
    listed = fields.get("reasoning_details")
    details = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    said = [fields[key] for key in _REASONING[:2] if isinstance(fields.get(key), str)]
    text = said[0] if said else "".join(_strings(details, "text", "summary"))
    return (Thinking(text=text, signature="".join(_strings(details, "signature", "data")), wire=Wire(NAME, fields)),)


def _strings(entries: list[dict[str, Any]], *keys: str) -> list[str]:
    return [entry[key] for entry in entries for key in keys if isinstance(entry.get(key), str)]


def _aside(value: dict[str, Any]) -> list[Part]:
    """What is said beside the content: a refusal, sound, a legacy call."""
    parts: list[Part] = []
    refusal = value.get("refusal")
    if isinstance(refusal, str) and refusal:
        parts.append(Text(text=refusal, wire=Wire(NAME, {"refusal": refusal})))
    audio = value.get("audio")
    if audio is not None:
        parts.append(Opaque(kind="audio", value=audio, wire=Wire(NAME, {"audio": audio})))
    call = value.get("function_call")
    if call is not None:
        parts.append(_legacy_call(call))
    return parts


def _legacy_call(value: Any) -> ToolCall:
    if not isinstance(value, dict):
        raise WireError("a call must be an object", field="function_call")
    name = _text(value, "name", "function_call.name")
    return ToolCall(id="", name=name, arguments=_arguments(value), wire=Wire(NAME, {"function_call": value}))


def _calls(value: dict[str, Any]) -> list[Part]:
    calls = value.get("tool_calls")
    if calls is None:
        return []
    if not isinstance(calls, list):
        raise WireError("tool_calls must be a list", field="tool_calls")
    return [_call(call, f"tool_calls[{place}]") for place, call in enumerate(calls)]


def _call(value: Any, field: str) -> Part:
    if not isinstance(value, dict):
        raise WireError("a tool call must be an object", field=field)
    kind = value.get("type") or "function"
    custom = kind == "custom"
    body = value.get("custom" if custom else "function")
    if kind not in ("function", "custom") or not isinstance(body, dict):
        return Opaque(kind=f"{_CALL}{kind}", value=value, wire=Wire(NAME, value))
    key = "custom" if custom else "function"
    return ToolCall(
        id=_text(value, "id", f"{field}.id", missing=True),
        name=_text(body, "name", f"{field}.{key}.name"),
        arguments=_text(body, "input", f"{field}.custom.input") if custom else _arguments(body),
        kind="custom_tool" if custom else "function",
        wire=Wire(NAME, value),
    )


def _arguments(body: dict[str, Any]) -> str:
    """The text on the wire, valid JSON or not; some servers send the object itself."""
    arguments = body.get("arguments")
    if isinstance(arguments, str):
        return arguments
    return scan.dumps(arguments) if arguments is not None else "{}"


def _text(value: dict[str, Any], key: str, field: str, *, missing: bool = False) -> str:
    found = value.get(key)
    if isinstance(found, str):
        return found
    if found is None and missing:
        return ""
    raise WireError(f"{key} must be text", field=field)


def _result(value: dict[str, Any], parts: tuple[Part, ...]) -> ToolResult:
    """The result a message carries; SWE-agent writes a list of one id instead of the id."""
    ids = value.get("tool_call_ids")
    if "tool_call_id" not in value and isinstance(ids, list) and len(ids) == 1 and isinstance(ids[0], str):
        call_id = ids[0]
    else:
        call_id = _text(value, "tool_call_id", "tool_call_id", missing=True)
    return ToolResult(call_id=call_id, name=_text(value, "name", "name", missing=True), parts=parts)


def reply(value: Any) -> tuple[Message, ...]:
    """The message of a `chat.completion` object, in the form in which it may be sent back."""
    value = dumped(value)
    choices = value.get("choices") if isinstance(value, dict) else None
    if not isinstance(choices, list):
        raise WireError("a reply must be an object with choices", field="choices")
    if not choices:
        return ()
    message = choices[0].get("message") if isinstance(choices[0], dict) else None
    if not isinstance(message, dict):
        raise WireError("a choice must hold a message", field="choices[0].message")
    said = parse(_sendable(message))
    at = value.get("created")
    meta = Meta(
        reply=_known(value, "id"),
        model=_known(value, "model"),
        stop=_known(choices[0], "finish_reason"),
        usage=chat_usage(value.get("usage")),
        at=float(at) if isinstance(at, (int, float)) else None,
    )
    return (replace(said, meta=meta),)


def _known(value: dict[str, Any], key: str) -> str:
    found = value.get(key)
    return found if isinstance(found, str) else ""


def _sendable(message: dict[str, Any]) -> dict[str, Any]:
    """A reply's message without what only replies have: nulls, citations, the sound itself, stream positions."""
    kept = {
        key: value
        for key, value in message.items()
        if key not in _ONLY_IN_REPLIES and (value is not None or key == "content")
    }
    audio, calls = kept.get("audio"), kept.get("tool_calls")
    if isinstance(audio, dict):
        kept["audio"] = {"id": audio.get("id")}
    if isinstance(calls, list):
        kept["tool_calls"] = [
            {key: value for key, value in call.items() if key != "index"} if isinstance(call, dict) else call
            for call in calls
        ]
    return kept


def render(message: Message, loss: Loss) -> list[Any]:
    """The elements for one message: its results first, each an element of its own, then what it says."""
    wire = message.wire
    own = wire is not None and wire.format == NAME
    if wire is not None and own and wire.exact:
        return [wire.value]
    base: dict[str, Any] = wire.value if wire is not None and own and isinstance(wire.value, dict) else {}
    answers = base.get("role") in ("tool", "function")
    results = message.results
    onto = base if answers and len(results) == 1 else {}
    made: list[Any] = [_render_result(result, onto, loss) for result in results]
    spoken = tuple(part for part in message.parts if not isinstance(part, ToolResult))
    if spoken or not results:
        said = _render_spoken(message, spoken, {} if answers else base, loss)
        made.extend([said] if said else [])
    return made


def _render_result(result: ToolResult, base: dict[str, Any], loss: Loss) -> dict[str, Any]:
    result = failed(result, loss)
    pieces = [piece for part in result.parts if (piece := _piece(part, "tool", loss)) is not None]
    if base.get("role") == "function" or (result.name and not result.call_id):
        text = "".join(part.text for part in result.parts if isinstance(part, Text))
        return _onto(base, {"role": "function", "name": result.name, "content": text})
    content = _content(pieces, base) if pieces else ""
    return _onto(base, {"role": "tool", "tool_call_id": result.call_id, "content": content})


def _render_spoken(
    message: Message, parts: tuple[Part, ...], base: dict[str, Any], loss: Loss
) -> dict[str, Any] | None:
    role = _role(message, base)
    content: list[Any] = []
    calls: list[Any] = []
    beside: dict[str, Any] = {}
    single = len(message.calls) == 1
    for part in parts:
        kept = _kept(part)
        if kept is not None and _is_aside(kept):
            beside.update(kept)
        elif isinstance(part, ToolCall) and not part.id and single:
            beside["function_call"] = {"name": part.name, "arguments": part.arguments}
        elif isinstance(part, ToolCall):
            calls.append(kept or _render_call(part, loss))
        elif kept is not None and isinstance(part, Opaque) and part.kind.startswith(_CALL):
            calls.append(kept)
        elif (piece := _piece(part, role, loss)) is not None:
            if calls and not base:
                loss.add("order", "text after a call moves before it")
            content.append(piece)
    if parts and not (content or calls or beside):
        return None
    fields: dict[str, Any] = {"role": role}
    if content or not (calls or beside) or "content" in base or not base:
        fields["content"] = _content(content, base) if content else (None if calls or beside else "")
    fields.update(beside)
    if calls:
        fields["tool_calls"] = calls
    return _onto(base, fields)


def _onto(base: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    """New fields in the places of the old, with every field that says nothing kept as it was."""
    return {**{key: value for key, value in base.items() if key in fields or key not in _SAID}, **fields}


def _role(message: Message, base: dict[str, Any]) -> str:
    role = base.get("role")
    if isinstance(role, str) and _ROLES.get(role, role) == message.role and not message.kind:
        return role
    return message.role if message.role in ("system", "assistant") and not message.kind else "user"


def _content(pieces: Sequence[Any], base: dict[str, Any]) -> Any:
    """Content as plain text where one piece is nothing but text and the original was no list."""
    only = pieces[0] if len(pieces) == 1 and not isinstance(base.get("content"), list) else None
    if isinstance(only, dict) and only.keys() == {"type", "text"}:
        return only["text"]
    return list(pieces)


def _piece(part: Part, role: str, loss: Loss) -> Any | None:
    """A part as a content part, or None with a report."""
    kept = _kept(part)
    if kept is not None:
        return kept
    if isinstance(part, Media):
        mapped = _media(part, role)
        if mapped is not None:
            return mapped
        part = left_out(part, loss, f"a {role} message of Chat Completions cannot hold it")
    if isinstance(part, Text):
        value = part.wire.value if part.wire is not None else None
        if role == "assistant" and isinstance(value, dict) and value.get("type") == "refusal":
            return {"type": "refusal", "refusal": part.text}
        return {"type": "text", "text": part.text}
    what = "thinking" if isinstance(part, Thinking) else f"opaque {getattr(part, 'kind', '')}"
    loss.add(what, "Chat Completions has no place for it")
    return None


def _media(media: Media, role: str) -> dict[str, Any] | None:
    if media.text:
        return {"type": "text", "text": media.text}
    if role != "user":
        return None
    if media.kind == "image" and (media.url or media.data):
        return {"type": "image_url", "image_url": {"url": media.url or data_url(media)}}
    if media.kind == "document" and media.data:
        return {"type": "file", "file": {"filename": document_name(media), "file_data": data_url(media)}}
    if media.kind == "audio" and media.data and media.mime in _SOUNDS:
        return {"type": "input_audio", "input_audio": {"data": media.data, "format": _SOUNDS[media.mime]}}
    return None


def _render_call(call: ToolCall, loss: Loss) -> dict[str, Any]:
    if call.kind == "custom_tool":
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": call.arguments}}
    arguments = call.arguments
    if call.kind != "function":
        loss.add(f"call {call.kind}", "Chat Completions knows only function and custom calls: sent as a function call")
        arguments = as_object(call)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _kept(part: Part) -> Any | None:
    """The part's own wire value, if it is of this format and the part still says the same."""
    wire = part.wire
    if wire is None or wire.format != NAME or not wire.exact:
        return None
    value = wire.value
    again: Sequence[Part]
    if _is_aside(value):
        again = (*_thinking(value), *_aside(value))
    elif isinstance(part, ToolCall) or (isinstance(part, Opaque) and part.kind.startswith(_CALL)):
        again = (_call(value, "tool_calls"),)
    else:
        again = (_content_part(value),)
    return value if part in again else None


def _is_aside(value: Any) -> bool:
    return isinstance(value, dict) and "type" not in value and any(key in value for key in _ASIDE)


CODEC = Codec(name=NAME, dialect=NAME, parse=parse, render=render, list_key="messages")
