"""The anchor: the provider's own figure for the last request, and an estimate of only what came after it.

An estimate of a whole context is off by several per cent, and blind to what the messages do not show (tool schemas, the
client's own reminders). The usage that came with the last reply has none of these faults, but it is one reply old, it
is sometimes wrong, and a fold makes it worthless. So a `Gauge` is fed every message of one view, once and in order, and
always knows how large a request would be now: the last figure it trusts, plus what was said since, corrected by how
earlier figures differed from their estimates. It is a value made from the appended messages and nothing else: whoever
appends the same messages reads the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from foldline.measure.estimator import Count, upper
from foldline.message import Message, Thinking, Usage

CREDIT = 2_000
"""Tokens of trust in the estimator before any usage is known: a few small steps must not bend the ratio."""
MEMORY = 0.95
"""What an earlier step still weighs after each newer one, so that the ratio follows a session that changes."""
RATIO = (0.5, 2.0)
"""What one step can say of the ratio, and so its bounds: beyond them something hidden moved, not the tokenizer."""
JUMP = 0.5
"""A figure this far off what was expected, as a share of it, is doubted."""
SLACK = 1_000
"""Tokens that no figure is doubted for: the smallest requests are mostly framing."""
AGREE = 0.1
"""Two doubted figures that tell the same story this closely are believed."""
WHOLE = 0.7
"""An output figure below this share of the reply's estimate is a placeholder (Claude Code logs them)."""
NOTICEABLE = 256
"""Tokens of old thinking from which a figure shows whether the provider dropped them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """A trusted figure, tied to exactly what it measured: the first `messages` messages of this view."""

    tokens: int
    messages: int
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What usage has taught so far. It outlives a fold, because it is about the provider and not about a view.

    The ratio comes from increments only: over the whole context, hidden parts would pass for a wrong estimator.
    """

    told: float = CREDIT
    guessed: float = CREDIT
    hidden: int = 0
    """Tokens that every request carries and no message shows: to begin with, what the caller knows of tool schemas."""
    drops_thinking: bool = False
    """Whether the thinking of earlier turns leaves the prompt when the user speaks again (OpenAI, older Claude)."""

    @property
    def ratio(self) -> float:
        """Real tokens for one estimated token."""
        return self.told / self.guessed

    def step(self, told: int, guessed: int) -> Learned:
        """With one more step of `told` real tokens that had been estimated at `guessed`."""
        low, high = RATIO
        clipped = min(max(told, guessed * low), guessed * high)
        return replace(self, told=self.told * MEMORY + clipped, guessed=self.guessed * MEMORY + guessed)


class _Reply(NamedTuple):
    """The model's newest reply, which may be several messages: estimated, and as far as its usage tells."""

    id: str
    start: int
    size: int = 0
    thinking: int = 0
    carried: bool = False
    """It has thinking that goes back with it; hidden reasoning that no message holds never does."""
    usage: Usage = Usage()

    @property
    def told(self) -> int:
        """What it adds to the next prompt by the provider's word; 0 when its figure is missing or a placeholder."""
        said = self.usage.output - (0 if self.carried else self.usage.reasoning)
        return said if said >= WHOLE * self.size else 0

    @property
    def thought(self) -> int:
        """How much of it is thinking."""
        return (self.usage.reasoning or self.thinking) if self.carried else 0


@dataclass(slots=True, kw_only=True)
class Gauge:
    """How large a request would be now. Each `add` costs the same, however long the conversation is.

    A value: `add` gives a new one. It is not frozen only because it is made for every message, and filling a frozen one
    takes several times as long.

    >>> from foldline.message import assistant, user
    >>> gauge = Gauge().add(user("Hello"), 10).add(assistant("Hi"), 6)
    >>> print(gauge.count, gauge.count.source)
    ~16 16 estimated
    """

    anchor: Anchor | None = None
    learned: Learned = Learned()
    messages: int = 0
    total: int = 0
    """Everything in this view by estimate, the newest reply left out."""
    guessed: int = 0
    """Of that, what the anchor does not cover and no output figure tells."""
    told: int = 0
    """Replies after the anchor, by their output figures."""
    reply: _Reply | None = None
    thinking: int = 0
    """Thinking of the present turn."""
    leaving: int = 0
    """Thinking of finished turns that the anchor still counts."""
    doubt: int | None = None
    """By how much the last doubted figure missed."""

    def add(self, message: Message, tokens: int, *, thinking: int = 0) -> Gauge:
        """With one more message, estimated at `tokens`, of which `thinking` are thinking."""
        gauge = self._append(message, tokens, thinking)
        usage = message.meta.usage
        if gauge.reply is None or usage is None or usage.prompt <= 0:
            return gauge
        return gauge._weigh(usage, gauge.reply, message.meta.model)

    def folded(self, view: Iterable[tuple[Message, int]]) -> Gauge:
        """The gauge of a new view: what was learned stays, the usage of the replies kept in it is void."""
        gauge = Gauge(learned=self.learned)
        for message, tokens in view:
            gauge = gauge._append(message, tokens, 0)
        return gauge._settle()

    @property
    def anchored(self) -> bool:
        """Whether the size rests on the provider's own figure."""
        return self.anchor is not None

    @property
    def tokens(self) -> int:
        """The likeliest size of a request made now."""
        return self._settle()._expected()

    @property
    def upper(self) -> int:
        """The size to check against a limit: what no usage covers has the estimator's margin."""
        gauge = self._settle()
        estimated = gauge._estimated()
        return gauge._expected() - estimated + upper(estimated)

    @property
    def count(self) -> Count:
        """The size with its source in words."""
        gauge = self._settle()
        estimated = gauge._estimated()
        if gauge.anchor is None:
            source = f"{estimated:,} estimated"
        else:
            source = f"usage of reply {gauge.anchor.messages}"
            source += f" + {gauge.told:,} of output" if gauge.told else ""
            source += f" + {estimated:,} estimated" if estimated else ""
        return Count(gauge._expected(), False, source)

    def _append(self, message: Message, tokens: int, thinking: int) -> Gauge:
        """Count a message, without looking at its usage."""
        gauge = self._copy()
        gauge.messages += 1
        if message.role == "assistant":
            reply = self.reply
            if reply is None or not reply.id or reply.id != message.meta.reply:
                gauge._settle_reply()
                reply = _Reply(message.meta.reply, self.messages)
            carried = reply.carried or any(isinstance(part, Thinking) for part in message.parts)
            gauge.reply = _Reply(
                reply.id, reply.start, reply.size + tokens, reply.thinking + thinking, carried, reply.usage
            )
            return gauge
        gauge._settle_reply()
        gauge.total += tokens
        gauge.guessed += tokens
        if gauge.thinking and message.is_prompt:
            gauge.leaving += gauge.thinking
            gauge.thinking = 0
        return gauge

    def _copy(self) -> Gauge:
        return Gauge(
            anchor=self.anchor,
            learned=self.learned,
            messages=self.messages,
            total=self.total,
            guessed=self.guessed,
            told=self.told,
            reply=self.reply,
            thinking=self.thinking,
            leaving=self.leaving,
            doubt=self.doubt,
        )

    def _settle(self) -> Gauge:
        """With the newest reply counted as part of the next prompt."""
        if self.reply is None:
            return self
        gauge = self._copy()
        gauge._settle_reply()
        return gauge

    def _settle_reply(self) -> None:
        """Count the newest reply as part of the next prompt; only ever done to a fresh copy."""
        reply = self.reply
        if reply is None:
            return
        told = reply.told
        self.reply = None
        self.total += reply.size
        self.guessed += 0 if told else reply.size
        self.told += told
        self.thinking += reply.thought

    def _estimated(self) -> int:
        """What no usage covers, by the corrected estimate."""
        if self.anchor is None:
            return self.learned.hidden + round(self.learned.ratio * self.total)
        return round(self.learned.ratio * self.guessed)

    def _expected(self) -> int:
        """The size of the prompt before the newest reply."""
        if self.anchor is None:
            return self._estimated()
        left = self.leaving if self.learned.drops_thinking else 0
        return max(self.anchor.tokens + self.told + self._estimated() - left, 0)

    def _weigh(self, usage: Usage, reply: _Reply, model: str) -> Gauge:
        """Take the figure that came with the newest reply as the anchor, or keep it in doubt."""
        expected = self._expected()
        gap = usage.prompt - expected
        plausible = self._plausible(usage.prompt, expected)
        agreed = self.doubt is not None and abs(gap - self.doubt) <= AGREE * usage.prompt
        if not plausible and not agreed:
            return replace(self, doubt=gap)
        return replace(
            self,
            anchor=Anchor(tokens=usage.prompt, messages=reply.start, model=model),
            learned=self._lesson(usage.prompt, model, plausible),
            guessed=0,
            told=0,
            reply=reply._replace(usage=usage),
            leaving=0,
            doubt=None,
        )

    def _plausible(self, prompt: int, expected: int) -> bool:
        """Whether a figure can be true where `expected` tokens were foretold.

        The first figure may be any amount above what the messages show. Later ones may not: a doubled figure, a sum
        over several calls, a figure without its cached share all give themselves away by a jump.
        """
        if self.anchor is None:
            return prompt >= (1 - JUMP) * self.learned.ratio * self.total - SLACK
        allowed = max(SLACK, JUMP * expected)
        return -allowed <= prompt - expected <= allowed + self._estimated()

    def _lesson(self, prompt: int, model: str, plausible: bool) -> Learned:
        """What a figure that is believed teaches about the provider."""
        learned = self.learned
        if self.anchor is None or not plausible:
            return replace(learned, hidden=max(prompt - round(learned.ratio * self.total), 0))
        if model != self.anchor.model:
            return learned
        kept = self.anchor.tokens + self.told + self._estimated()
        if self.leaving > NOTICEABLE:
            return replace(learned, drops_thinking=abs(prompt - kept) > abs(prompt - kept + self.leaving))
        if self.leaving or not self.guessed:
            return learned
        return learned.step(prompt - self.anchor.tokens - self.told, self.guessed)
