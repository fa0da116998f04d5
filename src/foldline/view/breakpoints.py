"""Places the cache breakpoints of a request.

Anthropic writes its cache only at a marked block, and finds an earlier mark only within 20 blocks before a new one.
So three places are marked: the end of what never changes (tools and system), the end of the previous request, where
the last mark was, so that it is found however many blocks were added since, and the end of this one. Marks the caller
made count towards the limit of four; ours give way.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from foldline.wire.rendering import Rendered

LIMIT = 4
"""Marks that one request may carry."""
MARK = {"type": "ephemeral"}
_UNMARKABLE = frozenset({"thinking", "redacted_thinking"})


def place(rendered: Rendered, most: int = LIMIT) -> Rendered:
    """The same request with marks, at most `most` of them. Only Anthropic's format has such marks."""
    if rendered.format != "anthropic":
        return rendered
    body = dict(rendered.body)
    room = min(most, LIMIT) - count(body)
    if room <= 0:
        return rendered
    messages = list(body.get("messages") or [])
    ends = [index for index in (len(messages) - 1, _previous_end(messages)) if index >= 0]
    for index in ends[:room]:
        marked = _mark_message(messages[index])
        if marked is not None:
            messages[index] = marked
            room -= 1
    body["messages"] = messages
    if room > 0 and "system" in body:
        body["system"] = _mark_system(body["system"])
    return replace(rendered, body=body)


def count(body: dict[str, Any]) -> int:
    """How many marks a request carries on the wire, wherever they stand."""
    found = int(body.get("cache_control") is not None)
    todo = [body.get("system"), body.get("tools"), body.get("messages")]
    while todo:
        value = todo.pop()
        if isinstance(value, list):
            todo.extend(value)
        elif isinstance(value, dict):
            found += value.get("cache_control") is not None
            todo.append(value.get("content"))
    return found


def _previous_end(messages: list[Any]) -> int:
    """The last element of the request before this one: the one in front of the newest reply. -1 when there is none."""
    index = len(messages) - 1
    while index >= 0 and messages[index].get("role") != "assistant":
        index -= 1
    while index >= 0 and messages[index].get("role") == "assistant":
        index -= 1
    return index


def _mark_message(message: dict[str, Any]) -> dict[str, Any] | None:
    """The message with a mark on its last block that can bear one; None when there is none or it is marked already."""
    content = message.get("content")
    if isinstance(content, str):
        return {**message, "content": [{"type": "text", "text": content, "cache_control": MARK}]} if content else None
    if not isinstance(content, list) or not content:
        return None
    last = content[-1]
    if not isinstance(last, dict) or last.get("type") in _UNMARKABLE or last.get("cache_control") is not None:
        return None
    return {**message, "content": [*content[:-1], {**last, "cache_control": MARK}]}


def _mark_system(system: Any) -> Any:
    if isinstance(system, str):
        return [{"type": "text", "text": system, "cache_control": MARK}] if system else system
    if isinstance(system, list) and system and isinstance(system[-1], dict) and "cache_control" not in system[-1]:
        return [*system[:-1], {**system[-1], "cache_control": MARK}]
    return system
