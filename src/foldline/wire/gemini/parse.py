"""Parses Gemini contents. A content is `{role, parts}`, and each part has one kind of data.

Any part may have a `thoughtSignature`. Gemini refuses a request in which a signature is missing, so each part keeps its
wire value. Keys are accepted in the API's camel case and in the Python SDK's snake case.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

from foldline.errors import WireError
from foldline.json_text import dumps
from foldline.message import Media, Message, Meta, Opaque, Part, Text, Thinking, ToolCall, ToolResult, Wire
from foldline.wire.field_access import pick, text_of
from foldline.wire.gemini.usage import gemini_usage

NAME = "gemini"

_ROLES = {"model": "assistant", "function": "tool"}
_SIDE_FIELDS = {"thought", "thoughtSignature", "thought_signature", "videoMetadata", "video_metadata", "partMetadata"}
"""Fields of a part that are not its data."""
_TEXT_KEYS = ("output", "result", "error")
"""If the only key of a response object is one of these keys, its value is the text of the result."""


def parse(value: Any, raw: str | None = None) -> Message:
    """The message for one content."""
    if not isinstance(value, Mapping):
        raise WireError("a content must be an object with role and parts")
    role = value.get("role")
    if role is not None and not isinstance(role, str):
        raise WireError('role must be a string such as "user"', field="role")
    parts = value.get("parts")
    if parts is not None and not isinstance(parts, (list, tuple)):
        raise WireError("parts must be a list", field="parts")
    name = role or "user"
    if any(isinstance(part, Mapping) and _holds_bytes(part) for part in parts or ()):
        parts = [_json_part(part) for part in parts or ()]
        value, raw = {**value, "parts": parts}, None
    return Message(
        role=_ROLES.get(name, name),
        parts=tuple(parse_part(part, f"parts[{index}]") for index, part in enumerate(parts or ())),
        wire=Wire(NAME, value, raw),
    )


def _holds_bytes(part: Mapping[str, Any]) -> bool:
    """True for a part whose signature or data is bytes instead of base64 text, as in a dump of the SDK."""
    return any(isinstance(value, bytes) for value in part.values()) or any(
        isinstance(data, Mapping) and isinstance(data.get("data"), bytes) for data in part.values()
    )


def _json_part(part: Any) -> Any:
    if isinstance(part, bytes):
        return _base64(part)
    return {key: _json_part(value) for key, value in part.items()} if isinstance(part, Mapping) else part


def parse_part(value: Any, field: str) -> Part:
    """The part for one wire part; `Opaque` if it is unknown or malformed."""
    wire = Wire(NAME, value)
    if isinstance(value, Mapping):
        for name, read in _READERS.items():
            found = pick(value, name)
            if not isinstance(found, str if name == "text" else Mapping):
                continue
            try:
                return read(found, value, wire)
            except WireError as error:
                raise WireError(error.reason, field=f"{field}.{name}", hint=error.hint) from None
        if signature := _signature(value):
            return Thinking(signature=signature, wire=wire)
    return Opaque(kind=_kind(value), value=value, wire=wire)


def _kind(value: Any) -> str:
    names = [key for key, found in value.items() if found is not None] if isinstance(value, Mapping) else []
    return str(next((name for name in names if name not in _SIDE_FIELDS), names[0] if names else "part"))


def _read_text(found: str, value: Mapping[str, Any], wire: Wire) -> Part:
    """A text or thinking part.

    An empty text with a signature becomes a thinking part, so that no repair removes it as blank.
    """
    signature = _signature(value)
    if pick(value, "thought") or (signature and not found):
        return Thinking(text=found, signature=signature, wire=wire)
    return Text(text=found, wire=wire)


def _read_call(found: Mapping[str, Any], _value: Mapping[str, Any], wire: Wire) -> Part:
    args = pick(found, "args")
    return ToolCall(
        id=text_of(pick(found, "id")),
        name=text_of(pick(found, "name")),
        arguments=dumps({} if args is None else args),
        wire=wire,
    )


def _read_result(found: Mapping[str, Any], _value: Mapping[str, Any], wire: Wire) -> Part:
    answer, is_error = _response_text(pick(found, "response"))
    media = pick(found, "parts")
    inner = [parse_part(part, f"parts[{index}]") for index, part in enumerate(media if isinstance(media, list) else ())]
    return ToolResult(
        call_id=text_of(pick(found, "id")),
        name=text_of(pick(found, "name")),
        parts=(Text(text=answer), *inner) if answer else tuple(inner),
        is_error=is_error,
        interim=pick(found, "willContinue") is True,
        wire=wire,
    )


def _response_text(response: Any) -> tuple[str, bool]:
    """The text of a response object, and whether the object reports an error.

    >>> _response_text({"output": "done"}), _response_text({"error": "no such file"})
    (('done', False), ('no such file', True))
    """
    if response is None or isinstance(response, str):
        return response or "", False
    if not isinstance(response, Mapping):
        return dumps(response), False
    is_error = bool(response.get("error"))
    if len(response) == 1:
        key, only = next(iter(response.items()))
        if key in _TEXT_KEYS and isinstance(only, str):
            return only, is_error
    return dumps(response), is_error


def _read_media(found: Mapping[str, Any], _value: Mapping[str, Any], wire: Wire) -> Part:
    mime, url = text_of(pick(found, "mimeType")), text_of(pick(found, "fileUri"))
    kind = mime.partition("/")[0].lower()
    kind = kind if kind in ("image", "audio", "video") else "document"
    return Media(kind=kind, mime=mime, data=_base64(pick(found, "data")), url=url, wire=wire)


_READERS: dict[str, Callable[[Any, Mapping[str, Any], Wire], Part]] = {
    "text": _read_text,
    "functionCall": _read_call,
    "functionResponse": _read_result,
    "inlineData": _read_media,
    "fileData": _read_media,
}


def _signature(value: Mapping[str, Any]) -> str:
    """The thought signature; the SDK's bytes become base64 text."""
    found = pick(value, "thoughtSignature")
    return _base64(found) if isinstance(found, bytes) else text_of(found)


def _base64(value: Any) -> str:
    """Base64 in the standard alphabet, made from the SDK's bytes or from URL-safe base64."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return text_of(value).replace("-", "+").replace("_", "/")


def parse_system(value: Any) -> Message:
    """The system message for a `systemInstruction`.

    The value is a content. Some SDKs also accept a text, a part, or a list of texts and parts.
    """
    wire = Wire(NAME, value)
    if isinstance(value, Mapping) and "parts" in value:
        return Message(role="system", parts=parse(value).parts, wire=wire)
    items = value if isinstance(value, list) else [value]
    if not all(isinstance(item, (str, Mapping)) for item in items):
        raise WireError("a system instruction must be a content or a text", field="systemInstruction")
    parts = (Text(text=item) if isinstance(item, str) else parse_part(item, "systemInstruction") for item in items)
    return Message(role="system", parts=tuple(parts), wire=wire)


def parse_reply(value: Any) -> tuple[Message, ...]:
    """The message for a `generateContent` reply, which may be a list of streamed chunks."""
    chunks = [chunk for chunk in (value if isinstance(value, list) else [value]) if isinstance(chunk, Mapping)]
    candidates = [found[0] for chunk in chunks if (found := pick(chunk, "candidates")) and isinstance(found, list)]
    contents = [found for each in candidates if isinstance(found := pick(each, "content"), Mapping)]
    if not contents:
        return ()
    content = contents[0]
    if len(contents) > 1 or content.get("role") is None:
        parts = [part for each in contents for part in parse(each).parts]
        values = [part.wire.value for part in parts if part.wire]
        content = {**content, "role": content.get("role") or "model", "parts": values}
    message = parse(content)
    meta = Meta(
        reply=_last_string(chunks, "responseId"),
        model=_last_string(chunks, "modelVersion"),
        stop=_last_string(candidates, "finishReason"),
        usage=next((used for each in reversed(chunks) if (used := gemini_usage(pick(each, "usageMetadata")))), None),
    )
    return (message.with_meta(meta),)


def _last_string(values: list[Any], name: str) -> str:
    return next((found for value in reversed(values) if (found := text_of(pick(value, name)))), "")
