"""The rows of the tables of context patterns, and the parts that many patterns share."""

from __future__ import annotations

import re
from typing import NamedTuple

REGION_CHARS = 600
"""The number of characters behind a mark in which a match of several lines is searched."""
_LINE_CLASS = re.compile(r"\[\^(?:[^\]\\]|\\.)*?\\[sn](?:[^\]\\]|\\.)*\]")
"""A negated class without line ends."""
_LINE_END = re.compile(r"\\[snrWDA]|\[\^|\$$|(?<!\\)\$(?=[)|])|\^")


def _within_line(pattern: str) -> bool:
    """Whether every match of a pattern certainly lies within a line."""
    return _LINE_END.search(_LINE_CLASS.sub("", pattern)) is None


class ContextPattern(NamedTuple):
    """A value that is recognised by the text around it. Group `v` of the pattern is the value."""

    kind: str
    marks: tuple[str, ...]
    """Fixed strings, one of which every match contains. A text without any of them is not searched."""
    pattern: re.Pattern[str]
    check: str = ""
    """What else the value must be, as `context_values.py` checks it; "" for nothing."""
    words: tuple[str, ...] = ()
    """Words in small letters, one of which every match contains too, in any case."""
    min_chars: int = REGION_CHARS
    """How many characters behind a mark are searched at least. 0 if every match lies within the line of its mark."""


def row(  # noqa: PLR0913
    kind: str, marks: str, pattern: str, check: str = "", flags: int = 0, *, words: str = "", near: bool = False
) -> ContextPattern:
    """A row; `marks` and `words` are separated by `|`. `near` says that a mark stands near a match and not in it."""
    return ContextPattern(
        kind,
        tuple(marks.split("|")),
        re.compile(pattern, flags),
        check,
        tuple(words.split("|")) if words else (),
        0 if _within_line(pattern) and not near else REGION_CHARS,
    )


QUOTE = r"""\\{0,2}["'`]?"""
WORD_VALUE = r"""(?P<v>[^\s"'`|;<>]{3,200})"""
ANY_VALUE = (
    r"""(?:"(?P<v>[^"\n]{3,200})"|'(?P<w>[^'\n]{3,200})'|\\?["'](?P<x>[^"'\n\\]{3,200})|(?P<y>[^\s"'`|;<>]{3,200}))"""
)
"""A value in quotes or without; the group that matched is the value."""
ARGUMENTS = r"(?:[ \t]++[^\s|;]++){0,25}?[ \t]++"
"""Other arguments of the same command."""


def command(names: str, flag: str, check: str = "") -> ContextPattern:
    """A command with a flag that is followed by a secret."""
    marks = "|".join(f"{name} " for name in names.split("|"))
    return row("password", marks, rf"(?<![\w-])(?:{names}){ARGUMENTS}{flag}{ANY_VALUE}", check)
