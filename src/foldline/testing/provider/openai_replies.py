"""Replies of OpenAI's Chat Completions and Responses: bodies, usage, and their streams of events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from foldline.testing.provider.anthropic_replies import chunks
from foldline.testing.provider.cache import CachedPrompt
from foldline.testing.provider.script import ScriptedReply

CREATED = 1_760_000_000
Item = dict[str, Any]


def chat_usage(prompt: CachedPrompt, output: int, reasoning: int, *, reports_writes: bool) -> dict[str, Any]:
    """The usage of a chat completion; cached tokens are part of the prompt tokens."""
    details = {"cached_tokens": prompt.read, "audio_tokens": 0}
    if reports_writes:
        details["cache_write_tokens"] = prompt.write_5m
    return {
        "prompt_tokens": prompt.total,
        "completion_tokens": output,
        "total_tokens": prompt.total + output,
        "prompt_tokens_details": details,
        "completion_tokens_details": {"reasoning_tokens": reasoning, "audio_tokens": 0},
    }


def chat_completion(name: str, model: str, reply: ScriptedReply, stop: str, usage: dict[str, Any]) -> dict[str, Any]:
    """A chat completion as the API returns it."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None, "annotations": []}
    if reply.calls:
        message["tool_calls"] = [
            {
                "id": f"call_{name}_{index}",
                "type": "function",
                "function": {"name": tool, "arguments": json.dumps(dict(arguments))},
            }
            for index, (tool, arguments) in enumerate(reply.calls)
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": stop}
    return {
        "id": f"chatcmpl-{name}",
        "object": "chat.completion",
        "created": CREATED,
        "model": model,
        "choices": [choice],
        "usage": usage,
        "service_tier": "default",
    }


def chat_chunks(completion: dict[str, Any], *, include_usage: bool) -> Iterator[dict[str, Any]]:
    """The chunks of a stream that carries a chat completion."""
    message, stop = completion["choices"][0]["message"], completion["choices"][0]["finish_reason"]
    head = {"id": completion["id"], "object": "chat.completion.chunk", "created": CREATED, "model": completion["model"]}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": "" if message["content"] else None, "refusal": None})
    for part in chunks(message["content"] or ""):
        yield chunk({"content": part})
    for index, call in enumerate(message.get("tool_calls") or ()):
        function = {"name": call["function"]["name"], "arguments": ""}
        yield chunk({"tool_calls": [{"index": index, "id": call["id"], "type": "function", "function": function}]})
        for part in chunks(call["function"]["arguments"]):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
    yield chunk({}, stop)
    if include_usage:
        yield {**head, "choices": [], "usage": completion["usage"]}


def responses_usage(prompt: CachedPrompt, output: int, reasoning: int, *, reports_writes: bool) -> dict[str, Any]:
    """The usage of a response; cached tokens are part of the input tokens."""
    details = {"cached_tokens": prompt.read}
    if reports_writes:
        details["cache_write_tokens"] = prompt.write_5m
    return {
        "input_tokens": prompt.total,
        "input_tokens_details": details,
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": prompt.total + output,
    }


def response_items(name: str, reply: ScriptedReply, encrypted: str) -> list[Item]:
    """The output items of a reply: reasoning, message, function calls."""
    items: list[Item] = []
    if reply.thinking:
        summary = [{"type": "summary_text", "text": reply.thinking}]
        items.append({"type": "reasoning", "id": f"rs_{name}", "summary": summary, "encrypted_content": encrypted})
    if reply.text:
        content = [{"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}]
        message = {"type": "message", "id": f"msg_{name}", "role": "assistant", "status": "completed"}
        items.append({**message, "content": content})
    for index, (tool, arguments) in enumerate(reply.calls):
        item = {"type": "function_call", "id": f"fc_{name}_{index}", "call_id": f"call_{name}_{index}", "name": tool}
        items.append({**item, "arguments": json.dumps(dict(arguments)), "status": "completed"})
    return items


def response_body(name: str, model: str, items: list[Item], usage: dict[str, Any] | None, **fields: Any) -> Item:
    """A response as the API returns it."""
    return {
        "id": f"resp_{name}",
        "object": "response",
        "created_at": CREATED,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": model,
        "output": items,
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "store": True,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": usage,
        **fields,
    }


def response_events(response: Item) -> Iterator[tuple[str, Item]]:
    """The numbered events of a stream that carries a response."""
    for number, event in enumerate(_events(response)):
        yield event["type"], {**event, "sequence_number": number}


def _events(response: Item) -> Iterator[Item]:
    opening = {**response, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": opening}
    yield {"type": "response.in_progress", "response": opening}
    for index, item in enumerate(response["output"]):
        yield from _item_events(item, index)
    yield {"type": f"response.{response['status']}", "response": response}


def _item_events(item: Item, index: int) -> Iterator[Item]:
    place = {"output_index": index}
    kind = item["type"]
    empties: dict[str, Item] = {
        "message": {"content": []},
        "function_call": {"arguments": ""},
        "reasoning": {"summary": []},
    }
    empty = empties.get(kind, {})
    status = {"status": "in_progress"} if "status" in item else {}
    yield {"type": "response.output_item.added", **place, "item": {**item, **empty, **status}}
    if kind == "message":
        part = item["content"][0]
        where = {**place, "item_id": item["id"], "content_index": 0}
        yield {"type": "response.content_part.added", **where, "part": {**part, "text": ""}}
        for piece in chunks(part["text"]):
            yield {"type": "response.output_text.delta", **where, "delta": piece, "logprobs": []}
        yield {"type": "response.output_text.done", **where, "text": part["text"], "logprobs": []}
        yield {"type": "response.content_part.done", **where, "part": part}
    elif kind == "reasoning":
        for number, part in enumerate(item["summary"]):
            where = {**place, "item_id": item["id"], "summary_index": number}
            yield {"type": "response.reasoning_summary_part.added", **where, "part": {**part, "text": ""}}
            for piece in chunks(part["text"]):
                yield {"type": "response.reasoning_summary_text.delta", **where, "delta": piece}
            yield {"type": "response.reasoning_summary_text.done", **where, "text": part["text"]}
            yield {"type": "response.reasoning_summary_part.done", **where, "part": part}
    elif kind == "function_call":
        where = {**place, "item_id": item["id"]}
        for piece in chunks(item["arguments"]):
            yield {"type": "response.function_call_arguments.delta", **where, "delta": piece}
        done = {"name": item["name"], "arguments": item["arguments"]}
        yield {"type": "response.function_call_arguments.done", **where, **done}
    yield {"type": "response.output_item.done", **place, "item": item}
