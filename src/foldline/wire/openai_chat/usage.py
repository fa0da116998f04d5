"""Usage of OpenAI chat replies, which report cached tokens inside the prompt figure."""

from __future__ import annotations

from typing import Any

from foldline.message import Usage
from foldline.wire.field_access import object_at
from foldline.wire.usage_figures import count_at, usage_with_cache_inside


def chat_usage(value: Any) -> Usage | None:
    """Usage of an OpenAI Chat Completions reply, and of the many servers that imitate it."""
    if not isinstance(value, dict):
        return None
    details = object_at(value, "prompt_tokens_details")
    return usage_with_cache_inside(
        prompt=count_at(value, "prompt_tokens"),
        read=count_at(details, "cached_tokens") or count_at(value, "prompt_cache_hit_tokens"),
        written=count_at(details, "cache_write_tokens"),
        output=count_at(value, "completion_tokens"),
        reasoning=count_at(object_at(value, "completion_tokens_details"), "reasoning_tokens"),
    )
