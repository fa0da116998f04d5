"""The carryover of a local digest: identifiers of files and commands, lines that are likely to be edited, and settings.

An identifier cannot be guessed, so the digest names the identifiers that are most likely to be needed again, as many as
fit. If the budget is large, the digest first shows settings (lines that give a name a value), the newest first. Then it
shows other lines of recently used files, because an edit must quote whole lines. Lines that import something come last.
If the budget is small, settings are shown only if all identifiers fit.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from foldline.digest.extract.facts import Facts
from foldline.digest.extract.file_contents import IMPORT, edit_probabilities
from foldline.digest.extract.identifiers import reuse_probability
from foldline.digest.markup import has_instruction, quote
from foldline.plan.timeline import handles_of

_FILE_LINES_FROM, _FILE_LINES_SHARE = 5_000, 0.9
"""Whole lines of files get the share `_FILE_LINES_SHARE` of the budget above `_FILE_LINES_FROM` characters."""
_SETTINGS_SHARE = 0.25
"""Settings get at most this share of the characters for whole lines."""
_SEPARATOR_CHARS, _LABEL_CHARS = 3, 34
"""Estimated numbers of characters: of a separator, and of the file name and the handle of a line."""
_NAME_BIAS = 12
"""Names are ranked by their reuse probability, divided by their length plus this number of characters. Without this
number, the shortest names would always be chosen.
"""
_GROUP_SIZE = 3
"""If a file or command has at least this number of identifiers, the digest lists them after the name of the file or
command.
"""
_ROW_NAMES = 8
"""Maximum number of identifiers in an `Also:` line. Such a line lists identifiers without a file or command.

If one line is enough, names of files are written with their folder.
"""
_NAME = re.compile(r"\w+")
_NAME_CHARS = 20
"""Approximate length of a name."""


class _Line(NamedTuple):
    """A line of a file or a command that the digest may show. For a setting, `number` is 0."""

    source: str
    text: str
    message_index: int
    number: int = 0


class Carryover:
    """Writes the carryover. Messages in `kept_indexes` are left out.

    The function `label` gets the name of a file or a command, and returns the text with which its line begins.
    """

    def __init__(self, facts: Facts, kept_indexes: Collection[int], label: Callable[[str], str]) -> None:
        self._facts, self._kept, self._label = facts, kept_indexes, label
        weights = {
            name: reuse_probability(it, facts.end) / (len(name) + _NAME_BIAS)
            for name, it in facts.identifiers.items()
            if it.last_index not in kept_indexes
        }
        self._names = sorted(weights, key=lambda name: (-weights[name], name))

    def write(self, room: int, shown: str) -> list[str]:
        """The lines of the carryover, in at most `room` characters. Identifiers in the text `shown` are left out."""
        names = self._unshown(shown)
        lines_room = max(0, int((room - _FILE_LINES_FROM) * _FILE_LINES_SHARE))
        settings_room = max(int(lines_room * _SETTINGS_SHARE), room - sum(len(name) + 1 for name in names))
        used, taken, sources = 0, dict[str, _Line](), set[str]()
        settings = [line for line in self._settings if line.text not in shown]
        for limit, candidates in ((settings_room, settings), (lines_room, self._file_lines if lines_room else ())):
            for line in candidates:
                cost = len(line.text) + _SEPARATOR_CHARS + (0 if line.source in sources else _LABEL_CHARS)
                if used + cost <= limit and line.text not in taken and not has_instruction(line.text):
                    taken[line.text] = line
                    sources.add(line.source)
                    used += cost
                elif limit - used < _LABEL_CHARS:
                    break
        if taken:
            names = self._unshown("\n".join([shown, *taken]))
        left = room - used
        lengths = accumulate(len(name) + 1 for name in names)
        names = names[: sum(length <= left for length in lengths)]
        while (excess := sum(map(len, lines := self._format(taken.values(), names))) + len(lines) - room) > 0 and names:
            names = names[: -(1 + excess // _NAME_CHARS)]
        return lines

    @cached_property
    def _settings(self) -> list[_Line]:
        """The settings, newest first."""
        found = sorted(self._facts.settings.items(), key=lambda item: -item[1][1])
        return [_Line(source, text, index) for (source, _), (text, index) in found if index not in self._kept]

    @cached_property
    def _file_lines(self) -> list[_Line]:
        """The lines of files. Lines that are likely to be edited next come first.

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
        return [_Line(path, it.text, it.message_index, it.number) for *_, path, _, it in found if it.text not in seen]

    def _unshown(self, shown: str) -> list[str]:
        """The identifiers that a text does not show, the most useful first."""
        words = set(_NAME.findall(shown))
        return [name for name in self._names if not (name in words if name.isidentifier() else name in shown)]

    def _format(self, taken: Iterable[_Line], names: list[str]) -> list[str]:
        """The carryover as lines of a digest: one line for each file or command, in the order of the record.

        Names that belong to none of these lines come last, in lines that begin with `Also:`.
        """
        known = {name: self._facts.identifiers[name].line for name in names}
        counts = Counter(line.source for line in known.values() if line.source)
        groups: dict[str, tuple[list[str], list[str], list[int]]] = {}
        others = []
        for line in sorted(taken, key=lambda line: line.number):
            texts, _, indexes = groups.setdefault(line.source, ([], [], []))
            texts.append(quote(line.text))
            indexes.append(line.message_index)
        for name, found in known.items():
            if found.source in groups or counts[found.source] >= _GROUP_SIZE:
                _, named, indexes = groups.setdefault(found.source, ([], [], []))
                named.append(name)
                indexes.append(found.message_index)
            else:
                others.append(name)
        lines = []
        for source, (texts, named, indexes) in sorted(groups.items(), key=lambda item: min(item[1][2])):
            also = [f"{'also ' if texts else ''}{quote(' '.join(named))}"] if named else []
            lines.append(f"- {self._label(source)}{' · '.join([*texts, *also])} [{handles_of(indexes)}]")
        if len(others) <= _ROW_NAMES:
            others = [_with_folder(name, known[name].text) for name in others]
        rows = [others[start : start + _ROW_NAMES] for start in range(0, len(others), _ROW_NAMES)]
        return [*lines, *(f"- Also: {quote(' '.join(row))}" for row in rows)]


def _with_folder(name: str, line: str) -> str:
    """The path of the file `name`, taken from the text of a line; `name` alone if the line has no such path."""
    found = re.search(rf"[\w.@~/-]{{0,200}}/{re.escape(name)}(?![\w/-])", line)
    return found[0] if found else name
