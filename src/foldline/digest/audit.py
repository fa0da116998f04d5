"""The loss report of a digest: which facts it shows, which facts it lacks, and which of its claims have no source.

A digest shows a file or an identifier if the text of the digest contains the name. It shows a setting if the text
contains both the name and the value. A digest shows a request of the user if the digest contains all names and numbers
of the request. These must be in an entry with the handle of the request, or in text that a model wrote. A digest shows
any other fact if the text contains most of the fact's words.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from foldline.digest.extract.facts import Facts
from foldline.digest.extract.identifiers import (
    WORD,
    SourceLine,
    identifiers_in,
    names_in,
    reuse_probability,
    was_forgotten,
)
from foldline.digest.markup import entry, is_local_digest, quote, quote_lines, read_entries, turn_entry
from foldline.digest.turns import FIRST_FORGOTTEN, FORGOTTEN, LAST_FORGOTTEN, MAX_TURNS
from foldline.fold import COUNTED_NAMES, LISTED_FACTS, Loss
from foldline.plan.timeline import handle

AUDITED_KINDS = ("open", "failed", "modified", "produced", "error")
"""Kinds of facts that a digest should show, the most important first."""
_WORD_SHARE = 0.7
"""The share of a fact's words that a text must contain to show the fact."""
_ENTRY_CHARS = 160
_MAX_WORD_CHARS, _LABEL_CHARS = 60, 60
"""Maximum lengths in characters: of the word around a name, and of the source that is written after a name.

If the word around a name is longer, the line with the name is not quoted.
"""
_ANY_WORD = re.compile(r"\w+")
_FACT_WORD = re.compile(r"[\w./-]{4,}")
_HANDLES = re.compile(r"\[#[^\]\n]{0,200}\]")
_QUOTED_REQUEST = re.compile(
    r"\b(?:user|asked|said|wants?|wanted|requested|insisted)\b[^\"“\n]{0,60}[\"“]([^\"”\n]{12,300})[\"”]"
)


class _ShownText:
    """A text of a digest, and the words in it."""

    def __init__(self, text: str) -> None:
        self.text, self.lower = text, text.lower()
        self.words = frozenset(_ANY_WORD.findall(text))

    def has_name(self, name: str) -> bool:
        """Whether the text contains the name, and not only as part of a longer word."""
        return name in self.text and self.words.issuperset(_ANY_WORD.findall(name))


class _AuditedDigest(_ShownText):
    """The text of a digest, its entries by message index, and the part of the text that a model wrote."""

    def __init__(self, text: str, end: int) -> None:
        super().__init__(text)
        self.entries: dict[int, str] = {}
        quoted = set[str]()
        for _, speaker, words, indexes in read_entries(text, end):
            for index in indexes:
                self.entries[index] = f"{self.entries.get(index, '')}\n{words}"
            if speaker:
                quoted.update(turn_entry(speaker, words, indexes[:1]).split("\n"))
        by_model = [] if is_local_digest(text) else [line for line in text.split("\n") if line not in quoted]
        self.by_model = _ShownText("\n".join(by_model))


class _AuditedFact(NamedTuple):
    entry: str
    """The digest line that would show the fact."""
    words: frozenset[str]
    name: str = ""

    def is_shown(self, digest: _AuditedDigest) -> bool:
        """Whether a digest shows the fact.

        In text that a model wrote, the words of the fact may be in any order.
        """
        if self.name:
            return digest.has_name(self.name) or self.words <= digest.by_model.words
        return _has_most(self.words, digest.lower)


class _AuditedRequest(NamedTuple):
    """A text that the user wrote. `indexes` are the indexes of the messages that contain the text."""

    text: str
    indexes: list[int]
    words: frozenset[str]
    names: frozenset[str]

    @property
    def entry(self) -> str:
        """The digest line that would show the request."""
        return entry(self.text, self.indexes[-1:], max_chars=_ENTRY_CHARS)

    def is_shown(self, digest: _AuditedDigest) -> bool:
        """Whether a digest shows the request.

        The digest must contain all names of the request. If the request has names, and the digest has an entry for the
        request, this is enough. Otherwise, the digest must also contain most words of the request.
        """
        own = _ShownText("\n".join([digest.entries[index] for index in self.indexes if index in digest.entries]))
        if not all(own.has_name(name) or digest.by_model.has_name(name) for name in self.names):
            return False
        return bool(own.text and self.names) or _has_most(self.words, own.lower + digest.by_model.lower)


def _has_most(words: Collection[str], lower: str) -> bool:
    return sum(word in lower for word in words) >= _WORD_SHARE * len(words)


def audit(
    text: str, facts: Facts, *, kept_indexes: Collection[int] = (), max_reported: int | None = LISTED_FACTS
) -> Loss:
    """The loss report of a digest. Facts of messages in `kept_indexes` are ignored.

    The report lists at most `max_reported` missing facts; None means all.
    """
    requests = _requests(facts, kept_indexes)
    names = {name for request in requests for name in request.names}
    audited: list[_AuditedRequest | _AuditedFact] = [*requests, *_other_facts(facts, kept_indexes, names)]
    digest = _AuditedDigest(text, facts.end)
    missing = [fact.entry.removeprefix("- ") for fact in audited if not fact.is_shown(digest)]
    forgotten = facts.marks.get(FORGOTTEN, 0)
    kept = len(audited) - len(missing)
    if forgotten:
        handles = (facts.marks[FIRST_FORGOTTEN], facts.marks[LAST_FORGOTTEN])
        missing.insert(0, f"{forgotten:,} old prompts [{handle(*handles)}]")
    return Loss(
        facts=len(audited) + forgotten,
        kept=kept,
        missing=tuple(missing[:max_reported]),
        unsourced=tuple(dict.fromkeys(_unsourced_claims(text, facts)))[:LISTED_FACTS],
    )


def _requests(facts: Facts, kept_indexes: Collection[int]) -> list[_AuditedRequest]:
    """The different texts that the user wrote, the most important first.

    The first prompt is followed by corrections, refusals and answers, and then by the other prompts. In each group, the
    newest texts come first.
    """
    found: dict[str, _AuditedRequest] = {}
    ranks: dict[str, int] = {}
    for place, turn in enumerate(facts.turns):
        for said in turn.user_words:
            text = quote_lines(said.text)
            words = frozenset(_FACT_WORD.findall(text[: 4 * _ENTRY_CHARS].lower()))
            if words and said.message_index not in kept_indexes:
                request = found.pop(text, None) or _AuditedRequest(text, [], words, names_in(text))
                found[text] = request._replace(indexes=[*request.indexes, said.message_index])
                is_special = said.kind != "user" or turn.is_correction
                ranks[text] = min(ranks.get(text, 2), 0 if place == 0 else 1 if is_special else 2)
    return sorted(found.values(), key=lambda request: (ranks[request.text], -request.indexes[-1]))


def _other_facts(facts: Facts, kept_indexes: Collection[int], requested: Collection[str]) -> Iterator[_AuditedFact]:
    """The facts of the kinds in `AUDITED_KINDS`, the settings, and the most useful identifiers that are not in
    `requested`.
    """
    by_kind = facts.by_kind(kept_indexes)
    for kind in AUDITED_KINDS:
        for fact in by_kind.get(kind, ()):
            name = fact.text.rpartition("/")[2] if kind == "modified" else ""
            words = frozenset([name] if name else _FACT_WORD.findall(fact.text[: 4 * _ENTRY_CHARS].lower()))
            if words:
                yield _AuditedFact(entry(fact.text, fact.indexes, max_chars=_ENTRY_CHARS), words, name)
    identifiers, quoted = facts.identifiers, set[str]()
    settings = {key: it for key, it in facts.settings.items() if it[1] not in kept_indexes}
    for text, index in reversed(settings.values()):
        yield _AuditedFact(entry(text, (index,)), frozenset(_ANY_WORD.findall(text)), quote(text))
    known = {*requested, *(name for _, name in settings)}
    names = [name for name, it in identifiers.items() if it.last_index not in kept_indexes and name not in known]
    names.sort(key=lambda name: (-reuse_probability(identifiers[name], facts.end), name))
    for name in names[:COUNTED_NAMES]:
        line = identifiers[name].line
        shown = _line_with(name, line)
        if shown in quoted:
            shown = _labelled(name, line.source)
        quoted.add(shown)
        yield _AuditedFact(entry(shown, (line.message_index,), max_chars=_ENTRY_CHARS), frozenset([name]), name)


def _line_with(name: str, line: SourceLine) -> str:
    """The text of a line, cut at its start if the name is far from the start.

    If the name is inside a very long word, such as a piece of JSON, returns the name with its source instead.
    """
    at, text = line.text.find(name), line.text
    start, end = text.rfind(" ", 0, max(0, at)) + 1, text.find(" ", at)
    if (len(text) if end < 0 else end) - start > _MAX_WORD_CHARS:
        return _labelled(name, line.source)
    return text if at <= _ENTRY_CHARS // 2 else text[text.find(" ", at - _ENTRY_CHARS // 2, at) + 1 :]


def _labelled(name: str, source: str) -> str:
    """The name, followed by the file or command that it comes from."""
    return f"{name} ({source[:_LABEL_CHARS]})" if source else name


def _unsourced_claims(text: str, facts: Facts) -> Iterator[str]:
    """Paths, ids and quoted requests in a digest that certainly do not occur in the messages."""
    bare = _HANDLES.sub(" ", text)
    for word in WORD.findall(bare) if facts.is_complete else ():
        for name, kind in identifiers_in(word):
            if kind in {"path", "id"} and name not in facts.identifiers and not was_forgotten(name, facts.forgotten):
                yield name
    said = " ".join(facts.user_text.lower().split())
    for quoted in _QUOTED_REQUEST.findall(bare) if len(facts.turns) < MAX_TURNS else ():
        if " ".join(quoted.split()).lower().strip(" .…!?") not in said:
            yield quote(quoted)
