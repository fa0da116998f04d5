"""The loss report of a digest: which facts it shows, which facts it lacks, and which of its claims have no source.

A digest shows a file or an identifier if its text contains the name. It shows a request of the user if it contains all
names and numbers of the request, in an entry with the handle of the request or in text that a model wrote. It shows any
other fact if its text contains most of the fact's words.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from foldline.digest.extract.facts import Facts
from foldline.digest.extract.identifiers import WORD, identifiers_in, names_in, reuse_probability
from foldline.digest.markup import entry, is_local_digest, quote, quote_lines, read_entries, turn_entry
from foldline.digest.turns import FIRST_FORGOTTEN, FORGOTTEN, LAST_FORGOTTEN, MAX_TURNS
from foldline.fold import COUNTED_NAMES, LISTED_FACTS, Loss
from foldline.plan.timeline import handle

AUDITED_KINDS = ("open", "failed", "modified", "produced", "error")
"""Kinds of facts that a digest should show, the most important first."""
_WORD_SHARE = 0.7
"""The share of a fact's words that a text must contain to show the fact."""
_ENTRY_CHARS = 160
_ANY_WORD = re.compile(r"\w+")
_FACT_WORD = re.compile(r"[\w./-]{4,}")
_HANDLES = re.compile(r"\[#[^\]\n]{0,200}\]")
_QUOTED_REQUEST = re.compile(
    r"\b(?:user|asked|said|wants?|wanted|requested|insisted)\b[^\"“\n]{0,60}[\"“]([^\"”\n]{12,300})[\"”]"
)


class _ShownText:
    """A text of a digest, and the words in it."""

    def __init__(self, text: str) -> None:
        self.text, self.lower, self.words = text, text.lower(), frozenset(_ANY_WORD.findall(text))

    def has_names(self, names: Iterable[str]) -> bool:
        """Whether the text contains these names, and none of them only as part of a longer word."""
        return all(name in self.text and self.words.issuperset(_ANY_WORD.findall(name)) for name in names)

    def has_most(self, words: Collection[str]) -> bool:
        """Whether the text contains most of these words, which are in lower case."""
        return sum(word in self.lower for word in words) >= _WORD_SHARE * len(words)


class _Audited(NamedTuple):
    """One fact. `is_shown` says whether the digest shows the fact. `indexes` are the indexes of its messages."""

    is_shown: bool
    text: str
    indexes: Sequence[int]


def audit(
    text: str, facts: Facts, *, kept_indexes: Collection[int] = (), max_reported: int | None = LISTED_FACTS
) -> Loss:
    """The loss report of a digest. Facts of messages in `kept_indexes` are ignored.

    The report lists at most `max_reported` missing facts; None means all.
    """
    audited = [*_audited_requests(text, facts, kept_indexes), *_audited_facts(_ShownText(text), facts, kept_indexes)]
    missing = [entry(it.text, it.indexes, max_chars=_ENTRY_CHARS)[2:] for it in audited if not it.is_shown]
    kept, forgotten = len(audited) - len(missing), facts.marks.get(FORGOTTEN, 0)
    if forgotten:
        handles = (facts.marks[FIRST_FORGOTTEN], facts.marks[LAST_FORGOTTEN])
        missing.insert(0, f"{forgotten:,} old prompts [{handle(*handles)}]")
    return Loss(
        facts=len(audited) + forgotten,
        kept=kept,
        missing=tuple(missing[:max_reported]),
        unsourced=tuple(dict.fromkeys(_unsourced_claims(text, facts)))[:LISTED_FACTS],
    )


def _audited_requests(text: str, facts: Facts, kept_indexes: Collection[int]) -> Iterator[_Audited]:
    """The different texts that the user wrote, the most important first.

    The first prompt is followed by corrections, refusals and answers, and then by the other prompts. In each group, the
    newest texts come first.
    """
    entries, quoted = dict[int, str](), set[str]()
    for _, speaker, words, indexes in read_entries(text, facts.end):
        entries |= {index: f"{entries.get(index, '')}\n{words}" for index in indexes}
        quoted.update(turn_entry(speaker, words, indexes[:1]).split("\n") if speaker else ())
    by_model = "" if is_local_digest(text) else "\n".join([line for line in text.split("\n") if line not in quoted])
    requests: dict[str, tuple[int, tuple[int, ...]]] = {}
    for place, turn in enumerate(facts.turns):
        for said in turn.user_words:
            if said.message_index not in kept_indexes:
                rank = 0 if place == 0 else 1 if said.kind != "user" or turn.is_correction else 2
                best, indexes = requests.get(request := quote_lines(said.text), (rank, ()))
                requests[request] = min(rank, best), (*indexes, said.message_index)
    for request, (_, indexes) in sorted(requests.items(), key=lambda each: (each[1][0], -each[1][1][-1])):
        terms, names = _words(request), names_in(request)
        own = "\n".join([entries[index] for index in indexes if index in entries])
        shown = _ShownText(f"{own}\n{by_model}")
        if terms:
            is_shown = shown.has_names(names) and (bool(own and names) or shown.has_most(terms))
            yield _Audited(is_shown, request, indexes[-1:])


def _audited_facts(digest: _ShownText, facts: Facts, kept_indexes: Collection[int]) -> Iterator[_Audited]:
    """The facts of the kinds in `AUDITED_KINDS`, and the most useful other identifiers."""
    by_kind = facts.by_kind(kept_indexes)
    for fact in (fact for kind in AUDITED_KINDS for fact in by_kind.get(kind, ())):
        name = fact.text.rpartition("/")[2] if fact.kind == "modified" else ""
        if name or (words := _words(fact.text)):
            yield _Audited(digest.has_names([name]) if name else digest.has_most(words), fact.text, fact.indexes)
    requests = [quote_lines(words.text) for words in facts.user_words if words.message_index not in kept_indexes]
    known, identifiers = names_in("\n".join(requests)), facts.identifiers
    names = [name for name, it in identifiers.items() if it.last_index not in kept_indexes and name not in known]
    names.sort(key=lambda name: (-reuse_probability(identifiers[name], facts.end), name))
    for name in names[:COUNTED_NAMES]:
        yield _Audited(digest.has_names([name]), name, (identifiers[name].last_index,))


def _words(text: str) -> frozenset[str]:
    return frozenset(_FACT_WORD.findall(text[: 4 * _ENTRY_CHARS].lower()))


def _unsourced_claims(text: str, facts: Facts) -> Iterator[str]:
    """Paths, ids and quoted requests in a digest that certainly do not occur in the messages."""
    bare = _HANDLES.sub(" ", text)
    for word in WORD.findall(bare) if facts.is_complete else ():
        for name, kind in identifiers_in(word):
            if kind in {"path", "id"} and name not in facts.identifiers and name not in facts.forgotten:
                yield name
    said = " ".join(facts.user_text.lower().split())
    for quoted in _QUOTED_REQUEST.findall(bare) if len(facts.turns) < MAX_TURNS else ():
        if " ".join(quoted.split()).lower().strip(" .…!?") not in said:
            yield quote(quoted)
