"""Which names a digest carries over, and in which lines: what is most likely needed again, shown in its line.

A name alone tells nobody what it is, and a line for every name leaves no room for most of them. So the likeliest names
are shown inside a run of a line that they stood in, chosen so that one line explains several, and as many of the others
as fit are at least named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from heapq import heapify, heappop, heappush
from math import exp, log
from typing import NamedTuple

from foldline.digest.facts import Facts, Line, Name
from foldline.digest.quote import quote
from foldline.plan.span import handle

CLIP = 56
"""How many characters of a line are shown around a name."""
_BESIDE = 3
"""Other words that a name must have beside it to be understood."""
_LINES = 0.35
"""The share of the room for lines; the rest is for names alone."""
_JOIN = 3
_HEAD = 10
"""Characters of the handle and the dash of a line of its own."""
_WORD = re.compile(r"\S+")

_KIND = {"path": 0.9, "folder": -1.3, "number": -3.0, "url": -3.2}


class Choice(NamedTuple):
    """What is to be chosen for: which messages stay, the room there is in characters, and what is said already."""

    stays: Collection[int]
    room: int
    named: str
    quoted: str


class Clip(NamedTuple):
    """A run of a line, and the names it explains."""

    text: str
    line: Line
    names: tuple[str, ...]


def likely(name: Name, end: int) -> float:
    """How likely a name is to be needed again, between 0 and 1.

    The weights are a logistic fit on real sessions, rounded: a name that a call was made with matters most, then one
    that somebody wrote, then how widely and how lately it was used.
    """
    age = log(max(1, end - name.last))
    score = -3.2 - 0.35 * age + 0.35 * log(1 + name.spread) + _KIND.get(name.kind, 0.0)
    if name.called:
        score += 2.2 + 0.5 * log(1 + name.called) + 0.1 * age
    if name.asked:
        score += 0.6 + 0.4 * log(1 + name.asked)
    if name.said:
        score += 0.4
    if name.wrote:
        score += 0.3
    return 1 / (1 + exp(-score))


def choose(facts: Facts, choice: Choice) -> tuple[list[Clip], list[str]]:
    """The runs to quote, the best first, and the names to add, the likeliest first: together within the room."""
    odds = {
        text: likely(name, facts.end)
        for text, name in facts.names.items()
        if name.last not in choice.stays and text not in choice.quoted
    }
    clips = _clips(facts, odds, int(choice.room * _LINES))
    left = choice.room - sum(len(clip.text) + _JOIN for clip in clips) - _HEAD * len({_group(c) for c in clips})
    told = {name for clip in clips for name in clip.names}
    shown = "\n".join([choice.named, *(clip.text for clip in clips)])
    words = []
    for text in sorted(odds, key=lambda text: (-odds[text] / (len(text) + 8), text)):
        if text in told or text in shown:
            continue
        left -= len(text) + 1
        if left < 0:
            break
        words.append(text)
    return clips, words


def _group(clip: Clip) -> tuple[str, int]:
    return (clip.line.source, -1) if clip.line.source else ("", clip.line.at)


def _clips(facts: Facts, odds: dict[str, float], room: int) -> list[Clip]:
    """Runs of lines by what they explain for their length, greedily: what one has told counts no more in the next."""
    told: set[str] = set()
    opened: set[tuple[str, int]] = set()

    def worth(clip: Clip) -> float:
        fresh = sum(odds[name] for name in clip.names if name not in told)
        return fresh / (len(clip.text) + _JOIN + (0 if _group(clip) in opened else _HEAD))

    found = {clip.text: clip for text in odds for clip in _around(text, facts.names[text], odds)}
    heap = [(-worth(clip), clip.text) for clip in found.values()]
    heapify(heap)
    chosen: list[Clip] = []
    while heap and room > 0:
        _, text = heappop(heap)
        now = worth(found[text])
        if now <= 0:
            continue
        if heap and -now > heap[0][0]:
            heappush(heap, (-now, text))
            continue
        clip = found[text]
        cost = len(text) + _JOIN + (0 if _group(clip) in opened else _HEAD)
        if cost > room:
            continue
        room -= cost
        told.update(clip.names)
        opened.add(_group(clip))
        chosen.append(clip)
    return chosen


def _around(text: str, name: Name, odds: dict[str, float]) -> Iterator[Clip]:
    for line in name.lines:
        shown = run(line.text, text)
        yield Clip(shown, line, tuple(other for other in line.names if other in odds and other in shown))


def run(line: str, name: str, width: int = CLIP) -> str:
    """As many whole words of a line around a name as `width` allows, but a few words beside it in any case.

    >>> run("279: func generateCheckpointSummary(w, _ io.Writer, store *checkpoint.GitStore) error {", "GitStore", 30)
    'io.Writer, store *checkpoint.GitStore) error {'
    """
    if len(line) <= width:
        return line
    at = line.find(name)
    words = [word.span() for word in _WORD.finditer(line)]
    first = next((place for place, (_, end) in enumerate(words) if end > at), 0)
    last = next((place for place, (_, end) in enumerate(words) if end >= at + len(name)), first)
    least = last - first + _BESIDE
    ahead = True
    while last - first < len(words) - 1:
        grow_left = first > 0 and (not ahead or last == len(words) - 1)
        start, end = (first - 1, last) if grow_left else (first, last + 1)
        if end >= len(words):
            break
        if words[end][1] - words[start][0] > width and last - first >= least:
            break
        first, last, ahead = start, end, not ahead
    return line[words[first][0] : words[last][1]]


def grouped(clips: list[Clip], label: Callable[[str], str]) -> list[str]:
    """Runs as lines of a digest: those of one file or one message together, in the order of the record."""
    groups: dict[tuple[str, int], list[Clip]] = {}
    for clip in clips:
        groups.setdefault(_group(clip), []).append(clip)
    lines = []
    for (source, _), members in sorted(groups.items(), key=lambda item: min(clip.line.at for clip in item[1])):
        ordered = sorted(members, key=lambda clip: clip.line.at)
        said = " · ".join(quote(clip.text) for clip in ordered)
        numbers = ", ".join(dict.fromkeys(handle(clip.line.at) for clip in ordered))
        lines.append(f"- {label(source)}{said} [{numbers}]")
    return lines
