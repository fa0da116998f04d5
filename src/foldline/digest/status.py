"""The state of the work as lines of a digest: what passed and failed, what is open and what is not committed.

An outcome is named only if the record proves it (see `call_outcomes.py`). Lines are generated on demand, the most
important first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from foldline.digest.extract.facts import Fact, Facts
from foldline.digest.markup import MARKED_DONE, entry, quote
from foldline.digest.shortening import shorten
from foldline.plan.timeline import handles_of
from foldline.tool_calls import is_check, strip_command

_MAX_FAILURES, _MAX_PASSED, _MAX_PRODUCTS, _MAX_DONE, _MAX_NAMED_FILES = 6, 4, 10, 8, 8
_COMMAND_CHARS, _FILE_CHARS, _OPEN_WORK_CHARS, _DONE_CHARS, _LABEL_CHARS = 110, 260, 500, 400, 60
_MAX_ROOT_CHARS = 1_000
"""Maximum length of a common root in characters, so that a text with very many slashes does not take too much time."""


class Status:
    """The state of the work in the folded messages."""

    def __init__(self, facts: Facts, kept_indexes: Collection[int]) -> None:
        self._facts, self._kept = facts, kept_indexes
        self._by_kind = facts.by_kind(kept_indexes)
        self.root = common_root(fact.text for fact in self.newest("modified", "read"))

    def newest(self, *kinds: str) -> list[Fact]:
        """The facts of some kinds, the newest first."""
        found = [fact for kind in kinds for fact in self._by_kind.get(kind, [])[::-1]]
        return sorted(found, key=lambda fact: -fact.indexes[-1]) if len(kinds) > 1 else found

    def label(self, source: str) -> str:
        """The start of a line about a file."""
        return f"{quote(shorten(source.removeprefix(self.root), _LABEL_CHARS))}: "

    def open_lines(self, shown: str = "") -> Iterator[str]:
        """Calls without a result and background work without a report, if the text `shown` does not name their ids."""
        for fact in self._facts.open_work(self._kept):
            if fact.note not in shown:
                yield entry(fact.text, fact.indexes, max_chars=_OPEN_WORK_CHARS)

    def lines(self, shown: str = "") -> Iterator[str]:
        """Lines that say what is open, what failed, what was produced, what passed, and what was changed after the
        last commit or check.
        """
        yield from self.open_lines(shown)
        passed, failed = sorted(self.newest("passed"), key=lambda fact: not is_check(fact.text)), self.newest("failed")
        last_passed = max([fact.indexes[-1] for fact in passed if is_check(fact.text)], default=-1)
        for fact in self.newest("failed", "interrupted", "error")[:_MAX_FAILURES]:
            is_old = fact.indexes[-1] < last_passed and is_check(fact.text)
            when = ", before other checks that passed" if is_old else ""
            verb = "Interrupted" if fact.kind == "interrupted" else "Failed"
            yield entry(f"{verb}{when}: {fact.text if fact.kind == 'error' else self._run(fact)}", fact.indexes)
        for fact in self.newest("produced")[:_MAX_PRODUCTS]:
            yield entry(fact.text, fact.indexes)
        changed = self.newest("modified")
        last_change = max([fact.indexes[-1] for fact in changed], default=-1)
        for fact in [fact for fact in passed if not _failed_later(fact, failed)][:_MAX_PASSED]:
            when = "" if fact.indexes[-1] > last_change else ", before the last change of a file"
            yield entry(f"Passed{when}: {self._run(fact)}", fact.indexes)
        yield from self._changed_since(changed, "made", "commit", self._facts.marks.get("commit", -1))
        yield from self._changed_since(changed, "ran", "test, build or lint", self._facts.marks.get("check", -1))

    def _changed_since(self, changed: list[Fact], verb: str, what: str, index: int) -> Iterator[str]:
        """An entry with the files that were edited after the newest commit or check.

        `verb` and `what` are words of the entry: "made" and "commit", or "ran" and the names of the checks. `index` is
        the index of the message with the newest commit or check. A negative `index` means that the agent made no commit
        or ran no check. The entry then says so, but does not exclude that a sub-agent or the user did.
        """
        later = [fact for fact in changed if fact.indexes[-1] > index]
        if not later:
            return
        indexes = sorted([fact.indexes[-1] for fact in later])
        names = [fact.text.rpartition("/")[2] for fact in later[:_MAX_NAMED_FILES]]
        more = f" and {len(later) - len(names)} more" if len(later) > len(names) else ""
        named = "all changed files" if len(later) == len(changed) > 1 else f"{', '.join(names)}{more}"
        told = f"Edited after the last {what} that was seen: {named}" if index >= 0 else None
        yield entry(told or f"The agent itself {verb} no {what}", (indexes[0], indexes[-1]))

    def plan_lines(self) -> Iterator[str]:
        """The unfinished tasks, followed by the finished ones."""
        for fact in sorted(self._by_kind.get("open", []), key=lambda fact: fact.note != "in_progress"):
            yield entry(f"{fact.note or 'open'}: {fact.text}", fact.indexes)
        if done := self.newest("done")[:_MAX_DONE]:
            names, indexes = "; ".join([fact.text for fact in done]), [fact.indexes[-1] for fact in done]
            yield entry(f"{MARKED_DONE}: {names}", indexes, max_chars=_DONE_CHARS)

    def file_lines(self) -> Iterator[str]:
        """The changed files, each with the purpose of its last change and with the names or lines that were written."""
        for fact in self.newest("modified"):
            times = f" ×{fact.times}" if fact.times > 1 else ""
            about = "; ".join(filter(None, (fact.note, ", ".join(fact.changes))))
            text = f"{fact.text.removeprefix(self.root)}{times}: {about}".removesuffix(": ")
            yield entry(text, fact.indexes[-1:], max_chars=_FILE_CHARS)

    def call_lines(self) -> Iterator[str]:
        """A line for the newest call on each target (file, folder or command).

        The calls that are most likely to be needed again come first.
        """
        end = self._facts.end
        for call in sorted(self._facts.calls.values(), key=lambda call: (-call.weight(end), call.text)):
            if call.message_index not in self._kept:
                yield f"- {quote(call.text)} [{handles_of((call.message_index,))}]"

    def _run(self, fact: Fact) -> str:
        """The command of a run, and the line that shows its outcome."""
        text = fact.text.removeprefix(self.root)
        text = strip_command(text) if is_check(text) and "cd:" not in fact.note else text
        return f"{shorten(text, _COMMAND_CHARS)}: {fact.note}".removesuffix(": ")


def _failed_later(passed: Fact, failed: Collection[Fact]) -> bool:
    """Whether the command of `passed` failed later, alone or inside a longer command."""
    bare = strip_command(passed.text)
    return any(fact.indexes[-1] > passed.indexes[-1] and bare in fact.text for fact in failed)


def common_root(paths: Iterable[str]) -> str:
    """The folder that saves the most characters if it is left out at the start of paths; "" if there is none.

    >>> common_root(["/w/cli/a.go", "/w/cli/b/c.go", "/w/cli/d.go", "/etc/hosts"])
    '/w/cli/'
    """
    absolute = [path[:_MAX_ROOT_CHARS] for path in paths if path.startswith("/")]
    counts = Counter(path[: slash.end()] for path in absolute for slash in re.finditer("(?<=.)/", path))
    best = max(counts, key=lambda folder: ((counts[folder] - 2) * len(folder), folder), default="")
    return best if counts[best] > 2 else ""
