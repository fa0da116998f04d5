"""The state of the work as lines of a digest: what passed and failed, what is open, what is not committed, and why.

An outcome is named only if the record proves it (see `call_outcomes.py`). Lines are generated on demand, the most
important first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from foldline.digest.extract.calls import OPEN_WORK_CHARS
from foldline.digest.extract.facts import Fact, Facts
from foldline.digest.markup import entry, handles_of, quote
from foldline.tool_calls import is_check, strip_command

_MAX_FAILURES, _MAX_PASSED, _MAX_PRODUCTS, _MAX_DONE = 6, 4, 10, 8
_COMMAND_CHARS, _FILE_CHARS = 110, 260
_MAX_NAMED_FILES = 8
_MAX_ROOT_CHARS = 1_000
"""Maximum length of a common root in characters.

A text that is not a path may have so many slashes that a longer search would take too much time.
"""


class Status:
    """The state of the work in the folded messages."""

    def __init__(self, facts: Facts, kept_indexes: Collection[int]) -> None:
        self._facts, self._kept = facts, kept_indexes
        self._by_kind = facts.by_kind(kept_indexes)
        self.files = [fact.text for kind in ("modified", "read") for fact in self.newest(kind)]
        self.root = _working_folder(self.files, facts)

    def newest(self, kind: str) -> list[Fact]:
        """The facts of a kind, the newest first."""
        return self._by_kind.get(kind, [])[::-1]

    def short_path(self, path: str) -> str:
        """A path without the working folder."""
        return path.removeprefix(self.root) if self.root else path

    def open_lines(self) -> Iterator[tuple[str, str]]:
        """Calls without a result and background work without a report, each with its id."""
        for fact in self._facts.open_work(self._kept):
            yield entry(fact.text, fact.indexes, max_chars=OPEN_WORK_CHARS), fact.note

    def outcome_lines(self) -> Iterator[str]:
        """Lines that say what failed, what was produced, what passed, and what was changed after the last commit or
        check.
        """
        failures = [*self.newest("failed"), *self.newest("interrupted"), *self.newest("error")]
        for fact in sorted(failures, key=lambda fact: -fact.indexes[-1])[:_MAX_FAILURES]:
            named = fact.text if fact.kind == "error" else f"{self._short(fact)}: {fact.note}".removesuffix(": ")
            yield entry(f"{'Interrupted' if fact.kind == 'interrupted' else 'Failed'}: {named}", fact.indexes)
        for fact in self.newest("produced")[:_MAX_PRODUCTS]:
            yield entry(fact.text, fact.indexes)
        changed = self.newest("modified")
        last_change = max([fact.indexes[-1] for fact in changed], default=-1)
        for fact in self.newest("passed")[:_MAX_PASSED]:
            when = "" if fact.indexes[-1] > last_change else ", before the last change of a file"
            yield entry(f"Passed{when}: {self._short(fact)}: {fact.note}".removesuffix(": "), fact.indexes)
        yield from self._changed_since(changed, "commit", self._facts.last_commit)
        yield from self._changed_since(changed, "test, build or lint", self._facts.last_check)

    def _changed_since(self, changed: list[Fact], what: str, index: int) -> Iterator[str]:
        """An entry with the files that were changed after the newest commit or check, which has the index `index`.

        `what` names the commit or check in the entry. If `index` is negative, the entry says that none was seen.
        """
        later = [fact for fact in changed if fact.indexes[-1] > index]
        places = [fact.indexes[-1] for fact in later]
        names = [fact.text.rpartition("/")[2] for fact in later[:_MAX_NAMED_FILES]]
        more = f" and {len(later) - len(names)} more" if len(later) > len(names) else ""
        if index < 0 and later:
            yield entry(f"No {what} was seen", (min(places), max(places)))
        elif later:
            named = "all changed files" if len(later) == len(changed) > 1 else f"{', '.join(names)}{more}"
            yield entry(f"Changed after the last {what} that was seen: {named}", (min(places), max(places)))

    def plan_lines(self) -> Iterator[str]:
        """The unfinished tasks, followed by the finished ones."""
        tasks = self._by_kind.get("open", [])
        for fact in (*(t for t in tasks if t.note == "in_progress"), *(t for t in tasks if t.note != "in_progress")):
            yield entry(f"{fact.note or 'open'}: {fact.text}", fact.indexes)
        done = self.newest("done")[:_MAX_DONE]
        if done:
            names = "; ".join([fact.text.removeprefix("done: ") for fact in done])
            yield entry(f"done: {names}", [index for fact in done for index in fact.indexes[-1:]], max_chars=400)

    def reason_lines(self, shown: str) -> Iterator[str]:
        """Decisions and their reasons that are not in the text `shown`."""
        for fact in self.newest("decision"):
            if fact.text[:60] not in shown:
                yield entry(fact.text, fact.indexes)

    def file_lines(self) -> Iterator[str]:
        """The files that were changed, with the purpose of the last change and what was written."""
        for fact in self.newest("modified"):
            times = f" ×{fact.times}" if fact.times > 1 else ""
            about = "; ".join(filter(None, (fact.note, ", ".join(fact.changes))))
            text = f"{self.short_path(fact.text)}{times}: {about}".removesuffix(": ")
            yield entry(text, fact.indexes[-1:], max_chars=_FILE_CHARS)

    def call_lines(self) -> Iterator[str]:
        """The newest call at each place. The calls that are most likely to be needed again come first."""
        end = self._facts.end
        for call in sorted(self._facts.calls.values(), key=lambda call: (-call.weight(end), call.text)):
            if call.message_index not in self._kept:
                yield f"- {quote(call.text)} [{handles_of((call.message_index,))}]"

    def _short(self, fact: Fact) -> str:
        text = self.short_path(fact.text)
        text = strip_command(text) if is_check(text) else text
        return text if len(text) <= _COMMAND_CHARS else f"{text[:_COMMAND_CHARS]} …"


def _working_folder(paths: Collection[str], facts: Facts) -> str:
    """The folder in which the commands of the session run, as far as paths and commands show it; "" if unknown.

    If a command has a path that begins within the common root of all paths, the folder is the part of the root before
    it. Else it is the whole root.
    """
    root = common_root(paths)
    commands = "\n".join([fact.text for fact in facts.facts.values() if fact.kind in {"command", "passed", "failed"}])
    at = root.find("/", 1)
    while 0 < at < len(root) - 1:
        inside = root[at + 1 :]
        if f" {inside}" in commands or f"./{inside}" in commands or f":{inside}" in commands:
            return root[: at + 1]
        at = root.find("/", at + 1)
    return root


def common_root(paths: Collection[str]) -> str:
    """The folder that saves the most characters if it is removed from the start of all paths; "" if no folder does.

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
