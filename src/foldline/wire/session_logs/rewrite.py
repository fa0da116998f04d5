"""Rewrites session files: kept messages keep their lines, new messages get new lines.

A rewritten session begins with its digest, like a session after the agent's own compaction, so that the agent can
resume it. Lines that the model does not see are left out, except the leading lines that describe the session. A line
whose parent was removed gets the line before it as parent. The usage of kept replies is set to 0, because it includes
the removed messages. The ids of new lines are derived from their content, so equal folds give equal files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID, uuid5

from foldline.errors import ConfigError
from foldline.json_text import dumps
from foldline.message import Message
from foldline.wire.formats import JsonLine, LogWriter, LossCollector, format_of

_SPACE = UUID("6f1c5a0e-2f0b-5d0b-9a51-0f01d11e0001")
"""The UUID namespace for the ids of new lines."""


class _OutputLine(NamedTuple):
    """A line to write: its value, its original text if the line is unchanged, and whether it is new."""

    value: dict[str, Any]
    raw: str | None = None
    new: bool = False
    head: bool = False
    """True for a leading line that describes the session and may have no parent."""


def rewritten_lines(
    name: str, records: Iterable[JsonLine], messages: Sequence[Message], loss: LossCollector
) -> list[str]:
    """The lines of a session file in which these messages replace the original messages."""
    writer = format_of(name).writer
    if writer is None:
        raise ConfigError(f"session files of the format {name!r} cannot be written")
    source = [line for line in records if isinstance(line.value, dict)]
    heads = _head_lines(source, writer.head_types)
    lines = [_OutputLine(line.value, line.raw, head=True) for line in heads]
    numbers = {str(line.number) for line in heads}
    sample = _sample_line(name, messages)
    digests = [message for message in messages if message.kind == "digest" and message.wire is None]
    ordered = [*digests, *(message for message in messages if message not in digests)]
    for place, message in enumerate(ordered):
        loss.message = place
        if message.meta.source not in numbers:
            lines += _lines_of(message, name, writer, sample, loss)
        loss.names |= {call.id: call.name for call in message.calls}
    return [dumps(line.value) if line.raw is None else line.raw for line in _with_parents(lines, writer)]


def _sample_line(name: str, messages: Sequence[Message]) -> Mapping[str, Any]:
    """A line of the file from which new lines copy the common fields; an empty dict if there is none."""
    value = next((wire.value for message in messages if (wire := message.wire) and wire.format == name), None)
    value = value[0] if isinstance(value, list) else value
    return value if isinstance(value, dict) else {}


def _kind(value: Mapping[str, Any]) -> str:
    kind, subtype = value.get("type"), value.get("subtype")
    return f"{kind} {subtype}" if isinstance(subtype, str) else str(kind)


def _head_lines(source: Sequence[JsonLine], types: Sequence[str]) -> list[JsonLine]:
    """The leading lines that are kept: the first line of the type `types[0]`, and the last line of each other type."""
    kept: dict[str, JsonLine] = {}
    for line in source:
        kind = _kind(line.value)
        if kind in types and (kind != types[0] or kind not in kept):
            kept[kind] = line
    return sorted(kept.values(), key=lambda line: line.number)


def _lines_of(
    message: Message, name: str, writer: LogWriter, sample: Mapping[str, Any], loss: LossCollector
) -> Iterator[_OutputLine]:
    """The lines of one message: the original lines if the message is unchanged, else new lines."""
    wire = message.wire
    own = wire is not None and wire.format == name
    values = (wire.value if isinstance(wire.value, list) else [wire.value]) if own and wire else []
    if own and wire and wire.exact:
        raws: list[str | None] = [*wire.raw.split("\n")] if wire.raw is not None else []
        for value, raw in zip(values, raws if len(raws) == len(values) else [None] * len(values), strict=True):
            bare = writer.without_usage(value)
            yield _OutputLine(bare, raw if bare is value else None)
        return
    for place, value in enumerate(writer.make(message, values[0] if values else sample, loss)):
        yield _OutputLine(value, new=not own or place > 0)


def _with_parents(lines: Iterable[_OutputLine], writer: LogWriter) -> Iterator[_OutputLine]:
    """The lines, each with a parent that is still in the file.

    If a line's original parent was removed, its new parent is the line before it.
    """
    if writer.id_fields is None:
        yield from lines
        return
    own, above = writer.id_fields
    there: set[Any] = set()
    """The ids of the lines since the last new line. A line keeps its parent if the parent is one of these lines.

    Otherwise the line before it becomes its parent, so that the line stays on the branch of the new line.
    """
    before: str | None = None
    for line in lines:
        value, raw = line.value, line.raw
        if not line.new and (own not in value or (line.head and above not in value)):
            yield line
            continue
        if line.new:
            value = {**value, own: str(uuid5(_SPACE, dumps([before, value])))}
        if line.new or value.get(above) not in there:
            value, raw = {**value, above: before}, None
            there = set() if line.new else there
        before = value[own]
        there.add(before)
        yield _OutputLine(value, raw)
