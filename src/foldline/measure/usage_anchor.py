"""Computes the size of a request: the provider's last trusted usage figure, plus an estimate of the later messages.

An estimate of a whole context is off by several per cent and misses tool schemas. The usage of the last reply is
usually exact and includes tool schemas. But the usage of a reply is for an earlier request, and it is sometimes wrong.
The usage says nothing about a view that did not grow from that request. A `Gauge` receives every message of a view in
order. With each usage figure, the gauge also receives the difference between the measured request and the view
(`Evidence`). A gauge depends on nothing else, so two processes that read the same messages compute the same size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from foldline.measure.estimator import MARGIN, Count, with_margin
from foldline.message import Message, Thinking, Usage

CREDIT = 2_000
"""The ratio is the quotient of two sums.

Both sums start with this number of tokens, so that a few small measurements change the ratio only a little.
"""
DECAY = 0.95
"""With each new measurement, the weights of all earlier measurements are multiplied by this factor.

So newer measurements count more.
"""
RATIO = (0.5, 2.0)
"""Lowest and highest ratio of one measurement.

If a ratio is outside this range, hidden tokens have changed; the tokenizer is not the cause.
"""
SURE = 0.03
"""The smallest uncertainty of the ratio, as a share.

Even after many measurements, the uncertainty is not lower, because contents differ.
"""
OTHER_TOKENIZER = 0.5
"""The uncertainty of an estimate, as a share, if the model that counted the request is not that of the session."""
MOST_HIDDEN = 150_000
"""If the first figure shows more hidden tokens than this, it is not trusted until another figure
shows the same number.
"""
JUMP = 0.5
"""A figure is never trusted if it is lower than the estimate of the messages by more than this share."""
DRIFT = 0.2
"""A usage figure is doubted (not trusted yet) if it differs from the expected size by more than this share.

A figure above the expected size may differ by more: the estimated part of the expected size is added to the allowed
difference. If another model answered, the share is `JUMP`, because that model may have another tokenizer.
"""
SLACK = 1_000
"""If the difference is smaller than this number of tokens, the figure is not doubted.

Very small requests consist mostly of framing.
"""
AGREE = 0.2
"""A doubted figure is trusted if an earlier doubted figure deviated by nearly the same amount.

The two deviations may differ by at most this share of the growth between the requests.
"""
LEAST_GROWTH = 100
"""Two doubted figures confirm each other only if the request grew by at least this many tokens between them."""
WHOLE_SHARE = 0.8
"""Before any figure is trusted, a figure may exceed the estimate by exactly its cached tokens.

If the cached tokens are at least this share of the estimate, they were probably counted twice, and the figure is
doubted.
"""
PLACEHOLDER_SHARE = 0.7
"""An output figure below this share of the reply's estimate is ignored.

Claude Code logs such placeholder figures.
"""
NOTICEABLE = 256
"""If earlier turns have more tokens of thinking than this, a usage figure shows whether the provider dropped the
thinking.
"""


class Evidence(NamedTuple):
    """The difference between the current view and the request for which a usage figure was reported."""

    missing: int = 0
    """Number of messages that come before the reply in the current view, but were not in the measured request."""
    missing_tokens: int = 0
    """Estimated tokens of those messages."""
    change: int = 0
    """Estimated growth of the rest of the view (for example of the tools) since that request, in tokens; negative if it
    shrank.
    """
    is_own: bool = True
    """Whether the measured request had the same model, format and counter as the current view.

    If this is False, the figure only shows how many hidden tokens there are.
    """


SAME_REQUEST = Evidence()
"""The evidence for a measured request that was the same as the current view up to the reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """A trusted usage figure: the size of a request with the first `messages` messages of this view."""

    tokens: int
    messages: int
    model: str = ""
    change: int = 0
    """Estimated growth of these messages and of the tools since the request, in tokens; negative if they shrank."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Corrections of the estimate, learned from usage.

    These corrections describe the provider, so they stay valid after a fold. The ratio is learned only from the growth
    between two requests. A ratio of whole requests would also include hidden tokens, which are no error of the
    estimator.
    """

    reported: float = CREDIT
    """Sum of the reported tokens of all measurements. Older measurements have less weight."""
    estimated: float = CREDIT
    """Sum of the estimates for the same measurements, with the same weights."""
    hidden: int = 0
    """Tokens in every request that belong to no message. The initial value is the size of the tool schemas."""
    drops_thinking: bool = False
    """Whether the provider removes the thinking of earlier turns at the next user message (OpenAI, older Claude)."""

    @classmethod
    def from_stored(cls, values: Mapping[str, Any]) -> Calibration:
        """The calibration that is stored with a fold. Version 0.1 stored the fields under other names."""
        names = {"told": "reported", "guessed": "estimated"}
        return cls(**{names.get(name, name): value for name, value in values.items()})

    @property
    def ratio(self) -> float:
        """The number of real tokens per estimated token."""
        return self.reported / self.estimated

    @property
    def uncertainty(self) -> float:
        """How wrong an estimate may be after it was corrected by the ratio, as a share of the estimate."""
        return max(MARGIN * CREDIT / self.estimated, SURE)

    def with_figure(self, tokens: int, estimated: int, uncertainty: float | None = None) -> Calibration:
        """The calibration after one more usage figure.

        The figure is `tokens`, and the messages of the request are estimated as `estimated` tokens. A difference counts
        as hidden tokens only if an error of the estimate cannot explain it. The first figures of a session show the
        hidden tokens best, because their requests are small.
        """
        messages = self.ratio * estimated
        band = messages * (self.uncertainty if uncertainty is None else uncertainty)
        gap = tokens - self.hidden - messages
        if -band <= gap <= band:
            return self
        hidden = max(self.hidden + round(gap - band if gap > 0 else gap + band), 0)
        return Calibration(self.reported, self.estimated, hidden, self.drops_thinking)

    def with_step(self, reported: int, estimated: int) -> Calibration:
        """The calibration after one more measurement: content that was estimated as `estimated` tokens had `reported`
        tokens.
        """
        low, high = RATIO
        clipped = min(max(reported, estimated * low), estimated * high)
        sums = self.reported * DECAY + clipped, self.estimated * DECAY + estimated
        return Calibration(*sums, self.hidden, self.drops_thinking)


class _Doubt(NamedTuple):
    """A usage figure that was not trusted."""

    expected: int
    """The size that the request should have had."""
    gap: int
    """The usage figure minus the expected size."""

    def is_confirmed_by(self, expected: int, gap: int) -> bool:
        """Whether a later figure deviates by about the same amount, although the request has grown.

        Hidden tokens cause a constant deviation. A deviation that grows with the request comes from tokens that are
        counted twice. If the deviation is as large as the previous request, cached tokens were counted twice or not at
        all.
        """
        growth = expected - self.expected
        if growth < LEAST_GROWTH or abs(gap - self.gap) > AGREE * growth:
            return False
        return abs(abs(gap) - self.expected) > max(AGREE * growth, DRIFT * self.expected)

    def followed_by(self, expected: int, gap: int) -> _Doubt:
        """The doubted figure to remember after one more doubted figure.

        If the two figures are nearly equal, the old figure is returned, otherwise the new figure.
        """
        is_same = abs(expected - self.expected) < LEAST_GROWTH and abs(gap - self.gap) < LEAST_GROWTH
        return self if is_same else _Doubt(expected, gap)


class _NewestReply(NamedTuple):
    """The newest reply of the model, which may consist of several messages: its estimated size and its usage."""

    id: str
    start: int
    size: int = 0
    thinking: int = 0
    has_thinking: bool = False
    """Whether the messages of the reply contain thinking.

    If the messages contain no thinking, the thinking tokens in the usage are not part of the next request.
    """
    usage: Usage = Usage()

    @property
    def reported(self) -> int:
        """The number of tokens that the reply adds to the next prompt, taken from its usage; 0 if there is no usable
        figure.
        """
        output = self.usage.output - (0 if self.has_thinking else self.usage.reasoning)
        return output if output >= PLACEHOLDER_SHARE * self.size else 0

    @property
    def thinking_tokens(self) -> int:
        """The number of thinking tokens in the reply that the next request sends back."""
        return (self.usage.reasoning or self.thinking) if self.has_thinking else 0


@dataclass(slots=True, kw_only=True)
class Gauge:
    """Measures the size of a request that would be sent now.

    `add` returns a new gauge; its time does not depend on the number of messages. The class is not frozen, because a
    gauge is made for every message, and a frozen object takes several times as long to create.

    >>> from foldline.message import assistant, user
    >>> gauge = Gauge().add(user("Hello"), 10).add(assistant("Hi"), 6)
    >>> print(gauge.count, gauge.count.source)
    ~16 16 estimated
    """

    anchor: Anchor | None = None
    calibration: Calibration = Calibration()
    messages: int = 0
    total: int = 0
    """Estimated tokens of the whole view without the newest reply."""
    estimated: int = 0
    """The part of `total` that is only estimated, because neither the anchor nor an output figure includes it."""
    reported: int = 0
    """Tokens of the replies after the anchor, from their output figures."""
    reply: _NewestReply | None = None
    thinking: int = 0
    """Tokens of thinking in the current turn."""
    stale_thinking: int = 0
    """Tokens of thinking in earlier turns that are part of the current size."""
    past_thinking: int = 0
    """Tokens of thinking in all earlier turns."""
    doubt: _Doubt | None = None
    """The last usage figure, if it was doubted; otherwise None."""

    def add(
        self, message: Message, tokens: int, *, thinking: int = 0, evidence: Evidence | None = SAME_REQUEST
    ) -> Gauge:
        """The gauge with one more message.

        `tokens` is the estimated size of the message; `thinking` is the size of its thinking. If the message has a
        usage figure, `evidence` is the difference between the view and the request that the figure measured. `evidence`
        is None if this view did not grow from the view that the figure measured.
        """
        gauge = self._append(message, tokens, thinking)
        usage = message.meta.usage
        if gauge.reply is None or usage is None or usage.prompt <= 0 or evidence is None:
            return gauge
        reply = gauge.reply
        if not evidence.is_own:
            if gauge.anchor is None:
                sent = gauge._sent_tokens(evidence)
                size = usage.prompt + evidence.change
                gauge.calibration = gauge.calibration.with_figure(size, sent, OTHER_TOKENIZER)
            return gauge
        if evidence.missing:  # the reply's own earlier messages are not missing
            missing = max(evidence.missing - (self.messages - reply.start), 0)
            tokens = max(evidence.missing_tokens - (reply.size - tokens), 0) if missing else 0
            evidence = Evidence(missing, tokens, evidence.change)
            if gauge.anchor is not None and reply.start - missing < gauge.anchor.messages:
                return gauge  # a later request has been measured
        gauge._take_usage(usage, reply, message.meta.model, evidence)
        return gauge

    def after_fold(self, view: Iterable[tuple[Message, int]]) -> Gauge:
        """The gauge for the messages of a new view, with the same calibration.

        The usage of the replies in that view is ignored.
        """
        gauge = Gauge(calibration=self.calibration)
        for message, tokens in view:
            gauge = gauge._append(message, tokens, 0)
        return gauge._settle()

    @property
    def is_anchored(self) -> bool:
        """Whether the size is based on usage."""
        return self.anchor is not None

    @property
    def tokens(self) -> int:
        """The likeliest size of a request that would be sent now."""
        return self._settle()._expected()

    @property
    def upper(self) -> int:
        """The size to check against a limit. The estimator's margin is added to the estimated part."""
        gauge = self._settle()
        estimated = gauge._estimate()
        change = abs(gauge.anchor.change) if gauge.anchor is not None else 0
        return gauge._expected() - estimated + with_margin(estimated) + with_margin(change) - change

    @property
    def count(self) -> Count:
        """The size of a request that would be sent now, with the source of the figure as text."""
        gauge = self._settle()
        estimated = gauge._estimate()
        if gauge.anchor is None:
            source = f"{estimated:,} estimated"
        else:
            source = f"usage of reply {gauge.anchor.messages}"
            source += f" {gauge.anchor.change:+,} changed since" if gauge.anchor.change else ""
            source += f" + {gauge.reported:,} of output" if gauge.reported else ""
            source += f" + {estimated:,} estimated" if estimated else ""
        return Count(gauge._expected(), False, source)

    def _append(self, message: Message, tokens: int, thinking: int) -> Gauge:
        gauge = self._copy()
        gauge.messages += 1
        if message.role == "assistant":
            reply = self.reply
            if reply is None or not reply.id or reply.id != message.meta.reply:
                gauge._settle_reply()
                reply = _NewestReply(message.meta.reply, self.messages)
            has_thinking = reply.has_thinking or any(isinstance(part, Thinking) for part in message.parts)
            gauge.reply = _NewestReply(
                reply.id, reply.start, reply.size + tokens, reply.thinking + thinking, has_thinking, reply.usage
            )
            return gauge
        gauge._settle_reply()
        gauge.total += tokens
        gauge.estimated += tokens
        if gauge.thinking and message.is_prompt:
            gauge.stale_thinking += gauge.thinking
            gauge.past_thinking += gauge.thinking
            gauge.thinking = 0
        return gauge

    def _copy(self) -> Gauge:
        return Gauge(
            anchor=self.anchor,
            calibration=self.calibration,
            messages=self.messages,
            total=self.total,
            estimated=self.estimated,
            reported=self.reported,
            reply=self.reply,
            thinking=self.thinking,
            stale_thinking=self.stale_thinking,
            past_thinking=self.past_thinking,
            doubt=self.doubt,
        )

    def _settle(self) -> Gauge:
        """The gauge with the newest reply counted as part of the next prompt."""
        if self.reply is None:
            return self
        gauge = self._copy()
        gauge._settle_reply()
        return gauge

    def _settle_reply(self) -> None:
        """Count the newest reply as part of the next prompt. This changes the gauge, so call it on a copy."""
        reply = self.reply
        if reply is None:
            return
        reported = reply.reported
        self.reply = None
        self.total += reply.size
        self.estimated += 0 if reported else reply.size
        self.reported += reported
        self.thinking += reply.thinking_tokens

    def _estimate(self) -> int:
        if self.anchor is None:
            return self.calibration.hidden + round(self.calibration.ratio * self.total)
        return round(self.calibration.ratio * self.estimated)

    def _expected(self) -> int:
        """The expected size of the prompt before the newest reply."""
        if self.anchor is None:
            return self._estimate()
        left = self.stale_thinking if self.calibration.drops_thinking else 0
        return max(self.anchor.tokens + self.anchor.change + self.reported + self._estimate() - left, 0)

    def _take_usage(self, usage: Usage, reply: _NewestReply, model: str, evidence: Evidence) -> None:
        """Make the usage of the newest reply the anchor if that figure is trusted; otherwise remember it as doubted.

        This changes the gauge, so call it on a copy.
        """
        missing = round(self.calibration.ratio * evidence.missing_tokens)
        expected = max(self._expected() - missing - evidence.change, 0)
        twice = self._tokens_counted_twice(usage, expected)
        if twice and self.anchor is None:
            self._doubt_figure(expected, usage.prompt - expected)
            return
        prompt = usage.prompt - twice
        gap = prompt - expected
        plausible = self._is_plausible(prompt, expected, model, evidence)
        if not plausible and not self._is_confirmed(prompt, expected, evidence):
            self._doubt_figure(expected, gap)
            return
        self.calibration = self._calibrate(prompt, model, plausible, evidence)
        self.anchor = Anchor(
            tokens=prompt, messages=reply.start - evidence.missing, model=model, change=evidence.change
        )
        self.estimated = evidence.missing_tokens
        self.reported = self.stale_thinking = 0
        self.reply = reply._replace(usage=usage)
        self.doubt = None

    def _sent_tokens(self, evidence: Evidence) -> int:
        """Estimated size in tokens of the messages in the request that the usage figure measured."""
        dropped = self.past_thinking if self.calibration.drops_thinking else 0
        return max(self.total - evidence.missing_tokens - dropped, 0)

    def _doubt_figure(self, expected: int, gap: int) -> None:
        """Remember a figure that is not trusted. This changes the gauge, so call it on a copy."""
        self.doubt = _Doubt(expected, gap) if self.doubt is None else self.doubt.followed_by(expected, gap)

    def _tokens_counted_twice(self, usage: Usage, expected: int) -> int:
        """The number of cached tokens that the figure counts twice; 0 if none are.

        If the figure exceeds the expected size by just the number of cached tokens, they were counted twice. Before the
        first trusted figure, the excess may also be tokens that the provider adds and caches. So until then, the answer
        is 0 if the cached tokens are less than `WHOLE_SHARE` of the expected size.
        """
        gap, doubtful = usage.prompt - expected, SLACK // 2 + round(MARGIN * self._estimate())
        if gap <= doubtful:
            return 0
        for cached in {usage.cache_read, usage.cache_write, usage.cache_read + usage.cache_write}:
            if not 0 < cached <= expected + doubtful or abs(gap - cached) > doubtful:
                continue
            if self.anchor is not None or cached >= WHOLE_SHARE * expected:
                return cached
        return 0

    def _is_plausible(self, prompt: int, expected: int, model: str, evidence: Evidence) -> bool:
        """False if a figure is so far from the expected size that it is not trusted yet.

        Before any figure is trusted, a figure may be higher by up to `MOST_HIDDEN` tokens plus the estimate of the
        messages, because the number of hidden tokens is not known yet.
        """
        if self.anchor is None:
            return self._is_enough(prompt, evidence) and prompt - expected <= MOST_HIDDEN + self._estimate()
        gap, allowed = prompt - expected, SLACK + (DRIFT if model == self.anchor.model else JUMP) * expected
        if -allowed <= gap <= allowed:
            return True
        estimated = self._estimate()
        counts_twice = abs(gap - self.anchor.tokens) <= SLACK // 2 + MARGIN * estimated
        return self.doubt is None and not counts_twice and 0 < gap <= allowed + estimated

    def _is_confirmed(self, prompt: int, expected: int, evidence: Evidence) -> bool:
        """Whether the last doubted figure deviated by the same amount, and this one is high enough for all messages."""
        confirmed = self.doubt is not None and self.doubt.is_confirmed_by(expected, prompt - expected)
        return confirmed and self._is_enough(prompt, evidence)

    def _is_enough(self, prompt: int, evidence: Evidence) -> bool:
        """False if a figure is far below the estimate of the messages.

        For example, a figure may lack the cached tokens.
        """
        return prompt >= (1 - JUMP) * self.calibration.ratio * (self.total - evidence.missing_tokens) - SLACK

    def _calibrate(self, prompt: int, model: str, plausible: bool, evidence: Evidence) -> Calibration:
        calibration = self.calibration
        if self.anchor is not None and plausible:
            if model != self.anchor.model or evidence.change != self.anchor.change:
                return calibration
            estimated = self.estimated - evidence.missing_tokens
            kept = self.anchor.tokens + self.reported + round(calibration.ratio * estimated)
            if self.stale_thinking > NOTICEABLE:
                drops = abs(prompt - kept) > abs(prompt - kept + self.stale_thinking)
                return replace(calibration, drops_thinking=drops)
            if self.stale_thinking or estimated <= 0:
                return calibration
            calibration = calibration.with_step(prompt - self.anchor.tokens - self.reported, estimated)
        return calibration.with_figure(prompt + evidence.change, self._sent_tokens(evidence))
