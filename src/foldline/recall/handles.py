"""Recall by handle: returns messages verbatim, one page at a time.

A handle names messages of the current branch by their numbers (`#120`, `#120-131`). A handle for messages of another
session begins with the number of a segment (a run of messages that branches share): `17#120`. If a page ends within a
message, the handle of the next page contains a position: `#120-131+8000` starts at character 8,000 of #120.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from foldline.errors import InputError, check_type
from foldline.ledger import Branch, Head, Store
from foldline.measure.estimator import Counter, Estimator
from foldline.plan.timeline import handle
from foldline.recall.excerpt import searchable_text
from foldline.recall.passages import ROLE_CHARS
from foldline.recall.result import RecalledMessage, RecalledPassage, RecallResult
from foldline.recall.search import LEAST_TOKENS, TOKENS

MAX_CHARS_PER_TOKEN = 16
"""The largest number of characters per token that is assumed for a page. Only runs of spaces have more characters."""
HANDLE_HINT = "a handle looks like #120 or #120-131, as in the digest or in what recall found"
_HANDLE = re.compile(
    r"\s*([1-9][0-9]{0,15})?#([1-9][0-9]{0,11})(?:-([1-9][0-9]{0,11}))?(?:\+([0-9]{1,12}))?\s*", re.ASCII
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Handle:
    """A range of messages. Positions are counted from 0."""

    first: int
    last: int
    segment: int | None = None
    skip: int = 0
    """Number of characters that are left out at the start of the first message."""

    def __str__(self) -> str:
        return f"{self.segment or ''}{handle(self.first, self.last)}{f'+{self.skip}' if self.skip else ''}"


def parse_handle(text: str) -> Handle:
    """Parse a handle, with or without its #. Raises `InputError` if the text is not a handle.

    >>> parse_handle("#120-131"), str(parse_handle("17#5+8000"))
    (Handle(first=119, last=130, segment=None, skip=0), '17#5+8000')
    """
    check_type(text, str, "a handle", hint=HANDLE_HINT)
    found = _HANDLE.fullmatch(text) or _HANDLE.fullmatch(f"#{text.strip()}")
    if found is None:
        raise InputError(f"not a handle: {text!r:.60}", hint=HANDLE_HINT)
    segment, first, last, skip = (int(part or 0) for part in found.groups())
    if last and last < first:
        raise InputError(f"the end of the handle {text.strip():.60} is before its start", hint=HANDLE_HINT)
    return Handle(first=first - 1, last=(last or first) - 1, segment=segment or None, skip=skip)


def fetch(
    store: Store, where: Branch | Head, wanted: Handle, tokens: int = TOKENS, counter: Counter | None = None
) -> RecallResult:
    """The first page of the messages that a handle names, as one passage. `rest` is the handle of the next page."""
    if tokens < LEAST_TOKENS:
        raise InputError(f"{tokens} tokens are too few for a page", hint=f"ask for at least {LEAST_TOKENS}")
    head = _head(store, where, wanted)
    if wanted.last >= head.length:
        what = f"the last message is #{head.length}" if head.length else "the session has no messages"
        raise InputError(f"unknown handle {wanted}: {what}", hint=HANDLE_HINT)
    return _PageBuilder(wanted, tokens, counter or Estimator()).build(store, head)


def has_segment(store: Store, wanted: Handle) -> bool:
    """Whether the segment that a handle names belongs to the store's owner."""
    return wanted.segment is not None and _head(store, Head(), wanted).length > 0


def _head(store: Store, where: Branch | Head, wanted: Handle) -> Head:
    """The head of the branch or segment that a handle refers to."""
    if wanted.segment is None:
        return where if isinstance(where, Head) else store.head(where)
    sql = "SELECT MAX(position) FROM messages WHERE owner = ? AND segment = ?"
    newest = store.tx.read(lambda connection: connection.run(sql, (store.tx.owner.id, wanted.segment)))[0][0]
    return Head() if newest is None else Head(segment=wanted.segment, length=newest + 1)


class _PageBuilder:
    def __init__(self, wanted: Handle, tokens: int, counter: Counter) -> None:
        self.wanted, self.tokens, self.counter = wanted, tokens, counter
        self.messages: tuple[RecalledMessage, ...] = ()

    def build(self, store: Store, head: Head) -> RecallResult:
        """Build the page. Reading stops at the first message that does not fit."""
        skip = self.wanted.skip
        for stored in store.read(head, start=self.wanted.first, stop=self.wanted.last + 1):
            whole = searchable_text(stored.message)
            text = whole[skip:]
            rest = replace(self.wanted, first=stored.position, skip=skip)
            message = RecalledMessage(
                position=stored.position, role=stored.message.shown_role[:ROLE_CHARS], text=text, is_whole=text == whole
            )
            length = self._fitting_chars(message, rest)
            if length < len(text):
                length = max(length, int(not self.messages))  # one character at least, or paging would never advance
                return self._page_with(message, rest, length) if length else self._page(self.messages, rest)
            self.messages += (message,)
            skip = 0
        return self._page(self.messages, None)

    def _page_with(self, message: RecalledMessage, rest: Handle, length: int) -> RecallResult:
        part = replace(message, text=message.text[:length], is_whole=False)
        return self._page((*self.messages, part), replace(rest, skip=rest.skip + length))

    def _fitting_chars(self, message: RecalledMessage, rest: Handle) -> int:
        text = message.text
        limit = MAX_CHARS_PER_TOKEN * self.tokens
        if len(text) <= limit and self._page_with(message, rest, len(text)).tokens <= self.tokens:
            return len(text)
        fits, too_many = 0, min(len(text), limit) + 1
        while too_many - fits > 1:
            middle = (fits + too_many) // 2
            if self._page_with(message, rest, middle).tokens <= self.tokens:
                fits = middle
            else:
                too_many = middle
        return fits

    def _page(self, messages: tuple[RecalledMessage, ...], rest: Handle | None) -> RecallResult:
        shown = self.wanted
        if messages:
            shown = replace(shown, first=messages[0].position, last=messages[-1].position)
        passage = RecalledPassage(handle=str(shown), messages=messages)
        page = RecallResult(results=(passage,), rest=str(rest or ""))
        return replace(page, tokens=self.counter.count(str(page)).upper)
