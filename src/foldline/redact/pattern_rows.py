"""The type of the rows in the tables of context patterns, and parts of regular expressions that many patterns share.

A row has marks: fixed strings such as `mysql `. Every match of the row's pattern contains a mark, or is near one. So a
text is searched with the pattern only near the marks that it contains.
"""

from __future__ import annotations

import re
from typing import NamedTuple

REGION_CHARS = 600
"""How many characters after a mark are searched at least, if a match may extend over several lines."""
_LINE_CLASS = re.compile(r"\[\^(?:[^\]\\]|\\.)*?\\[sn](?:[^\]\\]|\\.)*\]")
"""Matches a negated character class that excludes line ends. It is applied to the text of a regular expression."""
_LINE_END = re.compile(r"\\[snrWDA]|\[\^|\$$|(?<!\\)\$(?=[)|])|\^")


def _within_line(pattern: str) -> bool:
    """Whether every match of a regular expression certainly lies within one line."""
    return _LINE_END.search(_LINE_CLASS.sub("", pattern)) is None


class ContextPattern(NamedTuple):
    """A pattern for values that are recognised by the text around them.

    The value is group `v` of the regular expression.
    """

    kind: str
    marks: tuple[str, ...]
    """The marks of the row. A text that contains none of them is not searched."""
    pattern: re.Pattern[str]
    check: str = ""
    """The name of a further check of the value (see `context_values.py`); "" for no check."""
    words: tuple[str, ...] = ()
    """Words in lower case. A text is searched only if it contains at least one of them, in upper or lower case."""
    min_chars: int = REGION_CHARS
    """How many characters after a mark are searched at least. The search then goes on to the end of the line.

    With 0, only the line with the mark is searched. This is enough if every match is on the line of its mark.
    """
    probe: re.Pattern[str] | None = None
    """A cheaper pattern that matches in every text in which the row's pattern can match. If None, the marks are
    searched for instead.
    """


def row(  # noqa: PLR0913
    kind: str,
    marks: str,
    pattern: str,
    check: str = "",
    flags: int = 0,
    *,
    words: str = "",
    near: bool = False,
    probe: str = "",
) -> ContextPattern:
    """A row of a table. `marks` and `words` are lists whose items are separated by `|`.

    If `near` is true, the mark is near the match and not inside it. If the marks are frequent in ordinary texts, give
    a `probe`: a pattern that is searched for instead of the marks. Each match of `pattern` must contain a match of the
    probe. The probe should match in few ordinary texts, and should start with a fixed character.
    """
    return ContextPattern(
        kind,
        tuple(marks.split("|")),
        re.compile(pattern, flags),
        check,
        tuple(words.split("|")) if words else (),
        0 if _within_line(pattern) and not near else REGION_CHARS,
        re.compile(probe) if probe else None,
    )


QUOTE = r"""\\{0,2}["'`]?"""
WORD_VALUE = r"""(?P<v>[^\s"'`|;<>]{3,200})"""
ANY_VALUE = (
    r"""(?:"(?P<v>[^"\n]{3,200})"|'(?P<w>[^'\n]{3,200})'|\\?["'](?P<x>[^"'\n\\]{3,200})|(?P<y>[^\s"'`|;<>]{3,200}))"""
)
"""A value with or without quotes. The group that matched is the value."""
ARGUMENTS = r"(?:[ \t]++[^\s|;]++){0,25}?[ \t]++"
"""The arguments between a command and the flag that is searched for."""


def command(names: str, flag: str, check: str = "") -> ContextPattern:
    """A row for a command with a flag that is followed by a secret. `names` are names of commands, separated by `|`."""
    marks = "|".join(f"{name} " for name in names.split("|"))
    return row("password", marks, rf"(?<![\w-])(?:{names}){ARGUMENTS}{flag}{ANY_VALUE}", check)
