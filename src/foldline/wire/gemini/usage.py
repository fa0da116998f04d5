"""Reads the usage of Gemini replies.

The prompt figure of a reply includes cached tokens; the output figure does not include thoughts.
"""

from __future__ import annotations

from typing import Any

from foldline.message import Usage
from foldline.wire.usage_figures import count_at, usage_with_cache_inside


def gemini_usage(value: Any) -> Usage | None:
    """Usage of a Gemini reply (`usageMetadata`), in the API's camel case or the Python SDK's snake case."""
    if not isinstance(value, dict):
        return None
    thoughts = _either(value, "thoughtsTokenCount", "thoughts_token_count")
    return usage_with_cache_inside(
        prompt=_either(value, "promptTokenCount", "prompt_token_count")
        + _either(value, "toolUsePromptTokenCount", "tool_use_prompt_token_count"),
        read=_either(value, "cachedContentTokenCount", "cached_content_token_count"),
        written=0,
        output=_either(value, "candidatesTokenCount", "candidates_token_count") + thoughts,
        reasoning=thoughts,
        total=_either(value, "totalTokenCount", "total_token_count"),
    )


def _either(value: dict[str, Any], *keys: str) -> int:
    return next((found for key in keys if (found := count_at(value, key))), 0)
