"""Writes turns as entries of a digest.

The user's words have priority. The first prompt, the newest prompts and corrections are quoted verbatim if they fit.
Other prompts are shortened, but their names and numbers are kept if possible. The agent's last words in each turn (its
reply) come next, because they usually summarise the turn. The newest turns get more room. One scale factor determines
all lengths, and it is chosen so that the text fits. If the smallest scale is too large, entries are left out: first
what the agent did, then old turns. An old turn loses its reply before it loses its prompt. The newest turns keep both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from foldline.digest.markup import INDENT, quote, quote_lines, turn_entry
from foldline.digest.turns import (
    LIVE_TURNS,
    RUN_KINDS,
    USER_KINDS,
    TurnRecord,
    Words,
    shorten,
    shorten_request,
    without_code,
)
from foldline.plan.timeline import handles_of

_OTHER, _PROMPT, _CORRECTION, _NEWEST, _FIRST = range(5)
"""The ranks of entries. Entries with a low rank are left out first.

From low to high: what the agent ran, changed or said before its reply; prompts and replies; corrections, refusals and
answers; the newest prompts and replies; the first prompt.
"""
_REPLY_AGING = 3
"""A reply is left out before the prompts that are less than this many times as old.

So at least one reply is shown for this many prompts.
"""
_PROMPT_CHARS, _INPUT_CHARS, _CORRECTION_CHARS, _COMMAND_TEXT_CHARS, _MIN_PROMPT_CHARS = 900, 700, 300, 300, 60
_REPLY_CHARS = (1_900, 1_200, 1_000, 800, 650, 550, 500, 450, 400)
"""Maximum lengths in characters of a reply, one for each of the newest turns, newest first.

The last number is also used for all older turns. Each length is multiplied by the scale.
"""
_REPLY_SHARES, _MIN_REPLY_CHARS = (0.14, 0.08, 0.06), (50, 140)
"""Least lengths of the newest replies, newest first: shares of the room, but within the range `_MIN_REPLY_CHARS`."""
_BETWEEN_CHARS, _BETWEEN_COUNT, _MIN_WORDS_CHARS = 240, (10, 4), 110
"""Limits for the agent's earlier texts in a turn.

Their maximum length is `_BETWEEN_CHARS` characters, multiplied by the scale. `_BETWEEN_COUNT` is how many are shown in
the newest and in the second newest turn. Older turns show none.

If the scaled length is below half of `_MIN_WORDS_CHARS`, the text is left out. A reply gets at least `_MIN_WORDS_CHARS`
characters if its turn is new enough (see `_REPLY_AGING`). An older reply with less room is left out, unless it is short
enough to fit.
"""
_RUN_CHARS, _RUN_LINE_CHARS, _RUN_COUNT, _LARGE = 150, 110, (5, 3, 2), 0.6
"""Limits for runs.

A command is cut to about `_RUN_CHARS` characters, multiplied by the scale. Its output line is cut to `_RUN_LINE_CHARS`.
`_RUN_COUNT` is the maximum number of runs in each of the three newest turns. An older turn shows only its last run, and
only if the scale exceeds `_LARGE`.
"""
_FILE_COUNT = 10
_ENTRY_CHARS = 20
"""The approximate number of characters of an entry's speaker and handle."""
_SCALES, _STEPS = (0.02, 6.0), 9


class _Entry(NamedTuple):
    rank: int
    age: int
    """Among entries of equal rank, those with the highest age are left out first."""
    text: str


class TurnWriter:
    """Writes the turns as entries. Messages in `kept_indexes` are left out, because the view shows them.

    `only_user` leaves out everything except the user's words.
    """

    def __init__(self, turns: Sequence[TurnRecord], kept_indexes: Collection[int], *, only_user: bool = False) -> None:
        escaped = [_escape_turn(turn, kept_indexes, only_user=only_user) for turn in turns]
        self.turns = [turn for turn in escaped if turn.prompt or turn.words or turn.files]
        places = [place for place, turn in enumerate(self.turns) if turn.prompt]
        self.first = places[0] if places else -1
        self.important = sorted({*places[:1], *places[-LIVE_TURNS:]}, key=lambda place: len(self.turns[place].prompt))
        """The turns whose prompts must be quoted verbatim, the shortest prompt first."""
        prompts = [self.turns[place].prompt for place in self.important]
        self.important_chars = sum(len(text) + len(INDENT) * text.count("\n") + _ENTRY_CHARS for text in prompts)
        self.important_chars += self._reserved_chars(LIVE_TURNS * _MIN_REPLY_CHARS[1:])
        """The number of characters for the prompts that must be quoted verbatim and for the newest replies."""
        shortest = sum(min(len(text), _MIN_PROMPT_CHARS) + _ENTRY_CHARS for text in prompts)
        self.least_chars = shortest + self._reserved_chars(LIVE_TURNS * _MIN_REPLY_CHARS[:1])
        """The number of characters for the same prompts and replies if all of them are shortened."""
        self._verbatim: dict[int, int] = {}
        self._least_replies = [0] * LIVE_TURNS

    def write(self, room: int) -> list[str]:
        """The entries of all turns, oldest first, in at most `room` characters."""
        if not self.turns or room <= 0:
            return []
        least, most = _MIN_REPLY_CHARS
        self._least_replies = [min(most, max(least, int(share * room))) for share in _REPLY_SHARES]
        self._verbatim = self._verbatim_chars(room)
        low, high = _SCALES
        best = self._entries(low)
        steps = _STEPS if _cost(best) <= room else 0
        if steps and _cost(entries := self._entries(high)) <= room:
            return [entry.text for entry in entries]
        for _ in range(steps):
            scale = (low * high) ** 0.5
            entries = self._entries(scale)
            if _cost(entries) <= room:
                low, best = scale, entries
            else:
                high = scale
        return [entry.text for entry in _fitting(best, room)]

    def _verbatim_chars(self, room: int) -> dict[int, int]:
        """The number of prompt characters to quote, for each turn in `important`.

        Room is given to short prompts first. The newest replies keep some room.
        """
        chars = {}
        room -= self._reserved_chars(self._least_replies) + _ENTRY_CHARS * len(self.important)
        for done, place in enumerate(self.important):
            length = len(self.turns[place].prompt)
            chars[place] = min(length, max(_MIN_PROMPT_CHARS, room // (len(self.important) - done)))
            room -= chars[place]
        return chars

    def _reserved_chars(self, limits: Sequence[int]) -> int:
        """The room for the newest replies, if they are cut to these numbers of characters, the newest first."""
        pairs = zip(self.turns[::-1], limits, strict=False)
        return sum(min(len(reply.text), most) + _ENTRY_CHARS for turn, most in pairs if (reply := _reply(turn)))

    def _entries(self, scale: float) -> list[_Entry]:
        last = len(self.turns) - 1
        return [
            entry for place, turn in enumerate(self.turns) for entry in self._turn(place, last - place, turn, scale)
        ]

    def _turn(self, place: int, age: int, turn: TurnRecord, scale: float) -> Iterator[_Entry]:
        if turn.prompt:
            rank = _CORRECTION if turn.is_correction else _PROMPT
            rank = _FIRST if place == self.first else _NEWEST if place in self._verbatim else rank
            least = _CORRECTION_CHARS if rank == _CORRECTION else _MIN_PROMPT_CHARS
            most = self._verbatim.get(place) or max(least, int(_PROMPT_CHARS * min(1.0, scale * 1.6)))
            yield _Entry(rank, age, turn_entry("user", shorten_request(turn.prompt, most), turn.message_index))
        reply = _reply(turn)
        shown = {*_shown_work(turn, age, scale)}
        for words in turn.words:
            if words.kind in USER_KINDS:
                most = int(_INPUT_CHARS * min(2.0 if age < LIVE_TURNS else 1.0, scale * 1.6))
                text = shorten_request(words.text, max(_CORRECTION_CHARS, most))
                yield _Entry(_CORRECTION, age, turn_entry(words.kind, text, words.message_index))
            elif words.kind == "command":
                text = shorten(words.text, _COMMAND_TEXT_CHARS)
                yield _Entry(_OTHER, age, turn_entry(words.kind, text, words.message_index))
            elif words in shown and words.kind in RUN_KINDS:
                yield _Entry(_OTHER, age, _run_entry(words, scale))
            elif words is reply:
                rank = _NEWEST if age < LIVE_TURNS else _PROMPT
                if most := self._reply_chars(words, age, scale):
                    yield _Entry(rank, _REPLY_AGING * (age + 1), _agent_entry(words, most))
            elif words in shown and (most := int(_BETWEEN_CHARS * scale)) >= _MIN_WORDS_CHARS // 2:
                yield _Entry(_OTHER, age, _agent_entry(words, most))
        if age < LIVE_TURNS and turn.files:
            yield _Entry(_OTHER, age, _changes(turn))

    def _reply_chars(self, reply: Words, age: int, scale: float) -> int:
        """The maximum length of a reply; 0 if the reply is left out."""
        most = int(_REPLY_CHARS[min(age, len(_REPLY_CHARS) - 1)] * scale)
        if age < LIVE_TURNS:
            return max(most, self._least_replies[age])
        if _REPLY_AGING * age < len(self.turns):
            return max(most, _MIN_WORDS_CHARS)
        return most if most >= min(_MIN_WORDS_CHARS, len(reply.text)) else 0


def _reply(turn: TurnRecord) -> Words | None:
    """The agent's last words in a turn; None if there are none."""
    return next((words for words in reversed(turn.words) if words.kind == "agent"), None)


def _shown_work(turn: TurnRecord, age: int, scale: float) -> list[Words]:
    """The runs of a turn that are shown, and the agent's words that are shown in addition to its reply."""
    said = [words for words in turn.words if words.kind == "agent"][:-1]
    runs = [words for words in turn.words if words.kind in RUN_KINDS]
    count = _RUN_COUNT[age] if age < len(_RUN_COUNT) else int(scale > _LARGE)
    count = min(count, (age == 0) + int(8 * scale))
    between = _BETWEEN_COUNT[age] if age < len(_BETWEEN_COUNT) else 0
    return [*said[max(0, len(said) - between) :], *runs[max(0, len(runs) - count) :]]


def _escape_turn(turn: TurnRecord, kept: Collection[int], *, only_user: bool) -> TurnRecord:
    """The turn with escaped texts.

    If a text contains code blocks, its `line` is set to the text without these blocks. This shorter text is shown if
    the whole text does not fit.
    """
    words = [it for it in turn.words if it.message_index not in kept and (not only_user or it.kind in USER_KINDS)]
    escaped = [
        it._replace(text=quote(it.text), line=quote(it.line[:_RUN_LINE_CHARS]))
        if it.kind in RUN_KINDS
        else it._replace(text=quote_lines(it.text), line=quote_lines(without_code(it.text)) if "```" in it.text else "")
        for it in words
    ]
    return turn._replace(
        prompt=quote_lines(turn.prompt) if turn.message_index not in kept else "",
        words=tuple(escaped),
        files=() if only_user else tuple([file for file in turn.files if file[2] not in kept]),
    )


def _agent_entry(words: Words, max_chars: int) -> str:
    text = words.text if len(words.text) <= max_chars else words.line or words.text
    return turn_entry("agent", shorten(text, max_chars), words.message_index)


def _run_entry(words: Words, scale: float) -> str:
    command = shorten(words.text, int(_RUN_CHARS * min(1.5, scale)) + 40)
    shown = f"{words.kind.capitalize()}: {command}{f' → {words.line}' if words.line else ''}"
    return f"{shown} [{handles_of((words.call_index, words.message_index))}]"


def _changes(turn: TurnRecord) -> str:
    names = [f"{path.rpartition('/')[2]}{f' ×{times}' if times > 1 else ''}" for path, times, _ in turn.files]
    more = f" and {len(names) - _FILE_COUNT} more" if len(names) > _FILE_COUNT else ""
    handles = handles_of((turn.files[0][2], turn.files[-1][2]))
    return f"Changed: {quote(', '.join(names[-_FILE_COUNT:]))}{more} [{handles}]"


def _cost(entries: Sequence[_Entry]) -> int:
    return sum([len(entry.text) + 1 for entry in entries])


def _fitting(entries: list[_Entry], room: int) -> list[_Entry]:
    """The entries that fit. The entries with the lowest rank are left out first.

    Among entries of equal rank, older entries are left out first.
    If even the first prompt is too long, the result is empty.
    """
    excess, dropped = _cost(entries) - room, set[int]()
    for place in sorted(range(len(entries)), key=lambda place: (entries[place].rank, -entries[place].age)):
        if excess > 0:
            dropped.add(place)
            excess -= len(entries[place].text) + 1
    return [entry for place, entry in enumerate(entries) if place not in dropped]
