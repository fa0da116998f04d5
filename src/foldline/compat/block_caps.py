"""Caps for the blocks of a request: memory, digest and history.

If all blocks together exceed the total, history is shortened first, then the digest, then memory. Messages that must
stay become stubs before another block is shortened, so that one huge message cannot displace the memory.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Literal

from foldline.compat.text_caps import End, dedupe, fit_text
from foldline.errors import ConfigError, ViewTooLarge
from foldline.measure.estimator import Counter
from foldline.measure.message_size import TEXT_ONLY, message_tokens
from foldline.message import Message, Part, Text, ToolResult
from foldline.placeholders import shortened
from foldline.plan.timeline import Timeline, handle


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockCaps:
    """The caps, counted in `unit`; None means no cap."""

    unit: Literal["words", "tokens"] = "tokens"
    memory_cap: int | None = None
    digest_cap: int | None = None
    history_cap: int | None = None
    """Cap for the history, which keeps its newest messages."""
    total_cap: int | None = None
    """Cap for all blocks together: history is cut first, then the digest, then memory."""
    memory_end: End = "head"
    """Which end of the memory stays, in whole lines."""
    digest_end: End = "tail"
    """Which end of the digest stays, in whole lines."""
    dedupe_digest: bool = False
    """Whether to remove lines of the digest that memory has too."""
    keep_messages: int = 0
    """How many of the newest messages stay, as stubs if necessary."""

    def __post_init__(self) -> None:
        if self.unit not in ("words", "tokens"):
            raise ConfigError(f"unit cannot be {self.unit!r}", hint="use words or tokens")
        for name in ("memory_end", "digest_end"):
            if getattr(self, name) not in ("head", "tail"):
                raise ConfigError(f"{name} cannot be {getattr(self, name)!r}", hint="use head or tail")
        for cap in fields(self):
            value = getattr(self, cap.name)
            if cap.name.endswith("_cap") and value is not None and value < 1:
                raise ConfigError(f"{cap.name} must be at least 1, not {value}", hint="leave it out for no cap")
        if self.keep_messages < 0:
            raise ConfigError(f"keep_messages cannot be negative: {self.keep_messages}")
        if self.total_cap is not None and self.history_cap is not None and self.total_cap < self.history_cap:
            raise ConfigError(
                f"total_cap {self.total_cap} is smaller than history_cap {self.history_cap}",
                hint="raise total_cap or lower history_cap",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """The blocks of a request other than the system prompt, before any cap."""

    memory: str = ""
    digest: str = ""
    history: Timeline = field(default_factory=Timeline)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockReport:
    """The size of each block before and after the caps, in their unit."""

    unit: str
    before: Mapping[str, int]
    after: Mapping[str, int]
    removed_lines: int = 0
    """Number of digest lines that were removed because memory has them too."""
    left_out: int = 0
    """Number of messages of the history that are not sent."""
    shortened: int = 0
    """Number of messages of the history that are sent as stubs."""
    fallback: bool = False
    """Whether words were counted instead of tokens, because there was no counter."""

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
    """The blocks under their caps."""

    memory: str
    digest: str
    history: tuple[Message, ...]
    """The newest messages in order, unchanged or as stubs."""
    report: BlockReport


def fit_blocks(blocks: Blocks, caps: BlockCaps, counter: Counter, frame: Callable[[str, str], str]) -> FittedBlocks:
    """The blocks under their caps. `frame(memory, digest)` returns the system text, which counts in the total."""
    draft = _BlockDraft(blocks, caps, counter, frame)
    before = draft.sizes()
    removed = draft.cap()
    if caps.total_cap is not None:
        draft.fit_total(caps.total_cap)
    report = BlockReport(
        unit=caps.unit,
        before=before,
        after=draft.sizes(),
        removed_lines=removed,
        left_out=draft.cut,
        shortened=len(draft.stubs),
    )
    history = (draft.stubs.get(index) or draft.timeline.shown[index] for index in range(draft.cut, len(draft.timeline)))
    return FittedBlocks(memory=draft.memory, digest=draft.digest, history=tuple(history), report=report)


def cut_to_newest(timeline: Timeline, limit: int, floor: int) -> int:
    """The cut that keeps the newest messages within `limit` tokens, and at least `floor` of them; no step is split."""
    wanted = bisect_left(timeline.prefix, timeline.prefix[-1] - limit)
    if wanted == 0:
        return 0
    return min(timeline.first_cut("step", wanted), timeline.last_cut("step", len(timeline) - floor))


class _BlockDraft:
    """Mutable state while the blocks are shortened."""

    def __init__(self, blocks: Blocks, caps: BlockCaps, counter: Counter, frame: Callable[[str, str], str]) -> None:
        self.memory, self.digest, self.timeline = blocks.memory, blocks.digest, blocks.history
        self.caps, self.counter, self.frame = caps, counter, frame
        self.cut = 0
        self.stubs: dict[int, Message] = {}

    def cap(self) -> int:
        """Apply each block's cap; returns the number of removed duplicate lines."""
        caps, removed = self.caps, 0
        if caps.dedupe_digest:
            self.digest, removed = dedupe(self.digest, self.memory)
        if caps.memory_cap is not None:
            self.memory = fit_text(self.memory, caps.memory_cap, caps.memory_end, self.counter)
        if caps.digest_cap is not None:
            self.digest = fit_text(self.digest, caps.digest_cap, caps.digest_end, self.counter)
        if caps.history_cap is not None:
            self.cut = cut_to_newest(self.timeline, caps.history_cap, caps.keep_messages)
        return removed

    def fit_total(self, cap: int) -> None:
        """Shorten history, then the digest, then memory, until all fit; raises `ViewTooLarge` if they cannot."""
        if self.over(cap) > 0:
            limit = max(0, cap - self.system())
            self.cut = max(self.cut, cut_to_newest(self.timeline, limit, self.caps.keep_messages))
        self._shorten(cap)
        while self.digest and (over := self.over(cap)) > 0:
            self.digest = self._reduce(self.digest, over, self.caps.digest_end)
        while self.memory and (over := self.over(cap)) > 0:
            self.memory = self._reduce(self.memory, over, self.caps.memory_end)
        if self.over(cap) > 0:
            sizes = {"system": self.system(), "history": self.history()}
            raise ViewTooLarge(
                sum(sizes.values()),
                cap,
                sizes,
                unit=self.caps.unit,
                hint="raise the total or shorten the system prompt",
            )

    def _shorten(self, cap: int) -> None:
        """Replace messages by stubs until all fit: first cut the largest to one common size, then cut each further."""
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
        stub = shorten(self.timeline.shown[index], handle(index), limit, self.counter)
        if stub is not None:
            self.stubs[index] = stub

    def _reduce(self, text: str, over: int, end: End) -> str:
        return fit_text(text, max(0, self.counter.count(text).tokens - over), end, self.counter)

    def over(self, cap: int) -> int:
        """By how much all blocks together exceed the cap."""
        return self.system() + self.history() - cap

    def system(self) -> int:
        """The size of the system text."""
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
    """The size to which the largest of `sizes` must be reduced so that all fit into `limit`.

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


def shorten(message: Message, name: str, limit: int, counter: Counter) -> Message | None:
    """The message with its longest texts cut until it fits into `limit`; None if that makes it no smaller.

    The start of each cut text stays, with a line that holds `name`. Calls, images and ids are not changed.
    """
    parts = list(message.parts)
    whole = now = size_of(message, counter)
    for index in sorted(range(len(parts)), key=lambda index: -len(_text(parts[index]))):
        if now <= limit:
            break
        parts[index] = _cut_part(parts[index], name, now - limit, counter)
        now = size_of(message.with_parts(*parts), counter)
    return message.with_parts(*parts) if now < whole else None


def _text(part: Part) -> str:
    return part.text if isinstance(part, Text | ToolResult) else ""


def _cut_part(part: Part, name: str, over: int, counter: Counter) -> Part:
    """The text or result, shortened by at least `over` if possible."""
    text = _text(part)
    size = counter.count(text).tokens
    limit = size - over - counter.count(_left_out(text, "", name)).tokens
    while True:
        kept = fit_text(text, max(0, limit), "head", counter)
        short = "\n".join(filter(None, (kept, _left_out(text, kept, name))))
        tokens = counter.count(short).tokens
        if not kept or tokens <= size - over:
            break
        limit -= tokens - (size - over)
    if tokens >= size:
        return part
    if isinstance(part, ToolResult):
        others = (inner for inner in part.parts if not isinstance(inner, Text))
        return replace(
            part, parts=(Text(text=short), *others), wire=part.wire and part.wire._replace(raw=None, exact=False)
        )
    return Text(text=short)


def _left_out(text: str, kept: str, name: str) -> str:
    """The line below a shortened text. `kept` may end with an added code fence, which is not counted."""
    shown = len(kept) if text.startswith(kept) else kept.rfind("\n")
    return shortened(len(text) - shown, name)
