"""Checks that the input has the format that the caller named.

A parser keeps unknown blocks and ignores unknown fields, because a provider adds new ones at any time. So input in
another format is often readable, but its calls, results or texts are missing. The check reads the input in the named
format and in the detected format, and compares the results. If nothing is lost in the named format, the input is
accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from foldline.errors import InputError, WireError
from foldline.message import Media, Message, Text, Thinking
from foldline.wire.detect import Detected, candidates, detect
from foldline.wire.formats import Transcript, format_of

_PLAIN_FORMATS = ("anthropic", "openai", "openai-responses", "pi")
"""Formats that read a message with only a role and a text in the same way."""


def check_named_format(value: Any, named: Detected, read: Callable[[Detected], Transcript]) -> None:
    """Raise `WireError` if the input has another format than `named` and would lose content in the named format.

    `read` reads the input in a given format.
    """
    held = value[named.key] if named.key else value
    items = held if isinstance(held, list) else [held]
    sign = format_of(named.format).sign
    if named.shape == "reply" or any(isinstance(item, Mapping) and sign.test(item) for item in items):
        return
    other = detect(value)
    if other is None or other.format == named.format or (not other.clear and named.format in _PLAIN_FORMATS):
        return
    try:
        expected = read(other).messages
    except InputError:
        return
    try:
        found = read(named).messages
    except InputError:
        found = ()
    if _loses_content(found, expected):
        raise not_in_format(value, named.format, other)


def not_in_format(value: Any, name: str, other: Detected | None) -> WireError:
    """The error for input that is not in the format `name`. `other` is the format that was detected, or None."""
    if other is None:
        return WireError(f"the input is not in the format {name}", hint=expected_content(name))
    reason = candidates(value).get(other.format)
    shown = f" ({reason})" if reason else ""
    return WireError(
        f"the input is not in the format {name}: it looks like {other.format}{shown}",
        hint=f"name the format {other.format}, or name no format: then the format is detected",
    )


def expected_content(name: str) -> str:
    """The advice for input that has nothing of the format `name`: what the format looks like, and what to do."""
    return f"{name} has {format_of(name).sign.description}: check the input, or name another format"


def _loses_content(found: tuple[Message, ...], expected: tuple[Message, ...]) -> bool:
    """Whether `found` has fewer calls, results or system texts than `expected`, or no content although `expected` has
    some.
    """
    return any(have < want for have, want in zip(_counts(found), _counts(expected), strict=True))


def _counts(messages: tuple[Message, ...]) -> tuple[int, int, int, bool]:
    """The number of calls, results and system messages, and whether there is any content."""
    readable = (Text, Thinking, Media)
    return (
        sum(len(message.calls) for message in messages),
        sum(len(message.results) for message in messages),
        sum(message.role == "system" for message in messages),
        any(isinstance(part, readable) for message in messages for part in message.parts),
    )
