"""Detects the format of a JSON value by features that only one format has.

Each format registers a `Sign`: a test that recognises the elements or file lines of this format. The format of a value
is clear if the test of exactly one format recognises it. Elements with only a role and a text look the same in several
formats. Such elements are read in the caller's default format, or as "openai" if the caller gives no default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from foldline.models.table import model as model_of
from foldline.wire.field_access import block_types, key_in
from foldline.wire.formats import FORMATS, REQUEST_FORMATS, Format, ReplyFormat, Sign, element_format, format_of

WRAPPERS = ("messages", "history", "traj", "trajectory")
"""Fields in which other tools store a list of messages."""
PLAIN = "openai"
"""The format of messages with only a role and a text, unless the caller gives a default."""

_TURNS = ("user", "assistant")


class Detected(NamedTuple):
    """The format and the shape of a value: a request "body", a "reply", a list of "elements", or "lines" of a file."""

    format: str
    shape: str
    key: str = ""
    """The field that holds the list, if the value is an object."""
    clear: bool = True
    """False if the format of the value is not clear and a default was used."""


def detect(value: Any, given: str | None = None, default: str | None = None) -> Detected | None:
    """The format and shape of a JSON value; None if they are not clear.

    `given` is the format that the caller named. If the value can be read in this format, this format is used.
    `default` is used only if the format is not clear.
    """
    if isinstance(value, Mapping):
        return _detect_object(value, given, default)
    if not isinstance(value, list) or not value or any(map(_is_conversation, value)):
        return None
    for name, reply in _replies().items():
        if reply.chunked and given in (name, None) and all(_has_list(item, reply.list_key) for item in value):
            return Detected(name, "reply")
    if given:
        return Detected(given, shape_of(given))
    detected = _detect_elements(value, default)
    if detected is None or not detected.clear or detected.format == default or _is_list_of(value, detected.format):
        return detected
    return None


def _detect_elements(items: Sequence[Any], default: str | None) -> Detected | None:
    """The format of list elements; None if no format is found.

    Elements may match no format, or several. Then the default format is returned if the elements can be read in it.
    Otherwise, "openai" is returned if all elements have only a role and a text.
    """
    shown = signs(items)
    if len(shown) == 1:
        (name,) = shown
        return Detected(name, shape_of(name))
    fallback = element_format(default) if default else ""
    if fallback not in shown and (shown or not all(_is_readable(item, fallback) for item in items)):
        fallback = PLAIN if not shown and all(map(_is_plain, items)) else ""
    return Detected(fallback, shape_of(fallback), clear=False) if fallback else None


def _is_readable(item: Any, name: str) -> bool:
    """True if an element whose format is not clear can be read in this format."""
    return bool(name) and isinstance(item, Mapping) and any(key in item for key in format_of(name).plain_fields)


def _is_list_of(items: Sequence[Any], name: str) -> bool:
    """True if all elements of a list may be messages of this format.

    For a session log, the result is always True, because a log file may also hold lines that are not messages.
    """
    sign = format_of(name).sign
    return shape_of(name) == "lines" or all("role" in item or sign.test(item) for item in items)


def _is_conversation(item: Any) -> bool:
    """True for a list, and for an object that holds a list of messages.

    For an object with a role, the result is False, because such an object is a message.
    """
    if isinstance(item, Mapping):
        return "role" not in item and any(isinstance(item.get(key), list) for key in (*list_keys(), *WRAPPERS))
    return isinstance(item, list)


def signs(items: Sequence[Any]) -> dict[str, str]:
    """The formats whose test recognises an element of a list, each with the feature that was found."""
    shown: dict[str, str] = {}
    for item in items:
        if not isinstance(item, Mapping):
            return {}
        for name, sign in _signs():
            if name not in shown and sign.test(item):
                shown[name] = sign.description
    return shown


def candidates(value: Any) -> dict[str, str]:
    """The formats whose test recognises a value, each with the feature that was found."""
    if isinstance(value, Mapping):
        inner = next((value[key] for key in (*list_keys(), *WRAPPERS) if isinstance(value.get(key), list)), [value])
        return signs(inner) or (_body_signs(value) if "messages" in value else {})
    return signs(value) if isinstance(value, list) else {}


def shape_of(name: str) -> str:
    """The shape of a bare list in this format: "lines" for a session log, otherwise "elements" (messages)."""
    return "elements" if name in REQUEST_FORMATS else "lines"


def list_keys() -> tuple[str, ...]:
    """The request fields that may hold the messages."""
    return tuple(_formats_by_list_key())


def _detect_object(value: Mapping[str, Any], given: str | None, default: str | None) -> Detected | None:
    """The format of an object.

    The object is tried as a reply, a request body, a wrapper around a list, and an element, in this order.
    """
    for name, reply in _replies().items():
        is_blocked = bool(reply.blocked_key) and key_in(value, reply.blocked_key) in value
        if given in (name, None) and (_has_list(value, reply.list_key) or is_blocked):
            object_type = reply.object_type
            if object_type is not None and value.get("object", object_type) == object_type and "type" not in value:
                return Detected(name, "reply")
    for key in list_keys():
        body = _detect_given_body(value, key, given) if given else _detect_body(value, key, default)
        if body:
            return body
    for key in WRAPPERS:
        if isinstance(value.get(key), list) and (inner := detect(value[key], given, default)):
            return inner._replace(key=key)
    if given:
        is_element = bool(value.keys() & {"role", "type", "parts"} or signs([value]))
        return Detected(given, shape_of(given)) if is_element else None
    return _detect_elements([value], default)


def _detect_given_body(value: Mapping[str, Any], key: str, given: str) -> Detected | None:
    """The format and shape of a request body in the format `given`; None if its messages are not under `key`.

    An object with a text under `key` and a field `type` is not a request but an item of a conversation. The result for
    such an item is None.
    """
    form, held = format_of(given), value.get(key)
    if isinstance(held, str) and "type" in value:
        return None
    if (form.list_key or "messages") != key or not isinstance(held, (list, str) if form.text_list else list):
        return None
    return Detected(given, "body" if form.list_key else "lines", key)


def _detect_body(value: Mapping[str, Any], key: str, default: str | None) -> Detected | None:
    """The format and shape of a request body; None if they are not clear, or if `key` does not hold the messages.

    The format is detected by the messages. If the messages do not show the format, the other fields of the body are
    used.
    """
    held, known = value.get(key), _formats_by_list_key()[key]
    if isinstance(held, str):
        return next((Detected(form.name, "body", key) for form in known if form.text_list and "model" in value), None)
    if not isinstance(held, list):
        return None
    shown = signs(held)
    if len(known) == 1:
        name = known[0].name
        return Detected(name, "body", key) if name in shown or (not shown and detect(held)) else None
    if not shown and all(map(_is_plain, held)):
        shown = _body_signs(value)
        if held and not shown:
            names = [form.name for form in known]
            usual = _usual_format(value.get("model"), held)
            name = next((each for each in (default, usual) if each in names), PLAIN)
            return Detected(name, "body", key, clear=False)
    if len(shown) != 1:
        return None
    (name,) = shown
    return Detected(name, "body" if shape_of(name) == "elements" else "lines", key)


def _usual_format(model: Any, messages: Sequence[Mapping[str, Any]]) -> str:
    """The format in which the vendor of a model expects plain messages; "" if the vendor is unknown.

    The vendor's format is not used, and the result is "", in two more cases:

    - The model name has a path (`anthropic/claude-…`). Gateways use such names, and expect OpenAI's format.
    - A message has a role other than user and assistant. OpenAI's format has such roles in its list of messages.
    """
    if not isinstance(model, str) or "/" in model or any(message["role"] not in _TURNS for message in messages):
        return ""
    return model_of(model).format


def _body_signs(body: Mapping[str, Any]) -> dict[str, str]:
    """The formats whose `body_sign` recognises a request body, each with the feature that was found."""
    known = [(name, format_of(name).body_sign) for name in REQUEST_FORMATS]
    return {name: sign.description for name, sign in known if sign is not None and sign.test(body)}


def _has_list(value: Any, key: str) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get(key), list)


def _is_plain(item: Any) -> bool:
    """True for an element with only a role and text, which several formats write in the same way."""
    if not isinstance(item, Mapping) or not isinstance(item.get("role"), str) or "content" not in item:
        return False
    content = item["content"]
    return content is None or isinstance(content, str) or (block_types(item) or {""}) == {"text"}


@cache
def _signs() -> tuple[tuple[str, Sign], ...]:
    return tuple((name, format_of(name).sign) for name in FORMATS)


@cache
def _replies() -> dict[str, ReplyFormat]:
    return {name: reply for name in REQUEST_FORMATS if (reply := format_of(name).reply)}


@cache
def _formats_by_list_key() -> dict[str, tuple[Format, ...]]:
    formats = [format_of(name) for name in REQUEST_FORMATS]
    return {form.list_key: tuple(each for each in formats if each.list_key == form.list_key) for form in formats}
