"""The loss report of a digest: which facts it shows, which it lacks, and which of its claims have no source.

If a fact has a name (a file or an identifier), the digest shows the fact if its text contains the name. The digest
shows any other fact if its text contains most of the fact's words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import NamedTuple

from foldline.digest.carryover import words_around
from foldline.digest.extract.facts import MAX_PER_KIND, Facts
from foldline.digest.extract.identifiers import WORD, identifiers_in, reuse_probability, was_forgotten
from foldline.digest.extract.open_work import OPEN_WORK_CHARS
from foldline.digest.markup import HEADINGS, entry, quote
from foldline.fold import Loss

AUDITED_KINDS = ("constraint", "request", "open", "failed", "modified", "decision", "error")
"""Kinds of facts that a digest should show, the most important first."""
_MAX_REPORTED = 20
_MAX_IDENTIFIERS = 150
"""Maximum number of identifiers that count as facts. The identifiers that are most likely to be needed again are
taken.
"""
_MAX_FACTS, _FIRST_FACTS = 40, 5
"""Maximum number of facts that count per kind, and how many of them are the first ones. The other facts are the newest
ones.
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
    audited = list(_audited_facts(facts, kept_indexes))
    missing = _missing(text, audited)
    return Loss(
        facts=len(audited),
        kept=len(audited) - len(missing),
        missing=tuple([fact.entry.removeprefix("- ") for fact in missing[:_MAX_REPORTED]]),
        unsourced=tuple(dict.fromkeys(_unsourced_claims(text, facts)))[:_MAX_REPORTED],
    )


def add_missing_facts(  # noqa: PLR0913 (keyword arguments)
    text: str,
    facts: Facts,
    *,
    min_coverage: float,
    max_tokens: int,
    count_tokens: Callable[[str], int],
    kept_indexes: Collection[int] = (),
) -> tuple[str, Loss]:
    """The text of a digest and its loss report.

    If the text shows less than the share `min_coverage` of all facts, missing facts are appended, within `max_tokens`.
    """
    loss = audit(text, facts, kept_indexes=kept_indexes)
    if loss.coverage >= min_coverage:
        return text, loss
    needed = int(min_coverage * loss.facts) + 1 - loss.kept
    lines: list[str] = []
    room = max_tokens - count_tokens(_append_carryover(text, [""]))
    for fact in _missing(text, list(_audited_facts(facts, kept_indexes)))[: 2 * needed]:
        cost = count_tokens(fact.entry) + 1
        if cost <= room and not any(fact.name and fact.name in line for line in lines):
            lines.append(fact.entry)
            room -= cost
    while lines and count_tokens(_append_carryover(text, lines)) > max_tokens:
        lines.pop()
    if not lines:
        return text, loss
    longer = _append_carryover(text, lines)
    after = audit(longer, facts, kept_indexes=kept_indexes)
    return longer, replace(after, carried=after.kept - loss.kept, unsourced=loss.unsourced)


def add_open_work(
    text: str,
    facts: Facts,
    *,
    max_tokens: int,
    count_tokens: Callable[[str], int],
    kept_indexes: Collection[int] = (),
) -> str:
    """The text of a digest, extended by the open calls and the open background work that it does not mention."""
    found = [fact for fact in facts.open_work(kept_indexes) if fact.note not in text]
    lines = [entry(fact.text, fact.indexes, max_chars=OPEN_WORK_CHARS) for fact in found]
    while lines and count_tokens(_append_carryover(text, lines)) > max_tokens:
        lines.pop()
    return _append_carryover(text, lines) if lines else text


def _append_carryover(text: str, lines: list[str]) -> str:
    """A digest with these lines added to its Carryover section. If the section is missing, it is added."""
    heading = HEADINGS[-1]
    rows = text.rstrip().split("\n")
    start = next((place for place, row in enumerate(rows) if row.strip() == heading), None)
    if start is None:
        return "\n".join([*rows, "", heading, *lines])
    stop = next((place for place in range(start + 1, len(rows)) if rows[place].startswith("# ")), len(rows))
    body = [row for row in rows[start + 1 : stop] if row.strip().lower().rstrip(".") != "none"]
    return "\n".join([*rows[: start + 1], *body, *lines, *rows[stop:]])


def _missing(text: str, audited: list[_AuditedFact]) -> list[_AuditedFact]:
    lower = text.lower()
    return [fact for fact in audited if not fact.is_shown(text, lower)]


def _audited_facts(facts: Facts, kept_indexes: Collection[int]) -> Iterator[_AuditedFact]:
    """The facts that count: those of `AUDITED_KINDS`, then the identifiers most likely to be needed again."""
    by_kind = facts.by_kind(kept_indexes)
    for kind in AUDITED_KINDS:
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
    requests = [" ".join(fact.text.split()).lower() for fact in facts.facts.values() if fact.kind == "request"]
    if len(requests) < MAX_PER_KIND:
        for quoted in _QUOTED_REQUEST.findall(bare):
            words = " ".join(quoted.split()).lower().strip(" .…!?")
            if not any(words in request for request in requests):
                yield quote(quoted)
