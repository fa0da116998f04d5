"""A Claude Code session file with a compaction of its own."""

from __future__ import annotations

import json
from typing import Any


def claude_code_session(*, old: int, new: int, words: int = 0, digest: str = "This session is being continued.") -> str:
    """A session file with `old` messages, a compaction, its digest and `new` messages; the last one has a usage."""
    usage = {"input_tokens": 1_000, "cache_read_input_tokens": 8_000, "output_tokens": 10}
    lines: list[dict[str, Any]] = []

    def add(role: str, content: Any, **fields: Any) -> None:
        message = {"role": role, "content": content}
        if role == "assistant":
            message |= {"id": f"msg_{len(lines)}", "type": "message", "model": "claude-opus-5", "usage": usage}
        above = f"u{len(lines) - 1}" if lines else None
        lines.append(
            {
                "type": role,
                "uuid": f"u{len(lines)}",
                "parentUuid": above,
                "sessionId": "s",
                "message": message,
                **fields,
            }
        )

    for number in range(old):
        add("assistant" if number % 2 else "user", f"message {number} " * 200)
    add("user", digest, isCompactSummary=True)
    for number in range(new):
        add("user" if number % 2 else "assistant", f"newer {number}" + f" word{number}" * words)
    return "\n".join(map(json.dumps, lines))
