"""JSON objects that arrive in pieces, for the stream assemblers of all formats.

Strings are kept as lists of pieces and joined once, so that the work is linear in the size of the stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foldline.errors import WireError
from foldline.json_text import loads

INCOMPLETE_CALL = "the reply ended inside the input of the call, so the call did not run"
"""The reason that is reported if a call is missing from a reply."""


class PartialObject:
    """A JSON object whose strings arrive in pieces.

    >>> block = PartialObject({"type": "text", "text": "a"})
    >>> block.add("text", "b"); block.add("text", "c"); block.whole()
    {'type': 'text', 'text': 'abc'}
    """

    __slots__ = ("_pieces", "fields")

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.fields = dict(fields)
        self._pieces: dict[str, list[str]] = {}

    def add(self, key: str, piece: Any) -> None:
        """Append a piece to the string under `key`; a piece that is not a string has no effect."""
        if not isinstance(piece, str):
            return
        pieces = self._pieces.get(key)
        if pieces is None:
            start = self.fields.get(key)
            pieces = self._pieces[key] = [start] if isinstance(start, str) else []
            self.fields[key] = ""
        pieces.append(piece)

    def set(self, key: str, value: Any) -> None:
        """Replace the value under `key`."""
        self._pieces.pop(key, None)
        self.fields[key] = value

    def merge(self, delta: Mapping[str, Any]) -> None:
        """Append the strings of a delta of unknown kind, and replace all other values."""
        for key, piece in delta.items():
            if isinstance(piece, str):
                self.add(key, piece)
            elif piece is not None or key not in self.fields:
                self.set(key, piece)

    def whole(self) -> dict[str, Any]:
        """The object with every string joined."""
        return {**self.fields, **{key: "".join(pieces) for key, pieces in self._pieces.items()}}


def whole_object(text: Any) -> dict[str, Any] | None:
    """The JSON object in `text`; None if the text is incomplete or is not a JSON object."""
    if not isinstance(text, str):
        return None
    try:
        value = loads(text)
    except WireError:
        return None
    return value if isinstance(value, dict) else None


def blank(text: Any) -> bool:
    """True for a text without a visible character, and for a value that is not text. Providers refuse such texts."""
    return not isinstance(text, str) or not text.strip()
