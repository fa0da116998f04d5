"""Assembles Anthropic's stream events into a Messages reply.

Every block whose input comes as `input_json_delta` is rebuilt, including server calls, MCP calls and unknown types. If
a stream breaks off inside a block, an incomplete text is kept. Any other incomplete block is dropped, because signed
thinking, calls and results are valid only when they are complete.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foldline.wire.field_access import list_at, object_at, string_at
from foldline.wire.formats import LossCollector
from foldline.wire.streaming.partial_object import INCOMPLETE_CALL, PartialObject, blank, whole_object

_THINKING = ("thinking", "redacted_thinking")
_ANSWERED_BY_SERVER = ("server_tool_use", "mcp_tool_use")
_GROWS = {"text_delta": "text", "thinking_delta": "thinking"}
_REPLACES = {"signature_delta": ("signature",), "compaction_delta": ("content", "encrypted_content")}


class _PartialBlock:
    """One content block: its start value, its deltas, and its input as JSON text."""

    __slots__ = ("body", "closed", "json")

    def __init__(self, value: dict[str, Any], *, closed: bool = False) -> None:
        self.body = PartialObject(value)
        self.json: list[str] = []
        self.closed = closed

    @property
    def type(self) -> str:
        return string_at(self.body.fields, "type")

    def add(self, delta: dict[str, Any]) -> None:
        kind = string_at(delta, "type")
        if kind == "input_json_delta":
            piece = delta.get("partial_json")
            self.json.append(piece if isinstance(piece, str) else "")
        elif kind == "citations_delta":
            self.body.fields["citations"] = citations = list_at(self.body.fields, "citations")
            citations.append(delta.get("citation"))
        elif kind in _GROWS:
            self.body.add(_GROWS[kind], delta.get(_GROWS[kind]))
        elif kind in _REPLACES:
            for key in _REPLACES[kind]:
                if key in delta:
                    self.body.set(key, delta[key])
        else:
            self.body.merge({key: piece for key, piece in delta.items() if key != "type"})

    def whole(self) -> dict[str, Any] | None:
        """The block; None if its input is incomplete."""
        value, text = self.body.whole(), "".join(self.json)
        if text:
            value["input"] = whole_object(text)
            if value["input"] is None:
                return None
        return value


class AnthropicStream:
    """Assembles the events from `message_start` to `message_stop`.

    If the server sends a complete message instead of events, the message is used unchanged.
    """

    def __init__(self) -> None:
        self.stop = ""
        self._message: dict[str, Any] = {}
        self._blocks: list[_PartialBlock] = []
        self._at: dict[Any, _PartialBlock] = {}

    def take(self, value: dict[str, Any]) -> None:
        """Process one event. `ping` and unknown events have no effect."""
        kind, block = value.get("type"), self._at.get(_index(value))
        if kind == "content_block_start":
            self._open(value)
        elif kind == "content_block_delta" and block is not None:
            block.add(object_at(value, "delta"))
        elif kind == "content_block_stop" and block is not None:
            block.closed = True
        elif kind == "message_start":
            self._start(object_at(value, "message"))
        elif kind == "message_delta":
            self._end(value)
        elif kind == "message":
            self._start(value)

    def value(self, *, cut: bool, loss: LossCollector) -> dict[str, Any] | None:
        """The reply. A call with incomplete input is left out and added to `loss`."""
        if not self._message and not self._blocks:
            return None
        content: list[dict[str, Any]] = []
        short = cut
        for block in self._blocks:
            whole = block.whole()
            if whole is None or (cut and not self._survives(block, whole)):
                is_call = block.json or "input" in block.body.fields
                name = f"{block.type} {string_at(block.body.fields, 'name')}".rstrip()
                loss.add(name, INCOMPLETE_CALL if is_call else "it is incomplete")
                short = True
            else:
                content.append(whole)
        if short:
            content = _sendable(content, loss)
        return {"type": "message", "role": "assistant", **self._message, "content": content}

    @staticmethod
    def _survives(block: _PartialBlock, whole: dict[str, Any]) -> bool:
        """True for a block that is kept if the stream breaks off.

        Text is always kept. Thinking is kept if it is signed. Any other block is kept if it is complete.
        """
        if block.type == "thinking":
            return bool(whole.get("signature"))
        return block.closed or block.type == "text"

    def _start(self, message: dict[str, Any]) -> None:
        self._message = dict(message)
        self._blocks = [
            _PartialBlock(block, closed=True) for block in list_at(message, "content") if isinstance(block, dict)
        ]
        self._at = dict(enumerate(self._blocks))
        self.stop = string_at(message, "stop_reason") or self.stop

    def _open(self, value: dict[str, Any]) -> None:
        block = _PartialBlock(object_at(value, "content_block"))
        self._blocks.append(block)
        self._at[_index(value)] = block
        served_by = object_at(block.body.fields, "to").get("model")
        if block.type == "fallback" and isinstance(served_by, str):
            self._message["model"] = served_by

    def _end(self, value: dict[str, Any]) -> None:
        """Process the stop reason and the usage.

        The usage is a running total, so it replaces the usage of `message_start`.
        """
        for source in (value, object_at(value, "delta")):
            for key, found in source.items():
                if key not in ("type", "delta", "usage") and (found is not None or key not in self._message):
                    self._message[key] = found
        known = {key: figure for key, figure in object_at(value, "usage").items() if figure is not None}
        self._message["usage"] = {**object_at(self._message, "usage"), **known}
        self.stop = string_at(self._message, "stop_reason") or self.stop


def _index(value: dict[str, Any]) -> int:
    index = value.get("index")
    return index if isinstance(index, int) else -1


def _sendable(content: list[dict[str, Any]], loss: LossCollector) -> list[dict[str, Any]]:
    """The blocks of an incomplete reply, without blocks that the API would refuse in a request.

    A server-side call needs its result, a text must not be blank, and no reply may end with thinking.
    """
    answered = {string_at(block, "tool_use_id") for block in content}
    kept: list[dict[str, Any]] = []
    for block in content:
        if block.get("type") in _ANSWERED_BY_SERVER and string_at(block, "id") not in answered:
            loss.add(
                f"{string_at(block, 'type')} {string_at(block, 'name')}",
                "the reply ended before the result of the call",
            )
        elif block.get("type") != "text" or not blank(block.get("text")):
            kept.append(block)
    while kept and kept[-1].get("type") in _THINKING:
        loss.add(string_at(kept.pop(), "type"), "nothing follows it")
    return kept


_EVENTS = frozenset(f"{what}_{part}" for what in ("message", "content_block") for part in ("start", "delta", "stop"))


def is_anthropic_event(value: Mapping[str, Any]) -> bool:
    """Whether a JSON value is an event of a Messages stream."""
    return string_at(value, "type") in _EVENTS or dict(value) == {"type": "ping"}
