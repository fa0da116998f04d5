"""Assembles Chat Completions chunks into a Chat Completions reply.

OpenAI numbers its tool calls. Servers that imitate OpenAI may leave the number out, or give every call the number 0.
Such servers may also repeat ids and names in every chunk, or put the usage into another field. Gateways send `[DONE]`
even after they lost the connection to their upstream. So only a finish reason ends a reply.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from foldline.wire.field_access import list_at, object_at, string_at
from foldline.wire.formats import LossCollector
from foldline.wire.streaming.partial_object import INCOMPLETE_CALL, PartialObject, blank, whole_object

_ENDED_BY_MODEL = ("stop", "tool_calls", "function_call")
"""Finish reasons after which calls are complete, even if their arguments are not JSON."""
_NOT_OF_THE_REPLY = ("choices", "usage", "object", "obfuscation", "error")


class _PartialCallee(PartialObject):
    """A call's `function` or `custom`, a legacy call, or audio, put together from the pieces of a streamed message."""

    __slots__ = ("_first",)

    def __init__(self) -> None:
        super().__init__({})
        self._first: dict[str, Any] = {}

    def merge(self, delta: Mapping[str, Any]) -> None:
        """Process a piece. An id or a name that is sent again is not appended."""
        repeated = [key for key in ("id", "name") if delta.get(key) and delta[key] == self._first.get(key)]
        self._first = {**{key: delta[key] for key in ("id", "name") if delta.get(key)}, **self._first}
        super().merge({key: piece for key, piece in delta.items() if key not in repeated})


class _ChatCall:
    __slots__ = ("called", "fields", "index")

    def __init__(self, index: int) -> None:
        self.index = index
        self.fields: dict[str, Any] = {}
        self.called: dict[str, _PartialCallee] = {}

    def add(self, delta: dict[str, Any]) -> None:
        for key, value in delta.items():
            if key in ("function", "custom") and isinstance(value, dict):
                self.called.setdefault(key, _PartialCallee()).merge(value)
            elif key != "index" and value:
                self.fields.setdefault(key, value)

    def whole(self) -> dict[str, Any]:
        kind = "custom" if "custom" in self.called else "function"
        called = {key: part.whole() for key, part in self.called.items()}
        return {"id": "", "type": kind, **self.fields, **called}


class ChatStream:
    """Assembles the first choice from `chat.completion.chunk` values.

    If the server sends a complete `chat.completion` instead of chunks, its message is used unchanged.
    """

    def __init__(self) -> None:
        self.stop = ""
        self._begun = False
        self._head: dict[str, Any] = {}
        self._usage: dict[str, Any] | None = None
        self._message: dict[str, Any] | None = None
        self._said = PartialObject({"role": "assistant", "content": None})
        self._parts: list[Any] = []
        self._lists: dict[str, list[Any]] = {}
        self._objects: dict[str, _PartialCallee] = {}
        self._calls: list[_ChatCall] = []
        self._numbered: dict[int, _ChatCall] = {}
        self._named: dict[str, _ChatCall] = {}

    def take(self, value: dict[str, Any]) -> None:
        """Process one chunk."""
        choice = next((c for c in list_at(value, "choices") if isinstance(c, dict) and not c.get("index")), {})
        self._begun = self._begun or "choices" in value
        for place in (value, object_at(value, "x_groq"), choice):
            self._usage = object_at(place, "usage") or self._usage
        for key, field in value.items():
            if key not in self._head and key not in _NOT_OF_THE_REPLY and field not in (None, "", []):
                self._head[key] = field
        if isinstance(choice.get("message"), dict):
            self._message = choice["message"]
        self._add(object_at(choice, "delta"))
        self.stop = string_at(choice, "finish_reason") or self.stop

    def value(self, *, cut: bool, loss: LossCollector) -> dict[str, Any] | None:
        """The reply with its first choice. A call that was cut off is left out and added to `loss`."""
        if not self._begun:
            return None
        message = dict(self._message) if self._message is not None else self._grown()
        if cut or self.stop not in _ENDED_BY_MODEL:
            _drop_broken_calls(message, loss)
        if cut:
            message.pop("audio", None)
        has_content = message.get("tool_calls") or message.get("function_call") or not blank(message.get("refusal"))
        choices = [{"index": 0, "message": message, "finish_reason": self.stop or None}]
        content = message.get("content")
        if (cut or loss.items) and not (has_content or (content if isinstance(content, list) else not blank(content))):
            choices = []
        value = {"id": "", **self._head, "object": "chat.completion", "choices": choices}
        return value if self._usage is None else {**value, "usage": self._usage}

    def _add(self, delta: dict[str, Any]) -> None:
        for key, piece in delta.items():
            if key == "role":
                self._said.fields[key] = piece or "assistant"
            elif key == "tool_calls":
                for call in list_at(delta, key):
                    if isinstance(call, dict):
                        self._call(call).add(call)
            elif key == "content" and piece and (self._parts or isinstance(piece, list)):
                self._parts.extend(piece if isinstance(piece, list) else [{"type": "text", "text": piece}])
            elif isinstance(piece, list):
                self._lists.setdefault(key, []).extend(piece)
            elif isinstance(piece, dict):
                self._objects.setdefault(key, _PartialCallee()).merge(piece)
            else:
                self._said.merge({key: piece})

    def _call(self, delta: dict[str, Any]) -> _ChatCall:
        """The call that a delta belongs to.

        - A delta with an `index` belongs to the call with the same index. But some servers give every call the same
          index. So if the delta has a name and another id than the call with this index, it begins a new call.
        - A delta without an index, but with a known id, belongs to the call with this id.
        - Any other delta begins a new call if it has a name. If it has no name, it continues the last call.
        """
        index, named = delta.get("index"), delta.get("id") or None
        begins = bool(object_at(delta, "function").get("name") or object_at(delta, "custom").get("name"))
        call = self._calls[-1] if self._calls and not begins else None
        if isinstance(index, int):
            call = self._numbered.get(index)
            if call is not None and begins and named and call.fields.get("id", named) != named:
                call = None
        elif isinstance(named, str) and named in self._named:
            call = self._named[named]
        if call is None:
            call = _ChatCall(index if isinstance(index, int) else len(self._calls))
            self._calls.append(call)
            self._numbered[call.index] = call
        if isinstance(named, str):
            self._named.setdefault(named, call)
        return call

    def _grown(self) -> dict[str, Any]:
        message = self._said.whole()
        if self._parts:
            text = message["content"]
            before = [{"type": "text", "text": text}] if text else []
            message["content"] = _joined([*before, *self._parts])
        for key, entries in self._lists.items():
            message[key] = _merged(entries) if key == "reasoning_details" else entries
        for key, called in self._objects.items():
            message[key] = called.whole()
        if self._calls:
            message["tool_calls"] = [call.whole() for call in sorted(self._calls, key=lambda call: call.index)]
        return message


def _drop_broken_calls(message: dict[str, Any], loss: LossCollector) -> None:
    """Remove the calls with incomplete input from a reply that was cut off.

    A custom call always counts as incomplete, because its input is free text.
    """
    kept = []
    for call in list_at(message, "tool_calls"):
        called = object_at(call, "function")
        if _is_whole(called):
            kept.append(call)
        else:
            loss.add(f"tool call {string_at(called or object_at(call, 'custom'), 'name')}", INCOMPLETE_CALL)
    if kept:
        message["tool_calls"] = kept
    else:
        message.pop("tool_calls", None)
    legacy = object_at(message, "function_call")
    if legacy and not _is_whole(legacy):
        loss.add(f"tool call {string_at(legacy, 'name')}", INCOMPLETE_CALL)
        del message["function_call"]


def _is_whole(called: dict[str, Any]) -> bool:
    arguments = called.get("arguments")
    return isinstance(arguments, dict) or whole_object(arguments) is not None


def _joined(parts: list[Any]) -> list[Any]:
    """The content parts, with neighbouring text parts joined, and neighbouring thinking parts joined."""
    found: list[Any] = []
    for kind, run in groupby(parts, key=lambda part: part.get("type") if isinstance(part, dict) else None):
        if kind == "text":
            found.append({"type": "text", "text": "".join(string_at(part, "text") for part in run)})
        elif kind == "thinking":
            inner = [piece for part in run for piece in list_at(part, "thinking")]
            found.append({"type": "thinking", "thinking": _joined(inner)})
        else:
            found.extend(run)
    return found


def _merged(entries: list[Any]) -> list[Any]:
    """The reasoning entries, with the pieces of each entry joined. An entry is identified by its number and type."""
    found: dict[tuple[int, str], PartialObject] = {}
    for place, entry in enumerate(entries):
        if not isinstance(entry, dict):
            continue
        number = entry.get("index")
        number = number if isinstance(number, int) else -1 - place
        growing = found.setdefault((number, string_at(entry, "type")), PartialObject({}))
        for key, piece in entry.items():
            if key in ("text", "summary", "data"):
                growing.add(key, piece)
            elif piece is not None:
                growing.set(key, piece)
    return [growing.whole() for growing in found.values()]


def is_chat_chunk(value: Mapping[str, Any]) -> bool:
    """Whether a JSON value is a chunk of a Chat Completions stream."""
    if value.get("object") == "chat.completion.chunk":
        return True
    return any(isinstance(choice, Mapping) and "delta" in choice for choice in list_at(value, "choices"))
