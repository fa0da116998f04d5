"""Caps for the blocks of a request: memory, summary and history.

If all blocks together exceed the total cap, they are reduced in this order, until they fit:

1. The oldest messages of the history are removed. The newest messages are never removed.
2. If the newest messages alone exceed the total cap, their texts are shortened. Otherwise, there would be no room for
   summary and memory.
3. The summary is shortened.
4. The memory is shortened.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Literal, get_args

from foldline.compat.text_caps import End, dedupe, fit_text
from foldline.errors import ConfigError, ViewTooLarge
from foldline.measure.estimator import Counter
from foldline.measure.message_size import TEXT_ONLY, message_tokens
from foldline.message import Message, Part, Text, ToolResult, edited
from foldline.placeholders import shortened
from foldline.plan.timeline import Timeline
from foldline.policy import Policy

BudgetMode = Literal["words", "tokens"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """The caps, in words or tokens (`context_budget_mode`). The documented field names say `words` in both modes."""

    context_budget_mode: BudgetMode = "words"
    context_memory_max_words: int = 300
    context_summary_max_words: int = 500
    context_history_max_words: int = 2_500
    """Cap for the history; the newest messages are kept."""
    context_total_max_words: int = 4_500
    """Cap for memory, summary and history together, without the base prompt and the new message."""
    context_dedupe_summary_against_memory: bool = True
    """Whether to remove lines of the summary that are also in memory."""
    context_min_recent_messages: int = Policy.preset("squidbot").keep_messages
    """Number of newest messages that are always kept.

    If these messages alone exceed the total cap, first these messages are shortened, then the summary, then the memory.
    """
    context_memory_end: End = "head"
    """Which end of the memory is kept when it is shortened ("head" or "tail")."""
    context_summary_end: End = "tail"
    """Which end of the summary is kept when it is shortened ("head" or "tail")."""

    def __post_init__(self) -> None:
        for knob in fields(self):
            value = getattr(self, knob.name)
            if knob.type == "int" and (not isinstance(value, int) or isinstance(value, bool) or value <= 0):
                raise ConfigError(f"{knob.name} must be a whole number above 0, not {value!r}")
        choices = {"context_budget_mode": BudgetMode, "context_memory_end": End, "context_summary_end": End}
        for name, choice in choices.items():
            value, (first, second) = getattr(self, name), get_args(choice)
            if value not in (first, second):
                raise ConfigError(f"{name} cannot be {value!r}", hint=f'use "{first}" or "{second}"')
        if self.context_total_max_words < self.context_history_max_words:
            raise ConfigError(
                f"context_total_max_words ({self.context_total_max_words}) is smaller than context_history_max_words",
                hint="raise context_total_max_words or lower context_history_max_words",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """The blocks of a request without the system prompt, before the caps are applied."""

    memory: str = ""
    digest: str = ""
    history: Timeline = field(default_factory=Timeline)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockReport:
    """The size of each block before and after the caps were applied, in the unit of the caps."""

    unit: str
    before: Mapping[str, int]
    after: Mapping[str, int]
    removed_lines: int = 0
    """Number of summary lines that were removed because they are also in memory."""
    left_out: int = 0
    """Number of messages of the history that are not sent."""
    shortened: int = 0
    """Number of messages of the history that are shortened."""
    fallback: bool = False
    """Whether words were counted instead of tokens, because no token counter was given."""

    def __str__(self) -> str:
        sizes = ", ".join(f"{name} {size:,} → {self.after[name]:,}" for name, size in self.before.items())
        counts = (
            (self.removed_lines, "duplicate digest lines removed"),
            (self.left_out, "messages left out"),
            (self.shortened, "messages shortened"),
        )
        notes = [f"{count:,} {what}" for count, what in counts if count]
        return "; ".join(
            [f"{sizes} {self.unit}", *notes, *["counted in words, without a token counter"] * self.fallback]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedBlocks:
    """The blocks after the caps were applied."""

    memory: str
    digest: str
    history: tuple[Message, ...]
    """The newest messages in order, unchanged or shortened."""
    report: BlockReport


def fit_blocks(blocks: Blocks, config: AgentConfig, counter: Counter, frame: Callable[[str, str], str]) -> FittedBlocks:
    """The blocks, each reduced to its own cap, and all together to the total cap.

    `frame(memory, summary)` joins memory and summary into one text with headings. The total cap applies to this text
    plus the history.
    """
    draft = _BlockDraft(blocks, config, counter, frame)
    before = draft.sizes()
    removed = draft.cap()
    draft.fit_total(config.context_total_max_words)
    report = BlockReport(
        unit=config.context_budget_mode,
        before=before,
        after=draft.sizes(),
        removed_lines=removed,
        left_out=draft.cut,
        shortened=len(draft.stubs),
    )
    history = (draft.stubs.get(index) or draft.timeline.shown[index] for index in range(draft.cut, len(draft.timeline)))
    return FittedBlocks(memory=draft.memory, digest=draft.digest, history=tuple(history), report=report)


def cut_to_newest(timeline: Timeline, limit: int, floor: int) -> int:
    """The cut that keeps at most `limit` tokens of the newest messages.

    The newest `floor` messages are always kept, even if they have more than `limit` tokens. No step is split.
    """
    wanted = bisect_left(timeline.prefix, timeline.prefix[-1] - limit)
    if wanted == 0:
        return 0
    return min(timeline.first_cut("step", wanted), timeline.last_cut("step", len(timeline) - floor))


class _BlockDraft:
    """Mutable state while the blocks are shortened."""

    def __init__(self, blocks: Blocks, config: AgentConfig, counter: Counter, frame: Callable[[str, str], str]) -> None:
        self.memory, self.digest, self.timeline = blocks.memory, blocks.digest, blocks.history
        self.config, self.counter, self.frame = config, counter, frame
        self.cut = 0
        self.stubs: dict[int, Message] = {}

    def cap(self) -> int:
        """Reduce each block to its own cap, and return the number of duplicate lines that were removed."""
        config, removed = self.config, 0
        if config.context_dedupe_summary_against_memory:
            self.digest, removed = dedupe(self.digest, self.memory)
        self.memory = fit_text(self.memory, config.context_memory_max_words, config.context_memory_end, self.counter)
        self.digest = fit_text(self.digest, config.context_summary_max_words, config.context_summary_end, self.counter)
        self.cut = self._cut_to(config.context_history_max_words)
        return removed

    def fit_total(self, cap: int) -> None:
        """Reduce history, summary and memory, in this order, until all blocks fit the total cap.

        Raises `ViewTooLarge` if the blocks cannot fit.
        """
        if self.over(cap) > 0:
            self.cut = max(self.cut, self._cut_to(max(0, cap - self.system())))
        if self.history() > cap:
            self._shorten(cap)
        while self.digest and (over := self.over(cap)) > 0:
            self.digest = self._reduce(self.digest, over, self.config.context_summary_end)
        while self.memory and (over := self.over(cap)) > 0:
            self.memory = self._reduce(self.memory, over, self.config.context_memory_end)
        self.stubs.clear()  # the messages get all of the room that summary and memory leave
        self._shorten(cap)
        if self.over(cap) > 0:
            raise ViewTooLarge(
                self.system() + self.history(),
                cap,
                {"system": self.system(), "history": self.history()},
                unit=self.config.context_budget_mode,
                hint="raise context_total_max_words or lower context_min_recent_messages",
            )

    def _cut_to(self, limit: int) -> int:
        return cut_to_newest(self.timeline, limit, self.config.context_min_recent_messages)

    def _shorten(self, cap: int) -> None:
        """Shorten messages until all blocks fit.

        First the largest messages are shortened to one common size. If this is not enough, single messages are
        shortened further.
        """
        kept = range(self.cut, len(self.timeline))
        level = _level([self.timeline.tokens(index) for index in kept], max(0, cap - self.system()))
        for index in sorted(kept, key=lambda index: -self.timeline.tokens(index)):
            if self.over(cap) <= 0 or self.timeline.tokens(index) <= level:
                break
            self._stub(index, level)
        for index in kept:
            over = self.over(cap)
            if over <= 0:
                break
            stub = self.stubs.get(index)
            self._stub(index, (size_of(stub, self.counter) if stub else self.timeline.tokens(index)) - over)

    def _stub(self, index: int, limit: int) -> None:
        stub = shorten(self.timeline.shown[index], limit, self.counter)
        if stub is not None:
            self.stubs[index] = stub

    def _reduce(self, text: str, over: int, end: End) -> str:
        return fit_text(text, max(0, self.counter.count(text).tokens - over), end, self.counter)

    def over(self, cap: int) -> int:
        """The size by which all blocks together exceed the cap; negative if they fit."""
        return self.system() + self.history() - cap

    def system(self) -> int:
        """The size of memory and summary with their headings."""
        return self.counter.count(self.frame(self.memory, self.digest)).tokens

    def history(self) -> int:
        """The size of the kept messages."""
        saved = sum(self.timeline.tokens(index) - size_of(stub, self.counter) for index, stub in self.stubs.items())
        return self.timeline.prefix[-1] - self.timeline.prefix[self.cut] - saved

    def sizes(self) -> dict[str, int]:
        """The size of each block."""
        return {
            "memory": self.counter.count(self.memory).tokens,
            "digest": self.counter.count(self.digest).tokens,
            "history": self.history(),
        }


def _level(sizes: list[int], limit: int) -> int:
    """The size to which all larger items must be shortened, so that the sum of all sizes is at most `limit`.

    >>> _level([10, 500, 300], 110)
    50
    """
    rest = sorted(sizes)
    for index, size in enumerate(rest):
        share = limit // (len(rest) - index)
        if size > share:
            return share
        limit -= size
    return max(rest, default=0)


def size_of(message: Message, counter: Counter) -> int:
    """The size of a message's content, without framing."""
    return message_tokens(message, counter, TEXT_ONLY)


def shorten(message: Message, limit: int, counter: Counter) -> Message | None:
    """The message with its longest texts shortened; None if the message does not become smaller.

    Texts are shortened until the size of the message is at most `limit`. The start of a shortened text is kept. A line
    at the end of the shortened text says how much is missing. Calls, images and ids are not changed.
    """
    parts = list(message.parts)
    whole = now = size_of(message, counter)
    for index in sorted(range(len(parts)), key=lambda index: -len(_text(parts[index]))):
        if now <= limit:
            break
        parts[index] = _cut_part(parts[index], now - limit, counter)
        now = size_of(message.with_parts(*parts), counter)
    return message.with_parts(*parts) if now < whole else None


def _text(part: Part) -> str:
    return part.text if isinstance(part, Text | ToolResult) else ""


def _cut_part(part: Part, over: int, counter: Counter) -> Part:
    """A text or a result, shortened by at least `over` tokens or words if possible."""
    text = _text(part)
    size = counter.count(text).tokens
    limit = size - over - counter.count(_left_out(text, "")).tokens
    while True:
        kept = fit_text(text, max(0, limit), "head", counter)
        short = "\n".join(filter(None, (kept, _left_out(text, kept))))
        tokens = counter.count(short).tokens
        if not kept or tokens <= size - over:
            break
        limit -= tokens - (size - over)
    if tokens >= size:
        return part
    if isinstance(part, ToolResult):
        others = (inner for inner in part.parts if not isinstance(inner, Text))
        return edited(part, parts=(Text(text=short), *others))
    return Text(text=short)


def _left_out(text: str, kept: str) -> str:
    """The line after a shortened text, which says how many characters are missing.

    If a code fence was added at the end of `kept`, the fence is not counted as kept text.
    """
    shown = len(kept) if text.startswith(kept) else kept.rfind("\n")
    return shortened(len(text) - shown, "")
