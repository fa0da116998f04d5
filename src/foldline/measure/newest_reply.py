"""The newest reply of a model, and how many tokens it adds to the next request."""

from __future__ import annotations

from typing import NamedTuple

from foldline.message import Usage

PLACEHOLDER_SHARE = 0.7
"""An output figure below this share of the reply's estimate is ignored.

Claude Code logs such placeholder figures.
"""
LONGEST_OUTPUT, OUTPUT_SLACK = 2.0, 200
"""An output figure is ignored if it exceeds `LONGEST_OUTPUT` times the reply's estimate, plus `OUTPUT_SLACK` tokens.

If the reply contains thinking, its reported thinking tokens are added to this limit. If they are not reported,
`MOST_THINKING` is added.
"""
MOST_THINKING = 128_000
"""No reply has more tokens of thinking than this."""


class NewestReply(NamedTuple):
    """The estimated size and the usage of the model's newest reply, which may consist of several messages."""

    id: str
    start: int
    size: int = 0
    thinking: int = 0
    has_thinking: bool = False
    """Whether the messages of the reply contain thinking.

    If the messages contain no thinking, the thinking tokens in the usage are not part of the next request.
    """
    usage: Usage = Usage()
    uncounted: int = 0
    """The part of `size` that a tokenizer cannot count, such as thinking. It is 0 if the counter is no tokenizer."""

    @property
    def reported(self) -> int:
        """The number of tokens that the reply adds to the next prompt, taken from its usage; 0 if there is no usable
        figure.
        """
        usage, most = self.usage, LONGEST_OUTPUT * self.size + OUTPUT_SLACK
        if not self.has_thinking:
            output = usage.output - usage.reasoning
        else:
            output = usage.output
            most += min(usage.reasoning or MOST_THINKING, MOST_THINKING)
        return output if PLACEHOLDER_SHARE * self.size <= output <= most else 0

    @property
    def thinking_tokens(self) -> int:
        """The number of thinking tokens of the reply that are sent again in the next request."""
        return (self.usage.reasoning or self.thinking) if self.has_thinking else 0
