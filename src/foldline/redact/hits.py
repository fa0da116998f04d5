"""What all rules that look for secrets share: a hit, what a value looks like, and how it goes on in the next line."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from foldline.redact.patterns import BASE64

MARK = "[redacted "
"""How a replaced value begins."""


class Hit(NamedTuple):
    """A secret's place in a text, and what it is."""

    start: int
    end: int
    kind: str


JOINT = re.compile(
    r"""[ \t]{0,8}["'`]?[ \t]{0,8}[+\\.&]?[ \t]{0,8}(?:\r?\n|\\r\\n|\\n)[ \t>|+#*-]{0,40}(?:\d{1,6}[→|:\t] ?)?["'`]?"""
)
"""How a value goes on in the next line: wrapped, quoted, numbered, or added up by a program."""
ALONE = re.compile(r"""[ \t]*(?:["'`,;\\\r\n+)}\]]|$)""")


@cache
def letters_of(letters: str) -> re.Pattern[str]:
    """A run of such letters, which may be empty."""
    return re.compile(f"[{letters}]*")


def end_of(letters: re.Pattern[str], text: str, start: int) -> int:
    """Where a run ends."""
    found = letters.match(text, start)
    return found.end() if found else start


def wrapped(text: str, end: int) -> int:
    """The end of a value that goes on in the next line."""
    while (joint := JOINT.match(text, end)) is not None:
        last = end_of(letters_of(BASE64 + r"_\-"), text, joint.end())
        if not looks_random(text[joint.end() : last]) or not ALONE.match(text, last):
            break
        end = last
    return end


_TYPES = re.compile(
    r"(?:str(?:ing)?|int(?:eger)?|number|bool(?:ean)?|any|none|null|nil|true|false|undefined|object|bytes|secret|"
    r"password|passwd|token|text|required|optional|hidden|redacted|masked|env|vault|unset|empty|missing|invalid|"
    r"changed|wrong|incorrect|correct|public|private|default|disabled|basic|bearer|oauth2?|api_?key)[.,;:]?",
    re.IGNORECASE,
)
_CASES = (re.compile("[a-z]"), re.compile("[A-Z]"), re.compile("[0-9]"), re.compile("[+/=_-]"))
_TURNS = re.compile(r"[0-9][A-Za-z]|[A-Za-z][0-9]")
_PLACEHOLDER = re.compile(
    r"https?://|\$|%\(?\w+\)?[s%]|\{|<|\*{3}|x{4}|X{4}|\.{3}|…|your[_-]|YOUR[_-]|example|placeholder|process\.env|os\.environ|"
    r".{0,12}\.\.\.$|.{0,8}xxx+$|env\.|secrets\.|vars\.|\[?redacted|(.)\1{5,}$|\[?REDACTED|(?:change|replace)[_-]?me|@|#\{"
)


def looks_random(text: str) -> bool:
    """Whether a text is more like a key than like a word: letters and digits in turns, or of many kinds."""
    if len(text) < 6:
        return False
    kinds = sum(1 for case in _CASES if case.search(text))
    turns = len(_TURNS.findall(text))
    return (turns >= 2 and kinds >= 2) or (kinds >= 3 and (turns >= 1 or (len(text) >= 16 and "/" in text)))


def placeholder(text: str) -> bool:
    """Whether a value only says where the true one would stand."""
    return _PLACEHOLDER.match(text) is not None or _TYPES.fullmatch(text) is not None
