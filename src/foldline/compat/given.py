"""What a caller hands to a face, and gets back.

A face is list in, list out, and the list holds whatever the caller has: `Message` values, wire dicts, an SDK's objects,
or any objects with `role` and `content`. Planning needs messages; the caller needs his own things back. So a list is
read once, and what planning left alone comes back as the very object that was given; only what is new or was changed
is written, in the form of the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from operator import is_
from typing import Any

from foldline.errors import WireError
from foldline.message import Message, Part, Text, ToolResult
from foldline.wire.codec import FORMATS, PROVIDERS, Loss, codec, dialect
from foldline.wire.detect import find
from foldline.wire.reader import parse
from foldline.wire.request import unknown
from foldline.wire.session_logs.pi import parse_object

MESSAGE, OBJECT = "message", "object"
"""The forms a list can have beside the wire formats: our own values, and objects with attributes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A message for callers whose messages are objects, where there is none of theirs to copy."""

    role: str
    content: str
    tool_call_id: str = ""
    tool_name: str = ""
    is_error: bool = False


class Given:
    """A caller's list with a message for each of its elements."""

    __slots__ = ("_own", "form", "items", "messages")

    def __init__(self, items: Sequence[Any], format: str | None = None) -> None:
        self.items = items
        self.form = format or form_of(items)
        self.messages = tuple(_read(item, self.form) for item in items)
        self._own = {id(message): item for message, item in zip(self.messages, items, strict=True)}

    @property
    def provider(self) -> str:
        """Whose rules the messages must keep."""
        return provider_of(self.form, self.messages)

    def back(self, messages: Iterable[Message]) -> Any:
        """These messages in the caller's form: his own objects where untouched, his very list if all of them are."""
        view = tuple(messages)
        if len(view) == len(self.messages) and all(map(is_, view, self.messages)):
            return self.items
        return written(view, self.form, self._own)


def form_of(items: Sequence[Any]) -> str:
    """What a list holds: the name of a wire format, `message` or `object`. An empty one is taken as plain dicts."""
    dicts = [item for item in items if isinstance(item, Mapping)]
    if dicts:
        found = find(dicts)
        if found is None:
            raise unknown(dicts, "list of messages")
        return found.format
    if any(isinstance(item, Message) for item in items):
        return MESSAGE
    return OBJECT if items and not _is_sdk(items[0]) else "openai"


def provider_of(form: str, messages: Iterable[Message]) -> str:
    """The provider that a list is for: of its own format, or the one its messages came from; else OpenAI's chat."""
    formats = [form, *(message.wire.format for message in messages if message.wire is not None)]
    return next((dialect(name) for name in formats if name in FORMATS and dialect(name) in PROVIDERS), "openai")


def _is_sdk(item: Any) -> bool:
    return callable(getattr(item, "model_dump", None))


def _read(item: Any, form: str) -> Message:
    if isinstance(item, Message):
        return item
    if isinstance(item, Mapping):
        return codec(form).parse(item, None)
    if _is_sdk(item):
        found = parse([item], None if form == OBJECT else form).messages
        if len(found) == 1:
            return found[0]
    elif isinstance(getattr(item, "role", None), str):
        return parse_object(item)
    raise WireError(
        f"not a message: {type(item).__name__}", hint="give Message values, wire dicts or objects with role"
    )


def written(messages: Iterable[Message], form: str, own: Mapping[int, Any] | None = None) -> list[Any]:
    """Messages in a form; those in `own` (by identity) as the object they came from."""
    own = own or {}
    if form in {MESSAGE, OBJECT}:
        made = (
            (own[id(each)] if id(each) in own else each if form == MESSAGE else as_object(each)) for each in messages
        )
        return list(made)
    target, loss = codec(form), Loss()
    elements: list[Any] = []
    fresh = False
    for message in messages:
        for call in message.calls:
            loss.names[call.id], loss.kinds[call.id] = call.name, call.kind
        if id(message) in own:
            elements.append(own[id(message)])
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
    """A message as an object: the one it was read from with other content, or a plain one of ours."""
    result = message.results[0] if message.results else None
    source = message.wire.value if message.wire is not None else None
    if source is None or isinstance(source, Mapping) or not hasattr(source, "content"):
        if result is None:
            return Said(role=message.role, content=message.text)
        return Said(
            role="toolResult",
            content=result.text,
            tool_call_id=result.call_id,
            tool_name=result.name,
            is_error=result.is_error,
        )
    parts = result.parts if result is not None else message.parts
    if isinstance(source.content, str):
        return _with(source, content="".join(part.text for part in parts if isinstance(part, Text)))
    blocks = [_block(part, source.content) for part in parts if not isinstance(part, ToolResult)]
    return _with(source, content=tuple(blocks) if isinstance(source.content, tuple) else blocks)


def _block(part: Part, blocks: Sequence[Any]) -> Any:
    """A part as one of the caller's blocks: the very block it came from, or a text block like his."""
    if (
        part.wire is not None
        and part.wire.exact
        and not (isinstance(part, Text) and _says(part.wire.value) != part.text)
    ):
        return part.wire.value
    text = part.text if isinstance(part, Text) else ""
    like = next((block for block in blocks if _says(block) is not None), None)
    if like is None or isinstance(like, (str, Mapping)):
        return text if isinstance(like, str) else {"type": "text", "text": text}
    return _with(like, text=text)


def _says(block: Any) -> str | None:
    """What a text block says; None for any other block."""
    if isinstance(block, str):
        return block
    said = block.get("text") if isinstance(block, Mapping) else getattr(block, "text", None)
    return said if isinstance(said, str) else None


def _with(thing: Any, **fields: Any) -> Any:
    """A copy of an object, immutable or not, with other values for some fields."""
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
