"""Replies of the four providers, as Hypothesis strategies: all that their non-streamed answers hold."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.text(max_size=8), JSON, max_size=4)
TEXTS = st.text(min_size=1, max_size=60)
NAMES = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,12}", fullmatch=True)
COUNTS = st.integers(0, 300_000)


@st.composite
def anthropic_replies(draw: st.DrawFn) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = []
    for number in range(draw(st.integers(1, 5))):
        blocks += draw(st.sampled_from(_ANTHROPIC))(draw, number)
    usage = {
        "input_tokens": draw(COUNTS),
        "cache_creation_input_tokens": draw(COUNTS),
        "cache_read_input_tokens": draw(COUNTS),
        "output_tokens": draw(COUNTS),
    }
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5",
        "content": blocks,
        "stop_reason": draw(st.sampled_from(["end_turn", "tool_use", "max_tokens", "refusal", "pause_turn"])),
        "stop_sequence": None,
        "usage": usage,
    }


def _text(draw: st.DrawFn, _: int) -> list[dict[str, Any]]:
    cited = [{"type": "char_location", "cited_text": draw(TEXTS), "document_index": 0}] if draw(st.booleans()) else []
    return [{"type": "text", "text": draw(TEXTS), **({"citations": cited} if cited else {})}]


def _thinking(draw: st.DrawFn, _: int) -> list[dict[str, Any]]:
    return [{"type": "thinking", "thinking": draw(st.text(max_size=40)), "signature": "c2ln" + draw(NAMES)}]


def _redacted(draw: st.DrawFn, _: int) -> list[dict[str, Any]]:
    return [{"type": "redacted_thinking", "data": draw(NAMES)}]


def _called(kind: str) -> Any:
    def blocks(draw: st.DrawFn, number: int) -> list[dict[str, Any]]:
        return [{"type": kind, "id": f"{kind}_{number}", "name": draw(NAMES), "input": draw(OBJECTS)}]

    return blocks


def _search(draw: st.DrawFn, number: int) -> list[dict[str, Any]]:
    found = [{"type": "web_search_result", "url": "https://a.test", "title": draw(TEXTS), "encrypted_content": "eA=="}]
    return [
        {"type": "server_tool_use", "id": f"srvtoolu_{number}", "name": "web_search", "input": {"query": draw(TEXTS)}},
        {"type": "web_search_tool_result", "tool_use_id": f"srvtoolu_{number}", "content": found},
    ]


def _compaction(draw: st.DrawFn, _: int) -> list[dict[str, Any]]:
    return [{"type": "compaction", "content": draw(TEXTS)}]


_ANTHROPIC = [_text, _thinking, _redacted, _search, _compaction, *map(_called, ("tool_use", "mcp_tool_use", "new_use"))]


@st.composite
def chat_replies(draw: st.DrawFn) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": draw(st.none() | st.text(max_size=60))}
    finish = "stop"
    if draw(st.booleans()):
        message["reasoning_content"] = draw(TEXTS)
    if draw(st.integers(0, 4)) == 0:
        message["refusal"] = draw(TEXTS)
    if draw(st.integers(0, 4)) == 0:
        message["function_call"] = {"name": draw(NAMES), "arguments": json.dumps(draw(OBJECTS))}
        finish = "function_call"
    elif calls := [_chat_call(draw, number) for number in range(draw(st.integers(0, 3)))]:
        message["tool_calls"] = calls
        finish = "tool_calls"
    prompt, output = draw(COUNTS), draw(COUNTS)
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_790_000_000,
        "model": "gpt-5.6",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output},
    }


def _chat_call(draw: st.DrawFn, number: int) -> dict[str, Any]:
    if draw(st.integers(0, 3)) == 0:
        return {"id": f"call_{number}", "type": "custom", "custom": {"name": draw(NAMES), "input": draw(TEXTS)}}
    arguments = draw(OBJECTS.map(json.dumps) | st.just("") | st.just("{not json"))
    return {"id": f"call_{number}", "type": "function", "function": {"name": draw(NAMES), "arguments": arguments}}


@st.composite
def responses_replies(draw: st.DrawFn) -> dict[str, Any]:
    output = [draw(st.sampled_from(_ITEMS))(draw, number) for number in range(draw(st.integers(1, 4)))]
    read, written = draw(COUNTS), draw(COUNTS)
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_790_000_000,
        "model": "gpt-5.6",
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "output": output,
        "usage": {"input_tokens": read, "output_tokens": written, "total_tokens": read + written},
    }


def _message_item(draw: st.DrawFn, number: int) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"type": "output_text", "text": draw(TEXTS), "annotations": []}]
    if draw(st.integers(0, 4)) == 0:
        parts = [{"type": "refusal", "refusal": draw(TEXTS)}]
    return {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": parts}


def _reasoning_item(draw: st.DrawFn, number: int) -> dict[str, Any]:
    summary = [{"type": "summary_text", "text": draw(TEXTS)}]
    return {"type": "reasoning", "id": f"rs_{number}", "summary": summary, "encrypted_content": draw(NAMES)}


def _function_item(draw: st.DrawFn, number: int) -> dict[str, Any]:
    item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": draw(NAMES)}
    return {**item, "arguments": json.dumps(draw(OBJECTS)), "status": "completed"}


def _custom_item(draw: st.DrawFn, number: int) -> dict[str, Any]:
    item = {"type": "custom_tool_call", "id": f"ctc_{number}", "call_id": f"call_{number}", "name": draw(NAMES)}
    return {**item, "input": draw(TEXTS), "status": "completed"}


def _search_item(draw: st.DrawFn, number: int) -> dict[str, Any]:
    action = {"type": "search", "query": draw(TEXTS)}
    return {"type": "web_search_call", "id": f"ws_{number}", "status": "completed", "action": action}


_ITEMS = [_message_item, _reasoning_item, _function_item, _custom_item, _search_item]


@st.composite
def gemini_replies(draw: st.DrawFn) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    for number in range(draw(st.integers(1, 4))):
        part = draw(st.sampled_from(_GEMINI))(draw, number)
        plain = [entry for entry in parts[-1:] if "text" in entry and "thoughtSignature" not in entry]
        if not ("text" in part and plain and plain[0].get("thought") == part.get("thought")):
            parts.append(part)
    prompt, output = draw(COUNTS), draw(COUNTS)
    return {
        "candidates": [{"content": {"parts": parts, "role": "model"}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {
            "promptTokenCount": prompt,
            "candidatesTokenCount": output,
            "totalTokenCount": prompt + output,
        },
        "modelVersion": "gemini-3.5-flash",
        "responseId": "r1",
    }


def _gemini_text(draw: st.DrawFn, _: int) -> dict[str, Any]:
    return {"text": draw(TEXTS), **draw(st.sampled_from([{}, {"thought": True}, {"thoughtSignature": "c2ln"}]))}


def _gemini_call(draw: st.DrawFn, number: int) -> dict[str, Any]:
    call = {"name": draw(NAMES), "args": draw(OBJECTS), **draw(st.sampled_from([{}, {"id": f"c{number}"}]))}
    return {"functionCall": call, **draw(st.sampled_from([{}, {"thoughtSignature": "c2ln"}]))}


def _gemini_code(draw: st.DrawFn, _: int) -> dict[str, Any]:
    return {"executableCode": {"language": "PYTHON", "code": draw(TEXTS)}}


_GEMINI = [_gemini_text, _gemini_text, _gemini_call, _gemini_code]

REPLIES = {
    "anthropic": anthropic_replies(),
    "openai": chat_replies(),
    "openai-responses": responses_replies(),
    "gemini": gemini_replies(),
}
