"""Provider usage as one `Usage`, because every provider counts its prompt in another way.

Anthropic and pi report cached tokens beside the input figure, OpenAI and Gemini inside it; adding them up blindly
either doubles the prompt or halves it. Here the three input figures never overlap, and their sum is what fills the
window. A usage object is a stranger's: nulls, texts, negative and absurd numbers count as 0, and nothing raises. A
report without a single figure above 0 is no report, so it gives None.
"""

from __future__ import annotations

from typing import Any

from foldline.message import Usage

_LARGEST = 2**53
"""Above this a number is not a token count; JSON readers elsewhere would not even hold it exactly."""


def anthropic_usage(value: Any) -> Usage | None:
    """Usage of an Anthropic reply: what stood in the window at its last sampling.

    A server-side tool loop samples several times and its top-level figures are sums over the loop; the window then
    held what the last `message` iteration says. A compaction pass is a request of its own and never counts.
    """
    if not isinstance(value, dict):
        return None
    last = _last_iteration(value) if "iterations" in value else value
    fresh, read = _count(last, "input_tokens"), _count(last, "cache_read_input_tokens")
    written, output = _count(last, "cache_creation_input_tokens"), _count(last, "output_tokens")
    hour = thought = 0
    created, details = last.get("cache_creation"), value.get("output_tokens_details")
    if created and isinstance(created, dict):
        hour = _count(created, "ephemeral_1h_input_tokens")
        written = max(written, hour + _count(created, "ephemeral_5m_input_tokens"))
    if details and isinstance(details, dict):
        thought = min(_count(details, "thinking_tokens"), output)
    return Usage(fresh, read, written, output, thought, hour) if fresh or read or written or output else None


def chat_usage(value: Any) -> Usage | None:
    """Usage of an OpenAI Chat Completions reply, and of the many servers that imitate it."""
    if not isinstance(value, dict):
        return None
    details = _dict(value, "prompt_tokens_details")
    return _inclusive(
        prompt=_count(value, "prompt_tokens"),
        read=_count(details, "cached_tokens") or _count(value, "prompt_cache_hit_tokens"),
        written=_count(details, "cache_write_tokens"),
        output=_count(value, "completion_tokens"),
        reasoning=_count(_dict(value, "completion_tokens_details"), "reasoning_tokens"),
    )


def responses_usage(value: Any) -> Usage | None:
    """Usage of an OpenAI Responses reply."""
    if not isinstance(value, dict):
        return None
    details = _dict(value, "input_tokens_details")
    return _inclusive(
        prompt=_count(value, "input_tokens"),
        read=_count(details, "cached_tokens"),
        written=_count(details, "cache_write_tokens"),
        output=_count(value, "output_tokens"),
        reasoning=_count(_dict(value, "output_tokens_details"), "reasoning_tokens"),
    )


def codex_usage(value: Any) -> Usage | None:
    """Usage of a Codex `token_count` event (the payload, or its `info`): the last call, never the running total."""
    if not isinstance(value, dict):
        return None
    last = _dict(_dict(value, "info") or value, "last_token_usage")
    return _inclusive(
        prompt=_count(last, "input_tokens"),
        read=_count(last, "cached_input_tokens"),
        written=_count(last, "cache_write_input_tokens"),
        output=_count(last, "output_tokens"),
        reasoning=_count(last, "reasoning_output_tokens"),
    )


def gemini_usage(value: Any) -> Usage | None:
    """Usage of a Gemini reply (`usageMetadata`), in the API's camel case or the Python SDK's snake case."""
    if not isinstance(value, dict):
        return None
    thoughts = _either(value, "thoughtsTokenCount", "thoughts_token_count")
    return _inclusive(
        prompt=_either(value, "promptTokenCount", "prompt_token_count")
        + _either(value, "toolUsePromptTokenCount", "tool_use_prompt_token_count"),
        read=_either(value, "cachedContentTokenCount", "cached_content_token_count"),
        written=0,
        output=_either(value, "candidatesTokenCount", "candidates_token_count") + thoughts,
        reasoning=thoughts,
    )


def pi_usage(value: Any) -> Usage | None:
    """Usage of a pi session entry, which pi has taken apart already."""
    if not isinstance(value, dict):
        return None
    return _reported(
        Usage(
            input=_count(value, "input"),
            cache_read=_count(value, "cacheRead"),
            cache_write=_count(value, "cacheWrite"),
            output=_count(value, "output"),
        )
    )


def _last_iteration(value: dict[str, Any]) -> dict[str, Any]:
    iterations = value.get("iterations")
    if isinstance(iterations, list):
        for entry in reversed(iterations):
            if isinstance(entry, dict) and entry.get("type") in ("message", "fallback_message"):
                return entry
    return value


def _inclusive(*, prompt: int, read: int, written: int, output: int, reasoning: int) -> Usage | None:
    """Usage where the cached tokens are inside the prompt figure.

    More cached than there is prompt can only mean that this server reports them beside it.
    """
    inside = read + written
    return _reported(
        Usage(
            input=prompt - inside if inside <= prompt else prompt,
            cache_read=read,
            cache_write=written,
            output=output,
            reasoning=reasoning,
        )
    )


def _reported(usage: Usage) -> Usage | None:
    """The report, with no share above its whole; None when it reports nothing."""
    if not (usage.prompt or usage.output):
        return None
    if usage.reasoning <= usage.output:
        return usage
    return usage._replace(reasoning=usage.output)


def _either(value: dict[str, Any], *keys: str) -> int:
    return next((found for key in keys if (found := _count(value, key))), 0)


def _dict(value: dict[str, Any], key: str) -> dict[str, Any]:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _count(value: dict[str, Any], key: str) -> int:
    """A token count, or 0 for whatever else stands there (a whole float is a count: JSON does not tell them apart)."""
    found = value.get(key)
    if type(found) is not int:
        found = int(found) if type(found) is float and found.is_integer() else 0
    return found if 0 < found <= _LARGEST else 0
