"""What assembling a streamed reply needs, whoever streamed it.

Each provider has its own events, but the same three questions: what has grown so far (`Growing`), has a call's JSON
come whole (`whole_object`), and what of a reply that broke off may be kept. Strings are kept as lists of pieces and
joined once, so that ten megabytes of small deltas cost ten megabytes of work.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foldline.errors import WireError
from foldline.json_text import loads

NOT_WHOLE = "the reply ended inside its input: it did not run"
"""Why a call is missing from a reply: what the caller has to be told about it."""


class PartialObject:
    """A JSON object some of whose strings still grow.

    >>> block = PartialObject({"type": "text", "text": "a"})
    >>> block.add("text", "b"); block.add("text", "c"); block.whole()
    {'type': 'text', 'text': 'abc'}
    """

    __slots__ = ("_pieces", "fields")

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.fields = dict(fields)
        self._pieces: dict[str, list[str]] = {}

    def add(self, key: str, piece: Any) -> None:
        """Append a piece to the string under `key`; what is no string has no effect."""
        if not isinstance(piece, str):
            return
        pieces = self._pieces.get(key)
        if pieces is None:
            start = self.fields.get(key)
            pieces = self._pieces[key] = [start] if isinstance(start, str) else []
            self.fields[key] = ""
        pieces.append(piece)

    def set(self, key: str, value: Any) -> None:
        """Replace what stands under `key`."""
        self._pieces.pop(key, None)
        self.fields[key] = value

    def merge(self, delta: Mapping[str, Any]) -> None:
        """Append every string and replace everything else: how a delta of an unknown kind is taken."""
        for key, piece in delta.items():
            if isinstance(piece, str):
                self.add(key, piece)
            elif piece is not None or key not in self.fields:
                self.set(key, piece)

    def whole(self) -> dict[str, Any]:
        """The object with every string joined."""
        return {**self.fields, **{key: "".join(pieces) for key, pieces in self._pieces.items()}}


def whole_object(text: Any) -> dict[str, Any] | None:
    """The JSON object that `text` is, or None: no part of an object's text is itself an object."""
    if not isinstance(text, str):
        return None
    try:
        value = loads(text)
    except WireError:
        return None
    return value if isinstance(value, dict) else None


def blank(text: Any) -> bool:
    """True for what says nothing: providers refuse a blank text."""
    return not isinstance(text, str) or not text.strip()
