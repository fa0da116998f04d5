"""Invariant: no element and no block has a field that the provider refuses, and calls have the signature they need.

Fields are refused if they are unknown to the provider, or null where null is not allowed. Dumps of SDK objects have
null fields, and some agents keep fields of their own in their messages.
"""

from __future__ import annotations

from dataclasses import replace

from foldline.message import Message, Opaque, Part, ToolCall, Wire
from foldline.wire.repair.context import RepairContext, has_same_parts


def with_sendable_fields(index: int, message: Message, context: RepairContext) -> Message:
    """The message without fields that the provider refuses; the same object if it has no such fields."""
    wire, grammar = message.wire, context.grammar
    changed = message
    if wire is not None and wire.exact and wire.format == context.format and type(wire.value) is dict:
        element = grammar.sendable_element(wire.value)
        if element is not wire.value:
            parsed = context.target.parse(element, None)
            changed = replace(parsed, role=message.role, meta=message.meta, kind=message.kind)
    else:
        parts = tuple([_with_sendable_wire(part, context) for part in message.parts])
        if not has_same_parts(parts, message.parts):
            changed = message.with_parts(*parts)
        if wire is not None and wire.format == context.format and type(wire.value) is dict:
            element = grammar.sendable_element(wire.value)
            if element is not wire.value:
                changed = replace(changed, wire=Wire(wire.format, element, exact=False))
    if changed is not message:
        context.note("field", index, "refused fields were left out, or required fields were added")
    return changed


def _with_sendable_wire(part: Part, context: RepairContext) -> Part:
    wire = part.wire
    if wire is None or not wire.exact or wire.format != context.format:
        return part
    block = context.grammar.sendable_block(wire.value)
    if block is wire.value:
        return part
    new = Wire(wire.format, block)
    return replace(part, value=block, wire=new) if isinstance(part, Opaque) else replace(part, wire=new)


def with_signed_call(index: int, message: Message, context: RepairContext) -> Message:
    """The message with a signature at its first call, if the provider demands one; otherwise the same object."""
    if context.grammar.signed_call is None or message.role != "assistant":
        return message
    call = next((part for part in message.parts if type(part) is ToolCall), None)
    if call is None or not context.own(call.wire) or not isinstance(call.wire.value, dict):
        return message
    value = context.grammar.signed_call(call.wire.value)
    if value is call.wire.value:
        return message
    context.note("call-unsigned", index, "a call of another model got a placeholder as its signature")
    signed = replace(call, wire=Wire(call.wire.format, value, exact=call.wire.exact))
    return message.with_parts(*(signed if part is call else part for part in message.parts))
