"""The requests that Claude Code really sent, rebuilt from the `api-request` lines of its newest session files.

Each message of a request is stored once, in an `api-request-blob` line. The system prompt and the tools are stored
once, in an `api-request-shape` line. An `api-request` line names an earlier request (`base`). The new request begins
with the first `keep` messages of the earlier request. `tail` holds the hashes of the messages that follow. A hash is
the SHA-256 of compact JSON with sorted keys. A request is proven if each of its stored values has the hash that the
request names.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from foldline.wire.field_access import list_at, object_at, string_at
from foldline.wire.formats import JsonLine, SentRequest

LINE_TYPES = ("api-request", "api-request-shape", "api-request-blob")


@dataclass(frozen=True, slots=True)
class _Stored:
    """A stored value, and whether it has the hash under which it is stored."""

    value: Any
    is_proven: bool


class RequestLog:
    """Collects the lines about requests while a session file is read."""

    def __init__(self) -> None:
        self._blobs: dict[str, _Stored] = {}
        self._shapes: dict[str, _Stored] = {}
        self._requests: dict[str, tuple[_Stored, ...]] = {}
        self._last: SentRequest | None = None

    def watch(self, lines: Iterable[JsonLine]) -> Iterator[JsonLine]:
        """Yield all lines unchanged, and collect those about requests."""
        for line in lines:
            if isinstance(line.value, dict) and line.value.get("type") in LINE_TYPES:
                self._take(line.value)
            yield line

    def last(self) -> SentRequest | None:
        """The newest request that could be rebuilt; None if there is none."""
        return self._last

    def _take(self, line: Mapping[str, Any]) -> None:
        match line.get("type"):
            case "api-request-blob":
                self._blobs[string_at(line, "hash")] = _stored(line.get("message"), string_at(line, "hash"))
            case "api-request-shape":
                self._shapes[string_at(line, "shapeHash")] = _stored(line.get("shape"), string_at(line, "shapeHash"))
            case _:
                self._request(line)

    def _request(self, line: Mapping[str, Any]) -> None:
        change = _holder_of("tail", line)
        tail = change.get("tail")
        if not isinstance(tail, list):
            return
        kept = self._requests.get(string_at(change, "base"), ())
        keep = change.get("keep")
        found = [self._blobs.get(entry) if isinstance(entry, str) else _Stored(entry, True) for entry in tail]
        count = keep if type(keep) is int else 0
        if count > len(kept) or any(entry is None for entry in found):
            return
        messages = (*kept[:count], *(entry for entry in found if entry is not None))
        self._requests[string_at(line, "id")] = messages
        shape = self._shapes.get(string_at(_holder_of("shapeHash", line), "shapeHash"), _Stored({}, False))
        self._last = SentRequest(
            messages=tuple([entry.value for entry in messages if isinstance(entry.value, dict)]),
            system=shape.value.get("system") if isinstance(shape.value, dict) else None,
            tools=tuple(list_at(shape.value, "tools")),
            model=string_at(object_at(line, "params"), "model"),
            is_proven=shape.is_proven and all(entry.is_proven for entry in messages),
        )


def _holder_of(key: str, line: Mapping[str, Any]) -> Mapping[str, Any]:
    """The object that has this key: the line itself, or an object up to two levels inside it."""
    if key in line:
        return line
    inner = [value for value in line.values() if isinstance(value, dict)]
    deeper = [value for each in inner for value in each.values() if isinstance(value, dict)]
    return next((each for each in (*inner, *deeper) if key in each), {})


def _stored(value: Any, name: str) -> _Stored:
    return _Stored(value, bool(name) and content_hash(value).startswith(name))


def content_hash(value: Any) -> str:
    """The SHA-256 of a value as compact JSON with sorted keys, in hexadecimal.

    >>> content_hash({"b": 1, "a": "é"})[:12]
    'aa58fba84836'
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
