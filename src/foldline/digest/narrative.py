"""Tells the conversation turn by turn: prompts, refusals and answers, the agent's words, changed files and runs.

The user's words come first: the first prompt and the newest ones are told verbatim, the others while they fit. The
agent's closing words of each turn are next. Of the newest turns, more is told. All lengths grow and shrink with one
scale, which is chosen so that the text fits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from foldline.digest.extract.turns import Run, TurnRecord, shorten, without_code
from foldline.digest.markup import handles_of, quote, turn_entry

_NEWEST = 3
"""Number of turns, from the newest on, that are told at length."""
_VERBATIM_SHARE = 0.85
"""The share of the room within which the first prompt and the newest ones are told verbatim."""
_PROMPT_CHARS, _INPUT_CHARS = 900, 700
_CLOSING_CHARS, _MIN_CLOSING_CHARS = (1_900, 1_200, 1_000, 800, 650, 550, 500, 450, 400), 200
"""How many characters are told of the agent's closing words, from the newest turn on; the last number is for all older
turns. Of the newest turn, at least some are told.
"""
_BETWEEN_CHARS, _BETWEEN_COUNT = 240, {0: 10, 1: 4}
_RUN_CHARS, _RUN_LINE_CHARS = 150, 110
_RUN_COUNT, _LARGE = {0: 5, 1: 3, 2: 2}, 0.6
"""Number of runs that are told of the newest turns; of older ones, one is told if the scale is large."""
_MIN_WORDS_CHARS = 110
"""Words of the agent are left out if fewer characters of them fit."""
_MIN_PROMPT_CHARS, _FILE_COUNT = 60, 10
_SCALES = (0.02, 6.0)
_STEPS = 12


def tell_turns(turns: Sequence[TurnRecord], room: int, kept_indexes: Collection[int]) -> list[str]:
    """The entries of all turns, oldest first, in at most `room` characters.

    Messages in `kept_indexes` are left out, because the view shows them.
    """
    told = list(turns)
    if not told or room <= 0:
        return []
    writer = _TurnWriter(told, room, kept_indexes)
    low, high = _SCALES
    best = writer.write(high)
    if _cost(best) <= room:
        return best
    best = writer.write(low)
    for _ in range(_STEPS):
        scale = (low * high) ** 0.5
        lines = writer.write(scale)
        if _cost(lines) <= room:
            low, best = scale, lines
        else:
            high = scale
    return best if _cost(best) <= room else _fitting(best, room)


def important_chars(turns: Sequence[TurnRecord]) -> int:
    """The length of the prompts that must be told verbatim: the first and the newest ones."""
    return sum(
        [len(turn.prompt) for turn in {turn.message_index: turn for turn in (*turns[:1], *turns[-_NEWEST:])}.values()]
    )


def _cost(lines: list[str]) -> int:
    return sum(map(len, lines)) + len(lines)


def _fitting(lines: list[str], room: int) -> list[str]:
    """The first entry and as many of the newest ones as fit."""
    taken = []
    room -= len(lines[0]) + 1
    for line in reversed(lines[1:]):
        room -= len(line) + 1
        if room < 0:
            break
        taken.append(line)
    return [*lines[:1], *taken[::-1]]


class _TurnWriter:
    def __init__(self, turns: list[TurnRecord], room: int, kept_indexes: Collection[int]) -> None:
        self.turns, self.kept = turns, kept_indexes
        important = {0, *range(max(0, len(turns) - _NEWEST), len(turns))}
        self.verbatim = self._verbatim_chars(important, int(room * _VERBATIM_SHARE))

    def _verbatim_chars(self, important: set[int], room: int) -> dict[int, int]:
        """For each important turn, how many characters of its prompt may be told; the shortest prompts come first."""
        chars = {}
        left = len(important)
        for place in sorted(important, key=lambda place: len(self.turns[place].prompt)):
            chars[place] = min(len(self.turns[place].prompt), max(_MIN_PROMPT_CHARS, room // left))
            room -= chars[place]
            left -= 1
        return chars

    def write(self, scale: float) -> list[str]:
        """The entries of all turns at this scale."""
        last = len(self.turns) - 1
        return [line for place, turn in enumerate(self.turns) for line in self._turn(place, last - place, turn, scale)]

    def _turn(self, place: int, age: int, turn: TurnRecord, scale: float) -> Iterator[str]:
        if turn.prompt and turn.message_index not in self.kept:
            most = self.verbatim.get(place) or max(_MIN_PROMPT_CHARS, int(_PROMPT_CHARS * min(1.0, scale * 1.6)))
            yield turn_entry("user", shorten(turn.prompt, most), (turn.message_index,))
        told = [*self._inputs(turn, age, scale), *self._replies(turn, age, scale), *self._runs(turn, age, scale)]
        for _, line in sorted(told, key=lambda each: each[0]):
            yield line
        if age < _NEWEST and (files := [file for file in turn.files if file[2] not in self.kept]):
            names = [f"{path.rpartition('/')[2]}{f' ×{times}' if times > 1 else ''}" for path, times, _ in files]
            more = f" and {len(names) - _FILE_COUNT} more" if len(names) > _FILE_COUNT else ""
            yield f"Changed: {quote(', '.join(names[-_FILE_COUNT:]))}{more} [{handles_of((files[0][2], files[-1][2]))}]"

    def _inputs(self, turn: TurnRecord, age: int, scale: float) -> Iterator[tuple[int, str]]:
        grow = 2.0 if age < _NEWEST else 1.0
        most = max(_MIN_PROMPT_CHARS, int(_INPUT_CHARS * min(grow, scale * 1.6)))
        for words in turn.inputs:
            if words.message_index not in self.kept:
                yield words.message_index, turn_entry(words.kind, shorten(words.text, most), (words.message_index,))

    def _replies(self, turn: TurnRecord, age: int, scale: float) -> Iterator[tuple[int, str]]:
        replies = [words for words in turn.replies if words.message_index not in self.kept]
        between = int(_BETWEEN_CHARS * scale)
        for words in replies[-1 - _BETWEEN_COUNT.get(age, 0) : -1]:
            if between >= _MIN_WORDS_CHARS // 2:
                yield (
                    words.message_index,
                    turn_entry("agent", _shorten_reply(words.text, between), (words.message_index,)),
                )
        closing = int(_CLOSING_CHARS[min(age, len(_CLOSING_CHARS) - 1)] * scale)
        closing = max(closing, _MIN_CLOSING_CHARS) if age == 0 else closing
        if replies and (closing >= _MIN_WORDS_CHARS or len(replies[-1].text) <= closing):
            text = _shorten_reply(replies[-1].text, closing)
            yield replies[-1].message_index, turn_entry("agent", text, (replies[-1].message_index,))

    def _runs(self, turn: TurnRecord, age: int, scale: float) -> Iterator[tuple[int, str]]:
        runs = [run for run in turn.runs if run.indexes[-1] not in self.kept]
        count = min(_RUN_COUNT.get(age, 1 if scale > _LARGE else 0), 1 + int(8 * scale) if age == 0 else int(8 * scale))
        for run in runs[len(runs) - count if count < len(runs) else 0 :] if count else ():
            chars = int(_RUN_CHARS * min(1.5, scale)) + 40
            yield run.indexes[-1], f"{run_text(run, chars)} [{handles_of(run.indexes)}]"


def _shorten_reply(text: str, max_chars: int) -> str:
    """Words of the agent. From a long text, the code is left out first, then the middle."""
    return shorten(text if len(text) <= max_chars else without_code(text), max_chars)


def run_text(run: Run, max_chars: int) -> str:
    """A run as a sentence: the command, its outcome if that is known, and the line that shows it."""
    command = shorten(quote(run.command), max_chars)
    line = quote(run.line[:_RUN_LINE_CHARS])
    verb = {"passed": "Passed", "failed": "Failed"}.get(run.status, "Ran")
    return f"{verb}: {command}{f' → {line}' if line else ''}"
