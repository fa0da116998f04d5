"""The conversation turn by turn: the user's words, the agent's answers, the changed files and the commands that were
run.

The agent's last words in a turn usually summarise the turn, and the user's words are few. So both are kept, and also
the user's refusals and answers. In the newest turns, all other words of the agent are kept, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

_PROMPT_CHARS = 12_000
_REPLY_CHARS = 4_000
_MAX_REPLIES, _MAX_RUNS, _MAX_INPUTS, _MAX_FILES = 14, 8, 24, 60
"""Maximum numbers of entries that are kept for each turn. The oldest entries are dropped."""
_LIVE_TURNS = 3
"""Number of newest turns that are kept in full.

Of each older turn, only the agent's last words and the last run are kept.
"""
_COMMAND_CHARS = 200
"""Some prompts are commands to the agent program.

If the next message is longer than this number of characters, it is the text that the program inserted for the command.
"""
MAX_TURNS = 300
"""Maximum number of turns; beyond it, the oldest ones are dropped, except the first."""


class Words(NamedTuple):
    """Something that the user or the agent said."""

    message_index: int
    text: str
    kind: str = ""
    """`refusal` or `answer` of the user, `command` (text that the agent program inserted for a command), or "" for
    other words.
    """


class Run(NamedTuple):
    """A command that was run."""

    command: str
    status: str
    """`passed`, `failed` or `interrupted` if the result proves it, else ""."""
    line: str
    """The line of the result that shows the outcome, or its last line."""
    indexes: tuple[int, ...]


class TurnRecord(NamedTuple):
    """A prompt, and what followed until the next prompt."""

    message_index: int
    """Index of the first message."""
    prompt: str = ""
    inputs: tuple[Words, ...] = ()
    """The user's refusals and answers."""
    replies: tuple[Words, ...] = ()
    """The agent's words. The last entry is the end of the turn, which usually summarises it."""
    files: tuple[tuple[str, int, int], ...] = ()
    """The files that were changed: path, number of changes, index of the newest change."""
    runs: tuple[Run, ...] = ()
    is_command: bool = False
    """Whether the prompt is a command to the agent program.

    The program inserts the text of the command as the next message.
    """


class TurnLog:
    """Collects the turns while messages are read."""

    def __init__(self, prior: Iterable[TurnRecord]) -> None:
        self.turns = list(prior)

    def start(self, index: int, prompt: str, *, is_command: bool = False) -> None:
        """Begin a turn.

        A second text of the same message is added to the prompt. The text that the agent program inserts for a command
        is added to the turn of the command.
        """
        last = self.turns[-1] if self.turns else TurnRecord(-1)
        if last.is_command and index == last.message_index + 1 and len(prompt) > _COMMAND_CHARS:
            self.add_input(index, "command", prompt)
            return
        if last.message_index == index and last.prompt:
            prompt = f"{self.turns.pop().prompt}\n{prompt}"
        if len(self.turns) > _LIVE_TURNS:
            old = self.turns[-_LIVE_TURNS]
            self.turns[-_LIVE_TURNS] = old._replace(replies=old.replies[-1:], runs=old.runs[-1:])
        self.turns.append(TurnRecord(index, shorten(prompt, _PROMPT_CHARS), is_command=is_command))
        if len(self.turns) > MAX_TURNS:
            del self.turns[1]

    def add_input(self, index: int, kind: str, text: str) -> None:
        """Add a refusal or an answer of the user."""
        turn = self._current(index)
        words = Words(index, shorten(text, _PROMPT_CHARS), kind)
        self.turns[-1] = turn._replace(inputs=(*turn.inputs, words)[-_MAX_INPUTS:])

    def add_reply(self, index: int, text: str) -> None:
        """Add words of the agent."""
        turn = self._current(index)
        replies = (*turn.replies, Words(index, shorten(text, _REPLY_CHARS)))
        self.turns[-1] = turn._replace(replies=replies[-_MAX_REPLIES:])

    def add_change(self, index: int, path: str) -> None:
        """Record that a file was changed."""
        turn = self._current(index)
        times = next((count for known, count, _ in turn.files if known == path), 0)
        others = tuple([file for file in turn.files if file[0] != path])
        self.turns[-1] = turn._replace(files=(*others, (path, times + 1, index))[-_MAX_FILES:])

    def add_run(self, run: Run) -> None:
        """Add a command that was run."""
        turn = self._current(run.indexes[0])
        self.turns[-1] = turn._replace(runs=(*turn.runs, run)[-_MAX_RUNS:])

    def _current(self, index: int) -> TurnRecord:
        if not self.turns:
            self.turns.append(TurnRecord(index))
        return self.turns[-1]


def shorten(text: str, max_chars: int) -> str:
    """The text, without its middle if it has more than `max_chars` characters."""
    text = text.strip()
    if len(text) <= max_chars:
        return text
    head, tail = text[: max_chars * 3 // 5], text[-(max_chars * 2 // 5) :]
    head = head[: max(head.rfind(" "), head.rfind("\n"), len(head) * 3 // 4)].rstrip()
    starts = [at for at in (tail.find(" "), tail.find("\n")) if 0 <= at < len(tail) // 4]
    return f"{head} … {tail[min(starts, default=-1) + 1 :].lstrip()}"


def without_code(text: str) -> str:
    """A text without its code blocks."""
    pieces = text.split("```")
    return "".join(pieces[::2]) if len(pieces) % 2 else text
