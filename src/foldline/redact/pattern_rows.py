"""The rows of the tables of context patterns, and the parts that many patterns share."""

from __future__ import annotations

import re
from typing import NamedTuple


class ContextPattern(NamedTuple):
    """A value that is recognised by the text around it. Group `v` of the pattern is the value."""

    kind: str
    marks: tuple[str, ...]
    """Fixed strings, one of which every match contains. A text without any of them is not searched."""
    pattern: re.Pattern[str]
    check: str = ""
    """What else the value must be, as `context_values.py` checks it; "" for nothing."""


def row(kind: str, marks: str, pattern: str, check: str = "", flags: int = 0) -> ContextPattern:
    """A row; `marks` are separated by `|`."""
    return ContextPattern(kind, tuple(marks.split("|")), re.compile(pattern, flags), check)


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
