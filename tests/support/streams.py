"""A provider's reply, rendered as that provider streams it.

The counterpart of `foldline.wire.streaming`: written from what the providers send, so that a reply that was rendered
here and assembled there must be the same reply.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from foldline.wire.streaming import Assembler, StreamedReply

DID_NOT_RUN = "the reply ended inside the input of the call, so the call did not run"
Pieces = Callable[[str], list[str]]
"""How a text is broken into deltas."""
Events = list[tuple[str, Any]]
"""Names (may be "") and JSON values, or a text that stands as it is."""


def by(size: int) -> Pieces:
    """Pieces of one size."""
    return lambda text: [text[at : at + size] for at in range(0, len(text), size)]


def sse(events: Iterable[tuple[str, Any]], *, newline: str = "\n") -> bytes:
    """Events as bytes."""
    lines = []
    for name, value in events:
        data = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines += [*([f"event: {name}"] if name else []), f"data: {data}", ""]
    return newline.join([*lines, ""]).encode() if lines else b""


def stream(provider: str, reply: dict[str, Any], pieces: Pieces) -> Events:
    """The events of a reply."""
    return {
        "anthropic": anthropic_events,
        "openai": chat_events,
        "openai-responses": responses_events,
        "gemini": gemini_events,
    }[provider](reply, pieces)


def anthropic_events(reply: dict[str, Any], pieces: Pieces) -> Events:
    """Messages events; the usage grows, and some of it is only known at the end."""
    start = {**reply, "content": [], "stop_reason": None, "stop_sequence": None}
    start["usage"] = {**reply["usage"], "output_tokens": 1}
    values: list[dict[str, Any]] = [{"type": "message_start", "message": start}, {"type": "ping"}]
    for index, block in enumerate(reply["content"]):
        begun, deltas = _anthropic_block(block, pieces)
        values.append({"type": "content_block_start", "index": index, "content_block": begun})
        values += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        values.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": reply["stop_reason"], "stop_sequence": reply.get("stop_sequence")}
    usage = {"output_tokens": reply["usage"]["output_tokens"], "input_tokens": None}
    values += [{"type": "message_delta", "delta": delta, "usage": usage}, {"type": "message_stop"}]
    return [(value["type"], value) for value in values]


def _anthropic_block(block: dict[str, Any], pieces: Pieces) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    kind = block["type"]
    if kind == "text":
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
        deltas += [{"type": "citations_delta", "citation": found} for found in block.get("citations") or []]
        return {**block, "text": "", **({"citations": []} if block.get("citations") else {})}, deltas
    if kind == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
        return {"type": kind, "thinking": "", "signature": ""}, deltas
    if kind == "compaction":
        return {"type": kind, "content": None}, [{**block, "type": "compaction_delta"}]
    if "input" in block:
        text = json.dumps(block["input"], ensure_ascii=False)
        parts = ["", *pieces(text)] if block["input"] else [""]
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in parts]
    return block, []


def chat_events(reply: dict[str, Any], pieces: Pieces, *, include_usage: bool = True) -> Events:
    """Chat chunks; parallel calls are interleaved, which the API allows and some servers do."""
    head = {key: reply[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    choice = reply["choices"][0]
    message = choice["message"]

    def chunk(delta: dict[str, Any], finish: str | None = None) -> tuple[str, Any]:
        return "", {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], "usage": None}

    first = {"role": "assistant", "content": "" if isinstance(message.get("content"), str) else None}
    chunks = [chunk(first)]
    for key in ("reasoning_content", "content", "refusal"):
        if isinstance(message.get(key), str):
            chunks += [chunk({key: piece}) for piece in pieces(message[key])]
    if message.get("function_call"):
        called = message["function_call"]
        chunks.append(chunk({"function_call": {"name": called["name"], "arguments": ""}}))
        chunks += [chunk({"function_call": {"arguments": piece}}) for piece in pieces(called["arguments"])]
    queues = []
    for index, call in enumerate(message.get("tool_calls") or []):
        kind = call["type"]
        grows = "arguments" if kind == "function" else "input"
        chunks.append(chunk({"tool_calls": [{"index": index, **call, kind: {**call[kind], grows: ""}}]}))
        queues.append([{"index": index, kind: {grows: piece}} for piece in pieces(call[kind][grows])])
    while any(queues):
        chunks += [chunk({"tool_calls": [queue.pop(0)]}) for queue in queues if queue]
    chunks.append(chunk({}, choice["finish_reason"]))
    if include_usage:
        chunks.append(("", {**head, "choices": [], "usage": reply["usage"]}))
    return [*chunks, ("", "[DONE]")]


def responses_events(reply: dict[str, Any], pieces: Pieces) -> Events:
    """Responses events, ending in the one that carries the whole response."""
    begun = {**reply, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    values: list[dict[str, Any]] = [
        {"type": f"response.{kind}", "response": begun} for kind in ("created", "in_progress")
    ]
    for index, item in enumerate(reply["output"]):
        values += [{"output_index": index, **value} for value in _responses_item(item, pieces)]
    values.append({"type": f"response.{reply['status']}", "response": reply})
    return [(value["type"], {**value, "sequence_number": number}) for number, value in enumerate(values)]


def _responses_item(item: dict[str, Any], pieces: Pieces) -> list[dict[str, Any]]:
    values: list[dict[str, Any]] = []
    bare = dict(item)
    grows = {"function_call": "arguments", "custom_tool_call": "input"}.get(item["type"])
    if grows:
        bare[grows] = ""
        name = {"arguments": "function_call_arguments", "input": "custom_tool_call_input"}[grows]
        values += [
            {"type": f"response.{name}.delta", "item_id": item.get("id"), "delta": p} for p in pieces(item[grows])
        ]
        values.append({"type": f"response.{name}.done", "item_id": item.get("id"), grows: item[grows]})
    if item["type"] == "message":
        bare["content"] = []
        for at, part in enumerate(item["content"]):
            place = {"item_id": item["id"], "content_index": at}
            key, kind = ("text", "output_text") if part["type"] == "output_text" else ("refusal", "refusal")
            values.append({"type": "response.content_part.added", **place, "part": {**part, key: ""}})
            values += [
                {"type": f"response.{kind}.delta", **place, "delta": piece, "logprobs": []}
                for piece in pieces(part[key])
            ]
            values.append({"type": f"response.{kind}.done", **place, key: part[key], "logprobs": []})
            values.append({"type": "response.content_part.done", **place, "part": part})
    if "status" in bare:
        bare["status"] = "in_progress"
    return [
        {"type": "response.output_item.added", "item": bare},
        *values,
        {"type": "response.output_item.done", "item": item},
    ]


def gemini_events(reply: dict[str, Any], pieces: Pieces) -> Events:
    """`streamGenerateContent` chunks: usage in each, the finish reason in the last."""
    head = {key: value for key, value in reply.items() if key not in ("candidates", "usageMetadata")}
    candidate = reply["candidates"][0]
    chunks: Events = []

    def chunk(part: dict[str, Any], **more: Any) -> None:
        content = {"parts": [part], "role": "model"}
        usage = {key: reply["usageMetadata"][key] for key in ("promptTokenCount", "totalTokenCount")}
        chunks.append(("", {**head, "candidates": [{"content": content, "index": 0, **more}], "usageMetadata": usage}))

    for part in candidate["content"]["parts"]:
        if "text" in part and "thoughtSignature" not in part:
            for piece in pieces(part["text"]):
                chunk({**part, "text": piece})
        else:
            chunk(part)
    chunk({"text": ""}, finishReason=candidate["finishReason"])
    chunks[-1][1]["usageMetadata"] = reply["usageMetadata"]
    return chunks


def read(provider: str, data: bytes | Events, *, cut: int = 0) -> StreamedReply:
    """The reply to these bytes or events, leaving out the last `cut` bytes or events."""
    kept = data[: len(data) - cut]
    assembler = Assembler(provider)
    assembler.feed(kept if isinstance(kept, bytes) else sse(kept))
    reply = assembler.finish()
    assert reply is not None
    return reply


def chunks(*deltas: dict[str, Any], finish: str | None = "tool_calls", **last: Any) -> Events:
    """Chat chunks with these deltas."""
    values: list[dict[str, Any]] = [{"id": "c", "model": "m", "choices": [{"index": 0, "delta": d}]} for d in deltas]
    values.append({"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": finish}], **last})
    return [("", value) for value in values]
