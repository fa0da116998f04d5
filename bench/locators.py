"""Locators: the names and values that an agent must know exactly to make a call. This module finds them in calls and
texts.

Locators are taken from the arguments of calls by their form; arguments that are content are left out. A locator is
visible in a text if the text contains it. A locator is in context if the text also contains at least three neighbouring
words from a line in which the locator occurred. If the line has fewer words, the text must contain the whole line.
Digests are measured with these functions, so this module shares no code with the digest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from foldline.message import Message, Text, ToolCall, ToolResult

BULK = frozenset(
    {
        *("old_string", "new_string", "oldText", "newText", "old_str", "new_str", "content", "file_text", "edits"),
        *("todos", "prompt", "plan", "description", "text", "patch", "replace", "search", "message", "body"),
    }
)
"""Names of arguments that are content. An agent need not know anything in them before the call."""
OLD = ("old_string", "oldText", "old_str", "search")
"""Names of arguments with the text that an edit replaces."""
WORDS = 3
"""Number of other words that a locator in context needs beside it."""
EDIT_LINE = 20
"""Minimum length of a replaced line that is checked, in characters."""

_SHAPES = re.compile(
    r"(?P<path>[\w.@~-]*/[\w./@~+-]*[\w])"
    r"|(?P<file>(?<![.\w@])\w[\w.-]*\.(?:[a-z]{1,2}|[cm]?[jt]sx?|json[l5]?|toml|ya?ml|html?|s?css|sql|txt|log|xml|csv"
    r"|cpp|hpp|proto|ipynb|lock|java|swift|vue|mdx?)\b(?![\w(]))"
    r"|(?P<id>\b[A-Z]{2,8}-\d+\b)"
    r"|(?P<word>\b[A-Za-z_]\w{5,}\b)"
    r"|(?P<other>\b[0-9][0-9A-Za-z]{4,39}\b)"
)
_CAMEL = re.compile(r"[a-z0-9][A-Z]")
_HEX = re.compile(r"(?=.*\d)(?=.*[a-f])[0-9a-f]{7,40}", re.IGNORECASE)
_CODE = re.compile(r"(?=.*\d)(?=.*[A-Z])[0-9A-Z]{6}")


def locators(call: ToolCall) -> set[str]:
    """The locators of a call."""
    return {found for value in _values(_arguments(call)) for found in _in(value)}


def _arguments(call: ToolCall) -> Any:
    try:
        value = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return [line for line in call.arguments.split("\n") if line.startswith("*** ")]
    return {key: item for key, item in value.items() if key not in BULK} if isinstance(value, dict) else value


def _values(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _values(item)


def _in(text: str) -> Iterator[str]:
    for found in _SHAPES.finditer(text):
        word = found[0]
        if found["path"]:
            base = word.rstrip("/").rsplit("/", 1)[-1]
            if len(base) >= 5 and not base.isdecimal():
                yield base
        elif found["file"]:
            if len(word) >= 5:
                yield word
        elif found["id"]:
            if len(word) >= 6:
                yield word
        elif found["word"]:
            if _CAMEL.search(word) or "_" in word.strip("_") or _HEX.fullmatch(word) or _CODE.fullmatch(word):
                yield word
        elif word.isdecimal() or _HEX.fullmatch(word) or _CODE.fullmatch(word):
            yield word


def visible_text(messages: Iterable[Message]) -> str:
    """The text of messages as a model reads it, without reasoning. Each value of a call has lines of its own."""
    return "\n".join(piece for message in messages if message.role != "system" for piece in pieces(message))


def said_text(messages: Iterable[Message]) -> str:
    """The visible text, without messages that are marked as hidden. Like the system prompt, they are not
    conversation.
    """
    return visible_text(message for message in messages if not message.meta.hidden)


def pieces(message: Message) -> Iterator[str]:
    """The texts of one message."""
    for part in message.parts:
        if isinstance(part, Text | ToolResult):
            yield part.text
        elif isinstance(part, ToolCall):
            try:
                yield from _values(json.loads(part.arguments))
            except (ValueError, RecursionError):
                yield part.arguments


def in_context(locator: str, source: str, text: str) -> bool:
    """Whether a text contains a locator together with other words of a line of the source in which the locator
    occurs.
    """
    return locator in text and any(_shown(locator, line, text) for line in set(lines_with(locator, source)))


def lines_with(locator: str, source: str) -> Iterator[str]:
    """The lines of a source that contain a locator."""
    at = source.find(locator)
    while at >= 0:
        start = source.rfind("\n", 0, at) + 1
        end = source.find("\n", at)
        end = end if end >= 0 else len(source)
        yield source[start:end].strip()
        at = source.find(locator, end)


def _shown(locator: str, line: str, text: str) -> bool:
    words = [word.span() for word in re.finditer(r"\S+", line)]
    if len(words) <= WORDS:
        return line in text
    at = line.find(locator)
    while at >= 0:
        first = next(place for place, (_, end) in enumerate(words) if end > at)
        last = next(place for place, (_, end) in enumerate(words) if end >= at + len(locator))
        for start in range(max(0, last - WORDS - (last - first)), first + 1):
            stop = max(last, start + WORDS + (last - first))
            if stop < len(words) and line[words[start][0] : words[stop][1]] in text:
                return True
        at = line.find(locator, at + 1)
    return False


def edited_line(call: ToolCall) -> str:
    """The longest line of the text that a call replaces; "" if there is no line of at least `EDIT_LINE` characters."""
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(arguments, dict):
        return ""
    old = next((arguments[key] for key in OLD if isinstance(arguments.get(key), str)), "")
    line = max((line.strip() for line in old.split("\n")), key=len, default="")
    return line if len(line) >= EDIT_LINE else ""
