"""One event of an agent, read without trusting it: any JSON may stand in any place, and nothing here raises.

Claude Code's stream-json and its session files say the same in two spellings (`session_id` and `sessionId`,
`parent_tool_use_id` and `isSidechain`); whoever watches should not have to know which of them it is reading.
"""

from __future__ import annotations

import json
import re
from typing import Any, TypeAlias

Event: TypeAlias = dict[str, Any]

EDITS = {"Write": "file_path", "Edit": "file_path", "MultiEdit": "file_path", "NotebookEdit": "notebook_path"}
"""The tools that change a file, and the field that names it."""

_SPEAKS = ("assistant", "user", "result", "system")
_DELTA = b'{"type":"stream_event"'
"""A piece of a reply that arrives whole later: most of a stream, and nothing for us in it."""
_NOT_SAID = ("<bash-", "<local-command-", "<task-notification>", "[Request interrupted by user", "Caveat: The messages")
"""How texts begin that stand in the user's role although no person wrote them."""
_REFUSED = "To tell you how to proceed, the user said:"
_REFUSAL_CHARS = 10_000
_REMINDER = re.compile(r"<system-reminder>.*?(?:</system-reminder>|\Z)", re.DOTALL)
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)


def load(line: bytes) -> Event | None:
    """The event on a line; None for garbage, half a line, or what is no object."""
    if line.startswith(_DELTA):
        return None
    try:
        value = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return value if type(value) is dict else None


def text_at(event: Any, *keys: str) -> str:
    """The first text that stands under one of these keys; "" when there is none."""
    if isinstance(event, dict):
        for key in keys:
            found = event.get(key)
            if isinstance(found, str) and found:
                return found
    return ""


def dict_at(event: Any, key: str) -> dict[str, Any]:
    """The object under a key; an empty one for anything else."""
    found = event.get(key) if isinstance(event, dict) else None
    return found if isinstance(found, dict) else {}


def session_of(event: Event) -> str:
    """The session an event belongs to. Hooks run before their session is known, so their events name none."""
    if event.get("type") not in _SPEAKS or str(event.get("subtype", "")).startswith("hook"):
        return ""
    return text_at(event, "session_id", "sessionId")


def is_aside(event: Event) -> bool:
    """Whether a sub-agent says it: it fills a window of its own."""
    return isinstance(event.get("parent_tool_use_id"), str) or event.get("isSidechain") is True


def blocks_of(event: Event) -> list[dict[str, Any]]:
    """The content blocks of a message event; those that are objects."""
    message = event.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def calls_of(event: Event) -> list[dict[str, Any]]:
    """The tool calls of an event: nested in an assistant's message, or the event itself."""
    kind = event.get("type")
    if kind == "assistant":
        return [block for block in blocks_of(event) if block.get("type") == "tool_use"]
    return [event] if kind == "tool_use" else []


def results_of(event: Event) -> list[dict[str, Any]]:
    """The tool results of a user event."""
    if event.get("type") != "user":
        return []
    return [block for block in blocks_of(event) if block.get("type") == "tool_result"]


def extract_text(content: Any) -> str:
    r"""The text of a message's content, be it a plain string or a list of blocks.

    >>> extract_text("hello"), extract_text([{"type": "text", "text": "hel"}, {"type": "text", "text": "lo"}])
    ('hello', 'hel\nlo')
    """
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = (block if isinstance(block, str) else _text_of(block) for block in content)
    return "\n".join(text for text in texts if text)


def _text_of(block: Any) -> str:
    return text_at(block, "text") if isinstance(block, dict) and block.get("type") == "text" else ""


def said_by_human(event: Event) -> str:
    """What a person wrote in a user event: no results, no notices of the agent, no digest; "" when nobody did."""
    if event.get("type") != "user" or is_aside(event):
        return ""
    if any(event.get(mark) is True for mark in ("isMeta", "isSynthetic", "isCompactSummary")):
        return ""
    message = event.get("message")
    text = extract_text(message.get("content") if isinstance(message, dict) else event.get("content"))
    if "<system-reminder>" in text:
        text = _REMINDER.sub("", text)
    text = text.strip()
    if text.startswith("<command-"):
        name, words = _between(text, "command-name"), _between(text, "command-args")
        return f"{name} {words}" if words else ""
    return "" if text.startswith(_NOT_SAID) else text


def said_in_refusal(event: Event) -> list[str]:
    """What a person said when refusing a call: it comes back as that call's result."""
    texts = (extract_text(result.get("content")) for result in results_of(event) if result.get("is_error") is True)
    return [said for text in texts if (said := text[:_REFUSAL_CHARS].partition(_REFUSED)[2].strip())]


def _between(text: str, tag: str) -> str:
    return text.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0].strip()


def files_changed(event: Event) -> list[str]:
    """The files that an event's calls write, as the agent named them."""
    found = [text_at(dict_at(call, "input"), EDITS.get(str(call.get("name")), "")) for call in calls_of(event)]
    if event.get("type") == "response_item":
        patch = dict_at(event, "payload")
        if patch.get("name") == "apply_patch":
            found += _PATCHED.findall(text_at(patch, "input", "arguments"))
    return [path for path in found if path]


def is_boundary(event: Event) -> bool:
    """Whether the agent compacted its conversation here."""
    return (event.get("type") == "system" and event.get("subtype") == "compact_boundary") or (
        event.get("type") == "compacted"
    )


def ends_turn(event: Event) -> bool:
    """Whether the agent hands back: a result in a stream, a reply that wants nothing more in a session file."""
    kind = event.get("type")
    if kind == "assistant":
        message = event.get("message")
        stop = message.get("stop_reason") if isinstance(message, dict) else None
        return stop in ("end_turn", "stop_sequence", "refusal") and not is_aside(event)
    return kind == "result" or (kind == "event_msg" and dict_at(event, "payload").get("type") == "task_complete")
