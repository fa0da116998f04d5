"""Converts messages and folds to bytes, and bytes to messages and folds.

The wire form of a message is stored in full. A value that is in a part and also in the wire form is stored only in the
wire form. The part then stores an index into the list of all values of the wire form. If the wire form was parsed from
text, the text is stored and parsed again on reading, so the original bytes are kept.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

from foldline.errors import FoldlineError, InputError, LedgerCorrupt
from foldline.fold import Digest, Fold, Loss, NativeSummary, Target
from foldline.message import (
    NO_META,
    Media,
    Message,
    Meta,
    Opaque,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    Wire,
)

DEFLATE_FROM = 512
"""A body with fewer bytes than this is not compressed, because compression would save almost nothing."""
LEVEL = 1
"""The compression level of zlib. Higher levels take two to four times as long and save only a tenth more."""
SHARED_FROM = 24
"""A string with fewer characters than this is stored in the part itself, not as an index."""

_PARTS: dict[str, type[Any]] = {
    "text": Text,
    "thinking": Thinking,
    "call": ToolCall,
    "result": ToolResult,
    "media": Media,
    "opaque": Opaque,
}
_NAMES = {kind: name for name, kind in _PARTS.items()}
_FIELDS = {kind: [field for field in fields(kind) if field.name != "wire"] for kind in _PARTS.values()}
_META = [field for field in fields(Meta) if field.name != "usage"]
_DEFLATED = b"x"
"""First byte of a compressed body; JSON never starts with this byte."""
_to_json = json.JSONEncoder(separators=(",", ":")).encode
DAMAGED = (ValueError, KeyError, TypeError, IndexError, AttributeError, zlib.error, FoldlineError)
"""Exceptions that reading a damaged body can raise."""


def pack(body: bytes) -> bytes:
    """The bytes that are stored for a body; a long body is compressed."""
    return zlib.compress(body, LEVEL) if len(body) >= DEFLATE_FROM else body


def unpack(stored: bytes) -> bytes:
    """The body, decompressed if the stored bytes are compressed."""
    return zlib.decompress(stored) if stored[:1] == _DEFLATED else stored


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Raise `LedgerCorrupt` if the code in the `with` block cannot read stored bytes. `what` names the damaged item."""
    try:
        yield
    except DAMAGED:
        raise LedgerCorrupt(f"{what} is damaged", hint="foldline verify lists the damaged rows") from None


def unpack_value(stored: bytes | None, what: str) -> Any:
    """The JSON value of a stored body; None if there is no body."""
    if stored is None:
        return None
    with reading(what):
        return json.loads(unpack(stored))


def dump(value: Any) -> bytes:
    """The value as compact ASCII JSON."""
    try:
        return _to_json(value).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"cannot store this message: {error}", hint="use only JSON values in a message") from None


def message_body(message: Message) -> bytes:
    """A message without its metadata, as bytes."""
    return dump(message_value(message))


def read_message(body: bytes, meta: bytes | None = None) -> Message:
    """Parse a stored message."""
    return message_of(json.loads(body), meta_of(meta))


def message_value(message: Message) -> Any:
    """A message without its metadata, as a JSON value."""
    value: dict[str, Any] = {"role": message.role}
    if message.kind:
        value["kind"] = message.kind
    pieces = WirePieces(message.wire)
    value["parts"] = [_part_value(part, pieces) for part in message.parts]
    if message.wire is not None:
        value["wire"] = _wire_value(message.wire)
    return value


def message_of(value: Any, meta: Meta = NO_META) -> Message:
    """The message for a JSON value that `message_value` returned."""
    wire = _wire_of(value["wire"]) if "wire" in value else None
    pieces: list[Any] | None = None

    def piece(number: int) -> Any:
        nonlocal pieces
        if pieces is None:
            pieces = list(_walk(wire.value)) if wire is not None else []
        return pieces[number]

    parts = tuple([_part_of(part, piece) for part in value["parts"]])
    return Message(role=value["role"], parts=parts, kind=value.get("kind", ""), meta=meta, wire=wire)


def _walk(value: Any) -> Iterator[Any]:
    """The objects, lists and long strings of a wire form, in document order. Parts refer to them by index."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            yield item
            stack.extend(reversed(item.values()))
        elif isinstance(item, (list, tuple)):
            yield item
            stack.extend(reversed(item))
        elif isinstance(item, str) and len(item) >= SHARED_FROM:
            yield item


class WirePieces:
    """The index of each value in a wire form. Strings are looked up by content, other values by identity."""

    def __init__(self, wire: Wire | None) -> None:
        self.strings: dict[str, int] = {}
        self.values: dict[int, int] = {}
        for number, item in enumerate(_walk(wire.value) if wire is not None else ()):
            if isinstance(item, str):
                self.strings.setdefault(item, number)
            else:
                self.values.setdefault(id(item), number)


def _part_value(part: Part, pieces: WirePieces) -> list[Any]:
    """A part as [kind, fields that differ from their defaults, wire form]."""
    fields_: dict[str, Any] = {}
    for field in _FIELDS[type(part)]:
        value = getattr(part, field.name)
        if field.name == "parts":
            fields_["parts"] = [_part_value(inner, pieces) for inner in value]
        elif field.name == "value":
            fields_["value"] = pieces.values.get(id(value), [value])
        elif isinstance(value, str):
            if value != field.default:
                fields_[field.name] = pieces.strings.get(value, value) if len(value) >= SHARED_FROM else value
        elif value:
            fields_[field.name] = value
    encoded: list[Any] = [_NAMES[type(part)], fields_]
    if part.wire is not None:
        wire = part.wire
        encoded.append([wire.format, wire.exact, pieces.values.get(id(wire.value), [wire.value]), wire.raw])
    return encoded


def _part_of(value: list[Any], piece: Any) -> Part:
    kind, fields_, *rest = value
    given = dict(fields_)
    for name, item in fields_.items():
        if name == "parts":
            given[name] = tuple([_part_of(inner, piece) for inner in item])
        elif name == "value":
            given[name] = item[0] if isinstance(item, list) else piece(item)
        elif isinstance(item, int) and not isinstance(item, bool):
            given[name] = piece(item)
    if rest:
        format_, exact, inner, raw = rest[0]
        given["wire"] = Wire(format_, inner[0] if isinstance(inner, list) else piece(inner), raw, exact)
    part: Part = _PARTS[kind](**given)
    return part


def _wire_value(wire: Wire) -> list[Any]:
    """The wire form as a list.

    If the value can be parsed from the text, only the text is stored. Otherwise the value is stored, together with the
    text if there is one.
    """
    if wire.raw is None:
        return [wire.format, wire.exact, "value", wire.value]
    for how in ("text", "lines"):
        if _parsed(how, wire.raw) == wire.value:
            return [wire.format, wire.exact, how, wire.raw]
    return [wire.format, wire.exact, "both", [wire.value, wire.raw]]


def _wire_of(value: list[Any]) -> Wire:
    format_, exact, how, content = value
    if how == "value":
        return Wire(format_, content, None, exact)
    parsed, raw = content if how == "both" else (_parsed(how, content), content)
    return Wire(format_, parsed, raw, exact)


def _parsed(how: str, raw: str) -> Any:
    try:
        return json.loads(raw) if how == "text" else [json.loads(line) for line in raw.split("\n")]
    except (ValueError, RecursionError):
        return _NOTHING


_NOTHING = object()


def meta_body(meta: Meta) -> bytes | None:
    """The metadata of a message as bytes; None if there is no metadata."""
    value = {field.name: getattr(meta, field.name) for field in _META if getattr(meta, field.name) != field.default}
    if meta.usage is not None:
        value["usage"] = list(meta.usage)
    return dump(value) if value else None


def meta_of(body: bytes | None, *, over: bytes = b"{}") -> Meta:
    """The metadata in stored bytes. Fields that are also in `over` get their value from `over`."""
    if body is None and over == b"{}":
        return NO_META
    value = json.loads(body or b"{}") | json.loads(over)
    usage = value.pop("usage", None)
    return Meta(**value, usage=None if usage is None else Usage(*usage))


def fold_value(fold: Fold) -> dict[str, Any]:
    """A fold as a JSON value."""
    value = {field.name: getattr(fold, field.name) for field in fields(Fold) if field.name not in {"digest", "stubs"}}
    value["stubs"] = [[at, _with_meta(stub), size] for at, (stub, size) in fold.stubs.items()]
    digest = fold.digest
    if digest is not None:
        value["digest"] = {
            "message": _with_meta(digest.message),
            "by": digest.by,
            "cause": digest.cause,
            "loss": digest.loss and {field.name: getattr(digest.loss, field.name) for field in fields(Loss)},
            "usage": digest.usage and list(digest.usage),
        }
        if digest.native is not None:
            native = digest.native
            value["digest"]["native"] = [_with_meta(native.message), list(native.maker), native.any_model]
    return value


def fold_of(value: dict[str, Any]) -> Fold:
    """The fold for a JSON value that `fold_value` returned."""
    given = dict(value)
    given |= {name: tuple(given.get(name, ())) for name in ("pinned", "carried", "removed")}
    given["stubs"] = {at: (_read_with_meta(stub), size) for at, stub, size in given["stubs"]}
    if "digest" in given:
        digest = dict(given["digest"])
        loss, usage = digest["loss"], digest["usage"]
        digest["message"] = _read_with_meta(digest["message"])
        digest["loss"] = loss and Loss(**loss | {name: tuple(loss[name]) for name in ("missing", "unsourced")})
        digest["usage"] = usage and Usage(*usage)
        if "native" in digest:
            message, maker, any_model = digest["native"]
            digest["native"] = NativeSummary(
                message=_read_with_meta(message), maker=Target(*maker), any_model=any_model
            )
        given["digest"] = Digest(**digest)
    return Fold(**given)


def _with_meta(message: Message) -> list[Any]:
    meta = meta_body(message.meta)
    return [message_value(message), meta and json.loads(meta)]


def _read_with_meta(value: list[Any]) -> Message:
    return message_of(value[0], meta_of(value[1] and dump(value[1])))
