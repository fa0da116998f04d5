"""Computes the size of messages and tool definitions on the wire, in tokens.

Every kind of part has its own rule. The provider adds tokens to each message, part, call and result. Images are
counted by their pixels. Encrypted thinking cannot be read, so its size is estimated. A part of an unknown kind is
counted in its serialised form.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any

from foldline.measure.estimator import Counter
from foldline.measure.media_tokens import media_tokens
from foldline.message import Media, Message, Part, Text, Thinking, ToolCall, ToolResult
from foldline.models.table import MediaRule

_CAUTIOUS = MediaRule()


@dataclass(frozen=True, slots=True, kw_only=True)
class Framing:
    """The tokens that a provider adds to the content of a request."""

    name: str
    message: int
    """Tokens of the role and the separators of one message."""
    part: int = 0
    """Tokens added to each part of a message."""
    call: int
    """Tokens of one tool call in addition to its name and arguments. This includes the tokens of the call id."""
    result: int
    """Tokens added to the content of one tool result."""
    reply: int = 3
    """Tokens for the start of the reply, once per request."""
    tools: int = 0
    """Tokens of the provider's instructions for using tools, once per request with tools."""
    tool: int = 8
    """Tokens added to each tool definition."""
    media: MediaRule = _CAUTIOUS
    unsent_thinking: frozenset[str] = frozenset()
    """Names of other formats. Thinking that was read in one of them is not sent, so it counts as 0 tokens."""


TEXT_ONLY = Framing(name="none", message=0, call=0, result=0, reply=0, tool=0)
"""A framing that adds no tokens. Presets that reproduce other systems use it, because these systems count only text."""


def message_tokens(message: Message, counter: Counter, framing: Framing) -> int:
    """The size of one message with its framing."""
    parts, count = message.parts, counter.count
    tokens = framing.message + framing.part * len(parts)
    for part in parts:
        # most parts are plain text, and are counted without a further function call
        if type(part) is Text and part.wire is None:
            tokens += count(part.text)[0]
        elif type(part) is ToolCall:
            tokens += framing.call + count(part.name)[0] + count(part.arguments)[0]
        elif type(part) is ToolResult:
            tokens += _result_tokens(part, counter, framing)
        else:
            tokens += part_tokens(part, counter, framing)
            if framing.unsent_thinking and len(parts) == 1 and _is_unsent(part, framing):
                return 0  # the whole message is not sent
    return tokens


def part_tokens(part: Part, counter: Counter, framing: Framing) -> int:
    """The size of one part, without the tokens that the provider adds to each part."""
    if isinstance(part, Text):
        tokens = counter.count(part.text).tokens
        return tokens + _citation_tokens(part, counter) if part.wire else tokens
    if isinstance(part, ToolCall):
        return framing.call + counter.count(part.name).tokens + counter.count(part.arguments).tokens
    if isinstance(part, ToolResult):
        return _result_tokens(part, counter, framing)
    if isinstance(part, Thinking):
        if _is_unsent(part, framing):
            return 0
        return max(counter.count(part.text).tokens, encrypted_tokens(len(part.signature)))
    if isinstance(part, Media):
        return media_tokens(part, framing.media) + counter.count(part.text).tokens
    if part.value is None:
        return value_tokens(part.wire.value if part.wire else part.kind, counter)
    return value_tokens(part.value, counter)


def _result_tokens(result: ToolResult, counter: Counter, framing: Framing) -> int:
    tokens = framing.result + framing.part * len(result.parts)
    for part in result.parts:
        if type(part) is Text and part.wire is None:
            tokens += counter.count(part.text)[0]
        else:
            tokens += part_tokens(part, counter, framing)
    return tokens


def _is_unsent(part: Part, framing: Framing) -> bool:
    """Whether the request leaves out a part, because the part is of type `Thinking` and has another wire format."""
    return type(part) is Thinking and part.wire is not None and part.wire.format in framing.unsent_thinking


def tools_tokens(tools: Iterable[Any], counter: Counter, framing: Framing) -> int:
    """The size of tool definitions on the wire."""
    sizes = [framing.tool + _tool_tokens(tool, counter) for tool in tools]
    return framing.tools + sum(sizes) if sizes else 0


def encrypted_tokens(chars: int) -> int:
    """The size of encrypted reasoning, computed from the length of its base64 text.

    This is the rule that Codex uses: three quarters of the characters, minus 650 bytes, divided by four bytes per
    token. The result has an upper limit, because no reply has more reasoning than the limit, and because a large string
    may be an image.
    """
    return min(max(1, (chars * 3 // 4 - 650) // 4), _MAX_ENCRYPTED_TOKENS) if chars else 0


def value_tokens(value: Any, counter: Counter) -> int:
    """The size of a JSON value in serialised form. Long base64 strings inside the value are counted with
    `encrypted_tokens`.

    The function walks the value instead of serialising it, so that deep nesting or an unknown object raises no error.
    """
    pieces: list[str] = []
    encrypted = 0
    stack = [value]
    visited = set[int]()
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if _is_base64(item):
                encrypted += encrypted_tokens(len(item))
            else:
                pieces.append(json.dumps(item, ensure_ascii=False))
        elif isinstance(item, (dict, list, tuple)):
            if id(item) in visited:
                continue
            visited.add(id(item))
            pieces.append("{}")
            stack.extend(chain.from_iterable(item.items()) if isinstance(item, dict) else item)
        else:
            pieces.append(_text_of_value(item))
    return counter.count(",".join(reversed(pieces))).tokens + encrypted


def _text_of_value(item: object) -> str:
    """A number, null or unknown object as text; the name of its type if it cannot be converted to text."""
    try:
        return str(item)
    except Exception:  # noqa: BLE001 (the `__str__` of a foreign object may raise anything, but a count must not)
        return type(item).__name__


_MIN_BASE64_CHARS = 1_024
"""Strings shorter than this count as text, even if they are base64 (an id, a hash)."""
_MAX_ENCRYPTED_TOKENS = 32_000
"""The largest number of tokens that is assumed for one encrypted string."""


def _is_base64(text: str) -> bool:
    """True for a long string of base64 characters with lower case, upper case and digits, and without short lines."""
    if len(text) < _MIN_BASE64_CHARS or not text.isascii():
        return False
    if text.startswith("data:") and ";base64," in text[:200]:
        return True
    middle = len(text) // 2
    sample = text[:256] + text[middle : middle + 256] + text[-256:]
    if sample.translate(_BASE64) or 0 <= sample.find("\n") < _SHORTEST_LINE:
        return False
    return not sample.islower() and not sample.isupper() and any(map(str.isdigit, sample))


_BASE64 = dict.fromkeys(map(ord, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-\r\n"))
"""A translation table that deletes the characters of both base64 alphabets."""
_SHORTEST_LINE = 60
"""If the first line of a string has fewer characters than this, the string is not base64.

Base64 text is wrapped at 64 or 76 characters.
"""


def _citation_tokens(part: Text, counter: Counter) -> int:
    value = part.wire.value if part.wire else None
    if not isinstance(value, dict):
        return 0
    citations = [value[key] for key in ("citations", "annotations") if value.get(key)]
    return value_tokens(citations, counter) if citations else 0


def _tool_tokens(tool: Any, counter: Counter) -> int:
    """The size of one tool definition as compact JSON.

    A definition that cannot be serialised is counted with `value_tokens`.
    """
    try:
        return counter.count(json.dumps(tool, ensure_ascii=False, separators=(",", ":"), default=_text_of_value)).tokens
    except (TypeError, ValueError, RecursionError):
        return value_tokens(tool, counter)
