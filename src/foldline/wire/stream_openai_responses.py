"""Responses events become a Responses reply.

The last event carries the whole response, so it is used when it came. Not always is it whole: some backends leave its
`output` empty and send the items one by one only. When a stream broke off there is no last event at all, and the items
are what remains.
"""

from __future__ import annotations

from typing import Any

from foldline.wire.codec import Loss
from foldline.wire.pieces import NOT_WHOLE, Growing, blank, items, mapping, whole_object

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


class _Item:
    """One output item: as it was announced or finished, and what grew in between."""

    __slots__ = ("body", "done", "parts")

    def __init__(self, value: dict[str, Any], *, done: bool) -> None:
        self.body = Growing(value)
        self.done = done
        self.parts: dict[int, Growing] = {}
        if not done:
            self.parts = {
                at: Growing(part) for at, part in enumerate(items(value, "content")) if isinstance(part, dict)
            }

    def whole(self) -> dict[str, Any]:
        value = self.body.whole()
        if self.parts:
            value["content"] = [self.parts[at].whole() for at in sorted(self.parts)]
        return value


class ResponsesStream:
    """Assembles `response.created` to the last event; a whole `response` is taken as it is."""

    def __init__(self) -> None:
        self.stop = ""
        self._response: dict[str, Any] = {}
        self._items: dict[int, _Item] = {}

    def take(self, value: dict[str, Any]) -> None:
        """Take one event; what is only progress has no effect."""
        kind = str(value.get("type"))
        if kind in _GROWS:
            self._grow(_GROWS[kind], value)
        elif kind in ("response.output_item.added", "response.output_item.done"):
            item = mapping(value, "item")
            if item:
                self._items[_at(value, "output_index")] = _Item(item, done=kind.endswith("done"))
        elif kind == "response.content_part.added":
            item_now = self._items.get(_at(value, "output_index"))
            if item_now is not None and not item_now.done:
                item_now.parts[_at(value, "content_index")] = Growing(mapping(value, "part"))
        elif kind == "response.output_text.annotation.added":
            part = self._part("text", value)
            if part is not None:
                part.fields["annotations"] = found = items(part.fields, "annotations")
                found.append(value.get("annotation"))
        elif value.get("object") == "response":
            self._whole(value)
        elif isinstance(value.get("response"), dict):
            self._whole(value["response"], final=kind in _FINAL)

    def value(self, *, cut: bool, loss: Loss) -> dict[str, Any] | None:
        """The response; what a broken stream left unfinished is left out and reported, text excepted."""
        if not self._response and not self._items:
            return None
        output = (items(self._response, "output") if self.stop else []) or self._kept(cut=cut, loss=loss)
        if cut or self.stop != "completed":
            output = [item for item in output if _runs(item, loss)]
        if cut or loss.items:
            output = _sendable(output, loss)
        return {"object": "response", **self._response, "output": output}

    def _kept(self, *, cut: bool, loss: Loss) -> list[Any]:
        """The items that came one by one, in their order."""
        kept: list[Any] = []
        for at in sorted(self._items):
            item = self._items[at]
            whole = item.whole()
            if item.done or not cut:
                kept.append(whole)
            elif whole.get("type") == "message":
                kept.append({**whole, "status": "incomplete"})
            else:
                loss.add(_name(whole), NOT_WHOLE if whole.get("type") in _CALLS else "it is not whole")
        return kept

    def _whole(self, response: dict[str, Any], *, final: bool = True) -> None:
        self._response = response
        status = response.get("status")
        if not final or status in ("in_progress", "queued"):
            return
        reason = mapping(response, "incomplete_details").get("reason")
        self.stop = str(reason or status or "completed")

    def _grow(self, key: str, value: dict[str, Any]) -> None:
        if key in _PART_TYPES:
            part = self._part(key, value)
            if part is not None:
                part.add(key, value.get("delta"))
            return
        item = self._items.get(_at(value, "output_index"))
        if item is not None and not item.done:
            item.body.add(key, value.get("delta"))

    def _part(self, key: str, value: dict[str, Any]) -> Growing | None:
        """The content part a delta belongs to, made when it was not announced."""
        place = _at(value, "output_index")
        if place not in self._items:
            self._items[place] = _Item({"type": "message", "role": "assistant"}, done=False)
        item = self._items[place]
        if item.done:
            return None
        return item.parts.setdefault(_at(value, "content_index"), Growing({"type": _PART_TYPES[key]}))


def _at(value: dict[str, Any], key: str) -> int:
    at = value.get(key)
    return at if isinstance(at, int) else 0


def _name(item: Any) -> str:
    """What is lost, for people: its type, and which tool was called."""
    kind, name = mapping({"": item}, "").get("type"), mapping({"": item}, "").get("name")
    return f"{kind} {name}" if isinstance(name, str) else str(kind)


def _runs(item: Any, loss: Loss) -> bool:
    """False for a call that was cut short."""
    if not isinstance(item, dict) or item.get("type") not in _CALLS:
        return True
    whole = whole_object(item.get("arguments")) is not None if item["type"] == "function_call" else True
    if not whole or item.get("status") == "incomplete":
        loss.add(_name(item), NOT_WHOLE)
        return False
    return True


def _sendable(output: list[Any], loss: Loss) -> list[Any]:
    """What may stand in a request of a reply that broke off: no text that says nothing, no reasoning at its end."""
    kept = [item for item in output if isinstance(item, dict) and not _is_blank(item)]
    while kept and kept[-1].get("type") == "reasoning":
        kept.pop()
        loss.add("reasoning", "nothing follows it")
    return kept


def _is_blank(item: dict[str, Any]) -> bool:
    if item.get("type") != "message":
        return False
    texts = [part.get("text") or part.get("refusal") for part in items(item, "content") if isinstance(part, dict)]
    return all(blank(text) for text in texts)
