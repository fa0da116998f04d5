"""Reads the list of messages that a caller passes to a compat API, and writes the result in the same format.

The list may hold `Message` values, wire dicts, an SDK's objects, or any objects with `role` and `content`. A message
that the engine did not change is returned as the caller's own object; only new and changed messages are rendered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from operator import is_
from typing import Any

from foldline.errors import WireError
from foldline.message import Message, Part, Text, ToolResult
from foldline.placeholders import edited_texts, without_recall
from foldline.wire.detect import detect
from foldline.wire.formats import FORMATS, REQUEST_FORMATS, LossCollector, element_format
from foldline.wire.formats import format_of as wire_format
from foldline.wire.reader import parse
from foldline.wire.request import unknown_format
from foldline.wire.session_logs.pi import parse as parse_object

MESSAGE, OBJECT = "message", "object"
"""The names of two formats that are not wire formats: lists of `Message` values, and lists of other objects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainMessage:
    """A message for callers whose messages are objects.

    This class is used if the caller has no object that can be copied.
    """

    role: str
    content: str
    tool_call_id: str = ""
    tool_name: str = ""
    is_error: bool = False


class CallerMessages:
    """A caller's list, with a `Message` for each of its elements."""

    __slots__ = ("_originals", "format", "items", "messages")

    def __init__(self, items: Sequence[Any], format: str | None = None) -> None:
        self.items = items
        self.format = format or format_of(items)
        self.messages = tuple(_read(item, self.format) for item in items)
        self._originals = {id(message): item for message, item in zip(self.messages, items, strict=True)}

    @property
    def wire_format(self) -> str:
        """The wire format whose rules the messages must follow."""
        return wire_format_of(self.format, self.messages)

    @property
    def is_wire(self) -> bool:
        """Whether the list has elements of a wire format, and not `Message` values or other objects."""
        return self.format not in {MESSAGE, OBJECT}

    def restore(self, messages: Iterable[Message], *, plain: bool = False) -> Any:
        """The messages in the caller's format.

        An unchanged message is returned as the caller's object. An unchanged list is returned as the caller's list.
        With `plain`, placeholders in new messages do not mention recall, because a plain list has no recall tool.
        """
        view = tuple(messages)
        if plain:
            view = tuple(each if id(each) in self._originals else edited_texts(each, without_recall) for each in view)
        if len(view) == len(self.messages) and all(map(is_, view, self.messages)):
            return self.items
        return render_list(view, self.format, self._originals)


def format_of(items: Sequence[Any]) -> str:
    """The format of a list: a wire format, `message` or `object`. For an empty list, it is `openai`."""
    dicts = [item for item in items if isinstance(item, Mapping)]
    if dicts:
        found = detect(dicts)
        if found is None:
            raise unknown_format(dicts, "list of messages")
        return found.format
    if any(isinstance(item, Message) for item in items):
        return MESSAGE
    return OBJECT if items and not _is_sdk(items[0]) else "openai"


def wire_format_of(format: str, messages: Iterable[Message]) -> str:
    """`format` if it is a wire format, else the wire format that one of the messages was read from, else `openai`."""
    formats = [format, *(message.wire.format for message in messages if message.wire is not None)]
    names = [element_format(name) for name in formats if name in FORMATS]
    return next((name for name in names if name in REQUEST_FORMATS), "openai")


def _is_sdk(item: Any) -> bool:
    return callable(getattr(item, "model_dump", None))


def _read(item: Any, format: str) -> Message:
    if isinstance(item, Message):
        return item
    if isinstance(item, Mapping):
        return wire_format(format).parse(item, None)
    if _is_sdk(item):
        found = parse([item], None if format == OBJECT else format).messages
        if len(found) == 1:
            return found[0]
    elif isinstance(getattr(item, "role", None), str):
        return parse_object(item)
    raise WireError(
        f"cannot read a {type(item).__name__} as a message", hint="pass Message values, wire dicts or objects with role"
    )


def render_list(messages: Iterable[Message], format: str, originals: Mapping[int, Any] | None = None) -> list[Any]:
    """The messages in a format.

    `originals` maps the `id()` of an unchanged message to the caller's own object. This object is returned in place of
    the message.
    """
    originals = originals or {}
    if format in {MESSAGE, OBJECT}:
        render = (lambda message: message) if format == MESSAGE else as_object
        return [originals[id(each)] if id(each) in originals else render(each) for each in messages]
    target, loss = wire_format(format), LossCollector()
    elements: list[Any] = []
    fresh = False
    for message in messages:
        for call in message.calls:
            loss.names[call.id], loss.kinds[call.id] = call.name, call.kind
        if id(message) in originals:
            elements.append(originals[id(message)])
            fresh = False
            continue
        for element in target.render(message, loss):
            joined = target.join(elements[-1], element) if target.join and fresh else None
            if joined is None:
                elements.append(element)
            else:
                elements[-1] = joined
            fresh = True
    return elements


def as_object(message: Message) -> Any:
    """A message as an object.

    If the message was read from an object, a copy of that object with the new content is returned. Otherwise a
    `PlainMessage` is returned.
    """
    result = message.results[0] if message.results else None
    source = message.wire.value if message.wire is not None else None
    if source is None or isinstance(source, Mapping) or not hasattr(source, "content"):
        if result is None:
            return PlainMessage(role=message.role, content=message.text)
        return PlainMessage(
            role="toolResult",
            content=result.text,
            tool_call_id=result.call_id,
            tool_name=result.name,
            is_error=result.is_error,
        )
    parts = result.parts if result is not None else message.parts
    if isinstance(source.content, str):
        return _copy_with(source, content="".join(part.text for part in parts if isinstance(part, Text)))
    blocks = [_block(part, source.content) for part in parts if not isinstance(part, ToolResult)]
    return _copy_with(source, content=tuple(blocks) if isinstance(source.content, tuple) else blocks)


def _block(part: Part, blocks: Sequence[Any]) -> Any:
    """A part as a content block: the block that the part was read from, or a new text block of the caller's type."""
    if (
        part.wire is not None
        and part.wire.exact
        and not (isinstance(part, Text) and _text_of_block(part.wire.value) != part.text)
    ):
        return part.wire.value
    text = part.text if isinstance(part, Text) else ""
    like = next((block for block in blocks if _text_of_block(block) is not None), None)
    if like is None or isinstance(like, (str, Mapping)):
        return text if isinstance(like, str) else {"type": "text", "text": text}
    return _copy_with(like, text=text)


def _text_of_block(block: Any) -> str | None:
    """The text of a text block; None for any other block."""
    if isinstance(block, str):
        return block
    text = block.get("text") if isinstance(block, Mapping) else getattr(block, "text", None)
    return text if isinstance(text, str) else None


def _copy_with(thing: Any, **fields: Any) -> Any:
    """A copy of an object with new values for some fields. The object may be immutable."""
    if is_dataclass(thing) and not isinstance(thing, type):
        return replace(thing, **fields)
    for change in ("_replace", "model_copy"):
        if callable(getattr(thing, change, None)):
            return thing._replace(**fields) if change == "_replace" else thing.model_copy(update=fields)
    kind: Any = type(thing)
    made = kind.__new__(kind)
    slots = (name for each in kind.__mro__ for name in getattr(each, "__slots__", ()) if hasattr(thing, name))
    held = {**{name: getattr(thing, name) for name in slots}, **getattr(thing, "__dict__", {})}
    for name, value in {**held, **fields}.items():
        object.__setattr__(made, name, value)
    return made
