"""Writes turns as entries of a digest.

The user's words have priority. The first prompt, the newest prompts and corrections are quoted verbatim if they fit.
Other prompts are shortened, but their names and numbers are kept if possible. The agent's last words in each turn (its
reply) come next, because they usually summarise the turn. An old turn loses its reply before it loses its prompt. The
newest turns keep both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from foldline.digest.markup import INDENT, quote, quote_lines, turn_entry
from foldline.digest.shortening import shorten, shorten_request, without_code
from foldline.digest.turns import LIVE_TURNS, RUN_KINDS, USER_KINDS, TurnRecord

_OTHER, _PROMPT, _SINGLE, _CORRECTION, _NEWEST, _FIRST = range(6)
"""The ranks of entries: what the agent ran or said before its reply; prompts and replies; prompts that stand out among
routine prompts; corrections, refusals and answers; the newest prompts and replies; the first prompt. Entries with a low
rank are left out first.
"""
_MIN_ROUTINE = 3
"""A prompt is routine if at least this many prompts have the same pattern (`TurnRecord.pattern`)."""
_REPLY_AGING = 3
"""A reply is left out before the prompts that are less than this many times as old, so that some replies are shown."""
_LEAST, _LEAST_REPLY, _LEAST_CORRECTION = 60, 110, 300
"""The number of characters below which a text is left out: in general, for an old reply, for a correction."""
_PROMPT_CHARS, _REPLY_CHARS, _BETWEEN_CHARS, _RUN_CHARS = 900, (1_900, 400), 240, 150
"""Usual lengths in characters of a prompt, a reply (in the newest turn, and in old turns), an earlier text of the agent
in a turn, and a command.
"""
_WHOLE = 1_000_000
"""The usual length of a prompt that is quoted verbatim."""
_VERBATIM_CHARS, _LONGEST_SHARE = 20_000, 0.15
"""The first and the newest prompts are quoted verbatim if the digest has at least `_VERBATIM_CHARS` characters. In a
smaller digest, each of them gets at most the share `_LONGEST_SHARE`, because long prompts often contain logs.
"""
_FACTORS, _NEWEST_FACTOR = (0.0, 0.5, 1.0, 3.0), 0.075
"""All texts grow to their usual lengths times each factor, as long as the room lasts. Before that, the newest prompts
and replies grow by a factor with which all of a prompt is quoted.
"""
_PROMPTS_SHARE, _BEGINNING, _ENTRY_CHARS = 0.25, 160, 20
"""The beginnings of all prompts get at most this share of the room, and each gets at most `_BEGINNING` characters. An
entry has about `_ENTRY_CHARS` characters in addition to its text.
"""
_BETWEEN_COUNT, _RUN_COUNT = (10, 4), (5, 3)
"""How many earlier texts of the agent, and how many runs, are shown in the newest turns, newest first. An older turn
shows no earlier text, and only its last run.
"""
_LINE_CHARS = 110
"""Maximum length of the line of a run in characters."""


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

    def grown(self, given: int, wanted: int, room: int) -> int:
        """The number of characters of the text, at most `wanted`, with which the entry grows by at most `room`.

        If even the least length does not fit, this is the number `given`.
        """
        wanted, used = min(len(self.text), wanted), self.cost(given)
        least = min(wanted, self.least or _LEAST)
        while wanted > 0 and (excess := self.cost(wanted) - used - room) > 0:
            wanted = max(0, wanted - excess)
        return wanted if wanted > given and (given or wanted >= least) else given


class TurnWriter:
    """Writes the turns as entries. Messages in `kept_indexes` are left out, because the view shows them.

    `only_user` leaves out everything except the user's words.
    """

    def __init__(self, turns: Sequence[TurnRecord], kept_indexes: Collection[int], *, only_user: bool = False) -> None:
        shown = [turn.without(kept_indexes, only_user=only_user) for turn in turns]
        shown = [turn for turn in shown if turn.prompt or turn.words]
        ranks = _prompt_ranks(turns, [turn.message_index for turn in shown if turn.prompt])
        ages = range(len(shown))[::-1]
        self._items = [it for age, turn in zip(ages, shown, strict=True) for it in _items(turn, age, ranks)]
        self._order = sorted(
            range(len(self._items)), key=lambda place: (-self._items[place].rank, self._items[place].age)
        )
        self._newest = [place for place in self._order if self._items[place].rank >= _NEWEST]

    def needed_chars(self, longest: int) -> int:
        """The number of characters for the first and the newest prompts and for the newest replies.

        Each text counts with its least length (`_Item.least`), but each of these prompts counts with its full length or
        with `longest` characters.
        """
        newest = [self._items[place] for place in self._newest]
        least = [max(item.least, longest) if item.usual == _WHOLE else item.least for item in newest]
        return sum([item.cost(min(len(item.text), chars)) for item, chars in zip(newest, least, strict=True)])

    def write(self, room: int, longest: int) -> list[str]:
        """The entries of all turns, oldest first, in at most `room` characters.

        A prompt gets more than `longest` characters only if all other texts have their usual lengths.
        In each stage, texts grow in the order of their ranks. A stage ends at a text whose least length does not fit.
        """
        chars, left = dict[int, int](), room
        for share, wanted in self._stages(room, longest):
            reserve = left - min(left, share)
            for place, most in wanted:
                item, given = self._items[place], chars.get(place, 0)
                if grown := item.grown(given, most, left - reserve):
                    chars[place] = grown
                    left -= item.cost(grown) - item.cost(given)
                elif item.least:
                    break
        return [self._items[place].entry(chars[place]) for place in sorted(chars)]

    def _stages(self, room: int, longest: int) -> Iterator[tuple[int, Iterable[tuple[int, int]]]]:
        """Each stage has the room that its texts may use, and a length for each of these texts.

        The first and the newest prompts and the newest replies get their least lengths first, and then the beginnings
        of the other prompts. So a few long prompts do not leave out all others. Then the first and the newest prompts
        are quoted. Then every text gets its least length, and all texts get longer step by step.
        """

        def lengths(places: Iterable[int], factor: float) -> list[tuple[int, int]]:
            items = [(place, self._items[place]) for place in places]
            return [(place, max(item.least, min(longest, int(item.usual * factor)))) for place, item in items]

        prompts = [place for place in self._order if self._items[place].kind == "user"]
        share = int(room * _PROMPTS_SHARE)
        beginning = max(_LEAST, min(_BEGINNING, share // max(1, len(prompts)) - _ENTRY_CHARS))
        yield room, lengths(self._newest, 0.0)
        yield share, [(place, beginning) for place in prompts]
        yield room, lengths(self._newest, _NEWEST_FACTOR)
        for factor in _FACTORS:
            yield room, lengths([at for at in self._order if factor <= 1 or self._items[at].kind == "agent"], factor)
        yield room, [(place, _WHOLE) for place in self._newest]


def longest_prompt(chars: int) -> int:
    """The length in characters to which a prompt is cut in a digest with this number of characters."""
    return _WHOLE if chars >= _VERBATIM_CHARS else max(_PROMPT_CHARS, int(chars * _LONGEST_SHARE))


def _prompt_ranks(turns: Sequence[TurnRecord], shown: Sequence[int]) -> dict[int, int]:
    """The rank of each prompt, by the index of its message. `shown` has the indexes of the prompts to be written.

    In a session of mostly routine prompts, every other prompt stands out. A routine prompt is no correction, even if it
    contains words such as "always".
    """
    patterns = Counter([turn.pattern for turn in turns if turn.pattern])
    routine = {pattern for pattern, count in patterns.items() if count >= _MIN_ROUTINE}
    usual = _SINGLE if 2 * sum(patterns[pattern] for pattern in routine) > len(turns) else _PROMPT
    ranks = {turn.message_index: _CORRECTION if turn.is_correction else usual for turn in turns}
    ranks |= {turn.message_index: _PROMPT for turn in turns if turn.pattern in routine}
    return {**ranks, **dict.fromkeys(shown[-LIVE_TURNS:], _NEWEST), **dict.fromkeys(shown[:1], _FIRST)}


def _items(turn: TurnRecord, age: int, ranks: Mapping[int, int]) -> Iterator[_Item]:
    """The items of a turn, in the order of time. `ranks` has the ranks of all prompts."""
    index = turn.message_index
    if turn.prompt:
        rank = ranks[index]
        least = _LEAST_CORRECTION if rank == _CORRECTION else _LEAST
        usual = _WHOLE if rank >= _NEWEST else _PROMPT_CHARS
        yield _Item(rank, age, "user", quote_lines(turn.prompt), (index,), usual, least)
    said = [words for words in turn.words if words.kind == "agent"]
    runs = [words for words in turn.words if words.kind in RUN_KINDS]
    shown = {*runs[-(_RUN_COUNT[age] if age < len(_RUN_COUNT) else 1) :], *said[-1:]}
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
