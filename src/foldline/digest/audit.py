"""What a digest lost: its text against the facts of what it stands for."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from foldline.digest.choose import run
from foldline.digest.facts import Facts
from foldline.digest.names import WORD, names_of
from foldline.digest.quote import quote
from foldline.digest.uses import likely
from foldline.fold import Loss
from foldline.plan.span import handle

_SHOWN = 20
_WEIGHTY = 200


def audit(text: str, facts: Facts, *, kept: Collection[int] = ()) -> Loss:
    """What a digest kept of the facts, what only recall can give back, and what it claims that nothing supports."""
    ranked = _ranked(facts, kept)
    missing = [name for name in ranked if name not in text]
    return Loss(
        facts=len(ranked),
        kept=len(ranked) - len(missing),
        missing=tuple(missing[:_SHOWN]),
        unsourced=unsourced(text, facts),
    )


def _ranked(facts: Facts, kept: Collection[int] = ()) -> list[str]:
    found = (text for text, name in facts.names.items() if name.last not in kept)
    names = sorted(found, key=lambda text: (-likely(facts.names[text], facts.end), text))
    return names[:_WEIGHTY]


def unsourced(text: str, facts: Facts) -> tuple[str, ...]:
    """Paths and ids in a digest that never occurred."""
    found: dict[str, None] = {}
    for word in WORD.findall(re.sub(r"\[#[^\]]*\]", " ", text)):
        for name, kind in names_of(word):
            if kind in {"path", "id"} and name not in facts.names:
                found[name] = None
    return tuple(found)[:_SHOWN]


def top_up(text: str, facts: Facts, *, floor: float, cap: int, size: Callable[[str], int]) -> tuple[str, Loss]:
    """The text with missing facts added below it, within the cap, where its coverage is below the floor."""
    loss = audit(text, facts)
    if loss.coverage >= floor:
        return text, loss
    lines = [] if "# Carryover" in text else ["", "# Carryover"]
    for name in _ranked(facts):
        if name in text or any(name in line for line in lines):
            continue
        line = facts.names[name].lines[0]
        more = f"- {quote(run(line.text, name))} [{handle(line.at)}]"
        if size("\n".join([text, *lines, more])) > cap:
            break
        lines.append(more)
    said = "\n".join([text, *lines]) if any(line.startswith("-") for line in lines) else text
    after = audit(said, facts)
    return said, Loss(
        facts=after.facts,
        kept=after.kept,
        carried=after.kept - loss.kept,
        missing=after.missing,
        unsourced=after.unsourced,
    )
