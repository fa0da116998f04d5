"""The conversation turn by turn: the user's words, the agent's words, the commands that were run, the changed files.

`TurnLog` collects the turns while messages are read, and `TurnWriter` writes them as entries of a digest. The user's
words have priority. The first prompt, the newest prompts and corrections are quoted verbatim if they fit. Other prompts
are shortened, but their names and numbers are kept if possible. The agent's last words in each turn come next, because
they usually summarise the turn. The newest turns get more room. One scale factor determines all lengths, and it is
chosen so that the text fits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from foldline.digest.extract.identifiers import names_in
from foldline.digest.markup import INDENT, quote, quote_lines, turn_entry
from foldline.human_input import is_correction
from foldline.plan.timeline import handles_of

_USER_KINDS = frozenset({"refusal", "answer"})
_RUN_KINDS = frozenset({"ran", "passed", "failed", "interrupted"})
MAX_AGENT_CHARS, _MAX_PROMPT_CHARS = 4_000, 12_000
"""Maximum numbers of stored characters: for a text of the agent, and for any other text, such as a prompt."""
_MAX_WORDS, _MAX_FILES, MAX_TURNS = 40, 60, 300
"""Maximum numbers: of `Words` values in a turn, of files in a turn, and of turns in a log.

The oldest ones are dropped, but the first turn is never dropped.
"""
_LIVE_TURNS = 3
"""Number of newest turns that are kept in full, and whose prompts are quoted verbatim."""
FORGOTTEN, FIRST_FORGOTTEN, LAST_FORGOTTEN = "forgotten", "first forgotten", "last forgotten"
"""Keys of `Facts.marks` for dropped turns: their number, and the message index of the first and of the last one."""
_COMMAND_CHARS = 200
"""Maximum length in characters of a message that the user wrote after a command to the agent program.

A longer message was inserted by the program.
"""


class Words(NamedTuple):
    """A text of the user or of the agent, or a command that the agent ran (a run)."""

    message_index: int
    text: str
    kind: str = "user"
    """Who wrote the text, or the outcome of a run.

    Words of the user are `user`, `refusal` or `answer`, and words of the agent are `agent`. Text that the agent program
    inserted for a command is `command`. A run is `ran`, `passed`, `failed` or `interrupted`, depending on what its
    result proves.
    """
    line: str = ""
    """For a run, the line of the result that shows the outcome. If no line shows it, the last line of the result."""
    call_index: int = -1
    """For a run, the index of the message with the call."""


class TurnRecord(NamedTuple):
    """A prompt, and what followed until the next prompt."""

    message_index: int
    prompt: str = ""
    words: tuple[Words, ...] = ()
    """What the user and the agent said after the prompt, and the commands that the agent ran, in order."""
    files: tuple[tuple[str, int, int], ...] = ()
    """The files that were changed: path, number of changes, index of the newest change."""
    is_command: bool = False
    """Whether the prompt is a command to the agent program. The text of the command is then the next message."""
    is_correction: bool = False
    """Whether the prompt corrects the agent."""

    @property
    def user_words(self) -> list[Words]:
        """What the user said: the prompt, refusals and answers."""
        prompt = [Words(self.message_index, self.prompt)] if self.prompt else []
        return prompt + [words for words in self.words if words.kind in _USER_KINDS and words.text]

    def redacted(self, clean: Callable[[str], str]) -> TurnRecord:
        """The turn with redacted words. Commands and their outcomes were redacted when they were read."""
        words = [it if it.kind in _RUN_KINDS else it._replace(text=clean(it.text)) for it in self.words]
        return self._replace(prompt=clean(self.prompt), words=tuple(words))

    def shortened(self) -> TurnRecord:
        """The turn with everything that the user said, but only the last text and the last run of the agent."""
        last = {("run" if words.kind in _RUN_KINDS else words.kind): words for words in self.words}
        kept = (last.get("agent"), last.get("run"))
        one_time = _RUN_KINDS | {"agent"}
        return self._replace(words=tuple([it for it in self.words if it.kind not in one_time or it in kept]))


class TurnLog:
    """Collects the turns while messages are read. The given list and `marks` are changed in place.

    `marks` counts the turns that are dropped because there are too many.
    """

    def __init__(self, turns: list[TurnRecord], marks: dict[str, int]) -> None:
        self.turns, self.marks = turns, marks

    def start(self, index: int, prompt: str, *, is_command: bool = False, is_separate: bool = False) -> None:
        """Begin a turn.

        A second text of the same message is added to the prompt, unless it is a separate prompt. The text that the
        agent program inserts for a command is added to the turn of the command.
        """
        last = self.turns[-1] if self.turns else TurnRecord(-1)
        if last.is_command and index == last.message_index + 1 and len(prompt) > _COMMAND_CHARS:
            self.add(Words(index, prompt, "command"))
            return
        if last.message_index == index and last.prompt and not is_separate:
            prompt = f"{self.turns.pop().prompt}\n{prompt}"
        if len(self.turns) > _LIVE_TURNS:
            self.turns[-_LIVE_TURNS] = self.turns[-_LIVE_TURNS].shortened()
        prompt = shorten(prompt, _MAX_PROMPT_CHARS)
        self.turns.append(TurnRecord(index, prompt, is_command=is_command, is_correction=is_correction(prompt)))
        if len(self.turns) > MAX_TURNS:
            old = enumerate(self.turns[1:-_LIVE_TURNS], start=1)
            self._forget(next((at for at, turn in old if not (turn.is_correction or turn.user_words[1:])), 1))

    def _forget(self, place: int) -> None:
        """Drop a turn, and count it."""
        index, marks = self.turns.pop(place).message_index, self.marks
        marks[FORGOTTEN] = marks.get(FORGOTTEN, 0) + 1
        marks[FIRST_FORGOTTEN] = min(index, marks.get(FIRST_FORGOTTEN, index))
        marks[LAST_FORGOTTEN] = max(index, marks.get(LAST_FORGOTTEN, index))

    def add(self, words: Words) -> None:
        """Add words or a run to the current turn.

        If the turn then has too many entries, its oldest run or its oldest words of the agent are removed.
        """
        turn = self._current(words.message_index)
        text = shorten(words.text, MAX_AGENT_CHARS if words.kind == "agent" else _MAX_PROMPT_CHARS)
        both = [*turn.words, words._replace(text=text)]
        if len(both) > _MAX_WORDS:
            both.remove(next((it for it in both if it.kind not in _USER_KINDS), both[0]))
        self.turns[-1] = turn._replace(words=tuple(both))

    def add_change(self, index: int, path: str) -> None:
        """Record that a file was changed."""
        turn = self._current(index)
        times = next((count for known, count, _ in turn.files if known == path), 0)
        others = tuple([file for file in turn.files if file[0] != path])
        self.turns[-1] = turn._replace(files=(*others, (path, times + 1, index))[-_MAX_FILES:])

    def _current(self, index: int) -> TurnRecord:
        if not self.turns:
            self.turns.append(TurnRecord(index))
        return self.turns[-1]


_GAP = "…"
"""What is written in place of words that were left out."""
_FIRST_WORDS, _MAX_NAMED, _MAX_SKIPPED = 3, 2, 8
"""Limits for shortening a request to some number of characters (the room).

The first `_FIRST_WORDS` words have the highest priority. If all names together are longer than `_MAX_NAMED` times the
room, the request is mostly data, and its names are not preferred. The room counts as full when more than `_MAX_SKIPPED`
words did not fit.
"""


def shorten(text: str, max_chars: int) -> str:
    """The text, without its middle if it has more than `max_chars` characters."""
    text = text.strip()
    if len(text) <= max_chars:
        return text
    head, tail = text[: max_chars * 3 // 5], text[-(max_chars * 2 // 5) :]
    head = head[: max(head.rfind(" "), head.rfind("\n"), len(head) * 3 // 4)].rstrip()
    starts = [at for at in (tail.find(" "), tail.find("\n")) if 0 <= at < len(tail) // 4]
    return f"{head} {_GAP} {tail[min(starts, default=-1) + 1 :].lstrip()}"


def shorten_request(text: str, max_chars: int) -> str:
    """The user's words, shortened to at most `max_chars` characters. Names and numbers are kept before other words.

    >>> shorten_request("Set the port of the new service to 7013 and then look at all of the other things.", 40)
    'Set the port … to 7013 … other things.'
    """
    short = shorten(text, max_chars)
    if len(text) <= max_chars:
        return short
    words, order, named_chars, names = _ranked_words(text)
    if not 0 < named_chars <= _MAX_NAMED * max_chars or names <= names_in(short):
        return short
    kept, room, skipped = set[int](), max_chars - len(_GAP), 0
    for at in order:
        gaps = 1 - (at - 1 in kept) - (at + 1 in kept)
        cost = len(words[at]) + 1 + gaps * len(_GAP)
        if cost <= room:
            kept.add(at)
            room -= cost
        elif (skipped := skipped + 1) > _MAX_SKIPPED:
            break
    shown = [word if at in kept else _GAP for at, word in enumerate(words)]
    return " ".join([word for at, word in enumerate(shown) if word != _GAP or shown[at - 1 : at] != [_GAP]])


@lru_cache(MAX_TURNS)
def _ranked_words(text: str) -> tuple[list[str], list[int], int, frozenset[str]]:
    """The words of a text, the indexes of the words in order of priority, the length of all names, and the names.

    The first words of the text have the highest priority. The names have the next priority, each together with the word
    that precedes it. All remaining words come last, alternately from the start and from the end of the text.
    """
    words = text.split(" ")
    named = [at for at, word in enumerate(words) if names_in(word)]
    near = [place for at in named for place in (at, max(0, at - 1))]
    ends = [place for at in range((len(words) + 1) // 2) for place in (at, len(words) - 1 - at)]
    order = dict.fromkeys([*range(min(_FIRST_WORDS, len(words))), *near, *ends])
    return words, list(order), sum(len(words[at]) + 1 for at in named), names_in(text)


def without_code(text: str) -> str:
    """A text without its code blocks."""
    pieces = text.split("```")
    return "".join(pieces[::2]) if len(pieces) % 2 else text


# Turns as text

_OTHER, _PROMPT, _CORRECTION, _NEWEST, _FIRST = range(5)
"""The ranks of entries. Entries with a low rank are left out first.

From low to high: what the agent said, ran or changed; prompts; corrections, refusals and answers; the newest prompts;
the first prompt.
"""
_PROMPT_CHARS, _INPUT_CHARS, _CORRECTION_CHARS, _COMMAND_TEXT_CHARS, _MIN_PROMPT_CHARS = 900, 700, 300, 300, 60
_CLOSING_CHARS, _MIN_CLOSING_CHARS = (1_900, 1_200, 1_000, 800, 650, 550, 500, 450, 400), 200
"""Maximum lengths in characters of the agent's last text in a turn, one for each of the newest turns, newest first.

The last number is also used for all older turns. Each length is multiplied by the scale. In the newest turn, the result
is at least `_MIN_CLOSING_CHARS`.
"""
_BETWEEN_CHARS, _BETWEEN_COUNT, _MIN_WORDS_CHARS = 240, (10, 4), 110
"""Limits for the agent's earlier texts in a turn.

Their maximum length is `_BETWEEN_CHARS` characters, multiplied by the scale. `_BETWEEN_COUNT` is how many are shown in
the newest and in the second newest turn. Older turns show none.

If the scaled length is below `_MIN_WORDS_CHARS`, the agent's last text is left out, unless it is short enough to fit.
For earlier texts, half of this number is used.
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
    text: str


class TurnWriter:
    """Writes the turns as entries. Messages in `kept_indexes` are left out, because the view shows them.

    `only_user` leaves out everything except the user's words.
    """

    def __init__(self, turns: Sequence[TurnRecord], kept_indexes: Collection[int], *, only_user: bool = False) -> None:
        self.turns = [_escape_turn(turn, kept_indexes, only_user=only_user) for turn in turns]
        places = [place for place, turn in enumerate(self.turns) if turn.prompt]
        self.first = places[0] if places else -1
        self.important = sorted({*places[:1], *places[-_LIVE_TURNS:]}, key=lambda place: len(self.turns[place].prompt))
        """The turns whose prompts must be quoted verbatim, the shortest prompt first."""
        prompts = [self.turns[place].prompt for place in self.important]
        self.important_chars = sum(len(text) + len(INDENT) * text.count("\n") + _ENTRY_CHARS for text in prompts)
        self._verbatim: dict[int, int] = {}

    def write(self, room: int) -> list[str]:
        """The entries of all turns, oldest first, in at most `room` characters."""
        if not self.turns or room <= 0:
            return []
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

        Room is given to short prompts first.
        """
        chars = {}
        room -= _ENTRY_CHARS * len(self.important)
        for done, place in enumerate(self.important):
            length = len(self.turns[place].prompt)
            chars[place] = min(length, max(_MIN_PROMPT_CHARS, room // (len(self.important) - done)))
            room -= chars[place]
        return chars

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
            yield _Entry(rank, turn_entry("user", shorten_request(turn.prompt, most), turn.message_index))
        replies = [words for words in turn.words if words.kind == "agent"]
        runs = [words for words in turn.words if words.kind in _RUN_KINDS]
        count = _RUN_COUNT[age] if age < len(_RUN_COUNT) else int(scale > _LARGE)
        count = min(count, (age == 0) + int(8 * scale))
        shown = {*replies[-1 - (_BETWEEN_COUNT[age] if age < len(_BETWEEN_COUNT) else 0) :], *runs[len(runs) - count :]}
        for words in turn.words:
            if words.kind in _USER_KINDS:
                most = int(_INPUT_CHARS * min(2.0 if age < _LIVE_TURNS else 1.0, scale * 1.6))
                text = shorten_request(words.text, max(_CORRECTION_CHARS, most))
                yield _Entry(_CORRECTION, turn_entry(words.kind, text, words.message_index))
            elif words.kind == "command":
                text = shorten(words.text, _COMMAND_TEXT_CHARS)
                yield _Entry(_OTHER, turn_entry(words.kind, text, words.message_index))
            elif words in shown and words.kind in _RUN_KINDS:
                yield _Entry(_OTHER, _run_entry(words, scale))
            elif words in shown:
                for line in _reply_entry(words, age, scale, is_last=words is replies[-1]):
                    yield _Entry(_OTHER, line)
        if age < _LIVE_TURNS and turn.files:
            yield _Entry(_OTHER, _changes(turn))


def _escape_turn(turn: TurnRecord, kept: Collection[int], *, only_user: bool) -> TurnRecord:
    """The turn with escaped texts.

    If a text contains code blocks, its `line` is set to the text without these blocks. This shorter text is shown if
    the whole text does not fit.
    """
    words = [it for it in turn.words if it.message_index not in kept and (not only_user or it.kind in _USER_KINDS)]
    escaped = [
        it._replace(text=quote(it.text), line=quote(it.line[:_RUN_LINE_CHARS]))
        if it.kind in _RUN_KINDS
        else it._replace(text=quote_lines(it.text), line=quote_lines(without_code(it.text)) if "```" in it.text else "")
        for it in words
    ]
    return turn._replace(
        prompt=quote_lines(turn.prompt) if turn.message_index not in kept else "",
        words=tuple(escaped),
        files=() if only_user else tuple([file for file in turn.files if file[2] not in kept]),
    )


def _reply_entry(words: Words, age: int, scale: float, *, is_last: bool) -> Iterator[str]:
    most, least = int(_BETWEEN_CHARS * scale), _MIN_WORDS_CHARS // 2
    if is_last:
        most, least = int(_CLOSING_CHARS[min(age, len(_CLOSING_CHARS) - 1)] * scale), _MIN_WORDS_CHARS
        most = max(most, _MIN_CLOSING_CHARS) if age == 0 else most
    if most >= least or (is_last and len(words.text) <= most):
        text = words.text if len(words.text) <= most else words.line or words.text
        yield turn_entry("agent", shorten(text, most), words.message_index)


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
    for place in sorted(range(len(entries)), key=lambda place: entries[place].rank):
        if excess > 0:
            dropped.add(place)
            excess -= len(entries[place].text) + 1
    return [entry for place, entry in enumerate(entries) if place not in dropped]
