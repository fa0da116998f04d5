"""Recognises answers in which a provider says that a request does not fit the window.

An answer is given as bytes or as an exception of an SDK. The patterns are so exact that no other refusal matches them.
An answer about a rate limit never matches.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from foldline.errors import InputError

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
"""HTTP statuses of answers that refuse a request as too large.

Older llama.cpp servers answer with 500. Status 500 counts only together with the error type of these servers.
"""
MAX_TEXT = 20_000
_CAUSES = 8
"""Maximum number of exceptions in a chain that are tested."""
_BEGINNINGS = frozenset({"response.created", "response.in_progress", "response.queued", "message_start", "ping"})
"""Types of events at the beginning of a stream that do not show yet whether the request fits."""


def is_overflow(error: BaseException) -> bool:
    """Whether an exception of an SDK or a framework says that the request does not fit the model's window.

    The exception and the exceptions that caused it are tested. The test reads the status and the body of the provider's
    answer in the exception. If an exception has no body, its text is tested.

    >>> is_overflow(RuntimeError("prompt is too long: 207791 tokens > 200000 maximum"))
    True
    """
    if not isinstance(error, BaseException):
        raise InputError(
            f"is_overflow takes an exception, not {type(error).__name__}",
            hint="except Exception as error: if foldline.is_overflow(error): …",
        )
    cause: BaseException | None = error
    for _ in range(_CAUSES):
        if cause is None:
            return False
        if is_overflow_answer(_status_of(cause), _body_of(cause)):
            return True
        cause = cause.__cause__
    return False


def _status_of(error: BaseException) -> int:
    """The HTTP status in an exception; 400 if there is no status, for example after an error inside a stream."""
    response = getattr(error, "response", None)
    found = (getattr(each, name, None) for each in (error, response) for name in ("status_code", "code", "status"))
    return next((status for status in found if type(status) is int), 400)


def _body_of(error: BaseException) -> bytes:
    """The error body in an exception; the text of the exception if it has no body."""
    for name in ("body", "details"):
        value = getattr(error, name, None)
        value = value[0] if isinstance(value, list) and value else value
        if isinstance(value, Mapping):
            return json.dumps({"error": value.get("error", value)}, default=str).encode()
    with suppress(Exception):  # a stream that was not read has no content
        content = getattr(getattr(error, "response", None), "content", None)
        if isinstance(content, bytes):
            return content
    return str(error)[:MAX_TEXT].encode("utf-8", "replace")


def is_overflow_answer(status: int, body: bytes) -> bool:
    """Whether an answer says that the request does not fit the window.

    >>> is_overflow_answer(400, b'{"error": {"message": "prompt is too long: 207791 tokens > 200000 maximum"}}')
    True
    >>> is_overflow_answer(429, b'{"error": {"message": "prompt is too long"}}')
    False
    """
    if status not in _STATUSES:
        return False
    error = error_of(body)
    kinds = {kind for kind in (error.get("code"), error.get("type")) if isinstance(kind, str)}
    if kinds & _CODES:
        return True
    if status == 500:
        return False
    if status == 413:
        return not error or "request_too_large" in kinds
    text = str(error.get("message") or "") if error else body[:MAX_TEXT].decode("utf-8", "replace")
    return bool(_TEXTS.search(text[:MAX_TEXT])) and not _EXCLUDED.search(text[:MAX_TEXT])


def stream_overflow(data: bytes) -> bytes | None:
    r"""The error in a response with status 200, if the error says that the request does not fit the window.

    `data` is the beginning of the response. Returns the error as a JSON body if the request did not fit, and b"" if the
    response is ordinary. Returns None if more of the response must be read.

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
        return body if body and is_overflow_answer(400, body) else b""
    return None


def _body_overflow(data: bytes) -> bytes | None:
    """Like `stream_overflow`, for a response that is not a stream. Some servers send errors with status 200."""
    if b'"error"' not in data[:40]:
        return b""
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return None
    return data if error_of(data) and is_overflow_answer(400, data) else b""


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
    """The error object of an error body; an empty dict if there is none."""
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
