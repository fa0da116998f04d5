"""Recognises a provider's answer that says that a request does not fit the window.

Each known text is matched so exactly that no other refusal matches. A rate limit never matches.
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
"""HTTP statuses of such answers. Older llama.cpp servers use 500; it counts only together with their error type."""
MAX_TEXT = 20_000
_BEGINNINGS = frozenset({"response.created", "response.in_progress", "response.queued", "message_start", "ping"})
"""Types of events at the beginning of a stream that do not show yet whether the request fits."""


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


def stream_overflow(data: bytes) -> bytes | None:
    r"""The error in a response with status 200 which says that the request does not fit the window.

    `data` is the beginning of the response. Returns the error as a JSON body if the request did not fit, b"" if the
    response is an ordinary one, and None if more of it must be read.

    >>> stream_overflow(b'data: {"type":"response.created"}\n\n') is None
    True
    >>> stream_overflow(b'data: {"type":"response.output_text.delta"}\n\n')
    b''
    """
    if data[:1] in (b"{", b"["):
        return _body_overflow(data)
    end = max(data.rfind(b"\n\n"), data.rfind(b"\r\n\r\n"))
    if end < 0:
        return None
    for line in data[:end].splitlines():
        if not line.startswith(b"data:"):
            continue
        try:
            event = json.loads(line[5:])
        except (ValueError, RecursionError):
            return b""
        kind = event.get("type") if isinstance(event, dict) else None
        if kind in _BEGINNINGS:
            continue
        error = _event_error(event) if isinstance(event, dict) else None
        body = json.dumps({"error": error}).encode() if error else b""
        return body if body and is_overflow(400, body) else b""
    return None


def _body_overflow(data: bytes) -> bytes | None:
    """The same as `stream_overflow` for a response that is not a stream. Some servers send an error with status 200."""
    if b'"error"' not in data[:40]:
        return b""
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return None
    return data if error_of(data) and is_overflow(400, data) else b""


def _event_error(event: dict[str, Any]) -> dict[str, Any] | None:
    """The error that an event of a stream reports."""
    response = event.get("response")
    if event.get("type") == "response.failed" and isinstance(response, dict):
        event = response
    error = event.get("error")
    if isinstance(error, dict):
        return error
    return event if event.get("type") == "error" else None


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
