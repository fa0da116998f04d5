"""The bodies of streamed replies: server-sent events in each vendor's form."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from foldline.testing.provider.anthropic_replies import anthropic_events
from foldline.testing.provider.error_reply import ErrorReply
from foldline.testing.provider.gemini_replies import gemini_chunks
from foldline.testing.provider.openai_replies import chat_chunks, response_body, response_events


def stream_of(format: str, reply: dict[str, Any], request: dict[str, Any]) -> Iterator[bytes]:
    """The events that carry a reply."""
    if format == "anthropic":
        for name, event in anthropic_events(reply):
            yield _event(event, name)
    elif format == "openai_responses":
        for name, event in response_events(reply):
            yield _event(event, name)
    elif format == "gemini":
        for chunk in gemini_chunks(reply):
            yield _event(chunk, end="\r\n\r\n")
    else:
        options = request.get("stream_options") or {}
        for chunk in chat_chunks(reply, include_usage=bool(options.get("include_usage"))):
            yield _event(chunk)
        yield b"data: [DONE]\n\n"


def failed_response(error: ErrorReply, model: str) -> Iterator[bytes]:
    """The stream of a response that fails. OpenAI answers in this way if a prompt exceeds the window."""
    reason = {"code": error.code, "message": error.message}
    response = response_body("failed", model, [], None, status="failed", error=reason)
    for name, event in response_events(response):
        yield _event(event, name)


def error_event(error: ErrorReply) -> bytes:
    """An error in the middle of a stream."""
    body = error.body()
    return _event(body, "error") if error.format == "anthropic" else _event(body)


def _event(value: dict[str, Any], name: str = "", end: str = "\n\n") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(value)}{end}".encode()
