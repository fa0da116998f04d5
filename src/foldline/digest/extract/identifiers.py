"""Finds identifiers (paths, names in code, ids, long numbers, addresses) by their shape, and counts their uses.

Identifiers cannot be guessed or paraphrased, so a digest must show them exactly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import exp, log
from operator import add
from typing import NamedTuple

WORD = re.compile(r"[A-Za-z0-9_$@~][A-Za-z0-9_$@~./\\:#-]{4,}")
"""A run of at least five characters that may contain identifiers."""
_SPACES = re.compile(r"\s*")
_INNER = re.compile(r"[A-Za-z0-9_]{6,}|[A-Z]{2,8}-[0-9]{1,8}")
_URL = re.compile(r"[a-z][a-z0-9+.-]{1,9}://[^\s\"'<>`)\]]{4,}")
_FILE = re.compile(r"[\w.@-]*[\w-]\.[A-Za-z][A-Za-z0-9]{0,9}")
_NAMED_FILE = re.compile(
    r"[\w.@-]*[\w-]\.(?:c|cc|cfg|conf|cpp|cs|css|csv|dart|env|exs?|go|graphql|h|hpp|html|ini|ipynb|java|jsx?|jsonl?|kt"
    r"|lock|log|lua|m|mdx?|mjs|mod|mts|php|proto|ps1|pyi?|r|rb|rs|rst|sass|scala|scss|sh|sql|sum|svelte|svg|swift|tf"
    r"|toml|traj|tsx?|txt|vue|xml|ya?ml|zig|zsh)"
)
"""A file name without a folder. Only common endings count, because `object.attribute` is no file name."""
_WITH_LINE_NUMBER = re.compile(r"(.*\.[A-Za-z]\w{0,5})-\d+-")
"""A file name and a line number such as `a.py-12-`. Search tools print this before the lines around a hit."""
_CAMEL_CASE = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2,}[a-z]{2}")
_ID = re.compile(r"(?=\D*\d)(?:[0-9a-fA-F]{7,40}|[0-9A-Z]{6})")
"""A hash, or a code of six capitals and digits."""
_NUMBER = re.compile(r"(?<!\w)[^\W\d]*+\d\w*+(?:[.:-]\w++)*+")
"""A number, or a name with a digit, such as `7013`, `db5` or `3.11`."""
LINE_NUMBER = re.compile(r"(\d{1,6})(?:→|\t|: ?|\|)\s*")
"""The line number that tools print at the start of each line when they read a file."""
_MIN_CHARS = 6
_MIN_PATH_CHARS = 5


def identifiers_in(word: str) -> tuple[tuple[str, str], ...]:
    """The identifiers in one word, each with its kind: `path`, `folder`, `identifier`, `id`, `number`.

    >>> identifiers_in("cmd/cli/explain.go:278")
    (('explain.go', 'path'),)
    >>> identifiers_in("store.UpdateSummary")
    (('UpdateSummary', 'identifier'),)
    >>> identifiers_in("understanding")
    ()
    """
    if word.isalpha() and word.islower():
        return ()
    if word.isidentifier():
        kind = _kind_by_shape(word) if len(word) >= _MIN_CHARS else ""
        return ((word, kind),) if kind else ()
    found: dict[str, str] = {}
    place = word.replace("\\", "/") if "\\" in word else word
    if "-" in place and (numbered := _WITH_LINE_NUMBER.match(place)):
        place = numbered[1]
    if "/" in place:
        for piece in place.split(":"):
            base = piece.rstrip("/.").rsplit("/", 1)[-1]
            if "/" in piece and len(base) >= _MIN_PATH_CHARS and not base.isdecimal():
                found[base] = "path" if _FILE.fullmatch(base) else "folder"
    elif "." in place:
        base = place.split(":", 1)[0].strip(".")
        if len(base) >= _MIN_PATH_CHARS and _NAMED_FILE.fullmatch(base):
            found[base] = "path"
    for inner in _INNER.findall(word):
        kind = _kind_by_shape(inner)
        if kind and not any(inner in other for other in found):
            found[inner] = kind
    return tuple(found.items())


def names_in(text: str) -> frozenset[str]:
    """The identifiers and numbers in a text that a person wrote, including short ones that `identifiers_in` does not
    find.

    >>> sorted(names_in("Set port 80 of db5 in app/config.py, please."))
    ['80', 'config.py', 'db5']
    """
    identifiers = [name for word in WORD.findall(text) for name, _ in identifiers_in(word)]
    return frozenset([*identifiers, *_NUMBER.findall(text)])


def _kind_by_shape(inner: str) -> str:
    """The kind of a run of letters, digits and underscores; "" for a plain word."""
    if "-" in inner:
        return "id" if len(inner) >= _MIN_CHARS else ""
    if inner.isdecimal():
        return "number" if len(inner) <= 20 else ""
    if "_" in inner.strip("_"):
        return "identifier"
    if _ID.fullmatch(inner):
        return "id"
    return "identifier" if len(inner) <= 80 and _CAMEL_CASE.search(inner) else ""


_MAX_IDENTIFIERS = 3_000
"""If the index has more than 1.5 times this number of identifiers, it is reduced to this number."""
_MIN_LINE_CHARS, _MAX_LINE_CHARS = 5, 240
"""The least length of a line that is read, and the length of the pieces in which a longer line is read."""
_UP_TO_BREAK = re.compile(r"""[^\n]*[ ,;&(){}\[\]<>"']""")
"""Matches the part of a line up to the last position at which a cut does not split an identifier."""
_KIND_WEIGHTS = {"path": 0.9, "folder": -1.3, "number": -3.0, "url": -3.2}


class Origin:
    """Where a text comes from: a result, content that a call writes, a call's arguments, the model, or the user."""

    RESULT, WRITE, CALL, MODEL, USER = range(5)


class Identifier(NamedTuple):
    """How an identifier was used: the number of messages that contain it, by the origin of the text."""

    kind: str
    last_index: int
    """Index of the newest message that contains the identifier."""
    line: str = ""
    """The line of this message in which the identifier occurs first."""
    message_count: int = 0
    call_count: int = 0
    user_count: int = 0
    model_count: int = 0
    write_count: int = 0


def reuse_probability(identifier: Identifier, end: int) -> float:
    """The probability (0 to 1) that an identifier is needed again in message `end` or later.

    The weights are rounded values of a logistic regression on real sessions. Use in a call has the largest weight. Use
    by the user or the model comes next, followed by the number of uses and the time since the last use.
    """
    age = log(max(1, end - identifier.last_index))
    score = -3.2 - 0.35 * age + 0.35 * log(1 + identifier.message_count) + _KIND_WEIGHTS.get(identifier.kind, 0.0)
    if identifier.call_count:
        score += 2.2 + 0.5 * log(1 + identifier.call_count) + 0.1 * age
    if identifier.user_count:
        score += 0.6 + 0.4 * log(1 + identifier.user_count)
    return 1 / (1 + exp(-score - 0.4 * bool(identifier.model_count) - 0.3 * bool(identifier.write_count)))


class IdentifierIndex:
    """The identifiers of the messages read so far. `identifiers` and `forgotten` are changed in place."""

    def __init__(self, identifiers: dict[str, Identifier], forgotten: set[str]) -> None:
        self.identifiers, self.forgotten = identifiers, forgotten
        self._by_word: dict[str, tuple[tuple[str, str], ...]] = {}
        self._by_line: dict[str, dict[str, str]] = {}
        self._uses: dict[str, tuple[str, str, set[int]]] = {}
        """The identifiers of the current message: the kind, the first line and the origins of each one."""

    def read(self, text: str, origin: int) -> list[str]:
        """Add the identifiers in a text of the current message. Returns the lines of the text."""
        lines = list(_split_lines(text))
        for url in [found.rstrip(".,;:") for found in _URL.findall(text)] if "://" in text else ():
            self._uses.setdefault(url, ("url", "", set()))[-1].add(origin)
        for line in lines:
            found = self._by_line.get(line)
            if found is None:
                found = self._by_line[line] = self._find(line)
            for name, kind in found.items():
                self._uses.setdefault(name, (kind, line, set()))[-1].add(origin)
        return lines

    def _find(self, line: str) -> dict[str, str]:
        """The identifiers in a line, with their kinds."""
        found: dict[str, str] = {}
        by_word = self._by_word
        for word in WORD.findall(line):
            known = by_word.get(word)
            if known is None:
                known = by_word[word] = identifiers_in(word)
            if known:
                found.update(known)
        return found

    def finish_message(self, index: int) -> None:
        """Count the uses in message `index`. If the index is too large, remove the least useful identifiers."""
        identifiers = self.identifiers
        for name, (shape, line, origins) in self._uses.items():
            kind, _, _, *counts = identifiers.get(name) or Identifier(shape, index)
            used = (1, Origin.CALL in origins, Origin.USER in origins, Origin.MODEL in origins, Origin.WRITE in origins)
            identifiers[name] = Identifier(kind, index, line, *map(add, counts, used))
        self._uses = {}
        if len(identifiers) > _MAX_IDENTIFIERS * 3 // 2:
            ranked = sorted(identifiers, key=lambda name: (-reuse_probability(identifiers[name], index + 1), name))
            self.forgotten.update(ranked[_MAX_IDENTIFIERS:])
            for name in ranked[_MAX_IDENTIFIERS:]:
                del identifiers[name]


def _split_lines(text: str) -> Iterator[str]:
    """The lines of a text, without spaces at their start and end. A long line is split into pieces."""
    for raw in text.split("\n"):
        line, start = raw.strip(), 0
        while len(line) - start > _MAX_LINE_CHARS:
            limit = start + _MAX_LINE_CHARS
            found = _UP_TO_BREAK.match(line, start + _MAX_LINE_CHARS // 2, limit)
            cut = found.end() if found else limit
            yield line[start:cut].rstrip()
            start = _SPACES.match(line, cut).end()  # type: ignore[union-attr]  # the pattern also matches an empty text
        if len(line) - start >= _MIN_LINE_CHARS:
            yield line[start:]
