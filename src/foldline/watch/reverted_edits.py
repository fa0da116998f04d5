"""Detects work that was undone: reverted edits, files that get an earlier content again, changes that git discards.

To limit the memory, an edit is stored as the hashes of the lines that it removed and added. Only an exact revert is a
dead end. Improved code is not a dead end, and neither is code that moves to another file. If the agent removes debug
prints, imports or comments, no dead end is reported.
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

MAX_FILES, MAX_EDITS = 200, 40
_EDIT_LINES, _LINE_CHARS = 400, 300
_PRINT_LINES = 4
"""An edit with at most this many lines is minor if one of the lines is a debug print."""
_MINOR_LINES = 12
"""An edit with more lines than this is never minor."""
_MINOR_STARTS = ("import", "from ", "use ", "require(", "#", "//", "*", "--", "/*")
_PRINTS = ("print(", "println", "printf", "console.", "debug", "dbg!", "t.log", "os.stderr")
_REMARKS = ("todo", "fixme", "nolint", "noqa")
"""Texts by which minor lines are recognised. `_MINOR_STARTS` are the starts of imports and comments. `_PRINTS` occur in
debug prints, and `_REMARKS` occur in notes to developers and linters.
"""

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class DeadEnd(NamedTuple):
    """A dead end: its kind, its subject, a sentence that describes it, and the ids of the calls that show it."""

    kind: str
    subject: str
    text: str
    evidence: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.text} [{self.kind}; {', '.join(self.evidence)}]"


class LineDiff:
    """What one edit changed: the hashes of the removed and the added lines, and one of these lines as a sample."""

    __slots__ = ("_lines", "added", "call", "key", "removed", "sample")

    def __init__(self, call: str, old: str, new: str) -> None:
        before, after = _lines(old), _lines(new)
        removed, added = _with_words(before - after), _with_words(after - before)
        lines = added or removed
        self.call = call
        self.removed, self.added = frozenset(map(hash, removed)), frozenset(map(hash, added))
        self.sample = lines[0] if len(lines) == 1 else min(lines, key=lambda line: (-len(line), line), default="")
        """The longest added line; if none was added, the longest removed line."""
        self.key = hash(self.sample)
        self._lines = lines if len(lines) <= _MINOR_LINES else None

    @property
    def is_minor(self) -> bool:
        """Whether the edit is mostly debug prints, imports and comments."""
        if self._lines is None:
            return False
        lines = [line.lower() for line in self._lines]
        prints = [line for line in lines if any(word in line for word in _PRINTS)]
        if prints and len(lines) <= _PRINT_LINES:
            return True
        other = sum(not _is_minor_line(line) for line in lines if line not in prints)
        return other <= len(lines) // 2


@dataclass(slots=True)
class _FileHistory:
    """What the agent changed in a file."""

    edits: dict[int, LineDiff] = field(default_factory=dict)
    """The edits, by the hash of their sample line. If several edits have the same hash, only the latest is stored."""
    contents: list[tuple[int, str]] = field(default_factory=list)
    """One entry for each time that the whole file was written: the hash of the content, and the id of the call."""


class RevertTracker:
    """Stores the edits of one agent, and finds edits that were undone."""

    def __init__(self) -> None:
        self._files: OrderedDict[str, _FileHistory] = OrderedDict()
        self._reverted: list[tuple[str, LineDiff, str]] = []
        """Reverted edits that are not reported yet: path, edit, id of the reverting call."""
        self._rewritten: list[DeadEnd] = []

    def add_edit(self, call_id: str, path: str, arguments: dict[str, Any]) -> list[LineDiff]:
        """Add a successful edit; returns what it changed."""
        file = self._files.get(path)
        if file is None:
            file = _FileHistory()
            remember(self._files, path, file, MAX_FILES)
        content = whole_content(arguments)
        if content:
            return [self._add_content(call_id, path, file, content)]
        diffs = [LineDiff(call_id, old, new) for old, new in replacements(arguments)]
        for diff in diffs:
            reverted = _find_reverted(diff, file.edits)
            if reverted is None:
                file.edits[diff.key] = diff
                if len(file.edits) > MAX_EDITS:
                    del file.edits[next(iter(file.edits))]
                continue
            del file.edits[reverted.key]
            if not reverted.is_minor and not self._is_moved(reverted, path):
                self._reverted = [*self._reverted, (path, reverted, call_id)][-MAX_EDITS:]
        return diffs

    def _add_content(self, call_id: str, path: str, file: _FileHistory, content: str) -> LineDiff:
        """Add a call that writes a whole file. If the file gets an earlier content again, a dead end is recorded."""
        key = hash(content)
        earlier = [call for past, call in file.contents if past == key]
        if earlier and file.contents[-1][0] != key:
            text = f"{path} was written back to an earlier content"
            calls = (earlier[-1], file.contents[-1][1], call_id)
            self._rewritten.append(DeadEnd("changed back", path, shorten(text), calls))
        file.contents = [*file.contents, (key, call_id)][-MAX_EDITS:]
        diff = LineDiff(call_id, "", content)
        file.edits = {diff.key: diff}
        return diff

    def flush(self) -> list[DeadEnd]:
        """The dead ends since the last call of `flush`. All reverted edits together are one dead end."""
        if not self._reverted and not self._rewritten:
            return []
        rewritten, self._rewritten = self._rewritten, []
        if not self._reverted:
            return rewritten
        reverted, self._reverted = self._reverted, []
        paths = list(dict.fromkeys(path for path, _, _ in reverted))
        sample = one_line(max((diff.sample for _, diff, _ in reverted), key=len))
        count = "an edit" if len(reverted) == 1 else f"{len(reverted)} edits"
        text = f"{count} of {join_names(paths)} {'was' if len(reverted) == 1 else 'were'} undone: {sample}"
        calls = dict.fromkeys(call for _, diff, later in reverted for call in (diff.call, later))
        return [*rewritten, DeadEnd("undone", f"{paths[0]} {sample}", shorten(text), tuple(calls)[:4])]

    def add_command(self, call_id: str, command: str) -> list[DeadEnd]:
        """Add a successful shell command. Returns a dead end if the command is a git command that discards changes."""
        if "git" not in command:
            return []
        if re.search(r"\bgit commit\b", command):
            for file in self._files.values():
                file.edits.clear()
        paths = failures.discarded_paths(command)
        if paths is None:
            return []
        discarded = [path for path, file in self._files.items() if file.edits and _is_one_of(path, paths)]
        edits = [edit for path in discarded for edit in self._files[path].edits.values()]
        for path in discarded:
            self._files[path].edits.clear()
        if all(edit.is_minor for edit in edits):
            return []
        text = f"changes of {join_names(discarded)} were thrown away by `{command[:80]}`"
        calls = (*(edit.call for edit in edits[-4:]), call_id)
        return [DeadEnd("changed back", " ".join(discarded), shorten(text), calls)]

    def _is_moved(self, reverted: LineDiff, path: str) -> bool:
        """Whether at least half of the reverted edit's added lines were also added to another file."""
        others = (edit.added for name, file in self._files.items() if name != path for edit in file.edits.values())
        return bool(reverted.added) and any(len(added & reverted.added) * 2 >= len(reverted.added) for added in others)


def remember(values: OrderedDict[Key, Value], key: Key, value: Value, limit: int) -> None:
    """Store a value. If there are more than `limit` values, drop the least recently stored value."""
    values[key] = value
    values.move_to_end(key)
    if len(values) > limit:
        values.popitem(last=False)


def join_names(names: list[str]) -> str:
    """The last three names as text, and the number of other names if there are any."""
    return ", ".join(names[-3:]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def shorten(text: str) -> str:
    """A text as one line of at most 400 characters."""
    return " ".join(text.split())[:400]


def _is_one_of(path: str, paths: list[str]) -> bool:
    return not paths or any(path == one or path.endswith("/" + one.removeprefix("./")) for one in paths)


def _is_minor_line(line: str) -> bool:
    is_quoted = line.startswith('"') and line.endswith('"')
    return is_quoted or line.startswith(_MINOR_STARTS) or any(word in line for word in _REMARKS)


def _lines(text: str) -> set[str]:
    return set(map(str.strip, text.split("\n", _EDIT_LINES)[:_EDIT_LINES]))


def _with_words(lines: set[str]) -> list[str]:
    """The lines that contain letters, not only brackets and numbers."""
    return [line[:_LINE_CHARS] for line in lines if not line.isascii() or line.lower() != line.upper()]


def _find_reverted(diff: LineDiff, edits: dict[int, LineDiff]) -> LineDiff | None:
    """The latest edit in `edits` that the edit `diff` reverts; None if `diff` reverts no edit."""
    candidates = (edits.keys() & diff.removed) | (edits.keys() & diff.added)
    if not candidates:
        return None
    return next((past for key, past in reversed(edits.items()) if key in candidates and _reverts(diff, past)), None)


def _reverts(diff: LineDiff, past: LineDiff) -> bool:
    """Whether the edit `diff` reverts the edit `past`.

    `diff` must remove the lines that `past` added, add the lines that `past` removed, and add few other lines.
    """
    if not (past.added or past.removed) or not (past.added <= diff.removed and past.removed <= diff.added):
        return False
    return len(diff.added - past.removed) <= len(diff.removed) // 4
