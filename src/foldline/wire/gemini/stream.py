"""Assembles Gemini's `streamGenerateContent` chunks into a `generateContent` reply.

Each chunk is a reply with the next parts. Plain text pieces are joined; a part with a thought signature stays separate,
because the signature is valid only for that part. A function call usually comes in one chunk. Streamed arguments come
as pairs of a JSON path and a value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from foldline.wire.field_access import list_at, object_at, string_at
from foldline.wire.formats import LossCollector
from foldline.wire.streaming.partial_object import INCOMPLETE_CALL, PartialObject, blank

_STEP = re.compile(r"""\.([^.\[\]]+)|\['([^']*)'\]|\["([^"]*)"\]|\[(\d+)\]""")
_VALUES = ("numberValue", "boolValue", "nullValue")


class _GeminiCall:
    def __init__(self, part: dict[str, Any]) -> None:
        self.part = part
        self.open = True
        self._arguments: dict[str, Any] = {}

    def add(self, call: dict[str, Any]) -> None:
        """Process the next argument values of the call. If `willContinue` is missing or false, the call ends."""
        for piece in list_at(call, "partialArgs"):
            path = string_at(piece, "jsonPath")
            if isinstance(piece, dict) and isinstance(piece.get("stringValue"), str):
                pieces = self._arguments.setdefault(path, [])
                if isinstance(pieces, list):
                    pieces.append(piece["stringValue"])
            elif isinstance(piece, dict):
                key = next((key for key in _VALUES if key in piece), None)
                self._arguments[path] = piece[key] if key and key != "nullValue" else None
        self.open = bool(call.get("willContinue"))

    def whole(self) -> dict[str, Any]:
        fields = self.part["functionCall"].items()
        call = {key: value for key, value in fields if key not in ("partialArgs", "willContinue")}
        arguments = dict(object_at(call, "args"))
        for path, value in self._arguments.items():
            _put(arguments, path, "".join(value) if isinstance(value, list) else value)
        return {**self.part, "functionCall": {**call, "args": arguments}}


class GeminiStream:
    """Assembles the first candidate from the chunks. A complete reply is treated as a single chunk."""

    def __init__(self) -> None:
        self.stop = ""
        self._head: dict[str, Any] = {}
        self._candidate: dict[str, Any] = {}
        self._parts: list[dict[str, Any] | PartialObject | _GeminiCall] = []
        self._usage: dict[str, Any] = {}

    def take(self, value: dict[str, Any]) -> None:
        """Process one chunk. Code Assist puts the chunk into the field `response` of another object."""
        if "candidates" not in value and isinstance(value.get("response"), dict):
            value = value["response"]
        self._usage.update(object_at(value, "usageMetadata"))
        for key, field in value.items():
            if key not in ("candidates", "usageMetadata", "error") and field is not None:
                self._head[key] = field
        candidate = next((c for c in list_at(value, "candidates") if isinstance(c, dict) and not c.get("index")), {})
        for key, field in candidate.items():
            if key != "content" and field is not None:
                self._candidate[key] = field
        content = object_at(candidate, "content")
        self._candidate.setdefault("content", {"role": content.get("role") or "model"})
        for place, part in enumerate(list_at(content, "parts")):
            if isinstance(part, dict):
                self._add(part, continues=place == 0)
        stop = candidate.get("finishReason") or object_at(value, "promptFeedback").get("blockReason")
        if isinstance(stop, str):
            self.stop = stop

    def value(self, *, cut: bool, loss: LossCollector) -> dict[str, Any] | None:
        """The reply with its first candidate. An incomplete call is left out and added to `loss`."""
        if not self._head and not self._parts and not self._usage:
            return None
        parts: list[dict[str, Any]] = []
        for part in self._parts:
            if isinstance(part, _GeminiCall) and part.open:
                loss.add(f"functionCall {string_at(part.part['functionCall'], 'name')}", INCOMPLETE_CALL)
            else:
                parts.append(part if isinstance(part, dict) else part.whole())
        if cut or loss.items:
            parts = _sendable(parts, loss)
        content = {**self._candidate.get("content", {}), "parts": parts}
        candidates = [{**self._candidate, "content": content}] if parts else []
        return {**self._head, "candidates": candidates, "usageMetadata": self._usage}

    def _add(self, part: dict[str, Any], *, continues: bool) -> None:
        """Process one part. The first text of a chunk is appended to the last text of the previous chunk."""
        last = self._parts[-1] if self._parts else None
        call = object_at(part, "functionCall")
        if isinstance(last, _GeminiCall) and last.open and "functionCall" in part:
            last.add(call)
        elif call.get("willContinue") or "partialArgs" in call:
            streamed = _GeminiCall(part)
            streamed.add(call)
            self._parts.append(streamed)
        elif not isinstance(part.get("text"), str) or part.keys() - {"text", "thought"}:
            self._parts.append(part)
        elif (
            continues
            and isinstance(last, PartialObject)
            and bool(last.fields.get("thought")) == bool(part.get("thought"))
        ):
            last.add("text", part["text"])
        elif part["text"] or not continues:
            self._parts.append(PartialObject(part))


def _sendable(parts: list[dict[str, Any]], loss: LossCollector) -> list[dict[str, Any]]:
    """The parts of an incomplete reply, without blank texts and without thoughts at the end."""
    kept = [part for part in parts if part.keys() - {"text", "thought"} or not blank(part.get("text"))]
    while kept and kept[-1].get("thought"):
        kept.pop()
        loss.add("thought", "nothing follows it")
    return kept


def _put(target: Any, path: str, value: Any) -> None:
    """Set the value at a JSON path. A path that does not match the structure has no effect.

    >>> arguments = {}
    >>> _put(arguments, "$.places[0].name", "Ulm"); arguments
    {'places': [{'name': 'Ulm'}]}
    """
    steps: list[str | int] = [
        int(step[3]) if step[3] else step[0] or step[1] or step[2] for step in _STEP.findall(path)
    ]
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        made = value if following is None else [] if isinstance(following, int) else {}
        if isinstance(target, list) and isinstance(step, int) and step <= len(target):
            if step == len(target):
                target.append(made)
            elif following is None:
                target[step] = value
            target = target[step]
        elif isinstance(target, dict) and isinstance(step, str):
            if step not in target or following is None:
                target[step] = made
            target = target[step]
        else:
            return


def is_gemini_chunk(value: Mapping[str, Any]) -> bool:
    """Whether a JSON value is a chunk of a `streamGenerateContent` stream, or a whole reply."""
    return any(key in value for key in ("candidates", "usageMetadata", "promptFeedback"))
