"""A request as the validator sees it: turns of blocks, read without the format's parser.

The validator must not share a mistake with the parser and renderer that it checks, so each format has a second, small
reader in its `grammar.py`. It takes any JSON value and never raises: an unexpected value becomes a violation,
an unknown part a block of kind "other".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that a request breaks: its code, the index of the element (-1: the request), and a sentence."""

    code: str
    index: int
    message: str

    def __str__(self) -> str:
        place = f"message {self.index}: " if self.index >= 0 else ""
        return f"[{self.code}] {place}{self.message}"


class PlainBlock(NamedTuple):
    """One part of a message."""

    kind: str
    """text, thinking, call, result, media, server-call, server-result, other"""
    at: int
    """Index of the element that holds it."""
    id: str = ""
    name: str = ""
    text: str = ""
    signed: bool = True
    """False for thinking without its signature."""
    error: bool = False
    inner: tuple[PlainBlock, ...] = ()
    """Blocks of a result."""
    size: int = 0
    """Characters of base64 data."""


class PlainTurn(NamedTuple):
    """One element of the list, or several that count as one."""

    at: int
    """Index of the first element."""
    role: str
    """system, user, assistant or tool"""
    blocks: list[PlainBlock]


@dataclass(slots=True)
class PlainRequest:
    """What a reader found in a request."""

    turns: list[PlainTurn] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    breakpoints: list[int] = field(default_factory=list)
    """Index of the element of each cache breakpoint; -1 outside the messages."""

    def refuse(self, code: str, index: int, message: str) -> None:
        """Add a violation."""
        self.violations.append(Violation(code, index, message))


def string(value: Any) -> str:
    """The value if it is text, otherwise ""."""
    return value if isinstance(value, str) else ""


def text_of(block: Mapping[str, Any], index: int, request: PlainRequest) -> str:
    """Text of a text block; a violation when it has none."""
    text = block.get("text")
    if isinstance(text, str):
        return text
    request.refuse("shape", index, "a text block has no text")
    return "?"
