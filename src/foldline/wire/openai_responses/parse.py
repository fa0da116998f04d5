"""Parses items of OpenAI's Responses API. Each item becomes one message, which keeps the exact bytes of the item.

OpenAI adds new item types every few months, so the known types are listed in tables. `CALLS` lists the calls that the
client runs. `OUTPUTS` lists the results of these calls. An unknown item becomes an `Opaque` part. A reply consists of
several items (reasoning, text, calls). The message of each of these items has the reply's id in `Meta.reply`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from foldline.errors import WireError
from foldline.json_text import dumps, loads
from foldline.message import Media, Message, Meta, Opaque, Part, Text, Thinking, ToolCall, ToolResult, Wire
from foldline.wire.field_access import list_at, object_at, string_at
from foldline.wire.openai_responses.usage import responses_usage
from foldline.wire.part_mapping import document, media_from, sdk_json, words_of

NAME = "openai-responses"
CALLS = {
    "function_call": ("function", "arguments"),
    "custom_tool_call": ("custom_tool", "input"),
    "local_shell_call": ("local_shell", "action"),
    "shell_call": ("shell", "action"),
    "apply_patch_call": ("apply_patch", "operation"),
    "computer_call": ("computer", "actions"),
    "tool_search_call": ("tool_search", "arguments"),
    "mcp_approval_request": ("mcp_approval_request", "arguments"),
}
"""Items that the client must answer, each with the kind of the call and the field that holds its arguments."""
OUTPUTS = {
    "function_call_output": "function",
    "custom_tool_call_output": "custom_tool",
    "local_shell_call_output": "local_shell",
    "shell_call_output": "shell",
    "apply_patch_call_output": "apply_patch",
    "computer_call_output": "computer",
    "tool_search_output": "tool_search",
    "mcp_approval_response": "mcp_approval_request",
}
"""Items that answer a call, each with the kind of the call."""
_PASSED_ASSISTANT = (
    *("file_search_call", "web_search_call", "code_interpreter_call", "image_generation_call", "mcp_call"),
    *("mcp_list_tools", "item_reference", "compaction", "program", "program_output"),
)
PASSED = {
    **dict.fromkeys(_PASSED_ASSISTANT, "assistant"),
    "compaction_trigger": "user",
    "additional_tools": "system",
    "configuration_update": "system",
}
"""Items that become opaque parts, each with the role of its message."""
KNOWN = frozenset(("message", "reasoning", *CALLS, *OUTPUTS, *PASSED))
"""Every item type that a request may hold (openai-python 3, read in November 2026)."""
_TEXTS = ("input_text", "output_text", "text", "summary_text", "reasoning_text", "refusal")
TEXTUAL = frozenset(("function", "custom_tool", "mcp_approval_request"))
"""Kinds of calls whose arguments are a text. The arguments of other calls are a JSON value."""


def parse(value: Any, raw: str | None = None) -> Message:
    """The message for one item of `input`, or for an `input` that is a plain text."""
    if isinstance(value, str):
        value, raw = {"role": "user", "content": value}, None
    if not isinstance(value, dict):
        value, raw = sdk_json(value), None
        if not isinstance(value, dict):
            raise WireError("an item must be an object", field="item")
    return item(value, Wire(NAME, value, raw))


def item(value: dict[str, Any], wire: Wire | None = None) -> Message:
    """The message for one item, with the given wire form."""
    kind = value.get("type")
    if kind == "message" or (kind is None and "role" in value):
        return _message(value, wire)
    if kind is None:
        kind = "item_reference" if "id" in value else ""
    if not isinstance(kind, str) or not kind:
        raise WireError("an item needs a type or a role", field="type", hint='such as "message"')
    if kind in CALLS and _is_answered(kind, value):
        return Message(role="assistant", parts=(call(value),), wire=wire)
    if kind in OUTPUTS and _is_answered(kind, value):
        return Message(role="tool", parts=(result(value),), wire=wire)
    if kind == "reasoning":
        return Message(role="assistant", parts=(thinking(value),), wire=wire)
    role = PASSED.get(kind) or ("tool" if kind.endswith("_output") else "assistant")
    return Message(role=role, parts=(Opaque(kind=kind, value=value, wire=Wire(NAME, value)),), wire=wire)


def _message(value: dict[str, Any], wire: Wire | None) -> Message:
    role = value.get("role")
    if not isinstance(role, str) or not role:
        raise WireError("a message needs a role", field="role", hint='such as "user"')
    content = value.get("content")
    if not isinstance(content, (str, list)):
        raise WireError("content must be text or a list of parts", field="content")
    return Message(role="system" if role == "developer" else role, parts=_output(content, "message"), wire=wire)


def content_part(value: Any) -> Part:
    """The part for one piece of a message's content or of a result's output."""
    kind = value.get("type") if isinstance(value, dict) else None
    wire = Wire(NAME, value)
    key = "refusal" if kind == "refusal" else "text"
    if kind in _TEXTS and isinstance(value.get(key), str):
        return Text(text=value[key], wire=wire)
    if kind in ("input_image", "computer_screenshot"):
        if isinstance(value.get("image_url"), str):
            return media_from("image", value["image_url"], wire)
        if isinstance(value.get("file_id"), str):
            return Media(kind="image", wire=wire)
    if kind == "input_file":
        if isinstance(value.get("file_data"), str):
            return document(value["file_data"], wire)
        if isinstance(value.get("file_url"), str):
            return Media(kind="document", url=value["file_url"], wire=wire)
        if isinstance(value.get("file_id"), str):
            return Media(kind="document", wire=wire)
    if kind == "function_call" and isinstance(value.get("name"), str):
        return call(value)
    if kind is None and isinstance(value, dict) and isinstance(value.get("stdout"), str):
        return Text(text=_shell_text(value), wire=wire)
    return Opaque(kind=kind if isinstance(kind, str) else "untyped", value=value, wire=wire)


def _shell_text(value: dict[str, Any]) -> str:
    """The output of one command of a shell call, plus a note on a timeout or on an exit code other than 0."""
    error, outcome = value.get("stderr"), value.get("outcome")
    text: str = value["stdout"] + (error if isinstance(error, str) else "")
    if isinstance(outcome, dict):
        if outcome.get("type") == "timeout":
            return f"{text}\n[timed out]"
        if outcome.get("exit_code"):
            return f"{text}\n[exit code {outcome['exit_code']}]"
    return text


def _is_answered(kind: str, value: dict[str, Any]) -> bool:
    """False for the items of a tool search that the server ran, which have no call id. True for any other call or
    result.
    """
    return not kind.startswith("tool_search") or isinstance(value.get("call_id"), str)


def call(value: dict[str, Any]) -> ToolCall:
    """The part for a call that the client answers."""
    kind, key = CALLS[value["type"]]
    named = "name" in value or kind in TEXTUAL
    return ToolCall(
        id=_call_id(value, "id" if kind == "mcp_approval_request" else "call_id"),
        name=_text(value, "name") if named else kind,
        arguments=_payload(value, "action" if key == "actions" and key not in value else key),
        kind=kind,
        wire=Wire(NAME, value),
    )


def _payload(value: dict[str, Any], key: str) -> str:
    found = value.get(key)
    if isinstance(found, str):
        return found
    if key == "input":
        raise WireError("input must be text", field=key)
    return dumps(found) if found is not None else "{}"


def result(value: dict[str, Any]) -> ToolResult:
    """The part for the answer to a call."""
    kind = OUTPUTS[value["type"]]
    if kind == "mcp_approval_request":
        verdict = "approved" if value.get("approve") is True else "denied"
        reason = value.get("reason")
        answer = Text(text=f"{verdict}: {reason}" if isinstance(reason, str) and reason else verdict)
        return ToolResult(call_id=_text(value, "approval_request_id"), parts=(answer,))
    output = value.get("tools" if kind == "tool_search" else "output")
    return ToolResult(
        call_id=_call_id(value, "call_id"),
        name=string_at(value, "name"),
        parts=_output(output, kind),
        is_error=value.get("status") == "failed" or (isinstance(output, dict) and output.get("success") is False),
    )


def _output(output: Any, kind: str) -> tuple[Part, ...]:
    if isinstance(output, str):
        return (Text(text=output),) if output else ()
    if output is None:
        return ()
    if kind == "tool_search":
        return (Opaque(kind="tools", value=output, wire=Wire(NAME, output)),)
    if isinstance(output, list):
        return tuple([_inner_part(part, kind) for part in output])
    if isinstance(output, dict) and "type" not in output and isinstance(output.get("content"), str):
        return (Text(text=output["content"]),)  # older Codex versions wrote this for a failure
    return (_inner_part(output, kind),)


def _inner_part(value: Any, kind: str) -> Part:
    """The part for one item of an output. In the result of a function, a value without a type becomes JSON text."""
    is_plain = kind in ("function", "custom_tool") and not (isinstance(value, dict) and "type" in value)
    return Text(text=words_of(value)) if is_plain else content_part(value)


def thinking(value: dict[str, Any]) -> Thinking:
    """The part for a reasoning item: its readable summary, and its encrypted body as signature."""
    entries = [entry for key in ("summary", "content") for entry in list_at(value, key)]
    texts = [entry["text"] for entry in entries if isinstance(entry, dict) and isinstance(entry.get("text"), str)]
    return Thinking(text="\n".join(texts), signature=string_at(value, "encrypted_content"), wire=Wire(NAME, value))


def _call_id(value: dict[str, Any], key: str) -> str:
    """The id that pairs a call with its answer. A local shell item without such an id is paired by its item id."""
    found = value.get(key)
    if found is None and "local_shell" in value["type"]:
        found = value.get("id")
    if found is not None and not isinstance(found, str):
        raise WireError(f"{key} must be text", field=key)
    return found or ""


def _text(value: dict[str, Any], key: str) -> str:
    found = value.get(key)
    if not isinstance(found, str):
        raise WireError(f"{key} must be text", field=key)
    return found


def payload(call: ToolCall) -> Any:
    """The arguments of a call: a text, or a JSON value if this kind of call has JSON arguments."""
    return call.arguments if call.kind in TEXTUAL else loads(call.arguments, field=call.kind)


def parse_system(value: Any) -> Message:
    """The system message for the value under `instructions`."""
    if not isinstance(value, str):
        raise WireError("instructions must be text", field="instructions")
    return Message(role="system", parts=(Text(text=value),) if value else (), wire=Wire(NAME, value))


def parse_reply(value: Any) -> tuple[Message, ...]:
    """The messages in a `response` object, one per output item. The last message has the stop reason and the usage."""
    value = sdk_json(value)
    output = value.get("output") if isinstance(value, dict) else None
    if not isinstance(output, list):
        raise WireError("a reply must be an object with output items", field="output")
    at = value.get("created_at")
    seconds = float(at) if isinstance(at, (int, float)) else None
    meta = Meta(reply=string_at(value, "id"), model=string_at(value, "model"), at=seconds)
    messages = [_parse_output(item, place).with_meta(meta) for place, item in enumerate(output)]
    if messages:
        reason = object_at(value, "incomplete_details").get("reason")
        stop = reason if isinstance(reason, str) else string_at(value, "status")
        messages[-1] = messages[-1].with_meta(replace(meta, stop=stop, usage=responses_usage(value.get("usage"))))
    return tuple(messages)


def _parse_output(value: Any, place: int) -> Message:
    """The message for an output item, without the fields that SDK helpers add."""
    if isinstance(value, dict):
        value = {key: found for key, found in value.items() if key not in ("parsed_arguments", "created_by")}
    try:
        return parse(value)
    except WireError as error:
        raise WireError(error.reason, field=f"output[{place}].{error.field}", hint=error.hint) from None
