"""Requests for the tests of the simulated provider."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

TOOL: dict[str, Any] = {"name": "bash", "description": "Run a command.", "input_schema": {"type": "object"}}
Message = dict[str, Any]


def user(content: Any = "hello") -> Message:
    return {"role": "user", "content": content}


def assistant(content: Any = "hi") -> Message:
    return {"role": "assistant", "content": content}


def text(words: str = "hello", **fields: Any) -> Message:
    return {"type": "text", "text": words, **fields}


def tool_use(name: str = "toolu_1", **fields: Any) -> Message:
    return {"type": "tool_use", "id": name, "name": "bash", "input": {"command": "ls"}, **fields}


def tool_result(name: str = "toolu_1", content: Any = "files", **fields: Any) -> Message:
    return {"type": "tool_result", "tool_use_id": name, "content": content, **fields}


def thinking(words: str = "Let me look.", signature: str = "c2ln") -> Message:
    return {"type": "thinking", "thinking": words, "signature": signature}


def anthropic(*messages: Message, model: str = "claude-opus-4-8", **fields: Any) -> dict[str, Any]:
    return {"model": model, "max_tokens": 1_024, "tools": [TOOL], "messages": list(messages), **fields}


def png(width: int = 10, height: int = 10) -> str:
    """A PNG's header with the given size, as base64: enough for whoever reads only the size."""
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + head
    data = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk))
    return base64.b64encode(data).decode()


def image(width: int = 10, height: int = 10, media_type: str = "image/png", data: str = "") -> Message:
    source = {"type": "base64", "media_type": media_type, "data": data or png(width, height)}
    return {"type": "image", "source": source}


def call(name: str = "call_1", arguments: str = '{"command": "ls"}', function: str = "bash") -> Message:
    """A tool call of Chat Completions."""
    return {"id": name, "type": "function", "function": {"name": function, "arguments": arguments}}


def calls(*names: str, content: Any = None) -> Message:
    return {"role": "assistant", "content": content, "tool_calls": [call(name) for name in names]}


def answer(name: str = "call_1", content: Any = "files") -> Message:
    return {"role": "tool", "tool_call_id": name, "content": content}


def chat(*messages: Message, model: str = "gpt-5", **fields: Any) -> dict[str, Any]:
    return {"model": model, "messages": list(messages), **fields}


def function_call(name: str = "call_1", item_id: str = "", arguments: str = "{}") -> Message:
    item = {"type": "function_call", "call_id": name, "name": "bash", "arguments": arguments}
    return {**item, "id": item_id} if item_id else item


def output(name: str = "call_1", words: Any = "files") -> Message:
    return {"type": "function_call_output", "call_id": name, "output": words}


def reasoning(name: str = "rs_1", **fields: Any) -> Message:
    return {"type": "reasoning", "id": name, "summary": [], "encrypted_content": "gAAA", **fields}


def responses(*items: Message, model: str = "gpt-5", **fields: Any) -> dict[str, Any]:
    return {"model": model, "input": list(items), **fields}


def content(role: str, *parts: Any) -> Message:
    """A content of Gemini; a string is a text part."""
    return {"role": role, "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}


def g_call(name: str = "bash", signature: str = "c2ln", **fields: Any) -> Message:
    part = {"functionCall": {"name": name, "args": {"command": "ls"}, **fields}}
    return {**part, "thoughtSignature": signature} if signature else part


def g_response(name: str = "bash", **fields: Any) -> Message:
    return {"functionResponse": {"name": name, "response": {"output": "files"}, **fields}}


def gemini(*contents: Message, **fields: Any) -> dict[str, Any]:
    return {"contents": list(contents), **fields}
