"""The form in which the validator reads a request: turns that consist of blocks.

The validator must not share a mistake with the parser and renderer that it checks, so each format has a second, small
reader in its `grammar.py`. This second reader accepts any JSON value and never raises. An unexpected value becomes a
violation, and an unknown part becomes a block of kind "other".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that a request breaks: a code, the index of the element (-1 for the whole request), and a sentence."""

    code: str
    index: int
    message: str

    def __str__(self) -> str:
        place = f"message {self.index}: " if self.index >= 0 else ""
        return f"[{self.code}] {place}{self.message}"


class PlainBlock(NamedTuple):
    """One part of a message."""

    kind: str
    """One of: text, thinking, call, result, media, server-call, server-result, other."""
    at: int
    """Index of the element that holds the block."""
    id: str = ""
    name: str = ""
    text: str = ""
    signed: bool = True
    """False for thinking without its signature."""
    error: bool = False
    inner: tuple[PlainBlock, ...] = ()
    """The blocks inside a result."""
    size: int = 0
    """Number of characters of base64 data."""
    data: str = ""
    """The base64 data of an image."""
    caller: str = ""
    """The id of the server-side call that made this call."""


class PlainTurn(NamedTuple):
    """One element of the list, or several elements that count as one turn."""

    at: int
    """Index of the first element."""
    role: str
    """One of: system, user, assistant, tool."""
    blocks: list[PlainBlock]


@dataclass(slots=True)
class PlainRequest:
    """The content of a request, and the violations that were found while it was read."""

    turns: list[PlainTurn] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    breakpoints: list[tuple[int, str]] = field(default_factory=list)
    """Each cache breakpoint: the index of its element (-1 if it is outside the messages), and its time to live."""

    def refuse(self, code: str, index: int, message: str) -> None:
        """Add a violation."""
        self.violations.append(Violation(code, index, message))


def string(value: Any) -> str:
    """The value if it is text, otherwise ""."""
    return value if isinstance(value, str) else ""


def has_required_fields(
    block: Mapping[str, Any], known: Mapping[str, tuple[str, ...]], index: int, request: PlainRequest
) -> bool:
    """True for a block of a known type that has the fields its type requires; otherwise adds a violation."""
    kind = str(block.get("type"))
    if kind not in known:
        request.refuse("block-type", index, f"the type {kind[:80]!r} is not one of {', '.join(sorted(known))}")
        return False
    for name in known[kind]:
        if block.get(name) is None:
            request.refuse("shape", index, f"a block of type {kind} has no {name}")
            return False
    return True


def text_of(block: Mapping[str, Any], index: int, request: PlainRequest) -> str:
    """The text of a text block; if there is none, adds a violation and returns "?"."""
    text = block.get("text")
    if isinstance(text, str):
        return text
    request.refuse("shape", index, "a text block has no text")
    return "?"
