"""Repairs one message by itself: removes or rewrites content that a format refuses in any conversation.

Each change is recorded in a note. A message that needs no change is returned as the same object.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import is_not
from typing import Any

from foldline.message import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult, Wire, edited
from foldline.placeholders import NO_OUTPUT, call_as_text, compacted_by_provider, unsupported_media
from foldline.wire import provider_tools
from foldline.wire.formats import LossCollector
from foldline.wire.json_values import needs_replacement, sendable_value
from foldline.wire.repair.context import (
    RepairContext,
    content_of,
    has_same_parts,
    is_signed_summary,
    native_summary,
)
from foldline.wire.repair.images import readable_image
from foldline.wire.repair.sendable_fields import with_sendable_fields, with_signed_call
from foldline.wire.validate import check

_BROKEN = frozenset(("", "untyped", "part", "text", "thinking", "redacted_thinking", "tool_use", "tool_result"))
"""Kinds of opaque parts that the parser could not read because they are malformed."""
_UNKNOWN_CALL = "tool_call "
"""Prefix of the kind of a Chat Completions call that is neither a function call nor a custom tool call.

Repair leaves such calls out.
"""
_MEDIA = frozenset(("image", "document", "image_url", "input_audio", "file", "input_image", "input_file"))
_LONGEST_NAME = 64


def with_sendable_values(index: int, message: Message, context: RepairContext) -> Message:
    """The message without lone surrogates and without numbers that are not finite."""
    if not needs_replacement(message):
        return message
    context.note("value", index, "lone surrogates and numbers that are not finite were replaced")
    replaced: Message = sendable_value(message)
    return replaced


def repair_message(index: int, message: Message, side: str, context: RepairContext) -> Message | None:
    """The message without the content that the format refuses; None if nothing is left."""
    message = with_signed_call(index, with_sendable_fields(index, message, context), context)
    own = context.own(message.wire)
    if own:
        message = _with_known_role(index, message, context)
    if side == "system" and message.results:
        context.note("role", index, "a system message with results is sent as a user message")
        message = replace(message, role="user", wire=None)
    parts = message.parts
    repaired = [_REPAIRS[type(part)](part, index, message, side, context) for part in parts]
    if parts and not any(map(is_not, repaired, parts)) and not own:
        return message
    remaining = [part for part in repaired if part is not None]
    changed = not has_same_parts(remaining, parts)
    if not remaining and (changed or not _may_be_empty(message, side, context)):
        context.note("empty", index, "left out: it has no content")
        return None
    if remaining and (changed or _is_malformed(message, context)):
        if not changed:
            context.note("shape", index, "rewritten, because a field of it was empty or missing")
        message = message.with_parts(*remaining)
    wire = message.wire
    if wire is not None and _is_message_item(wire.value) and _is_duplicate_item(index, wire, context):
        return message.with_parts(*message.parts)
    return message


def _with_known_role(index: int, message: Message, context: RepairContext) -> Message:
    """The message, as a user message if the format does not know the role in the wire form of the message."""
    wire = message.wire
    role = (wire.value.get("role", "user") or "user") if wire and isinstance(wire.value, dict) else "user"
    if role in context.grammar.roles:
        return message
    context.note("role", index, f"{context.grammar.name} has no role {role!r}: sent as a user message")
    return replace(message, role="user", wire=None)


def _may_be_empty(message: Message, side: str, context: RepairContext) -> bool:
    must_be_text = context.grammar.empty_must_be_text and context.exact(message.wire)
    return side in context.grammar.empty and (not must_be_text or isinstance(content_of(message.wire), str))


def _is_malformed(message: Message, context: RepairContext) -> bool:
    """True for a message that would be sent verbatim although its wire value is malformed."""
    wire = message.wire
    return context.exact(wire) and isinstance(wire.value, dict) and context.grammar.is_malformed(wire.value)


def _is_message_item(value: Any) -> bool:
    """True for an element that is a message, and not another type of item such as a call or reasoning."""
    return isinstance(value, dict) and value.get("type", "message") == "message"


def _is_duplicate_item(index: int, wire: Wire | None, context: RepairContext) -> bool:
    if not context.grammar.item_ids or wire is None or not (wire.exact and wire.format == context.format):
        return False
    key = wire.value.get("id") if isinstance(wire.value, dict) else None
    if not isinstance(key, str) or not key or wire.value.get("type") == "item_reference":
        return False
    context.items[key].append(index)
    if len(context.items[key]) == 1:
        return False
    context.note("item-duplicate", index, f"the item id {key} occurs twice: the second item is sent without an id")
    return True


def _repair_text(part: Text, index: int, _message: Message, _side: str, context: RepairContext) -> Part | None:
    if not context.grammar.is_blank(part.text):
        return part
    context.note("blank", index, "a text without a visible character was left out")
    return None


def _repair_thinking(part: Thinking, index: int, _message: Message, side: str, context: RepairContext) -> Part | None:
    if side != "assistant" and context.own(part.wire):
        context.note("thinking-role", index, "thinking outside the assistant's messages was left out")
        return None
    if context.grammar.signed_thinking and not part.signature and (part.wire is None or context.own(part.wire)):
        context.note("thinking-unsigned", index, "thinking without its signature was left out")
        return None
    context.has_thinking = True
    return None if _is_duplicate_item(index, part.wire, context) else part


def _repair_media(part: Media, index: int, message: Message, side: str, context: RepairContext) -> Part | None:
    readable = readable_image(part, context.grammar)
    if readable is None:
        context.note("media-unreadable", index, "a placeholder replaced an image that the provider cannot read")
        return Text(text=unsupported_media(part))
    if readable is not part:
        context.note("media-form", index, f"{context.grammar.name} refuses the form of an image: rewritten")
        part = readable
    if side in context.grammar.media_roles:
        return part
    alone = message if context.exact(message.wire) and part in message.parts else replace(message, parts=(part,))
    rendered = context.target.render(alone, LossCollector())
    if not any(violation.code == "media-role" for violation in check(context.format, rendered)):
        return part
    words = f"{context.grammar.name} accepts no {part.kind} from the {side}: replaced by a placeholder"
    context.note("media-role", index, words)
    return Text(text=unsupported_media(part))


def _repair_call(part: ToolCall, index: int, _message: Message, side: str, context: RepairContext) -> Part | None:
    grammar = context.grammar
    if side != "assistant":
        context.note("call-role", index, f"the call {part.id} is outside the assistant's messages: sent as text")
        return Text(text=call_as_text(part))
    fields: dict[str, str] = {}
    checked = context.exact(part.wire) or not grammar.renders_legal_ids
    if (checked or not part.name) and not context.grammar.is_legal_name(part.name):
        fields["name"] = legal_name(part.name)
        context.note(
            "name", index, f"{grammar.name} refuses the tool name {part.name[:80]!r}: changed to {fields['name']}"
        )
    if checked and part.id and not context.grammar.is_legal_id(part.id):
        fields["id"] = legal_id(part.id)
        context.note("id", index, f"{grammar.name} refuses the call id {part.id[:80]!r}: changed to {fields['id']}")
    if not fields and not _is_duplicate_item(index, part.wire, context):
        if _has_valid_input(part.wire, context):
            return part
        context.note("input", index, f"the input of the call {part.id} did not have {grammar.name}'s form: rewritten")
    return edited(part, **fields)


def _has_valid_input(wire: Wire | None, context: RepairContext) -> bool:
    """False for a call with malformed arguments in its wire form. Such a call must be rendered again."""
    return not context.exact(wire) or not isinstance(wire.value, dict) or context.grammar.has_valid_input(wire.value)


def legal_name(name: str) -> str:
    """A tool name that every format accepts.

    >>> legal_name("files.read"), legal_name("7zip"), legal_name("")
    ('files_read', '_7zip', 'unnamed')
    """
    plain = re.sub(r"[^a-zA-Z0-9_-]", "_", name) or "unnamed"
    return (plain if plain[0].isalpha() or plain[0] == "_" else f"_{plain}")[:_LONGEST_NAME]


def legal_id(name: str) -> str:
    """A call id that every format accepts.

    The same id always gives the same legal id, so a call and its result still match.
    """
    return "call_" + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _repair_result(part: ToolResult, index: int, message: Message, _side: str, context: RepairContext) -> Part | None:
    checked = context.exact(part.wire) or not context.grammar.renders_legal_ids
    if checked and part.call_id and not context.grammar.is_legal_id(part.call_id):
        part = edited(part, call_id=legal_id(part.call_id))
    if checked and part.name and not context.grammar.is_legal_name(part.name):
        part = edited(part, name=legal_name(part.name))
    if len(part.parts) == 1 and type(part.parts[0]) is Text and part.parts[0].text.strip():
        return part
    own = context.own(part.wire) or (context.own(message.wire) and not _is_malformed(message, context))
    inner = [new for old in part.parts if (new := _repair_inner(old, part, own, context)) is not None]
    fewer = len(inner) < len(part.parts)
    visible = any(not isinstance(each, Text) or each.text.strip() for each in inner)
    if not visible and (not own or fewer or (part.is_error and context.grammar.error_text_only)):
        inner = [Text(text=NO_OUTPUT)]
        context.note("no-output", index, f"the result of {part.call_id or part.name} is empty: {NO_OUTPUT}")
    elif fewer:
        context.note("blank", index, f"a part of the result of {part.call_id or part.name} was left out")
    elif any(map(is_not, inner, part.parts)):
        words = f"a placeholder replaced media in the result of {part.call_id or part.name}"
        context.note("media-result", index, words)
    else:
        return part
    return edited(part, parts=tuple(inner))


def _repair_inner(inner: Part, result: ToolResult, own: bool, context: RepairContext) -> Part | None:
    """The repaired form of a part in a result: the same part or a placeholder. None if the part must be left out."""
    if isinstance(inner, Text):
        accepted = own and inner.wire is None and not inner.text
        return inner if accepted or not context.grammar.is_blank(inner.text) else None
    if isinstance(inner, Media):
        readable = readable_image(inner, context.grammar)
        if readable is None:
            return Text(text=unsupported_media(inner))
        inner = readable
    if context.grammar.error_text_only and result.is_error:
        return Text(text=unsupported_media(inner)) if isinstance(inner, Media) else None
    if isinstance(inner, Media) and not inner.text and not context.grammar.media_in_results:
        return Text(text=unsupported_media(inner))
    if isinstance(inner, Opaque) and inner.kind in _BROKEN and context.own(inner.wire):
        return None
    return inner


def _repair_opaque(part: Opaque, index: int, message: Message, side: str, context: RepairContext) -> Part | None:
    grammar = context.grammar
    own = context.own(part.wire)
    summary = native_summary(part)
    is_misplaced = is_signed_summary(part) and not (context.is_first and part is message.parts[0])
    if summary and (not own or is_misplaced):
        why = "it is not first" if own else "only its maker reads it"
        context.note("compaction", index, f"a compaction block of the provider is sent as text: {why}")
        return Text(text=compacted_by_provider(summary))
    if not own and (words := provider_tools.as_text(part)):
        context.note("server-tool", index, f"{grammar.name} cannot read a {part.kind}: sent as text")
        return Text(text=words)
    is_empty = part.kind == "compaction" and isinstance(part.value, dict) and part.value.get("content") == ""
    if (part.kind in _BROKEN or part.kind.startswith(_UNKNOWN_CALL) or is_empty) and own:
        context.note("shape", index, f"a malformed part was left out ({part.kind or 'without a type'})")
        return None
    if part.kind in _MEDIA and side not in grammar.media_roles and own:
        context.note("media-role", index, f"{grammar.name} accepts no {part.kind} from the {side}: left out")
        return None
    server = part.kind in grammar.server_calls or part.kind.endswith("_tool_result")
    if grammar.server_calls and side != "assistant" and own and server:
        words = provider_tools.as_text(part)
        context.note("server-role", index, f"a {part.kind} outside the assistant's messages is sent as text")
        return Text(text=words) if words else None
    context.has_thinking = True
    inside = context.own(message.wire) and _is_message_item(message.wire.value)
    return None if not inside and _is_duplicate_item(index, part.wire, context) else part


_REPAIRS: Mapping[type[Part], Callable[[Any, int, Message, str, RepairContext], Part | None]] = {
    Text: _repair_text,
    Thinking: _repair_thinking,
    Media: _repair_media,
    ToolCall: _repair_call,
    ToolResult: _repair_result,
    Opaque: _repair_opaque,
}
