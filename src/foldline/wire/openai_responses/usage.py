"""Usage of OpenAI Responses replies, which report cached tokens inside the input figure."""

from __future__ import annotations

from typing import Any

from foldline.message import Usage
from foldline.wire.field_access import object_at
from foldline.wire.usage_figures import count_at, usage_with_cache_inside


def responses_usage(value: Any) -> Usage | None:
    """Usage of an OpenAI Responses reply."""
    if not isinstance(value, dict):
        return None
    details = object_at(value, "input_tokens_details")
    return usage_with_cache_inside(
        prompt=count_at(value, "input_tokens"),
        read=count_at(details, "cached_tokens"),
        written=count_at(details, "cache_write_tokens"),
        output=count_at(value, "output_tokens"),
        reasoning=count_at(object_at(value, "output_tokens_details"), "reasoning_tokens"),
    )
