"""The carryover of a local digest: the identifiers most likely to be needed again, and lines that explain them.

The most likely identifiers are shown in excerpts of lines; one excerpt may explain several identifiers. The other
identifiers are listed by name, as many as fit. If the budget is large, whole lines of recently used files are shown
too, because an edit must quote a whole line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from foldline.digest.extract.facts import Facts
from foldline.digest.extract.file_contents import edit_probabilities
from foldline.digest.extract.identifiers import SourceLine, reuse_probability
from foldline.digest.markup import handles_of, has_instruction, quote

_EXCERPT_CHARS, _NEIGHBOURS = 48, 3
"""The length of an excerpt in characters, and the least number of words next to its identifier."""
_EXCERPT_SHARE = 0.28
"""The share of the budget for excerpts. The rest of the budget is for identifiers without a line."""
_FILE_LINES_FROM, _FILE_LINES_SHARE = 6_000, 0.9
"""If the budget exceeds the first number (characters), this share of the excess is used for whole lines of files."""
_SEPARATOR_CHARS, _LINE_CHARS, _LABEL_CHARS = 3, 10, 24
"""Numbers of characters: of a separator, of the dash and the handle of a line, and of the file name at the start of a
line.
"""
_NAME_BIAS, _LINE_BIAS = 12, 40
"""Characters added to the length of a name or a line before its value is divided by the length. Without this, the
shortest names and lines would always be chosen.
"""
_EXPLAINED = 900
"""Number of identifiers, the most likely first, for which excerpts are considered."""
_GROUP_SIZE = 3
"""If a file or command has at least this number of identifiers without a line, these identifiers are listed after the
name of the file or command.
"""
_FEW_NAMES = 8
"""If at most this number of other identifiers is listed, the files among them are shown with their folder."""
_WORD, _NAME = re.compile(r"\S+"), re.compile(r"\w+")
_BULLET = re.compile(r"^(?:[-*•+]|\d{1,2}[.)])\s+")


class _Excerpt(NamedTuple):
    """Consecutive words of a line, and the identifiers they explain."""

    text: str
    line: SourceLine
    identifiers: tuple[str, ...]

    @property
    def group(self) -> tuple[str, int]:
        """A key for the file, command or message of the excerpt. Excerpts with the same key share a
        line of the digest.
        """
        return (self.line.source, -1) if self.line.source else ("", self.line.message_index)


def carryover_lines(
    facts: Facts, kept_indexes: Collection[int], shown: str, room: int, label: Callable[[str], str]
) -> list[str]:
    """The lines of the carryover, in about `room` characters.

    Identifiers in the text `shown` and in messages in `kept_indexes` are left out. `label` gives the start of a line
    for a file or a command.
    """
    reuse = {name: reuse_probability(found, facts.end) for name, found in facts.identifiers.items()}
    words = set(_NAME.findall(shown))
    wanted = {
        name: probability
        for name, probability in reuse.items()
        if facts.identifiers[name].last_index not in kept_indexes
        and not (name in words if name.isidentifier() else name in shown)
    }
    chosen = list(_file_lines(facts, kept_indexes, reuse, int((room - _FILE_LINES_FROM) * _FILE_LINES_SHARE)))
    chosen += _excerpts(facts, wanted, chosen, int((room - _cost(chosen)) * _EXCERPT_SHARE))
    chosen = [each for each in chosen if not has_instruction(each.line.text)]
    text = "\n".join([each.text for each in chosen])
    ranked = sorted(wanted, key=lambda name: (-wanted[name] / (len(name) + _NAME_BIAS), name))
    names, left = dict[str, SourceLine](), room - _cost(chosen)
    for name in [name for name in ranked if name not in text] if left > 0 else ():
        left -= len(name) + 1
        if left < 0:
            break
        names[name] = facts.identifiers[name].lines[0]
    lines = _format(chosen, names, label)
    while names and (excess := sum(map(len, lines)) + len(lines) - room) > 0:
        while names and excess > 0:
            excess -= len(names.popitem()[0]) + 1
        lines = _format(chosen, names, label)
    return lines


def _file_lines(facts: Facts, kept_indexes: Collection[int], reuse: dict[str, float], room: int) -> Iterator[_Excerpt]:
    """Whole lines of files: those with the highest probability per character of being edited next."""
    if room <= 0:
        return
    calls = {name: found.call_count for name, found in facts.identifiers.items()}
    weighed = [
        (-probability / (len(line.text) + _LINE_BIAS), path, line.number, line)
        for probability, path, line in edit_probabilities(facts.files, facts.end, reuse, calls)
        if line.message_index not in kept_indexes
    ]
    weighed.sort(key=lambda each: each[:3])
    taken, opened = list[tuple[str, int, _Excerpt]](), set[str]()
    for _, path, number, line in weighed:
        cost = len(line.text) + _SEPARATOR_CHARS + (0 if path in opened else _LINE_CHARS + _LABEL_CHARS)
        if cost <= room:
            room -= cost
            opened.add(path)
            source = SourceLine(line.text, line.message_index, path, line.identifiers, 0)
            taken.append((path, number, _Excerpt(line.text, source, line.identifiers)))
        elif room < _LINE_CHARS + _LABEL_CHARS:
            break
    yield from [excerpt for _, _, excerpt in sorted(taken, key=lambda each: each[:2])]


def _excerpts(facts: Facts, wanted: dict[str, float], chosen: list[_Excerpt], room: int) -> Iterator[_Excerpt]:
    """Excerpts, chosen greedily.

    The value of an excerpt is the sum of the reuse probabilities of its identifiers per character. An identifier that
    a chosen excerpt already explains adds nothing.
    """
    excerpts: dict[str, _Excerpt] = {}
    for name in sorted(wanted, key=lambda name: (-wanted[name], name))[:_EXPLAINED]:
        for line in facts.identifiers[name].lines:
            if " " in line.text:  # a single word explains nothing
                text = words_around(line.text, name)
                names = tuple([each for each in line.identifiers if each in wanted and each in text])
                excerpts.setdefault(text, _Excerpt(text, line, names))
    explained, opened = {name for each in chosen for name in each.identifiers}, {each.group for each in chosen}

    def cost(excerpt: _Excerpt) -> int:
        return len(excerpt.text) + _SEPARATOR_CHARS + (0 if excerpt.group in opened else _LINE_CHARS)

    def value(excerpt: _Excerpt) -> float:
        return sum([wanted[name] for name in excerpt.identifiers if name not in explained]) / cost(excerpt)

    heap = [(-value(excerpt), text) for text, excerpt in excerpts.items()]
    heapify(heap)
    while heap and room > _LINE_CHARS:
        excerpt = excerpts[heappop(heap)[1]]
        now = value(excerpt)
        if heap and -now > heap[0][0]:
            if now > 0:
                heappush(heap, (-now, excerpt.text))
        elif now > 0 and cost(excerpt) <= room:
            room -= cost(excerpt)
            explained.update(excerpt.identifiers)
            opened.add(excerpt.group)
            yield excerpt


def _cost(excerpts: Collection[_Excerpt]) -> int:
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


def _format(excerpts: Iterable[_Excerpt], names: dict[str, SourceLine], label: Callable[[str], str]) -> list[str]:
    """Excerpts and names as lines of a digest, in the order of the record.

    There is one line for each file, command or message.
    """
    groups: dict[tuple[str, int], tuple[list[str], list[str], list[int]]] = {}
    for excerpt in sorted(excerpts, key=lambda each: each.line.message_index):
        texts, _, indexes = groups.setdefault(excerpt.group, ([], [], []))
        texts.append(quote(_BULLET.sub("", excerpt.text, count=1)))
        indexes.append(excerpt.line.message_index)
    counts = Counter(line.source for line in names.values() if line.source)
    for name, line in names.items():
        if counts[line.source] >= _GROUP_SIZE:
            _, named, indexes = groups.setdefault((line.source, -1), ([], [], []))
            named.append(name)
            indexes.append(line.message_index)
    lines = []
    for (source, _), (texts, named, indexes) in sorted(groups.items(), key=lambda item: min(item[1][2])):
        also = [f"{'also ' if texts else ''}{quote(' '.join(named))}"] if named else []
        lines.append(f"- {label(source)}{' · '.join([*texts, *also])} [{handles_of(indexes)}]")
    others = [name for name, line in names.items() if counts[line.source] < _GROUP_SIZE]
    if len(others) <= _FEW_NAMES:
        others = [_with_folder(name, names[name].text) for name in others]
    return [*lines, f"- Also named: {quote(' '.join(others))}"] if others else lines


def _with_folder(name: str, line: str) -> str:
    """The path in a line that ends with this file name; the name alone if the line has no such path."""
    found = re.search(rf"[\w.@~/-]{{0,200}}/{re.escape(name)}(?![\w/-])", line)
    return found[0] if found else name
