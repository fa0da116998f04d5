"""Work that was undone: an edit put back, a file written as it was before, changes thrown away by git.

A change is remembered as the lines it took out and put in, by their hashes, so that memory has a bound. Taking back
what was only there to look at something (a print, an import, a comment) is no way that was left, nor is moving code to
another file, nor writing it better: only what is put back as it was counts.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from foldline.tool_calls import replacements, whole_content
from foldline.watch import tool_failures as failures
from foldline.watch.scratch import one_line

KEPT_FILES, KEPT_EDITS = 200, 40
_EDIT_LINES, _LINE_CHARS = 400, 300
_FEW_LINES = 4
_LOOKING_LINES = 12
"""A longer change is more than a look."""
_BEGINNINGS = ("import", "from ", "use ", "require(", "#", "//", "*", "--", "/*")
_PRINTS = ("print(", "println", "printf", "console.", "debug", "dbg!", "t.log", "os.stderr")
_REMARKS = ("todo", "fixme", "nolint", "noqa")
"""What marks lines whose coming and going says nothing: imports, comments, prints to look at something."""

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class DeadEnd(NamedTuple):
    """One finding: what kind, about what, in words, and the calls that show it."""

    kind: str
    subject: str
    text: str
    evidence: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.text} [{self.kind}; {', '.join(self.evidence)}]"


class LineDiff:
    """One edit: the lines it took out and put in, by hash, and a few of them to tell."""

    __slots__ = ("_few", "added", "call", "line", "removed", "shown")

    def __init__(self, call: str, old: str, new: str) -> None:
        before, after = _lines(old), _lines(new)
        removed, added = _telling(before - after), _telling(after - before)
        told = added or removed
        self.call = call
        self.removed, self.added = frozenset(map(hash, removed)), frozenset(map(hash, added))
        self.shown = told[0] if len(told) == 1 else min(told, key=_longest, default="")
        self.line = hash(self.shown)
        """One of the lines it put in, or took out if it put in none."""
        self._few = told if len(told) <= _LOOKING_LINES else None

    @property
    def in_passing(self) -> bool:
        """Whether it only looks at something: half of it may be anything, in a few lines all but a print."""
        if self._few is None:
            return False
        small = [line.lower() for line in self._few]
        prints = [line for line in small if any(word in line for word in _PRINTS)]
        if prints and len(small) <= _FEW_LINES:
            return True
        said = sum(not _says_nothing(line) for line in small if line not in prints)
        return said <= len(small) // 2


@dataclass(slots=True)
class _FileHistory:
    """A file as far as the agent changed it."""

    changes: dict[int, LineDiff] = field(default_factory=dict)
    """By the line that tells most of them apart; the latest of those with the same one."""
    contents: list[tuple[int, str]] = field(default_factory=list)
    """Hashes of what it was written as, whole, and the calls that did so."""


class RevertTracker:
    """The files an agent changed, and what of it was undone."""

    def __init__(self) -> None:
        self._files: OrderedDict[str, _FileHistory] = OrderedDict()
        self._found: list[tuple[str, LineDiff, str]] = []
        """Undone in one go, not told yet."""
        self._back: list[DeadEnd] = []

    def edit(self, id: str, path: str, given: dict[str, Any]) -> list[LineDiff]:  # noqa: A002
        """An edit that succeeded; what it changed."""
        file = self._files.get(path)
        if file is None:
            file = _FileHistory()
            remember(self._files, path, file, KEPT_FILES)
        content = whole_content(given)
        if content:
            return [self._written(id, path, file, content)]
        changes = [LineDiff(id, old, new) for old, new in replacements(given)]
        for change in changes:
            undone = _undone(change, file.changes)
            if undone is None:
                file.changes[change.line] = change
                if len(file.changes) > KEPT_EDITS:
                    del file.changes[next(iter(file.changes))]
                continue
            del file.changes[undone.line]
            if not undone.in_passing and not self._is_elsewhere(undone, path):
                self._found = [*self._found, (path, undone, id)][-KEPT_EDITS:]
        return changes

    def _written(self, id: str, path: str, file: _FileHistory, content: str) -> LineDiff:  # noqa: A002
        """A whole file: back to what it was before is a way that was left."""
        key = hash(content)
        earlier = [call for past, call in file.contents if past == key]
        if earlier and file.contents[-1][0] != key:
            words = f"{path} was written back to an earlier content"
            calls = (earlier[-1], file.contents[-1][1], id)
            self._back.append(DeadEnd("changed back", path, clean(words), calls))
        file.contents = [*file.contents, (key, id)][-KEPT_EDITS:]
        change = LineDiff(id, "", content)
        file.changes = {change.line: change}
        return change

    def flush(self) -> list[DeadEnd]:
        """What was undone in one go, as one finding."""
        if not self._found and not self._back:
            return []
        back, self._back = self._back, []
        if not self._found:
            return back
        undone, self._found = self._found, []
        paths = list(dict.fromkeys(path for path, _, _ in undone))
        shown = one_line(max((change.shown for _, change, _ in undone), key=len))
        what = "an edit" if len(undone) == 1 else f"{len(undone)} edits"
        words = f"{what} of {some(paths)} {'was' if len(undone) == 1 else 'were'} undone: {shown}"
        calls = dict.fromkeys(call for _, change, later in undone for call in (change.call, later))
        return [*back, DeadEnd("undone", f"{paths[0]} {shown}", clean(words), tuple(calls)[:4])]

    def command(self, id: str, command: str) -> list[DeadEnd]:  # noqa: A002
        """A shell command that succeeded: git may throw changes away with it, or keep them for good."""
        if "git" not in command:
            return []
        if re.search(r"\bgit commit\b", command):
            for file in self._files.values():
                file.changes.clear()
        paths = failures.discarded_paths(command)
        if paths is None:
            return []
        gone = [path for path, file in self._files.items() if file.changes and _is_one_of(path, paths)]
        changes = [change for path in gone for change in self._files[path].changes.values()]
        for path in gone:
            self._files[path].changes.clear()
        if all(change.in_passing for change in changes):
            return []
        words = f"changes of {some(gone)} were thrown away by `{command[:80]}`"
        return [DeadEnd("changed back", " ".join(gone), clean(words), (*(one.call for one in changes[-4:]), id))]

    def _is_elsewhere(self, undone: LineDiff, path: str) -> bool:
        """Whether the lines that went from here stand in another file now: they were moved."""
        others = (
            change.added for name, file in self._files.items() if name != path for change in file.changes.values()
        )
        return bool(undone.added) and any(len(added & undone.added) * 2 >= len(undone.added) for added in others)


def remember(held: OrderedDict[Key, Value], key: Key, value: Value, most: int) -> None:
    """Keep a value; the one not touched for longest goes when there are too many."""
    held[key] = value
    held.move_to_end(key)
    if len(held) > most:
        held.popitem(last=False)


def some(names: list[str]) -> str:
    """A few of many."""
    return ", ".join(names[-3:]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def clean(text: str) -> str:
    """A finding's words on one line."""
    return " ".join(text.split())[:400]


def _is_one_of(path: str, named: list[str]) -> bool:
    return not named or any(path == part or path.endswith("/" + part.removeprefix("./")) for part in named)


def _says_nothing(line: str) -> bool:
    quoted = line.startswith('"') and line.endswith('"')
    return quoted or line.startswith(_BEGINNINGS) or any(word in line for word in _REMARKS)


def _lines(text: str) -> set[str]:
    """The lines of a text, without their indentation."""
    return set(map(str.strip, text.split("\n", _EDIT_LINES)[:_EDIT_LINES]))


def _longest(line: str) -> tuple[int, str]:
    """Sorts the longest first, and those of one length the same way in every process."""
    return -len(line), line


def _telling(lines: set[str]) -> list[str]:
    """Those that say something: more than brackets and numbers."""
    return [line[:_LINE_CHARS] for line in lines if not line.isascii() or line.lower() != line.upper()]


def _undone(change: LineDiff, changes: dict[int, LineDiff]) -> LineDiff | None:
    """The latest of a file's changes that another one puts back."""
    likely = (changes.keys() & change.removed) | (changes.keys() & change.added)
    if not likely:
        return None
    return next((past for line, past in reversed(changes.items()) if line in likely and _undoes(change, past)), None)


def _undoes(change: LineDiff, past: LineDiff) -> bool:
    """Whether a change puts things back: out what came in, in what went out, and little else that is new."""
    if not (past.added or past.removed) or not (past.added <= change.removed and past.removed <= change.added):
        return False
    return len(change.added - past.removed) <= len(change.removed) // 4
