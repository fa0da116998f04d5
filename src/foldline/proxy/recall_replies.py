"""The recall tool in each wire format: its definition, its calls, their answers, and the joined reply.

The client must not see the call. So the client gets one joined reply: the reply that contains the call, but without the
call, and then the reply that the model gives after the call was answered.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from foldline.json_text import dumps, encode
from foldline.message import Message, ToolCall
from foldline.proxy.body_scan import BodyScan
from foldline.recall.tools import RECALL
from foldline.wire.formats import Format, LossCollector
from foldline.wire.tool_definitions import convert_tools

NAME = RECALL.name
_DECLARATIONS = ("functionDeclarations", "function_declarations")


def with_recall_tool(scan: BodyScan, format: str) -> bytes | None:
    """The request body with the recall tool after the client's tools; None if the tool cannot be offered."""
    value = tools_with_recall(scan, format)
    if value is None:
        return None
    tools = scan.fields["tools"]
    return scan.data[: tools.start] + encode(dumps(value)) + scan.data[tools.end :]


def tools_with_recall(scan: BodyScan, format: str) -> list[Any] | None:
    """The tools of a request and the recall tool.

    Returns None if the client sends no tools, or if one of its tools has the same name.
    """
    tools = scan.field("tools")
    if not isinstance(tools, list) or not tools:
        return None
    if f'"{NAME}"' in scan.field_text("tools"):
        return None
    function = {"name": NAME, "description": RECALL.description, "input_schema": RECALL.schema}
    (definition,) = convert_tools([function], format)
    at = next((n for n, one in enumerate(tools) if format == "gemini" and _declarations(one)), None)
    if at is None:
        return [*tools, definition]
    key = _declarations(tools[at])
    declared = {**tools[at], key: [*tools[at][key], *definition[_DECLARATIONS[0]]]}
    return [*tools[:at], declared, *tools[at + 1 :]]


def _declarations(tool: Any) -> str:
    return next((key for key in _DECLARATIONS if isinstance(tool, Mapping) and tool.get(key)), "")


def recall_calls(messages: Sequence[Message]) -> tuple[list[ToolCall], bool]:
    """The calls of the recall tool in a reply, and whether the reply has other calls too."""
    calls = [part for message in messages for part in message.parts if isinstance(part, ToolCall)]
    return [call for call in calls if call.name == NAME], any(call.name != NAME for call in calls)


def is_call_event(format: str, event: Any) -> bool:
    """Whether an event of a stream begins a call of the recall tool."""
    if not isinstance(event, Mapping):
        return False
    if format == "anthropic":
        return bool(_name(event.get("content_block")) == NAME)
    if format == "openai-responses":
        return bool(_name(event.get("item")) == NAME)
    if format == "openai":
        choices = event.get("choices") or [{}]
        return any(
            _name(call.get("function")) == NAME for call in (choices[0].get("delta") or {}).get("tool_calls") or ()
        )
    candidates = event.get("candidates") or [{}]
    parts = (candidates[0].get("content") or {}).get("parts") or ()
    return any(_name(part.get("functionCall")) == NAME for part in parts)


def _name(value: Any) -> Any:
    return value.get("name") if isinstance(value, Mapping) else None


def exchange_elements(format: Format, messages: Sequence[Message]) -> list[str]:
    """The messages as JSON texts for a request. `messages` are a reply, or the results of the calls in a reply."""
    found: list[Any] = []
    loss = LossCollector()
    for message in messages:
        for element in format.render(message, loss):
            joined = format.join(found[-1], element) if format.join is not None and found else None
            if joined is not None:
                found[-1] = joined
            else:
                found.append(element)
    if format.join_turns is not None:
        found = format.join_turns(found)
    return [dumps(element) for element in found]


def with_more_elements(scan: BodyScan, elements: Sequence[str]) -> bytes:
    """A request body with further messages at its end."""
    at = scan.list_end - 1
    comma = "," if scan.ends else ""
    return scan.data[:at] + encode(comma + ",".join(elements)) + scan.data[at:]


# The joined reply


def without_recall(format: str, value: dict[str, Any]) -> dict[str, Any]:
    """A reply without its calls of the recall tool."""
    if format == "anthropic":
        kept = [one for one in value["content"] if one.get("type") != "tool_use" or one.get("name") != NAME]
        return {**value, "content": kept}
    if format == "openai-responses":
        output = [one for one in value["output"] if one.get("type") != "function_call" or one.get("name") != NAME]
        return {**value, "output": output}
    if format == "openai":
        choice = value["choices"][0]
        message = dict(choice["message"])
        calls = [one for one in message.pop("tool_calls", None) or () if _name(one.get("function")) != NAME]
        message |= {"tool_calls": calls} if calls else {}
        return {**value, "choices": [{**choice, "message": message}]}
    candidate = value["candidates"][0]
    parts = [one for one in candidate["content"].get("parts") or () if _name(one.get("functionCall")) != NAME]
    return {**value, "candidates": [{**candidate, "content": {**candidate["content"], "parts": parts}}]}


def joined_reply(format: str, first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Two replies joined into one reply. The usage of the joined reply is the usage of the second reply, plus the
    output tokens of the first reply.
    """
    if format == "anthropic":
        usage = _summed(first.get("usage"), second.get("usage"), "output_tokens")
        return {**second, "id": first.get("id"), "content": [*first["content"], *second["content"]], "usage": usage}
    if format == "openai-responses":
        usage = _summed(first.get("usage"), second.get("usage"), "output_tokens", "total_tokens")
        return {**second, "id": first.get("id"), "output": [*first["output"], *second["output"]], "usage": usage}
    if format == "openai":
        one, other = first["choices"][0]["message"], second["choices"][0]["message"]
        text = (one.get("content") or "") + (other.get("content") or "")
        message = {**other, "content": text or None}
        usage = _summed(first.get("usage"), second.get("usage"), "completion_tokens", "total_tokens")
        choices = [{**second["choices"][0], "message": message}]
        return {**second, "id": first.get("id"), "choices": choices, **({"usage": usage} if usage else {})}
    one, other = first["candidates"][0]["content"], second["candidates"][0]["content"]
    content = {**other, "parts": [*(one.get("parts") or ()), *(other.get("parts") or ())]}
    usage = _summed(first.get("usageMetadata"), second.get("usageMetadata"), "candidatesTokenCount", "totalTokenCount")
    return {**second, "candidates": [{**second["candidates"][0], "content": content}], "usageMetadata": usage}


def _summed(first: Any, second: Any, output: str, total: str = "") -> dict[str, Any]:
    """The usage of the second reply, plus the output tokens of the first reply."""
    found = dict(second or {})
    more = (first or {}).get(output) or 0
    for key in (output, total):
        if key and isinstance(found.get(key), int):
            found[key] += more
    return found


# The rest of a stream


def rest_of_stream(format: str, reply: dict[str, Any], held: dict[str, Any], at: int, *, shows_usage: bool) -> bytes:
    """The events at the end of a stream, with the part of the reply that the client has not received yet.

    `reply` is the joined reply. `at` is the index of the first block or item of `reply` that the client has not
    received. `held` is the part of `reply` that the client has not received; it is used for formats whose events have
    no index.
    """
    if format == "anthropic":
        events = _anthropic_events(reply, at)
        return b"".join(f"event: {name}\ndata: {dumps({'type': name, **value})}\n\n".encode() for name, value in events)
    if format == "openai-responses":
        events = _response_events(reply, at)
        return b"".join(f"event: {name}\ndata: {dumps({'type': name, **value})}\n\n".encode() for name, value in events)
    if format == "openai":
        chunks = [*_chat_chunks(reply, held, shows_usage=shows_usage)]
        return b"".join(f"data: {dumps(chunk)}\n\n".encode() for chunk in chunks) + b"data: [DONE]\n\n"
    content = held["candidates"][0]["content"]
    chunk = {**reply, "candidates": [{**reply["candidates"][0], "content": content}]}
    return f"data: {dumps(chunk)}\r\n\r\n".encode()


def _anthropic_events(reply: dict[str, Any], at: int) -> Iterator[tuple[str, dict[str, Any]]]:
    for index, block in enumerate(reply["content"][at:], start=at):
        begun, deltas = _anthropic_block(block)
        yield "content_block_start", {"index": index, "content_block": begun}
        for delta in deltas:
            yield "content_block_delta", {"index": index, "delta": delta}
        yield "content_block_stop", {"index": index}
    stop = {"stop_reason": reply.get("stop_reason"), "stop_sequence": reply.get("stop_sequence")}
    yield "message_delta", {"delta": stop, "usage": reply.get("usage") or {}}
    yield "message_stop", {}


def _anthropic_block(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    kind = block.get("type")
    if kind == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": block["text"]}]
    if kind == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": block["thinking"]}]
        deltas += [{"type": "signature_delta", "signature": block["signature"]}] if block.get("signature") else []
        return {**block, "thinking": "", "signature": ""}, deltas
    if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        text = json.dumps(block.get("input") or {})
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": text}]
    return block, []


def _response_events(reply: dict[str, Any], at: int) -> Iterator[tuple[str, dict[str, Any]]]:
    for index, item in enumerate(reply["output"][at:], start=at):
        place = {"output_index": index}
        begun = {**item, "status": "in_progress"} if "status" in item else item
        if item.get("type") == "message":
            yield "response.output_item.added", {**place, "item": {**begun, "content": []}}
            for number, part in enumerate(item.get("content") or ()):
                where = {"item_id": item.get("id"), **place, "content_index": number}
                yield "response.content_part.added", {**where, "part": {**part, "text": ""}}
                yield "response.output_text.delta", {**where, "delta": part.get("text", ""), "logprobs": []}
                yield "response.output_text.done", {**where, "text": part.get("text", ""), "logprobs": []}
                yield "response.content_part.done", {**where, "part": part}
        elif item.get("type") == "function_call":
            where, text = {"item_id": item.get("id"), **place}, item.get("arguments", "")
            yield "response.output_item.added", {**place, "item": {**begun, "arguments": ""}}
            yield "response.function_call_arguments.delta", {**where, "delta": text}
            yield "response.function_call_arguments.done", {**where, "name": item.get("name"), "arguments": text}
        else:
            yield "response.output_item.added", {**place, "item": begun}
        yield "response.output_item.done", {**place, "item": item}
    kind = "response.completed" if reply.get("status", "completed") == "completed" else "response.incomplete"
    yield kind, {"response": reply}


def _chat_chunks(reply: dict[str, Any], held: dict[str, Any], *, shows_usage: bool) -> Iterator[dict[str, Any]]:
    choice, message = reply["choices"][0], held["choices"][0]["message"]
    frame = {key: value for key, value in reply.items() if key not in ("choices", "usage", "object")}
    frame["object"] = "chat.completion.chunk"
    calls = [{**call, "index": number} for number, call in enumerate(message.get("tool_calls") or ())]
    delta = {key: value for key, value in message.items() if key not in ("role", "tool_calls") and value}
    delta |= {"tool_calls": calls} if calls else {}
    at = {"index": choice.get("index", 0), "logprobs": None}
    yield {**frame, "choices": [{**at, "delta": delta, "finish_reason": None}]}
    yield {**frame, "choices": [{**at, "delta": {}, "finish_reason": choice.get("finish_reason")}]}
    if shows_usage and reply.get("usage"):
        yield {**frame, "choices": [], "usage": reply["usage"]}
