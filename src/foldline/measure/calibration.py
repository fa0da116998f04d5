"""Corrections of the estimate that are learned from usage figures.

The corrections describe the provider and its tokenizer, not one view. So they are stored with a fold and used after
the fold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from foldline.measure.estimator import MARGIN

CREDIT = 2_000
"""The initial value of the two sums whose quotient is the ratio (`Calibration.reported` and `estimated`), in tokens.

With this initial value, a few small measurements change the ratio only a little.
"""
DECAY = 0.95
"""With each new measurement, the weights of all earlier measurements are multiplied by this factor.

So newer measurements count more.
"""
RATIO = (0.5, 2.0)
"""Lowest and highest ratio that one measurement can contribute. A ratio outside this range is set to the nearer limit.

A single ratio outside this range is caused by a change of the hidden tokens, not by the tokenizer. If several figures
in a row agree on such a ratio (`with_ratio`), that ratio is the upper limit.
"""
SURE = 0.03
"""The smallest uncertainty of the ratio, as a share.

Even many measurements do not reduce the uncertainty further, because the next content may be of another kind.
"""
OTHER_TOKENIZER = 0.5
"""The uncertainty of an estimate, as a share, if it is compared with a usage figure of another model.

The other model may have another tokenizer.
"""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Corrections of the estimate, learned from usage.

    These corrections describe the provider, so they stay valid after a fold. `ratio` corrects the estimator. It is
    learned only from the growth between two requests, because a whole request also has tokens that the estimator does
    not see (`hidden`).
    """

    reported: float = CREDIT
    """Sum of the reported tokens of all measurements. Older measurements have less weight."""
    estimated: float = CREDIT
    """Sum of the estimates for the measurements that `reported` sums up, with the same weights."""
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
    def supported_ratio(self) -> float:
        """The ratio if it depends more on measurements than on its initial value; otherwise 1."""
        return self.ratio if self.estimated > 2 * CREDIT else 1.0

    @property
    def uncertainty(self) -> float:
        """How wrong an estimate may be after it was corrected by the ratio, as a share of the estimate."""
        return max(MARGIN * CREDIT / self.estimated, SURE)

    def with_figure(self, tokens: int, estimated: int, uncertainty: float | None = None) -> Calibration:
        """The calibration after one more usage figure.

        `tokens` is the figure, and `estimated` is the estimated size of the messages in the request. The number of
        hidden tokens is changed only if an error of the estimate cannot explain the difference between `tokens` and
        `estimated`.
        """
        messages = self.ratio * estimated
        band = messages * (self.uncertainty if uncertainty is None else uncertainty)
        gap = tokens - self.hidden - messages
        if -band <= gap <= band:
            return self
        hidden = max(self.hidden + round(gap - band if gap > 0 else gap + band), 0)
        return Calibration(self.reported, self.estimated, hidden, self.drops_thinking)

    def with_ratio(self, ratio: float) -> Calibration:
        """The calibration with a new ratio, on which several figures agree."""
        return Calibration(ratio * CREDIT, CREDIT, self.hidden, self.drops_thinking)

    def with_step(self, reported: int, estimated: int) -> Calibration:
        """The calibration after one more measurement of some content.

        `reported` is the real size of the content, and `estimated` is its estimated size.
        """
        low, high = RATIO[0], max(RATIO[1], self.ratio)
        clipped = min(max(reported, estimated * low), estimated * high)
        sums = self.reported * DECAY + clipped, self.estimated * DECAY + estimated
        return Calibration(*sums, self.hidden, self.drops_thinking)
