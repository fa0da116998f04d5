"""Checks whether a usage figure can be trusted.

A figure may be for another request, or it may count cached tokens twice or not at all. So each figure is compared with
the size that the request should have had. A figure that deviates too much is doubted until a later figure confirms it.
Hidden tokens are the tokens of a request that belong to no message.
"""

from __future__ import annotations

from typing import NamedTuple

from foldline.measure.estimator import MARGIN
from foldline.message import Usage

MOST_HIDDEN = 150_000
"""If the first figure shows more hidden tokens than this, it is not trusted until another figure
shows the same number.
"""
JUMP = 0.5
"""A figure is never trusted if it is lower than the estimate of the messages by more than this share.

If the model's own tokenizer has counted the messages, the share is `MARGIN`.
"""
DRIFT = 0.2
"""A usage figure is doubted (not trusted yet) if it differs from the expected size by more than this share.

A figure above the expected size may differ by more. The allowed difference then also includes the estimated part of the
expected size. If another model answered, the share is `JUMP`, because that model may have another tokenizer.
"""
SLACK = 1_000
"""A reported size that differs from the expected one by fewer tokens than this is not doubted.

The reason is that very small requests consist mostly of framing, which is hard to predict.
"""
AGREE = 0.2
"""A doubted figure is trusted if an earlier doubted figure deviated by nearly the same amount.

The two deviations may differ by at most this share of the growth between the requests.
"""
LEAST_GROWTH = 100
"""Two doubted figures confirm each other only if the request grew by at least this many tokens between them."""
WHOLE_SHARE = 0.8
"""The smallest number of cached tokens that a first figure may count twice, as a share of the expected size.

A first figure sometimes exceeds the expected size by exactly its cached tokens. If the cached tokens are at least this
share, they were probably counted twice, and the figure is doubted. If the cached tokens are fewer, they may be tokens
that the provider adds.
"""


RUNNING_TOTAL = 0.25
"""The tolerance of the check for running totals, as a share of the size of the request.

A running total of all requests exceeds the last trusted figure by the size of the request. A figure that does so within
this tolerance looks like a running total. A second such figure in a row is not trusted.
"""
STEADY = 0.03
"""A figure may be lower than the lowest possible size (`smallest`) by this share, because counts vary a little."""


def lowest_figure(estimated: float, counted: float) -> float:
    """The lowest trusted figure for a request.

    `estimated` is the estimated size of all its messages. `counted` is the part of this size that the model's own
    tokenizer has counted.
    """
    return max((1 - JUMP) * estimated - SLACK, (1 - MARGIN) * counted - LEAST_GROWTH)


def lowest_first_figure(estimated: float) -> float:
    """The lowest figure that is trusted at once if no figure was trusted before it.

    `estimated` is the estimate of all messages in the request. A lower first figure may lack cached tokens, and no
    earlier figure supports it. If it were used, the next request might not fit the window. So the estimate is used
    until later figures agree with the first one. If the model's own tokenizer has counted the messages, `lowest_figure`
    is enough, because then only the size of media is estimated.
    """
    return (1 - DRIFT) * estimated - SLACK


class Doubt(NamedTuple):
    """A usage figure that was not trusted."""

    expected: int
    """The size that the request should have had."""
    gap: int
    """The usage figure minus the expected size."""
    may_count_twice: bool = True
    """Whether the first figure in the current series of doubted figures may count cached tokens twice."""

    def is_confirmed_by(self, expected: int, gap: int) -> bool:
        """Whether a later figure confirms this figure: the request has grown, but the deviation is about the same.

        The deviation (`gap`) is then the number of hidden tokens, which is constant. The result is False in two cases:

        - The deviation has grown with the request. It comes from tokens that are counted twice.
        - The deviation is about as large as the previous request. The cached tokens are counted twice, or not at all.
        """
        growth = expected - self.expected
        if growth < LEAST_GROWTH or abs(gap - self.gap) > AGREE * growth:
            return False
        return abs(abs(gap) - self.expected) > max(AGREE * growth, DRIFT * self.expected)

    def followed_by(self, expected: int, gap: int) -> Doubt:
        """The doubted figure to remember after one more doubted figure.

        If the two figures are nearly equal, the old figure is returned, otherwise the new figure.
        """
        is_same = abs(expected - self.expected) < LEAST_GROWTH and abs(gap - self.gap) < LEAST_GROWTH
        return self if is_same else Doubt(expected, gap, self.may_count_twice)


class FirstFigure(NamedTuple):
    """A first figure that shows many hidden tokens, and that no second figure has confirmed yet.

    There may really be so many hidden tokens, or the first figure may be wrong. So the first figure alone does not
    cause a fold.
    """

    hidden: int
    """The number of hidden tokens that was known before this figure."""
    expected: int
    """The estimate of the request with these hidden tokens."""
    gap: int
    """The usage figure minus the estimate."""

    uncounted: int = 0
    """The part of that request that the model's own tokenizer cannot count, such as thinking and images."""

    def is_confirmed_by(self, expected: int, gap: int, uncounted: int) -> bool:
        """Whether a later figure, for a longer request, shows about the same number of hidden tokens.

        If the figures are wrong by a constant factor, the later figure shows more hidden tokens, because the request
        has grown. `uncounted` is the part of the growth that the model's own tokenizer cannot count, such as thinking
        and images. The real size of this part may be from 0 to twice this number.
        """
        growth = expected - self.expected
        uncertain = min(max(uncounted, 0), growth)
        return growth >= LEAST_GROWTH and abs(gap - self.gap) <= AGREE * (growth - uncertain) + uncertain


class Expectation(NamedTuple):
    """The size that a request should have had, and other values for the check of its usage figure."""

    tokens: int
    """The expected size of the request."""
    estimated: int
    """The part of the view that is only estimated, in tokens."""
    messages: float
    """Estimated tokens of the messages in the request, without thinking of earlier turns.

    The estimate is corrected by the learned ratio if the ratio is above 1.
    """
    lowest: float
    """The lowest trusted figure: a lower one lacks a part of the messages (see `lowest_figure`)."""
    anchor: int | None
    """The last trusted figure; None if no figure was trusted yet."""
    smallest: int
    """The lowest possible size of the request: the last trusted figure minus what may have been removed since then."""
    added: int
    """Tokens that were added since the last trusted figure."""
    totals: int
    """How many figures directly before this one look like running totals."""
    same_model: bool
    """Whether this figure and the last trusted figure come from the same model."""
    doubt: Doubt | None
    """The previous figure, if it was doubted."""
    lowest_first: float
    """The lowest figure that is trusted at once if no figure was trusted yet (see `lowest_first_figure`)."""

    def tokens_counted_twice(self, usage: Usage) -> int:
        """The number of cached tokens that a figure counts twice.

        If the figure exceeds the expected size by just the number of cached tokens, they were counted twice. There is
        one exception: no figure has been trusted yet, and the cached tokens are less than `WHOLE_SHARE` of the expected
        size. They may then be tokens that the provider adds, so the result is 0.
        """
        gap, doubtful = usage.prompt - self.tokens, SLACK // 2 + round(MARGIN * self.estimated)
        if gap <= doubtful:
            return 0
        for cached in {usage.cache_read, usage.cache_write, usage.cache_read + usage.cache_write}:
            if not 0 < cached <= self.tokens + doubtful or abs(gap - cached) > doubtful:
                continue
            if self.anchor is not None or cached >= WHOLE_SHARE * self.tokens:
                return cached
        return 0

    def is_plausible(self, prompt: int) -> bool:
        """False if a figure is so far from the expected size that it is not trusted yet.

        Before any figure is trusted, the number of hidden tokens is not known. So a figure may then exceed the expected
        size by up to `MOST_HIDDEN` tokens plus the estimate of the messages (see `FirstFigure`). A figure below
        `lowest_first` is doubted until later figures agree with it.
        """
        gap = prompt - self.tokens
        if self.anchor is None:
            is_enough = self.is_enough(prompt) and prompt >= self.lowest_first
            return is_enough and gap <= MOST_HIDDEN + self.estimated
        if not self.is_enough(prompt) or (self.totals and self.looks_like_total(prompt)):
            return False
        if self.same_model and prompt < (1 - STEADY) * self.smallest - LEAST_GROWTH:
            return False
        allowed = self.surprise if self.same_model else SLACK + JUMP * self.tokens
        if -allowed <= gap <= allowed:
            return True
        return self.doubt is None and not self.may_count_twice(prompt) and 0 < gap <= allowed + self.estimated

    def may_count_twice(self, prompt: int) -> bool:
        """Whether a figure may count the cached tokens of the last request twice.

        This is so in two cases: no figure was trusted yet, or the difference between the figure and the expected size
        is about as large as the last trusted figure.
        """
        if self.anchor is None:
            return True
        return abs(prompt - self.tokens - self.anchor) <= SLACK // 2 + MARGIN * self.estimated

    @property
    def surprise(self) -> float:
        """The largest difference from the expected size that is accepted without a second figure."""
        return SLACK + DRIFT * self.tokens

    def is_confirmed(self, prompt: int) -> bool:
        """Whether the last doubted figure confirms this figure, and this figure is not too low for the messages."""
        confirmed = self.doubt is not None and self.doubt.is_confirmed_by(self.tokens, prompt - self.tokens)
        return confirmed and self.is_enough(prompt)

    def is_enough(self, prompt: int) -> bool:
        """False if a figure is far below the size of the messages.

        For example, a figure may lack the cached tokens, or the provider has truncated the request.
        """
        return prompt >= self.lowest

    def looks_like_total(self, prompt: int) -> bool:
        """Whether a figure looks like a running total of all requests.

        A running total exceeds the last trusted figure by the size of the whole request. A correct figure exceeds
        the last trusted figure only by the growth of the request.
        """
        is_as_expected = prompt - self.tokens <= SLACK // 5
        if self.anchor is None or is_as_expected or self.added >= (1 - RUNNING_TOTAL) * self.messages:
            return False
        return abs(prompt - self.anchor - self.messages) <= RUNNING_TOTAL * self.messages + SLACK // 5

    def doubt_about(self, prompt: int) -> Doubt:
        """The doubt to remember after this figure was not trusted.

        If there is an earlier doubt, the result depends on it.
        """
        gap = prompt - self.tokens
        if self.doubt is None:
            return Doubt(self.tokens, gap, self.may_count_twice(prompt))
        return self.doubt.followed_by(self.tokens, gap)
