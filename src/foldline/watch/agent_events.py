"""Reads one event of an agent. The input is untrusted: every field may hold any JSON value, and no function raises.

Claude Code's stream-json and its session files have different names for the same fields, such as `session_id` and
`sessionId`. `AgentEvent` reads both names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from foldline.human_input import human_words, refusal_comment
from foldline.tool_calls import edited_files, patched_files

if TYPE_CHECKING:
    from foldline.message import Usage

RawEvent: TypeAlias = dict[str, Any]

_SESSION_KINDS = ("assistant", "user", "result", "system")
DELTA_PREFIX = b'{"type":"stream_event"'
"""Start of a line that contains a part of a reply. Such lines are skipped: a later line contains the whole reply."""
_NOT_HUMAN = (
    "<bash-",
    "<local-command-",
    "<task-notification>",
    "[Request interrupted by user",
    "Caveat: The messages",
)
"""Prefixes of texts that have the user's role but were not written by a person."""
_SYNTHETIC_MARKS = ("isMeta", "isSynthetic", "isCompactSummary")
_EDITOR = re.compile(r"(?:<(ide_\w+)>.*?</\1>\s*)+", re.DOTALL)
"""Text that an editor adds before the user's words, such as the open file or the selected lines."""
_REMINDER = re.compile(r"<system-reminder>.*?(?:</system-reminder>|\Z)", re.DOTALL)
_NONE: Sequence[dict[str, Any]] = ()


def load(line: bytes) -> RawEvent | None:
    """The event on a line; None for a partial reply and for anything that is not a JSON object."""
    if line.startswith(DELTA_PREFIX):
        return None
    try:
        value = _fast_parser()(line)
    except (ValueError, RecursionError):
        value = _parse_leniently(line)
    return value if type(value) is dict else None


@cache
def _fast_parser() -> Callable[[bytes], Any]:
    """The parser of orjson (which is faster) if orjson is installed, else the parser of the module json."""
    try:
        import orjson  # noqa: PLC0415
    except ImportError:
        return _parse_leniently
    return orjson.loads


def _parse_leniently(line: bytes) -> Any:
    """Parse JSON that a strict parser refuses: bytes that are not UTF-8, lone surrogates, NaN."""
    try:
        return json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def text_at(event: Any, key: str) -> str:
    """The text under a key; "" if the value is not a text."""
    found = event.get(key) if type(event) is dict else None
    return found if type(found) is str else ""


def first_text(event: Any, keys: Sequence[str]) -> str:
    """The first non-empty text under one of these keys; "" if there is none."""
    for key in keys:
        found = text_at(event, key)
        if found:
            return found
    return ""


def dict_at(event: Any, key: str) -> dict[str, Any]:
    """The object under a key; an empty dict if the value is not an object."""
    found = event.get(key) if type(event) is dict else None
    return found if type(found) is dict else {}


class AgentEvent:
    """One event of an agent. The event is parsed once, and then passed to several readers."""

    __slots__ = ("_edited", "_usage", "calls", "is_subagent", "kind", "message", "raw", "results", "session")

    def __init__(self, raw: RawEvent) -> None:
        kind, message = raw.get("type"), raw.get("message")
        self.kind = kind if type(kind) is str else ""
        self.raw = raw
        session = raw.get("session_id") or raw.get("sessionId")
        is_named = kind in _SESSION_KINDS and not (kind == "system" and text_at(raw, "subtype").startswith("hook"))
        self.session = session if is_named and type(session) is str else ""
        """Id of the session; "" if the event names no session. The id in a hook event is ignored, because it may be the
        id of another session.
        """
        self.is_subagent = type(raw.get("parent_tool_use_id")) is str or raw.get("isSidechain") is True
        """Whether a sub-agent sent the event; sub-agents have windows of their own."""
        self.message: dict[str, Any] = message if type(message) is dict else {}
        self._usage: Usage | None = None
        self._edited: list[list[str]] | None = None
        self.calls = self.results = _NONE
        """The tool calls and the tool results of the event. A call is a block of the message, or the event itself."""
        if kind == "assistant":
            self.calls = _blocks(self.message, "tool_use")
        elif kind == "user":
            self.results = _blocks(self.message, "tool_result")
        elif kind == "tool_use":
            self.calls = (raw,)

    @property
    def usage(self) -> Usage | None:
        """The provider's usage figures in this event; None if the event has none."""
        if self._usage is None and self.kind == "assistant":
            self._usage = _usage_parser()(self.message.get("usage"))
        return self._usage

    @property
    def edited(self) -> list[list[str]]:
        """The files that the calls edit or write, one list for each call. A patch of Codex counts as a call."""
        if self._edited is None:
            self._edited = [edited_files(text_at(call, "name"), dict_at(call, "input")) for call in self.calls]
            if self.kind == "response_item":
                patch = dict_at(self.raw, "payload")
                if patch.get("name") == "apply_patch":
                    self._edited.append(patched_files(first_text(patch, ("input", "arguments"))))
        return self._edited


@cache
def _usage_parser() -> Callable[[Any], Usage | None]:
    # importing `wire` takes longer than a hook may run
    from foldline.wire.anthropic.usage import anthropic_usage  # noqa: PLC0415

    return anthropic_usage


def _blocks(message: dict[str, Any], kind: str) -> Sequence[dict[str, Any]]:
    content = message.get("content")
    if type(content) is not list:
        return _NONE
    if len(content) == 1:  # nearly always
        only = content[0]
        return content if type(only) is dict and only.get("type") == kind else _NONE
    return [block for block in content if type(block) is dict and block.get("type") == kind]


def extract_text(content: Any) -> str:
    r"""The text of a message's content. The content is a string or a list of blocks.

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


def human_text(event: AgentEvent) -> str:
    """What a person wrote in a user event; "" if the person wrote nothing.

    Tool results, digests and the agent's own notices are left out.
    """
    content = event.message.get("content") if event.message else event.raw.get("content")
    if type(content) is list and len(content) == len(event.results):
        return ""
    if event.kind != "user" or event.is_subagent or is_synthetic(event):
        return ""
    text = extract_text(content)
    if "<system-reminder>" in text:
        text = _REMINDER.sub("", text)
    text = text.strip()
    if text.startswith("<ide_"):
        prefix = _EDITOR.match(text)
        text = text[prefix.end() :] if prefix else text
    if text.startswith("<command-"):
        name, arguments = _between(text, "command-name"), _between(text, "command-args")
        return f"{name} {arguments}" if arguments else ""
    return "" if text.startswith(_NOT_HUMAN) else text


def codex_prompt(event: AgentEvent) -> str:
    """What a person wrote in an event of Codex; "" if the event is not a prompt.

    Codex writes each prompt as an event and also as an item with the user's role. Items are not read, because some of
    them contain text that Codex adds, such as the instructions of the project.
    """
    payload = dict_at(event.raw, "payload")
    if event.kind != "event_msg" or payload.get("type") != "user_message":
        return ""
    return human_words(text_at(payload, "message"))


def is_synthetic(event: AgentEvent) -> bool:
    """Whether the agent marks the event as text that no person wrote, such as a digest or a caveat."""
    return any(event.raw.get(mark) is True for mark in _SYNTHETIC_MARKS)


def refusal_text(result: dict[str, Any]) -> str:
    """The comment of a person who refused a call, taken from the call's result; "" if there is none."""
    if result.get("is_error") is not True:
        return ""
    return refusal_comment(extract_text(result.get("content")))


def _between(text: str, tag: str) -> str:
    return text.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0].strip()


def is_compaction(event: AgentEvent) -> bool:
    """Whether the event says that the agent compacted its conversation."""
    is_boundary = event.kind == "system" and event.raw.get("subtype") == "compact_boundary"
    return (is_boundary or event.kind == "compacted") and not event.is_subagent
