"""The digest that needs no model: deterministic, in milliseconds, never failing.

It is written from facts, in the documented sections, every line with the numbers of the messages it comes from. What
does not fit is chosen by how likely it is to be needed again, and a line is shown with enough of it to be understood.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence

from foldline.digest.carryover import Choice, by_folder, grouped
from foldline.digest.extract.facts import Facts
from foldline.digest.prior_digest import entries
from foldline.digest.prompt import HEADINGS
from foldline.digest.quote import quote
from foldline.digest.sections import QUOTED, SHARES, Sections
from foldline.fold import Digest
from foldline.message import Message, user
from foldline.placeholders import condensed_messages
from foldline.plan.timeline import handle
from foldline.redact.redact import redact

NONE = "none"
"""What stands under a heading that has nothing."""
_LEAST = 160
"""Below this cap sections say less than one line does."""
_TOGETHER = 3
"""So many names from one file or command are shown as its own."""
_TRIES = 4
"""How often the part that is carried over is made anew to fill the cap."""
_FULL, _SAFE = 0.96, 0.985
_MISSES = 8
"""Lines that do not fit before a section is full."""

Size = Callable[[str], int]


def count_digest(messages: Sequence[Message], *, first: int | None, header: str, prior: str = "") -> Message:
    """A digest that says how many messages it stands for and carries the digest before it.

    `first` is the number of the first one in the record; None where there is no record to recall them from.
    """
    count = len(messages)
    lines = [header]
    if prior:
        lines.append(prior)
    last = None if first is None else first + count - 1
    lines.append(_counted(count, first, last))
    return user("\n".join(lines), kind="digest")


def _counted(count: int, first: int | None, last: int | None, *, kept: int = 0) -> str:
    name = "" if first is None or last is None or last < first else handle(first, last)
    return condensed_messages(count, name, partly=kept > 0)


def local_digest(  # noqa: PLR0913 (all but the facts have a name at the call)
    facts: Facts,
    *,
    cap: int,
    size: Size,
    header: str,
    prior_text: str = "",
    kept: Collection[int] = (),
    cut: int | None = None,
) -> Digest:
    """The digest of the messages that facts were gathered from, or of those before `cut`, within `cap` by `size`.

    `kept` are messages that stay in the view word for word, before or behind the cut: what stands there need not be
    said again. `prior_text` is a digest of what was before the facts.
    """
    stays = frozenset(kept)
    end = facts.end if cut is None else cut
    inside = sum(facts.first <= number < end for number in stays)
    counted = _counted(end - facts.first - inside, facts.first, end - 1, kept=inside) if end > facts.first else ""
    head = "\n".join(filter(None, (header, counted)))
    first = header.partition("\n")[0]
    text = _Writer(facts, cap, size, stays).write(head, prior_text) if cap >= _LEAST and size(head) <= cap else ""
    shorter = (head, "\n".join(filter(None, (first, counted))))
    text = next((said for said in (text, *shorter) if said and size(said) <= cap), first)
    return Digest(message=user(text, kind="digest"))


class _Writer:
    """A digest in the making: what there is to say, and the room to say it."""

    def __init__(self, facts: Facts, cap: int, size: Size, stays: Collection[int]) -> None:
        self.facts, self.cap, self.size, self.stays = facts, cap, size, stays
        self.sections = Sections(facts, stays)

    def write(self, head: str, prior: str) -> str:
        """The whole text: the sections first, then as much carried over as there is room for."""
        room = self.cap - self.size(_render(head, {}, []))
        chosen = {name: self._take(self.sections.lines(name), int(share * room)) for name, share in SHARES.items()}
        carried = self._take((f"- {said}" for said in _before(prior)), room // 4)
        text = _render(head, chosen, carried)
        spare = self.cap - self.size(text)
        chars = spare * len(text) // max(1, self.size(text))
        choice = Choice(self.facts, self.stays, "\n".join([line for name in QUOTED for line in chosen[name]]))
        for _ in range(_TRIES):
            more = [*carried, *self._carryover(choice, chars, text)]
            used = self.size(_render(head, chosen, more)) - (self.cap - spare)
            if spare * _FULL <= used <= spare or chars < _LEAST:
                break
            chars = int(chars * spare / max(1, used) * _SAFE)
        return self._fitted(head, chosen, more)

    def _carryover(self, choice: Choice, chars: int, said: str) -> list[str]:
        """The lines of the last section: runs of lines, then files, then other names."""
        clips, words = choice.pick(chars, said)
        sections = self.sections
        paths = {path.rpartition("/")[2]: path for path in map(sections.path, sections.files)}
        files = [paths[word] for word in words if word in paths]
        lines = [f"Paths are under {quote(sections.root)}"] if sections.root else []
        if files:
            lines.append(f"- Files: {quote(by_folder(files))}")
        sources = {word: self.facts.names[word].lines[0] for word in words if word not in paths}
        counts = Counter(line.source for line in sources.values())
        placed = {word: line for word, line in sources.items() if line.source and counts[line.source] >= _TOGETHER}
        lines += grouped(clips, placed, sections.label)
        others = [word for word in sources if word not in placed]
        return [*lines, f"- Also named: {quote(' '.join(others))}"] if others else lines

    def _take(self, lines: Iterable[str], room: int) -> list[str]:
        """Lines while they fit; one that does not is passed over, but not for ever."""
        taken, missed = [], 0
        for line in lines:
            cost = self.size(line) + 1
            if cost <= room:
                taken.append(line)
                room -= cost
            else:
                missed += 1
                if missed > _MISSES:
                    break
        return taken

    def _fitted(self, head: str, chosen: dict[str, list[str]], carried: list[str]) -> str:
        """The text, with as many lines taken off its end as the cap asks for."""
        text = _render(head, chosen, carried)
        while self.size(text) > self.cap and (carried or any(chosen.values())):
            last = carried or next(lines for lines in reversed(chosen.values()) if lines)
            last.pop()
            text = _render(head, chosen, carried)
        return redact(text)


def _before(prior: str) -> Iterable[str]:
    """The lines of a digest of what was before, without what marks them as its own."""
    return (quote(said) for _, said, _ in entries(prior, 0) if prior)


def _render(head: str, chosen: dict[str, list[str]], carried: list[str]) -> str:
    """The sections, every heading in its place, every section in the order of the record."""

    def body(name: str) -> list[str]:
        return sorted(chosen.get(name, ()), key=_place) or [NONE]

    objective, guardrails, status, rationale, plan, carryover = HEADINGS
    lines = [head, objective, *body("Objective"), guardrails, *body("Guardrails"), status]
    for label in ("Shipped", "Active", "Stuck"):
        lines += [f"{label}:", *body(label)]
    lines += [rationale, *body("Rationale"), plan, *body("Plan"), carryover, *(carried or [NONE])]
    return "\n".join(lines)


def _place(line: str) -> int:
    """Where in the record a line comes from: the number in its handle."""
    return int(line[line.rindex("[#") + 2 : -1].partition(",")[0].partition("-")[0])
