"""Replies as the providers give them, one of each shape that matters: what the SDKs are asked to read, too."""

from __future__ import annotations

from typing import Any

ULM = '{"city": "Ulm", "unit": "°C"}'
OSLO = '{"city": "Oslo", "days": [1, 2]}'


def message(*content: dict[str, Any], stop: str = "end_turn", **more: Any) -> dict[str, Any]:
    """An Anthropic reply."""
    usage = {
        "input_tokens": 12,
        "cache_creation_input_tokens": 300,
        "cache_read_input_tokens": 4000,
        "output_tokens": 57,
        "cache_creation": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 200},
    }
    head = {"id": "msg_01", "type": "message", "role": "assistant", "model": "claude-sonnet-5"}
    return {**head, "content": list(content), "stop_reason": stop, "stop_sequence": None, "usage": usage, **more}


def completion(finish: str = "stop", **message: Any) -> dict[str, Any]:
    """An OpenAI Chat Completions reply."""
    choice = {"index": 0, "message": {"role": "assistant", "content": None, **message}, "finish_reason": finish}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1_790_000_000, "model": "gpt-5.6"}
    usage = {
        "prompt_tokens": 1200,
        "completion_tokens": 57,
        "total_tokens": 1257,
        "prompt_tokens_details": {"cached_tokens": 1024},
        "completion_tokens_details": {"reasoning_tokens": 20},
    }
    return {**head, "choices": [choice], "usage": usage}


def response(*output: dict[str, Any], status: str = "completed", reason: str = "") -> dict[str, Any]:
    """An OpenAI Responses reply."""
    usage = {
        "input_tokens": 1200,
        "input_tokens_details": {"cached_tokens": 1024},
        "output_tokens": 57,
        "output_tokens_details": {"reasoning_tokens": 20},
        "total_tokens": 1257,
    }
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_790_000_000,
        "model": "gpt-5.6",
        "status": status,
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "instructions": None,
        "metadata": {},
        "output": list(output),
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": usage,
    }


def generated(*parts: dict[str, Any], finish: str = "STOP") -> dict[str, Any]:
    """A Gemini reply."""
    usage = {"promptTokenCount": 1200, "candidatesTokenCount": 37, "thoughtsTokenCount": 20, "totalTokenCount": 1257}
    return {
        "candidates": [{"content": {"parts": list(parts), "role": "model"}, "finishReason": finish, "index": 0}],
        "usageMetadata": usage,
        "modelVersion": "gemini-3.5-flash",
        "responseId": "r1",
    }


THINKING = {"type": "thinking", "thinking": "Zwei Städte, 二つの都市. Ask for both.", "signature": "EqQBCkYIBxgCKkB="}
CITED = {"type": "web_search_result_location", "url": "https://a.test", "title": "A", "encrypted_index": "eA=="}
CITED["cited_text"] = "It rains."
SEARCH: list[dict[str, Any]] = [
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "weather Ulm"}},
    {
        "type": "web_search_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": [
            {
                "type": "web_search_result",
                "url": "https://a.test",
                "title": "A",
                "encrypted_content": "eA==",
                "page_age": None,
            }
        ],
    },
]
WEATHER: list[dict[str, Any]] = [
    {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Ulm", "unit": "°C"}},
    {"type": "tool_use", "id": "toolu_2", "name": "weather", "input": {"city": "Oslo", "days": [1, 2]}},
]
CALLS: list[dict[str, Any]] = [
    {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": ULM}},
    {"id": "call_2", "type": "function", "function": {"name": "weather", "arguments": OSLO}},
]
REASONING = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "Two cities."}],
    "encrypted_content": "gAAAAB",
}
ITEM_CALLS = [
    {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": "weather"}
    | {"arguments": arguments, "status": "completed"}
    for number, arguments in enumerate((ULM, OSLO))
]


def said(text: str) -> dict[str, Any]:
    """A Responses message item."""
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}


def refused(text: str) -> dict[str, Any]:
    """A Responses message item that refuses."""
    return {**said(""), "content": [{"type": "refusal", "refusal": text}]}


TEXT = "Grüße aus Ulm: it rains.\n家 🌧️"
SAMPLES: dict[str, dict[str, dict[str, Any]]] = {
    "anthropic": {
        "text": message({"type": "text", "text": TEXT}),
        "thinking and parallel calls": message(THINKING, {"type": "text", "text": TEXT}, *WEATHER, stop="tool_use"),
        "redacted thinking": message({"type": "redacted_thinking", "data": "EmwKAhgB"}, {"type": "text", "text": TEXT}),
        "server search": message(
            {"type": "text", "text": "I look."}, *SEARCH, {"type": "text", "text": TEXT, "citations": [CITED]}
        ),
        "no input": message({"type": "tool_use", "id": "toolu_1", "name": "now", "input": {}}, stop="tool_use"),
        "refusal": message({"type": "text", "text": "No."}, stop="refusal"),
        "max tokens": message({"type": "text", "text": "It ra"}, stop="max_tokens"),
    },
    "openai": {
        "text": completion(content=TEXT),
        "parallel calls": completion("tool_calls", content="Both.", tool_calls=CALLS),
        "refusal": completion(refusal="I cannot."),
        "max tokens": completion("length", content="It ra"),
    },
    "openai-responses": {
        "text": response(said(TEXT)),
        "reasoning and parallel calls": response(REASONING, *ITEM_CALLS),
        "refusal": response(refused("I cannot.")),
    },
    "gemini": {
        "text": generated({"text": TEXT}),
        "thought and parallel calls": generated(
            {"text": "Two cities.", "thought": True},
            {"functionCall": {"name": "weather", "args": {"city": "Ulm"}, "id": "c1"}, "thoughtSignature": "c2ln"},
            {"functionCall": {"name": "weather", "args": {"city": "Oslo"}, "id": "c2"}},
        ),
    },
}
