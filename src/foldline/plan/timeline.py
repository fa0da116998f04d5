"""The messages of one branch in order, indexed for planning: sizes, steps, turns, legal cuts and the fold in force.

A timeline only grows at its end. The index is updated with every message, so that a turn costs the same at message 100
and at message 1,000,000. The same messages and folds always give the same timeline.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from foldline.fold import NO_TARGET, Fold, Target
from foldline.message import Media, Message, Opaque, Text, Thinking, ToolCall, ToolResult
from foldline.policy import Atom

GONE = Message(role="gone")
"""Placeholder for a folded message that was not read from the record."""


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class Timeline:
    """The messages of a branch, their sizes in the view, and the positions where the branch may be cut.

    A cut between two messages is legal if no call is open at this point. The second message must not be a result. The
    first message must not be reasoning that belongs to the second.
    """

    messages: list[Message] = field(default_factory=list)
    shown: list[Message] = field(default_factory=list)
    """The messages as the view shows them, with stubs for pruned results."""
    prefix: list[int] = field(default_factory=lambda: [0])
    """`prefix[i]` is the number of tokens of the first i messages as shown."""
    cuts: dict[Atom, list[int]] = field(default_factory=lambda: {"message": [], "step": [], "turn": []})
    """The legal cuts for each atom (message, step or turn), in ascending order."""
    prompts: list[int] = field(default_factory=list)
    """Indexes of the prompts."""
    lead: int = 0
    """The number of system messages at the start."""
    tail: int = 0
    """Start of the newest unit: the unanswered prompts, or else the newest step. The newest unit is never folded."""
    pins: dict[int, str] = field(default_factory=dict)
    """Maps the index of each pinned message to the name of its pin."""
    waiting: dict[str, int] = field(default_factory=dict)
    """For each call that has only an interim result: its id, and the index of that result.

    A fold keeps the steps of these calls.
    """
    unanswered: dict[str, int] = field(default_factory=dict)
    """For each call that has no result although other messages follow it: its id, and the index of its message.

    The result may still come.
    """
    late_results: list[tuple[int, int]] = field(default_factory=list)
    """For each result that came after other messages: the index of the message with its call, and the index of the
    result.
    """
    broken: list[int] = field(default_factory=list)
    """Indexes of messages that `repair` corrects in a view: unpaired calls and results, repeated ids, blank texts."""
    fold: Fold | None = None
    target: Target = NO_TARGET
    """Where the view is sent. A provider's own summary is shown only to this provider."""
    _awaits_reply: bool = False
    """Whether the newest prompt has no reply yet. Until the reply, further prompts belong to the same turn."""
    _follows_model: bool = False
    """Whether the last message is from the model."""
    _follows_lead: bool = False
    """Whether the last message is reasoning that belongs to the next message."""
    _is_reasoned: bool = False
    """Whether the last message belongs to a reply with reasoning.

    Some providers refuse an output without its reasoning.
    """
    _open_calls: dict[str, int] = field(default_factory=dict)
    """The calls of the newest step that have no result yet, with the index of their message."""
    _leading: int = -1
    """Index of the first message of the newest reasoning, if its output has not come yet; otherwise -1."""
    _call_ids: set[str] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self.messages)

    @property
    def cut(self) -> int:
        """Index of the first unfolded message.

        Without a fold, this is the first message after the leading system messages.
        """
        return self.fold.cut if self.fold else self.lead

    @property
    def history(self) -> int:
        """Tokens of the unfolded messages."""
        return self.prefix[-1] - self.prefix[self.fold.cut if self.fold else self.lead]

    def blocks(self, tools: int, fold: Fold | None = None, tail: int | None = None) -> dict[str, int]:
        """Tokens of each block, in the order of the view. `tools` is the number of tokens of the block `tools`.

        By default, these are the blocks of the current view. With `fold`, they are the blocks of the view after that
        fold. `tail` is then the number of tokens that stay unfolded.
        """
        if tail is None:
            tail = self.history
        fold, system = fold or self.fold, self.prefix[self.lead]
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

    def append(
        self, message: Message, tokens: int, shown: Message | None = None, traits: MessageTraits | None = None
    ) -> None:
        """Add a message of `tokens` tokens.

        If `shown` is given, the view shows `shown` instead of the message. If `traits` is not given, it is computed.
        """
        index, prefix = len(self.messages), self.prefix
        self.messages.append(message)
        self.shown.append(shown or message)
        prefix.append(prefix[-1] + tokens)
        if message.role == "system" and self.lead == index:
            self.lead += 1
        else:
            self._index(index, message.role, traits or traits_of(message))

    def skip(self, count: int) -> None:
        """Add placeholders for `count` folded messages that are not read from the record."""
        if count > 0:
            self.cuts["step"].append(len(self.messages))  # a step that begins among the skipped messages is incomplete
            self.messages += [GONE] * count
            self.shown += [GONE] * count
            self.prefix += [self.prefix[-1]] * count
            self._awaits_reply = self._follows_model = self._follows_lead = self._is_reasoned = False
            self._leading = -1
            self._leave_open_calls()

    def _leave_open_calls(self) -> None:
        """Record that the newest step has ended and that its open calls have no result. The results may still come."""
        self.unanswered |= self._open_calls
        self._open_calls.clear()

    def _index(self, index: int, role: str, traits: MessageTraits) -> None:
        calls, results, is_prompt, leads_next = traits[:4]  # a turn costs little, so no attribute is read twice
        speaks = role == "assistant"
        starts_step = speaks and not self._follows_model
        if self._open_calls and not results and (not speaks or starts_step):
            self.broken.append(index)
            self._leave_open_calls()
        joined = False
        if speaks and (self._leading >= 0 or self._is_reasoned):
            joined = self._leading >= 0 and not leads_next and self._join_to_reasoning(index, traits)
            joined = joined or (self._is_reasoned and self._is_one_reply(index - 1, index))
        if not results and role != "tool" and not self._open_calls and not self._follows_lead and not joined:
            self.cuts["message"].append(index)
            if not speaks or starts_step:
                self.cuts["step"].append(index)
        opens_turn = False
        if is_prompt:
            self.prompts.append(index)
            opens_turn = not results and not self._awaits_reply
            if opens_turn:
                self.cuts["turn"].append(index)
        if (starts_step or opens_turn or index == self.lead) and not joined:
            self.tail = index
        self._awaits_reply = not speaks and (is_prompt or self._awaits_reply)
        self._is_reasoned = speaks and (leads_next or (joined and self._is_reasoned))
        self._follows_model, self._follows_lead = speaks, leads_next
        if leads_next and self._leading < 0:
            self._leading = index
        if calls or results:
            self._pair(index, calls, results)
        if traits.is_blank:
            self.broken.append(index)

    def _join_to_reasoning(self, index: int, traits: MessageTraits) -> bool:
        """Forbid cuts between reasoning and the message `index`, which is its output.

        Returns False if the message is not the output of this reasoning.
        """
        first, self._leading = self._leading, -1
        if traits.has_thinking or not self._is_one_reply(first, index):
            return False
        for atom in self.cuts:
            cuts = self.cuts[atom]
            while cuts and cuts[-1] > first:
                cuts.pop()
        self.tail = min(self.tail, first)
        return True

    def _is_one_reply(self, first: int, index: int) -> bool:
        one, other = self.messages[first].meta.reply, self.messages[index].meta.reply
        return not one or not other or one == other

    def _pair(self, index: int, calls: list[ToolCall], results: list[ToolResult]) -> None:
        open_calls = self._open_calls
        for call in calls:
            name = call.id
            if not name or name in self._call_ids:
                self.broken.append(index)
            self._call_ids.add(name)
            open_calls[name] = index
        for result in results:
            name = result.call_id
            if open_calls.pop(name, None) is None:
                self.broken.append(index)
                if name in self.unanswered:
                    self.late_results.append((self.unanswered.pop(name), index))
            if result.interim:
                self.waiting[name] = index
            elif self.waiting:
                self.waiting.pop(name, None)

    def apply(self, fold: Fold, stubs: Mapping[int, tuple[Message, int]] | None = None) -> None:
        """Apply a fold.

        The view then shows `stubs` in place of the pruned messages. By default, the stubs of the fold are used.
        """
        self.fold = fold
        stubs = fold.stubs if stubs is None else stubs
        first = min(stubs, default=len(self.messages))
        sizes = [self.tokens(index) for index in range(first, len(self.messages))]
        del self.prefix[first + 1 :]
        for index, size in enumerate(sizes, start=first):
            self.shown[index], tokens = stubs.get(index, (self.shown[index], size))
            self.prefix.append(self.prefix[-1] + tokens)

    def last_cut(self, atom: Atom, index: int) -> int:
        """The last legal cut at or before `index`; `lead` if there is none.

        >>> timeline = Timeline()
        >>> timeline.cuts["step"] = [0, 3, 7]
        >>> timeline.last_cut("step", 6)
        3
        """
        cuts = self.cuts[atom]
        found = bisect_right(cuts, index)
        return cuts[found - 1] if found else self.lead

    def first_cut(self, atom: Atom, index: int) -> int:
        """The first legal cut at or after `index`; the length of the timeline if there is none."""
        cuts = self.cuts[atom]
        found = bisect_left(cuts, index)
        return cuts[found] if found < len(cuts) else len(self.messages)

    def step(self, index: int) -> range:
        """The indexes of the step that holds a message."""
        return range(self.last_cut("step", index), self.first_cut("step", index + 1))

    def kept_message(self, index: int, kept: Container[int]) -> Message:
        """A message before the cut, as the view shows it. Results whose calls are not in `kept` are left out."""
        message = self.shown[index]
        if self.last_cut("step", index) in kept or not message.results:
            return message
        return message.with_parts(*(part for part in message.parts if not isinstance(part, ToolResult)))


def timeline_of(messages: Iterable[Message], tokens: Iterable[int]) -> Timeline:
    """A timeline from messages and their sizes."""
    timeline = Timeline()
    for message, size in zip(messages, tokens, strict=True):
        timeline.append(message, size)
    return timeline


class MessageTraits(NamedTuple):
    """The properties of a message that the timeline needs, collected in one pass over its parts."""

    calls: list[ToolCall]
    results: list[ToolResult]
    is_prompt: bool
    """The value of `Message.is_prompt`."""
    leads_next: bool
    """Whether the message holds only reasoning or opaque items, which belong to the next message."""
    has_thinking: bool
    """Whether the message holds reasoning."""
    is_blank: bool
    """Whether the message has no parts, or has a blank text."""
    has_media: bool
    """Whether the message holds media, inside or outside a tool result."""
    has_compaction: bool = False
    """Whether the message holds a compaction block of a provider."""


_TEXT_ONLY = {
    "assistant": MessageTraits(
        [], [], is_prompt=False, leads_next=False, has_thinking=False, is_blank=False, has_media=False
    ),
    "user": MessageTraits(
        [], [], is_prompt=True, leads_next=False, has_thinking=False, is_blank=False, has_media=False
    ),
}
"""The traits of the most common messages, which hold one text of the user or of the model."""


def traits_of(message: Message) -> MessageTraits:
    """The traits of a message. Calls are read only from the model's messages, and results only from other messages."""
    role, parts = message.role, message.parts
    if len(parts) == 1 and not message.kind and type(parts[0]) is Text and role in _TEXT_ONLY and parts[0].text.strip():
        return _TEXT_ONLY[role]
    calls: list[ToolCall] = []
    results: list[ToolResult] = []
    thoughts, blank, media, thinking, compaction = 0, not parts, False, False, False
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
            thinking = thinking or isinstance(part, Thinking)
            compaction = compaction or (isinstance(part, Opaque) and part.kind == "compaction")
    if role == "assistant":
        leads_next = thoughts == len(parts) > 0 and not compaction
        return MessageTraits(calls, [], False, leads_next, thinking, blank, media, compaction)
    prompts = role == "user" and not message.kind and (not parts or len(results) < len(parts))
    return MessageTraits([], results, prompts and not compaction, False, thinking, blank, media, compaction)


def handle(first: int, last: int | None = None) -> str:
    """The handle under which recall finds messages, counted from 1.

    >>> handle(119), handle(119, 130)
    ('#120', '#120-131')
    """
    return f"#{first + 1}" if last is None or last == first else f"#{first + 1}-{last + 1}"
