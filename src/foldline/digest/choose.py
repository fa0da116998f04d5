"""Which names a digest carries over, and in which lines: what is most likely needed again, shown in its line.

A name alone tells nobody what it is, and a line for every name leaves no room for most of them. So the likeliest names
are shown inside a run of a line that they stood in, chosen so that one line explains several, and as many of the others
as fit are at least named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from foldline.digest.facts import Facts
from foldline.digest.quote import quote
from foldline.digest.sections import where
from foldline.digest.uses import Line, likely

_CLIP = 56
"""How many characters of a line are shown around a name."""
_BESIDE = 3
"""Other words that a name must have beside it to be understood."""
_LINES = 0.35
"""The share of the room for lines; the rest is for names alone."""
_JOIN = 3
"""Characters between two runs."""
_HEAD = 10
"""Characters around a line of its own: its dash and its handle."""
_GUESS = 8
"""Added to a name's length when names are weighed against each other, so that short ones do not always win."""
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
        self.odds = {
            text: likely(name, facts.end)
            for text, name in facts.names.items()
            if name.last not in stays and text not in quoted
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
        clips = self._lines(int(room * _LINES))
        room -= sum([len(clip.text) + _JOIN for clip in clips]) + _HEAD * len({clip.group for clip in clips})
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

    def _lines(self, room: int) -> list[Clip]:
        """Runs by what they explain for their length, greedily: what one has told counts no more in the next."""
        odds, told, opened = self.odds, set[str](), set[tuple[str, int]]()

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
