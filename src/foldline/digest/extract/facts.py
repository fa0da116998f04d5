"""Facts: what a digest must not lose, taken from the messages by rule, each with the numbers of where it came from.

A fact is a whole sentence of somebody (a request, a constraint, a decision, an open end), a thing that was done (a
file, a command, a failure), or a name with the lines it stood in. Later facts take the place of earlier ones about the
same thing. Gathering reads every message once: a session that folds ten times hands the facts so far to the next
gathering, and the same messages give the same facts in one go or in many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from foldline.digest.extract.file_contents import Found, Sheet, Sheets
from foldline.digest.extract.occurrences import ASKED, DID, SAID, SAW, WROTE, Name, Uses
from foldline.digest.extract.statements import constraints, decisions, open_ends, request
from foldline.digest.prior_digest import entries
from foldline.message import Message, Text, ToolCall, ToolResult
from foldline.redact.redact import redact
from foldline.tool_calls import DONE, Act, Outcome, outcome_of, read_call

KINDS = ("request", "constraint", "decision", "read", "modified", "command", "error", "failed", "open", "done", "said")
"""What a fact may be. Names are kept apart: `path`, `identifier`, `id`, `number`, `url`."""

MOST = 120
"""Facts of one kind that are kept; beyond that the oldest go, but never what the first prompt said."""
_SENTENCES = ("request", "constraint", "decision")
"""Facts that are the same when they are said again."""
_PLACES = 4
"""Messages that a fact names at most: the first one and the newest."""


class Fact(NamedTuple):
    """Something said or done, in the words of the transcript."""

    kind: str
    text: str
    at: tuple[int, ...]
    """The messages it comes from, ascending."""
    note: str = ""
    """What became of it: a status, an error line, what was done."""
    times: int = 1


class Pending(NamedTuple):
    """A call that waits for its result."""

    at: int
    act: Act = Act()
    found: tuple[Found, ...] = ()
    """The lines it writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything gathered from the messages up to `end`. Never changed: gathering more makes another one."""

    first: int = 0
    end: int = 0
    facts: Mapping[str, Fact] = field(default_factory=dict)
    """By what they are about, the latest last."""
    names: Mapping[str, Name] = field(default_factory=dict)
    forgotten: frozenset[int] = frozenset()
    """Marks of names that were let go, so that one can still say that they occurred."""
    sheets: Mapping[str, Sheet] = field(default_factory=dict)
    """The files in work, the one touched last at the end."""
    pending: Mapping[str, Pending] = field(default_factory=dict)
    """Calls whose results have not been read yet."""
    tasks: int = 0
    """How many tasks were created one by one: later calls name them by number."""
    prompt: int = -1
    """The first prompt: what it demands is never dropped."""


def gather(messages: Sequence[Message], first: int, prior: Facts | None = None) -> Facts:
    """The facts of messages numbered from `first`, added to those gathered before. Only the new messages are read."""
    reader = _Reader(prior or Facts(first=first))
    for index, message in enumerate(messages, start=first):
        reader.read(index, message)
    return reader.facts(first + len(messages))


class _Reader:
    """Facts in the making."""

    def __init__(self, prior: Facts) -> None:
        self.prior = prior
        self.found = dict(prior.facts)
        self.uses = Uses(prior.names, prior.forgotten)
        self.sheets = Sheets(prior.sheets)
        self.pending = dict(prior.pending)
        self.tasks, self.prompt = prior.tasks, prior.prompt
        self.counts = Counter(fact.kind for fact in self.found.values())

    def facts(self, end: int) -> Facts:
        """What was found, as a value."""
        return Facts(
            first=self.prior.first,
            end=end,
            facts=self.found,
            names=self.uses.names,
            forgotten=self.uses.forgotten,
            sheets=self.sheets.files,
            pending=self.pending,
            tasks=self.tasks,
            prompt=self.prompt,
        )

    def read(self, index: int, message: Message) -> None:
        """Take in one message. Hidden ones, reasoning and media say nothing here."""
        if message.meta.hidden or message.role == "system":
            return
        for part in message.parts:
            if isinstance(part, Text):
                self._text(index, message, redact(part.text))
            elif isinstance(part, ToolCall):
                self._call(index, message, part)
            elif isinstance(part, ToolResult):
                self._result(index, part)
        self.uses.commit(index)
        while len(self.pending) > MOST:
            del self.pending[next(iter(self.pending))]

    def _text(self, index: int, message: Message, text: str) -> None:
        if message.kind in {"digest", "branch_digest"}:
            self._merged(index, text)
        elif message.is_prompt:
            self._asked(index, text)
        elif message.role == "assistant":
            self._said(index, text)
        else:
            self.uses.take(index, text, SAW)

    def _merged(self, index: int, text: str) -> None:
        """Take in a digest that came with the messages: what its sections say become facts, it is not quoted."""
        for kind, said, at in entries(text, index):
            if kind:
                self._put(f"{kind} {said.lower()}", Fact(kind, said, at))
            self.uses.take(index, said, SAID)

    def _asked(self, index: int, text: str) -> None:
        self.prompt = index if self.prompt < 0 else self.prompt
        said = request(text)
        if said:
            self._put(f"request {said.lower()}", Fact("request", said, (index,)))
        for sentence in constraints(said):
            self._put(f"constraint {sentence.lower()}", Fact("constraint", sentence, (index,)))
        self.uses.take(index, text, ASKED)

    def _said(self, index: int, text: str) -> None:
        for sentence in decisions(text):
            self._put(f"decision {sentence.lower()}", Fact("decision", sentence, (index,)))
        if text.strip():
            self._drop("open said")
            self._put("said", Fact("said", text.strip(), (index,)))
        for sentence in open_ends(text):
            self._put("open said", Fact("open", sentence, (index,)))
        self.uses.take(index, text, SAID)

    def _call(self, index: int, message: Message, call: ToolCall) -> None:
        act = read_call(call, message.text)
        for text in act.texts:
            self.uses.take(index, redact(text), DID, source=act.target, called=True)
        found: list[Found] | None = [] if act.kind == "modified" else None
        who = SAW if found is None else WROTE
        old = tuple(map(redact, act.old))
        for text in old:
            self.uses.take(index, text, who, source=act.target)
        for text in act.bulk:
            self.uses.take(index, redact(text), who, source=act.target, rows=found)
        act = act._replace(
            target=redact(act.target), command=redact(act.command), why=redact(act.why), texts=(), bulk=(), old=old
        )
        if act.todos:
            self._todos(index, act)
        self.pending[call.id] = Pending(index, act, tuple(found or ()))

    def _todos(self, index: int, act: Act) -> None:
        """Tasks and how they stand. A whole list replaces the one before; a new task is numbered after the others."""
        if act.whole:
            for key in [key for key in self.found if key.startswith("task ")]:
                self._drop(key)
        for number, text, status in act.todos:
            self.tasks += not number
            key = f"task {number or self.tasks}"
            old = self.found.get(key)
            if text or old:
                done = (status or (old.note if old else "")) in DONE
                at = _spread(old.at if old else (), (index,))
                note = status or (old.note if old else "")
                self._put(key, Fact("done" if done else "open", redact(text) or (old.text if old else ""), at, note))

    def _result(self, index: int, result: ToolResult) -> None:
        at, act, written = self.pending.pop(result.call_id, Pending(index))
        text = redact(result.text)
        outcome = outcome_of(text, failed=result.is_error, act=act)
        self._done((at, index) if at != index else (at,), act, outcome)
        read: list[Found] = []
        self.uses.take(index, text, SAW, source=act.target or act.command, rows=read if act.kind == "read" else None)
        if not outcome.failed and act.kind == "read":
            self.sheets.read(act.target, index, read, part=act.part)
        elif not outcome.failed and act.kind == "modified":
            self.sheets.changed(act.target, at, "\n".join(act.old).split("\n"), written)

    def _done(self, at: tuple[int, ...], act: Act, outcome: Outcome) -> None:
        """What a call did, now that its result is known."""
        if act.kind in {"read", "modified"} and act.target:
            kind = "failed" if outcome.failed else act.kind
            key = f"{kind} {act.target}"
            old = self.found.get(key, Fact(kind, act.target, (), times=0))
            note = outcome.line if outcome.failed else act.why or old.note
            self._put(key, Fact(kind, act.target, _spread(old.at, at), note, old.times + 1))
            if not outcome.failed:
                self._drop(f"failed {act.target}")
        elif act.command:
            key = f"command {act.command}"
            old = self.found.get(key, Fact("command", act.command, (), times=0))
            note = outcome.line if outcome.failed else act.why
            self._put(key, Fact("failed" if outcome.failed else "command", act.command, at, note, old.times + 1))
        elif outcome.failed and outcome.line:
            self._put(f"error {outcome.line}", Fact("error", outcome.line, at))

    def _put(self, key: str, fact: Fact) -> None:
        """Put a fact in the place of an older one about the same thing, and behind all others."""
        if fact.kind in _SENTENCES and key in self.found:
            fact = fact._replace(at=_spread(self.found[key].at, fact.at))
        self._drop(key)
        self.found[key] = fact
        self.counts[fact.kind] += 1
        if self.counts[fact.kind] > MOST:
            same = (old for old, it in self.found.items() if it.kind == fact.kind and it.at[0] != self.prompt)
            self._drop(next(same, key))

    def _drop(self, key: str) -> None:
        old = self.found.pop(key, None)
        if old is not None:
            self.counts[old.kind] -= 1


def _spread(seen: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...]:
    """Where something was found: the first place and the latest ones."""
    both = tuple(dict.fromkeys((*seen, *new)))
    return both if len(both) <= _PLACES else (both[0], *both[1 - _PLACES :])
