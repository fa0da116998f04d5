"""Recall by handle: exactly what was said, a page at a time.

A handle names messages by their number (`#120`, `#120-131`), on the path of the one who asks or on a strand of another
session (`17#120`). What a stub stands for is a message like any other, however large: a page ends with the handle to go
on with (`#120-131+8000`: from the 8,000th character of #120 on). Handles come from a model, so they are read strictly.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from foldline.errors import InputError
from foldline.ledger import Branch, Head, Store
from foldline.measure.estimator import Counter, Estimator
from foldline.plan.timeline import handle
from foldline.recall.excerpt import searchable_text
from foldline.recall.search import LEAST_TOKENS, ROLE_CHARS, TOKENS, RecalledMessage, RecalledRun

CHARS_A_TOKEN = 16
"""No text has more characters a token on the mean than this, spaces aside."""
HANDLE_HINT = "a handle looks like #120 or #120-131, as in the digest or in what recall found"
_HANDLE = re.compile(
    r"\s*([1-9][0-9]{0,15})?#([1-9][0-9]{0,11})(?:-([1-9][0-9]{0,11}))?(?:\+([0-9]{1,12}))?\s*", re.ASCII
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Handle:
    """Messages by their place, counted from 0."""

    first: int
    last: int
    strand: int | None = None
    skip: int = 0
    """Characters of the first message that were read before."""

    def __str__(self) -> str:
        return f"{self.strand or ''}{handle(self.first, self.last)}{f'+{self.skip}' if self.skip else ''}"


def parse_handle(text: str) -> Handle:
    """The handle that a text is.

    >>> parsed("#120-131"), str(parsed("17#5+8000"))
    (Handle(first=119, last=130, strand=None, skip=0), '17#5+8000')
    """
    found = _HANDLE.fullmatch(text)
    if found is None:
        raise InputError(f"not a handle: {text!r:.60}", hint=HANDLE_HINT)
    strand, first, last, skip = (int(part or 0) for part in found.groups())
    if last and last < first:
        raise InputError(f"the handle {text.strip():.60} ends before it begins", hint=HANDLE_HINT)
    return Handle(first=first - 1, last=(last or first) - 1, strand=strand or None, skip=skip)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What a handle names, as much as fits."""

    result: RecalledRun
    rest: Handle | None = None
    """Where to go on."""
    tokens: int = 0

    def __str__(self) -> str:
        return str(self.result) + (f"\n\n[goes on: recall {self.rest}]" if self.rest else "")


def fetch(
    store: Store, where: Branch | Head, wanted: Handle, tokens: int = TOKENS, counter: Counter | None = None
) -> Page:
    """The messages that a handle names, word for word, from where it says on."""
    if tokens < LEAST_TOKENS:
        raise InputError(f"no room in {tokens} tokens", hint=f"at least {LEAST_TOKENS}")
    head = _head(store, where, wanted)
    if wanted.last >= head.length:
        raise InputError(f"{wanted} is not there: {head.length:,} messages were said", hint=HANDLE_HINT)
    return _PageBuilder(wanted, tokens, counter or Estimator()).filled(store, head)


def _head(store: Store, where: Branch | Head, wanted: Handle) -> Head:
    """The path that a handle's numbers count on."""
    if wanted.strand is None:
        return where if isinstance(where, Head) else store.head(where)
    sql = "SELECT MAX(position) FROM messages WHERE owner = ? AND strand = ?"
    newest = store.tx.read(lambda connection: connection.run(sql, (store.tx.owner.id, wanted.strand)))[0][0]
    return Head() if newest is None else Head(strand=wanted.strand, length=newest + 1)


class _PageBuilder:
    """A page that is filled until it is full."""

    def __init__(self, wanted: Handle, tokens: int, counter: Counter) -> None:
        self.wanted, self.tokens, self.counter = wanted, tokens, counter
        self.lines: tuple[RecalledMessage, ...] = ()

    def filled(self, store: Store, head: Head) -> Page:
        """Messages are read while there is room, and no further."""
        skip = self.wanted.skip
        for stored in store.read(head, start=self.wanted.first, stop=self.wanted.last + 1):
            whole = searchable_text(stored.message)
            text = whole[skip:]
            rest = replace(self.wanted, first=stored.position, skip=skip)
            line = RecalledMessage(
                position=stored.position, role=stored.message.role[:ROLE_CHARS], text=text, whole=text == whole
            )
            length = self._most(line, rest)
            if length < len(text):
                length = max(length, int(not self.lines))  # one character at least, or nobody would ever get further
                return self._cut(line, rest, length) if length else self._page(self.lines, rest)
            self.lines += (line,)
            skip = 0
        return self._page(self.lines, None)

    def _cut(self, line: RecalledMessage, rest: Handle, length: int) -> Page:
        part = replace(line, text=line.text[:length], whole=False)
        return self._page((*self.lines, part), replace(rest, skip=rest.skip + length))

    def _most(self, line: RecalledMessage, rest: Handle) -> int:
        """How many characters of a message still fit."""
        text = line.text
        if len(text) <= CHARS_A_TOKEN * self.tokens and self._cut(line, rest, len(text)).tokens <= self.tokens:
            return len(text)
        fits, too_many = 0, min(len(text), CHARS_A_TOKEN * self.tokens) + 1
        while too_many - fits > 1:
            middle = (fits + too_many) // 2
            if self._cut(line, rest, middle).tokens <= self.tokens:
                fits = middle
            else:
                too_many = middle
        return fits

    def _page(self, lines: tuple[RecalledMessage, ...], rest: Handle | None) -> Page:
        first, last = (lines[0].position, lines[-1].position) if lines else (self.wanted.first, self.wanted.last)
        named = Handle(first=first, last=last, strand=self.wanted.strand, skip=self.wanted.skip)
        page = Page(result=RecalledRun(handle=str(named), lines=lines), rest=rest)
        return replace(page, tokens=self.counter.count(str(page)).upper)
