"""Renders messages as Gemini contents.

If the content of a part is unchanged, the whole wire value of the part is written, because it may have a signature. All
results of a turn are written into one content, because Gemini compares their number with the number of calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foldline.message import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from foldline.wire.field_access import key_in, pick
from foldline.wire.formats import LossCollector, element_format
from foldline.wire.gemini.grammar import NO_SIGNATURE
from foldline.wire.gemini.parse import NAME, parse_part
from foldline.wire.part_mapping import arguments_value, media_placeholder
from foldline.wire.rendering import is_exact


def render(message: Message, loss: LossCollector) -> list[Any]:
    """The content for one message; an empty list if no part of the message can be written in this format."""
    wire = message.wire
    if wire is not None and is_exact(message, NAME):
        return [wire.value]
    parts = _render_parts(message.parts, loss)
    if not parts:
        return []
    if message.role == "system":
        loss.add("system role", "only the system instruction may have the role system: sent as a user message")
    if wire is not None and element_format(wire.format) == NAME and isinstance(wire.value, Mapping):
        return [{**wire.value, "parts": parts}]
    return [{"role": "model" if message.role == "assistant" else "user", "parts": parts}]


def render_system(messages: tuple[Message, ...], loss: LossCollector) -> Any:
    """The system instruction for the leading system messages; None if they hold no text."""
    first = messages[0].wire
    if len(messages) == 1 and first is not None and is_exact(messages[0], NAME):
        return first.value
    parts: list[Any] = []
    for index, message in enumerate(messages):
        loss.message = index
        texts = tuple(part for part in message.parts if isinstance(part, Text))
        if len(texts) < len(message.parts):
            loss.add("system", "a system instruction holds text only")
        parts.extend(_render_parts(texts, loss))
    return {"parts": parts} if parts else None


def _render_parts(parts: tuple[Part, ...], loss: LossCollector) -> list[Any]:
    written = [each for part in parts for each in _render_part(part, loss)]
    own = any(part.wire is not None and element_format(part.wire.format) == NAME for part in parts)
    first = next(
        (place for place, each in enumerate(written) if isinstance(each, dict) and "functionCall" in each), None
    )
    if first is not None and not own:
        written[first] = {**written[first], "thoughtSignature": NO_SIGNATURE}
    return written


_TYPES_OF_KINDS = {"image": "image/png", "document": "application/pdf"}
"""The media type that is assumed for media without a type, by the kind of media."""
_DOCUMENTS = frozenset(
    (
        *("application/pdf", "application/json", "application/rtf", "application/x-javascript"),
        *("application/x-typescript", "application/x-python-code", "application/x-ipynb+json"),
    )
)
"""The types of documents that Gemini reads, apart from texts (ai.google.dev, read in November 2026)."""


def _render_part(part: Part, loss: LossCollector, *, in_result: bool = False) -> list[Any]:
    """The wire parts for one part.

    An unchanged part keeps its original value. An edited part gets its original value with new fields.
    """
    base: Mapping[str, Any] = {}
    if part.wire is not None and element_format(part.wire.format) == NAME:
        if parse_part(part.wire.value, "part") == part:
            return [part.wire.value]
        base = part.wire.value if isinstance(part.wire.value, Mapping) else {}
    match part:
        case Text(text=text):
            return [{**base, "text": text}] if text else []
        case ToolCall():
            return [_render_call(part, base)]
        case ToolResult():
            return [_render_result(part, base, loss)]
        case Media():
            return [_render_media(part, loss, in_result=in_result)]
        case Thinking():
            loss.add("thinking", "only the model that wrote it can read it")
        case Opaque(kind=kind):
            loss.add(f"opaque {kind}", "unknown to Gemini")
    return []


def _render_call(part: ToolCall, base: Mapping[str, Any]) -> dict[str, Any]:
    key = key_in(base, "functionCall")
    call = {**base.get(key, {}), "name": part.name, "args": arguments_value(part)}
    return {**base, key: _with_id(call, part.id)}


def _render_result(part: ToolResult, base: Mapping[str, Any], loss: LossCollector) -> dict[str, Any]:
    key = key_in(base, "functionResponse")
    name = part.name or loss.names.get(part.call_id) or part.call_id or "unknown"
    response: dict[str, Any] = {**base.get(key, {}), "name": name}
    inner = [each for value in part.parts for each in _render_part(value, loss, in_result=True)]
    texts = [each["text"] for each in inner if "text" in each]
    response["response"] = {"error" if part.is_error else "output": "\n".join(texts)}
    response.pop("parts", None)
    if media := [each for each in inner if "text" not in each]:
        response["parts"] = media
    if part.interim and not base:
        response["willContinue"] = True
    return {**base, key: _with_id(response, part.call_id)}


def _with_id(held: dict[str, Any], name: str) -> dict[str, Any]:
    kept = {key: value for key, value in held.items() if key != "id"}
    return {"id": name, **kept} if name else kept


def _render_media(part: Media, loss: LossCollector, *, in_result: bool) -> dict[str, Any]:
    mime = part.mime or _TYPES_OF_KINDS.get(part.kind, "")
    if part.data and (mime in _DOCUMENTS or mime.startswith(("image/", "audio/", "video/", "text/"))):
        return {"inlineData": {"mimeType": mime, "data": part.data}}
    if part.data:
        return {"text": media_placeholder(part, loss, "Gemini cannot read media of this type").text}
    if part.url and not in_result:
        return {"fileData": {"mimeType": part.mime, "fileUri": part.url} if part.mime else {"fileUri": part.url}}
    if part.text:
        return {"text": part.text}
    why = "in a result, Gemini accepts media only as data" if part.url else "neither data nor an address"
    return {"text": media_placeholder(part, loss, why).text}


def join(left: Any, right: Any) -> Any | None:
    """One content that replaces two contents with results; None if the two must stay separate.

    Gemini compares the number of results in a content with the number of calls, so results must not be split.
    """
    parts = [*left["parts"], *right["parts"]]
    only_results = all(pick(part, "functionResponse") is not None for part in parts)
    return {**left, "parts": parts} if only_results and "model" not in (left.get("role"), right.get("role")) else None


def join_turns(contents: list[Any]) -> list[Any]:
    """The contents, with consecutive contents of one role merged. Some versions of Gemini demand that roles alternate.

    >>> join_turns([{"role": "user", "parts": [{"text": "a"}]}, {"role": "user", "parts": [{"text": "b"}]}])
    [{'role': 'user', 'parts': [{'text': 'a'}, {'text': 'b'}]}]
    """
    joined: list[Any] = []
    for content in contents:
        last = joined[-1] if joined else None
        if last is not None and (last.get("role") == "model") == (content.get("role") == "model"):
            joined[-1] = {**last, "parts": [*(last.get("parts") or ()), *(content.get("parts") or ())]}
        else:
            joined.append(content)
    return joined
