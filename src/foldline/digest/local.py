"""The digest that needs no model: deterministic, in milliseconds, never failing.

It is written from facts, in the documented sections, every line with the numbers of the messages it comes from. What
does not fit is chosen by how likely it is to be needed again, and a line is shown with enough of it to be understood.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from foldline.digest.choose import Choice, choose, grouped
from foldline.digest.facts import Fact, Facts
from foldline.digest.prompt import HEADINGS
from foldline.digest.quote import quote
from foldline.digest.redact import redact
from foldline.fold import Digest
from foldline.message import Message, user
from foldline.plan.span import handle

NONE = "none"
"""What stands under a heading that has nothing."""
_LEAST = 160
"""Below this cap sections say less than one line does."""
_SHARES = {
    "Objective": 0.09,
    "Guardrails": 0.05,
    "Shipped": 0.07,
    "Active": 0.04,
    "Stuck": 0.04,
    "Rationale": 0.04,
    "Plan": 0.03,
}
"""The most that each section may take of the room; the rest is carryover."""
_QUOTED = ("Objective", "Guardrails", "Active", "Rationale", "Plan")
"""Sections that quote whole sentences: a name that stands there is explained."""
_TRIES = 4
_FULL = 0.97
_CLIP = 200
_RAN = 6
"""Commands that went well, shown at the most."""

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


def _counted(count: int, first: int | None, last: int | None) -> str:
    place = "" if first is None or not count else f": {handle(first, last)}, ask recall for them"
    return f"{count} earlier message{'s were' if count != 1 else ' was'} condensed{place}."


def local_digest(  # noqa: PLR0913 (all but the facts have a name at the call)
    facts: Facts,
    *,
    cap: int,
    size: Size,
    header: str,
    prior_text: str = "",
    kept: Collection[int] = (),
) -> Digest:
    """The digest of the messages that facts were gathered from, within `cap` by `size`.

    `kept` are messages among them that stay in the view word for word: what stands there need not be said again.
    `prior_text` is a digest of what was before the facts.
    """
    stays = frozenset(kept)
    numbers = [number for number in range(facts.first, facts.end) if number not in stays]
    head = f"{header}\n{_counted(len(numbers), numbers[0], numbers[-1])}" if numbers else header
    writer = _Writer(facts, cap, size, stays)
    text = writer.write(head, prior_text) if cap >= _LEAST and size(head) <= cap else ""
    if not text or size(text) > cap:
        text = head if size(head) <= cap else header
    return Digest(message=user(text, kind="digest"))


class _Writer:
    """A digest in the making: what there is to say, and the room to say it."""

    def __init__(self, facts: Facts, cap: int, size: Size, stays: frozenset[int]) -> None:
        self.cap, self.size, self.stays = cap, size, stays
        self.facts = facts
        self.by: dict[str, list[Fact]] = {}
        for fact in facts.facts.values():
            if not stays.issuperset(fact.at):
                self.by.setdefault(fact.kind, []).append(fact)
        self.root = root_of([fact.text for kind in ("modified", "read") for fact in self.by.get(kind, ())])

    def write(self, head: str, prior: str) -> str:
        """The whole text: the sections first, then as much carried over as there is room for."""
        sections = self._sections()
        room = self.cap - self.size(_render(head, {}, []))
        chosen = {name: self._take(sections[name], int(share * room)) for name, share in _SHARES.items()}
        carried = self._take([quote(line) for line in prior.split("\n") if line.strip()], room // 4)
        said = "\n".join(line for lines in (*chosen.values(), carried) for line in lines)
        quoted = "\n".join(line for name in _QUOTED for line in chosen[name])
        text = _render(head, chosen, carried)
        spare = self.cap - self.size(text)
        if self.root:
            carried.append(f"Paths without a root are under {self.root}")
        chars = int(spare * max(1, len(text)) / max(1, self.size(text)))
        for _ in range(_TRIES):
            choice = Choice(stays=self.stays, room=chars, named=said, quoted=quoted)
            more = self._carryover(choice)
            text = _render(head, chosen, [*carried, *more])
            used = self.size(text)
            if used <= self.cap and (used >= _FULL * self.cap or not more):
                break
            chars = int(chars * (self.cap - (self.cap - spare)) / max(1, used - (self.cap - spare)) * 0.985)
        return self._fitted(head, chosen, [*carried, *more])

    def _carryover(self, choice: Choice) -> list[str]:
        clips, words = choose(self.facts, choice)
        lines = grouped(clips, self._label)
        return [*lines, "- Also named: " + " ".join(map(quote, words))] if words else lines

    def _label(self, source: str) -> str:
        """What a run was read from, in front of it."""
        shown = self._path(source)
        return f"{quote(shown[:60])}: " if shown else ""

    def _path(self, path: str) -> str:
        return path.removeprefix(self.root) if self.root else path

    def _fitted(self, head: str, chosen: dict[str, list[str]], carried: list[str]) -> str:
        """The text, with as many lines taken off its end as the cap asks for."""
        text = _render(head, chosen, carried)
        while self.size(text) > self.cap and (carried or any(chosen.values())):
            last = carried or next(lines for lines in reversed(chosen.values()) if lines)
            last.pop()
            text = _render(head, chosen, carried)
        return redact(text)

    def _cost(self, line: str) -> int:
        return self.size(line) + 1

    def _take(self, lines: Iterable[str], room: int) -> list[str]:
        """Lines while they fit; one that does not is passed over."""
        taken = []
        for line in lines:
            cost = self._cost(line)
            if cost <= room:
                taken.append(line)
                room -= cost
        return taken

    def _sections(self) -> dict[str, list[str]]:
        """Lines for each section but the last, the weightiest first."""
        by = self.by
        asked = by.get("request", [])
        modified = reversed(by.get("modified", []))
        failed = reversed([*by.get("error", []), *by.get("failed", [])])
        ran = list(reversed(by.get("command", [])))[:_RAN]
        return {
            "Objective": [_line(fact.text, fact.at, clip=1200) for fact in (*asked[:1], *asked[:0:-1])],
            "Guardrails": [_line(fact.text, fact.at) for fact in by.get("constraint", [])],
            "Shipped": [
                _line(f"{self._path(fact.text)}: changed {_times(fact)}{_note(fact)}", fact.at) for fact in modified
            ]
            + [_line(f"done: {fact.text}", fact.at) for fact in reversed(by.get("done", []))],
            "Active": [_line(fact.text, fact.at, clip=400) for fact in by.get("said", [])]
            + [_line(f"`{fact.text}` ok{_note(fact)}", fact.at) for fact in ran],
            "Stuck": [_line(f"{self._path(fact.text)}: failed{_note(fact)}", fact.at) for fact in failed],
            "Rationale": [_line(fact.text, fact.at) for fact in reversed(by.get("decision", []))],
            "Plan": [_line(fact.text, fact.at) for fact in by.get("open", [])],
        }


def root_of(paths: Iterable[str]) -> str:
    """The folder whose name, left out, shortens the paths most; "" when nothing is gained.

    >>> root_of(["/w/cli/a.go", "/w/cli/b/c.go", "/etc/hosts"])
    '/w/cli/'
    """
    saved: dict[str, int] = {}
    for path in paths:
        at = path.find("/", 1)
        while path.startswith("/") and at > 0:
            folder = path[: at + 1]
            saved[folder] = saved.get(folder, 0) + len(folder)
            at = path.find("/", at + 1)
    best = max(saved, key=lambda folder: (saved[folder] - len(folder) - 30, folder), default="")
    return best if best and saved[best] > 2 * len(best) else ""


def _times(fact: Fact) -> str:
    return f"{fact.times}×" if fact.times > 1 else "once"


def _note(fact: Fact) -> str:
    return f" ({fact.note})" if fact.note else ""


def _line(text: str, at: Iterable[int], *, clip: int = _CLIP) -> str:
    said = quote(" / ".join(filter(None, (line.strip() for line in text.split("\n")))))
    if len(said) > clip:
        said = said[:clip].rsplit(" ", 1)[0] + " …"
    return f"- {said} [{where(at)}]"


def where(at: Iterable[int]) -> str:
    """The handles of some messages, runs joined.

    >>> where([3, 0, 1])
    '#1-2, #4'
    """
    runs: list[tuple[int, int]] = []
    for number in sorted(set(at)):
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return ", ".join(handle(first, last) for first, last in runs)


def _render(head: str, chosen: dict[str, list[str]], carried: list[str]) -> str:
    """The sections, every heading in its place."""

    def body(name: str) -> list[str]:
        return chosen.get(name) or [NONE]

    objective, guardrails, status, rationale, plan, carryover = HEADINGS
    lines = [head, objective, *body("Objective"), guardrails, *body("Guardrails"), status]
    for label in ("Shipped", "Active", "Stuck"):
        lines += [f"{label}:", *body(label)]
    lines += [rationale, *body("Rationale"), plan, *body("Plan"), carryover, *(carried or [NONE])]
    return "\n".join(lines)
