"""Facts: what a digest must not lose, taken from the messages by rule, each with the numbers of where it came from.

A fact is a whole sentence of somebody (a request, a constraint, a decision, an open end), a thing that was done (a
file, a command, a failure), or a name with the lines it stood in. Later facts take the place of earlier ones about the
same thing. Gathering reads every message once: a session that folds ten times hands the facts so far to the next
gathering, and the same messages give the same facts in one go or in many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from foldline.digest.acts import Act, Outcome, outcome_of, read_call, todos_of
from foldline.digest.names import WORD, names_of, urls
from foldline.digest.redact import redact
from foldline.digest.sayings import constraints, decisions, open_ends, requests
from foldline.message import Message, Text, ToolCall, ToolResult

KINDS = ("request", "constraint", "decision", "read", "modified", "command", "error", "failed", "open", "done", "said")
"""What a fact may be. Names are kept apart: `path`, `identifier`, `id`, `number`, `url`."""

ASKED, SAID, DID, WROTE, SAW = 4, 3, 2, 1, 0
"""Who a line comes from: the user, the model, a call of it, what a call wrote, or what a tool returned."""

_LONGEST = 240
"""Longer lines are looked at in pieces of this many characters, cut at a space."""


class Line(NamedTuple):
    """A line as it stood in a message."""

    text: str
    at: int
    who: int
    source: str
    """The file or command it was read from; "" for talk."""
    names: tuple[str, ...]
    worth: int
    """How well it explains the names in it."""


class Name(NamedTuple):
    """A word that must be kept letter for letter, how it was used, and the lines that explain it."""

    kind: str
    uses: int
    spread: int
    """In how many messages it stood."""
    first: int
    last: int
    called: int
    """How often a call was made with it."""
    asked: int
    """How often the user wrote it."""
    said: int
    """How often the model wrote it in words."""
    wrote: int
    """In how many messages it was part of what a call wrote."""
    called_last: int
    """The message of the last such call; -1 for none."""
    lines: tuple[Line, ...]
    """The line that explains it best, and the latest one."""


class Fact(NamedTuple):
    """Something said or done, in the words of the transcript."""

    kind: str
    text: str
    at: tuple[int, ...]
    """The messages it comes from, ascending."""
    note: str = ""
    """What became of it: a status, an error line, what was done."""
    times: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything gathered from the messages up to `end`. Never changed: gathering more makes another one."""

    first: int = 0
    end: int = 0
    facts: Mapping[str, Fact] = field(default_factory=dict)
    """By what they are about, the latest last."""
    names: Mapping[str, Name] = field(default_factory=dict)
    pending: Mapping[str, tuple[int, Act]] = field(default_factory=dict)
    """Calls whose results have not been read yet."""
    tasks: int = 0
    """How many tasks were created one by one: later calls name them by number."""


def gather(messages: Sequence[Message], first: int, prior: Facts | None = None) -> Facts:
    """The facts of messages numbered from `first`, added to those gathered before. Only the new messages are read."""
    reader = _Reader(prior or Facts(first=first))
    for index, message in enumerate(messages, start=first):
        reader.read(index, message)
    return reader.facts(first + len(messages))


class _Reader:
    """Facts in the making."""

    def __init__(self, prior: Facts) -> None:
        self.first = prior.first
        self.found = dict(prior.facts)
        self.names = dict(prior.names)
        self.pending = dict(prior.pending)
        self.tasks = prior.tasks
        self._known: dict[str, tuple[tuple[str, str], ...]] = {}
        self._here: dict[str, _Use] = {}

    def facts(self, end: int) -> Facts:
        """What was found, as a value."""
        return Facts(
            first=self.first, end=end, facts=self.found, names=self.names, pending=self.pending, tasks=self.tasks
        )

    def read(self, index: int, message: Message) -> None:
        """Take in one message. Hidden ones, reasoning and media say nothing here."""
        if message.meta.hidden or message.role == "system":
            return
        self._here = {}
        for part in message.parts:
            if isinstance(part, Text):
                self._text(index, message, part.text)
            elif isinstance(part, ToolCall):
                self._call(index, message, part)
            elif isinstance(part, ToolResult):
                self._result(index, part)
        self._commit(index)

    def _text(self, index: int, message: Message, text: str) -> None:
        text = redact(text)
        if message.kind in {"digest", "branch_digest"}:
            self._lines(index, text, SAID)
        elif message.is_prompt:
            self._asked(index, text)
        elif message.role == "assistant":
            self._said(index, text)
        else:
            self._lines(index, text, SAW)

    def _asked(self, index: int, text: str) -> None:
        for said in requests(text):
            self._put(f"request {index}", Fact("request", said, (index,)))
        for said in constraints(text):
            self._put(f"constraint {said.lower()}", Fact("constraint", said, (index,)))
        self._lines(index, text, ASKED)

    def _said(self, index: int, text: str) -> None:
        for said in decisions(text):
            self._put(f"decision {said.lower()}", Fact("decision", said, (index,)))
        self.found.pop("open said", None)
        for said in open_ends(text):
            self._put("open said", Fact("open", said, (index,)))
        if text.strip():
            self._put("said", Fact("said", text, (index,)))
        self._lines(index, text, SAID)

    def _call(self, index: int, message: Message, call: ToolCall) -> None:
        act = read_call(call, message.text)
        if act.kind == "todo":
            self._todos(index, act)
        for text in act.texts:
            self._lines(index, redact(text), DID, source=act.target, called=True)
        for text in act.bulk:
            self._lines(index, redact(text), WROTE if act.kind == "modified" else SAW, source=act.target)
        self.pending[call.id] = (index, act)

    def _todos(self, index: int, act: Act) -> None:
        if act.whole:
            for key in [key for key in self.found if key.startswith("task ")]:
                del self.found[key]
        for number, text, status in todos_of(act, self.tasks):
            old = self.found.get(f"task {number}")
            said = text or (old.text if old else "")
            if said:
                done = status in {"completed", "done", "deleted", "cancelled"}
                at = (*(old.at if old else ()), index)[-4:]
                self._put(f"task {number}", Fact("done" if done else "open", said, at, note=status))
        self.tasks += act.created

    def _result(self, index: int, result: ToolResult) -> None:
        at, act = self.pending.pop(result.call_id, (index, Act()))
        text = redact("".join(part.text for part in result.parts if isinstance(part, Text)))
        outcome = outcome_of(text, failed=result.is_error, act=act)
        self._done(at, index, act, outcome)
        self._lines(index, text, SAW, source=act.target or act.command)

    def _done(self, at: int, index: int, act: Act, outcome: Outcome) -> None:
        """What a call did, now that its result is known."""
        numbers = (at, index) if at != index else (at,)
        if act.kind in {"read", "modified"} and act.target:
            kind = "failed" if outcome.failed else act.kind
            old = self.found.get(f"{kind} {act.target}")
            times, seen = (old.times + 1, old.at) if old else (1, ())
            note = outcome.line if outcome.failed else act.why or (old.note if old else "")
            self._put(f"{kind} {act.target}", Fact(kind, act.target, _spread(seen, numbers), note, times))
            if not outcome.failed:
                self.found.pop(f"failed {act.target}", None)
        elif act.command:
            old = self.found.get(f"command {act.command}")
            times = old.times + 1 if old else 1
            note = outcome.line if outcome.failed else act.why
            kind = "failed" if outcome.failed else "command"
            self._put(f"command {act.command}", Fact(kind, act.command, numbers, note, times))
        elif outcome.failed and outcome.line:
            self._put(f"error {outcome.line}", Fact("error", outcome.line, numbers))

    def _put(self, key: str, fact: Fact) -> None:
        """Put a fact in the place of an older one about the same thing, and behind all others."""
        if fact.kind in {"constraint", "decision"} and key in self.found:
            fact = fact._replace(at=_spread(self.found[key].at, fact.at))
        self.found.pop(key, None)
        self.found[key] = fact

    def _lines(self, index: int, text: str, who: int, *, source: str = "", called: bool = False) -> None:
        """Take the names of a text, line by line."""
        known = self._known
        for address in urls(text):
            self._use(address, "url", Line(address, index, who, source, (address,), 1), called=called, who=who)
        for raw in text.split("\n"):
            for piece in _pieces(raw):
                found: dict[str, str] = {}
                for word in WORD.findall(piece):
                    names = known.get(word)
                    if names is None:
                        names = known[word] = names_of(word)
                    if names:
                        found.update(names)
                if found:
                    line = Line(piece, index, who, source, tuple(found), _worth(piece, who))
                    for name, kind in found.items():
                        self._use(name, kind, line, called=called, who=who)

    def _use(self, name: str, kind: str, line: Line, *, called: bool, who: int) -> None:
        seen = self._here.get(name)
        if seen is None:
            self._here[name] = _Use(kind, line, called, who)
            return
        seen.count += 1
        seen.called = seen.called or called
        seen.who = max(seen.who, who)
        seen.wrote = seen.wrote or who == WROTE
        if line.worth > seen.line.worth:
            seen.line = line

    def _commit(self, index: int) -> None:
        """Add what one message used to what is known of its names."""
        names = self.names
        for name, use in self._here.items():
            old = names.get(name)
            if old is None:
                names[name] = Name(
                    use.kind,
                    use.count,
                    1,
                    index,
                    index,
                    use.called,
                    use.who == ASKED,
                    use.who == SAID,
                    use.wrote,
                    index if use.called else -1,
                    (use.line,),
                )
                continue
            best = old.lines[0] if old.lines[0].worth > use.line.worth else use.line
            names[name] = Name(
                old.kind,
                old.uses + use.count,
                old.spread + 1,
                old.first,
                index,
                old.called + use.called,
                old.asked + (use.who == ASKED),
                old.said + (use.who == SAID),
                old.wrote + use.wrote,
                index if use.called else old.called_last,
                (best,) if best is use.line else (best, use.line),
            )


class _Use:
    """How one message used a name."""

    __slots__ = ("called", "count", "kind", "line", "who", "wrote")

    def __init__(self, kind: str, line: Line, called: bool, who: int) -> None:
        self.kind, self.line, self.called, self.who, self.count, self.wrote = kind, line, called, who, 1, who == WROTE


def _spread(seen: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...]:
    """Where something was found: the first place and the latest ones."""
    both = tuple(dict.fromkeys((*seen, *new)))
    return both if len(both) <= 4 else (both[0], *both[-3:])


def _pieces(line: str) -> list[str]:
    """A line without the space around it, in pieces where it is too long to be shown."""
    line = line.strip()
    if len(line) <= _LONGEST:
        return [line]
    pieces = []
    while len(line) > _LONGEST:
        cut = line.rfind(" ", _LONGEST // 2, _LONGEST)
        cut = cut if cut > 0 else _LONGEST
        pieces.append(line[:cut].rstrip())
        line = line[cut:].lstrip()
    return [*pieces, line]


_STARTS = (
    "def ",
    "class ",
    "func ",
    "type ",
    "const ",
    "interface ",
    "export ",
    "struct ",
    "fn ",
    "pub ",
    "var ",
    "let ",
)


def _worth(line: str, who: int) -> int:
    """How well a line explains the names in it: enough words, not too many, said by somebody or defining something."""
    words = len(line.split(None, 4))
    worth = who * 2
    if words >= 4:
        worth += 4
    elif words == 1:
        worth -= 4
    if len(line) <= 100:
        worth += 2
    if line.lstrip("0123456789→:\t ").startswith(_STARTS):
        worth += 3
    return worth
