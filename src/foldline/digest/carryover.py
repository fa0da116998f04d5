"""The carryover of a local digest: identifiers, and lines of files that are likely to be edited.

An identifier cannot be guessed, so the digest names the identifiers that are most likely to be needed again, as many as
fit. If the budget is large, the digest first shows lines of recently used files, because an edit must quote whole
lines. Lines that import something come last.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import cached_property
from itertools import accumulate

from foldline.digest.extract.facts import Facts
from foldline.digest.extract.file_contents import IMPORT, FileLine, edit_probabilities
from foldline.digest.extract.identifiers import reuse_probability
from foldline.digest.markup import has_instruction, quote
from foldline.plan.timeline import handles_of

_NAMES_CHARS, _FILE_LINES_SHARE = 5_000, 0.9
"""If the budget has more than `_NAMES_CHARS` characters, whole lines of files get the share `_FILE_LINES_SHARE` of what
the identifiers leave. The identifiers may keep up to `_NAMES_CHARS` characters.
"""
_SEPARATOR_CHARS, _LABEL_CHARS = 3, 34
"""Estimated numbers of characters: of a separator, and of the file name and the handle of a line."""
_NAME_BIAS = 12
"""Names are ranked by their reuse probability, divided by their length plus this number of characters. Without this
number, the shortest names would always be chosen.
"""
_MIN_PROBABILITY = 0.01
"""A name that is less likely to be needed again is left out."""
_ROW_NAMES, _ROW_START = 8, "- Also: "
"""Maximum number of identifiers in a line, and the start of such a line. If one line is enough, files are written with
their folder.
"""
_WORD = re.compile(r"\w+")


class Carryover:
    """Writes the carryover. Messages in `kept_indexes` are left out.

    The function `label` returns the start of the line for a file.
    """

    def __init__(self, facts: Facts, kept_indexes: Collection[int], label: Callable[[str], str]) -> None:
        self._facts, self._kept, self._label = facts, kept_indexes, label
        found = [(name, it) for name, it in facts.identifiers.items() if it.last_index not in kept_indexes]
        probabilities = {name: reuse_probability(it, facts.end) for name, it in found}
        weights = {name: it / (len(name) + _NAME_BIAS) for name, it in probabilities.items() if it >= _MIN_PROBABILITY}
        self._names = sorted(weights, key=lambda name: (-weights[name], name))

    def write(self, room: int, shown: str) -> list[str]:
        """The lines of the carryover, in at most `room` characters. Identifiers in the text `shown` are left out."""
        names = self._unshown(shown)
        used_by_names = min(_NAMES_CHARS, sum(map(len, names)) + len(names))
        lines = self._write_file_lines(int((room - used_by_names) * _FILE_LINES_SHARE)) if room > _NAMES_CHARS else []
        left = room - sum(map(len, lines)) - len(lines)
        names = self._unshown("\n".join([shown, *lines])) if lines else names
        starts = [len(_ROW_START) * (place % _ROW_NAMES == 0) for place in range(len(names))]
        lengths = accumulate(len(name) + 1 + start for name, start in zip(names, starts, strict=True))
        names = names[: sum(length <= left for length in lengths)]
        if len(names) <= _ROW_NAMES:
            names = [_with_folder(name, self._facts.identifiers[name].line) for name in names]
        rows = [names[start : start + _ROW_NAMES] for start in range(0, len(names), _ROW_NAMES)]
        return [*lines, *(_ROW_START + quote(" ".join(row)) for row in rows)]

    def _unshown(self, shown: str) -> list[str]:
        """The identifiers that a text does not show, the most useful first."""
        words = set(_WORD.findall(shown))
        return [name for name in self._names if not (name in words if name.isidentifier() else name in shown)]

    def _write_file_lines(self, room: int) -> list[str]:
        """Lines of files in about `room` characters: an entry for each file, the file that was used first at the
        top.
        """
        taken = dict[str, tuple[str, FileLine]]()
        paths, left = set[str](), room
        for path, line in self._file_lines if room > 0 else ():
            cost = len(line.text) + _SEPARATOR_CHARS + (0 if path in paths else _LABEL_CHARS)
            if cost <= left and line.text not in taken and not has_instruction(line.text):
                taken[line.text] = path, line
                paths.add(path)
                left -= cost
            elif left < _LABEL_CHARS:
                break
        by_file: dict[str, list[FileLine]] = {}
        for path, line in sorted(taken.values(), key=lambda each: each[1].number):
            by_file.setdefault(path, []).append(line)
        entries = []
        for path, lines in sorted(by_file.items(), key=lambda each: min(line.message_index for line in each[1])):
            texts = " · ".join([quote(line.text) for line in lines])
            entries.append(f"- {self._label(path)}{texts} [{handles_of([line.message_index for line in lines])}]")
        return entries

    @cached_property
    def _file_lines(self) -> list[tuple[str, FileLine]]:
        """The lines of files with their paths. Lines that are likely to be edited next come first.

        Lines are ranked by the probability of an edit, divided by the length of the line. Lines that import something
        come last. Lines that a message in `kept_indexes` shows are left out.
        """
        facts = self._facts
        found = [
            (IMPORT.match(line.text) is not None, -probability / len(line.text), path, line.number, line)
            for probability, path, line in edit_probabilities(facts.files, facts.end, facts.identifiers)
        ]
        found.sort(key=lambda each: each[:4])
        seen = {line.text for *_, line in found if line.message_index in self._kept}
        return [(path, line) for *_, path, _, line in found if line.text not in seen]


def _with_folder(name: str, line: str) -> str:
    """The path of the file `name` in a line; `name` alone if the line has no such path."""
    found = re.search(rf"[\w.@~/-]{{0,200}}/{re.escape(name)}(?![\w/-])", line)
    return found[0] if found else name
