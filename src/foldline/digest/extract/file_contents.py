"""Sheets: the files in work as they were last seen, line by line.

Whoever goes on with the work changes lines of files that were read or written before, and a change must name what it
replaces letter for letter. No digest has room for whole files; but most changes are made near the last one or where
the names of the work stand, in files that were touched lately. So lines are kept, by file, and the likeliest are shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from math import exp, log
from typing import NamedTuple

_SHORTEST, _LONGEST = 20, 160
"""Shorter lines are found everywhere, longer ones cost more than they tell."""
_MOST = 6_000
"""Lines that are kept; beyond that the files go that were not touched for the longest time."""
_NUMBERED = re.compile(r"(\d{1,6})(?:→|\t|: ?|\|)\s*")
"""The number that reading tools put in front of a line."""
_SPOTS = 8
"""Places of a file that are remembered as changed."""
_NEAR = 10
"""Lines around such a place that are likelier to be changed than others."""

Found = tuple[str, tuple[str, ...]]
"""A line and the names in it."""


class Row(NamedTuple):
    """A line of a file."""

    text: str
    at: int
    """The message that showed it last."""
    place: int
    """Its number in the file, as far as that is known."""
    names: tuple[str, ...]


class Sheet(NamedTuple):
    """A file as it was last seen."""

    rows: Mapping[str, Row]
    touched: int
    """The newest message that read or changed it."""
    spots: tuple[int, ...] = ()
    """Where it was changed, the last place at the end."""


class Sheets:
    """What is known of files, while messages are read."""

    def __init__(self, prior: Mapping[str, Sheet]) -> None:
        self.files = dict(prior)
        self._lines = sum(len(sheet.rows) for sheet in prior.values())

    def read(self, path: str, index: int, found: Iterable[Found], *, part: bool) -> None:
        """A file was read, whole or in part: what it holds now takes the place of what it held."""
        old = self.files.get(path)
        rows = dict(old.rows) if old is not None and part else {}
        for order, (line, names) in enumerate(found, start=1):
            number = _NUMBERED.match(line)
            text = line[number.end() :] if number else line
            if _SHORTEST <= len(text) <= _LONGEST:
                rows[text] = Row(text, index, int(number[1]) if number else order, names)
        self._put(path, Sheet(rows, index, old.spots if old else ()))

    def changed(self, path: str, index: int, gone: Iterable[str], found: Iterable[Found]) -> None:
        """A file was changed: some lines are gone, others are new."""
        old = self.files.get(path) or Sheet({}, index)
        rows = dict(old.rows)
        places = [row.place for line in gone if (row := rows.pop(line.strip(), None))]
        place = min(places, default=0)
        for order, (line, names) in enumerate(found):
            if _SHORTEST <= len(line) <= _LONGEST:
                rows[line] = Row(line, index, place + order, names)
        self._put(path, Sheet(rows, index, (*old.spots, place)[-_SPOTS:]))

    def _put(self, path: str, sheet: Sheet) -> None:
        old = self.files.pop(path, None)
        self._lines += len(sheet.rows) - (len(old.rows) if old else 0)
        self.files[path] = sheet
        while self._lines > _MOST and len(self.files) > 1:
            self._lines -= len(self.files.pop(next(iter(self.files))).rows)


def changes(
    files: Mapping[str, Sheet], end: int, odds: Mapping[str, float], called: Mapping[str, int]
) -> Iterator[tuple[float, str, Row]]:
    """How likely each line of the files in work is to be changed next, between 0 and 1, with its file.

    `odds` are those of names to be needed again, `called` says in how many messages a call was made with one. The
    weights are a logistic fit on real sessions, rounded: few lines, lately seen, near a change or with a name in use.
    """
    for path, sheet in files.items():
        file = -2.3 - 0.3 * log(end - sheet.touched) - 0.65 * log(1 + len(sheet.rows))
        file += 0.45 * log(1 + called.get(path.rpartition("/")[2], 0)) - (1.0 if sheet.spots else 0.0)
        for row in sheet.rows.values():
            score = file - 0.35 * log(end - row.at) + 0.007 * len(row.text)
            score += 1.2 * max([odds.get(name, 0.0) for name in row.names], default=0.0)
            if sheet.spots:
                score += 1.5 * exp(-min([abs(row.place - spot) for spot in sheet.spots]) / _NEAR)
            yield 1 / (1 + exp(-score)), path, row
