"""Recognises the summary at the start of a history that a client has compacted."""

from __future__ import annotations

from foldline.message import Message, Opaque, Text

_BEGINNINGS = (
    "This session is being continued from a previous conversation",  # Claude Code
    "Another language model started to solve this problem and produced a summary",  # Codex
    "The conversation history before this point was compacted into the following summary",  # pi
    "<state_snapshot>",  # Gemini CLI
)


def is_client_summary(message: Message) -> bool:
    """Whether a message replaces an earlier history: a summary by the client, or a compaction by the provider."""
    if any(isinstance(part, Opaque) and part.kind == "compaction" for part in message.parts):
        return True
    texts = (part.text for part in message.parts if isinstance(part, Text))
    return message.role == "user" and any(text.lstrip()[:200].startswith(_BEGINNINGS) for text in texts)
