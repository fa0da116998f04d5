"""How big a message and a set of tools are on the wire.

A model does not see text alone: each message, part, call and result comes with words of the provider's own around it,
a picture is priced by its pixels, and thinking that is sealed has a size nobody can read. Counting only the text is
how budgets are missed by a factor, so every kind of part has an arm here, and what foldline does not know counts by
its serialised form, never as nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from foldline.measure.estimator import Counter
from foldline.measure.media_tokens import media_tokens
from foldline.message import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from foldline.models.table import MediaRule

_CAUTIOUS = MediaRule()


@dataclass(frozen=True, slots=True, kw_only=True)
class Framing:
    """What a provider adds around what is said, in tokens."""

    name: str
    message: int
    """Role and separators of one message."""
    part: int = 0
    """Around each part of a message."""
    call: int
    """Around one tool call, its id and name field included."""
    result: int
    """Around one tool result."""
    reply: int = 3
    """Once per request: the opening of the answer."""
    tools: int = 0
    """Once per request that has tools: the provider's own instructions for using them."""
    tool: int = 8
    """Around each tool definition."""
    media: MediaRule = _CAUTIOUS


TEXT_ONLY = Framing(name="none", message=0, call=0, result=0, reply=0, tool=0)
"""No tokens around anything: for the presets of other designs, which count text alone."""


def message_tokens(message: Message, counter: Counter, framing: Framing) -> int:
    """The size of one message with everything around it."""
    tokens = framing.message + framing.part * len(message.parts)
    for part in message.parts:
        if type(part) is Text and part.wire is None:
            tokens += counter.count(part.text).tokens  # the commonest part, without a further step
        else:
            tokens += part_tokens(part, counter, framing)
    return tokens


def part_tokens(part: Part, counter: Counter, framing: Framing) -> int:
    """The size of one part, without what stands around every part."""
    if isinstance(part, Text):
        tokens = counter.count(part.text).tokens
        return tokens + _notes(part, counter) if part.wire else tokens
    if isinstance(part, ToolCall):
        return framing.call + counter.count(part.name).tokens + counter.count(part.arguments).tokens
    if isinstance(part, ToolResult):
        tokens = framing.result
        for inner in part.parts:
            tokens += framing.part + part_tokens(inner, counter, framing)
        return tokens
    if isinstance(part, Thinking):
        return max(counter.count(part.text).tokens, sealed_tokens(len(part.signature)))
    if isinstance(part, Media):
        return media_tokens(part, framing.media) + counter.count(part.text).tokens
    return value_tokens(_said(part), counter)


def tools_tokens(tools: Iterable[Any], counter: Counter, framing: Framing) -> int:
    """The size of tool definitions as they stand on the wire."""
    sizes = [framing.tool + _tool_tokens(tool, counter) for tool in tools]
    return framing.tools + sum(sizes) if sizes else 0


def sealed_tokens(chars: int) -> int:
    """The size of encrypted reasoning, from the length of its base64.

    A cipher says how many bytes it hides, not how many tokens. The rule is the one Codex keeps its own budget by: three
    quarters of the characters, less an envelope of 650 bytes, four bytes a token; as text it would be several times
    that. Bounded, because no reply thinks for longer, and a large string may be a picture rather than a thought.
    """
    return min(max(1, (chars * 3 // 4 - 650) // 4), _SEALED_MOST) if chars else 0


def value_tokens(value: Any, counter: Counter) -> int:
    """The size of any JSON value: its serialised form, with sealed or binary strings by their own rule.

    It walks instead of serialising, so that neither depth nor a foreign object can raise.
    """
    pieces: list[str] = []
    sealed = 0
    stack = [value]
    seen = set[int]()
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if _is_sealed(item):
                sealed += sealed_tokens(len(item))
            else:
                pieces.append(json.dumps(item, ensure_ascii=False))
        elif isinstance(item, (dict, list, tuple)):
            if id(item) in seen:
                continue
            seen.add(id(item))
            pieces.append("{}")
            stack.extend(_inside(item))
        else:
            pieces.append(_plain(item))
    return counter.count(",".join(reversed(pieces))).tokens + sealed


def _inside(item: dict[Any, Any] | list[Any] | tuple[Any, ...]) -> Iterable[Any]:
    if isinstance(item, dict):
        return [side for pair in item.items() for side in pair]
    return item


def _plain(item: object) -> str:
    """A number, null or foreign object as text; one that cannot even be printed counts as its type's name."""
    try:
        return str(item)
    except Exception:  # noqa: BLE001 (a foreign object's own __str__ may raise anything, and a count must not)
        return type(item).__name__


_SEALED_FROM = 1_024
"""Shorter strings count as the text they are: an id or a hash is small anyway."""
_SEALED_MOST = 32_000
"""The most tokens one sealed string counts for."""


def _is_sealed(text: str) -> bool:
    """Whether a long string is base64 rather than words: its letters only, of every kind, in long lines if in any."""
    if len(text) < _SEALED_FROM or not text.isascii():
        return False
    if text.startswith("data:") and ";base64," in text[:200]:
        return True
    middle = len(text) // 2
    sample = text[:256] + text[middle : middle + 256] + text[-256:]
    if sample.translate(_BASE64) or 0 <= sample.find("\n") < _SHORTEST_LINE:
        return False
    return not sample.islower() and not sample.isupper() and any(map(str.isdigit, sample))


_BASE64 = dict.fromkeys(map(ord, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-\r\n"))
"""The letters of base64 in both spellings, each deleted by translation."""
_SHORTEST_LINE = 60
"""Base64 is wrapped at 64 or 76."""


def _said(part: Opaque) -> Any:
    """What an unknown part is on the wire."""
    if part.value is None and part.wire is not None:
        return part.wire.value
    return part.value if part.value is not None else part.kind


def _notes(part: Text, counter: Counter) -> int:
    """Citations and annotations that travel with a text."""
    value = part.wire.value if part.wire else None
    if not isinstance(value, dict):
        return 0
    notes = [value[key] for key in ("citations", "annotations") if value.get(key)]
    return value_tokens(notes, counter) if notes else 0


def _tool_tokens(tool: Any, counter: Counter) -> int:
    """One definition as compact JSON; what JSON cannot hold counts as any value does."""
    try:
        return counter.count(json.dumps(tool, ensure_ascii=False, separators=(",", ":"), default=_plain)).tokens
    except (TypeError, ValueError, RecursionError):
        return value_tokens(tool, counter)
