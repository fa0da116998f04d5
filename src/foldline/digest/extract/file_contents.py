"""The files that a session reads or edits, line by line, as they were last seen.

An edit must quote exactly the text that it replaces, but no digest has room for whole files. So the lines of files are
stored, and the digest shows those that are most likely to be edited next.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from math import exp, log
from typing import NamedTuple

from foldline.digest.extract.identifiers import IdentifiedLine
from foldline.digest.markup import has_instruction

_MIN_CHARS, _MAX_CHARS = 20, 160
"""The least and the largest length of a stored line. Shorter lines occur everywhere; longer ones need too much room."""
_MAX_LINES = 6_000
"""Maximum number of lines stored; beyond it, the least recently used files are dropped."""
_LINE_NUMBER = re.compile(r"(\d{1,6})(?:→|\t|: ?|\|)\s*")
"""The line number that tools print at the start of each line when they read a file."""
_MAX_EDITS = 8
"""For each file, the line numbers of this many edits are stored at most."""
_DEFINITION = re.compile(
    r"(?:(?:export|default|pub(?:\([a-z]{1,9}\))?|async|static|public|private|protected|abstract|final|override) ){0,4}"
    r"(?:def|class|func|fn|function|interface|struct|type|enum|trait|const|CREATE TABLE|#{1,4})"
    r"(?: \([^)\n]{0,80}\))? +([\w.]{3,80})"
)
"""The start of a line that defines a name, in common languages."""
_CHANGE_CHARS, _MAX_NAMES = 90, 5
_NEAR_LINES = 10
"""An edit raises the scores of the lines around it. At this distance, in lines, its effect has fallen to 1/e."""


class FileLine(NamedTuple):
    """A line of a file."""

    text: str
    message_index: int
    """Index of the newest message that shows the line."""
    number: int
    """The line number. The number is an estimate if the tool printed no line numbers."""
    identifiers: tuple[str, ...]


class FileContents(NamedTuple):
    """A file as it was last seen."""

    lines: Mapping[str, FileLine]
    last_index: int
    """Index of the newest message that read or edited the file."""
    edits: tuple[int, ...] = ()
    """Line numbers of the file's latest edits, the newest last."""


class FilesInWork:
    """Collects the contents of files while messages are read."""

    def __init__(self, prior: Mapping[str, FileContents]) -> None:
        self.files = dict(prior)
        self._line_count = sum(len(file.lines) for file in prior.values())

    def record_read(self, path: str, index: int, shown: Iterable[IdentifiedLine], *, part: bool) -> None:
        """Record that a file was read.

        The lines in `shown` replace all known lines. If only a part of the file was read, they are added
        to the known lines.
        """
        old = self.files.get(path)
        lines = dict(old.lines) if old is not None and part else {}
        for order, (line, identifiers) in enumerate(shown, start=1):
            number = _LINE_NUMBER.match(line)
            text = line[number.end() :] if number else line
            if _MIN_CHARS <= len(text) <= _MAX_CHARS:
                lines[text] = FileLine(text, index, int(number[1]) if number else order, identifiers)
        self._put(path, FileContents(lines, index, old.edits if old else ()))

    def record_edit(self, path: str, index: int, removed: Iterable[str], added: Iterable[IdentifiedLine]) -> None:
        """Record that a file was edited: forget the removed lines and store the added ones."""
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


def change_of(added: Iterable[IdentifiedLine], replaced: Iterable[str]) -> list[str]:
    """What an edit changed: the names that it defines.

    If there are none, the first written line that has an identifier.
    """
    before = "\n".join(replaced)
    names, first = dict[str, None](), ""
    for line, identifiers in added:
        if (found := _DEFINITION.match(line)) and found[1] not in before:
            names[found[1]] = None
        elif not first and identifiers and line not in before and not has_instruction(line):
            first = line
    return list(names)[:_MAX_NAMES] or ([f"`{first[:_CHANGE_CHARS]}`"] if first else [])


def edit_probabilities(
    files: Mapping[str, FileContents], end: int, reuse: Mapping[str, float], calls: Mapping[str, int]
) -> Iterator[tuple[float, str, FileLine]]:
    """Yields for each line the probability (0 to 1) that it is edited next, the path of its file, and the line.

    `reuse` holds the reuse probability of each identifier, and `calls` its call count. The weights are rounded values
    of a logistic regression on real sessions. A line has a higher score if its file is short, if it was seen recently,
    or if it is near an edit.
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
