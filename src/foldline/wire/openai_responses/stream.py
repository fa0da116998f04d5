"""Assembles Responses events into a Responses reply.

The last event holds the complete response. If a backend does not send this event, or sends it with an empty `output`,
the reply is assembled from the events of its items.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foldline.wire.field_access import list_at, object_at, string_at
from foldline.wire.formats import LossCollector
from foldline.wire.streaming.partial_object import INCOMPLETE_CALL, PartialObject, blank, whole_object

_FINAL = ("response.completed", "response.incomplete", "response.failed")
_CALLS = ("function_call", "custom_tool_call")
_GROWS = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "refusal",
    "response.function_call_arguments.delta": "arguments",
    "response.mcp_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "input",
}
_PART_TYPES = {"text": "output_text", "refusal": "refusal"}


class _PartialItem:
    """One output item: its final value, or its first value and the deltas that followed."""

    __slots__ = ("body", "done", "parts")

    def __init__(self, value: dict[str, Any], *, done: bool) -> None:
        self.body = PartialObject(value)
        self.done = done
        self.parts: dict[int, PartialObject] = {}
        if not done:
            self.parts = {
                at: PartialObject(part) for at, part in enumerate(list_at(value, "content")) if isinstance(part, dict)
            }

    def whole(self) -> dict[str, Any]:
        value = self.body.whole()
        if self.parts:
            value["content"] = [self.parts[at].whole() for at in sorted(self.parts)]
        return value


class ResponsesStream:
    """Assembles the events from `response.created` to the last event.

    If an event holds the complete response, its output is used unchanged.
    """

    def __init__(self) -> None:
        self.stop = ""
        self._response: dict[str, Any] = {}
        self._items: dict[int, _PartialItem] = {}
        self._named: dict[str, int] = {}

    def take(self, value: dict[str, Any]) -> None:
        """Process one event. Progress events have no effect."""
        kind = string_at(value, "type")
        if kind in _GROWS:
            self._grow(_GROWS[kind], value)
        elif kind in ("response.output_item.added", "response.output_item.done"):
            self._item(value, done=kind.endswith("done"))
        elif kind == "response.content_part.added":
            item = self._open_item(value)
            if item is not None:
                at = value.get("content_index")
                item.parts[at if isinstance(at, int) else len(item.parts)] = PartialObject(object_at(value, "part"))
        elif kind == "response.output_text.annotation.added":
            part = self._part("text", value)
            if part is not None:
                part.fields["annotations"] = found = list_at(part.fields, "annotations")
                found.append(value.get("annotation"))
        elif value.get("object") == "response":
            self._whole(value)
        elif isinstance(value.get("response"), dict):
            self._whole(value["response"], final=kind in _FINAL)

    def value(self, *, cut: bool, loss: LossCollector) -> dict[str, Any] | None:
        """The response. Incomplete items are left out and added to `loss`, but incomplete text is kept."""
        if not self._response and not self._items:
            return None
        output = (list_at(self._response, "output") if self.stop else []) or self._received_items(cut=cut, loss=loss)
        if cut or self.stop != "completed":
            output = [item for item in output if _is_complete_call(item, loss)]
        if cut or loss.items:
            output = _sendable(output, loss)
        return {"object": "response", **self._response, "output": output}

    def _received_items(self, *, cut: bool, loss: LossCollector) -> list[Any]:
        kept: list[Any] = []
        for at in sorted(self._items):
            item = self._items[at]
            whole = item.whole()
            if item.done or not cut:
                kept.append(whole)
            elif whole.get("type") == "message":
                kept.append({**whole, "status": "incomplete"})
            else:
                loss.add(_name(whole), INCOMPLETE_CALL if whole.get("type") in _CALLS else "it is incomplete")
        return kept

    def _whole(self, response: dict[str, Any], *, final: bool = True) -> None:
        self._response = response
        status = string_at(response, "status")
        if not final or status in ("in_progress", "queued"):
            return
        self.stop = string_at(object_at(response, "incomplete_details"), "reason") or status or "completed"

    def _item(self, value: dict[str, Any], *, done: bool) -> None:
        item = object_at(value, "item")
        if not item:
            return
        last = self._items.get(max(self._items, default=0))
        place = self._place(value, following=not done or last is None or last.done)
        self._items[place] = _PartialItem(item, done=done)
        if string_at(item, "id"):
            self._named.setdefault(item["id"], place)

    def _place(self, value: dict[str, Any], *, following: bool = False) -> int:
        """The index of an event's item.

        Most events name the number of their item. If there is no number (llama.cpp sends none), the item is found by
        its id. If the id is unknown too, the event belongs to a new item if `following` is true, else to the last item.
        """
        index = value.get("output_index")
        if isinstance(index, int):
            return index
        named = string_at(value, "item_id") or string_at(object_at(value, "item"), "id")
        return self._named.get(named, max(self._items, default=-1) + following)

    def _grow(self, key: str, value: dict[str, Any]) -> None:
        item = self._open_item(value)
        target = self._part(key, value) if key in _PART_TYPES else None if item is None else item.body
        if target is not None:
            target.add(key, value.get("delta"))

    def _open_item(self, value: dict[str, Any]) -> _PartialItem | None:
        item = self._items.get(self._place(value))
        return None if item is None or item.done else item

    def _part(self, key: str, value: dict[str, Any]) -> PartialObject | None:
        """The content part that a delta belongs to. If no event announced this part, it is created."""
        place = self._place(value)
        if place not in self._items:
            self._items[place] = _PartialItem({"type": "message", "role": "assistant"}, done=False)
        item = self._items[place]
        if item.done:
            return None
        at = value.get("content_index")
        at = at if isinstance(at, int) else max(item.parts, default=0)
        return item.parts.setdefault(at, PartialObject({"type": _PART_TYPES[key]}))


def _name(item: Any) -> str:
    """The name of an item in the report of lost content: its type and the called tool."""
    return f"{string_at(item, 'type')} {string_at(item, 'name')}".rstrip()


def _is_complete_call(item: Any, loss: LossCollector) -> bool:
    """False for a call that was cut off. Such a call is added to `loss`."""
    if not isinstance(item, dict) or item.get("type") not in _CALLS:
        return True
    whole = item["type"] != "function_call" or whole_object(item.get("arguments")) is not None
    if whole and item.get("status") != "incomplete":
        return True
    loss.add(_name(item), INCOMPLETE_CALL)
    return False


def _sendable(output: list[Any], loss: LossCollector) -> list[Any]:
    """The items of an incomplete reply, without blank texts and without reasoning at the end."""
    kept = [item for item in output if isinstance(item, dict) and not _is_blank(item)]
    while kept and kept[-1].get("type") == "reasoning":
        kept.pop()
        loss.add("reasoning", "nothing follows it")
    return kept


def _is_blank(item: dict[str, Any]) -> bool:
    if item.get("type") != "message":
        return False
    texts = [part.get("text") or part.get("refusal") for part in list_at(item, "content") if isinstance(part, dict)]
    return all(blank(text) for text in texts)


def is_responses_event(value: Mapping[str, Any]) -> bool:
    """Whether a JSON value is an event of a Responses stream."""
    return string_at(value, "type").startswith("response.")
