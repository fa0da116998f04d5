"""One event of an agent, read without trusting it: any JSON may stand in any place, and nothing here raises.

Claude Code's stream-json and its session files say the same in two spellings (`session_id` and `sessionId`,
`parent_tool_use_id` and `isSidechain`); whoever watches should not have to know which of them it is reading.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeAlias

from foldline.message import Usage
from foldline.wire.usage import anthropic_usage

RawEvent: TypeAlias = dict[str, Any]

EDITS = {"Write": "file_path", "Edit": "file_path", "MultiEdit": "file_path", "NotebookEdit": "notebook_path"}
"""The tools that change a file, and the field that names it."""

_SPEAKS = ("assistant", "user", "result", "system")
DELTA_PREFIX = b'{"type":"stream_event"'
"""A piece of a reply that arrives whole later: most of a stream, and nothing for us in it."""
_NOT_SAID = ("<bash-", "<local-command-", "<task-notification>", "[Request interrupted by user", "Caveat: The messages")
"""How texts begin that stand in the user's role although no person wrote them."""
_MADE_UP = ("isMeta", "isSynthetic", "isCompactSummary")
_REFUSED = "To tell you how to proceed, the user said:"
_REFUSAL_CHARS = 10_000
_AFTER_REFUSAL, _ASKED_BACK = "\n\nNote: The user's next message may", "The user wants to clarify these questions."
"""What the agent itself puts behind a person's words, or in their place."""
_EDITOR = re.compile(r"(?:<(ide_\w+)>.*?</\1>\s*)+", re.DOTALL)
"""What an editor puts before a person's words: the file that is open, the lines that are selected."""
_REMINDER = re.compile(r"<system-reminder>.*?(?:</system-reminder>|\Z)", re.DOTALL)
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)


_NONE: Sequence[dict[str, Any]] = ()


def load(line: bytes) -> RawEvent | None:
    """The event on a line; None for garbage, half a line, or what is no object."""
    if line.startswith(DELTA_PREFIX):
        return None
    try:
        value = _reader()(line)
    except (ValueError, RecursionError):
        value = _read(line)
    return value if type(value) is dict else None


@cache
def _reader() -> Callable[[bytes], Any]:
    """Half of the work on an event is to read it, and orjson does that in half the time, where it is installed."""
    try:
        import orjson  # noqa: PLC0415
    except ImportError:
        return _read
    return orjson.loads


def _read(line: bytes) -> Any:
    """What no strict reader takes: bytes that are no UTF-8, halves of characters, numbers that are none."""
    try:
        return json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def text_at(event: Any, key: str) -> str:
    """The text under a key; "" for anything else."""
    found = event.get(key) if type(event) is dict else None
    return found if type(found) is str else ""


def first_text(event: Any, keys: Sequence[str]) -> str:
    """The first text that stands under one of these keys; "" when there is none."""
    for key in keys:
        found = text_at(event, key)
        if found:
            return found
    return ""


def dict_at(event: Any, key: str) -> dict[str, Any]:
    """The object under a key; an empty one for anything else."""
    found = event.get(key) if type(event) is dict else None
    return found if type(found) is dict else {}


class AgentEvent:
    """One event as far as anybody here needs it, read once for all of them."""

    __slots__ = ("_usage", "aside", "calls", "event", "kind", "message", "results", "session")

    def __init__(self, event: RawEvent) -> None:
        kind, message = event.get("type"), event.get("message")
        self.kind = kind if type(kind) is str else ""
        self.event = event
        session = event.get("session_id") or event.get("sessionId")
        self.session = session if type(session) is str and _has_session(event, self.kind) else ""
        """The session it belongs to."""
        self.aside = type(event.get("parent_tool_use_id")) is str or event.get("isSidechain") is True
        """Whether a sub-agent says it: it fills a window of its own."""
        self.message: dict[str, Any] = message if type(message) is dict else {}
        self._usage: Usage | None = None
        self.calls = self.results = _NONE
        """The tool calls in it, nested in an assistant's message or the event itself, and what came back of calls."""
        if kind == "assistant":
            self.calls = _blocks(self.message, "tool_use")
        elif kind == "user":
            self.results = _blocks(self.message, "tool_result")
        elif kind == "tool_use":
            self.calls = (event,)

    @property
    def usage(self) -> Usage | None:
        """What the provider says of the call behind a reply."""
        if self._usage is None and self.kind == "assistant":
            self._usage = anthropic_usage(self.message.get("usage"))
        return self._usage


def _has_session(event: RawEvent, kind: str) -> bool:
    """Whether an event's session is the agent's. Hooks run before that is known, so theirs is none."""
    return kind in _SPEAKS and not (kind == "system" and text_at(event, "subtype").startswith("hook"))


def _blocks(message: dict[str, Any], kind: str) -> Sequence[dict[str, Any]]:
    content = message.get("content")
    if type(content) is not list:
        return _NONE
    if len(content) == 1:  # nearly always
        only = content[0]
        return content if type(only) is dict and only.get("type") == kind else _NONE
    return [block for block in content if type(block) is dict and block.get("type") == kind]


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


def human_text(seen: AgentEvent) -> str:
    """What a person wrote in a user event: no results, no notices of the agent, no digest; "" when nobody did."""
    event = seen.event
    content = seen.message.get("content") if seen.message else event.get("content")
    if type(content) is list and len(content) == len(seen.results):
        return ""
    if seen.kind != "user" or seen.aside or is_synthetic(seen):
        return ""
    text = extract_text(content)
    if "<system-reminder>" in text:
        text = _REMINDER.sub("", text)
    text = text.strip()
    if text.startswith("<ide_"):
        before = _EDITOR.match(text)
        text = text[before.end() :] if before else text
    if text.startswith("<command-"):
        name, words = _between(text, "command-name"), _between(text, "command-args")
        return f"{name} {words}" if words else ""
    return "" if text.startswith(_NOT_SAID) else text


def is_synthetic(seen: AgentEvent) -> bool:
    """Whether the agent says itself that no person wrote this: a digest, a caveat."""
    return any(seen.event.get(mark) is True for mark in _MADE_UP)


def refusal_text(result: dict[str, Any]) -> str:
    """What a person said when refusing a call: it comes back as that call's result; "" when nobody did."""
    if result.get("is_error") is not True:
        return ""
    words = extract_text(result.get("content"))[:_REFUSAL_CHARS].partition(_REFUSED)[2]
    said = words.partition(_AFTER_REFUSAL)[0].strip()
    return "" if said.startswith(_ASKED_BACK) else said


def _between(text: str, tag: str) -> str:
    return text.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0].strip()


def changed_file(call: dict[str, Any]) -> str:
    """The file that a call writes, as the agent named it; "" when it writes none."""
    field = EDITS.get(text_at(call, "name"))
    return text_at(call.get("input"), field) if field else ""


def patched_files(seen: AgentEvent) -> list[str]:
    """The files that a Codex patch touches."""
    patch = dict_at(seen.event, "payload")
    if patch.get("name") != "apply_patch":
        return []
    return _PATCHED.findall(first_text(patch, ("input", "arguments")))


def is_compaction(seen: AgentEvent) -> bool:
    """Whether the agent compacted its conversation here."""
    compacted = seen.kind == "system" and seen.event.get("subtype") == "compact_boundary"
    return (compacted or seen.kind == "compacted") and not seen.aside
