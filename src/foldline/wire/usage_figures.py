"""Converts the token counts of a provider's usage object to a `Usage`; shared by the formats.

OpenAI and Gemini include cached tokens in the input figure; Anthropic and pi do not. So one rule for all formats would
count cached tokens twice or not at all. In `Usage` the three input figures never overlap, and their sum is the number
of input tokens in the window. Nulls, texts, negative numbers and absurdly large numbers count as 0. No function of this
module raises. If no figure is above 0, the result is None.
"""

from __future__ import annotations

from typing import Any

from foldline.message import Usage

_LARGEST = 2**53
"""The largest number that is accepted as a token count; JSON readers may round larger ones."""


def usage_with_cache_inside(  # noqa: PLR0913 (all are keyword-only)
    *, prompt: int, read: int, written: int, output: int, reasoning: int, total: int = 0
) -> Usage | None:
    """Usage of a server that includes the cached tokens in the prompt figure.

    If the prompt figure is smaller than the cached tokens (`read` and `written`), it cannot include them. Then there
    are two cases:

    - If `prompt` is 0, or if a given `total` is too small to include the cached tokens, the cached tokens are ignored.
    - Otherwise, the cached tokens are added to the prompt.
    """
    fresh = prompt - read - written
    if fresh < 0 and (not prompt or 0 < total < prompt + read + written + output):
        fresh, read, written = prompt, 0, 0
    return reported_usage(Usage(prompt if fresh < 0 else fresh, read, written, output, reasoning))


def reported_usage(usage: Usage) -> Usage | None:
    """The usage with the reasoning tokens limited to the output tokens; None if prompt and output are 0."""
    if not (usage.prompt or usage.output):
        return None
    return usage if usage.reasoning <= usage.output else usage._replace(reasoning=usage.output)


def count_at(value: dict[str, Any], key: str) -> int:
    """The token count under `key`, which may be a float without a fraction; 0 for anything else."""
    found = value.get(key)
    if type(found) is not int:
        found = int(found) if type(found) is float and found.is_integer() else 0
    return found if 0 < found <= _LARGEST else 0
