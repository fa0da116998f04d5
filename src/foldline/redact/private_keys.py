"""Private keys in PEM or PuTTY armour, whole or truncated at either end."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

from foldline.redact.patterns import BASE64, Hit
from foldline.redact.searched_text import SearchedText

_BEGIN = re.compile(
    r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----|"
    r"-----BEGIN OpenVPN Static key V1-----|Private-Lines: \d+"
)
_CLOSE = re.compile(
    r"-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----|"
    r"-----END OpenVPN Static key V1-----|Private-MAC: [0-9a-f]+"
)
_ARMOUR_CHARS = 20_000
_GAP = r"""(?:[\s>|+#*"',→-]|\\{1,4}[nrt]|\\\n|\d{1,6}[→|:\t]){0,40}"""
_ARMOUR_BODY = re.compile(
    rf"(?:{_GAP}(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset): [^\n\\]{{0,200}})*"
    rf"(?:{_GAP}[{BASE64}]{{16,}})*(?:{_GAP}[A-Za-z0-9+/]{{1,15}}={{1,2}})?"
)
_ARMOUR_LINE = re.compile(rf"{_GAP}(?:[{BASE64}]{{8,}})?{_GAP}")
_BASE64_RUN = re.compile(f"[{BASE64}]{{12,}}")


def find_private_keys(searched: SearchedText) -> Iterator[Hit]:
    """All private keys.

    The first and the last line of a key file (the armour) are redacted only together with key text.
    """
    text = searched.text
    if "PRIVATE KEY" not in text and "Private-" not in text and "OpenVPN Static" not in text:
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
        if _BASE64_RUN.search(text, begin.end(), until):
            yield Hit(begin.start(), until, "private key")
    for place, found in enumerate(ends):
        if place not in used:
            floor = max(ends[place - 1].end() if place else 0, found.start() - _ARMOUR_CHARS)
            start = _armour_start(text, floor, found.start())
            if _BASE64_RUN.search(text, start, found.start()):
                yield Hit(start, found.end(), "private key")


def _armour_start(text: str, floor: int, end: int) -> int:
    """The start of the base64 lines that end at `end`."""
    size = 0
    for line in reversed(re.split(r"(?<=\n)|(?<=\\n)", text[floor:end])):
        if line and not _ARMOUR_LINE.fullmatch(line):
            break
        size += len(line)
    return end - size
