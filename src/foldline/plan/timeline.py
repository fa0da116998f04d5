"""The messages of one branch in order, indexed for planning: sizes, steps, turns, legal cuts and the fold in force.

A timeline only grows at its end. The index is updated with every message, so that a turn takes the same time at message
100 and at message 1,000,000. The same messages and folds always give the same timeline.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from foldline.fold import NO_TARGET, Fold, Target
from foldline.human_input import is_human_prompt
from foldline.message import NOTE, REPLY_TO_VIEW, Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from foldline.policy import Atom

GONE = Message(role="gone")
"""Placeholder for a message that the view does not show: a folded message that was not read, or a removed note."""


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
    lead: int = 0
    """The number of system messages at the start."""
    tail: int = 0
    """Start of the newest unit: the unanswered prompts, or else the newest step. The newest unit is never folded."""
    pins: dict[int, str] = field(default_factory=dict)
    """Maps the index of each pinned message to the name of its pin."""
    loose: frozenset[int] = frozenset()
    """Indexes of notes that were added only to be pinned, and whose pin was removed. The next fold removes them."""
    removed: set[int] = field(default_factory=set)
    """Indexes of the notes that the view no longer shows, except for folded notes. `shown` has `GONE` in their place.
    """
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
    has_recall: bool = False
    """Whether the model has the recall tool, so that placeholders may advise to use it."""
    _prompts: list[int] = field(default_factory=list)
    """Indexes of the prompts that a person wrote. The prompts in `_unchecked` are not included yet."""
    _unchecked: list[int] = field(default_factory=list)
    """Indexes of the newer prompts. `prompts` checks which of them a person wrote."""
    _last_reply: int = -1
    """Index of the newest message of the model that begins a reply; -1 if there is none."""
    _awaits_reply: bool = False
    """Whether the newest prompt has no reply yet. Until the reply, further prompts belong to the same turn."""
    _follows_model: bool = False
    """Whether the last message is from the model."""
    _follows_lead: bool = False
    """Whether the last message is reasoning that belongs to the next message."""
    _is_reasoned: bool = False
    """Whether the last message belongs to a reply with reasoning.

    No cut may then separate it from a next message of the same reply: some providers refuse an output without its
    reasoning.
    """
    _open_calls: dict[str, int] = field(default_factory=dict)
    """The calls of the newest step that have no result yet, with the index of their message."""
    _leading: int = -1
    """Index of the first reasoning message that still waits for its output; -1 if there is none."""
    _reasoning: int = -1
    """Index of the newest reasoning message; -1 if there is none, or if a tool result came after it.

    Until a tool result comes, a later output without its own reasoning may belong to the same reply, even after a
    prompt.
    """
    _call_ids: set[str] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self.messages)

    @property
    def prompts(self) -> Sequence[int]:
        """Indexes of the prompts that a person wrote."""
        if self._unchecked:
            self._prompts += [index for index in self._unchecked if is_human_prompt(self.messages[index])]
            self._unchecked.clear()
        return self._prompts

    @property
    def newest_answered_prompt(self) -> int:
        """Index of the newest prompt that has a reply; -1 if there is none.

        The conversation has gone on without the results of open calls before this prompt.
        """
        prompts = self.prompts
        count = bisect_left(prompts, self._last_reply)
        return prompts[count - 1] if count else -1

    @property
    def is_complete(self) -> bool:
        """Whether the newest reasoning has its output, and every call got its result before other messages came."""
        return self._leading < 0 and not (self._open_calls or self.unanswered or self.late_results)

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
        fold, in which `tail` tokens stay unfolded.
        """
        pins = digest = 0
        if tail is None:
            tail = self.history
        if fold is None:
            fold = self.fold
            if self.pins:
                start, end = max(self.cut, self.lead), len(self.messages)
                pins = sum([self.tokens(index) for index in self.pins if start <= index < end])
            if fold is not None:
                digest = self._agent_digest(fold.cut)
            tail -= pins + digest
        system = self.prefix[self.lead]
        if fold is None:
            return {"system": system, "tools": tools, "pins": pins, "digest": 0, "history": tail}
        return {
            "system": system,
            "tools": tools,
            "pins": fold.pinned_tokens + pins,
            "digest": fold.digest_tokens + digest,
            "history": tail + fold.carried_tokens,
        }

    def _agent_digest(self, cut: int) -> int:
        """Tokens of an agent's own summary, if this summary is the first message after the folded ones; else 0."""
        is_digest = cut < len(self.messages) and self.messages[cut].kind == "digest" and cut not in self.pins
        return self.tokens(cut) if is_digest else 0

    def tokens(self, index: int) -> int:
        """The size of one message, as the view shows it."""
        return self.prefix[index + 1] - self.prefix[index]

    def append(
        self, message: Message, tokens: int, shown: Message | None = None, traits: MessageTraits | None = None
    ) -> None:
        """Add a message of `tokens` tokens.

        If `shown` is given, the view shows `shown` instead of the message. If `traits` is not given, it is computed.
        """
        index, prefix, role = len(self.messages), self.prefix, message.role
        self.messages.append(message)
        self.shown.append(shown or message)
        prefix.append(prefix[-1] + tokens)
        if role == "assistant":
            self._index_reply(index, message, traits or traits_of(message))
        elif role != "system" or self.lead != index:
            self._index_other(index, message, traits or traits_of(message))
        else:
            self.lead += 1

    def skip(self, count: int) -> None:
        """Add placeholders for `count` folded messages that are not read from the record."""
        if count > 0:
            # the step is incomplete if it begins among the skipped messages
            self.cuts["step"].append(len(self.messages))
            self.messages += [GONE] * count
            self.shown += [GONE] * count
            self.prefix += [self.prefix[-1]] * count
            self._awaits_reply = self._follows_model = self._follows_lead = self._is_reasoned = False
            self._leading = self._reasoning = -1
            self._leave_open_calls()

    def _leave_open_calls(self) -> None:
        """Record that the newest step has ended although some of its calls have no result.

        The results may still come.
        """
        self.unanswered |= self._open_calls
        self._open_calls.clear()

    def _index_reply(self, index: int, message: Message, traits: MessageTraits) -> None:
        """Index a message of the model."""
        _, _, leads_next, has_thinking, is_blank, _, _ = traits  # faster than reading attributes
        starts_step = not self._follows_model
        if self._open_calls and starts_step:
            self._interrupt_step(index)
        joined = False
        if self._leading >= 0 or self._is_reasoned:
            joined = self._leading >= 0 and not leads_next and self._join_to_reasoning(index, has_thinking)
            joined = joined or (self._is_reasoned and self._is_one_reply(index - 1, index))
        if not joined:
            if not self._open_calls and not self._follows_lead:
                self.cuts["message"].append(index)
                if starts_step:
                    self.cuts["step"].append(index)
            if starts_step or index == self.lead:
                self.tail = index
        if self._reasoning < 0 or has_thinking or not self._is_one_reply(self._reasoning, index):
            self._last_reply = index
        if leads_next:
            self._reasoning = index
            self._leading = index if self._leading < 0 else self._leading
        self._follows_model, self._follows_lead, self._awaits_reply = True, leads_next, False
        self._is_reasoned = leads_next or (joined and self._is_reasoned)
        self._open(index, message.parts)
        if is_blank:
            self.broken.append(index)

    def _open(self, index: int, parts: Iterable[Part]) -> None:
        """Record the calls of a message, which have no result yet."""
        for part in parts:
            if type(part) is ToolCall:
                if not part.id or part.id in self._call_ids:
                    self.broken.append(index)
                self._call_ids.add(part.id)
                self._open_calls[part.id] = index

    def _index_other(self, index: int, message: Message, traits: MessageTraits) -> None:
        """Index a message that is not from the model. A tool result ends the reply that began with reasoning."""
        has_results, is_prompt, _, _, is_blank, _, _ = traits  # faster than reading attributes
        opens_turn = is_prompt and not has_results and not self._awaits_reply
        if has_results:
            self._reasoning = -1
        elif self._open_calls:
            self._interrupt_step(index)
        if not has_results and message.role != "tool" and not self._open_calls and not self._follows_lead:
            self.cuts["message"].append(index)
            self.cuts["step"].append(index)
        if is_prompt:
            self._unchecked.append(index)
            self._awaits_reply = True
        if opens_turn:
            self.cuts["turn"].append(index)
        if opens_turn or index == self.lead:
            self.tail = index
        self._follows_model = self._follows_lead = self._is_reasoned = False
        if has_results:
            for part in message.parts:
                if type(part) is ToolResult:
                    self._add_result(index, part.call_id, part.interim)
        if is_blank:
            self.broken.append(index)

    def _interrupt_step(self, index: int) -> None:
        """Record that the message `index` comes before the results of the newest step.

        A note can be added at any time: the step goes on after it.
        """
        self.broken.append(index)
        if self.messages[index].kind != NOTE:
            self._leave_open_calls()

    def _join_to_reasoning(self, index: int, has_thinking: bool) -> bool:
        """Forbid cuts between the newest reasoning and its output, the message `index`.

        Returns False if this message is not the output of the reasoning.
        """
        first, self._leading = self._leading, -1
        if has_thinking or not self._is_one_reply(first, index):
            return False
        for atom in self.cuts:
            cuts = self.cuts[atom]
            while cuts and cuts[-1] > first:
                cuts.pop()
        self.tail = min(self.tail, first)
        return True

    def _is_one_reply(self, first: int, index: int) -> bool:
        """Whether two messages may belong to one reply: their provider gave them no ids, or the same id."""
        one, other = self.messages[first].meta.reply, self.messages[index].meta.reply
        return one == other or any(not reply or reply.startswith(REPLY_TO_VIEW) for reply in (one, other))

    def _add_result(self, index: int, name: str, interim: bool) -> None:
        """Assign a result to the call with the id `name`."""
        if self._open_calls.pop(name, None) is None:
            self.broken.append(index)
            if name in self.unanswered:
                self.late_results.append((self.unanswered.pop(name), index))
        if interim:
            self.waiting[name] = index
        elif self.waiting:
            self.waiting.pop(name, None)

    def apply(self, fold: Fold, stubs: Mapping[int, tuple[Message, int]] | None = None) -> None:
        """Apply a fold.

        The view then shows `stubs` in place of the pruned messages. By default, the stubs of the fold are used.
        """
        self.fold = fold
        stubs = fold.stubs if stubs is None else stubs
        if fold.removed:
            self.removed.update(fold.removed)
            stubs = {**stubs, **dict.fromkeys(fold.removed, (GONE, 0))}
        first = min(stubs, default=len(self.messages))
        sizes = [self.tokens(index) for index in range(first, len(self.messages))]
        del self.prefix[first + 1 :]
        for index, size in enumerate(sizes, start=first):
            self.shown[index], tokens = stubs.get(index, (self.shown[index], size))
            self.prefix.append(self.prefix[-1] + tokens)

    def messages_from(self, start: int) -> list[Message]:
        """The messages from index `start` on, as the view shows them."""
        shown = self.shown[start:]
        return [message for message in shown if message is not GONE] if self.removed else shown

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
        """The indexes of all messages in the step of a message."""
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

    has_results: bool = False
    """Whether the message holds tool results. Results in a message of the model are ignored."""
    is_prompt: bool = False
    """The value of `Message.is_prompt`."""
    leads_next: bool = False
    """Whether the message holds only reasoning or opaque items, which belong to the next message."""
    has_thinking: bool = False
    """Whether the message holds reasoning."""
    is_blank: bool = False
    """Whether the message has no parts, or has a blank text."""
    has_media: bool = False
    """Whether the message holds media, inside or outside a tool result."""
    has_compaction: bool = False
    """Whether the message holds a compaction block of a provider."""


_REPLY, _PROMPT, _RESULT = MessageTraits(), MessageTraits(is_prompt=True), MessageTraits(has_results=True)
"""The traits of the most common messages, which hold one part: a text, a call, or a result that is one text."""


def traits_of(message: Message) -> MessageTraits:
    """The traits of a message."""
    role, parts = message.role, message.parts
    if len(parts) == 1 and not message.kind:
        part = parts[0]
        if type(part) is Text:
            if role in {"assistant", "user"} and part.text and not part.text.isspace():
                return _PROMPT if role == "user" else _REPLY
        elif type(part) is ToolCall:
            if role == "assistant":
                return _REPLY
        elif type(part) is ToolResult and role == "tool" and len(part.parts) == 1 and type(part.parts[0]) is Text:
            return _RESULT
    return _collected_traits(message)


def _collected_traits(message: Message) -> MessageTraits:
    role, parts = message.role, message.parts
    results = thoughts = 0
    blank, media, thinking, compaction = not parts, False, False, False
    for part in parts:
        if type(part) is ToolResult:
            results += 1
            for inner in part.parts:
                media = media or type(inner) is not Text
        elif type(part) is Text:
            blank = blank or not part.text or part.text.isspace()
        elif type(part) is Media:
            media = True
        elif type(part) is not ToolCall:
            thoughts += 1
            thinking = thinking or type(part) is Thinking
            compaction = compaction or (type(part) is Opaque and part.kind == "compaction")
    # `tuple.__new__` takes half the time of `MessageTraits(…)`
    if role == "assistant":
        leads_next = thoughts == len(parts) > 0 and not compaction
        return tuple.__new__(MessageTraits, (False, False, leads_next, thinking, blank, media, compaction))
    is_prompt = role == "user" and not message.kind and (not parts or results < len(parts)) and not compaction
    return tuple.__new__(MessageTraits, (results > 0, is_prompt, False, thinking, blank, media, compaction))


def handles_of(indexes: Iterable[int]) -> str:
    """The handles of the messages with these indexes; consecutive messages share a handle.

    >>> handles_of([3, 0, 1])
    '#1-2, #4'
    """
    ranges: list[tuple[int, int]] = []
    for index in sorted(set(indexes)):
        if ranges and index == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], index)
        else:
            ranges.append((index, index))
    return ", ".join([handle(first, last) for first, last in ranges])


def left_handles(fold: Fold | None, before: Fold | None = None) -> str:
    """The handles of the messages that a fold removed from the view.

    Messages that the earlier fold `before` had already removed are left out.

    >>> left_handles(Fold(cut=9, lead=1, pinned=(1,)), Fold(cut=4, lead=1, carried=(3,)))
    '#4-9'
    """
    if fold is None:
        return ""
    if before is None:
        return ", ".join([handle(one.start, one.stop - 1) for one in fold.left])
    gone = {index for one in before.left for index in one}
    return handles_of(index for one in fold.left for index in one if index not in gone)


def handle(first: int, last: int | None = None) -> str:
    """The handle under which recall finds messages. Handles count from 1, and indexes from 0.

    >>> handle(119), handle(119, 130)
    ('#120', '#120-131')
    """
    return f"#{first + 1}" if last is None or last == first else f"#{first + 1}-{last + 1}"
