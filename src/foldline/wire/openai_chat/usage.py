"""Reads the usage of OpenAI chat replies. The prompt figure of a reply includes cached tokens."""

from __future__ import annotations

from typing import Any

from foldline.message import Usage
from foldline.wire.field_access import object_at
from foldline.wire.usage_figures import count_at, usage_with_cache_inside


def chat_usage(value: Any) -> Usage | None:
    """Usage of a Chat Completions reply from OpenAI or from a server that imitates it."""
    return openai_usage(value, "prompt_tokens", "completion_tokens", "prompt_cache_hit_tokens")


def openai_usage(value: Any, prompt: str, output: str, read: str = "") -> Usage | None:
    """The usage in the usage object of a reply; None if `value` is not an object.

    `prompt` and `output` are the keys of the prompt figure and of the output figure. `read` is the key under which some
    servers report cached tokens. OpenAI's own key for cached tokens is read first.
    """
    if not isinstance(value, dict):
        return None
    details = object_at(value, f"{prompt}_details")
    return usage_with_cache_inside(
        prompt=count_at(value, prompt),
        read=count_at(details, "cached_tokens") or count_at(value, read),
        written=count_at(details, "cache_write_tokens"),
        output=count_at(value, output),
        reasoning=count_at(object_at(value, f"{output}_details"), "reasoning_tokens"),
        total=count_at(value, "total_tokens"),
    )
