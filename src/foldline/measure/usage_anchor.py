"""Computes the size of a request: the provider's last trusted usage figure, plus an estimate of the later messages.

An estimate of a whole context is off by several per cent and misses tool schemas. The usage of the last reply is
usually exact and includes tool schemas. But the usage of a reply is for an earlier request, and it is sometimes wrong.
The usage says nothing about a view that did not grow from that request. A `Gauge` receives every message of a view in
order. With each usage figure, the gauge also receives the difference between the measured request and the view
(`Evidence`). A gauge depends on nothing else, so two processes that read the same messages compute the same size.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import inf
from typing import NamedTuple

from foldline.measure.calibration import OTHER_TOKENIZER, Calibration
from foldline.measure.estimator import Count, with_margin
from foldline.measure.figure_series import NO_FIGURES, Agreement, Figure, FigureSeries
from foldline.measure.newest_reply import NewestReply
from foldline.measure.usage_checks import Doubt, Expectation, FirstFigure, lowest_figure, lowest_first_figure
from foldline.message import Message, Text, Thinking, ToolCall, ToolResult, Usage

NOTICEABLE = 256
"""If earlier turns have no more thinking tokens than this, usage does not show whether the provider dropped the
thinking.
"""


class Evidence(NamedTuple):
    """The difference between the current view and the request for which a usage figure was reported."""

    missing: int = 0
    """Number of messages that come before the reply in the current view, but were not in the measured request."""
    missing_tokens: int = 0
    """Estimated tokens of the messages that `missing` counts."""
    change: int = 0
    """The estimated number of tokens by which the tools and the messages of the measured request have grown since then.

    The number is negative if they shrank.
    """
    is_own: bool = True
    """Whether the measured request had the same model, format and counter as the current view.

    If this is False, the figure only shows how many hidden tokens there are.
    """


SAME_REQUEST = Evidence()
"""The evidence if there is no difference: the measured request was the current view up to the reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """A trusted usage figure: the size of a request. The request had the first `messages` messages of this view."""

    tokens: int
    messages: int
    model: str = ""
    change: int = 0
    """The estimated number of tokens by which these messages and the tools have grown since the request.

    The number is negative if they shrank.
    """
    first: FirstFigure | None = None
    """The first figure, if it shows many hidden tokens and no later figure has confirmed them; otherwise None."""


@dataclass(slots=True, kw_only=True)
class Gauge:
    """Measures the size of a request that would be sent now.

    `add` modifies the gauge in place, because a copy for every message would take a tenth of the time of a turn. The
    time of `add` does not depend on the number of messages.

    >>> from foldline.message import assistant, user
    >>> gauge = Gauge().add(user("Hello"), 10).add(assistant("Hi"), 6)
    >>> print(gauge.count, gauge.count.source)
    ~16 16 estimated
    """

    anchor: Anchor | None = None
    calibration: Calibration = field(default_factory=Calibration)
    limit: float = inf
    """The size at which a fold is made.

    A first figure is not used if the size would reach this limit only because of that figure.
    """
    is_exact: bool = False
    """Whether the estimates of plain messages come from the model's own tokenizer."""
    messages: int = 0
    total: int = 0
    """Estimated tokens of the whole view without the newest reply."""
    uncounted: int = 0
    """The part of `total` that a tokenizer cannot count, such as images and encrypted thinking.

    This value is updated only if `is_exact` is set.
    """
    estimated: int = 0
    """The part of `total` that is only estimated, because neither the anchor nor an output figure includes it."""
    reported: int = 0
    """Tokens of the replies after the anchor, from their output figures."""
    reply: NewestReply | None = None
    thinking: int = 0
    """Tokens of thinking in the current turn."""
    estimated_thinking: int = 0
    """Estimated tokens of thinking in the current turn."""
    stale_thinking: int = 0
    """Tokens of thinking in turns that ended after the anchor. They are subtracted if the provider drops thinking."""
    past_thinking: int = 0
    """Estimated tokens of thinking in all earlier turns."""
    doubt: Doubt | None = None
    """The last usage figure, if it was doubted; otherwise None."""
    totals: int = 0
    """The number of newest figures in a row that look like running totals."""
    series: FigureSeries = NO_FIGURES
    """The newest figures, trusted or not. If they agree with each other, they count more than the estimate."""
    agreement: Agreement | None = None
    """The newest figure that was trusted because it agrees with the figures before it; None if there is none."""
    other: Gauge | None = None
    """A gauge that checks the usage figures of requests with another model, format or counter; None if it is not
    needed.

    It is needed only until this gauge has an anchor.
    """
    learned: Calibration | None = None
    """The calibration with the figures that `other` trusts; None if there are none."""

    def add(
        self, message: Message, tokens: int, *, thinking: int = 0, evidence: Evidence | None = SAME_REQUEST
    ) -> Gauge:
        """Add a message, and return this gauge.

        `tokens` is the estimated size of the message; `thinking` is the size of its thinking. If the message has a
        usage figure, `evidence` is the difference between the view and the request that the figure measured. `evidence`
        is None if this view did not grow from the view that the figure measured.
        """
        self._append(message, tokens, thinking)
        if self.other is not None:
            self.other._append(message, tokens, thinking)
        usage, reply = message.meta.usage, self.reply
        if usage is None or reply is None or usage.prompt <= 0 or evidence is None:
            return self
        if evidence.missing:  # `missing` also counts earlier messages of this reply, which are not missing
            missing = max(evidence.missing - (self.messages - 1 - reply.start), 0)
            tokens = max(evidence.missing_tokens - (reply.size - tokens), 0) if missing else 0
            evidence = Evidence(missing, tokens, evidence.change, evidence.is_own)
        if evidence.is_own:
            self._take_usage(usage, reply, message.meta.model, evidence)
        elif self.anchor is None:
            self._take_usage_of_another(usage, reply, message.meta.model, evidence)
        return self

    def after_fold(self, view: Iterable[tuple[Message, int, int]]) -> Gauge:
        """The gauge after a fold: it measures the messages of `view`, and keeps only the calibration of this gauge.

        Each message comes with its estimated size and the size of its thinking. The usage of the replies in `view` is
        ignored, because it measured requests before the fold.
        """
        gauge = Gauge(calibration=self.trusted_calibration, limit=self.limit, is_exact=self.is_exact)
        for message, tokens, thinking in view:
            gauge._append(message, tokens, thinking)
        gauge._settle_reply()
        return gauge

    @property
    def is_anchored(self) -> bool:
        """Whether the size is based on usage."""
        if self.anchor is None or self.anchor.first is None:
            return self.anchor is not None
        return self.trusted().anchor is not None

    @property
    def trusted_calibration(self) -> Calibration:
        """The calibration of the gauge that `trusted` returns."""
        return self.calibration if self.anchor is None or self.anchor.first is None else self.trusted().calibration

    @property
    def tokens(self) -> int:
        """The likeliest size of a request that would be sent now."""
        return self.trusted().sizes()[0]

    @property
    def upper(self) -> int:
        """The size to compare with a limit: the likeliest size, plus the estimator's margin for the estimated part."""
        return self.trusted().sizes()[1]

    @property
    def count(self) -> Count:
        """The size of a request that would be sent now, with the source of the figure as text."""
        return Count(self.tokens, False, self.source)

    @property
    def source(self) -> str:
        """The source of the size, as text: a usage figure, an estimate, or the parts of a sum of both."""
        gauge = self.trusted()
        estimated = gauge._estimate()
        if gauge.anchor is None:
            return f"{estimated:,} estimated"
        source = f"usage of reply {gauge.anchor.messages}"
        source += f" {gauge.anchor.change:+,} changed since" if gauge.anchor.change else ""
        source += f" + {gauge.reported:,} of output" if gauge.reported else ""
        return source + (f" + {estimated:,} estimated" if estimated else "")

    def _append(self, message: Message, tokens: int, thinking: int) -> None:
        uncounted = tokens if self.is_exact and not _is_countable(message) else 0
        if message.role == "assistant":
            reply, meta = self.reply, message.meta
            has_thinking = any(isinstance(part, Thinking) for part in message.parts)
            if reply is not None and reply.id and reply.id == meta.reply:
                tokens, thinking = reply.size + tokens, reply.thinking + thinking
                has_thinking, uncounted = has_thinking or reply.has_thinking, reply.uncounted + uncounted
                self.reply = NewestReply(reply.id, reply.start, tokens, thinking, has_thinking, reply.usage, uncounted)
            else:
                self._settle_reply()
                self.reply = NewestReply(meta.reply, self.messages, tokens, thinking, has_thinking, uncounted=uncounted)
        else:
            self._settle_reply()
            self.total += tokens
            self.uncounted += uncounted
            self.estimated += tokens
            if self.thinking and message.is_prompt:
                self.stale_thinking += self.thinking
                self.past_thinking += self.estimated_thinking
                self.thinking = self.estimated_thinking = 0
        self.messages += 1

    def trusted(self) -> Gauge:
        """A gauge in which the newest reply counts as part of the next prompt.

        An unconfirmed first usage figure (see `FirstFigure`) is ignored if the size would reach `limit` only because of
        it. The size, its source and the calibration are read from the returned gauge. To read several values, call this
        method once.
        """
        gauge = self
        if self.reply is not None:
            gauge = replace(self)
            gauge._settle_reply()
        first = gauge.anchor.first if gauge.anchor is not None else None
        if first is None or gauge.sizes()[0 if self.is_exact else 1] < self.limit:
            return gauge
        gauge = replace(gauge)
        gauge._forget_anchor()
        return gauge

    def _settle_reply(self) -> None:
        """Count the newest reply as part of the next prompt."""
        reply = self.reply
        if reply is None:
            return
        reported = reply.reported
        self.reply = None
        self.total += reply.size
        self.uncounted += reply.uncounted
        self.estimated += 0 if reported else reply.size
        self.reported += reported
        self.thinking += reply.thinking_tokens
        self.estimated_thinking += reply.thinking

    def _estimate(self) -> int:
        if self.anchor is None:
            return self._estimate_all(self.calibration.hidden)
        return round(self.calibration.ratio * self.estimated)

    def _estimate_all(self, hidden: int) -> int:
        """The estimated size of the whole view. `hidden` is the number of tokens that belong to no message."""
        dropped = self.past_thinking if self.calibration.drops_thinking else 0
        return hidden + round(self.calibration.ratio * (self.total - dropped))

    def sizes(self) -> tuple[int, int]:
        """The expected size of the prompt before the newest reply, and this size plus a margin for the estimated part.

        For a request that would be sent now, call this on the gauge that `trusted` returns.
        """
        estimated, anchor = self._estimate(), self.anchor
        if anchor is None:
            return estimated, with_margin(estimated)
        left = self.stale_thinking if self.calibration.drops_thinking else 0
        expected = max(anchor.tokens + anchor.change + self.reported + estimated - left, 0)
        change = abs(anchor.change)
        return expected, expected - estimated + with_margin(estimated) + with_margin(change) - change

    def _take_usage(self, usage: Usage, reply: NewestReply, model: str, evidence: Evidence) -> None:
        """Make the usage of the newest reply the anchor if that figure is trusted; otherwise remember it as doubted."""
        if evidence.missing and self.anchor is not None and reply.start - evidence.missing < self.anchor.messages:
            return  # the anchor is from a later request
        expectation = self._expectation(model, evidence)
        twice = expectation.tokens_counted_twice(usage)
        if twice and self.anchor is None:
            self.doubt = expectation.doubt_about(usage.prompt)
            return
        prompt = usage.prompt - twice
        self.series = self.series.followed_by(Figure(prompt, self._sent_tokens(evidence)), model)
        plausible = expectation.is_plausible(prompt)
        self.totals = self.totals + 1 if expectation.looks_like_total(prompt) else 0
        is_trusted = plausible or expectation.is_confirmed(prompt)
        first = self._first_figure(prompt, expectation, evidence) if plausible else None
        agreement = self._agreement(usage, expectation, evidence) if first is not None or not is_trusted else None
        if agreement is None and not is_trusted:
            if self.doubt is not None and self.doubt.gap < 0 and not expectation.is_enough(prompt):
                self._forget_anchor()
            self.doubt = expectation.doubt_about(prompt)
            return
        if agreement is not None:
            self.agreement, first, plausible = agreement, None, False
            self.calibration = self.calibration.with_ratio(agreement.ratio)
        self.calibration = self._calibrate(prompt, model, plausible, evidence)
        self.anchor = Anchor(
            tokens=prompt,
            messages=reply.start - evidence.missing,
            model=model,
            change=evidence.change,
            first=first,
        )
        self.estimated = evidence.missing_tokens
        self.reported = self.stale_thinking = 0
        self.reply = reply._replace(usage=usage)
        self.doubt = self.other = self.learned = None

    def _agreement(self, usage: Usage, expectation: Expectation, evidence: Evidence) -> Agreement | None:
        """How this figure agrees with the figures before it; None if they do not agree."""
        prompt, doubt, known = usage.prompt, self.doubt, self.calibration
        if self.is_exact or evidence.change or not expectation.is_enough(prompt):
            return None
        may_count_twice = doubt is not None and doubt.may_count_twice and 2 * usage.cache_read <= prompt
        ratio = self.series.agreed_ratio(prompt, known.supported_ratio, known.hidden, may_count_twice=may_count_twice)
        return None if ratio is None else Agreement(prompt, expectation.tokens, ratio)

    def _first_figure(self, prompt: int, expectation: Expectation, evidence: Evidence) -> FirstFigure | None:
        """The `FirstFigure` that is still unconfirmed after the trusted figure `prompt`; None if there is none."""
        if self.anchor is None:
            gap = prompt - expectation.tokens
            is_sure = gap <= expectation.surprise
            return None if is_sure else FirstFigure(self.calibration.hidden, expectation.tokens, gap, self.uncounted)
        first = self.anchor.first
        if first is None:
            return None
        missing = round(self.calibration.ratio * evidence.missing_tokens)
        expected = self._estimate_all(first.hidden) - missing - evidence.change
        uncounted = self.uncounted - first.uncounted if self.is_exact else expected - first.expected
        is_confirmed = first.is_confirmed_by(expected, prompt - expected, uncounted)
        return None if is_confirmed else first

    def _take_usage_of_another(self, usage: Usage, reply: NewestReply, model: str, evidence: Evidence) -> None:
        """Learn the number of hidden tokens from the usage of a request with another model, format or counter.

        Such requests have a gauge of their own (`other`), which decides whether the figure is trusted.
        """
        other = self.other = self.other or replace(self, is_exact=False)
        before = other.anchor
        other._take_usage(usage, reply, model, evidence)
        if other.anchor is not None and other.anchor is not before:
            size, known = other.anchor.tokens + evidence.change, self.learned or self.calibration
            self.learned = known.with_figure(size, self._sent_tokens(evidence), OTHER_TOKENIZER)
            if other.anchor.first is None:
                self.calibration = self.learned

    def _expectation(self, model: str, evidence: Evidence) -> Expectation:
        """The expected size of the request for which the newest usage figure was reported."""
        ratio, anchor = self.calibration.ratio, self.anchor
        left_out = self.stale_thinking + max(anchor.change - evidence.change, 0) if anchor is not None else 0
        estimated = self.total - evidence.missing_tokens - self.past_thinking
        messages = max(ratio, 1.0) * estimated
        counted = self.total - evidence.missing_tokens - self.uncounted if self.is_exact else 0
        return Expectation(
            max(self.sizes()[0] - round(ratio * evidence.missing_tokens) - evidence.change, 0),
            self._estimate(),
            messages,
            lowest_figure(messages, counted),
            None if anchor is None else anchor.tokens,
            0 if anchor is None else anchor.tokens - left_out,
            self.reported + self.estimated - evidence.missing_tokens,
            self.totals,
            anchor is not None and model == anchor.model,
            self.doubt,
            0.0 if self.is_exact else lowest_first_figure(estimated),
        )

    def _forget_anchor(self) -> None:
        """Discard the anchor, so that the whole view is estimated again.

        This is done if the provider's figures lack a part of the request, because earlier figures may have lacked the
        same part.
        """
        known, first = self.calibration, self.anchor.first if self.anchor is not None else None
        hidden = known.hidden if first is None else first.hidden
        self.anchor = None
        self.reported = self.stale_thinking = 0
        self.estimated = self.total
        self.calibration = Calibration(hidden=hidden, drops_thinking=known.drops_thinking)

    def _sent_tokens(self, evidence: Evidence) -> int:
        """Estimated size in tokens of the messages in the request that the usage figure measured."""
        dropped = self.past_thinking if self.calibration.drops_thinking else 0
        return max(self.total - evidence.missing_tokens - dropped, 0)

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


def _is_countable(message: Message) -> bool:
    """Whether a tokenizer can count a whole message: it has only texts, calls, and results that are texts."""
    for part in message.parts:
        if type(part) is ToolResult:
            if any(type(inner) is not Text for inner in part.parts):
                return False
        elif type(part) is not Text and type(part) is not ToolCall:
            return False
    return True
