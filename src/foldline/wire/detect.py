"""Which format a JSON value is in, by signs that only one format has.

A sign is a row of a table: the format it speaks for, the words that explain it to a person, and a test on one object
of the list (or one line of the file). A value is in the format whose signs it shows, if that is exactly one. A list of
nothing but `{role, content}` texts reads the same as OpenAI chat and as Anthropic messages; it is taken as "openai".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from foldline.wire.formats import dialect

LIST_KEYS = ("messages", "contents", "input")
"""Fields of a request body that may hold the messages."""
WRAPPERS = ("messages", "history", "traj", "trajectory")
"""Fields under which other tools keep a list of messages."""
PLAIN = "openai"
"""The format of plain role and content."""
PLAIN_BODY = "plain"
"""Stands for the format of a body in which nothing but plain messages was found."""

_CODEX = {"session_meta", "response_item", "event_msg", "turn_context", "compacted"}
_CLAUDE = {"user", "assistant", "system", "progress", "attachment"}
_CLAUDE_ONLY = {"file-history-snapshot", "queue-operation", "last-prompt", "custom-title", "agent-name", "pr-link"}
_PI_ENTRIES = {"model_change", "thinking_level_change", "branch_summary", "custom_message"}
_PI_ROLES = {"toolResult", "bashExecution", "branchSummary", "compactionSummary", "hookMessage"}
_BLOCKS = {
    *("tool_use", "tool_result", "redacted_thinking", "server_tool_use", "mcp_tool_use", "mcp_tool_result"),
    *("document", "search_result", "container_upload", "compaction", "web_search_tool_result"),
}
_CHAT_PARTS = {"image_url", "input_audio", "file", "refusal"}
_ITEM_PARTS = {"input_text", "output_text", "input_image", "input_file", "summary_text", "reasoning_text"}
_CALLS = ("_call", "_call_output")
_STREAM_NEEDS = {
    "assistant": "message",
    "user": "message",
    "system": "subtype",
    "result": "subtype",
    "stream_event": "event",
}
_OWN_KEYS = {"gemini": "contents", "openai-responses": "input"}


class Found(NamedTuple):
    """A format, and what of it the value is: "body" of a request, "reply", list of "elements", "lines" of a file."""

    format: str
    shape: str
    key: str = ""
    """The field that holds the list, when the value is a wrapper around it."""
    clear: bool = True
    """False when the value shows no sign of one format only, and the default was taken."""


class Sign(NamedTuple):
    """One thing that only one format has."""

    format: str
    why: str
    test: Callable[[Mapping[str, Any]], bool]


def find(value: Any, given: str | None = None, default: str | None = None) -> Found | None:
    """What a JSON value is, or None when that is not clear.

    A `given` format is believed, where the value can be in it. A `default` decides only where the value shows no sign
    of exactly one format.
    """
    if isinstance(value, Mapping):
        return _find_object(value, given, default)
    if not isinstance(value, list) or not value or any(map(_holds_list, value)):
        return None
    if given in ("gemini", None) and all(isinstance(item, Mapping) and "candidates" in item for item in value):
        return Found("gemini", "reply")
    if given:
        return Found(given, shape_of(given))
    shown = signs(value)
    form = _only(shown)
    if form is not None:
        return Found(form, shape_of(form)) if _fits(value, form) else None
    form = _unsigned(value, shown, default)
    return Found(form, shape_of(form), clear=False) if form else None


def _unsigned(items: Sequence[Any], shown: Mapping[str, str], default: str | None) -> str | None:
    """The format of elements that show no sign, or signs of several formats: the default if it can be, else plain."""
    form = default and dialect(default)
    if form and (form in shown or (not shown and all(_is_accepted(item, form) for item in items))):
        return form
    return PLAIN if not shown and all(map(_is_plain, items)) else None


def _is_accepted(item: Any, form: str) -> bool:
    """True if an element without a sign of its own can be read in this format."""
    return isinstance(item, Mapping) and any(key in item for key in _ACCEPTED.get(form, ()))


_ACCEPTED = {"anthropic": ("role",), "openai": ("role",), "openai-responses": ("role", "type"), "pi": ("role",)}
"""The fields by which an element without a sign can be read in a format."""


def _fits(items: Sequence[Any], form: str) -> bool:
    """False when a list of messages holds what is none: session files have odd lines, requests do not."""
    own = [sign.test for sign in _SIGNS if sign.format == form]
    return shape_of(form) == "lines" or all("role" in item or any(test(item) for test in own) for item in items)


def _holds_list(item: Any) -> bool:
    """True for what is a conversation of its own inside a list of conversations; what has a role is a message."""
    if isinstance(item, Mapping):
        return "role" not in item and any(isinstance(item.get(key), list) for key in (*LIST_KEYS, *WRAPPERS))
    return isinstance(item, list)


def signs(items: Sequence[Any]) -> dict[str, str]:
    """The formats that objects of a list show signs of, each with the words for its first sign."""
    shown: dict[str, str] = {}
    for item in items:
        if not isinstance(item, Mapping):
            return {}
        for sign in _SIGNS:
            if sign.format not in shown and sign.test(item):
                shown[sign.format] = sign.why
    return shown


def candidates(value: Any) -> dict[str, str]:
    """All formats that speak for a value, with their signs: what an error has to tell when there is not just one."""
    if isinstance(value, Mapping):
        inner = next((value[key] for key in (*LIST_KEYS, *WRAPPERS) if isinstance(value.get(key), list)), [value])
        return signs(inner) or (_hints(value) if "messages" in value else {})
    return signs(value) if isinstance(value, list) else {}


def shape_of(form: str) -> str:
    """What a bare list in this format holds: lines for session files, otherwise message elements."""
    return "elements" if form in ("anthropic", "openai", "openai-responses", "gemini") else "lines"


def _find_object(value: Mapping[str, Any], given: str | None, default: str | None) -> Found | None:
    """A reply, a request body, a wrapper around a list, or a single element: in this order."""
    for form, (key, kind) in _REPLIES.items():
        if given in (form, None) and isinstance(value.get(key), list) and value.get("object", kind) == kind:
            return Found(form, "reply")
    for key in LIST_KEYS:
        body = _body_format(value, key, given)
        clear = body is not PLAIN_BODY
        if body is PLAIN_BODY:
            body = default if default in ("anthropic", "openai") else PLAIN
        if body:
            return Found(body, "body" if shape_of(body) == "elements" else "lines", key, clear)
    for key in WRAPPERS:
        if isinstance(value.get(key), list) and (inner := find(value[key], given, default)):
            return inner._replace(key=key)
    if given:
        known = value.keys() & {"role", "type", "parts"} or signs([value])
        return Found(given, shape_of(given)) if known else None
    shown = signs([value])
    one = _only(shown)
    if one:
        return Found(one, shape_of(one))
    one = _unsigned([value], shown, default)
    return Found(one, shape_of(one), clear=False) if one else None


def _body_format(value: Mapping[str, Any], key: str, given: str | None) -> str | None:
    """The format of a request body whose messages stand under `key`."""
    held = value.get(key)
    if given:
        fits = _OWN_KEYS.get(given, "messages") == key and isinstance(held, (list, str))
        return given if fits and (key == "input" or isinstance(held, list)) else None
    if key == "input" and isinstance(held, str):
        return "openai-responses" if "model" in value else None
    if not isinstance(held, list):
        return None
    shown = signs(held)
    if key != "messages":
        expected = "gemini" if key == "contents" else "openai-responses"
        return expected if expected in shown or (not shown and find(held)) else None
    if shown or not all(map(_is_plain, held)):
        return _only(shown)
    hints = _hints(value)
    return _only(hints) if hints or not held else PLAIN_BODY


def _hints(body: Mapping[str, Any]) -> dict[str, str]:
    """Formats that the fields beside plain messages speak for."""
    shown: dict[str, str] = {}
    tools = body.get("tools")
    tools = [tool for tool in tools if isinstance(tool, Mapping)] if isinstance(tools, list) else []
    if body.keys() & _ANTHROPIC_FIELDS or any("input_schema" in tool for tool in tools):
        shown["anthropic"] = "fields of an Anthropic request"
    if body.keys() & _CHAT_FIELDS or any("function" in tool for tool in tools):
        shown["openai"] = "fields of an OpenAI chat request"
    return shown


_ANTHROPIC_FIELDS = {"system", "anthropic_version", "stop_sequences", "thinking", "top_k", "mcp_servers"}
_CHAT_FIELDS = {
    *("max_completion_tokens", "response_format", "stream_options", "functions", "reasoning_effort", "stop"),
    *("frequency_penalty", "presence_penalty", "logit_bias", "logprobs", "n", "parallel_tool_calls"),
}
_REPLIES = {
    "openai": ("choices", "chat.completion"),
    "openai-responses": ("output", "response"),
    "gemini": ("candidates", "gemini"),
}
"""The list field of a reply, and what its `object` says."""


def _only(shown: Mapping[str, str]) -> str | None:
    return next(iter(shown)) if len(shown) == 1 else None


def _is_plain(item: Any) -> bool:
    """True for a role with a text, which several formats write alike."""
    if not isinstance(item, Mapping) or not isinstance(item.get("role"), str) or "content" not in item:
        return False
    content = item["content"]
    return content is None or isinstance(content, str) or all(kind == "text" for kind in _blocks(item) or {""})


def _blocks(item: Mapping[str, Any]) -> set[str]:
    """The types of an item's content blocks; a block without one has type ""."""
    content = item.get("content")
    blocks = content if isinstance(content, list) else ()
    return {_type(block) if isinstance(block, Mapping) else "" for block in blocks}


def _is_codex(item: Mapping[str, Any]) -> bool:
    return _type(item) in _CODEX and isinstance(item.get("payload"), Mapping)


def _is_claude_code(item: Mapping[str, Any]) -> bool:
    """A line of a Claude Code session. Qwen's lines look alike, but hold Gemini parts and a `systemPayload`."""
    kind = _type(item)
    if kind in _CLAUDE_ONLY or (kind == "summary" and "leafUuid" in item):
        return True
    message = item.get("message")
    foreign = "systemPayload" in item or (isinstance(message, Mapping) and "parts" in message)
    ours = "parentUuid" in item or ("sessionId" in item and ("uuid" in item or "message" in item))
    return kind in _CLAUDE and not foreign and ours


def _is_stream_json(item: Mapping[str, Any]) -> bool:
    need = _STREAM_NEEDS.get(_type(item))
    ours = "session_id" in item or "parent_tool_use_id" in item
    return need is not None and need in item and ours and "sessionId" not in item


def _is_pi(item: Mapping[str, Any]) -> bool:
    kind = _type(item)
    if kind in _PI_ENTRIES or (kind == "session" and "id" in item and "timestamp" in item):
        return True
    inner = item.get("message")
    if kind == "message" and isinstance(inner, Mapping):
        item = inner
    return _text(item, "role") in _PI_ROLES or "customType" in item or "toolCall" in _blocks(item)


def _is_responses(item: Mapping[str, Any]) -> bool:
    kind = _type(item)
    if kind.endswith(_CALLS) and kind != "tool_call":
        return "call_id" in item or "id" in item
    if kind in ("reasoning", "compaction"):
        return "encrypted_content" in item or isinstance(item.get("summary"), list)
    if kind == "message":
        return "role" in item and "content" in item and "stop_reason" not in item
    return kind == "item_reference" or bool(_blocks(item) & _ITEM_PARTS)


def _is_gemini(item: Mapping[str, Any]) -> bool:
    return isinstance(item.get("parts"), list) and "content" not in item and "type" not in item


def _is_gemini_cli(item: Mapping[str, Any]) -> bool:
    return (_type(item) == "gemini" and "content" in item) or ("projectHash" in item and "sessionId" in item)


def _is_anthropic(item: Mapping[str, Any]) -> bool:
    if _type(item) == "message":
        return "stop_reason" in item
    if "role" not in item or _blocks(item).isdisjoint(_BLOCKS | {"image", "thinking"}):
        return False
    blocks = [block for block in item["content"] if isinstance(block, Mapping)]
    return any(
        _type(block) in _BLOCKS
        or (_type(block) == "image" and "source" in block)
        or (_type(block) == "thinking" and "thinkingSignature" not in block)
        for block in blocks
    )


def _is_chat(item: Mapping[str, Any]) -> bool:
    if "role" not in item:
        return False
    if "tool_calls" in item or "function_call" in item:
        return True
    return "content" in item and (item["role"] in ("tool", "function") or not _blocks(item).isdisjoint(_CHAT_PARTS))


def _type(item: Mapping[str, Any]) -> str:
    return _text(item, "type")


def _text(item: Mapping[str, Any], key: str) -> str:
    found = item.get(key)
    return found if isinstance(found, str) else ""


_SIGNS = (
    Sign("codex", "lines with a type and a payload", _is_codex),
    Sign("claude-code", "lines with parentUuid or sessionId", _is_claude_code),
    Sign("stream-json", "events with a session_id", _is_stream_json),
    Sign("pi", "pi entries, or roles like toolResult", _is_pi),
    Sign("gemini-cli", "messages of the type gemini, or a projectHash", _is_gemini_cli),
    Sign("openai-responses", "items like function_call and reasoning", _is_responses),
    Sign("gemini", "contents with parts", _is_gemini),
    Sign("anthropic", "blocks like tool_use and tool_result", _is_anthropic),
    Sign("openai", "tool_calls, function_call or the role tool", _is_chat),
)
