"""Reads the usage of Anthropic replies. The input figure of a reply does not include cached tokens."""

from __future__ import annotations

from typing import Any

from foldline.message import Usage
from foldline.wire.field_access import list_at
from foldline.wire.usage_figures import count_at


def anthropic_usage(value: Any) -> Usage | None:
    """Usage of an Anthropic reply: the tokens in the window when the model ran for the last time.

    In a server-side tool loop the model runs several times, and the top-level figures are sums over the loop. So the
    figures of the last `message` iteration are used. Compaction iterations are ignored, because a compaction is a
    separate request.
    """
    if not isinstance(value, dict):
        return None
    last = value
    for entry in list_at(value, "iterations") if "iterations" in value else ():  # most replies have no iterations
        if isinstance(entry, dict) and entry.get("type") in ("message", "fallback_message"):
            last = entry
    fresh, read = count_at(last, "input_tokens"), count_at(last, "cache_read_input_tokens")
    written, output = count_at(last, "cache_creation_input_tokens"), count_at(last, "output_tokens")
    hour = thought = 0
    created, details = last.get("cache_creation"), value.get("output_tokens_details")
    if created and isinstance(created, dict):
        hour = count_at(created, "ephemeral_1h_input_tokens")
        written = max(written, hour + count_at(created, "ephemeral_5m_input_tokens"))
    if details and isinstance(details, dict):
        thought = min(count_at(details, "thinking_tokens"), output)
    return Usage(fresh, read, written, output, thought, hour) if fresh or read or written or output else None
