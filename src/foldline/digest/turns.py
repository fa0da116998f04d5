"""The conversation turn by turn: the user's words, the agent's words, the commands that were run.

`TurnLog` collects the turns while messages are read. `turn_writer.py` writes them as entries of a digest.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from foldline.digest.shortening import shorten
from foldline.human_input import is_correction

USER_KINDS = frozenset({"refusal", "answer"})
RUN_KINDS = frozenset({"ran", "passed", "failed", "interrupted"})
_MAX_AGENT_CHARS, _MAX_PROMPT_CHARS = 4_000, 12_000
"""Maximum numbers of stored characters: for a text of the agent, and for any other text, such as a prompt."""
_MAX_WORDS, MAX_TURNS = 40, 300
"""Maximum numbers of `Words` in a turn, and of turns. The first turn is never dropped."""
LIVE_TURNS = 3
"""Number of newest turns that are kept in full, and whose prompts are quoted verbatim."""
FORGOTTEN, FIRST_FORGOTTEN, LAST_FORGOTTEN = "forgotten", "first forgotten", "last forgotten"
"""Keys of `Facts.marks` for dropped turns: their number, and the message index of the first and of the last one."""
_PATTERN_CHARS, _PUNCTUATION = 120, ".,:;!?()\"'`"
"""The number of characters of a prompt that its pattern is made from, and the punctuation around words."""
_COMMAND_CHARS = 200
"""A longer message after a command to the agent program was inserted by the program, not written by the user."""


class Words(NamedTuple):
    """A text of the user or of the agent, or a command that the agent ran (a run)."""

    message_index: int
    text: str
    kind: str = "user"
    """Who wrote the text: `user`, `refusal` and `answer` are the user, `agent` is the agent, and `command` is the agent
    program. A run is `ran`, `passed`, `failed` or `interrupted`, depending on what its result proves.
    """
    line: str = ""
    """For a run, the line of the result that shows the outcome. If no line shows it, the last line of the result."""
    call_index: int = -1
    """For a run, the index of the message with the call."""


class TurnRecord(NamedTuple):
    """A prompt, and what the user and the agent said and ran until the next prompt, in order."""

    message_index: int
    prompt: str = ""
    words: tuple[Words, ...] = ()
    is_command: bool = False
    """Whether the prompt is a command to the agent program. The text of the command is then the next message."""
    is_correction: bool = False
    """Whether the prompt corrects the agent or states a rule."""

    pattern: str = ""
    """The beginning of the prompt without names, numbers and punctuation. Routine prompts have the same pattern."""

    @property
    def user_words(self) -> list[Words]:
        """What the user said: the prompt, refusals and answers."""
        prompt = [Words(self.message_index, self.prompt)] if self.prompt else []
        return prompt + [words for words in self.words if words.kind in USER_KINDS and words.text]

    def without(self, indexes: Collection[int], *, only_user: bool = False) -> TurnRecord:
        """The turn without the texts of some messages; if `only_user` is true, only with what the user said."""
        words = [it for it in self.words if it.message_index not in indexes and it.text]
        return self._replace(
            prompt="" if self.message_index in indexes else self.prompt,
            words=tuple([it for it in words if not only_user or it.kind in USER_KINDS]),
        )

    def shortened(self) -> TurnRecord:
        """The turn with everything that the user said, but only the last text and the last run of the agent."""
        last = {("run" if words.kind in RUN_KINDS else words.kind): words for words in self.words}
        kept = (last.get("agent"), last.get("run"))
        one_time = RUN_KINDS | {"agent"}
        return self._replace(words=tuple([it for it in self.words if it.kind not in one_time or it in kept]))


def pattern_of(prompt: str) -> str:
    """The beginning of a prompt without names, numbers and punctuation.

    >>> pattern_of("Go on with module 7, then test a_b.py.")
    'go on with module then test'
    """
    words = [word.strip(_PUNCTUATION) for word in prompt[:_PATTERN_CHARS].lower().split()]
    return " ".join([word for word in words if word.isalpha()])


class TurnLog:
    """Collects the turns while messages are read. The given list and `marks` are changed in place."""

    def __init__(self, turns: list[TurnRecord], marks: dict[str, int]) -> None:
        self.turns, self.marks = turns, marks

    def start(self, index: int, prompt: str, *, is_command: bool = False, is_separate: bool = False) -> None:
        """Begin a turn. A second text of the same message is added to the prompt, unless it is a separate prompt.

        The text that the agent program inserts for a command is added to the turn of the command.
        """
        last = self.turns[-1] if self.turns else TurnRecord(-1)
        if last.is_command and index == last.message_index + 1 and len(prompt) > _COMMAND_CHARS:
            self.add(Words(index, prompt, "command"))
            return
        if last.message_index == index and last.prompt and not is_separate:
            prompt = f"{self.turns.pop().prompt}\n{prompt}"
        if len(self.turns) > LIVE_TURNS:
            self.turns[-LIVE_TURNS] = self.turns[-LIVE_TURNS].shortened()
        prompt = shorten(prompt, _MAX_PROMPT_CHARS)
        self.turns.append(TurnRecord(index, prompt, (), is_command, is_correction(prompt), pattern_of(prompt)))
        if len(self.turns) > MAX_TURNS:
            self._forget_turn()

    def _forget_turn(self) -> None:
        """Drop an old turn, and count it: the oldest turn with a prompt like that of the next turn, or else the
        oldest turn in which the user did not correct, refuse or answer anything.
        """
        first, before, marks = 0, (0, TurnRecord(-1)), self.marks
        for place, turn in enumerate(self.turns[1:-LIVE_TURNS], start=1):
            if turn.is_correction or turn.user_words[1:]:
                continue
            if turn.pattern and turn.pattern == before[1].pattern:
                first = before[0]
                break
            first, before = first or place, (place, turn)
        place = first or 1
        index = self.turns.pop(place).message_index
        marks[FORGOTTEN] = marks.get(FORGOTTEN, 0) + 1
        marks[FIRST_FORGOTTEN] = min(index, marks.get(FIRST_FORGOTTEN, index))
        marks[LAST_FORGOTTEN] = max(index, marks.get(LAST_FORGOTTEN, index))

    def add(self, words: Words) -> None:
        """Add words or a run to the current turn. The oldest words or runs of the agent in a long turn are dropped."""
        turn = self.turns.pop() if self.turns else TurnRecord(words.message_index)
        text = shorten(words.text, _MAX_AGENT_CHARS if words.kind == "agent" else _MAX_PROMPT_CHARS)
        both = [*turn.words, words._replace(text=text)]
        if len(both) > _MAX_WORDS:
            both.remove(next((it for it in both if it.kind not in USER_KINDS), both[0]))
        self.turns.append(turn._replace(words=tuple(both)))
