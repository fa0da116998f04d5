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
"""Above this a number is not a token count; JSON readers elsewhere would not even hold it exactly."""


def usage_with_cache_inside(*, prompt: int, read: int, written: int, output: int, reasoning: int) -> Usage | None:
    """Usage where the cached tokens are inside the prompt figure.

    More cached than there is prompt can only mean that this server reports them beside it.
    """
    inside = read + written
    return reported_usage(
        Usage(
            input=prompt - inside if inside <= prompt else prompt,
            cache_read=read,
            cache_write=written,
            output=output,
            reasoning=reasoning,
        )
    )


def reported_usage(usage: Usage) -> Usage | None:
    """The report, with no share above its whole; None when it reports nothing."""
    if not (usage.prompt or usage.output):
        return None
    if usage.reasoning <= usage.output:
        return usage
    return usage._replace(reasoning=usage.output)


def count_at(value: dict[str, Any], key: str) -> int:
    """A token count, or 0 for whatever else stands there (a whole float is a count: JSON does not tell them apart)."""
    found = value.get(key)
    if type(found) is not int:
        found = int(found) if type(found) is float and found.is_integer() else 0
    return found if 0 < found <= _LARGEST else 0
