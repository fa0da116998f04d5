"""Decides when several usage figures that agree with each other count more than the estimate.

The estimate of odd content can be far too low, for example that of a table of single digits. Every correct figure then
looks too high, and a check of single figures would doubt all of them. But it is dangerous to ignore figures that are
too high, because the next request may not fit the window. So the growth from one figure to the next is compared with
the estimated growth:

| cause of the high figures | growth of the figure | its ratio to the estimated growth |
|---|---|---|
| the estimate is too low | growth of the request, times a factor | the same in every step |
| cached tokens are counted twice | growth of this request plus growth of the request before | depends on both steps |
| a running total of all requests | size of the whole request | rises with every step |
| the figure is of something else | no pattern | no pattern; it may be above `MOST` |

The estimate is wrong if three growths in a row have the same ratio, and the second and the third row of the table do
not explain the newest growths. Then the newest figure is trusted.

If all steps have the same size and the ratio is about 2, growth cannot tell the first two rows apart. Then the figures
are trusted only if one of two observations proves that cached tokens are not counted twice:

- The first doubted figure is too high, but not by the size of the previous request. If cached tokens are counted twice,
  the figure is too high by just this size.
- The cached tokens are more than half of the figure. If cached tokens are counted twice, they are at most half of it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from foldline.measure.estimator import MARGIN
from foldline.measure.usage_checks import AGREE, LEAST_GROWTH, RUNNING_TOTAL

LEAST, MOST = 0.5, 4.0
"""Lowest and highest ratio of real to estimated tokens that is accepted from figures that agree with each other.

No text is known for which the estimate is more wrong than this.
"""
LENGTH = 4
"""Number of figures that are compared. Between four figures, there are three growths."""
TWICE = (0.8, 1.25)
"""The tolerance of the check for cached tokens that are counted twice.

The growth of the figures is divided by the growth that such an error would cause. The result must be in this range.
"""


class Figure(NamedTuple):
    """A usage figure, trusted or not, and the estimate of the same request."""

    prompt: int
    estimated: int
    """The estimated tokens of the messages in the request, without any correction."""


class Agreement(NamedTuple):
    """A figure that disagrees with the estimate, but is trusted because it agrees with the figures before it."""

    reported: int
    """The figure."""
    expected: int
    """The size that was expected for the request."""
    ratio: float
    """The number of real tokens per estimated token, according to the figures."""

    @property
    def is_beyond_margin(self) -> bool:
        """Whether the figure differs from the expected size by more than the margin of an estimate."""
        return abs(self.reported - self.expected) > MARGIN * self.expected > 0


class FigureSeries(NamedTuple):
    """The newest figures of one model, oldest first.

    From one figure to the next, the request grew by at least `LEAST_GROWTH`.
    """

    model: str = ""
    figures: tuple[Figure, ...] = ()

    def followed_by(self, figure: Figure, model: str) -> FigureSeries:
        """The series after one more figure.

        If the request has hardly grown, the series stays as it is. If the request has shrunk or another model has
        answered, a new series begins.
        """
        figures, growth = self.figures, figure.estimated - self.figures[-1].estimated if self.figures else 0
        if not figures or model != self.model or growth < 0:
            figures = (figure,)
        elif growth >= LEAST_GROWTH:
            figures = (*figures, figure)[-LENGTH:]
        return FigureSeries(model, figures)

    def agreed_ratio(self, prompt: int, ratio: float, hidden: int, *, may_count_twice: bool) -> float | None:
        """The number of real tokens per estimated token on which the figures agree; None if they do not agree.

        `prompt` is the newest figure. `ratio` and `hidden` are the values that were learned from trusted figures.
        `may_count_twice` is False if it is certain that no cached tokens are counted twice.
        """
        if len(self.figures) < LENGTH or self.figures[-1].prompt != prompt:
            return None
        pairs = list(pairwise(self.figures))
        growths = [newer.prompt - older.prompt for older, newer in pairs]
        steps = [newer.estimated - older.estimated for older, newer in pairs]
        ratios = [growth / step for growth, step in zip(growths, steps, strict=True)]
        if not LEAST <= min(ratios) <= max(ratios) <= MOST or max(ratios) > (1 + AGREE) * min(ratios):
            return None
        size = hidden + ratio * self.figures[-1].estimated
        is_total = abs(growths[-1] - size) <= RUNNING_TOTAL * size
        twice = ratio * (sum(steps[1:]) + sum(steps[:-1]))
        counts_twice = may_count_twice and TWICE[0] * twice <= sum(growths[1:]) <= TWICE[1] * twice
        return None if is_total or counts_twice else sum(growths) / sum(steps)


NO_FIGURES = FigureSeries()
