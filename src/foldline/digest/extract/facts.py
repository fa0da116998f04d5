"""The facts of messages, which a digest must not lose. Each fact names the messages it comes from.

| kind | what it is | found by |
|---|---|---|
| `read`, `modified` | a file | tool calls |
| `passed`, `failed`, `interrupted`, `command` | a command, by its outcome | results; `call_outcomes.py` |
| `produced` | a commit, a branch, an address | results; `_PRODUCTS` in `call_facts.py` |
| `error` | an error of a call that has no file and no command | results |
| `done`, `open` | tasks and their state | calls that keep a task list |
| `background` | background work that goes on | results; `background_id` |

The words of the user and the agent are in `Facts.turns`. Facts are extracted in `extraction.py`, those of calls and
results in `call_facts.py`. To add a kind, extract it there and show it in `status.py`. `audit.py` lists the kinds that
a digest should show.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from math import log
from typing import NamedTuple

from foldline.digest.extract.file_contents import FileContents
from foldline.digest.extract.identifiers import Identifier
from foldline.digest.turns import LIVE_TURNS, TurnRecord, Words
from foldline.tool_calls import InterpretedCall

NO_RESULT, LEFT_OPEN, NO_REPORT = ": no result yet", ": no result, the work went on without it", " runs, no report yet"
"""The ends of entries for a call without a result, for an older such call, and for background work."""


class Fact(NamedTuple):
    """A statement or an action, in the words of the transcript."""

    kind: str
    text: str
    indexes: tuple[int, ...]
    """Indexes of the messages that the fact comes from, ascending."""
    note: str = ""
    """A status, an error line, the purpose of a call, or the id of work that is still open."""
    times: int = 1
    changes: tuple[str, ...] = ()
    """For a changed file, the names that were defined in it, or the lines that were written."""


class PendingCall(NamedTuple):
    """A call whose result has not been read yet."""

    message_index: int
    call: InterpretedCall = InterpretedCall()
    added: tuple[str, ...] = ()
    """The lines that the call writes."""
    words: str = ""
    """The name and the arguments of the call, without secrets and shortened."""


class MadeCall(NamedTuple):
    """The newest call on a target: a file or folder that is read or searched, or a command that is run."""

    text: str
    message_index: int
    times: int = 1
    is_folder: bool = False
    """Whether the target is a folder. Other sections of a digest do not show the full path of a folder."""

    def weight(self, end: int) -> float:
        """A score for the probability that the target is needed again in message `end` or later."""
        return (0.8 if self.is_folder else 0.0) + log(1 + self.times) - 0.45 * log(max(1, end - self.message_index))


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything extracted from the messages with indexes from `first` to `end - 1`."""

    first: int = 0
    end: int = 0
    facts: dict[str, Fact] = field(default_factory=dict)
    """The facts, in the order in which they were last updated. A later fact replaces the one with the same key."""
    identifiers: dict[str, Identifier] = field(default_factory=dict)
    forgotten: set[str] = field(default_factory=set)
    """The identifiers that occurred but were dropped from `identifiers`."""
    files: dict[str, FileContents] = field(default_factory=dict)
    """The files that were read or edited, by path. The file that was used last comes last."""
    pending: dict[str, PendingCall] = field(default_factory=dict)
    """Calls without a result, by call id."""
    turns: list[TurnRecord] = field(default_factory=list)
    calls: dict[str, MadeCall] = field(default_factory=dict)
    """The newest call on each target, by target."""
    marks: dict[str, int] = field(default_factory=dict)
    """Indexes and counts by name: `commit` and `check` are the indexes of the newest call that may have committed, and
    of the newest one that tested, built or linted. `tasks` counts tasks without a number. `condensed` counts messages
    that earlier digests in the messages replace. The names for dropped turns are in `turns.py`.
    """
    earlier_digest: Words | None = None
    """The newest digest in the messages that was written by a model or by the client."""
    is_complete: bool = True
    """Whether the identifiers of all messages were read. In a long session, the identifiers of old messages are not."""

    @property
    def user_words(self) -> list[Words]:
        """The user's words: prompts, refusals and answers."""
        return [words for turn in self.turns for words in turn.user_words]

    @property
    def user_text(self) -> str:
        """The user's words as one text."""
        return "\n".join([words.text for words in self.user_words])

    def open_work(self, kept_indexes: Collection[int] = ()) -> list[Fact]:
        """Calls without a result and background work without a report, newest first.

        A call is left out if the agent replied to several later prompts, because it was probably interrupted.
        """
        replied = [turn.message_index for turn in self.turns if any(words.kind == "agent" for words in turn.words)]
        found = []
        for name, call in self.pending.items():
            later = sum(index > call.message_index for index in replied[-LIVE_TURNS:])
            if name and call.words and later < LIVE_TURNS:
                text = f"{call.words} ({name}){LEFT_OPEN if later else NO_RESULT}"
                found.append(Fact("waiting", text, (call.message_index,), name))
        found += [fact for fact in self.facts.values() if fact.kind == "background"]
        found = [fact for fact in found if fact.indexes[-1] not in kept_indexes]
        return sorted(found, key=lambda fact: -fact.indexes[-1])

    def by_kind(self, kept_indexes: Collection[int]) -> dict[str, list[Fact]]:
        """The facts by kind, without those that occur only in messages in `kept_indexes`."""
        found: dict[str, list[Fact]] = {}
        for fact in self.facts.values():
            if not all(index in kept_indexes for index in fact.indexes):
                found.setdefault(fact.kind, []).append(fact)
        return found
