"""Replaces values that look like secrets by `[redacted kind]`, before text gets to a digester, digest, log or page.

The patterns are in `patterns.py`; this module applies them. Every rule reads the same text, and overlapping hits are
merged. So the order of the rules does not matter. The result is searched again until nothing is found. So redacting a
text twice gives the same result as redacting it once.

The rules are our own because detect-secrets 1.5 finds only 125 of the 203 secrets in the tests' table, and takes ten
seconds for a megabyte instead of 0.2.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from foldline.placeholders import REDACTED
from foldline.redact import patterns
from foldline.redact.patterns import BASE64, URL64, KeyShape

_PASSES = 8
"""Maximum number of passes over a text. Fewer passes are needed: later passes find only values next to a redacted
value.
"""
_ERROR_CHARS = 300


class _Hit(NamedTuple):
    start: int
    end: int
    kind: str


def redact(text: str) -> str:
    """The text with values that look like secrets replaced by `[redacted kind]`.

    >>> redact("PGPASSWORD=hunter2 psql -c 'select 1'")
    "PGPASSWORD=[redacted password] psql -c 'select 1'"
    """
    for _ in range(_PASSES):
        hits = _find_secrets(text)
        if not hits:
            break
        pieces, at = [], 0
        for hit in hits:
            pieces += [text[at : hit.start], f"{REDACTED}{hit.kind}]"]
            at = hit.end
        text = "".join([*pieces, text[at:]])
    return text


def redact_error(error: BaseException) -> str:
    """An error's type and message in one short text without secrets."""
    try:
        return redact(f"{type(error).__name__}: {error}".removesuffix(": "))[:_ERROR_CHARS]
    except Exception:  # noqa: BLE001 (the message of a foreign error may raise anything)
        return type(error).__name__


def _find_secrets(text: str) -> list[_Hit]:
    """All values that look like secrets, in order; overlapping hits are merged."""
    finders = (_word_keys, _other_keys, _private_keys, _in_context, _in_urls, _named_values)
    joined: list[_Hit] = []
    for hit in sorted({hit for find in finders for hit in find(text)}):
        if joined and hit.start < joined[-1].end:
            joined[-1] = joined[-1]._replace(end=max(joined[-1].end, hit.end))
        else:
            joined.append(hit)
    return joined


# Keys with a known prefix

_CANDIDATE = re.compile(rf"[A-Za-z0-9][{URL64}]{{7,}}")
_PREFIX_STARTS = frozenset(prefix[:2] for shape in patterns.WORD_KEYS for prefix in shape.prefixes)
_PREFIX = re.compile("|".join(f"({'|'.join(map(re.escape, shape.prefixes))})" for shape in patterns.WORD_KEYS))
_AWS_SECRET = re.compile(r"""["'\s,;:|]{1,6}([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])""")


def _word_keys(text: str) -> Iterator[_Hit]:
    """Keys at the start of a word.

    If an AWS secret follows the key, as in a table of credentials, the hit includes it.
    """
    keys = _KeyReader(text)
    for run in _CANDIDATE.finditer(text):
        start = run.start()
        if start and text[start - 1] == "\\" and text[start] in "nrt":
            start += 1
        if text[start : start + 2] not in _PREFIX_STARTS:
            continue
        prefix = _PREFIX.match(text, start)
        if prefix is not None and prefix.lastindex is not None:
            shape = patterns.WORD_KEYS[prefix.lastindex - 1]
            end = keys.end(prefix.end(), shape)
            if end:
                pair = _AWS_SECRET.match(text, end)
                yield _Hit(start, pair.end() if pair and _looks_random(pair[1]) else end, shape.kind)


def _other_keys(text: str) -> Iterator[_Hit]:
    """Keys whose prefix contains a dot or a slash, and webhooks."""
    for shape in patterns.OTHER_KEYS:
        for prefix in shape.prefixes:
            at = text.find(prefix)
            if at < 0:
                continue
            keys = _KeyReader(text)
            while at >= 0:
                end = keys.end(at + len(prefix), shape)
                address = "/" in prefix and prefix[0].isalpha()
                if end and (address or _starts_word(text, at)):
                    yield _Hit(at + len(prefix) if address else at, end, shape.kind)
                at = text.find(prefix, end or at + len(prefix))


def _starts_word(text: str, at: int) -> bool:
    r"""Whether a word can begin at `at`. The letter of an escape such as `\n` is not part of a word."""
    return not at or not text[at - 1].isalnum() or (text[at - 1] in "nrt" and text[at - 2 : at - 1] == "\\")


_DIGIT = re.compile("[0-9]")


class _KeyReader:
    """Finds the ends of keys in a text.

    The starts must be passed in ascending order, so that the text is read about once.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._run_ends: dict[str, int] = {}
        """For each set of letters, the end of the run that was read last. A later start within that run has the same
        end.
        """
        self._digit = -1
        """Position of the first digit after the last start that was checked for a digit."""
        self._joined_until = 0
        """The largest end so far. A key that starts before it is not continued on later lines."""

    def end(self, start: int, shape: KeyShape) -> int:
        """The end of the key whose prefix ends at `start`.

        The key may continue on later lines. 0 if the text is not a key.
        """
        text, letters = self.text, _run_of(shape.letters)
        end = self._run_ends.get(shape.letters, 0)
        if end < start:
            end = self._run_ends[shape.letters] = _run_end(letters, text, start)
        size = end - start
        while start >= self._joined_until and not (shape.exact and size >= shape.least):
            joint = _LINE_JOINT.match(text, end)
            if joint is None:
                break
            last = _run_end(letters, text, joint.end())
            piece = text[joint.end() : last]
            if not piece or not _VALUE_END.match(text, last) or not (size < shape.least or _looks_random(piece)):
                break
            end, size = last, size + len(piece)
        self._joined_until = max(self._joined_until, end)
        if size < shape.least or (shape.exact and size != shape.least):
            return 0
        return end if shape.digitless or self._has_digit(start, end) else 0

    def _has_digit(self, start: int, end: int) -> bool:
        if self._digit < start:
            found = _DIGIT.search(self.text, start)
            self._digit = found.start() if found else len(self.text)
        return self._digit < end


# Private keys in PEM or PuTTY armour, whole or truncated at either end

_BEGIN = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----|Private-Lines: \d+")
_CLOSE = re.compile(r"-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----|Private-MAC: [0-9a-f]+")
_ARMOUR_CHARS = 20_000
_GAP = r"""(?:[\s>|+#*"',→-]|\\[nrt]|\d{1,6}[→|:\t]){0,40}"""
_ARMOUR_BODY = re.compile(
    rf"(?:{_GAP}(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset): [^\n\\]{{0,200}})*"
    rf"(?:{_GAP}[{BASE64}]{{16,}})*(?:{_GAP}[A-Za-z0-9+/]{{1,15}}={{1,2}})?"
)
_ARMOUR_LINE = re.compile(rf"{_GAP}(?:[{BASE64}]{{8,}})?{_GAP}")


def _private_keys(text: str) -> Iterator[_Hit]:
    if "PRIVATE KEY" not in text and "Private-" not in text:
        return
    ends = list(_CLOSE.finditer(text))
    closes, used = [found.start() for found in ends], set()
    until = 0
    for begin in _BEGIN.finditer(text):
        if begin.start() < until:
            continue
        body = _ARMOUR_BODY.match(text, begin.end())
        until = body.end() if body else begin.end()
        place = bisect_left(closes, begin.end())
        if place < len(ends) and closes[place] - begin.end() <= _ARMOUR_CHARS:
            between = text.find("-----BEGIN", begin.end(), closes[place])
            if between < 0:
                used.add(place)
                until = ends[place].end()
        yield _Hit(begin.start(), until, "private key")
    for place, found in enumerate(ends):
        if place not in used:
            floor = max(ends[place - 1].end() if place else 0, found.start() - _ARMOUR_CHARS)
            yield _Hit(_armour_start(text, floor, found.start()), found.end(), "private key")


def _armour_start(text: str, floor: int, end: int) -> int:
    """The start of the base64 lines that end at `end`."""
    size = 0
    for line in reversed(re.split(r"(?<=\n)|(?<=\\n)", text[floor:end])):
        if line and not _ARMOUR_LINE.fullmatch(line):
            break
        size += len(line)
    return end - size


# Values recognised by their surroundings, and parts of addresses

_DISCORD = re.compile(r"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}")
_DISCORD_HEAD = re.compile(r"(?:^|[^\w-])([MNO][A-Za-z0-9_-]{23,27})$")
_URL_USER = re.compile(r"://([^\s/?#@:\"'<>\\`]{0,200})(?::([^\s/?#@\"'<>\\`]{1,500}))?@(?=[\w\[-])")


def _in_context(text: str) -> Iterator[_Hit]:
    """Values that match one of `CONTEXT_PATTERNS`, and Discord tokens."""
    for tail in _DISCORD.finditer(text):
        head = _DISCORD_HEAD.search(text, max(0, tail.start() - 29), tail.start())
        if head:
            yield _Hit(head.start(1), tail.end(), "discord token")
    for kind, mark, pattern in patterns.CONTEXT_PATTERNS:
        for found in pattern.finditer(text) if mark in text else ():
            if not _is_placeholder(found[1]) and (kind != "auth header" or any(map(str.isdigit, found[1]))):
                yield _Hit(*found.span(1), kind)


def _in_urls(text: str) -> Iterator[_Hit]:
    for found in _URL_USER.finditer(text):
        if found[2] and not _is_placeholder(found[2]):
            yield _Hit(*found.span(2), "url password")
        elif not found[2] and len(found[1]) >= 16 and _looks_random(found[1]):
            yield _Hit(*found.span(1), "url token")
    if "=" not in text:
        return
    for found in patterns.URL_PARAMETERS.finditer(text):
        value = found[1]
        is_long = len(value) >= 20 and any(map(str.isdigit, value))
        if not _is_placeholder(value) and (_looks_random(value) or is_long):
            yield _Hit(*found.span(1), "url token")


# Values that follow a name: in assignments, JSON, flags, headers and prose

_ASSIGNMENT = re.compile(
    r"""(?=[\w.-]{0,43}+[\\"'`\]\s:=：])"""
    r"""(?P<rest>[\w.-]{0,40}?)\\{0,3}(?P<shut>["'`]?)\]?[ \t]{0,8}"""
    r"""(?P<sign>(?::[ \t]{0,4}[\w\[\]| .]{1,30})?(?:=>|:=|==?)|[:：]|(?<=[\s\w"'`])(?:is|was)(?=[\s:])|(?=[ \t]))"""
    r"""[ \t]{0,8}:?[ \t]{0,4}(?:\\{0,3}(?P<quote>["'`])|[bfr](?P<quote2>["'])|)"""
)
_QUOTED = re.compile(r"""[^"'`\r\n\\]{1,160}""")
_QUOTED_ALL = re.compile(r"""[^"'`\r\n\\]*""")
_BARE = re.compile(r"""[^\s"'`,;&<>\\(){}\[\]|]{1,160}""")
_BARE_ALL = re.compile(r"""[^\s"'`,;&<>\\(){}\[\]|]*""")
_FLAG = re.compile(r"--?[\w-]{0,30}$")
_SCHEME = re.compile(
    r"(?:Bearer|Basic|Token|ApiKey|Api-Key|Digest|Negotiate|AWS4-HMAC-SHA256|Bot)[ \t]+", re.IGNORECASE
)
_REFERENCE = re.compile(r"[A-Za-z_]\w*(?:(?:\.|::|->|\?\.)[A-Za-z_]\w*)*[.:?!]?")
_KINDS = (("pass", "password"), ("pwd", "password"), ("secret", "secret"), ("token", "token"), ("key", "key"))


def _named_values(text: str) -> Iterator[_Hit]:
    lower = text.lower()
    if len(lower) != len(text):  # a letter that grows in lower case would shift every position
        lower = "".join(letter.lower() if letter.isascii() else letter for letter in text)
    for name in (*patterns.SECRET_NAMES, *patterns.MAYBE_SECRET_NAMES):
        at, until = lower.find(name), 0
        while at >= 0:
            if at >= until:
                hit = _named_value(text, at, at + len(name), name)
                if hit is not None:
                    until = hit.end
                    yield hit
            at = lower.find(name, at + len(name))


def _named_value(text: str, at: int, end: int, name: str) -> _Hit | None:
    """The secret that follows the name from `at` to `end`; None if there is none."""
    found = _ASSIGNMENT.match(text, end)
    if found is None:
        return None
    rest = found["rest"]
    if rest and (rest[0].isdigit() or patterns.HARMLESS_NAME_ENDING.match(rest)):
        return None
    start, quote, strong = found.end(), bool(found["quote"] or found["quote2"]), name in patterns.SECRET_NAMES
    scheme = _SCHEME.match(text, start)
    if scheme:
        start, strong = scheme.end(), True
    elif not found["sign"] and not _FLAG.search(text, max(0, at - 32), at):
        return None
    value = (_QUOTED if quote and not scheme else _BARE).match(text, start)
    if value is None or value[0].startswith(REDACTED[1:]) or text.startswith(REDACTED, start):
        return None
    if value[0].isspace() or _is_placeholder(value[0]) or " " in value[0].strip():
        return None
    env = text[at:end].isupper() and found["sign"] == "=" and not text[start - 1].isspace()
    prose = found["sign"] in ("is", "was")
    after = text[value.end() : value.end() + 1]
    in_prose = prose and strong and _looks_random(value[0])
    if not in_prose and not _is_secret(value[0], after, strong=strong and not prose, whole=quote or env):
        return None
    last = _run_end(_QUOTED_ALL if quote and not scheme else _BARE_ALL, text, value.start())
    kind = next((kind for part, kind in _KINDS if part in name), "credential")
    return _Hit(value.start(), _wrapped_end(text, last), kind)


def _is_secret(value: str, after: str, *, strong: bool, whole: bool) -> bool:
    """Whether a value is a secret.

    `whole` means that it is in quotes or in a shell assignment, so that it is complete.
    """
    if after == "(" or (not whole and after in ("[", "{")):
        return False
    if not whole and _REFERENCE.fullmatch(value) and not _looks_random(value):
        return False
    if not strong:
        return len(value) >= 16 and _looks_random(value)
    return len(value) >= 4 if whole else len(value) >= 6 and any(not letter.isalpha() for letter in value)


# What a value looks like, and where it ends

_LINE_JOINT = re.compile(
    r"""[ \t]{0,8}["'`]?[ \t]{0,8}[+\\.&]?[ \t]{0,8}(?:\r?\n|\\r\\n|\\n)[ \t>|+#*-]{0,40}(?:\d{1,6}[→|:\t] ?)?["'`]?"""
)
"""The characters between two lines of a value that is wrapped: quotes, line numbers, or a concatenation in code."""
_VALUE_END = re.compile(r"""[ \t]*(?:["'`,;\\\r\n+)}\]]|$)""")
_CASES = (re.compile("[a-z]"), re.compile("[A-Z]"), re.compile("[+/=_-]"))
_TURN = re.compile(r"[A-Za-z0-9](?:(?<=[0-9])[A-Za-z]|(?<=[A-Za-z])[0-9])")


@cache
def _run_of(letters: str) -> re.Pattern[str]:
    return re.compile(f"[{letters}]*")


def _run_end(letters: re.Pattern[str], text: str, start: int) -> int:
    found = letters.match(text, start)
    return found.end() if found else start


def _wrapped_end(text: str, end: int) -> int:
    while (joint := _LINE_JOINT.match(text, end)) is not None:
        last = _run_end(_run_of(BASE64 + r"_\-"), text, joint.end())
        if not _looks_random(text[joint.end() : last]) or not _VALUE_END.match(text, last):
            break
        end = last
    return end


def _looks_random(text: str) -> bool:
    """Whether a text looks like a key and not like a word.

    In a key, letters and digits alternate, or several kinds of characters are mixed.
    """
    if len(text) < 6:
        return False
    is_long_path = len(text) >= 16 and "/" in text
    if not _DIGIT.search(text):
        return is_long_path and all(case.search(text) for case in _CASES)
    kinds = 1 + sum([case.search(text) is not None for case in _CASES])
    turn = _TURN.search(text) if kinds >= 2 else None
    if turn is None:
        return kinds >= 3 and is_long_path
    return kinds >= 3 or _TURN.search(text, turn.end()) is not None


def _is_placeholder(text: str) -> bool:
    return patterns.PLACEHOLDER_VALUE.match(text) is not None or patterns.TYPE_WORD.fullmatch(text) is not None
