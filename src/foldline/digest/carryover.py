"""The carryover of a local digest: identifiers of files and commands, lines that are likely to be edited, and settings.

An identifier cannot be guessed, so the digest names the identifiers that are most likely to be needed again, as many as
fit. If the budget is large, the digest first shows settings (lines that give a name a value), the newest first. Then it
shows other lines of recently used files, because an edit must quote whole lines. Lines that import something come last.
If the budget is small, settings are shown only if all identifiers fit.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from foldline.digest.extract.facts import Facts
from foldline.digest.extract.file_contents import IMPORT, edit_probabilities
from foldline.digest.extract.identifiers import reuse_probability
from foldline.digest.markup import has_instruction, quote
from foldline.plan.timeline import handles_of

_FILE_LINES_FROM, _FILE_LINES_SHARE = 6_000, 0.9
"""Whole lines of files get the share `_FILE_LINES_SHARE` of the budget above `_FILE_LINES_FROM` characters."""
_SETTINGS_SHARE = 0.25
"""Settings get at most this share of the characters for whole lines."""
_SEPARATOR_CHARS, _LINE_CHARS, _LABEL_CHARS = 3, 10, 24
"""Estimated numbers of characters.

They are for a separator, for the dash and the handle of a line, and for the file name at the start of a line.
"""
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

A long list is split into several lines, so that a digest that must be shortened loses only a part of it. If one line is
enough, names of files are written with their folder.
"""
_NAME = re.compile(r"\w+")


class _Line(NamedTuple):
    """A line of a file or a command that the digest may show. For a setting, `number` is 0."""

    source: str
    text: str
    message_index: int
    number: int = 0


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
    names = _unshown_names(facts, kept_indexes, shown)
    lines_room = max(0, int((room - _FILE_LINES_FROM) * _FILE_LINES_SHARE))
    settings_room = max(int(lines_room * _SETTINGS_SHARE), room - sum(len(name) + 1 for name in names))
    used, taken, sources = 0, dict[str, _Line](), set[str]()
    settings, file_lines = _settings(facts, kept_indexes, shown), _file_lines(facts, kept_indexes)
    for limit, candidates in ((settings_room, settings), (lines_room, file_lines)):
        for line in candidates if limit > 0 else ():
            cost = len(line.text) + _SEPARATOR_CHARS + (0 if line.source in sources else _LINE_CHARS + _LABEL_CHARS)
            if used + cost <= limit and line.text not in taken and not has_instruction(line.text):
                taken[line.text] = line
                sources.add(line.source)
                used += cost
            elif limit - used < _LINE_CHARS + _LABEL_CHARS:
                break
    groups: dict[str, _Group] = {}
    for line in sorted(taken.values(), key=lambda line: line.number):
        group = groups.setdefault(line.source, _Group([], [], []))
        group.lines.append(quote(line.text))
        group.indexes.append(line.message_index)
    if groups:
        names = _unshown_names(facts, kept_indexes, "\n".join([shown, *taken]))
    left, listed = room - used, list[str]()
    for name in sorted(names, key=lambda name: (-names[name], name)):
        left -= len(name) + 1
        if left < 0:
            break
        listed.append(name)
    lines = _format(facts, groups, listed, label)
    while listed and (excess := sum(map(len, lines)) + len(lines) - room) > 0:
        while listed and excess > 0:
            excess -= len(listed.pop()) + 1
        lines = _format(facts, groups, listed, label)
    return lines


def _unshown_names(facts: Facts, kept_indexes: Collection[int], shown: str) -> dict[str, float]:
    """The identifiers that a text does not show, each with its weight."""
    words = set(_NAME.findall(shown))
    return {
        name: reuse_probability(it, facts.end) / (len(name) + _NAME_BIAS)
        for name, it in facts.identifiers.items()
        if it.last_index not in kept_indexes and not (name in words if name.isidentifier() else name in shown)
    }


def _settings(facts: Facts, kept_indexes: Collection[int], shown: str) -> Iterator[_Line]:
    """The settings that a text does not show, newest first."""
    for (source, _), (text, index) in sorted(facts.settings.items(), key=lambda item: -item[1][1]):
        if index not in kept_indexes and text not in shown:
            yield _Line(source, text, index)


def _file_lines(facts: Facts, kept_indexes: Collection[int]) -> Iterator[_Line]:
    """The lines of files. Lines that are likely to be edited next come first.

    Lines are ranked by the probability of an edit, divided by the length of the line. Lines that import something come
    last. Lines that a message in `kept_indexes` shows are left out.
    """
    weighed = [
        (IMPORT.match(line.text) is not None, -probability / len(line.text), path, line.number, line)
        for probability, path, line in edit_probabilities(facts.files, facts.end, facts.identifiers)
    ]
    weighed.sort(key=lambda each: each[:4])
    seen = {line.text for *_, line in weighed if line.message_index in kept_indexes}
    for _, _, path, _, line in weighed:
        if line.text not in seen:
            yield _Line(path, line.text, line.message_index, line.number)


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
