"""OpenAI requests read without our codecs: Chat Completions messages and Responses items. `plain` says why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foldline.wire.rules.plain import Block, Fault, Plain, Turn, string, text_of

_CHAT_ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}


def openai(elements: list[Any], body: Mapping[str, Any]) -> Plain:  # noqa: ARG001  (all readers take the same)
    """Chat messages."""
    plain = Plain([], [], [])
    for index, message in enumerate(elements):
        role = _CHAT_ROLES.get(string(message.get("role"))) if isinstance(message, dict) else None
        if role is None:
            plain.faults.append(Fault("role", index, "not an object with a known role"))
            continue
        blocks = _chat_content(message.get("content"), index, plain)
        if role == "tool":
            key, name = string(message.get("tool_call_id")), ""
            if message["role"] == "function":
                key, name = "", string(message.get("name"))
            elif message.get("content") is None:
                plain.faults.append(Fault("empty", index, "a result without content"))
            blocks = [Block("result", index, key, name, inner=tuple(blocks))]
        elif role == "assistant":
            blocks += _chat_calls(message, index, plain)
            if not blocks and message.get("content") != "" and not (message.get("refusal") or message.get("audio")):
                plain.faults.append(Fault("empty", index, "an assistant message with neither content nor calls"))
        elif message.get("tool_calls") or message.get("function_call"):
            plain.faults.append(Fault("call-role", index, f"a call in a message of the {role}"))
        elif message.get("content") is None:
            plain.faults.append(Fault("empty", index, "a message without content"))
        plain.turns.append(Turn(index, role, blocks))
    return plain


def _chat_content(content: Any, index: int, plain: Plain) -> list[Block]:
    if isinstance(content, str):
        return [Block("text", index, text=content)] if content else []
    if content is None:
        return []
    if not isinstance(content, list) or not content:
        plain.faults.append(Fault("empty", index, "content is neither text nor a list with at least one part"))
        return []
    blocks = []
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "text":
            blocks.append(Block("text", index, text=text_of(part, index, plain)))
        elif kind == "refusal":
            blocks.append(Block("other", index))
        elif kind in ("image_url", "input_audio", "file"):
            blocks.append(Block("media", index, size=_media_size(part.get(kind))))
        elif isinstance(kind, str):
            blocks.append(Block("other", index))
        else:
            plain.faults.append(Fault("shape", index, "a content part is not an object with a type"))
    return blocks


def _media_size(value: Any) -> int:
    """The characters of base64 data in an OpenAI media part."""
    if isinstance(value, str):
        return len(value) if value.startswith("data:") else 0
    if not isinstance(value, dict):
        return 0
    url = string(value.get("url"))
    return (len(url) if url.startswith("data:") else 0) + len(string(value.get("data") or value.get("file_data")))


def _chat_calls(message: Mapping[str, Any], index: int, plain: Plain) -> list[Block]:
    blocks = []
    calls = message.get("tool_calls")
    if calls is not None and (not isinstance(calls, list) or not calls):
        plain.faults.append(Fault("empty", index, "tool_calls is not a list with at least one call"))
        calls = None
    for call in calls or ():
        kind = (call.get("type") or "function") if isinstance(call, dict) else None
        if kind not in ("function", "custom") and isinstance(kind, str):
            blocks.append(Block("call", index, string(call.get("id")), kind))
            continue
        inside = call.get(kind) if isinstance(kind, str) else None
        if not isinstance(inside, dict):
            plain.faults.append(Fault("shape", index, "a tool call is not an object with its function"))
            continue
        if not isinstance(inside.get("arguments", inside.get("input")), str):
            plain.faults.append(Fault("input-form", index, "the arguments of a call are not text"))
        blocks.append(Block("call", index, string(call.get("id")), string(inside.get("name"))))
        if not blocks[-1].id:
            plain.faults.append(Fault("id-form", index, "a tool call has no id"))
    legacy = message.get("function_call")
    if isinstance(legacy, dict):
        blocks.append(Block("call", index, "", string(legacy.get("name"))))
        if not isinstance(legacy.get("arguments"), str):
            plain.faults.append(Fault("input-form", index, "the arguments of a call are not text"))
    return blocks


_ITEM_CALLS = (
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
    "computer_call",
)
_ASKED = {"mcp_approval_request": "id", "tool_search_call": "call_id"}
_TOLD = {"mcp_approval_response": "approval_request_id", "tool_search_output": "call_id"}
"""Questions that may stay open, and their answers, by the field that ties them."""
_ITEM_RESULTS = tuple(f"{kind}_output" for kind in _ITEM_CALLS)
_ASIDE_ROLES = {"compaction_trigger": "user", "additional_tools": "system", "configuration_update": "system"}
_NAMED = ("function_call", "custom_tool_call")


def responses(elements: list[Any], body: Mapping[str, Any]) -> Plain:  # noqa: ARG001  (all readers take the same)
    """Input items."""
    plain = Plain([], [], [])
    seen = set[str]()
    for index, item in enumerate(elements):
        if not isinstance(item, dict):
            plain.faults.append(Fault("shape", index, "not an object"))
            continue
        kind = string(item.get("type") or ("message" if "role" in item else ""))
        key = item.get("id")
        if isinstance(key, str) and key and kind not in ("item_reference", "local_shell_call_output"):
            if key in seen:
                plain.faults.append(Fault("item-duplicate", index, f"the item id {key} occurs twice"))
            seen.add(key)
        if kind == "compaction_trigger" and index != len(elements) - 1:
            plain.faults.append(Fault("order", index, "a compaction trigger must be the last item"))
        turn = _item(kind, item, index, plain)
        if turn:
            plain.turns.append(turn)
    return plain


def _item(kind: str, item: Mapping[str, Any], index: int, plain: Plain) -> Turn | None:
    if kind == "message":
        role = _CHAT_ROLES.get(string(item.get("role")))
        if role in (None, "tool"):
            plain.faults.append(Fault("role", index, f"the role {item.get('role')!r} is unknown"))
            return None
        return Turn(index, str(role), _item_content(item.get("content"), index, plain))
    if kind in _ITEM_CALLS:
        return Turn(index, "assistant", [_item_call(kind, item, index, plain)])
    if kind in _ITEM_RESULTS:
        key = string(item.get("call_id") or item.get("id"))
        output = item.get("output")
        inner = _item_content(output, index, plain) if isinstance(output, list) else []
        if output is None:
            plain.faults.append(Fault("empty", index, "a result without output"))
        return Turn(index, "tool", [Block("result", index, key, inner=tuple(inner))])
    if kind in _ASKED and string(item.get(_ASKED[kind])):
        return Turn(index, "assistant", [Block("server-call", index, string(item[_ASKED[kind]]))])
    if kind in _TOLD and string(item.get(_TOLD[kind])):
        return Turn(index, "tool", [Block("server-result", index, string(item[_TOLD[kind]]))])
    if kind == "reasoning":
        return Turn(index, "assistant", [Block("thinking", index)])
    if kind in _ASIDE_ROLES:
        return Turn(index, _ASIDE_ROLES[kind], [Block("other", index)])
    if not kind:
        plain.faults.append(Fault("shape", index, "an item with neither type nor role"))
        return None
    output = kind.endswith("_output") and kind != "program_output"
    return Turn(index, "tool" if output else "assistant", [Block("other", index)])


def _item_call(kind: str, item: Mapping[str, Any], index: int, plain: Plain) -> Block:
    if kind in _NAMED and not isinstance(item.get("arguments", item.get("input")), str):
        plain.faults.append(Fault("input-form", index, "the arguments of a call are not text"))
    if not string(item.get("call_id")):
        plain.faults.append(Fault("id-form", index, "a call has no call_id"))
    return Block("call", index, string(item.get("call_id")), string(item.get("name")) if kind in _NAMED else kind)


def _item_content(content: Any, index: int, plain: Plain) -> list[Block]:
    if isinstance(content, str):
        return [Block("text", index, text=content)] if content else []
    if not isinstance(content, list):
        plain.faults.append(Fault("shape", index, "content is neither text nor a list of parts"))
        return []
    blocks = []
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind in ("input_text", "output_text", "text"):
            blocks.append(Block("text", index, text=text_of(part, index, plain)))
        elif kind in ("input_image", "input_file", "input_audio"):
            blocks.append(Block("media", index, size=_media_size(part.get("image_url")) + _media_size(part)))
        elif isinstance(kind, str):
            blocks.append(Block("other", index))
        else:
            plain.faults.append(Fault("shape", index, "a content part is not an object with a type"))
    return blocks
