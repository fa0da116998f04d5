"""Reads the usage in session logs that have their own kind of usage object."""

from __future__ import annotations

from typing import Any

from foldline.message import Usage
from foldline.wire.field_access import object_at, pick
from foldline.wire.usage_figures import count_at, reported_usage, usage_with_cache_inside


def codex_usage(value: Any) -> Usage | None:
    """The usage in a Codex `token_count` event (its payload or `info`).

    The returned usage is that of the last call, not the running total.
    """
    if not isinstance(value, dict):
        return None
    last = object_at(object_at(value, "info") or value, "last_token_usage")
    return usage_with_cache_inside(
        prompt=count_at(last, "input_tokens"),
        read=count_at(last, "cached_input_tokens"),
        written=count_at(last, "cache_write_input_tokens"),
        output=count_at(last, "output_tokens"),
        reasoning=count_at(last, "reasoning_output_tokens"),
        total=count_at(last, "total_tokens"),
    )


def pi_usage(value: Any) -> Usage | None:
    """The usage of a pi message, in which the input figure does not include cached tokens."""
    figures = {name: pick(value, name) for name in ("input", "cacheRead", "cacheWrite", "output")}
    return reported_usage(Usage(*(count_at(figures, name) for name in figures)))
