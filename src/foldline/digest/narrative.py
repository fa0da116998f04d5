"""Writes the turns of a conversation: prompts, refusals and answers, the agent's words, changed files and runs.

The user's words have priority: the first prompt and the newest ones are quoted verbatim, the others as far as they fit.
The agent's last words in each turn come next. The newest turns get more room. One scale factor determines all lengths;
it is chosen so that the text fits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from foldline.digest.extract.turns import Run, TurnRecord, Words, shorten, without_code
from foldline.digest.markup import SPEAKERS, handles_of, quote, quote_lines, turn_entry

_NEWEST = 3
"""Number of newest turns that get more room."""
_PROMPT_CHARS, _INPUT_CHARS, _COMMAND_TEXT_CHARS = 900, 700, 300
_CLOSING_CHARS, _MIN_CLOSING_CHARS = (1_900, 1_200, 1_000, 800, 650, 550, 500, 450, 400), 200
"""Number of characters for the agent's last words in a turn, from the newest turn to older ones.

The last number is for all older turns. `_MIN_CLOSING_CHARS` is the minimum for the newest turn.
"""
_BETWEEN_CHARS, _BETWEEN_COUNT = 240, {0: 10, 1: 4}
_RUN_CHARS, _RUN_LINE_CHARS = 150, 110
_RUN_COUNT, _LARGE = {0: 5, 1: 3, 2: 2}, 0.6
"""Number of runs that are shown for each of the newest turns.

An older turn shows one run if the scale exceeds `_LARGE`.
"""
_MIN_WORDS_CHARS = 110
"""Words of the agent are left out if fewer characters of them fit."""
_MIN_PROMPT_CHARS, _FILE_COUNT = 60, 10
_ENTRY_CHARS = 20
"""The approximate number of characters of an entry's speaker and handle."""
_SCALES, _STEPS = (0.02, 6.0), 10
_USER = f"{SPEAKERS['user']}:"


class _EscapedTurn(NamedTuple):
    """A turn with escaped texts, without the messages that stay in the view."""

    prompt: Words
    inputs: list[Words]
    replies: list[tuple[Words, str]]
    """For each text of the agent: the text, and the text without its code."""
    runs: list[Run]
    changed: str


def tell_turns(
    turns: Sequence[TurnRecord], room: int, kept_indexes: Collection[int], *, only_user: bool = False
) -> list[str]:
    """The entries of all turns, oldest first, in at most `room` characters.

    `only_user` leaves out everything except the user's words. Messages in `kept_indexes` are left out, because the view
    shows them.
    """
    if only_user:
        turns = [turn._replace(replies=(), runs=(), files=()) for turn in turns]
    if not turns or room <= 0:
        return []
    writer = _TurnWriter([_escape_turn(turn, kept_indexes) for turn in turns], room)
    low, high = _SCALES
    best, lines = writer.write(low), writer.write(high)
    if _cost(lines) <= room:
        return lines
    for _ in range(_STEPS):
        scale = (low * high) ** 0.5
        lines = writer.write(scale)
        if _cost(lines) <= room:
            low, best = scale, lines
        else:
            high = scale
    return best if _cost(best) <= room or not best else _fitting(best, room)


def important_chars(turns: Sequence[TurnRecord]) -> int:
    """The length of the prompts that must be quoted verbatim: the first one and the newest ones."""
    prompts = [turns[place].prompt for place in _important([turn.prompt for turn in turns])]
    return sum([len(prompt) + prompt.count("\n") * 2 + _ENTRY_CHARS for prompt in prompts])


def _important(prompts: list[str]) -> list[int]:
    """The turns whose prompts must be quoted verbatim, as indexes, the shortest prompt first."""
    places = [place for place, prompt in enumerate(prompts) if prompt]
    return sorted({*places[:1], *places[-_NEWEST:]}, key=lambda place: len(prompts[place]))


def _escape_turn(turn: TurnRecord, kept: Collection[int]) -> _EscapedTurn:
    files = [file for file in turn.files if file[2] not in kept]
    names = [f"{path.rpartition('/')[2]}{f' ×{times}' if times > 1 else ''}" for path, times, _ in files]
    more = f" and {len(names) - _FILE_COUNT} more" if len(names) > _FILE_COUNT else ""
    changed = f"Changed: {quote(', '.join(names[-_FILE_COUNT:]))}{more}" if files else ""
    replies = [words for words in turn.replies if words.message_index not in kept]
    return _EscapedTurn(
        prompt=Words(turn.message_index, quote_lines(turn.prompt) if turn.message_index not in kept else ""),
        inputs=[it._replace(text=quote_lines(it.text)) for it in turn.inputs if it.message_index not in kept],
        replies=[(it._replace(text=quote_lines(it.text)), quote_lines(without_code(it.text))) for it in replies],
        runs=[run for run in turn.runs if run.indexes[-1] not in kept],
        changed=f"{changed} [{handles_of((files[0][2], files[-1][2]))}]" if files else "",
    )


def _cost(lines: list[str]) -> int:
    return sum(map(len, lines)) + len(lines)


def _fitting(lines: list[str], room: int) -> list[str]:
    """The entries that fit. The agent's oldest entries are left out first, then the user's oldest ones.

    The first entry stays. If even that is too long, the result is empty.
    """
    excess, dropped = _cost(lines) - room, set[int]()
    for is_user in (False, True):
        for place, line in enumerate(lines):
            if excess > 0 and place and line.startswith(_USER) == is_user:
                dropped.add(place)
                excess -= len(line) + 1
    return [line for place, line in enumerate(lines) if place not in dropped] if excess <= 0 else []


class _TurnWriter:
    def __init__(self, turns: list[_EscapedTurn], room: int) -> None:
        self.turns = turns
        self.verbatim = self._verbatim_chars(_important([turn.prompt.text for turn in turns]), room)

    def _verbatim_chars(self, important: list[int], room: int) -> dict[int, int]:
        """For each important turn, the number of characters of its prompt that are quoted.

        Short prompts get all that they need.
        """
        chars = {}
        room -= _ENTRY_CHARS * len(important)
        for done, place in enumerate(important):
            length = len(self.turns[place].prompt.text)
            chars[place] = min(length, max(_MIN_PROMPT_CHARS, room // (len(important) - done)))
            room -= chars[place]
        return chars

    def write(self, scale: float) -> list[str]:
        """The entries of all turns at this scale."""
        last = len(self.turns) - 1
        return [line for place, turn in enumerate(self.turns) for line in self._turn(place, last - place, turn, scale)]

    def _turn(self, place: int, age: int, turn: _EscapedTurn, scale: float) -> Iterator[str]:
        if turn.prompt.text:
            most = self.verbatim.get(place) or max(_MIN_PROMPT_CHARS, int(_PROMPT_CHARS * min(1.0, scale * 1.6)))
            yield turn_entry("user", shorten(turn.prompt.text, most), turn.prompt.message_index)
        told = [*_inputs(turn, age, scale), *_replies(turn, age, scale), *_runs(turn, age, scale)]
        for _, line in sorted(told, key=lambda each: each[0]):
            yield line
        if age < _NEWEST and turn.changed:
            yield turn.changed


def _inputs(turn: _EscapedTurn, age: int, scale: float) -> Iterator[tuple[int, str]]:
    grow = 2.0 if age < _NEWEST else 1.0
    most = max(_MIN_PROMPT_CHARS, int(_INPUT_CHARS * min(grow, scale * 1.6)))
    for index, text, kind in turn.inputs:
        yield index, turn_entry(kind, shorten(text, most if kind != "command" else _COMMAND_TEXT_CHARS), index)


def _replies(turn: _EscapedTurn, age: int, scale: float) -> Iterator[tuple[int, str]]:
    between = int(_BETWEEN_CHARS * scale)
    closing = int(_CLOSING_CHARS[min(age, len(_CLOSING_CHARS) - 1)] * scale)
    closing = max(closing, _MIN_CLOSING_CHARS) if age == 0 else closing
    for words, without in turn.replies[-1 - _BETWEEN_COUNT.get(age, 0) :]:
        is_last = words is turn.replies[-1][0]
        most = closing if is_last else between
        least = _MIN_WORDS_CHARS if is_last else _MIN_WORDS_CHARS // 2
        if most >= least or (is_last and len(words.text) <= most):
            text = shorten(words.text if len(words.text) <= most else without, most)
            yield words.message_index, turn_entry("agent", text, words.message_index)


def _runs(turn: _EscapedTurn, age: int, scale: float) -> Iterator[tuple[int, str]]:
    count = min(_RUN_COUNT.get(age, 1 if scale > _LARGE else 0), (age == 0) + int(8 * scale))
    for run in turn.runs[-count:] if count else ():
        command = shorten(quote(run.command), int(_RUN_CHARS * min(1.5, scale)) + 40)
        line = quote(run.line[:_RUN_LINE_CHARS])
        shown = f"{run.status.capitalize() or 'Ran'}: {command}{f' → {line}' if line else ''}"
        yield run.indexes[-1], f"{shown} [{handles_of(run.indexes)}]"
