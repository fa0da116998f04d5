"""Places the cache breakpoints (`cache_control` marks) of an Anthropic request.

Anthropic writes its cache only at a marked block, and looks for earlier cache entries only in the 20 blocks before a
mark. So three places are marked: the end of the system text, the end of the previous request, and the end of this
request. With the second mark, the cache entry of the previous request is found even if many blocks were added since
then.

A request may have at most four marks. Anthropic demands that marks for one hour come before marks for five minutes. So
the marks of the caller and foldline's own marks follow these rules:

- The marks of the caller are kept, and foldline adds marks only up to the limit of four.
- If the caller set more than four marks, the last four are kept.
- If a one-hour mark of the caller comes after a five-minute mark, it becomes a five-minute mark.
- Automatic caching (`cache_control` of the request) is one more mark, at the end of the request. If it is for one hour,
  all other marks become one-hour marks.
- foldline adds five-minute marks. Before a one-hour mark of the caller, foldline adds one-hour marks, because the
  tokens before a one-hour mark are written for an hour anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from foldline.wire.rendering import Rendered

LIMIT = 4
"""The largest number of marks in one request."""
MARK = {"type": "ephemeral"}
_HOUR = "1h"
_UNMARKABLE = frozenset({"thinking", "redacted_thinking"})
_REQUEST_ORDER = ("tools", "system", "messages")
"""The fields that hold marks, in the order in which the provider reads them."""

BlockPath = tuple[str | int, ...]
"""The keys and indexes that lead from the request body to a block."""


def place(rendered: Rendered, most: int = LIMIT, tools: Sequence[Any] = ()) -> Rendered:
    """The request with added marks, up to `most` marks in total.

    The caller's legal marks stay. A request in another format than Anthropic's is returned unchanged.
    """
    if rendered.format != "anthropic":
        return rendered
    marks = [tool["cache_control"] for tool in tools if isinstance(tool, dict) and tool.get("cache_control")]
    body = with_legal_marks(_without_marked_thinking(rendered.body), marks)
    room = min(most, LIMIT) - count(body) - len(marks)
    if room > 0:
        body = _with_new_marks(body, room)
    return rendered if body is rendered.body else replace(rendered, body=body)


def count(body: dict[str, Any]) -> int:
    """Number of marks in a request body."""
    return sum(1 for _ in _marked_blocks(body)) + _automatic(body)


def _automatic(body: dict[str, Any]) -> int:
    """1 if the request asks for automatic caching, else 0. Automatic caching counts as one mark."""
    return int(body.get("cache_control") is not None)


def _marked_blocks(body: dict[str, Any]) -> Iterator[tuple[BlockPath, dict[str, Any]]]:
    """The marked blocks in the order in which the provider reads them, each with its path in the body."""
    todo: list[tuple[BlockPath, Any]] = [((key,), body.get(key)) for key in reversed(_REQUEST_ORDER)]
    while todo:
        path, value = todo.pop()
        if isinstance(value, list):
            todo.extend(((*path, index), value[index]) for index in range(len(value) - 1, -1, -1))
        elif isinstance(value, dict):
            if value.get("cache_control") is not None:
                yield path, value
            content = value.get("content")
            if isinstance(content, list):
                todo.append(((*path, "content"), content))


def _without_marked_thinking(body: dict[str, Any]) -> dict[str, Any]:
    """The body without marks on thinking, because the provider refuses such marks."""
    for path, block in list(_marked_blocks(body)):
        if block.get("type") in _UNMARKABLE:
            body = _with_mark(body, path, None)
    return body


def with_legal_marks(body: dict[str, Any], tool_marks: Sequence[Any] = ()) -> dict[str, Any]:
    """The body with at most four marks, and without a one-hour mark after a five-minute mark.

    If the request asks for automatic caching, a mark on the last block gets the lifetime of the automatic caching.

    `tool_marks` are the marks on tools. They come first in the request, and they count towards the limit.
    """
    found = list(_marked_blocks(body))
    surplus = len(tool_marks) + len(found) + _automatic(body) - LIMIT
    for path, _ in found[: max(0, surplus)]:
        body = _with_mark(body, path, None)
    automatic = body.get("cache_control")
    if _is_hour(automatic):
        for path, block in found[max(0, surplus) :]:
            body = body if _is_hour(block["cache_control"]) else _with_mark(body, path, {**MARK, "ttl": _HOUR})
        return body
    is_short = any(not _is_hour(mark) for mark in tool_marks)
    for path, block in found[max(0, surplus) :]:
        if not _is_hour(block["cache_control"]):
            is_short = True
        elif is_short or (automatic is not None and _is_last(body, path)):
            body = _with_mark(body, path, MARK)
    return body


def _is_last(body: dict[str, Any], path: BlockPath) -> bool:
    """Whether the block at a path is the last block of the last message."""
    messages = body.get("messages") or [{}]
    content = messages[-1].get("content") or ()
    return path == ("messages", len(messages) - 1, "content", len(content) - 1)


def _with_new_marks(body: dict[str, Any], room: int) -> dict[str, Any]:
    """The body with up to `room` more marks."""
    messages = body.get("messages") or []
    hours = [path for path, block in _marked_blocks(body) if _is_hour(block["cache_control"])]
    last_hour = _rank(hours[-1]) if hours else ()
    automatic = body.get("cache_control")
    ends = [index for index in (len(messages) - 1, _previous_end(messages)) if index >= 0]
    places: list[BlockPath] = [*(("messages", index, "content") for index in ends), ("system",)]
    for path in places:
        holder = _value_at(body, path)
        is_before_hour = (*_rank(path), len(holder or ())) < last_hour  # the mark is on the last block
        marked = _marked(holder, hour=_is_hour(automatic) or is_before_hour)
        if room > 0 and marked is not holder:
            body = _with_value(body, path, marked)
            room -= 1
    return body


def _rank(path: BlockPath) -> tuple[int, ...]:
    """A sort key that puts paths into the order in which the provider reads a body."""
    field, *rest = path
    return _REQUEST_ORDER.index(str(field)), *(key if isinstance(key, int) else 0 for key in rest)


def _is_hour(mark: Any) -> bool:
    return isinstance(mark, dict) and mark.get("ttl") == _HOUR


def _previous_end(messages: list[Any]) -> int:
    """Index of the last message of the previous request (the message before the newest reply); -1 if there is none."""
    index = len(messages) - 1
    while index >= 0 and messages[index].get("role") != "assistant":
        index -= 1
    while index >= 0 and messages[index].get("role") == "assistant":
        index -= 1
    return index


def _marked(content: Any, *, hour: bool) -> Any:
    """The content with a mark on its last block.

    Returns the same object if that block already has a mark or cannot have one.
    """
    mark = {**MARK, "ttl": _HOUR} if hour else MARK
    if isinstance(content, str):
        return [{"type": "text", "text": content, "cache_control": mark}] if content else content
    last = content[-1] if isinstance(content, list) and content else None
    if not isinstance(last, dict) or last.get("type") in _UNMARKABLE or last.get("cache_control") is not None:
        return content
    return [*content[:-1], {**last, "cache_control": mark}]


def _with_mark(body: dict[str, Any], path: BlockPath, mark: dict[str, str] | None) -> dict[str, Any]:
    """A copy of the body in which the block at `path` has this mark, or no mark if `mark` is None."""
    block = _value_at(body, path)
    bare = {key: value for key, value in block.items() if key != "cache_control"}
    return _with_value(body, path, bare if mark is None else {**bare, "cache_control": mark})


def _value_at(body: dict[str, Any], path: BlockPath) -> Any:
    """The value at a path; None if the last key of the path is missing."""
    value: Any = body
    for key in path:
        value = value.get(key) if isinstance(value, dict) else value[key]
    return value


def _with_value(body: dict[str, Any], path: BlockPath, value: Any) -> dict[str, Any]:
    """A copy of the body with `value` at `path`. All other values are shared with the original."""
    copied: dict[str, Any] = dict(body)
    holder: Any = copied
    for key in path[:-1]:
        holder[key] = holder[key].copy()
        holder = holder[key]
    holder[path[-1]] = value
    return copied
