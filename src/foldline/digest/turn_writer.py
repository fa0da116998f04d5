"""Writes turns as entries of a digest.

The user's words have priority. The first prompt, the newest prompts and corrections are quoted verbatim if they fit.
Other prompts are shortened, but their names and numbers are kept if possible. The agent's last words in each turn (its
reply) come next, because they usually summarise the turn. An old turn loses its reply before it loses its prompt. The
newest turns keep both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from foldline.digest.markup import INDENT, quote, quote_lines, turn_entry
from foldline.digest.shortening import shorten, shorten_request, without_code
from foldline.digest.turns import LIVE_TURNS, RUN_KINDS, USER_KINDS, TurnRecord

_OTHER, _PROMPT, _CORRECTION, _NEWEST, _FIRST = range(5)
"""The ranks of entries. Entries with a low rank are left out first.

From low to high: what the agent ran, changed or said before its reply; prompts and replies; corrections, refusals and
answers; the newest prompts and replies; the first prompt.
"""
_REPLY_AGING = 3
"""A reply is left out before the prompts that are less than this many times as old.

So at least one reply is shown for this many prompts.
"""
_LEAST, _LEAST_REPLY, _LEAST_CORRECTION = 60, 110, 300
"""An entry is left out if there is less room for its text: in general, for the reply of an old turn, for a correction.

The numbers are in characters.
"""
_PROMPT_CHARS, _REPLY_CHARS, _BETWEEN_CHARS, _RUN_CHARS = 900, (1_900, 400), 240, 150
"""Usual lengths in characters of a prompt, a reply, an earlier text of the agent in a turn, and a command.

The length of a reply is the first number for the newest turn, and falls to the second number for old turns.
"""
_WHOLE = 1_000_000
"""The usual length of a prompt that is quoted verbatim."""
_FACTORS = (0.0, 0.25, 0.5, 1.0, 2.0, 6.0)
"""Factors of the usual lengths. All texts grow to their usual lengths times each factor, as long as the room lasts."""
_NEWEST_FACTOR = 0.075
"""The factor for the newest prompts and replies, before other texts get longer. All of a prompt is quoted with it."""
_PROMPTS_SHARE, _BEGINNING, _ENTRY_CHARS = 0.25, 160, 20
"""Limits for the beginnings of prompts that are shown before the newest prompts are quoted verbatim.

All beginnings together get at most this share of the room, and each gets at most `_BEGINNING` characters. An entry has
about `_ENTRY_CHARS` characters in addition to its text.
"""
_BETWEEN_COUNT, _RUN_COUNT = (10, 4), (5, 3, 2)
"""How many earlier texts of the agent, and how many runs, are shown in the newest turns, newest first.

An older turn shows no earlier text, and only its last run.
"""
_LINE_CHARS, _FILE_COUNT = 110, 10
"""Maximum length of the line of a run, and maximum number of changed files in an entry."""


class _Item(NamedTuple):
    """A text of a turn that may become an entry."""

    rank: int
    age: int
    """Among items of equal rank, those with the highest age are left out first."""
    kind: str
    text: str
    indexes: tuple[int, ...]
    usual: int
    """The usual length of the text in the digest."""
    least: int = 0
    """The least length of the text. If it is 0, the text is shown only if all items with a least length are shown."""
    end: str = ""
    """Text that follows the shortened text."""

    def entry(self, chars: int) -> str:
        """The entry of a digest, with at most this number of characters of the text."""
        is_user = self.kind == "user" or self.kind in USER_KINDS
        text = self.text if is_user or len(self.text) <= chars else without_code(self.text)
        return turn_entry(self.kind, (shorten_request if is_user else shorten)(text, chars) + self.end, self.indexes)

    def cost(self, chars: int) -> int:
        """The approximate length of the entry with this number of characters of the text; 0 for no characters."""
        around = len(turn_entry(self.kind, self.end, self.indexes)) + 1
        return around + chars + len(INDENT) * self.text.count("\n", 0, chars) if chars else 0

    def fitting_chars(self, wanted: int, room: int) -> int:
        """The largest number of characters, at most `wanted`, whose entry fits into `room`."""
        while wanted > 0 and (excess := self.cost(wanted) - room) > 0:
            wanted = max(0, wanted - excess)
        return wanted


class TurnWriter:
    """Writes the turns as entries. Messages in `kept_indexes` are left out, because the view shows them.

    `only_user` leaves out everything except the user's words.
    """

    def __init__(self, turns: Sequence[TurnRecord], kept_indexes: Collection[int], *, only_user: bool = False) -> None:
        shown = [_shown_part(turn, kept_indexes, only_user=only_user) for turn in turns]
        shown = [turn for turn in shown if turn.prompt or turn.words or turn.files]
        prompts = [turn.message_index for turn in shown if turn.prompt]
        verbatim = {**dict.fromkeys(prompts[-LIVE_TURNS:], _NEWEST), **dict.fromkeys(prompts[:1], _FIRST)}
        self._items = [
            item
            for age, turn in zip(range(len(shown))[::-1], shown, strict=True)
            for item in _items(turn, age, verbatim)
        ]
        places = range(len(self._items))
        self._order = sorted(places, key=lambda place: (-self._items[place].rank, self._items[place].age))

    def needed_chars(self, *, verbatim: bool) -> int:
        """The number of characters for the first and the newest prompts and for the newest replies.

        Each text counts with its least length (`_Item.least`): with less room, the text is left out. If `verbatim` is
        true, prompts count with their full lengths.
        """
        newest = [item for item in self._items if item.rank >= _NEWEST]
        least = [_WHOLE if verbatim and item.usual == _WHOLE else item.least for item in newest]
        return sum([item.cost(min(len(item.text), chars)) for item, chars in zip(newest, least, strict=True)])

    def write(self, room: int) -> list[str]:
        """The entries of all turns, oldest first, in at most `room` characters.

        The room is used in this order, as long as it lasts:

        1. the first and the newest prompts and the newest replies, with their least lengths (`_Item.least`)
        2. the beginnings of all prompts, so that a few long prompts do not leave out all others
        3. the whole first prompt and the whole newest prompts
        4. all texts, which get longer step by step
        """
        chars = dict[int, int]()
        newest = [place for place in self._order if self._items[place].rank >= _NEWEST]
        prompts = [place for place in self._order if self._items[place].kind == "user"]
        left = room - self._lengthen(chars, newest, 0.0, room)
        share = min(left, int(room * _PROMPTS_SHARE))
        most = min(_BEGINNING, share // max(1, len(prompts)) - _ENTRY_CHARS)
        left -= self._lengthen(chars, prompts, 1.0, share, most=max(_LEAST, most))
        left -= self._lengthen(chars, newest, _NEWEST_FACTOR, left)
        for factor in _FACTORS:
            places = [place for place in self._order if factor <= 1 or self._items[place].kind == "agent"]
            left -= self._lengthen(chars, places, factor, left)
        return [self._items[place].entry(chars[place]) for place in sorted(chars)]

    def _lengthen(
        self, chars: dict[int, int], places: Iterable[int], factor: float, room: int, most: int = _WHOLE
    ) -> int:
        """Lengthen the shown texts (`chars`) at these places, by at most `room` characters. Returns the number used.

        Each text gets `factor` times its usual length (`_Item.usual`), but at least its least length (`_Item.least`)
        and at most `most` characters.
        """
        left = room
        for place in places:
            item, given = self._items[place], chars.get(place, 0)
            full, used = len(item.text), item.cost(given)
            wanted = item.fitting_chars(min(full, most, max(item.least, int(item.usual * factor))), left + used)
            if wanted > given and (given or wanted >= min(full, most, item.least or _LEAST)):
                chars[place] = wanted
                left -= item.cost(wanted) - used
            elif item.least and not given:
                break
        return room - left


def _shown_part(turn: TurnRecord, kept_indexes: Collection[int], *, only_user: bool) -> TurnRecord:
    words = [it for it in turn.words if it.message_index not in kept_indexes and it.text]
    return turn._replace(
        prompt="" if turn.message_index in kept_indexes else turn.prompt,
        words=tuple([it for it in words if not only_user or it.kind in USER_KINDS]),
        files=() if only_user else tuple([file for file in turn.files if file[2] not in kept_indexes]),
    )


def _items(turn: TurnRecord, age: int, verbatim: Mapping[int, int]) -> Iterator[_Item]:
    """The items of a turn, in the order of time. `verbatim` has the ranks of the prompts that are quoted verbatim."""
    index = turn.message_index
    if turn.prompt:
        rank = verbatim.get(index, _CORRECTION if turn.is_correction else _PROMPT)
        least = _LEAST_CORRECTION if rank == _CORRECTION else _LEAST
        usual = _WHOLE if index in verbatim else _PROMPT_CHARS
        yield _Item(rank, age, "user", quote_lines(turn.prompt), (index,), usual, least)
    said = [words for words in turn.words if words.kind == "agent"]
    runs = [words for words in turn.words if words.kind in RUN_KINDS]
    shown = {*runs[-_RUN_COUNT[min(age, len(_RUN_COUNT) - 1)] :], *said[-1:]}
    shown |= {*said[-_BETWEEN_COUNT[age] - 1 :]} if age < len(_BETWEEN_COUNT) else set()
    for words in turn.words:
        kind, text, index = words.kind, quote_lines(words.text), words.message_index
        if kind in USER_KINDS:
            yield _Item(_CORRECTION, age, kind, text, (index,), _PROMPT_CHARS, _LEAST_CORRECTION)
        elif kind == "command":
            yield _Item(_OTHER, age, kind, text, (index,), _RUN_CHARS)
        elif words not in shown:
            continue
        elif kind in RUN_KINDS:
            end = f" → {quote(words.line[:_LINE_CHARS])}" if words.line else ""
            yield _Item(_OTHER, age, kind, quote(text), (words.call_index, index), _RUN_CHARS, end=end)
        elif words is said[-1]:
            rank, least = (_NEWEST, _LEAST) if age < LIVE_TURNS else (_PROMPT, _LEAST_REPLY)
            usual = max(_REPLY_CHARS[1], int(_REPLY_CHARS[0] / (1 + age / 2)))
            yield _Item(rank, _REPLY_AGING * (age + 1), kind, text, (index,), usual, least)
        else:
            yield _Item(_OTHER, age, kind, text, (index,), _BETWEEN_CHARS)
    if age < LIVE_TURNS and turn.files:
        names = [f"{path.rpartition('/')[2]}{f' ×{times}' if times > 1 else ''}" for path, times, _ in turn.files]
        more = f" and {len(names) - _FILE_COUNT} more" if len(names) > _FILE_COUNT else ""
        text, indexes = quote(", ".join(names[-_FILE_COUNT:])), (turn.files[0][2], turn.files[-1][2])
        yield _Item(_OTHER, age, "changed", text, indexes, _WHOLE, end=more)
