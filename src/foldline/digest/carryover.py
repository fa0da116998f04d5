"""The carryover of a local digest: the identifiers most likely to be needed again, and lines that explain them.

The most likely identifiers are shown in excerpts of lines; one excerpt may explain several identifiers. Of the other
identifiers, as many as fit are named without a line. If the budget is large, whole lines of recently used files are
shown, too, because an edit must quote a whole line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from foldline.digest.extract.facts import Facts
from foldline.digest.extract.file_contents import FileLine, edit_probabilities
from foldline.digest.extract.identifiers import SourceLine, reuse_probability
from foldline.digest.markup import handles_of, has_instruction, quote

_EXCERPT_CHARS = 48
_NEIGHBOURS = 3
"""An excerpt always shows this number of words next to its identifier, even if the excerpt becomes too long."""
_EXCERPT_SHARE = 0.35
"""The share of the budget for excerpts. The rest of the budget is for identifiers without a line."""
_FILE_LINES_FROM, _FILE_LINES_SHARE = 6_000, 0.9
"""If the budget exceeds the first number (characters), this share of the excess is used for whole lines of files."""
_SEPARATOR_CHARS = 3
_LINE_CHARS = 10
"""Number of characters that the dash and the handle of a digest line need."""
_LABEL_CHARS = 24
"""Number of characters reserved for the file name at the start of a digest line."""
_NAME_BIAS, _LINE_BIAS = 8, 40
"""Characters added to the length of a name or a line before its value is divided by the length. Without this, the
shortest names and lines would always be chosen.
"""
_WORD = re.compile(r"\S+")
_BULLET = re.compile(r"^(?:[-*•+]|\d{1,2}[.)])\s+")


class LineExcerpt(NamedTuple):
    """Consecutive words of a line, and the identifiers they explain."""

    text: str
    line: SourceLine
    identifiers: tuple[str, ...]

    @property
    def group(self) -> tuple[str, int]:
        """Excerpts with the same key share a line of the digest: those of the same file, command or message."""
        return (self.line.source, -1) if self.line.source else ("", self.line.message_index)


class Carryover:
    """The identifiers that leave the view and do not occur in the text `quoted`, with the excerpts that explain
    them.
    """

    def __init__(self, facts: Facts, kept_indexes: Collection[int], quoted: str) -> None:
        self._facts, self._kept = facts, kept_indexes
        identifiers = facts.identifiers
        self._reuse = {name: reuse_probability(found, facts.end) for name, found in identifiers.items()}
        self._wanted = {
            name: probability
            for name, probability in self._reuse.items()
            if identifiers[name].last_index not in kept_indexes and name not in quoted
        }
        self._ranked = sorted(self._wanted, key=lambda name: (-self._wanted[name] / (len(name) + _NAME_BIAS), name))
        self._excerpts: dict[str, LineExcerpt] = {}
        for name in self._wanted:
            for line in identifiers[name].lines:
                if " " not in line.text:
                    continue  # a single word explains nothing
                text = words_around(line.text, name)
                explained = tuple([each for each in line.identifiers if each in self._wanted and each in text])
                self._excerpts.setdefault(text, LineExcerpt(text, line, explained))

    def choose(self, max_chars: int, shown: str) -> tuple[list[LineExcerpt], list[str]]:
        """The excerpts to quote, and the other identifiers to name.

        An identifier that occurs in the text `shown` is not named.
        """
        file_lines = self._choose_file_lines(int((max_chars - _FILE_LINES_FROM) * _FILE_LINES_SHARE))
        excerpts = self._choose_excerpts(int((max_chars - _cost(file_lines)) * _EXCERPT_SHARE), file_lines)
        chosen = [each for each in (*file_lines, *excerpts) if not has_instruction(each.line.text)]
        room = max_chars - _cost(chosen)
        explained = {name for each in chosen for name in each.identifiers}
        text = "\n".join([shown, *(each.text for each in chosen)])
        names = []
        for name in self._ranked:
            if name not in explained and name not in text:
                room -= len(name) + 1
                if room < 0:
                    break
                names.append(name)
        return chosen, names

    def _choose_file_lines(self, room: int) -> list[LineExcerpt]:
        """Whole lines of files.

        Lines with the highest probability per character of being edited next are chosen first.
        """
        chosen: list[tuple[str, FileLine]] = []
        opened: set[str] = set()
        for path, line in self._file_lines if room > 0 else ():
            cost = len(line.text) + _SEPARATOR_CHARS + (0 if path in opened else _LINE_CHARS + _LABEL_CHARS)
            if cost <= room:
                room -= cost
                opened.add(path)
                chosen.append((path, line))
            elif room < _LINE_CHARS + _LABEL_CHARS:
                break
        chosen.sort(key=lambda each: (each[0], each[1].number))
        lines = [SourceLine(line.text, line.message_index, path, line.identifiers, 0) for path, line in chosen]
        return [LineExcerpt(line.text, line, line.identifiers) for line in lines]

    @cached_property
    def _file_lines(self) -> list[tuple[str, FileLine]]:
        facts = self._facts
        calls = {name: found.call_count for name, found in facts.identifiers.items()}
        weighed = [
            (probability / (len(line.text) + _LINE_BIAS), path, line)
            for probability, path, line in edit_probabilities(facts.files, facts.end, self._reuse, calls)
            if line.message_index not in self._kept
        ]
        weighed.sort(key=lambda each: (-each[0], each[1], each[2].text))
        return [(path, line) for _, path, line in weighed]

    def _choose_excerpts(self, room: int, file_lines: Iterable[LineExcerpt]) -> list[LineExcerpt]:
        """Excerpts, chosen greedily.

        The value of an excerpt is the sum of the reuse probabilities of its identifiers per character. An identifier
        that a chosen excerpt already explains adds nothing.
        """
        wanted, explained = self._wanted, {name for each in file_lines for name in each.identifiers}
        opened = {each.group for each in file_lines}

        def cost(excerpt: LineExcerpt) -> int:
            return len(excerpt.text) + _SEPARATOR_CHARS + (0 if excerpt.group in opened else _LINE_CHARS)

        def value(excerpt: LineExcerpt) -> float:
            return sum([wanted[name] for name in excerpt.identifiers if name not in explained]) / cost(excerpt)

        heap = [(-value(excerpt), text) for text, excerpt in self._excerpts.items()]
        heapify(heap)
        chosen: list[LineExcerpt] = []
        while heap and room > _LINE_CHARS:
            _, text = heappop(heap)
            excerpt = self._excerpts[text]
            now = value(excerpt)
            if heap and -now > heap[0][0]:
                if now > 0:
                    heappush(heap, (-now, text))
            elif now > 0 and cost(excerpt) <= room:
                room -= cost(excerpt)
                explained.update(excerpt.identifiers)
                opened.add(excerpt.group)
                chosen.append(excerpt)
        return chosen


def _cost(excerpts: Collection[LineExcerpt]) -> int:
    groups = {each.group for each in excerpts}
    return sum([len(each.text) + _SEPARATOR_CHARS for each in excerpts]) + _LINE_CHARS * len(groups)


def words_around(line: str, name: str, max_chars: int = _EXCERPT_CHARS) -> str:
    """The name and the words around it in a line: as many whole words as fit into `max_chars`, but at least a few.

    >>> words_around("279: func generateSummary(w, _ io.Writer, store *checkpoint.GitStore) error {", "GitStore", 30)
    'store *checkpoint.GitStore) error {'
    """
    if len(line) <= max_chars:
        return line
    at = line.find(name)
    words = [word.span() for word in _WORD.finditer(line)]
    first = next((place for place, (_, end) in enumerate(words) if end > at), 0)
    last = next((place for place, (_, end) in enumerate(words) if end >= at + len(name)), first)
    least, forward = last - first + _NEIGHBOURS, True
    while last - first < len(words) - 1:
        backward = first > 0 and (not forward or last == len(words) - 1)
        start, stop = (first - 1, last) if backward else (first, last + 1)
        if stop == len(words) or (words[stop][1] - words[start][0] > max_chars and last - first >= least):
            break
        first, last, forward = start, stop, not forward
    return line[words[first][0] : words[last][1]]


def format_excerpts(
    excerpts: Iterable[LineExcerpt], names: Mapping[str, SourceLine], label: Callable[[str], str]
) -> list[str]:
    """Excerpts and names as lines of a digest, one for each file, command or message, in the order of the record."""
    groups: dict[tuple[str, int], tuple[list[str], list[str], list[int]]] = {}
    for excerpt in sorted(excerpts, key=lambda each: each.line.message_index):
        texts, _, indexes = groups.setdefault(excerpt.group, ([], [], []))
        texts.append(quote(_without_bullet(excerpt.text)))
        indexes.append(excerpt.line.message_index)
    for name, line in names.items():
        _, named, indexes = groups.setdefault((line.source, -1), ([], [], []))
        named.append(name)
        indexes.append(line.message_index)
    lines = []
    for (source, _), (texts, named, indexes) in sorted(groups.items(), key=lambda item: min(item[1][2])):
        also = [f"{'also ' if texts else ''}{quote(' '.join(named))}"] if named else []
        lines.append(f"- {label(source)}{' · '.join([*texts, *also])} [{handles_of(indexes)}]")
    return lines


def _without_bullet(text: str) -> str:
    return _BULLET.sub("", text, count=1)


def format_paths(paths: Iterable[str]) -> str:
    """Paths in a short form, in which the files of one folder are grouped.

    >>> format_paths(["cli/a.go", "cli/b.go", "main.go"])
    'cli/{a.go, b.go}, main.go'
    """
    folders: dict[str, list[str]] = {}
    for path in paths:
        folder, slash, base = path.rpartition("/")
        folders.setdefault(folder + slash, []).append(base)
    shown: list[str] = []
    for folder, bases in folders.items():
        shown += [f"{folder}{{{', '.join(bases)}}}"] if folder and len(bases) > 1 else [folder + base for base in bases]
    return ", ".join(shown)
