"""Replies of Gemini's generateContent: the body, its usage, and its stream of chunks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from foldline.testing.provider.anthropic_replies import chunks
from foldline.testing.provider.cache import CachedPrompt
from foldline.testing.provider.script import ScriptedReply


def gemini_usage(prompt: CachedPrompt, output: int, thoughts: int) -> dict[str, Any]:
    """The usage of a reply.

    The prompt figure includes cached tokens; the candidates figure does not include thoughts.
    """
    usage = {
        "promptTokenCount": prompt.total,
        "candidatesTokenCount": output - thoughts,
        "totalTokenCount": prompt.total + output,
    }
    if prompt.read:
        usage["cachedContentTokenCount"] = prompt.read
    if thoughts:
        usage["thoughtsTokenCount"] = thoughts
    return usage


def gemini_body(name: str, model: str, reply: ScriptedReply, signature: str, usage: dict[str, Any]) -> dict[str, Any]:
    """A reply as the API returns it; the first function call carries the thought signature."""
    parts: list[dict[str, Any]] = []
    if reply.thinking:
        parts.append({"text": reply.thinking, "thought": True})
    if reply.text:
        parts.append({"text": reply.text})
    for index, (tool, arguments) in enumerate(reply.calls):
        part: dict[str, Any] = {"functionCall": {"name": tool, "args": dict(arguments), "id": f"{name}_{index}"}}
        if index == 0:
            part["thoughtSignature"] = signature
        parts.append(part)
    content = {"role": "model", "parts": parts}
    candidate = {"content": content, "finishReason": reply.stop or "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model, "responseId": name}


def gemini_chunks(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The chunks of a streamed reply. The last chunk has the finish reason and the final usage."""
    candidate = body["candidates"][0]
    opening = {**body["usageMetadata"], "candidatesTokenCount": 0}
    for part in candidate["content"]["parts"]:
        pieces = [{**part, "text": text} for text in chunks(part["text"])] if part.get("text") else [part]
        for piece in pieces:
            content = {"role": "model", "parts": [piece]}
            yield {**body, "candidates": [{"content": content, "index": 0}], "usageMetadata": opening}
    last = {
        "content": {"role": "model", "parts": [{"text": ""}]},
        "finishReason": candidate["finishReason"],
        "index": 0,
    }
    yield {**body, "candidates": [last]}
