"""Replies that foldline writes itself, in the form in which a provider would send them, streamed or not."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from typing import Any

from foldline.proxy.interception import OwnAnswer

EVENT_STREAM = "text/event-stream; charset=utf-8"


def text_reply(format: str, model: str, text: str, *, streams: bool) -> OwnAnswer:
    """A reply with one text. All figures of its usage are 0."""
    if format == "anthropic":
        return _anthropic(model, text, streams=streams)
    content = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    item = {"type": "message", "id": _id("msg"), "role": "assistant", "status": "completed", "content": [content]}
    return item_reply(model, [item], streams=streams)


def item_reply(model: str, items: list[dict[str, Any]], *, streams: bool) -> OwnAnswer:
    """A response of OpenAI's Responses API with these output items."""
    response = {
        "id": _id("resp"),
        "object": "response",
        "created_at": int(time.time()),
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "model": model,
        "output": items,
        "usage": openai_usage(),
    }
    if not streams:
        return OwnAnswer(status=200, body=json.dumps(response).encode())
    return OwnAnswer(status=200, body=_stream(_response_events(response)), content_type=EVENT_STREAM)


def openai_usage() -> dict[str, Any]:
    """The usage of a response that foldline wrote: all figures are 0."""
    return {
        "input_tokens": 0,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 0,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 0,
    }


def _response_events(response: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    yield "response.created", {"response": begun}
    yield "response.in_progress", {"response": begun}
    for index, item in enumerate(response["output"]):
        content = item.get("content")
        shown = {**item, "status": "in_progress", "content": []} if content else item
        yield "response.output_item.added", {"output_index": index, "item": shown}
        for place, part in enumerate(content or ()):
            at = {"item_id": item["id"], "output_index": index, "content_index": place}
            yield "response.content_part.added", {**at, "part": {**part, "text": ""}}
            yield "response.output_text.delta", {**at, "delta": part["text"], "logprobs": []}
            yield "response.output_text.done", {**at, "text": part["text"], "logprobs": []}
            yield "response.content_part.done", {**at, "part": part}
        yield "response.output_item.done", {"output_index": index, "item": item}
    yield "response.completed", {"response": response}


def _anthropic(model: str, text: str, *, streams: bool) -> OwnAnswer:
    usage = {"input_tokens": 0, "output_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    message: dict[str, Any] = {
        "id": _id("msg"),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": usage,
    }
    if not streams:
        return OwnAnswer(status=200, body=json.dumps(message).encode())
    begun = {**message, "content": [], "stop_reason": None}
    events: list[tuple[str, dict[str, Any]]] = [
        ("message_start", {"message": begun}),
        ("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}),
        ("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": text}}),
        ("content_block_stop", {"index": 0}),
        ("message_delta", {"delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": usage}),
        ("message_stop", {}),
    ]
    return OwnAnswer(status=200, body=_stream(events), content_type=EVENT_STREAM)


def _stream(events: Any) -> bytes:
    """The events as the body of a stream.

    Every event gets a number, as OpenAI's format demands. Anthropic's clients ignore the number.
    """
    lines = []
    for number, (kind, value) in enumerate(events):
        numbered = {"sequence_number": number} if kind.startswith("response.") else {}
        lines.append(f"event: {kind}\ndata: {json.dumps({'type': kind, **value, **numbered})}\n\n")
    return "".join(lines).encode()


def _id(kind: str) -> str:
    return f"{kind}_foldline{secrets.token_hex(12)}"
