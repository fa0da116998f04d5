"""The form in which the validator reads a request: turns that consist of blocks.

The validator must not make the same mistakes as the parser and the renderer that it checks. So each format has a
second, small reader in its `grammar.py`. This second reader accepts any JSON value and never raises. An unexpected
value becomes a violation, and an unknown part becomes a block of kind "other".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from foldline.wire.object_fields import ObjectFields


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that a request breaks: a code, the index of the element (-1 for the whole request), and a sentence."""

    code: str
    index: int
    message: str

    def __str__(self) -> str:
        place = f"message {self.index}: " if self.index >= 0 else ""
        return f"[{self.code}] {place}{self.message}"


_OTHER_RULES = frozenset(
    ("text", "input", "arguments", "signature", "data", "call_id", "tool_call_id", "content", "output")
)
"""Required fields that a separate rule checks. If such a field is missing, the violation comes from that rule."""


class PlainBlock(NamedTuple):
    """One part of a message."""

    kind: str
    """One of: text, thinking, call, result, media, server-call, server-result, compaction, other."""
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
    mime: str = ""
    """The stated media type of an image."""
    url: str = ""
    """The address of an image."""
    caller: str = ""
    """The id of the server-side call that made this call."""


class PlainTurn(NamedTuple):
    """One element of the message list, or several elements that count as one turn."""

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


def check_block(
    block: Mapping[str, Any],
    known: Mapping[str, ObjectFields],
    index: int,
    request: PlainRequest,
    *,
    strict: bool = True,
) -> None:
    """Add violations for a block that has an unknown type, or fields that its type does not allow.

    Without `strict`, only the type and the required fields are checked.
    """
    kind = str(block.get("type"))
    if kind in known:
        check_fields(block, known[kind], f"a block of type {kind}", index, request, strict=strict)
    else:
        request.refuse("block-type", index, f"the type {kind[:80]!r} is not one of {', '.join(sorted(known))}")


def check_fields(  # noqa: PLR0913
    value: Mapping[str, Any], fields: ObjectFields, name: str, index: int, request: PlainRequest, *, strict: bool = True
) -> None:
    """Add a violation for a missing required field. With `strict`, also add a violation for each refused field.

    Required fields that a separate rule checks are skipped here.
    """
    missing = next((key for key in fields.required if key not in _OTHER_RULES and value.get(key) is None), None)
    if missing is not None and missing in fields.not_null:
        request.refuse("shape", index, f"{name} has no {missing}")
    for key in value if strict else ():
        if key not in fields.known:
            request.refuse("field", index, f"{name} has the unknown field {str(key)[:80]!r}")
        elif value[key] is None and key in fields.not_null and key not in fields.required:
            request.refuse("field", index, f"the field {key!r} of {name} is null")


def image_block(index: int, url: str, size: int) -> PlainBlock:
    """The block of an image that is given by its address or by a data URL."""
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:"):
        return PlainBlock("media", index, size=size, url=url)
    mime = head.removeprefix("data:").removesuffix(";base64")
    return PlainBlock("media", index, size=size, data=data, mime=mime)


def text_of(block: Mapping[str, Any], index: int, request: PlainRequest) -> str:
    """The text of a text block; if there is none, adds a violation and returns "?"."""
    text = block.get("text")
    if isinstance(text, str):
        return text
    request.refuse("shape", index, "a text block has no text")
    return "?"
