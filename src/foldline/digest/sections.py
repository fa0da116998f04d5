"""What a digest says in each section, the weightiest first, made only as far as it is asked for.

A line is words of the transcript, or a few of ours around a file or a command, and ends with the numbers of the
messages it comes from.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from foldline.digest.extract.facts import Fact, Facts
from foldline.digest.quote import quote
from foldline.plan.timeline import handle

SHARES = {
    "Objective": 0.12,
    "Guardrails": 0.06,
    "Shipped": 0.07,
    "Active": 0.04,
    "Stuck": 0.04,
    "Rationale": 0.04,
    "Plan": 0.03,
}
"""The most that each section may take of the room; what is left is for what is carried over."""
QUOTED = ("Objective", "Guardrails", "Active", "Rationale", "Plan")
"""Sections that quote whole sentences: a name that stands there is explained."""
_WHOLE = 1_200
"""Characters of a request that are shown."""
_SAID = 400
"""Characters of the newest reply."""
_CLIP = 200
"""Characters of any other line."""
_LABEL = 60
"""Characters of the file or command that something was read from."""
_RAN = 4
"""Commands that went well, shown at the most."""
_STUCK = 6
"""Failures shown at the most: an older one that nobody came back to has mostly been left behind."""
_WORDS = 3
"""Spaces in a request that says something by itself; a shorter one answers a question that is not shown."""
_LANDS = ("git commit", "git push", "git merge", "gh pr create", "npm publish", "git tag")
"""Commands that put work in its place."""


class Sections:
    """The facts that left the view, by section."""

    def __init__(self, facts: Facts, stays: Collection[int]) -> None:
        self._by: dict[str, list[Fact]] = {}
        for fact in facts.facts.values():
            if not all(number in stays for number in fact.at):
                self._by.setdefault(fact.kind, []).append(fact)
        self._prompt = facts.prompt
        self.files = [fact.text for kind in ("modified", "read") for fact in self._newest(kind)]
        self.root = root_of(self.files)

    def _newest(self, kind: str) -> list[Fact]:
        return self._by.get(kind, [])[::-1]

    def lines(self, section: str) -> Iterator[str]:
        """The lines of a section."""
        made: Iterator[str] = getattr(self, f"_{section.lower()}")()
        return made

    def path(self, path: str) -> str:
        """A path as it is shown: without the folder that most of them are in."""
        return path.removeprefix(self.root) if self.root else path

    def label(self, source: str) -> str:
        """The file or command in front of what was read from it: the end of a path, the beginning of a command."""
        shown = self.path(source)
        if len(shown) > _LABEL:
            command = " " in shown
            shown = shown[:_LABEL].rpartition(" ")[0] + " …" if command else "…/" + shown[-_LABEL:].partition("/")[2]
        return f"{quote(shown)}: " if shown else ""

    def _objective(self) -> Iterator[str]:
        asked = self._by.get("request", [])
        first = [fact for fact in asked if fact.at[0] == self._prompt]
        others = [fact for fact in reversed(asked) if fact not in first and fact.text.count(" ") >= _WORDS]
        for fact in (*first, *others):
            yield line(fact.text, fact.at, clip=_WHOLE)

    def _guardrails(self) -> Iterator[str]:
        bound, asked = self._by.get("constraint", []), {fact.text for fact in self._by.get("request", ())}
        first = [fact for fact in bound if fact.at[0] == self._prompt]
        later = [fact for fact in reversed(bound) if fact.at[0] != self._prompt and fact.text not in asked]
        for fact in (*first, *later):
            yield line(fact.text, fact.at, clip=_WHOLE)

    def _shipped(self) -> Iterator[str]:
        landed = [fact for fact in self._newest("command") if _lands(fact)]
        for fact in landed[:_RAN]:
            yield line(f"`{fact.text}`{_note(fact)}", fact.at)
        for fact in self._newest("modified"):
            yield line(f"{self.path(fact.text)}: changed {_times(fact)}{_note(fact)}", fact.at)
        for fact in self._newest("done"):
            yield line(f"done: {fact.text.removeprefix('done: ')}", fact.at)

    def _active(self) -> Iterator[str]:
        for fact in self._newest("open"):
            if fact.note == "in_progress":
                yield line(f"in progress: {fact.text}", fact.at)
        for fact in self._newest("said"):
            yield line(fact.text, fact.at, clip=_SAID)
        for fact in [fact for fact in self._newest("command") if not _lands(fact)][:_RAN]:
            yield line(f"`{fact.text}` went well{_note(fact)}", fact.at)

    def _stuck(self) -> Iterator[str]:
        failed = sorted((*self._newest("failed"), *self._newest("error")), key=lambda fact: -fact.at[-1])
        for fact in failed[:_STUCK]:
            said = fact.text if fact.kind == "error" else f"{self.path(fact.text)}: failed{_note(fact)}"
            yield line(said, fact.at)

    def _rationale(self) -> Iterator[str]:
        return (line(fact.text, fact.at) for fact in self._newest("decision"))

    def _plan(self) -> Iterator[str]:
        for fact in self._by.get("open", ()):
            if fact.note != "in_progress":
                yield line(fact.text, fact.at)


def root_of(paths: Iterable[str]) -> str:
    """The folder whose name, left out, shortens the paths most; "" when nothing is gained.

    >>> root_of(["/w/cli/a.go", "/w/cli/b/c.go", "/etc/hosts"])
    '/w/cli/'
    """
    saved: dict[str, int] = {}
    for path in paths:
        at = path.find("/", 1) if path.startswith("/") else -1
        while at > 0:
            folder = path[: at + 1]
            saved[folder] = saved.get(folder, 0) + len(folder)
            at = path.find("/", at + 1)
    best = max(saved, key=lambda folder: (saved[folder] - 2 * len(folder), folder), default="")
    return best if best and saved[best] > 2 * len(best) else ""


def line(text: str, at: Iterable[int], *, clip: int = _CLIP) -> str:
    """Words of the transcript as one line of a digest."""
    said = quote(" / ".join(filter(None, map(str.strip, text[: 2 * clip].split("\n")))))
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
    return ", ".join([handle(first, last) for first, last in runs])


def _lands(fact: Fact) -> bool:
    return any(word in fact.text for word in _LANDS)


def _times(fact: Fact) -> str:
    return f"{fact.times}×" if fact.times > 1 else "once"


def _note(fact: Fact) -> str:
    return f" ({fact.note})" if fact.note else ""
