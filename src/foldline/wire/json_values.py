"""Finds and replaces values that a request cannot hold: NaN, Infinity and lone surrogates (UTF-8 cannot encode them).

A lone surrogate appears when a tool cuts a text inside an emoji. NaN appears when a model writes `NaN` into the
arguments of a call. If a request holds one such value, the provider refuses the whole request. The record of a session
keeps these values. In a request, a surrogate is replaced by U+FFFD, and NaN or Infinity is replaced by its name as a
text.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from foldline.message import Message, Wire

_SURROGATE = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\ufffd"


def fault_of(value: Any) -> str:
    r"""Why JSON in UTF-8 cannot hold a value; "" if JSON can hold it.

    "unicode" stands for a lone surrogate, "number" for NaN or Infinity, and "shape" for a type that JSON does not have.

    >>> fault_of({"a": "\ud800"}), fault_of([float("nan")]), fault_of({"a": 1})
    ('unicode', 'number', '')
    """
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        return "unicode"
    except ValueError:
        return "number"
    except TypeError:
        return "shape"
    except RecursionError:
        return ""
    return ""


def is_json_object(value: Any) -> bool:
    """True for the text of a JSON object. False if the text contains NaN or Infinity, which Python accepts and JSON
    does not allow.

    >>> is_json_object('{"a": 1}'), is_json_object('{"a": NaN}'), is_json_object("[]")
    (True, False, False)
    """
    try:
        return isinstance(value, str) and isinstance(json.loads(value, parse_constant=_refuse), dict)
    except (ValueError, RecursionError):
        return False


def _refuse(name: str) -> float:
    raise ValueError(name)


def finite_json(text: str) -> Any:
    """The value of a JSON text. A number that is not finite becomes a text.

    >>> finite_json('{"a": NaN, "b": 1e999, "c": 1.5}')
    {'a': 'NaN', 'b': '1e999', 'c': 1.5}
    """
    return json.loads(text, parse_constant=str, parse_float=_number)


def _number(text: str) -> float | str:
    number = float(text)
    return number if math.isfinite(number) else text


def is_encodable(text: str) -> bool:
    """False for a text with a lone surrogate."""
    return text.isascii() or _SURROGATE.search(text) is None


def needs_replacement(message: Message) -> bool:
    """True for a message whose parts or wire form hold a lone surrogate or a number that is not finite."""
    wire = message.wire
    if wire is not None and fault_of(wire.value) in ("unicode", "number"):
        return True
    return (wire is None or not wire.exact) and sendable_value(message.parts) is not message.parts


def sendable_value(value: Any) -> Any:
    """The value, with every lone surrogate replaced by U+FFFD, and NaN and Infinity replaced by texts.

    A value that needs no change is returned as the same object. The value may be JSON, a message, a part or a wire
    form.
    """
    if isinstance(value, str):
        return value if is_encodable(value) else _SURROGATE.sub(_REPLACEMENT, value)
    if isinstance(value, float):
        return value if math.isfinite(value) else json.dumps(value)
    if isinstance(value, Mapping):
        changed = {sendable_value(key): sendable_value(inner) for key, inner in value.items()}
        same = len(changed) == len(value) and all(
            new is old and key is name for (key, new), (name, old) in zip(changed.items(), value.items(), strict=True)
        )
        return value if same else changed
    if isinstance(value, Wire):
        inner = sendable_value(value.value)
        return value if inner is value.value else value._replace(value=inner, raw=None)
    if isinstance(value, list | tuple):
        items = [sendable_value(inner) for inner in value]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return items if isinstance(value, list) else tuple(items)
    if is_dataclass(value) and not isinstance(value, type):
        changes = {
            field.name: new
            for field in fields(value)
            if (new := sendable_value(old := getattr(value, field.name))) is not old
        }
        return replace(value, **changes) if changes else value
    return value
