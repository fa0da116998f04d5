"""Compaction blocks of providers. Finds blocks with a summary, finds the model that wrote them, and replaces unreadable
blocks.
"""

from __future__ import annotations

from foldline.fold import NativeSummary, Target
from foldline.message import Message, Opaque, Part, Text
from foldline.models.table import model as model_of
from foldline.placeholders import UNREADABLE_SUMMARY, compacted_by_provider
from foldline.wire.formats import element_format
from foldline.wire.repair.context import native_summary

_READ_BY_ALL_MODELS = frozenset({"openai-responses"})
"""The formats in which every model of the vendor can read a block.

In other formats, only the model that wrote the block can read it.
"""


def holds_summary(part: Part) -> bool:
    """Whether a part is a compaction block with a text or an encrypted summary. A failed compaction has neither."""
    if not isinstance(part, Opaque) or part.kind != "compaction" or not isinstance(part.value, dict):
        return False
    return bool(native_summary(part)) or bool(part.value.get("encrypted_content"))


def summary_of(message: Message, block: Part, target: Target) -> NativeSummary:
    """A compaction block, and the model that wrote it.

    If the message names no model, it is assumed that the target's model wrote the block.
    """
    wire, named = block.wire, message.meta.model
    format = element_format(wire.format) if wire is not None else target.format
    is_own = not named or named in target.model or target.model in named
    maker = Target(format, target.model, target.vendor) if is_own else Target(format, named, model_of(named).vendor)
    alone = message if len(message.parts) == 1 else message.with_parts(block)
    return NativeSummary(message=alone, maker=maker, any_model=format in _READ_BY_ALL_MODELS)


def without_foreign_blocks(message: Message, target: Target) -> Message:
    """The message, with a text in place of each compaction block that the target cannot read."""

    def readable(part: Part) -> Part:
        if not holds_summary(part) or summary_of(message, part, target).is_read_by(target):
            return part
        text = native_summary(part)
        return Text(text=compacted_by_provider(text) if text else UNREADABLE_SUMMARY)

    parts = [readable(part) for part in message.parts]
    return message if all(map(lambda one, other: one is other, parts, message.parts)) else message.with_parts(*parts)
