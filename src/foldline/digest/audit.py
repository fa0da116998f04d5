"""What a digest lost: its text against the facts of what it stands for.

A fact is shown when its name stands in the text, or most of its words do, since a model tells things in its own words.
What is not shown only recall can give back, and the report names it, the weightiest first. The other way round, a path,
an id or a quoted request that nothing in the record supports is a claim of the digest alone. Where too little is shown,
the missing facts are added below the text, within its cap.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import NamedTuple

from foldline.digest.carryover import run
from foldline.digest.extract.facts import MOST, Fact, Facts
from foldline.digest.extract.identifiers import WORD, names_of
from foldline.digest.extract.occurrences import likely, seen_before
from foldline.digest.prompt import HEADINGS
from foldline.digest.quote import quote
from foldline.digest.sections import line
from foldline.fold import Loss

_SHOWN = 20
"""Missing facts and claims that a report names."""
_NAMES = 150
"""How many of the likeliest names are counted as facts."""
_WEIGHT = ("constraint", "request", "open", "failed", "modified", "decision", "error")
"""Facts that are sentences or deeds, the weightiest first."""
_COUNTED = 40
"""Of each kind, the first ones and the newest are counted."""
_SHARE = 0.7
"""The share of its words that must stand in a text for a sentence to be told there."""
_CLIP = 160
_TOLD = re.compile(r"[\w./-]{4,}")
_HANDLES = re.compile(r"\[#[^\]\n]*\]")
_QUOTED = re.compile(
    r"\b(?:user|asked|said|wants?|wanted|requested|insisted)\b[^\"“\n]{0,60}[\"“]([^\"”\n]{12,300})[\"”]"
)


class _Item(NamedTuple):
    """A fact as it is looked for in a text."""

    said: str
    """The line that would tell it."""
    words: frozenset[str]
    name: str = ""

    def told(self, text: str, lower: str) -> bool:
        """Whether a text tells it."""
        if self.name:
            return self.name in text
        return sum(word in lower for word in self.words) >= _SHARE * len(self.words)


def audit(text: str, facts: Facts, *, kept: Collection[int] = ()) -> Loss:
    """What a digest shows of the facts that are not in `kept` messages, and what it claims that nothing supports."""
    items = list(_items(facts, kept))
    lower = text.lower()
    missing = [item for item in items if not item.told(text, lower)]
    return Loss(
        facts=len(items),
        kept=len(items) - len(missing),
        missing=tuple([item.said.removeprefix("- ") for item in missing[:_SHOWN]]),
        unsourced=tuple(dict.fromkeys(_unsourced(text, facts)))[:_SHOWN],
    )


def top_up(  # noqa: PLR0913 (all but two have a name at the call)
    text: str, facts: Facts, *, floor: float, cap: int, size: Callable[[str], int], kept: Collection[int] = ()
) -> tuple[str, Loss]:
    """The text, with missing facts added under its last heading where fewer than `floor` of them are shown."""
    loss = audit(text, facts, kept=kept)
    if loss.coverage >= floor:
        return text, loss
    lower = text.lower()
    missing = [item for item in _items(facts, kept) if not item.told(text, lower)]
    needed = int(floor * loss.facts) + 1 - loss.kept
    lines: list[str] = []
    room = cap - size(_with(text, [""]))
    for item in missing[: 2 * needed]:
        cost = size(item.said) + 1
        if cost <= room and not any(item.name and item.name in line for line in lines):
            lines.append(item.said)
            room -= cost
    while lines and size(_with(text, lines)) > cap:
        lines.pop()
    if not lines:
        return text, loss
    fuller = _with(text, lines)
    after = audit(fuller, facts, kept=kept)
    return fuller, replace(after, carried=after.kept - loss.kept, unsourced=loss.unsourced)


def _with(text: str, lines: list[str]) -> str:
    """A digest with lines at the end of what it carries over; the section is added where it is missing."""
    heading = HEADINGS[-1]
    rows = text.rstrip().split("\n")
    start = next((place for place, row in enumerate(rows) if row.strip() == heading), None)
    if start is None:
        return "\n".join([*rows, "", heading, *lines])
    stop = next((place for place in range(start + 1, len(rows)) if rows[place].startswith("# ")), len(rows))
    body = [row for row in rows[start + 1 : stop] if row.strip().lower().rstrip(".") != "none"]
    return "\n".join([*rows[: start + 1], *body, *lines, *rows[stop:]])


def _items(facts: Facts, kept: Collection[int]) -> Iterator[_Item]:
    """The facts that count: sentences and deeds, then the likeliest names."""
    by: dict[str, list[Fact]] = {}
    for fact in facts.facts.values():
        if not all(number in kept for number in fact.at):
            by.setdefault(fact.kind, []).append(fact)
    for kind in _WEIGHT:
        found = by.get(kind, [])
        for fact in found if len(found) <= _COUNTED else (*found[:5], *found[5 - _COUNTED :]):
            words = frozenset(_TOLD.findall(fact.text[: 4 * _CLIP].lower()))
            name = fact.text.rpartition("/")[2] if kind == "modified" else ""
            if words or name:
                yield _Item(line(fact.text, fact.at, clip=_CLIP), words, name)
    names = [text for text, name in facts.names.items() if name.last not in kept]
    for text in sorted(names, key=lambda text: (-likely(facts.names[text], facts.end), text))[:_NAMES]:
        where = facts.names[text].lines[0]
        yield _Item(line(run(where.text, text), (where.at,), clip=_CLIP), frozenset(), text)


def _unsourced(text: str, facts: Facts) -> Iterator[str]:
    """Paths, ids and quoted requests in a digest that never occurred."""
    bare = _HANDLES.sub(" ", text)
    for word in WORD.findall(bare):
        for name, kind in names_of(word):
            if kind in {"path", "id"} and name not in facts.names and not seen_before(name, facts.forgotten):
                yield name
    asked = [" ".join(fact.text.split()).lower() for fact in facts.facts.values() if fact.kind == "request"]
    if len(asked) < MOST:
        for quoted in _QUOTED.findall(bare):
            said = " ".join(quoted.split()).lower().strip(" .…!?")
            if not any(said in request for request in asked):
                yield quote(quoted)
