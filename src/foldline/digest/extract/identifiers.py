"""Finds identifiers (paths, names in code, ids, long numbers, addresses), their uses, and lines that explain them.

Identifiers cannot be guessed or paraphrased, so a digest must show them exactly. Identifiers are found by their shape,
one word at a time. For each identifier, usage counts and at most two lines are stored, so the index stays small in a
long session.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
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
    found: dict[str, str] = {}
    place = word.replace("\\", "/") if "\\" in word else word
    numbered = _WITH_LINE_NUMBER.match(place)
    if numbered:
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
"""Shorter lines cannot contain an identifier."""
_MAX_LINE_CHARS = 240
"""Longer lines are read in pieces of this length."""
_BREAK_CHARS = " ,;&(){}[]<>\"'"
"""Characters after which a line may be cut without cutting an identifier."""
_EXPLAINING_WORDS = 4
"""Least number of words with which a line counts as an explanation of its identifiers."""
_SHORT_LINE_CHARS = 100
_DEFINITIONS = (
    *("class ", "const ", "def ", "export ", "fn ", "func ", "function ", "interface ", "pub ", "struct ", "type "),
)
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
    identifiers: tuple[str, ...]
    clarity: int
    """How well the line explains its identifiers; higher is better."""


class Identifier(NamedTuple):
    """How an identifier was used, and the lines that explain it."""

    kind: str
    message_count: int
    last_index: int
    """Index of the newest message that contains it."""
    call_count: int
    """Number of messages in which it is an argument of a call."""
    user_count: int
    """Number of messages in which the user wrote it."""
    model_count: int
    """Number of messages in which the model wrote it as text."""
    write_count: int
    """Number of messages in which a call wrote it as content."""
    lines: tuple[SourceLine, ...]
    """The line that explains it best, then the latest line if that is a different one."""


def reuse_probability(identifier: Identifier, end: int) -> float:
    """The probability (0 to 1) that an identifier is needed again from message `end` on.

    The weights are rounded values of a logistic regression on real sessions. Use in a call matters most, then use in a
    text of the user or the model, then how often and how recently the identifier was used.
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
    """The identifiers of the messages read so far."""

    def __init__(self, prior: Mapping[str, Identifier], forgotten: frozenset[int]) -> None:
        self.identifiers, self.forgotten = dict(prior), forgotten
        self._by_word: dict[str, tuple[tuple[str, str], ...]] = {}
        self._by_line: dict[str, dict[str, str]] = {}
        self._uses: dict[str, _MessageUse] = {}

    def read(  # noqa: PLR0913 (keyword arguments)
        self,
        index: int,
        text: str,
        origin: int,
        *,
        source: str = "",
        is_call: bool = False,
        lines: list[IdentifiedLine] | None = None,
    ) -> None:
        """Add the identifiers in a text of message `index`, and append its lines to `lines`."""
        for url in [found.rstrip(".,;:") for found in _URL.findall(text)] if "://" in text else ():
            self._use(url, "url", SourceLine(url, index, source, (url,), origin), origin, is_call=is_call)
        by_line = self._by_line
        for piece in _split_lines(text):
            found = by_line.get(piece)
            if found is None:
                found = by_line[piece] = self._find(piece)
            if lines is not None:
                lines.append((piece, tuple(found)))
            if found:
                line = SourceLine(piece, index, source, tuple(found), _clarity(piece, origin))
                for name, kind in found.items():
                    self._use(name, kind, line, origin, is_call=is_call)

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

    def _use(self, name: str, kind: str, line: SourceLine, origin: int, *, is_call: bool) -> None:
        use = self._uses.get(name)
        if use is None:
            self._uses[name] = _MessageUse(kind, line, origin, is_call)
        else:
            use.is_call = use.is_call or is_call
            use.is_write = use.is_write or origin == Origin.WRITE
            use.origin = max(use.origin, origin)
            if line.clarity > use.line.clarity:
                use.line = line

    def finish_message(self, index: int) -> None:
        """Add the uses in message `index` to the counts.

        If the index is too large, remove the least useful identifiers.
        """
        identifiers = self.identifiers
        for name, use in self._uses.items():
            old = identifiers.get(name) or Identifier(use.kind, 0, 0, 0, 0, 0, 0, (use.line,))
            best = old.lines[0] if old.lines[0].clarity > use.line.clarity else use.line
            identifiers[name] = Identifier(
                old.kind,
                old.message_count + 1,
                index,
                old.call_count + use.is_call,
                old.user_count + (use.origin == Origin.USER),
                old.model_count + (use.origin == Origin.MODEL),
                old.write_count + use.is_write,
                (best,) if best is use.line else (best, use.line),
            )
        self._uses = {}
        if len(identifiers) > _MAX_IDENTIFIERS * 3 // 2:
            ranked = sorted(identifiers, key=lambda name: (-reuse_probability(identifiers[name], index + 1), name))
            self.forgotten |= {_checksum(name) for name in ranked[_MAX_IDENTIFIERS:]}
            for name in ranked[_MAX_IDENTIFIERS:]:
                del identifiers[name]


def was_forgotten(name: str, forgotten: Collection[int]) -> bool:
    """Whether an identifier was removed from the index. 32-bit checksums are compared, so a wrong True is rare."""
    return _checksum(name) in forgotten


def _checksum(name: str) -> int:
    return crc32(name.encode("utf-8", "replace"))


class _MessageUse:
    __slots__ = ("is_call", "is_write", "kind", "line", "origin")

    def __init__(self, kind: str, line: SourceLine, origin: int, is_call: bool) -> None:
        self.kind, self.line, self.origin, self.is_call = kind, line, origin, is_call
        self.is_write = origin == Origin.WRITE


def _split_lines(text: str) -> Iterator[str]:
    """The lines of a text, without spaces at both ends.

    A long line is split into pieces of at most `_MAX_LINE_CHARS`.
    """
    for raw in text.split("\n"):
        line, start = raw.strip(), 0
        while len(line) - start > _MAX_LINE_CHARS:
            middle, limit = start + _MAX_LINE_CHARS // 2, start + _MAX_LINE_CHARS
            last = max([line.rfind(char, middle, limit) for char in _BREAK_CHARS])
            cut = last + 1 or limit
            yield line[start:cut].rstrip()
            start = _SPACES.match(line, cut).end()  # type: ignore[union-attr]  # it matches everywhere
        if len(line) - start >= _MIN_LINE_CHARS:
            yield line[start:]


def _clarity(line: str, origin: int) -> int:
    """How well a line explains its identifiers.

    The score is higher for a line of several words, a short line, a definition, and a line from the user or the model.
    """
    words = len(line.split(None, _EXPLAINING_WORDS))
    clarity = 2 * origin + (4 if words >= _EXPLAINING_WORDS else -4 if words == 1 else 0)
    if len(line) <= _SHORT_LINE_CHARS:
        clarity += 2
    if line.lstrip("0123456789→:\t ").startswith(_DEFINITIONS):
        clarity += 3
    return clarity
