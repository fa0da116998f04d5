"""The messages of one branch in order, indexed for planning: sizes, steps, turns, legal cuts and the fold in force.

A timeline only grows at its end. The index is updated with every message, so that a turn costs the same at message 100
and at message 1,000,000. The same messages and folds always give the same timeline.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable
from typing import NamedTuple

from foldline.fold import Fold
from foldline.message import Media, Message, Text, ToolCall, ToolResult
from foldline.policy import Atom

GONE = Message(role="gone")
"""Stands in a timeline where a folded message was left in the record."""


class Timeline:
    """Messages in order, each with its size as it stands in the view, and where the timeline may be cut.

    A cut is legal where nothing is torn apart: no call is open, the next message is not a result, and the message
    before is not reasoning that belongs to the next.
    """

    __slots__ = (
        "_asked",
        "_called",
        "_led",
        "_open",
        "_replied",
        "broken",
        "cuts",
        "fold",
        "lead",
        "messages",
        "pins",
        "prefix",
        "prompts",
        "shown",
        "tail",
        "waiting",
    )

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.shown: list[Message] = []
        """The messages as the view shows them: stubs where a result was pruned."""
        self.prefix: list[int] = [0]
        """`prefix[i]`: tokens of the first i messages as shown."""
        self.cuts: dict[Atom, list[int]] = {"message": [], "step": [], "turn": []}
        """The legal cuts by atom, ascending."""
        self.prompts: list[int] = []
        """Where the user asked something."""
        self.lead = 0
        """How many system messages stand in front of everything."""
        self.tail = 0
        """The newest unit: where the unanswered prompts begin, or else the newest step. It is never folded."""
        self.pins: set[int] = set()
        """Messages that no fold may touch."""
        self.waiting: dict[str, int] = {}
        """Calls that have only an interim result so far, and where they stand: their steps stay."""
        self.broken: list[int] = []
        """Where a call lacks its result, a result its call, an id stands twice or nothing is said: a view heals it."""
        self.fold: Fold | None = None
        self._asked = False
        """A prompt waits for its reply: whatever comes before that reply belongs to the same turn."""
        self._replied = False
        """The message before was the model's."""
        self._led = False
        """The message before belongs to the next."""
        self._open: set[str] = set()
        self._called: set[str] = set()

    def __len__(self) -> int:
        return len(self.messages)

    @property
    def cut(self) -> int:
        """The first message of the verbatim part: behind the system messages when nothing is folded."""
        return self.fold.cut if self.fold else self.lead

    @property
    def history(self) -> int:
        """Tokens of the verbatim part."""
        return self.prefix[-1] - self.prefix[self.cut]

    def blocks(self, tools: int, fold: Fold | None = None, tail: int | None = None) -> dict[str, int]:
        """Tokens by block in the order of the view, with `tools` beside the messages.

        For the fold in force, or for another `fold` that leaves `tail` tokens of messages word for word.
        """
        if fold is None:
            fold = self.fold
        if tail is None:
            tail = self.history
        system = self.prefix[self.lead]
        if fold is None:
            return {"system": system, "tools": tools, "pins": 0, "digest": 0, "history": tail}
        return {
            "system": system,
            "tools": tools,
            "pins": fold.pinned_tokens,
            "digest": fold.digest_tokens,
            "history": tail + fold.carried_tokens,
        }

    def tokens(self, index: int) -> int:
        """The size of one message as shown."""
        return self.prefix[index + 1] - self.prefix[index]

    def append(self, message: Message, tokens: int, shown: Message | None = None, seen: Look | None = None) -> None:
        """Add a message of `tokens` at the end, shown as it is or as a stub; it is looked at once, here or before."""
        index, prefix = len(self.messages), self.prefix
        self.messages.append(message)
        self.shown.append(shown or message)
        prefix.append(prefix[-1] + tokens)
        if message.role == "system" and self.lead == index:
            self.lead += 1
        else:
            self._index(index, message.role, seen or look(message))

    def skip(self, count: int) -> None:
        """Leave out messages that are folded and stay in the record: only their places are kept."""
        if count > 0:
            self.cuts["step"].append(len(self.messages))  # a step that begins in here is not whole
            self.messages += [GONE] * count
            self.shown += [GONE] * count
            self.prefix += [self.prefix[-1]] * count
            self._asked = self._replied = self._led = False
            self._open.clear()

    def _index(self, index: int, role: str, seen: Look) -> None:
        speaks, results = role == "assistant", seen.results
        starts_step = speaks and not self._replied
        if self._open and not results and (not speaks or starts_step):
            self.broken.append(index)
            self._open.clear()  # what was not answered before something else is said never will be
        if not results and role != "tool" and not self._open and not self._led:
            self.cuts["message"].append(index)
            if not speaks or starts_step:
                self.cuts["step"].append(index)
        opens_turn = seen.prompts and not results and not self._asked
        if opens_turn:
            self.cuts["turn"].append(index)
        if seen.prompts:
            self.prompts.append(index)
        if starts_step or index == self.lead or opens_turn:
            self.tail = index
        self._asked = not speaks and (self._asked or seen.prompts)
        self._replied, self._led = speaks, seen.leads
        if seen.calls or results:
            self._pair(index, seen.calls, results)
        if seen.blank:
            self.broken.append(index)

    def _pair(self, index: int, calls: list[ToolCall], results: list[ToolResult]) -> None:
        for call in calls:
            if not call.id or call.id in self._called:
                self.broken.append(index)
            self._called.add(call.id)
            self._open.add(call.id)
        for result in results:
            if result.call_id not in self._open:
                self.broken.append(index)
            if result.interim:
                self.waiting[result.call_id] = index
            else:
                self.waiting.pop(result.call_id, None)
            self._open.discard(result.call_id)

    def apply(self, fold: Fold) -> None:
        """Put a fold in force: one change of the view, sizes behind the cut counted anew where stubs stand."""
        self.fold = fold
        first = min((index for index in fold.stubs), default=len(self.messages))
        sizes = [self.tokens(index) for index in range(first, len(self.messages))]
        del self.prefix[first + 1 :]
        for index, size in enumerate(sizes, start=first):
            stub = fold.stubs.get(index)
            if stub is not None:
                self.shown[index] = stub[0]
            self.prefix.append(self.prefix[-1] + (stub[1] if stub is not None else size))

    def legal(self, atom: Atom, index: int) -> int:
        """The last legal cut at or before `index`; `lead` when there is none.

        >>> timeline = Timeline()
        >>> timeline.cuts["step"] = [0, 3, 7]
        >>> timeline.legal("step", 6)
        3
        """
        cuts = self.cuts[atom]
        found = bisect_right(cuts, index)
        return cuts[found - 1] if found else self.lead

    def legal_after(self, atom: Atom, index: int) -> int:
        """The first legal cut at or after `index`; the length of the timeline when there is none."""
        cuts = self.cuts[atom]
        found = bisect_left(cuts, index)
        return cuts[found] if found < len(cuts) else len(self.messages)

    def step(self, index: int) -> range:
        """The messages that belong together with one message."""
        start = self.legal("step", index)
        return range(start, min(self.legal_after("step", index + 1), len(self.messages)))

    def kept(self, index: int, others: Container[int]) -> Message:
        """A message before a cut as the view shows it among `others`: results only beside the calls they answer."""
        message = self.shown[index]
        return message if self.legal("step", index) in others else words_only(message)


def timeline_of(messages: Iterable[Message], tokens: Iterable[int]) -> Timeline:
    """A timeline of messages whose sizes are known."""
    timeline = Timeline()
    for message, size in zip(messages, tokens, strict=True):
        timeline.append(message, size)
    return timeline


class Look(NamedTuple):
    """What the index needs to know of one message, from one look at its parts."""

    calls: list[ToolCall]
    results: list[ToolResult]
    prompts: bool
    """As `Message.is_prompt`."""
    leads: bool
    """It is nothing but reasoning, or a provider's own item, that belongs to the message after it."""
    blank: bool
    """It, or a text in it, says nothing."""
    media: bool
    """It shows more than words, in a result perhaps."""


_WORDS = {
    "assistant": Look([], [], prompts=False, leads=False, blank=False, media=False),
    "user": Look([], [], prompts=True, leads=False, blank=False, media=False),
}
"""What is seen of the commonest message, one text of a person or the model, whatever it says."""


def look(message: Message) -> Look:
    """Calls count only where the model makes them, and results only where it does not."""
    role, parts = message.role, message.parts
    if len(parts) == 1 and not message.kind and type(parts[0]) is Text and role in _WORDS and parts[0].text.strip():
        return _WORDS[role]
    calls: list[ToolCall] = []
    results: list[ToolResult] = []
    thoughts, blank, media = 0, not parts, False
    for part in parts:
        if isinstance(part, Text):
            blank = blank or not part.text or part.text.isspace()
        elif isinstance(part, ToolResult):
            results.append(part)
            for inner in part.parts:
                media = media or not isinstance(inner, Text)
        elif isinstance(part, ToolCall):
            calls.append(part)
        elif isinstance(part, Media):
            media = True
        else:
            thoughts += 1
    if role == "assistant":
        return Look(calls, [], False, thoughts == len(parts) > 0, blank, media)
    prompts = role == "user" and not message.kind and (not parts or len(results) < len(parts))
    return Look([], results, prompts, False, blank, media)


def words_only(message: Message) -> Message:
    """What the user said in a message that carries results too: the words alone, so that no result is an orphan."""
    if not any(isinstance(part, ToolResult) for part in message.parts):
        return message
    return message.with_parts(*(part for part in message.parts if not isinstance(part, ToolResult)))


def handle(first: int, last: int | None = None) -> str:
    """The name under which recall gives messages back, counted from 1 as people do.

    >>> handle(119), handle(119, 130)
    ('#120', '#120-131')
    """
    return f"#{first + 1}" if last is None or last == first else f"#{first + 1}-{last + 1}"
