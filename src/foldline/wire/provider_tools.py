"""Reads the calls that a provider runs itself, and their results, as tool calls and tool results.

Examples are web search, code execution and MCP servers. In a request to the same provider, these parts are sent back
unchanged. Recall, digests and requests to other providers use only the readable content of these parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from foldline import json_text
from foldline.message import Message, Opaque, Part, Text, ToolCall, ToolResult

_RESULT = "_tool_result"
"""The types of Anthropic's result blocks end with this text."""
_ITEM_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "web_search_call": ("action",),
    "file_search_call": ("queries",),
    "code_interpreter_call": ("code",),
    "mcp_call": ("arguments",),
    "image_generation_call": ("revised_prompt",),
}
"""For each type of item in the Responses API, the fields that hold the arguments of the call."""
_ITEM_RESULTS = ("results", "outputs", "output", "error")
_CODE = "code_execution"
_UNREADABLE = frozenset(
    (
        *("type", "id", "tool_use_id", "file_id", "server_label", "status", "cache_control", "caller", "score"),
        *("encrypted_content", "encrypted_stdout", "encrypted_index", "signature", "page_age", "retrieved_at"),
        *("media_type", "is_file_update", "return_code", "citations", "attributes", "language", "outcome"),
    )
)
"""Fields that are left out of the readable content."""


def calls_and_results(part: Part) -> tuple[ToolCall | ToolResult, ...]:
    """The calls that the provider ran and the results of such calls, as one part holds them. Empty for any other part.

    >>> searched = Opaque(kind="web_search_call", value={"id": "ws_1", "action": {"query": "tides"}})
    >>> [type(each).__name__ for each in calls_and_results(searched)]
    ['ToolCall', 'ToolResult']
    """
    if not isinstance(part, Opaque) or not isinstance(part.value, Mapping):
        return ()
    value, kind = part.value, part.kind
    key = str(value.get("id") or value.get("tool_use_id") or "")
    if kind in ("server_tool_use", "mcp_tool_use"):
        return (ToolCall(id=key, name=str(value.get("name")), arguments=_arguments(value.get("input"))),)
    if kind.endswith(_RESULT):
        return (_result(key, kind.removesuffix(_RESULT), value.get("content"), is_error=_is_error(value)),)
    if kind in _ITEM_ARGUMENTS:
        name = str(value.get("name") or kind.removesuffix("_call"))
        held = {field: value[field] for field in _ITEM_ARGUMENTS[kind] if value.get(field)}
        call = ToolCall(id=key, name=name, arguments=_arguments(held.get("action", held.get("arguments", held))))
        shown = [value[field] for field in _ITEM_RESULTS if value.get(field)]
        return call, _result(key, name, shown, is_error=bool(value.get("error")))
    if kind == "executableCode":
        return (ToolCall(id=_CODE, name=_CODE, arguments=_arguments({"code": _inner(value, kind).get("code")})),)
    if kind == "codeExecutionResult":
        inner = _inner(value, kind)
        return (_result(_CODE, _CODE, inner, is_error=inner.get("outcome") not in (None, "OUTCOME_OK")),)
    return ()


def as_text(part: Part) -> str:
    """A readable text about a call that the provider ran, for requests to other providers; "" for any other part."""
    lines: list[str] = []
    for each in calls_and_results(part):
        if isinstance(each, ToolCall):
            lines.append(f"[{each.name} was run by the provider: {each.arguments}]")
        elif each.text:
            lines.append(f"[what {each.name} returned]\n{each.text}")
    return "\n".join(lines)


def with_readable_parts(message: Message) -> Message:
    """The message, in which the calls that the provider ran are tool calls and tool results."""
    if not any(isinstance(part, Opaque) for part in message.parts):
        return message
    return message.with_parts(*[each for part in message.parts for each in calls_and_results(part) or (part,)])


def _result(key: str, name: str, content: Any, *, is_error: bool = False) -> ToolResult:
    text = "\n".join(_lines(content))
    return ToolResult(call_id=key, name=name, parts=(Text(text=text),) if text else (), is_error=is_error)


def _is_error(value: Mapping[str, Any]) -> bool:
    content = _inner(value, "content")
    return bool(value.get("is_error") or content.get("error_code") or content.get("return_code"))


def _inner(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    held = value.get(key)
    return held if isinstance(held, Mapping) else {}


def _arguments(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        value = {key: each for key, each in value.items() if key not in _UNREADABLE}
    return json_text.dumps(value)


def _lines(value: Any) -> Iterator[str]:
    """The texts in a JSON value, in their order. Images and encrypted texts are left out."""
    if isinstance(value, str):
        if value.strip():
            yield value
    elif isinstance(value, Mapping):
        is_data = "data" in value and not str(value.get("media_type", "text/")).startswith("text/")
        for key, each in value.items():
            if key not in _UNREADABLE and not (is_data and key == "data"):
                yield from _lines(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _lines(each)
