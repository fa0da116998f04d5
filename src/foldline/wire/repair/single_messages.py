"""Repair of one message on its own: what a provider refuses in a message, whatever stands around it.

Blank texts, thinking without its signature, media and calls in the wrong role, names and ids of a wrong form, results
that say nothing. What is taken out is named in a note; what can be said in words stays as words. A message that needs
nothing comes back as the same object.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import is_not
from typing import Any

from foldline.message import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult, Wire
from foldline.wire.formats import Loss
from foldline.wire.repair.context import Work, content_of, edited, is_server_part
from foldline.wire.rules import check

NO_OUTPUT = "(no output)"
"""Stands in a result that says nothing: several providers refuse an empty one, and a blank in its place, too."""

_BROKEN = frozenset(("", "untyped", "part", "text", "thinking", "redacted_thinking", "tool_use", "tool_result"))
"""Kinds of opaque parts that are opaque only because they are malformed."""
_UNKNOWN_CALL = "tool_call "
"""Begins the kind of a Chat Completions call that is neither a function's nor a custom tool's: nobody answers it."""
_MEDIA = frozenset(("image", "document", "image_url", "input_audio", "file", "input_image", "input_file"))
_LONGEST_NAME = 64


def clean(index: int, message: Message, side: str, work: Work) -> Message | None:
    """The message without what this provider refuses in it; None when nothing is left of it."""
    own = work.own(message.wire)
    if own:
        message = _known_role(index, message, work)
    if side == "system" and message.results:
        work.note("role", index, "a system message with results: sent as the user's")
        message = replace(message, role="user", wire=None)
    parts = message.parts
    kept = [_CLEANERS[type(part)](part, index, message, side, work) for part in parts]
    if parts and not any(map(is_not, kept, parts)) and not own:
        return message
    made = [part for part in kept if part is not None]
    changed = len(made) < len(parts) or any(map(is_not, made, parts))
    if not made:
        return _without_parts(index, message, side, work, dropped=changed)
    if changed or _is_malformed(message, work):
        if not changed:
            work.note("shape", index, "written anew, because a field of it was empty")
        message = message.with_parts(*made)
    return _single_item(index, message, work)


def _known_role(index: int, message: Message, work: Work) -> Message:
    """A message whose own role this provider does not know speaks as the user."""
    wire = message.wire
    if wire is None or not isinstance(wire.value, dict) or "role" not in wire.value:
        return message
    role = wire.value["role"] or "user"
    if role in work.rules.roles:
        return message
    work.note("role", index, f"{work.rules.name} knows no role {role!r}: it is sent as the user's")
    return replace(message, role="user", wire=None)


def _without_parts(index: int, message: Message, side: str, work: Work, *, dropped: bool) -> Message | None:
    """An empty message stays where its provider accepts one."""
    null = work.provider == "openai" and work.exact(message) and not isinstance(content_of(message.wire), str)
    if not dropped and not null and side in work.rules.empty:
        return _single_item(index, message, work)
    work.note("empty", index, "left out: nothing was said in it")
    return None


def _is_malformed(message: Message, work: Work) -> bool:
    """An empty list, a result without content or with its id elsewhere: refused, and not visible in the parts."""
    value = message.wire.value if message.wire and work.exact(message) else None
    if work.provider != "openai" or not isinstance(value, dict):
        return False
    loose = value.get("content") is None or not isinstance(value.get("tool_call_id"), str)
    return [] in (value.get("tool_calls"), value.get("content")) or (value.get("role") == "tool" and loose)


def _single_item(index: int, message: Message, work: Work) -> Message:
    """The provider's own items have ids, and none may come twice; a message without its id is a new item."""
    wire = message.wire
    if (
        work.provider != "openai-responses"
        or wire is None
        or not work.exact(message)
        or not isinstance(wire.value, dict)
    ):
        return message
    if not _is_said(wire.value) or not _is_again(index, wire, work):
        return message
    return message.with_parts(*message.parts)


def _is_again(index: int, wire: Wire | None, work: Work) -> bool:
    """True for an item of the provider that was there before."""
    if work.provider != "openai-responses" or wire is None or not (wire.exact and wire.format == work.provider):
        return False
    key = wire.value.get("id") if isinstance(wire.value, dict) else None
    if not isinstance(key, str) or not key or wire.value.get("type") == "item_reference":
        return False
    if key not in work.items:
        work.items.add(key)
        return False
    work.note("item-duplicate", index, f"the item {key} was there before")
    return True


def _text(part: Text, index: int, _message: Message, _side: str, work: Work) -> Part | None:
    if not work.refuses(part.text):
        return part
    work.note("blank", index, "a text without a visible character was left out")
    return None


def _thinking(part: Thinking, index: int, _message: Message, side: str, work: Work) -> Part | None:
    if side != "assistant" and work.own(part.wire):
        work.note("thinking-role", index, "thinking outside the assistant's messages was left out")
        return None
    if work.rules.signed_thinking and not part.signature and (part.wire is None or work.own(part.wire)):
        work.note("thinking-unsigned", index, "thinking without its signature was left out")
        return None
    work.thinks = True
    return None if _is_again(index, part.wire, work) else part


def _media(part: Media, index: int, message: Message, side: str, work: Work) -> Part | None:
    if side in work.rules.media_roles:
        return part
    alone = message if work.exact(message) else replace(message, parts=(part,))
    if not any(found.code == "media-role" for found in check(work.provider, work.target.render(alone, Loss()))):
        return part
    work.note("media-role", index, f"{work.rules.name} takes no {part.kind} from the {side}: a mark stands for it")
    return _mark(part)


def _mark(media: Media) -> Text:
    what = " ".join(word for word in (media.kind, media.mime) if word)
    return Text(text=media.text if media.text.strip() else f"[{what} left out]")


def _call(part: ToolCall, index: int, _message: Message, side: str, work: Work) -> Part | None:
    if side != "assistant":
        work.note("call-role", index, f"the call {part.id} stands outside the assistant's messages: told in words")
        return Text(text=f"[call of {part.name or 'a tool'} {part.id}: {part.arguments}]")
    fields: dict[str, str] = {}
    checked = work.provider != "anthropic" or (part.wire is not None and part.wire.exact and work.own(part.wire))
    if (checked or not part.name) and not work.name_form(part.name):
        fields["name"] = legal_name(part.name)
        work.note("name", index, f"{work.rules.name} takes no tool name {part.name[:80]!r}: {fields['name']}")
    if checked and part.id and not work.id_form(part.id):
        fields["id"] = legal_id(part.id)
        work.note("id", index, f"{work.rules.name} takes no call id {part.id[:80]!r}: {fields['id']}")
    if not fields and _is_again(index, part.wire, work):
        return edited(part)
    if not fields and _is_sound(part, work):
        return part
    if not fields:
        work.note("input", index, f"the input of the call {part.id} was not of the form {work.rules.name} wants")
    return edited(part, **fields)


def _is_sound(part: ToolCall, work: Work) -> bool:
    """False for a call that came malformed: it has to be written anew."""
    wire = part.wire
    if wire is None or not (work.own(wire) and wire.exact) or not isinstance(wire.value, dict):
        return True
    value = wire.value
    if work.provider == "anthropic":
        return isinstance(value.get("input"), dict)
    if work.provider == "gemini":
        held = value.get("functionCall") or value.get("function_call")
        return isinstance(held, Mapping) and isinstance(held.get("args", {}), Mapping | None)
    if work.provider == "openai-responses":
        return value.get("type") != "function_call" or isinstance(value.get("arguments"), str)
    held = value.get("function", value.get("function_call"))
    return not (isinstance(held, dict) and "arguments" in held) or isinstance(held["arguments"], str)


def legal_name(name: str) -> str:
    """A tool name in the letters every provider takes.

    >>> legal_name("files.read"), legal_name("")
    ('files_read', 'unnamed')
    """
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:_LONGEST_NAME] or "unnamed"


def legal_id(name: str) -> str:
    """An id every provider takes, the same for a call and for its result."""
    return "call_" + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _result(part: ToolResult, index: int, message: Message, _side: str, work: Work) -> Part | None:
    checked = work.provider != "anthropic" or (part.wire is not None and part.wire.exact and work.own(part.wire))
    if checked and part.call_id and not work.id_form(part.call_id):
        part = edited(part, call_id=legal_id(part.call_id))
    if checked and part.name and not work.name_form(part.name):
        part = edited(part, name=legal_name(part.name))
    if len(part.parts) == 1 and type(part.parts[0]) is Text and part.parts[0].text.strip():
        return part
    own = work.own(part.wire) or (work.own(message.wire) and not _is_malformed(message, work))
    made = [kept for inner in part.parts if (kept := _inside(inner, part, own, work)) is not None]
    said = any(not isinstance(inner, Text) or inner.text.strip() for inner in made)
    if not said and (not own or len(made) < len(part.parts) or (part.is_error and work.rules.error_text_only)):
        made = [Text(text=NO_OUTPUT)]
        work.note("no-output", index, f"the result of {part.call_id or part.name} says nothing: {NO_OUTPUT}")
    elif len(made) < len(part.parts):
        work.note("blank", index, f"a part of the result of {part.call_id or part.name} was left out")
    elif any(new is not old for new, old in zip(made, part.parts, strict=True)):
        work.note("media-result", index, f"a mark stands for media in the result of {part.call_id or part.name}")
    else:
        return part
    return edited(part, parts=tuple(made))


def _inside(inner: Part, result: ToolResult, own: bool, work: Work) -> Part | None:
    """A part of a result, a mark in its place, or None."""
    if isinstance(inner, Text):
        return None if work.refuses(inner.text) and not (own and inner.wire is None and not inner.text) else inner
    if work.rules.error_text_only and result.is_error:
        return _mark(inner) if isinstance(inner, Media) else None
    if isinstance(inner, Media) and not work.rules.media_in_results and work.own(inner.wire):
        return _mark(inner)
    if isinstance(inner, Opaque) and inner.kind in _BROKEN and work.own(inner.wire):
        return None
    return inner


def _is_said(value: Any) -> bool:
    """True for an element that holds content: its parts are not items of their own."""
    return isinstance(value, dict) and value.get("type", "message") == "message"


def _opaque(part: Opaque, index: int, message: Message, side: str, work: Work) -> Part | None:
    if (part.kind in _BROKEN or part.kind.startswith(_UNKNOWN_CALL)) and work.own(part.wire):
        work.note("shape", index, f"a malformed part was left out ({part.kind or 'without a type'})")
        return None
    if part.kind in _MEDIA and side not in work.rules.media_roles and work.own(part.wire):
        work.note("media-role", index, f"{work.rules.name} takes no {part.kind} from the {side}: left out")
        return None
    if work.rules.closed_server_calls and side != "assistant" and work.own(part.wire) and is_server_part(part):
        work.note("server-role", index, f"a {part.kind} outside the assistant's messages was left out")
        return None
    work.thinks = True
    inside = work.own(message.wire) and message.wire and _is_said(message.wire.value)
    return None if not inside and _is_again(index, part.wire, work) else part


_CLEANERS: Mapping[type[Part], Callable[[Any, int, Message, str, Work], Part | None]] = {
    Text: _text,
    Thinking: _thinking,
    Media: _media,
    ToolCall: _call,
    ToolResult: _result,
    Opaque: _opaque,
}
