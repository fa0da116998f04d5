"""The files that a session reads or edits, line by line, as they were last seen.

An edit must quote exactly the text that it replaces, but no digest has room for whole files. So the lines of files are
stored, and the digest shows the lines that are most likely to be edited next.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import exp, log
from typing import NamedTuple

from foldline.digest.extract.identifiers import LINE_NUMBER, WORD, Identifier, identifiers_in
from foldline.digest.markup import has_instruction

_MIN_CHARS, _MAX_CHARS = 20, 240
"""The least and the largest length of a stored line. Shorter lines occur everywhere; longer ones need too much room."""
_MAX_LINES, _MAX_FILES = 6_000, 300
"""Maximum numbers of stored lines and files; beyond them, the least recently used files are dropped."""
_MAX_REPEATS = 10
"""A line that occurs in a file more often than this is not stored, because an edit cannot quote it alone."""
_MAX_EDITS = 8
"""Maximum number of edits per file for which line numbers are stored."""
_DEFINITION = re.compile(
    r"(?:(?:export|default|pub(?:\([a-z]{1,9}\))?|async|static|public|private|protected|abstract|final|override) ){0,4}"
    r"(?:def|class|func|fn|function|interface|struct|type|enum|trait|const|CREATE TABLE|#{1,4})"
    r"(?: \([^)\n]{0,80}\))? +([\w.]{3,80})"
)
"""The start of a line that defines a name, in common languages."""
IMPORT = re.compile(r"import |from |#include|use |\"[\w./@-]+\"$")
"""The start of a line that imports something. In Go, such a line is a path in quotes."""
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


class FileContents(NamedTuple):
    """A file as it was last seen."""

    lines: Mapping[str, FileLine] = {}
    edits: tuple[int, ...] = ()
    """Line numbers of the file's latest edits, the newest last."""


def record_read(
    files: dict[str, FileContents], path: str, index: int, shown: Iterable[str], *, part: bool = False
) -> None:
    """Record that a file was read. The lines replace all known lines, or are added if only a part was read."""
    old = files.get(path, FileContents())
    lines, seen = dict(old.lines) if part else {}, Counter[str]()
    for order, line in enumerate(shown, start=1):
        number = LINE_NUMBER.match(line)
        text = line[number.end() :] if number else line
        seen[text] += 1
        if _MIN_CHARS <= len(text) <= _MAX_CHARS:
            lines[text] = FileLine(text, index, int(number[1]) if number else order)
    lines = {text: line for text, line in lines.items() if seen[text] <= _MAX_REPEATS}
    _put(files, path, FileContents(lines, old.edits))


def record_edit(
    files: dict[str, FileContents], path: str, index: int, removed: Iterable[str], added: Iterable[str]
) -> None:
    """Record that a file was edited: forget the removed lines and store the added ones."""
    old = files.get(path, FileContents())
    lines = dict(old.lines)
    numbers = [line.number for text in removed if (line := lines.pop(text.strip(), None))]
    first = min(numbers, default=0)
    for order, text in enumerate(added):
        if _MIN_CHARS <= len(text) <= _MAX_CHARS:
            lines[text] = FileLine(text, index, first + order)
    _put(files, path, FileContents(lines, (*old.edits, first)[-_MAX_EDITS:]))


def _put(files: dict[str, FileContents], path: str, file: FileContents) -> None:
    """Store the contents of the file that was used last. If there are too many lines, the oldest files are dropped."""
    files.pop(path, None)
    files[path] = file
    count = sum([len(each.lines) for each in files.values()])
    while len(files) > 1 and (count > _MAX_LINES or len(files) > _MAX_FILES):
        count -= len(files.pop(next(iter(files))).lines)


def change_of(added: Iterable[str], replaced: Iterable[str]) -> list[str]:
    """The names that an edit defines. If the edit defines no name, the first new line that contains an identifier."""
    before = "\n".join(replaced)
    names, first = dict[str, None](), ""
    for line in added:
        if (found := _DEFINITION.match(line)) and found[1] not in before:
            names[found[1]] = None
        elif not first and line not in before and any(map(identifiers_in, WORD.findall(line))):
            first = "" if has_instruction(line) else line
    return list(names)[:_MAX_NAMES] or ([f"`{first[:_CHANGE_CHARS]}`"] if first else [])


def edit_probabilities(
    files: Mapping[str, FileContents], end: int, identifiers: Mapping[str, Identifier]
) -> Iterator[tuple[float, str, FileLine]]:
    """Yields each line with the probability (0 to 1) that it is edited next, and with the path of its file.

    The weights are rounded values of a logistic regression on real sessions. A line has a higher score if it is long,
    if it was seen recently, or if it is near an edit. The lines of a file have higher scores if the file is short, if
    it was named in a call or by the user, or if it has not been edited yet.
    """
    for path, file in files.items():
        name = identifiers.get(path.rpartition("/")[2])
        base = -13.8 - 0.63 * log(1 + len(file.lines)) - (0.9 if file.edits else 0.0)
        if name:
            base += 0.7 * log(1 + name.call_count) + (1.2 if name.user_count else 0.0)
        for line in file.lines.values():
            score = base - 0.5 * log(end - line.message_index) + 2.65 * log(len(line.text))
            if file.edits:
                score += 1.75 * exp(-min([abs(line.number - edit) for edit in file.edits]) / _NEAR_LINES)
            yield 1 / (1 + exp(-score)), path, line
