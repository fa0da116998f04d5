"""The lines of each section of the local digest, the most important first. The lines are generated on demand."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from foldline.digest.extract.facts import Fact, Facts
from foldline.digest.extract.open_work import OPEN_WORK_CHARS
from foldline.digest.markup import entry, quote

SHARES = {
    "Objective": 0.12,
    "Guardrails": 0.06,
    "Shipped": 0.07,
    "Active": 0.04,
    "Stuck": 0.04,
    "Rationale": 0.04,
    "Plan": 0.03,
}
"""The largest share of the budget for each section; the rest is for the carryover."""
QUOTED = ("Objective", "Guardrails", "Active", "Rationale", "Plan")
"""Sections that quote whole sentences. The sentences explain their identifiers, so the carryover leaves these
identifiers out.
"""
_REQUEST_CHARS = 1_200
_REPLY_CHARS = 400
_LABEL_CHARS = 60
"""Maximum length of the file or command that begins a line of the carryover."""
_MAX_COMMANDS = 4
_MAX_FAILURES = 6
"""Maximum number of failures that are shown, the newest first."""
_REQUEST_SPACES = 3
"""A request after the first one with fewer spaces is not shown. Such a short request is mostly an answer to a question
that is not shown either.
"""
_PUBLISHING = ("git commit", "git push", "git merge", "gh pr create", "npm publish", "git tag")
"""Commands that publish work."""


def open_work_entries(facts: Facts, kept_indexes: Collection[int]) -> list[str]:
    """An entry for each call without a result and for background work without a report, newest first."""
    return [entry(fact.text, fact.indexes, max_chars=OPEN_WORK_CHARS) for fact in facts.open_work(kept_indexes)]


class DigestSections:
    """The facts that leave the view, by section."""

    def __init__(self, facts: Facts, kept_indexes: Collection[int]) -> None:
        self._by_kind = facts.by_kind(kept_indexes)
        self._first_prompt = facts.first_prompt
        self.files = [fact.text for kind in ("modified", "read") for fact in self._newest(kind)]
        self.root = common_root(self.files)

    def lines(self, section: str) -> Iterator[str]:
        """The lines of a section. Each section has a method with its name."""
        lines: Iterator[str] = getattr(self, f"_{section.lower()}")()
        return lines

    def short_path(self, path: str) -> str:
        """A path without the common root folder."""
        return path.removeprefix(self.root) if self.root else path

    def label(self, source: str) -> str:
        """The file or command with which a line begins. A long path is cut at its start, a long command at its end."""
        shown = self.short_path(source)
        if len(shown) > _LABEL_CHARS:
            start, end = shown[:_LABEL_CHARS].rpartition(" ")[0], shown[-_LABEL_CHARS:].partition("/")[2]
            shown = f"{start} …" if " " in shown else f"…/{end}"
        return f"{quote(shown)}: " if shown else ""

    def _newest(self, kind: str) -> list[Fact]:
        return self._by_kind.get(kind, [])[::-1]

    def _objective(self) -> Iterator[str]:
        return self._prompt_entries("request", lambda fact: fact.text.count(" ") >= _REQUEST_SPACES)

    def _guardrails(self) -> Iterator[str]:
        requests = {fact.text for fact in self._by_kind.get("request", ())}
        return self._prompt_entries("constraint", lambda fact: fact.text not in requests)

    def _prompt_entries(self, kind: str, is_shown: Callable[[Fact], bool]) -> Iterator[str]:
        """Entries of the first prompt, then the entries of later prompts that `is_shown` accepts, newest first."""
        facts = self._by_kind.get(kind, [])
        first = [fact for fact in facts if fact.indexes[0] == self._first_prompt]
        later = [fact for fact in reversed(facts) if fact not in first and is_shown(fact)]
        return (entry(fact.text, fact.indexes, max_chars=_REQUEST_CHARS) for fact in (*first, *later))

    def _shipped(self) -> Iterator[str]:
        published = [fact for fact in self._newest("command") if _is_publishing(fact)]
        for fact in published[:_MAX_COMMANDS]:
            yield entry(f"`{fact.text}`{_note(fact)}", fact.indexes)
        for fact in self._newest("modified"):
            times = f"{fact.times}×" if fact.times > 1 else "once"
            yield entry(f"{self.short_path(fact.text)}: changed {times}{_note(fact)}", fact.indexes)
        for fact in self._newest("done"):
            yield entry(f"done: {fact.text.removeprefix('done: ')}", fact.indexes)

    def _active(self) -> Iterator[str]:
        for fact in self._newest("open"):
            if fact.note == "in_progress":
                yield entry(f"in progress: {fact.text}", fact.indexes)
        for fact in self._newest("reply"):
            yield entry(fact.text, fact.indexes, max_chars=_REPLY_CHARS)
        for fact in [fact for fact in self._newest("command") if not _is_publishing(fact)][:_MAX_COMMANDS]:
            yield entry(f"`{fact.text}` went well{_note(fact)}", fact.indexes)

    def _stuck(self) -> Iterator[str]:
        failures = sorted((*self._newest("failed"), *self._newest("error")), key=lambda fact: -fact.indexes[-1])
        for fact in failures[:_MAX_FAILURES]:
            text = fact.text if fact.kind == "error" else f"{self.short_path(fact.text)}: failed{_note(fact)}"
            yield entry(text, fact.indexes)

    def _rationale(self) -> Iterator[str]:
        return (entry(fact.text, fact.indexes) for fact in self._newest("decision"))

    def _plan(self) -> Iterator[str]:
        for fact in self._by_kind.get("open", ()):
            if fact.note != "in_progress":
                yield entry(fact.text, fact.indexes)


_MAX_ROOT_CHARS = 1_000
"""Longest folder that can be the root: text that is no path may have a slash at every character."""


def common_root(paths: Iterable[str]) -> str:
    """The folder that saves the most characters if it is removed from the paths that begin with it; "" if that saves
    nothing.

    >>> common_root(["/w/cli/a.go", "/w/cli/b/c.go", "/w/cli/d.go", "/etc/hosts"])
    '/w/cli/'
    """
    saved: dict[str, int] = {}
    for path in paths:
        at = path.find("/", 1) if path.startswith("/") else -1
        while 0 < at < _MAX_ROOT_CHARS:
            folder = path[: at + 1]
            saved[folder] = saved.get(folder, 0) + len(folder)
            at = path.find("/", at + 1)
    best = max(saved, key=lambda folder: (saved[folder] - 2 * len(folder), folder), default="")
    return best if best and saved[best] > 2 * len(best) else ""


def _is_publishing(fact: Fact) -> bool:
    return any(command in fact.text for command in _PUBLISHING)


def _note(fact: Fact) -> str:
    return f" ({fact.note})" if fact.note else ""
