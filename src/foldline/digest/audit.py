"""The loss report of a digest: which facts it shows, which it lacks, and which of its claims have no source.

If a fact has a name (a file or an identifier), the digest shows the fact if its text contains the name. The digest
shows any other fact if its text contains most of the fact's words.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from foldline.digest.carryover import words_around
from foldline.digest.extract.facts import Fact, Facts
from foldline.digest.extract.identifiers import WORD, identifiers_in, reuse_probability, was_forgotten
from foldline.digest.extract.turns import MAX_TURNS
from foldline.digest.markup import entry, quote
from foldline.fold import Loss

AUDITED_KINDS = ("open", "failed", "modified", "produced", "decision", "error")
"""Kinds of facts that a digest should show, the most important first."""
_MAX_REPORTED = 20
_MAX_IDENTIFIERS = 150
"""Maximum number of identifiers that count as facts. The identifiers that are most likely to be needed again are
taken.
"""
_MAX_FACTS, _FIRST_FACTS = 40, 5
"""Maximum number of facts that count per kind, and the number of oldest facts among them.

The others are the newest ones.
"""
_WORD_SHARE = 0.7
"""The share of a fact's words that a text must contain to show the fact."""
_ENTRY_CHARS = 160
_FACT_WORD = re.compile(r"[\w./-]{4,}")
_HANDLES = re.compile(r"\[#[^\]\n]{0,200}\]")
_QUOTED_REQUEST = re.compile(
    r"\b(?:user|asked|said|wants?|wanted|requested|insisted)\b[^\"“\n]{0,60}[\"“]([^\"”\n]{12,300})[\"”]"
)


class _AuditedFact(NamedTuple):
    entry: str
    """The digest line that would show the fact."""
    words: frozenset[str]
    name: str = ""

    def is_shown(self, text: str, lower: str) -> bool:
        """Whether a text shows the fact; `lower` is the text in lower case."""
        if self.name:
            return self.name in text
        return sum(word in lower for word in self.words) >= _WORD_SHARE * len(self.words)


def audit(text: str, facts: Facts, *, kept_indexes: Collection[int] = ()) -> Loss:
    """The loss report of a digest. Facts of messages in `kept_indexes` are ignored."""
    audited, lower = list(_audited_facts(facts, kept_indexes)), text.lower()
    missing = [fact for fact in audited if not fact.is_shown(text, lower)]
    return Loss(
        facts=len(audited),
        kept=len(audited) - len(missing),
        missing=tuple([fact.entry.removeprefix("- ") for fact in missing[:_MAX_REPORTED]]),
        unsourced=tuple(dict.fromkeys(_unsourced_claims(text, facts)))[:_MAX_REPORTED],
    )


def _audited_facts(facts: Facts, kept_indexes: Collection[int]) -> Iterator[_AuditedFact]:
    """The facts that count: those of `AUDITED_KINDS`, then the identifiers most likely to be needed again."""
    said = [Fact("request", words.text, (words.message_index,)) for words in facts.user_words]
    by_kind = facts.by_kind(kept_indexes) | {"request": [it for it in said if it.indexes[0] not in kept_indexes]}
    for kind in ("request", *AUDITED_KINDS):
        found = by_kind.get(kind, [])
        if len(found) > _MAX_FACTS:
            found = [*found[:_FIRST_FACTS], *found[_FIRST_FACTS - _MAX_FACTS :]]
        for fact in found:
            words = frozenset(_FACT_WORD.findall(fact.text[: 4 * _ENTRY_CHARS].lower()))
            name = fact.text.rpartition("/")[2] if kind == "modified" else ""
            if words or name:
                yield _AuditedFact(entry(fact.text, fact.indexes, max_chars=_ENTRY_CHARS), words, name)
    identifiers = facts.identifiers
    names = [name for name, found in identifiers.items() if found.last_index not in kept_indexes]
    names.sort(key=lambda name: (-reuse_probability(identifiers[name], facts.end), name))
    for name in names[:_MAX_IDENTIFIERS]:
        line = identifiers[name].lines[0]
        shown = entry(words_around(line.text, name), (line.message_index,), max_chars=_ENTRY_CHARS)
        yield _AuditedFact(shown, frozenset(), name)


def _unsourced_claims(text: str, facts: Facts) -> Iterator[str]:
    """Paths, ids and quoted requests in a digest that do not occur in the facts."""
    bare = _HANDLES.sub(" ", text)
    for word in WORD.findall(bare):
        for name, kind in identifiers_in(word):
            if kind in {"path", "id"} and name not in facts.identifiers and not was_forgotten(name, facts.forgotten):
                yield name
    said = " ".join(facts.user_text.lower().split())
    for quoted in _QUOTED_REQUEST.findall(bare) if len(facts.turns) < MAX_TURNS else ():
        if " ".join(quoted.split()).lower().strip(" .…!?") not in said:
            yield quote(quoted)
