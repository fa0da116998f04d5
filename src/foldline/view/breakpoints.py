"""Places the cache breakpoints (`cache_control` marks) of an Anthropic request.

Anthropic writes its cache only at a marked block, and looks for earlier cache entries only in the 20 blocks before a
mark. So three places are marked: the end of the system text, the end of the previous request (its entry is found even
if many blocks were added since), and the end of this request. The caller's own marks count towards the limit of four
and take precedence.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from foldline.wire.rendering import Rendered

LIMIT = 4
"""The largest number of marks in one request."""
MARK = {"type": "ephemeral"}
_UNMARKABLE = frozenset({"thinking", "redacted_thinking"})


def place(rendered: Rendered, most: int = LIMIT) -> Rendered:
    """The request with at most `most` marks; unchanged in formats other than Anthropic's."""
    if rendered.format != "anthropic":
        return rendered
    body = dict(rendered.body)
    room = min(most, LIMIT) - count(body)
    if room <= 0:
        return rendered
    messages = list(body.get("messages") or [])
    ends = [index for index in (len(messages) - 1, _previous_end(messages)) if index >= 0]
    for index in ends[:room]:
        content = messages[index].get("content")
        marked = _mark(content)
        if marked is not content:
            messages[index] = {**messages[index], "content": marked}
            room -= 1
    body["messages"] = messages
    if room > 0 and "system" in body:
        body["system"] = _mark(body["system"])
    return replace(rendered, body=body)


def count(body: dict[str, Any]) -> int:
    """Number of marks in a request body."""
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
    """Index of the last message of the previous request, which is the one before the newest reply; -1 if none."""
    index = len(messages) - 1
    while index >= 0 and messages[index].get("role") != "assistant":
        index -= 1
    while index >= 0 and messages[index].get("role") == "assistant":
        index -= 1
    return index


def _mark(content: Any) -> Any:
    """The content with a mark on its last block; the same object if that is marked already or cannot be."""
    if isinstance(content, str):
        return [{"type": "text", "text": content, "cache_control": MARK}] if content else content
    last = content[-1] if isinstance(content, list) and content else None
    if not isinstance(last, dict) or last.get("type") in _UNMARKABLE or last.get("cache_control") is not None:
        return content
    return [*content[:-1], {**last, "cache_control": MARK}]
