"""Secrets that show by themselves: keys with a telling beginning, private keys in their armour, addresses, headers."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

from foldline.redact.hits import ALONE, JOINT, Hit, end_of, letters_of, looks_random, placeholder
from foldline.redact.patterns import BASE64, PLACES, RUNS, URL64, Shape

# Keys that show by their beginning

_RUN = re.compile(rf"[A-Za-z0-9][{URL64}]{{7,}}")
_STARTS = frozenset(prefix[:2] for shape in RUNS for prefix in shape.prefixes)
_FIRST = re.compile("|".join(f"({'|'.join(map(re.escape, shape.prefixes))})" for shape in RUNS))


def runs(text: str) -> Iterator[Hit]:
    """Keys that begin a word with what only such keys begin with."""
    for run in _RUN.finditer(text):
        start = run.start()
        if start and text[start - 1] == "\\" and text[start] in "nrt":
            start += 1
        if text[start : start + 2] not in _STARTS:
            continue
        first = _FIRST.match(text, start)
        if first is not None and first.lastindex is not None:
            end = _extent(text, first.end(), RUNS[first.lastindex - 1])
            if end:
                yield Hit(start, _pair(text, end), RUNS[first.lastindex - 1].kind)


def _pair(text: str, end: int) -> int:
    """The end of a key id together with the secret that follows it at once, as in a table of credentials."""
    follows = _AWS_PAIR.match(text, end)
    return follows.end() if follows and looks_random(follows[1]) else end


_AWS_PAIR = re.compile(r"""["'\s,;:|]{1,6}([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])""")


def places(text: str) -> Iterator[Hit]:
    """Keys whose beginning is no word, and webhooks, whose address is the key."""
    for shape in PLACES:
        for prefix in shape.prefixes:
            at = text.find(prefix)
            while at >= 0:
                end = _extent(text, at + len(prefix), shape)
                address = "/" in prefix and prefix[0].isalpha()
                if end and (address or _begins(text, at)):
                    yield Hit(at + len(prefix) if address else at, end, shape.kind)
                at = text.find(prefix, end or at + len(prefix))


def _begins(text: str, at: int) -> bool:
    """Whether no word goes on here; the letter of an escaped line end is no word."""
    return not at or not text[at - 1].isalnum() or (text[at - 1] in "nrt" and text[at - 2 : at - 1] == "\\")


def _extent(text: str, start: int, shape: Shape) -> int:
    """Where a key ends, over line ends too; 0 when it is none."""
    letters = letters_of(shape.letters)
    end = end_of(letters, text, start)
    size, pieces = end - start, [text[start:end]]
    while not (shape.exact and size >= shape.least):
        joint = JOINT.match(text, end)
        if joint is None:
            break
        last = end_of(letters, text, joint.end())
        piece = text[joint.end() : last]
        if not piece or not ALONE.match(text, last) or not (size < shape.least or looks_random(piece)):
            break
        end, size = last, size + len(piece)
        pieces.append(piece)
    if size < shape.least or (shape.exact and size != shape.least):
        return 0
    whole = "".join(pieces)
    return end if shape.plain or any(letter.isdigit() for letter in whole) else 0


# Private keys in their armour, whole, or cut off at either end

_BEGIN = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----|Private-Lines: \d+")
_CLOSE = re.compile(r"-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----|Private-MAC: [0-9a-f]+")
_PEM_CHARS = 20_000
_GAP = r"""(?:[\s>|+#*"',→-]|\\[nrt]|\d{1,6}[→|:\t]){0,40}"""
_PEM_BODY = re.compile(
    rf"(?:{_GAP}(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset): [^\n\\]{{0,200}})*"
    rf"(?:{_GAP}[{BASE64}]{{16,}})*(?:{_GAP}[A-Za-z0-9+/]{{1,15}}={{1,2}})?"
)
_PEM_LINE = re.compile(rf"{_GAP}(?:[{BASE64}]{{8,}})?{_GAP}")


def pems(text: str) -> Iterator[Hit]:
    """Private keys in their armour, whole or cut off."""
    if "PRIVATE KEY" not in text and "Private-" not in text:
        return
    ends = list(_CLOSE.finditer(text))
    closes, used = [found.start() for found in ends], set()
    until = 0
    for begin in _BEGIN.finditer(text):
        if begin.start() < until:
            continue
        body = _PEM_BODY.match(text, begin.end())
        until = body.end() if body else begin.end()
        place = bisect_left(closes, begin.end())
        if place < len(ends) and closes[place] - begin.end() <= _PEM_CHARS:
            between = text.find("-----BEGIN", begin.end(), closes[place])
            if between < 0:
                used.add(place)
                until = ends[place].end()
        yield Hit(begin.start(), until, "private key")
    for place, found in enumerate(ends):
        if place not in used:
            floor = max(ends[place - 1].end() if place else 0, found.start() - _PEM_CHARS)
            yield Hit(_back(text, floor, found.start()), found.end(), "private key")


def _back(text: str, floor: int, end: int) -> int:
    """Where the lines of base64 begin that end here."""
    window = text[floor:end]
    size = 0
    for line in reversed(re.split(r"(?<=\n)|(?<=\\n)", window)):
        if line and not _PEM_LINE.fullmatch(line):
            break
        size += len(line)
    return end - size


# The rest: what to look for, how far before it the value may begin, and the value

_ODD = (
    ("auth header", "earer", 1, re.compile(r"\b[Bb]earer[ \t]+([A-Za-z0-9._~+/=-]{16,})")),
    ("auth header", "asic ", 1, re.compile(r"\b[Bb]asic[ \t]+([A-Za-z0-9+/]{12,}={0,2})(?![\w ])")),
    (
        "cookie",
        "ookie",
        1,
        re.compile(r"[Cc]ookie\\{0,3}[\"']?[ \t]*[:=][ \t]*\\{0,3}[\"']?([^\s=;\"'\\]{1,80}=[^\r\n\"'\\]{8,})"),
    ),
    ("password", "login ", 0, re.compile(r"login[ \t]+\S{1,80}\s+password[ \t]+(\S{3,200})")),
    (
        "password",
        "curl ",
        0,
        re.compile(r"curl\b[^\n]{0,300}?[ \t](?:-u|--user)[ \t=]*[\"']?[^\s:\"']{1,80}:([^\s\"']{3,200})"),
    ),
    ("password", "sshpass", 0, re.compile(r"sshpass[ \t]+-p[ \t]*[\"']?([^\s\"']{3,200})")),
    ("telegram token", ":AA", 10, re.compile(r"(?<!\d)(\d{8,10}:AA[A-Za-z0-9_-]{32,34})(?![\w-])")),
    ("azure secret", "Q~", 4, re.compile(r"(?<![\w~.-])([A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34})")),
    ("azure key", "JQQJ9", 60, re.compile(r"(?<![A-Za-z0-9])([A-Za-z0-9]{40,60}JQQJ9[A-Za-z0-9]{5,40})")),
    ("terraform token", ".atlasv1.", 14, re.compile(r"(?<!\w)([A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,})")),
    ("mail key", "-us", 32, re.compile(r"(?<![0-9a-f])([0-9a-f]{32}-us\d{1,2})(?!\w)")),
    ("auth", '"auth', 0, re.compile(r"\"auth\\?\"[ \t]*:[ \t]*\\?\"([A-Za-z0-9+/]{8,}={0,2})\\?\"")),
)


_DISCORD = re.compile(r"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}")
_DISCORD_HEAD = re.compile(r"(?:^|[^\w-])([MNO][A-Za-z0-9_-]{23,27})$")


def odd(text: str) -> Iterator[Hit]:
    """Keys that have their mark in the middle, headers, and passwords on command lines."""
    for tail in _DISCORD.finditer(text):
        head = _DISCORD_HEAD.search(text, max(0, tail.start() - 29), tail.start())
        if head:
            yield Hit(head.start(1), tail.end(), "discord token")
    for kind, mark, before, pattern in _ODD:
        at = text.find(mark)
        while at >= 0:
            found = next(
                (hit for place in range(at - before, at + 1) if place >= 0 and (hit := pattern.match(text, place))),
                None,
            )
            if found and not placeholder(found[1]) and (kind != "auth header" or any(map(str.isdigit, found[1]))):
                yield Hit(*found.span(1), kind)
            at = text.find(mark, max(at + len(mark), found.end() if found else 0))
