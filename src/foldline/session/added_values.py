"""Checks values that a caller adds to a session: their wire format, and errors that say what to write instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foldline.errors import InputError
from foldline.message import ROLES, Message, Text
from foldline.wire.detect import signs
from foldline.wire.reader import sign_of
from foldline.wire.streaming.stream_events import is_stream_manager, stream_format

_KNOWN_ROLES = (*ROLES, "developer", "model", "function", "latest_reminder", "root", "critic", "discriminator")
"""The roles of all wire formats."""


def clear_format(thing: Any) -> str | None:
    """The wire format that a value clearly has; None if it is not clear, for example for a message with only a text."""
    if isinstance(thing, Message) and (thing.wire is None or all(type(part) is Text for part in thing.parts)):
        return None
    return sign_of(thing)


def check_input(thing: Any) -> None:
    """Raise `InputError` for a value that is not a message, a reply or a list of them."""
    if isinstance(thing, str) and not thing.lstrip().startswith(("{", "[")):
        shown = f"{thing[:40]}…" if len(thing) > 40 else thing
        raise InputError(f"a text has no role: {shown!r}", hint=f'add({{"role": "user", "content": {shown!r}}})')
    if is_stream_manager(thing):
        hint = "with client.messages.stream(…) as stream: session.add(stream)"
        raise InputError(f"{type(thing).__name__} must be entered before it is added", hint=hint)
    if isinstance(thing, (tuple, list)) and not thing:
        raise InputError("an empty list holds no message", hint='add({"role": "user", "content": "…"})')
    first = thing[0] if isinstance(thing, (tuple, list)) else thing
    if isinstance(first, str) and first in _KNOWN_ROLES:
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
        raise InputError(what, hint="add the stream itself, or the list of all its events")
    if role is None and set(value) <= {"content", "name", "text"}:
        raise InputError("the message has no role", hint='add "role": "user", "assistant", "system" or "tool" to it')


def _nearest(role: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415  # only when something went wrong

    other = {"human": "user", "ai": "assistant", "bot": "assistant", "gpt": "assistant"}
    near = get_close_matches(role.lower(), ROLES, n=1, cutoff=0.5)
    return other.get(role.lower()) or (near[0] if near else "user")
