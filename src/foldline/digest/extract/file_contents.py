"""The files in work as they were last seen, line by line.

An edit must quote the text that it replaces exactly, and no digest has room for whole files. So the lines of files are
kept, and the digest shows those that are most likely to be edited next.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from math import exp, log
from typing import NamedTuple

from foldline.digest.extract.identifiers import IdentifiedLine

_MIN_CHARS, _MAX_CHARS = 20, 160
"""Shorter lines occur everywhere, longer ones cost more than they tell."""
_MAX_LINES = 6_000
"""Lines that are kept; beyond that, the least recently touched files are dropped."""
_LINE_NUMBER = re.compile(r"(\d{1,6})(?:→|\t|: ?|\|)\s*")
"""The number that reading tools put before a line."""
_MAX_EDITS = 8
"""Edits of a file whose line numbers are remembered."""
_NEAR_LINES = 10
"""Distance to an edit at which its effect on a line falls to 1/e."""


class FileLine(NamedTuple):
    """A line of a file."""

    text: str
    message_index: int
    """The newest message that shows it."""
    number: int
    """Its line number, as far as it is known."""
    identifiers: tuple[str, ...]


class FileContents(NamedTuple):
    """A file as it was last seen."""

    lines: Mapping[str, FileLine]
    last_index: int
    """The newest message that read or edited it."""
    edits: tuple[int, ...] = ()
    """Line numbers of its edits, the last one at the end."""


class FilesInWork:
    """The contents of files, while messages are read."""

    def __init__(self, prior: Mapping[str, FileContents]) -> None:
        self.files = dict(prior)
        self._line_count = sum(len(file.lines) for file in prior.values())

    def record_read(self, path: str, index: int, shown: Iterable[IdentifiedLine], *, part: bool) -> None:
        """A file was read: the lines shown replace all known ones, or are added to them if a part was read."""
        old = self.files.get(path)
        lines = dict(old.lines) if old is not None and part else {}
        for order, (line, identifiers) in enumerate(shown, start=1):
            number = _LINE_NUMBER.match(line)
            text = line[number.end() :] if number else line
            if _MIN_CHARS <= len(text) <= _MAX_CHARS:
                lines[text] = FileLine(text, index, int(number[1]) if number else order, identifiers)
        self._put(path, FileContents(lines, index, old.edits if old else ()))

    def record_edit(self, path: str, index: int, removed: Iterable[str], added: Iterable[IdentifiedLine]) -> None:
        """A file was edited: some lines are removed, others added."""
        old = self.files.get(path) or FileContents({}, index)
        lines = dict(old.lines)
        numbers = [line.number for text in removed if (line := lines.pop(text.strip(), None))]
        first = min(numbers, default=0)
        for order, (text, identifiers) in enumerate(added):
            if _MIN_CHARS <= len(text) <= _MAX_CHARS:
                lines[text] = FileLine(text, index, first + order, identifiers)
        self._put(path, FileContents(lines, index, (*old.edits, first)[-_MAX_EDITS:]))

    def _put(self, path: str, file: FileContents) -> None:
        old = self.files.pop(path, None)
        self._line_count += len(file.lines) - (len(old.lines) if old else 0)
        self.files[path] = file
        while self._line_count > _MAX_LINES and len(self.files) > 1:
            self._line_count -= len(self.files.pop(next(iter(self.files))).lines)


def edit_probabilities(
    files: Mapping[str, FileContents], end: int, reuse: Mapping[str, float], calls: Mapping[str, int]
) -> Iterator[tuple[float, str, FileLine]]:
    """How likely each line is edited next, between 0 and 1, with its path.

    `reuse` holds the reuse probability of identifiers, `calls` their call counts. The weights are a logistic fit on
    real sessions, rounded: short files, recently seen, near an edit or with an identifier in use.
    """
    for path, file in files.items():
        base = -2.3 - 0.3 * log(end - file.last_index) - 0.65 * log(1 + len(file.lines))
        base += 0.45 * log(1 + calls.get(path.rpartition("/")[2], 0)) - (1.0 if file.edits else 0.0)
        for line in file.lines.values():
            score = base - 0.35 * log(end - line.message_index) + 0.007 * len(line.text)
            score += 1.2 * max([reuse.get(name, 0.0) for name in line.identifiers], default=0.0)
            if file.edits:
                score += 1.5 * exp(-min([abs(line.number - edit) for edit in file.edits]) / _NEAR_LINES)
            yield 1 / (1 + exp(-score)), path, line
