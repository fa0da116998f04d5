"""The carryover of a local digest: identifiers of files and commands, lines that are likely to be edited, and settings.

An identifier cannot be guessed, so the digest names the identifiers that are most likely to be needed again, as many as
fit. If the budget is large, the digest also shows whole lines of recently used files, because an edit must quote whole
lines. If room is left, the digest shows settings: lines that give a name a value, the newest first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from foldline.digest.extract.facts import Facts
from foldline.digest.extract.file_contents import FileLine, edit_probabilities
from foldline.digest.extract.identifiers import reuse_probability
from foldline.digest.markup import has_instruction, quote
from foldline.plan.timeline import handles_of

_FILE_LINES_FROM, _FILE_LINES_SHARE = 6_000, 0.9
"""Of the budget above `_FILE_LINES_FROM` characters, the share `_FILE_LINES_SHARE` is used for whole lines of files."""
_SEPARATOR_CHARS, _LINE_CHARS, _LABEL_CHARS = 3, 10, 24
"""Estimated numbers of characters: of a separator, of the dash and the handle of a line together, and of the file name
at the start of a line.
"""
_NAME_BIAS = 12
"""Names are ranked by their reuse probability, divided by their length plus this number of characters. Without this
number, the shortest names would always be chosen.
"""
_GROUP_SIZE = 3
"""If a file or command has at least this number of identifiers, they are listed after its name."""
_ROW_NAMES = 8
"""Maximum number of identifiers in an `Also:` line. Such a line lists identifiers without a file or command.

A long list is split into several lines, so that a digest that must be shortened loses only a part of it. If one line is
enough, names of files are written with their folder.
"""
_NAME = re.compile(r"\w+")


class _Group(NamedTuple):
    """The lines and identifiers that the digest shows for one file or command."""

    lines: list[str]
    names: list[str]
    indexes: list[int]


def carryover_lines(
    facts: Facts, kept_indexes: Collection[int], shown: str, room: int, label: Callable[[str], str]
) -> list[str]:
    """The lines of the carryover, in about `room` characters.

    Identifiers in the text `shown` and in messages in `kept_indexes` are left out. The function `label` returns the
    start of the line for a file or a command.
    """
    reuse = {name: reuse_probability(found, facts.end) for name, found in facts.identifiers.items()}
    groups: dict[str, _Group] = {}
    for path, line in _file_lines(facts, kept_indexes, int((room - _FILE_LINES_FROM) * _FILE_LINES_SHARE)):
        group = groups.setdefault(path, _Group([], [], []))
        group.lines.append(quote(line.text))
        group.indexes.append(line.message_index)
    told = "\n".join([shown, *(line for group in groups.values() for line in group.lines)])
    words = set(_NAME.findall(told))
    wanted = {
        name: probability / (len(name) + _NAME_BIAS)
        for name, probability in reuse.items()
        if facts.identifiers[name].last_index not in kept_indexes
        and not (name in words if name.isidentifier() else name in told)
    }
    names, left = list[str](), room - len(told) + len(shown) - _LINE_CHARS * len(groups)
    free = left - sum(len(name) + 1 for name in wanted)
    for (source, name), (text, index) in sorted(facts.settings.items(), key=lambda item: -item[1][1]):
        cost = len(text) + _SEPARATOR_CHARS + (0 if source in groups else _LINE_CHARS + len(label(source)))
        if cost <= free and index not in kept_indexes and text not in told and not has_instruction(text):
            group = groups.setdefault(source, _Group([], [], []))
            group.lines.append(quote(text))
            group.indexes.append(index)
            free, left = free - cost, left - cost
            wanted.pop(name, None)
    for name in sorted(wanted, key=lambda name: (-wanted[name], name)):
        left -= len(name) + 1
        if left < 0:
            break
        names.append(name)
    lines = _format(facts, groups, names, label)
    while names and (excess := sum(map(len, lines)) + len(lines) - room) > 0:
        while names and excess > 0:
            excess -= len(names.pop()) + 1
        lines = _format(facts, groups, names, label)
    return lines


def _file_lines(facts: Facts, kept_indexes: Collection[int], room: int) -> Iterator[tuple[str, FileLine]]:
    """The file lines that are most likely to be edited next, with the paths of their files.

    Lines are chosen by the probability of an edit, divided by the length of the line. A line that occurs in several
    files is returned once. Lines that a message in `kept_indexes` shows are left out.
    """
    if room <= 0:
        return
    weighed = [
        (-probability / len(line.text), path, line.number, line)
        for probability, path, line in edit_probabilities(facts.files, facts.end, facts.identifiers)
    ]
    weighed.sort(key=lambda each: each[:3])
    seen = {line.text for *_, line in weighed if line.message_index in kept_indexes}
    taken, opened = list[tuple[str, int, FileLine]](), set[str]()
    for _, path, number, line in weighed:
        cost = len(line.text) + _SEPARATOR_CHARS + (0 if path in opened else _LINE_CHARS + _LABEL_CHARS)
        if cost <= room and line.text not in seen and not has_instruction(line.text):
            room -= cost
            opened.add(path)
            seen.add(line.text)
            taken.append((path, number, line))
        elif room < _LINE_CHARS + _LABEL_CHARS:
            break
    yield from [(path, line) for path, _, line in sorted(taken, key=lambda each: each[:2])]


def _format(facts: Facts, groups: dict[str, _Group], names: list[str], label: Callable[[str], str]) -> list[str]:
    """The carryover as lines of a digest: one line for each file or command, in the order of the record.

    Names that belong to none of these lines come last, in lines that begin with `Also:`.
    """
    found = {name: facts.identifiers[name].line for name in names}
    counts = Counter(line.source for line in found.values() if line.source)
    groups = {source: _Group(group.lines, [], [*group.indexes]) for source, group in groups.items()}
    for name, line in found.items():
        if counts[line.source] >= _GROUP_SIZE or line.source in groups:
            group = groups.setdefault(line.source, _Group([], [], []))
            group.names.append(name)
            group.indexes.append(line.message_index)
    lines = []
    for source, (texts, named, indexes) in sorted(groups.items(), key=lambda item: min(item[1].indexes)):
        also = [f"{'also ' if texts else ''}{quote(' '.join(named))}"] if named else []
        lines.append(f"- {label(source)}{' · '.join([*texts, *also])} [{handles_of(indexes)}]")
    others = [name for name, line in found.items() if line.source not in groups]
    if len(others) <= _ROW_NAMES:
        others = [_with_folder(name, found[name].text) for name in others]
    rows = [others[start : start + _ROW_NAMES] for start in range(0, len(others), _ROW_NAMES)]
    return [*lines, *(f"- Also: {quote(' '.join(row))}" for row in rows)]


def _with_folder(name: str, line: str) -> str:
    """The path of the file `name`, taken from the text of a line; `name` alone if the line has no such path."""
    found = re.search(rf"[\w.@~/-]{{0,200}}/{re.escape(name)}(?![\w/-])", line)
    return found[0] if found else name
