"""The view: what is sent, put together from a timeline and its fold.

Order: system, memory, pins, digest, history, input. Between folds a view only grows at its end, so composing one copies
references and nothing else.
"""

from __future__ import annotations

from typing import NamedTuple

from foldline.fold import Fold
from foldline.measure.estimator import format_tokens
from foldline.message import Message, user
from foldline.placeholders import missing_messages
from foldline.plan.gate import Need, Verdict
from foldline.plan.timeline import Timeline, handle
from foldline.view.breakpoints import place
from foldline.wire.rendering import Rendered, render
from foldline.wire.repair import repair


class View(NamedTuple):
    """What would be sent now. `print(view)` is the bill, with the fold line drawn where the verbatim part begins.

    A named tuple, because one is made at every turn and a frozen dataclass takes twice as long to fill.
    """

    messages: tuple[Message, ...]
    blocks: dict[str, int]
    """Tokens by block, in the order of the view."""
    tokens: int
    exact: bool
    source: str
    """Where the figure comes from."""
    window: int
    usable: int
    verdict: Verdict
    cut: int
    """The first message that is shown word for word."""
    breakpoints: int = 0
    """Cache marks placed at most when the view is rendered."""

    @property
    def need(self) -> Need:
        """How urgent a fold is."""
        return self.verdict.need

    @property
    def notice(self) -> str:
        """What to tell an agent before a fold is due, so that it can save what matters; nothing while there is room."""
        rules = [str(rule) for rule in self.verdict.fired]
        if not rules:
            return ""
        return f"{self.tokens:,} of {self.usable:,} tokens are in use, older messages will soon be folded ({rules[0]})"

    def render(self, provider: str) -> Rendered:
        """The view in a provider's form, healed by that provider's rules, with cache marks where it has them."""
        return place(render(repair(self.messages, provider).messages, provider), self.breakpoints)

    def __str__(self) -> str:
        width = max(len(name) for name in self.blocks)
        lines = []
        for name, size in self.blocks.items():
            if name == "history" and self.cut:
                lines.append(f"{'─' * 3} fold line: {handle(0, self.cut - 1)} above are kept in the record {'─' * 3}")
            share = size / max(1, self.usable)
            lines.append(f"{name:<{width}} {size:>9,} {share:>6.1%} {'█' * round(share * 40)}".rstrip())
        used, usable = format_tokens(self.tokens, self.exact), format_tokens(self.usable, True)
        total = f"{used} of {usable} usable ({self.window:,} window)"
        reason = f": {self.verdict.reason}" if self.verdict.reason else ""
        return "\n".join([*lines, f"{total}, {self.source}. {self.need.name}{reason}"])


def marker(first: int, last: int, *, kept: int = 0) -> Message:
    """The one line that stands for messages that left without a digest; `kept` of the range stayed all the same."""
    count = last - first + 1 - kept
    return user(missing_messages(count, handle(first, last), partly=kept > 0), kind="note")


def head(timeline: Timeline, fold: Fold | None = None) -> tuple[Message, ...]:
    """Everything in front of the verbatim part: system, pins, digest, and what the fold carried over."""
    fold = fold or timeline.fold
    lead = tuple(timeline.messages[: timeline.lead])
    if fold is None:
        return lead
    kept = {*fold.pinned, *fold.carried}
    pinned = tuple([timeline.kept_message(index, kept) for index in fold.pinned])
    carried = tuple([timeline.kept_message(index, kept) for index in fold.carried])
    digest = (fold.digest.message,) if fold.digest else ()
    if digest and digest[0].role == "system":
        return lead + digest + _started(timeline, fold, pinned + carried)
    return lead + _started(timeline, fold, pinned + digest + carried)


def _started(timeline: Timeline, fold: Fold, middle: tuple[Message, ...]) -> tuple[Message, ...]:
    """A conversation begins with a user: where it would not, one line says what is missing in front."""
    first = middle[0] if middle else timeline.shown[fold.cut] if fold.cut < len(timeline) else None
    if first is None or first.role == "user" or fold.cut <= timeline.lead:
        return middle
    return (marker(timeline.lead, fold.cut - 1, kept=len(fold.pinned) + len(fold.carried)), *middle)


def messages_of(timeline: Timeline, provider: str = "anthropic") -> tuple[Message, ...]:
    """The messages of the view. Where the kept part is broken it is healed; otherwise nothing is even looked at."""
    return _healed(timeline, head(timeline) + tuple(timeline.shown[timeline.cut :]), provider)


class Composed:
    """The messages of a timeline's view, carried from view to view: until the next fold only the new ones are added."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self._fold: Fold | None = None
        self._list: list[Message] = []
        self._seen = 0

    def messages(self, provider: str = "anthropic") -> tuple[Message, ...]:
        """What `messages_of` gives."""
        timeline = self.timeline
        if timeline.fold is not self._fold:
            self._fold, self._list, self._seen = timeline.fold, list(head(timeline)), timeline.cut
        self._list += timeline.shown[self._seen :]
        self._seen = len(timeline.shown)
        return _healed(timeline, tuple(self._list), provider)


def _healed(timeline: Timeline, messages: tuple[Message, ...], provider: str) -> tuple[Message, ...]:
    carried = timeline.fold.carried if timeline.fold else ()
    if timeline.broken and (timeline.broken[-1] >= timeline.cut or any(index in timeline.broken for index in carried)):
        return repair(messages, provider).messages
    return messages
