"""Uses: where each name of a session stood, how it was used, and the line that explains it best.

Only names are kept, and for each of them at most two lines, so that what is remembered of a session grows far slower
than the session. The odds that a name is needed again are judged from nothing but its use.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from math import exp, log
from typing import NamedTuple
from zlib import crc32

from foldline.digest.extract.file_contents import Found
from foldline.digest.extract.identifiers import WORD, names_of, urls

ASKED, SAID, DID, WROTE, SAW = 4, 3, 2, 1, 0
"""Who a line comes from: the user, the model, a call of it, what a call wrote, or what a tool returned."""

_MOST = 3_000
"""Names that are kept after a clearing; they are cleared when there are half as many again."""
_LONGEST = 240
"""Longer lines are looked at in pieces of this many characters."""
_CUTS = " ,;&(){}[]<>\"'"
"""Where a line may be cut without cutting a name."""
_EXPLAINS = 4
"""Words that a line needs to explain a name in it."""
_SHORT = 100
"""A line up to this many characters can be shown whole."""
_DEFINES = (
    "class ",
    "const ",
    "def ",
    "export ",
    "fn ",
    "func ",
    "function ",
    "interface ",
    "pub ",
    "struct ",
    "type ",
)
_KINDS = {"path": 0.9, "folder": -1.3, "number": -3.0, "url": -3.2}
"""By how much the kind of a name raises or lowers its odds."""


class Line(NamedTuple):
    """A line as it stood in a message."""

    text: str
    at: int
    source: str
    """The file or command it was read from; "" for talk."""
    names: tuple[str, ...]
    worth: int
    """How well it explains the names in it."""


class Name(NamedTuple):
    """A word that must be kept letter for letter, how it was used, and the lines that explain it."""

    kind: str
    spread: int
    """In how many messages it stood."""
    last: int
    """The newest of them."""
    called: int
    """In how many messages a call was made with it."""
    asked: int
    """In how many the user wrote it."""
    said: int
    """In how many the model wrote it in words."""
    wrote: int
    """In how many it was part of what a call wrote."""
    lines: tuple[Line, ...]
    """The line that explains it best, and the latest one where that is another."""


def likely(name: Name, end: int) -> float:
    """How likely a name is to be needed again, between 0 and 1.

    The weights are a logistic fit on real sessions, rounded: a name that a call was made with matters most, then one
    that somebody wrote, then how widely and how lately it was used.
    """
    age = log(max(1, end - name.last))
    score = -3.2 - 0.35 * age + 0.35 * log(1 + name.spread) + _KINDS.get(name.kind, 0.0)
    if name.called:
        score += 2.2 + 0.5 * log(1 + name.called) + 0.1 * age
    if name.asked:
        score += 0.6 + 0.4 * log(1 + name.asked)
    if name.said:
        score += 0.4
    if name.wrote:
        score += 0.3
    return 1 / (1 + exp(-score))


class Uses:
    """What is known of names, while messages are read."""

    def __init__(self, prior: Mapping[str, Name], forgotten: frozenset[int]) -> None:
        self.names, self.forgotten = dict(prior), forgotten
        self._known: dict[str, tuple[tuple[str, str], ...]] = {}
        self._here: dict[str, _Use] = {}

    def take(  # noqa: PLR0913 (what is not always given has a name at the call)
        self,
        index: int,
        text: str,
        who: int,
        *,
        source: str = "",
        called: bool = False,
        rows: list[Found] | None = None,
    ) -> None:
        """Take the names of a text in a message, line by line; `rows` takes the lines with their names."""
        known = self._known
        for address in urls(text):
            self._use(address, "url", Line(address, index, source, (address,), who), who, called=called)
        for piece in _pieces(text):
            found: dict[str, str] = {}
            for word in WORD.findall(piece):
                names = known.get(word)
                if names is None:
                    names = known[word] = names_of(word)
                if names:
                    found.update(names)
            if rows is not None:
                rows.append((piece, tuple(found)))
            if found:
                line = Line(piece, index, source, tuple(found), _worth(piece, who))
                for name, kind in found.items():
                    self._use(name, kind, line, who, called=called)

    def _use(self, name: str, kind: str, line: Line, who: int, *, called: bool) -> None:
        seen = self._here.get(name)
        if seen is None:
            self._here[name] = _Use(kind, line, who, called)
        else:
            seen.called = seen.called or called
            seen.wrote = seen.wrote or who == WROTE
            seen.who = max(seen.who, who)
            if line.worth > seen.line.worth:
                seen.line = line

    def commit(self, index: int) -> None:
        """A message is read: add how it used its names to what is known of them."""
        names = self.names
        for text, use in self._here.items():
            old = names.get(text) or Name(use.kind, 0, 0, 0, 0, 0, 0, (use.line,))
            best = old.lines[0] if old.lines[0].worth > use.line.worth else use.line
            names[text] = Name(
                old.kind,
                old.spread + 1,
                index,
                old.called + use.called,
                old.asked + (use.who == ASKED),
                old.said + (use.who == SAID),
                old.wrote + use.wrote,
                (best,) if best is use.line else (best, use.line),
            )
        self._here = {}
        if len(names) > _MOST * 3 // 2:
            ranked = sorted(names, key=lambda text: (-likely(names[text], index + 1), text))
            self.forgotten |= {crc32(text.encode("utf-8", "replace")) for text in ranked[_MOST:]}
            for text in ranked[_MOST:]:
                del names[text]


def seen_before(name: str, forgotten: Collection[int]) -> bool:
    """Whether a name is among those that were let go. One in some thousand millions is taken for another."""
    return crc32(name.encode("utf-8", "replace")) in forgotten


class _Use:
    """How one message used a name."""

    __slots__ = ("called", "kind", "line", "who", "wrote")

    def __init__(self, kind: str, line: Line, who: int, called: bool) -> None:
        self.kind, self.line, self.who, self.called, self.wrote = kind, line, who, called, who == WROTE


def _pieces(text: str) -> Iterator[str]:
    """The lines of a text without the space around them, in pieces where they are too long to be shown."""
    for raw in text.split("\n"):
        line = raw.strip()
        while len(line) > _LONGEST:
            cut = max([line.rfind(mark, _LONGEST // 2, _LONGEST) for mark in _CUTS]) + 1 or _LONGEST
            yield line[:cut].rstrip()
            line = line[cut:].lstrip()
        if len(line) > _EXPLAINS:
            yield line


def _worth(line: str, who: int) -> int:
    """How well a line explains the names in it: enough words, not too many, said by somebody or defining something."""
    words = len(line.split(None, _EXPLAINS))
    worth = 2 * who + (4 if words >= _EXPLAINS else -4 if words == 1 else 0)
    if len(line) <= _SHORT:
        worth += 2
    if line.lstrip("0123456789→:\t ").startswith(_DEFINES):
        worth += 3
    return worth
