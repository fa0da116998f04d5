"""One long agent session in every format that foldline can write again, made to measure."""

from __future__ import annotations

import json
from typing import Any

STEPS = 30
LINES = 40
STEP_TOKENS = 980
"""About the size of one step, for usage figures that fit the messages."""


def _output(step: int) -> str:
    return "\n".join(f"src/part_{step}.py:{line}: queue.put(job_{step}_{line})" for line in range(LINES))


def _dump(*lines: Any) -> str:
    return "".join(json.dumps(line) + "\n" for line in lines)


def anthropic_messages(steps: int = STEPS) -> list[dict[str, Any]]:
    """A prompt, then calls and results, then the answer."""
    made: list[dict[str, Any]] = [{"role": "user", "content": "Find out why port 7091 drops jobs."}]
    for step in range(steps):
        call = {"type": "tool_use", "id": f"toolu_{step}", "name": "grep", "input": {"pattern": f"job_{step}"}}
        result = {"type": "tool_result", "tool_use_id": f"toolu_{step}", "content": _output(step)}
        made.append({"role": "assistant", "content": [{"type": "text", "text": f"Step {step}."}, call]})
        made.append({"role": "user", "content": [result]})
    return [*made, {"role": "assistant", "content": [{"type": "text", "text": "The queue was full."}]}]


def anthropic(steps: int = STEPS) -> str:
    """A request body with fields that must survive."""
    body = {"model": "claude-sonnet-4-5", "max_tokens": 500, "system": "Be brief.", "metadata": {"user_id": "u-1"}}
    return json.dumps({**body, "messages": anthropic_messages(steps)[:-1]}, indent=1)


def claude_code(steps: int = STEPS) -> str:
    """A session file: book-keeping lines, one block a line, usage, the copy of each result."""
    base = {
        "sessionId": "s-1",
        "cwd": "/home/me/shop",
        "version": "2.1.0",
        "isSidechain": False,
        "userType": "external",
    }
    lines: list[dict[str, Any]] = [{"type": "file-history-snapshot", "messageId": "m", "snapshot": {}}]
    parent: str | None = None
    for place, said in enumerate(anthropic_messages(steps)):
        blocks = said["content"] if said["role"] == "assistant" else [None]
        for block in blocks:
            uuid = f"u-{len(lines)}"
            line = {"uuid": uuid, "parentUuid": parent, **base, "timestamp": "2026-03-01T10:00:00.000Z"}
            if block is None:
                copy = {"toolUseResult": {"stdout": str(said["content"])}} if place else {}
                lines.append({**line, "type": "user", "message": said, **copy})
            else:
                sent = STEP_TOKENS * (place // 2)
                usage = {"input_tokens": 50, "cache_read_input_tokens": sent, "output_tokens": 35}
                reply = {"id": f"msg_{place}", "type": "message", "model": "claude-sonnet-4-5", "usage": usage}
                lines.append(
                    {**line, "type": "assistant", "message": {**reply, "role": "assistant", "content": [block]}}
                )
            parent = uuid
        lines.append({"type": "progress", "uuid": f"p-{len(lines)}", "parentUuid": parent, "data": {"n": place}})
        parent = f"p-{len(lines) - 1}"
    return _dump(*lines)


def stream_json(steps: int = STEPS) -> str:
    """The events of `claude -p --output-format stream-json`."""
    lines: list[dict[str, Any]] = [
        {"type": "system", "subtype": "init", "session_id": "s-1", "model": "claude-sonnet-4-5"}
    ]
    for place, said in enumerate(anthropic_messages(steps)):
        message = said
        if said["role"] == "assistant":
            usage = {"input_tokens": 50 + STEP_TOKENS * (place // 2), "output_tokens": 35}
            message = {**said, "id": f"msg_{place}", "type": "message", "model": "claude-sonnet-4-5", "usage": usage}
        lines.append({"type": said["role"], "message": message, "session_id": "s-1", "parent_tool_use_id": None})
    return _dump(*lines)


def codex(steps: int = STEPS) -> str:
    """A rollout: items among events about them."""
    stamp = "2026-03-01T10:00:00.000Z"
    meta = {"id": "s-1", "cwd": "/home/me/shop", "base_instructions": {"text": "Be brief."}}
    lines: list[dict[str, Any]] = [
        {"timestamp": stamp, "type": "session_meta", "payload": meta},
        {"timestamp": stamp, "type": "turn_context", "payload": {"model": "gpt-5-codex", "cwd": "/home/me/shop"}},
    ]
    lines += [{"timestamp": stamp, "type": "response_item", "payload": item} for item in _items(steps)]
    lines.insert(4, {"timestamp": stamp, "type": "event_msg", "payload": {"type": "agent_message", "message": "again"}})
    return _dump(*lines)


def _items(steps: int) -> list[dict[str, Any]]:
    ask = {"type": "input_text", "text": "Find out why port 7091 drops jobs."}
    items: list[dict[str, Any]] = [{"type": "message", "role": "user", "content": [ask]}]
    for step in range(steps):
        arguments = json.dumps({"pattern": f"job_{step}"})
        items.append({"type": "function_call", "call_id": f"call_{step}", "name": "grep", "arguments": arguments})
        items.append({"type": "function_call_output", "call_id": f"call_{step}", "output": _output(step)})
    end = {"type": "output_text", "text": "The queue was full."}
    return [*items, {"type": "message", "role": "assistant", "content": [end]}]


def openai_responses(steps: int = STEPS) -> str:
    """A Responses request."""
    return json.dumps({"model": "gpt-5", "instructions": "Be brief.", "store": False, "input": _items(steps)})


def openai(steps: int = STEPS) -> str:
    """A bare list of chat messages."""
    made: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Find out why port 7091 drops jobs."},
    ]
    for step in range(steps):
        function = {"name": "grep", "arguments": json.dumps({"pattern": f"job_{step}"})}
        call = {"id": f"call_{step}", "type": "function", "function": function}
        made.append({"role": "assistant", "content": None, "tool_calls": [call]})
        made.append({"role": "tool", "tool_call_id": f"call_{step}", "content": _output(step)})
    return json.dumps(made)


def openai_lines(steps: int = STEPS) -> str:
    """The same, one message a line."""
    return _dump(*json.loads(openai(steps)))


def gemini(steps: int = STEPS) -> str:
    """A Gemini request."""
    made: list[dict[str, Any]] = [{"role": "user", "parts": [{"text": "Find out why port 7091 drops jobs."}]}]
    for step in range(steps):
        call = {"functionCall": {"name": "grep", "args": {"pattern": f"job_{step}"}}}
        result = {"functionResponse": {"name": "grep", "response": {"output": _output(step)}}}
        made += [{"role": "model", "parts": [call]}, {"role": "user", "parts": [result]}]
    system = {"parts": [{"text": "Be brief."}]}
    return json.dumps({"systemInstruction": system, "contents": made, "generationConfig": {"temperature": 0}})


def pi(steps: int = STEPS) -> str:
    """A pi session: a tree of entries."""
    stamp = "2026-03-01T10:00:00.000Z"
    lines: list[dict[str, Any]] = [
        {"type": "session", "version": 3, "id": "s-1", "timestamp": stamp, "cwd": "/home/me"}
    ]
    said: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": "Why does 7091 drop jobs?"}]}]
    for step in range(steps):
        call = {"type": "toolCall", "id": f"call_{step}", "name": "grep", "arguments": {"pattern": f"job_{step}"}}
        usage = {"input": 50 + STEP_TOKENS * step, "output": 35, "cacheRead": 0, "cacheWrite": 0}
        said.append({"role": "assistant", "content": [call], "model": "claude-sonnet-4-5", "usage": usage})
        text = {"type": "text", "text": _output(step)}
        said.append({"role": "toolResult", "toolCallId": f"call_{step}", "toolName": "grep", "content": [text]})
    parent: str | None = None
    for place, message in enumerate(said):
        entry = {"type": "message", "id": f"e-{place}", "parentId": parent, "timestamp": stamp, "message": message}
        lines.append(entry)
        parent = f"e-{place}"
    return _dump(*lines)


SESSIONS = {
    "anthropic": anthropic,
    "claude-code": claude_code,
    "stream-json": stream_json,
    "codex": codex,
    "openai-responses": openai_responses,
    "openai": openai,
    "openai lines": openai_lines,
    "gemini": gemini,
    "pi": pi,
}
"""By name: a function that gives the file's text, `steps` long."""
