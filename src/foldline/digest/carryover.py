"""Which names a digest carries over, and in which lines: what is most likely needed again, shown in its line.

A name alone tells nobody what it is, and a line for every name leaves no room for most of them. So the likeliest names
are shown inside a run of a line that they stood in, chosen so that one line explains several, and as many of the others
as fit are at least named. Where there is room for more, it is given to whole lines of the files in work, because to
change a line one must know all of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from foldline.digest.extract.facts import Facts
from foldline.digest.extract.file_contents import Row, changes
from foldline.digest.extract.occurrences import Line, likely
from foldline.digest.quote import quote
from foldline.digest.sections import where
from foldline.digest.validate import gives_orders

_CLIP = 48
"""How many characters of a line are shown around a name."""
_BESIDE = 3
"""Other words that a name must have beside it to be understood."""
_LINES = 0.35
"""The share of the room for lines; the rest is for names alone."""
_FIRST, _WHOLE = 6_000, 0.9
"""Beyond so many characters of room, the share that is for whole lines of the files in work."""
_JOIN = 3
"""Characters between two runs."""
_HEAD = 10
"""Characters around a line of its own: its dash and its handle."""
_LABEL = 24
"""Characters of the file's name in front of its lines."""
_GUESS, _GUESS_LINE = 8, 40
"""Added to the length of a name or a line when they are weighed, so that short ones do not always win."""
_WORD = re.compile(r"\S+")
_BULLET = re.compile(r"(?:[-*•+]|\d{1,2}[.)])\s+")


class Clip(NamedTuple):
    """A run of a line, and the names it explains."""

    text: str
    line: Line
    names: tuple[str, ...]

    @property
    def group(self) -> tuple[str, int]:
        """What it is shown together with: runs of the same file or command, or of the same message."""
        return (self.line.source, -1) if self.line.source else ("", self.line.at)


class Choice:
    """The names that left the view and are not explained yet, with the runs that would explain them."""

    def __init__(self, facts: Facts, stays: Collection[int], quoted: str) -> None:
        self._facts, self._stays = facts, stays
        self._all = {text: likely(name, facts.end) for text, name in facts.names.items()}
        self.odds = {
            text: odds for text, odds in self._all.items() if facts.names[text].last not in stays and text not in quoted
        }
        self._ranked = sorted(self.odds, key=lambda text: (-self.odds[text] / (len(text) + _GUESS), text))
        self._clips: dict[str, Clip] = {}
        for text in self.odds:
            for line in facts.names[text].lines:
                if " " not in line.text:
                    continue  # a word alone explains nothing
                shown = run(line.text, text)
                names = tuple([name for name in line.names if name in self.odds and name in shown])
                self._clips.setdefault(shown, Clip(shown, line, names))

    def pick(self, room: int, named: str) -> tuple[list[Clip], list[str]]:
        """The runs to quote and the names to add, together within so many characters; `named` is said already."""
        whole = self._whole(int((room - _FIRST) * _WHOLE))
        runs = self._lines(int((room - _cost(whole)) * _LINES), whole)
        clips = [clip for clip in (*whole, *runs) if not gives_orders(clip.line.text)]
        room -= _cost(clips)
        told = {name for clip in clips for name in clip.names}
        shown = "\n".join([named, *(clip.text for clip in clips)])
        words = []
        for text in self._ranked:
            if text not in told and text not in shown:
                room -= len(text) + 1
                if room < 0:
                    break
                words.append(text)
        return clips, words

    def _whole(self, room: int) -> list[Clip]:
        """Whole lines of the files in work, by how likely they are to be changed for their length."""
        chosen: list[tuple[str, Row]] = []
        opened: set[str] = set()
        for path, row in self._rows if room > 0 else ():
            cost = len(row.text) + _JOIN + (0 if path in opened else _HEAD + _LABEL)
            if cost <= room:
                room -= cost
                opened.add(path)
                chosen.append((path, row))
            elif room < _HEAD + _LABEL:
                break
        chosen.sort(key=lambda one: (one[0], one[1].place))
        return [Clip(row.text, Line(row.text, row.at, path, row.names, 0), row.names) for path, row in chosen]

    @cached_property
    def _rows(self) -> list[tuple[str, Row]]:
        """The lines of the files in work that left the view, the likeliest to be changed first."""
        facts = self._facts
        called = {text: name.called for text, name in facts.names.items()}
        weighed = [
            (chance / (len(row.text) + _GUESS_LINE), path, row)
            for chance, path, row in changes(facts.sheets, facts.end, self._all, called)
            if row.at not in self._stays
        ]
        weighed.sort(key=lambda one: (-one[0], one[1], one[2].text))
        return [(path, row) for _, path, row in weighed]

    def _lines(self, room: int, whole: Iterable[Clip]) -> list[Clip]:
        """Runs by what they explain for their length, greedily: what one has told counts no more in the next."""
        odds, told = self.odds, {name for clip in whole for name in clip.names}
        opened = {clip.group for clip in whole}

        def cost(clip: Clip) -> int:
            return len(clip.text) + _JOIN + (0 if clip.group in opened else _HEAD)

        def worth(clip: Clip) -> float:
            return sum([odds[name] for name in clip.names if name not in told]) / cost(clip)

        heap = [(-worth(clip), text) for text, clip in self._clips.items()]
        heapify(heap)
        chosen: list[Clip] = []
        while heap and room > _HEAD:
            _, text = heappop(heap)
            clip = self._clips[text]
            now = worth(clip)
            if heap and -now > heap[0][0]:
                if now > 0:
                    heappush(heap, (-now, text))
            elif now > 0 and cost(clip) <= room:
                room -= cost(clip)
                told.update(clip.names)
                opened.add(clip.group)
                chosen.append(clip)
        return chosen


def _cost(clips: Collection[Clip]) -> int:
    return sum([len(clip.text) + _JOIN for clip in clips]) + _HEAD * len({clip.group for clip in clips})


def run(line: str, name: str, width: int = _CLIP) -> str:
    """As many whole words of a line around a name as `width` allows, but a few words beside it in any case.

    >>> run("279: func generateSummary(w, _ io.Writer, store *checkpoint.GitStore) error {", "GitStore", 30)
    'io.Writer, store *checkpoint.GitStore) error {'
    """
    if len(line) <= width:
        return line
    at = line.find(name)
    words = [word.span() for word in _WORD.finditer(line)]
    first = next((place for place, (_, end) in enumerate(words) if end > at), 0)
    last = next((place for place, (_, end) in enumerate(words) if end >= at + len(name)), first)
    least, ahead = last - first + _BESIDE, True
    while last - first < len(words) - 1:
        back = first > 0 and (not ahead or last == len(words) - 1)
        start, stop = (first - 1, last) if back else (first, last + 1)
        if stop == len(words) or (words[stop][1] - words[start][0] > width and last - first >= least):
            break
        first, last, ahead = start, stop, not ahead
    return line[words[first][0] : words[last][1]]


def grouped(clips: Iterable[Clip], words: Mapping[str, Line], label: Callable[[str], str]) -> list[str]:
    """Runs and names as lines of a digest: those of one file or one message together, in the order of the record."""
    groups: dict[tuple[str, int], tuple[list[str], list[str], list[int]]] = {}
    for clip in sorted(clips, key=lambda clip: clip.line.at):
        said, _, at = groups.setdefault(clip.group, ([], [], []))
        said.append(quote(_bare(clip.text)))
        at.append(clip.line.at)
    for word, line in words.items():
        _, named, at = groups.setdefault((line.source, -1), ([], [], []))
        named.append(word)
        at.append(line.at)
    lines = []
    for (source, _), (said, named, at) in sorted(groups.items(), key=lambda item: min(item[1][2])):
        also = [f"{'also ' if said else ''}{quote(' '.join(named))}"] if named else []
        lines.append(f"- {label(source)}{' · '.join([*said, *also])} [{where(at)}]")
    return lines


def _bare(run: str) -> str:
    """A run without the bullet in front of it, where enough is left to be understood."""
    found = _BULLET.match(run)
    return run[found.end() :] if found and run.count(" ", found.end()) >= _BESIDE else run


def by_folder(paths: Iterable[str]) -> str:
    """Paths in few characters: the files of one folder together.

    >>> by_folder(["cli/a.go", "cli/b.go", "main.go"])
    'cli/{a.go, b.go}, main.go'
    """
    folders: dict[str, list[str]] = {}
    for path in paths:
        folder, slash, base = path.rpartition("/")
        folders.setdefault(folder + slash, []).append(base)
    return ", ".join(
        [
            f"{folder}{{{', '.join(bases)}}}"
            if folder and len(bases) > 1
            else ", ".join(folder + base for base in bases)
            for folder, bases in folders.items()
        ]
    )
