"""Recognises a provider's answer that says that a request does not fit the window.

Every known text is matched exactly enough that another refusal is not taken for it. A rate limit never is one.
"""

from __future__ import annotations

import json
import re
from typing import Any

_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error", "model_max_prompt_tokens_exceeded"})
_TEXTS = re.compile(
    "|".join(
        (
            r"prompt is too long",
            r"input is too long for requested model",
            r"capability_rejected: prompt_too_long",
            r"exceed context limit",
            r"maximum context length is \d+",
            r"exceeds the context window",
            r"input token count \(?[\d,]+\)? exceeds the maximum number of tokens",
            r"exceeds the available context size",
            r"prompt is longer than the context length",
            r"maximum prompt length is \d+",
            r"reduce the length of the messages or completion",
            r"prompt token count of [\d,]+ exceeds the limit",
            r"prompt contains [\d,]+ tokens.{0,80}too large for model",
            r"tokens to keep from the initial prompt is greater than the context length",
            r"exceeded model token limit",
            r"context window exceeds limit",
            r"current length is \d+ while limit is \d+",
            r"contextwindowexceedederror",
        )
    ),
    re.IGNORECASE,
)
_EXCLUDED = re.compile(r"rate limit|too many requests|\A(?:throttling error|service unavailable):", re.IGNORECASE)
_STATUSES = frozenset({400, 413, 422, 500})
"""Statuses of overflows. 500 is that of older llama.cpp servers; it counts only with their own error type."""
MAX_TEXT = 20_000


def is_overflow(status: int, body: bytes) -> bool:
    """Whether an answer says that the request does not fit the window.

    >>> is_overflow(400, b'{"error": {"message": "prompt is too long: 207791 tokens > 200000 maximum"}}')
    True
    >>> is_overflow(429, b'{"error": {"message": "prompt is too long"}}')
    False
    """
    if status not in _STATUSES:
        return False
    error = error_of(body)
    kinds = {error.get("code"), error.get("type")} if error else set()
    if kinds & _CODES:
        return True
    if status == 500:
        return False
    if status == 413:
        return not error or "request_too_large" in kinds
    text = str(error.get("message") or "") if error else body[:MAX_TEXT].decode("utf-8", "replace")
    return bool(_TEXTS.search(text[:MAX_TEXT])) and not _EXCLUDED.search(text[:MAX_TEXT])


def error_of(body: bytes) -> dict[str, Any]:
    """The error object of an error body; empty if it has none."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    if isinstance(value, list) and value:  # Gemini's streams
        value = value[0]
    error = value.get("error") if isinstance(value, dict) else None
    if isinstance(error, str):
        return {"message": error}
    return error if isinstance(error, dict) else {}
