"""Checks the values that a caller adds to a session: their wire format, their content, and the times of messages.

An error says what to add instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from inspect import isawaitable
from typing import Any

from foldline.errors import InputError, check_type
from foldline.message import NO_META, ROLES, Media, Message, Meta, Opaque, Text, Thinking, ToolCall, ToolResult
from foldline.wire.detect import signs
from foldline.wire.reader import sign_of
from foldline.wire.streaming.stream_events import is_stream_manager, stream_format

_KNOWN_ROLES = (*ROLES, "developer", "model", "function", "latest_reminder", "root", "critic", "discriminator")
"""The roles of all wire formats."""
_STREAMED = ("{", "[", "data:", "event:", "id:", "retry:", ":")
"""Prefixes of strings that may be JSON or lines of an event stream. Any other string in a list is an error."""
_BLOCKS = {
    "text": "text",
    "thinking": "thinking",
    "image": "source",
    "document": "source",
    "tool_use": "input",
    "tool_result": "tool_use_id",
    "image_url": "image_url",
    "input_audio": "input_audio",
    "input_text": "text",
    "output_text": "text",
    "input_image": "image_url",
}
"""The common types of content blocks, each with the field that holds its content."""
_TEXT_FIELDS: dict[type, tuple[str, ...]] = {
    Text: ("text",),
    Thinking: ("text", "signature"),
    ToolCall: ("id", "name", "arguments"),
    ToolResult: ("call_id", "name"),
    Media: ("kind", "mime", "data", "url", "text"),
    Opaque: ("kind",),
}
"""For each type of part, the fields that must be strings."""


def clear_format(thing: Any) -> str | None:
    """The wire format that a value clearly has; None if the format is not clear, as for a message with only a text."""
    if isinstance(thing, Message) and (thing.wire is None or all(type(part) is Text for part in thing.parts)):
        return None
    return sign_of(thing)


def hand_made_messages(things: Sequence[Any]) -> list[Message] | None:
    """The values as messages if the caller made all of them as `Message`; None if any of them must be parsed.

    Raises `InputError` for a `Message` that the caller made with an unknown role or with invalid parts. A session keeps
    every message, so an invalid message would break all later requests.
    """
    for thing in things:
        if not isinstance(thing, Message) or thing.wire is not None:
            break
        _check_hand_made(thing)
    else:
        return list(things)
    for thing in things:
        for message in thing if isinstance(thing, (list, tuple)) else (thing,):
            if isinstance(message, Message) and message.wire is None:
                _check_hand_made(message)
    return None


def _check_hand_made(message: Message) -> None:
    if message.role not in ROLES:
        raise InputError(f"unknown role {message.role!r}", hint=f"use one of {', '.join(ROLES)}")
    if type(message.parts) is not tuple:
        hint = 'Message(role="user", parts=(Text(text="…"),))'
        check_type(message.parts, tuple, "the parts of a message", hint=hint)
    for part in message.parts:
        if not _is_common_part(part):
            _check_part(part)


def _is_common_part(part: Any) -> bool:
    """Whether a part is a valid text, a valid call, or a valid result that has only texts.

    Almost all parts are of these kinds. For them, this check takes much less time than `_check_part`.
    """
    kind = type(part)
    if kind is Text:
        return type(part.text) is str
    if kind is ToolCall:
        return type(part.id) is type(part.name) is type(part.arguments) is str
    if kind is ToolResult:
        for inner in part.parts:
            if type(inner) is not Text or type(inner.text) is not str:
                return False
        return type(part.call_id) is type(part.name) is str
    return False


def _check_part(part: Any) -> None:
    kind = type(part)
    names = _TEXT_FIELDS.get(kind)
    if names is None:
        raise InputError(f"a part of a message must be a Part, not {kind.__name__}", hint='Text(text="…")')
    for name in names:
        check_type(getattr(part, name), str, f"{name} of {kind.__name__}", hint="pass a text")
    if kind is ToolResult:
        for inner in part.parts:
            _check_part(inner)


def with_times(messages: list[Message], at: float | None) -> list[Message]:
    """The messages, each with a time. A message without a time gets the time of the message before it.

    The messages before the first message with a time get the time of that message. If no message has a time, all
    messages get `at`.
    """
    for message in messages:
        if message.meta.at is not None:
            at = message.meta.at
            break
    if at is None:
        return messages
    timed: list[Message] = []
    fresh = Meta(at=at)
    """Metadata that holds only a time. All messages without metadata of their own share it while they get the same
    time.
    """
    for message in messages:
        meta = message.meta
        if meta.at is not None:
            at, fresh = meta.at, Meta(at=meta.at)
            timed.append(message)
            continue
        timed.append(message.with_meta(fresh if meta is NO_META else replace(meta, at=at)))
    return timed


def _looks_like_json(text: str) -> bool:
    """Whether a text begins like JSON, and ends like JSON if it has only one line."""
    whole = text.strip()
    return whole.startswith(("{", "[")) and (whole.endswith(("}", "]")) or "\n" in whole)


def check_input(thing: Any) -> None:
    """Raise `InputError` for a value that is neither a message, nor a reply, nor a list of messages."""
    if isinstance(thing, (bytes, bytearray)) and not thing.lstrip().startswith((b"{", b"[")):
        thing = thing.decode(errors="replace")
    if isinstance(thing, str) and not _looks_like_json(thing):
        shown = f"{thing[:40]}…" if len(thing) > 40 else thing
        raise InputError(f"a text has no role: {shown!r}", hint=f'add({{"role": "user", "content": {shown!r}}})')
    if is_stream_manager(thing):
        hint = "with client.messages.stream(…) as stream: session.add(stream)"
        raise InputError(f"{type(thing).__name__} must be entered in a `with` statement before it is added", hint=hint)
    if isawaitable(thing):
        raise InputError(
            f"a {type(thing).__name__} was not awaited", hint="add(await client.chat.completions.create(…))"
        )
    if isinstance(thing, (tuple, list)) and not thing:
        raise InputError("an empty list holds no message", hint='add({"role": "user", "content": "…"})')
    first = thing[0] if isinstance(thing, (tuple, list)) else thing
    if isinstance(first, str) and first is not thing and not first.lstrip().startswith(_STREAMED):
        raise InputError(f"not a message: {thing!r:.60}", hint='write {"role": "user", "content": "…"}')
    if thing is None or isinstance(thing, (bool, int, float)):
        raise InputError(f"not a message: {thing!r}", hint='add({"role": "user", "content": "…"}), or an SDK\'s reply')
    for item in thing if isinstance(thing, list) else (thing,):
        if isinstance(item, Mapping):
            _check_message(item, alone=item is thing)


def _check_message(value: Mapping[str, Any], *, alone: bool) -> None:
    role = value.get("role")
    if isinstance(role, str) and role not in _KNOWN_ROLES and not signs([value]):
        raise InputError(
            f"unknown role {role!r}", hint=f"did you mean {_nearest(role)!r}? Roles are {', '.join(ROLES)}"
        )
    if alone and stream_format(value) not in ("", "gemini"):
        what = f"{value.get('type') or value.get('object')!r} is one event of a streamed reply"
        raise InputError(what, hint="add the whole stream, or the list of all its events")
    if role is None and set(value) <= {"content", "name", "text"}:
        raise InputError("the message has no role", hint='add "role": "user", "assistant", "system" or "tool" to it')
    if role == "tool" and set(value) <= {"role", "content", "name"} and not isinstance(value.get("content"), list):
        hint = 'write {"role": "tool", "tool_call_id": "…", "content": "…"}, with the id of the call'
        raise InputError("the tool result does not name its call", hint=hint)
    if set(value) == {"role"} and role not in ("model", "assistant"):  # an empty reply may have no content field
        raise InputError("the message has no content", hint=f'write {{"role": "{role}", "content": "…"}}')

    content = value.get("content")
    for block in content if isinstance(content, list) else ():
        if isinstance(block, Mapping):
            _check_block(block)


def _check_block(block: Mapping[str, Any]) -> None:
    """Raise `InputError` for a block whose type is misspelled, and for a block that has no field except its type.

    A block of an unknown type passes, because providers add new types.
    """
    kind = block.get("type")
    if not isinstance(kind, str):
        return
    if kind in _BLOCKS:
        if block.keys() <= {"type", "cache_control"}:
            field = _BLOCKS[kind]
            raise InputError(f"the block of the type {kind!r} has no content", hint=f'add "{field}" to it')
        return
    for name, field in _BLOCKS.items():
        if field in block and _is_one_edit(kind, name):
            raise InputError(f"unknown type {kind!r} of a content block", hint=f"did you mean {name!r}?")


def _is_one_edit(word: str, other: str) -> bool:
    """Whether two words differ by one edit: one letter is wrong, missing or added, or two letters are swapped.

    >>> [_is_one_edit(word, "text") for word in ("textt", "txt", "text", "tetx", "test", "output_text")]
    [True, True, False, True, True, False]

    """
    if word == other or abs(len(word) - len(other)) > 1:
        return False
    start = next((at for at, pair in enumerate(zip(word, other, strict=False)) if len({*pair}) > 1), None)
    if start is None:
        return True
    rest, other_rest = word[start:], other[start:]
    swapped = rest[:2] == other_rest[1::-1] and rest[2:] == other_rest[2:]
    return swapped or rest[1:] == other_rest or rest == other_rest[1:] or rest[1:] == other_rest[1:]


def _nearest(role: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415  # imported only to make an error message

    other = {"human": "user", "ai": "assistant", "bot": "assistant", "gpt": "assistant"}
    near = get_close_matches(role.lower(), ROLES, n=1, cutoff=0.5)
    return other.get(role.lower()) or (near[0] if near else "user")
