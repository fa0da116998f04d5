"""Token counts of a provider's usage object as one `Usage`, shared by the formats.

Anthropic and pi report cached tokens beside the input figure, OpenAI and Gemini inside it; adding them up blindly
either doubles the prompt or halves it. In `Usage` the three input figures never overlap, and their sum is what fills
the window. Nulls, texts, negative and absurd numbers count as 0, and nothing raises. A report without a single figure
above 0 gives None.
"""

from __future__ import annotations

from typing import Any

from foldline.message import Usage

_LARGEST = 2**53
"""The largest number that counts as a token count; larger ones are not exact in every JSON reader."""


def usage_with_cache_inside(*, prompt: int, read: int, written: int, output: int, reasoning: int) -> Usage | None:
    """Usage where the cached tokens are inside the prompt figure.

    More cached tokens than prompt tokens mean that this server reports them beside the prompt figure.
    """
    fresh = prompt - read - written
    return reported_usage(Usage(prompt if fresh < 0 else fresh, read, written, output, reasoning))


def reported_usage(usage: Usage) -> Usage | None:
    """The usage with reasoning capped at the output; None if all figures are 0."""
    if not (usage.prompt or usage.output):
        return None
    return usage if usage.reasoning <= usage.output else usage._replace(reasoning=usage.output)


def count_at(value: dict[str, Any], key: str) -> int:
    """The token count under `key`, or 0 for anything else. A float without fraction is a count."""
    found = value.get(key)
    if type(found) is not int:
        found = int(found) if type(found) is float and found.is_integer() else 0
    return found if 0 < found <= _LARGEST else 0
