"""Finds identifiers (paths, names in code, ids, long numbers, addresses), their uses, and lines that explain them.

Identifiers cannot be guessed or paraphrased, so a digest must show them exactly. Identifiers are found by their shape,
one word at a time. The index stores usage counts and one line for each identifier, so it stays small in a long session.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from math import exp, log
from typing import NamedTuple
from zlib import crc32

WORD = re.compile(r"[A-Za-z0-9_$@~][A-Za-z0-9_$@~./\\:#-]{4,}")
"""A run of at least five characters that may contain identifiers."""
_SPACES = re.compile(r"\s*")
_INNER = re.compile(r"[A-Za-z0-9_]{6,}|[A-Z]{2,8}-[0-9]{1,8}")
_URL = re.compile(r"[a-z][a-z0-9+.-]{1,9}://[^\s\"'<>`)\]]{4,}")
_FILE = re.compile(r"[\w.@-]*[\w-]\.[A-Za-z][A-Za-z0-9]{0,9}")
_FILE_ENDINGS = frozenset(
    {
        *("c", "cc", "cfg", "conf", "cpp", "cs", "css", "csv", "dart", "env", "ex", "exs", "go", "graphql"),
        *("h", "hpp", "html", "ini", "ipynb", "java", "js", "json", "jsonl", "jsx", "kt", "lock", "log", "lua"),
        *("m", "md", "mdx", "mjs", "mod", "mts", "php", "proto", "ps1", "py", "pyi", "r", "rb", "rs"),
        *("rst", "sass", "scala", "scss", "sh", "sql", "sum", "svelte", "svg", "swift", "tf", "toml", "traj", "ts"),
        *("tsx", "txt", "vue", "xml", "yaml", "yml", "zig", "zsh"),
    }
)
_WITH_LINE_NUMBER = re.compile(r"(.*\.[A-Za-z]\w{0,5})-\d+-")
"""A file name and a line number such as `a.py-12-`. Search tools print this before the lines around a hit."""
_CAMEL_CASE = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2,}[a-z]{2}")
_ID = re.compile(r"(?=\D*\d)(?:[0-9a-fA-F]{7,40}|[0-9A-Z]{6})")
"""A hash, or a code of six capitals and digits."""
_NUMBER = re.compile(r"(?<!\w)[^\W\d]*+\d\w*+(?:[.:-]\w++)*+")
"""A number, or a name with a digit, such as `7013`, `db5` or `3.11`."""
LINE_NUMBER = re.compile(r"(\d{1,6})(?:→|\t|: ?|\|)\s*")
"""The line number that tools print at the start of each line when they read a file."""
_KEYWORDS = r"(?:(?:export|const|let|var|final|static|set|ENV) +){0,3}"
_OPTION = r"(--[a-z][\w-]{1,40})[ =]"
_NAME = r"[\"']?([A-Za-z_][\w.-]{2,60})[\"']?(?:\s?:?=|:)\s*"
_COMMON_VALUE = r"[01\"']{1,2};?$"
"""A value with little information: 0, 1 or an empty text."""
_QUOTED_VALUE = r"[\"'][^\"']{0,60}[\"']"
_NUMBER_VALUE = r"[-+]?\d(?:[\w.,:/%+-]{0,60}[\w%])?"
_WORD_VALUE = r"(?i:true|false|yes|no|on|off)|(?<=[A-Z]=)[^\s(){}]{1,60}"
_END = r"\s?[,;\\]?(?:\s+(?:#|//).{0,60})?"
_SETTING = re.compile(
    rf"({_KEYWORDS}(?:{_OPTION}|{_NAME})(?!{_COMMON_VALUE})(?:{_QUOTED_VALUE}|{_NUMBER_VALUE}|{_WORD_VALUE})){_END}"
)
"""A line that gives a name a value."""
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
        if _FILE.fullmatch(base) and base.rsplit(".", 1)[-1] in _FILE_ENDINGS and len(base) >= _MIN_PATH_CHARS:
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


def setting_in(line: str) -> tuple[str, str]:
    """The name and the text of a line that gives a name a value, such as `PORT = 7091`; ("", "") for other lines."""
    if "=" not in line and ":" not in line and not line.startswith("--"):
        return "", ""
    number = LINE_NUMBER.match(line)
    found = _SETTING.fullmatch(line, number.end() if number else 0)
    return (found[2] or found[3], found[1]) if found else ("", "")


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
_MIN_LINE_CHARS = 5
"""The least length of a line that can contain an identifier."""
_MAX_LINE_CHARS = 240
"""Maximum length of a line in characters. Longer lines are read in pieces of this length."""
_UP_TO_BREAK = re.compile(r"""[^\n]*[ ,;&(){}\[\]<>"']""")
"""Matches the part of a line up to the last position at which a cut does not split an identifier."""
_KIND_WEIGHTS = {"path": 0.9, "folder": -1.3, "number": -3.0, "url": -3.2}


class Origin:
    """Where a line comes from: the user, the model's text, a call's arguments, content that a call writes, or a
    result.
    """

    USER, MODEL, CALL, WRITE, RESULT = 4, 3, 2, 1, 0


IdentifiedLine = tuple[str, tuple[str, ...]]


class SourceLine(NamedTuple):
    """A line of a message."""

    text: str
    message_index: int
    source: str
    """The file or command that the line comes from; "" for a line of conversation."""
    origin: int
    """Where the line comes from (see `Origin`). A line with a higher origin explains its identifiers better."""


class Identifier(NamedTuple):
    """How an identifier was used, and the line that explains it best."""

    kind: str
    message_count: int
    last_index: int
    """Index of the newest message that contains the identifier."""
    call_count: int
    """Number of messages in which the identifier is an argument of a call."""
    user_count: int
    """Number of messages in which the user wrote the identifier."""
    model_count: int
    """Number of messages in which the model wrote the identifier as text."""
    write_count: int
    """Number of messages in which a call wrote the identifier as content."""
    line: SourceLine


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
    if identifier.model_count:
        score += 0.4
    if identifier.write_count:
        score += 0.3
    return 1 / (1 + exp(-score))


class IdentifierIndex:
    """The identifiers of the messages read so far. `identifiers` and `forgotten` are changed in place."""

    def __init__(self, identifiers: dict[str, Identifier], forgotten: set[int]) -> None:
        self.identifiers, self.forgotten = identifiers, forgotten
        self._by_word: dict[str, tuple[tuple[str, str], ...]] = {}
        self._by_line: dict[str, dict[str, str]] = {}
        self._uses: dict[str, tuple[str, SourceLine, bool, bool]] = {}
        """The identifiers of the current message.

        For each one: its kind, its best line, whether a call uses it, and whether a call writes it.
        """

    def read(self, index: int, text: str, origin: int, source: str = "") -> list[IdentifiedLine]:
        """Add the identifiers in a text of message `index`. Returns the lines of the text with their identifiers."""
        lines, by_line = list[IdentifiedLine](), self._by_line
        for url in [found.rstrip(".,;:") for found in _URL.findall(text)] if "://" in text else ():
            self._use(url, "url", SourceLine(url, index, source, origin))
        for piece in _split_lines(text):
            found = by_line.get(piece)
            if found is None:
                found = by_line[piece] = self._find(piece)
            lines.append((piece, tuple(found)))
            if found:
                line = SourceLine(piece, index, source, origin)
                for name, kind in found.items():
                    self._use(name, kind, line)
        return lines

    def _find(self, piece: str) -> dict[str, str]:
        """The identifiers in a line, with their kinds."""
        found: dict[str, str] = {}
        by_word = self._by_word
        for word in WORD.findall(piece):
            known = by_word.get(word)
            if known is None:
                known = by_word[word] = identifiers_in(word)
            if known:
                found.update(known)
        return found

    def _use(self, name: str, kind: str, line: SourceLine) -> None:
        is_call, is_write = line.origin == Origin.CALL, line.origin == Origin.WRITE
        if use := self._uses.get(name):
            kind, best, was_call, was_write = use
            line = line if line.origin > best.origin else best
            is_call, is_write = was_call or is_call, was_write or is_write
        self._uses[name] = (kind, line, is_call, is_write)

    def finish_message(self, index: int) -> None:
        """Add the uses in message `index` to the counts.

        If the index is too large, remove the least useful identifiers.
        """
        if not self._uses:
            return
        identifiers = self.identifiers
        for name, (kind, line, is_call, is_write) in self._uses.items():
            old = identifiers.get(name) or Identifier(kind, 0, 0, 0, 0, 0, 0, line)
            identifiers[name] = Identifier(
                old.kind,
                old.message_count + 1,
                index,
                old.call_count + is_call,
                old.user_count + (line.origin == Origin.USER),
                old.model_count + (line.origin == Origin.MODEL),
                old.write_count + is_write,
                old.line if old.line.origin > line.origin else line,
            )
        self._uses = {}
        if len(identifiers) > _MAX_IDENTIFIERS * 3 // 2:
            ranked = sorted(identifiers, key=lambda name: (-reuse_probability(identifiers[name], index + 1), name))
            self.forgotten |= {_checksum(name) for name in ranked[_MAX_IDENTIFIERS:]}
            for name in ranked[_MAX_IDENTIFIERS:]:
                del identifiers[name]


def was_forgotten(name: str, forgotten: Collection[int]) -> bool:
    """Whether an identifier was removed from the index. Compares 32-bit checksums, so True is wrong in rare cases."""
    return _checksum(name) in forgotten


def _checksum(name: str) -> int:
    return crc32(name.encode("utf-8", "replace"))


def _split_lines(text: str) -> Iterator[str]:
    """The lines of a text, without spaces at their start and end.

    A long line is split into pieces of at most `_MAX_LINE_CHARS`.
    """
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
