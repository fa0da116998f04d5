"""JSON text that is changed where it must be and nowhere else, so that taking out what was put in gives the same bytes.

Settings belong to somebody: their line ends, escapes, spelling of numbers and doubled keys are none of our business. So
nothing is parsed and written anew; one item is put in or cut out by its place in the text. A container that is empty
but there gets a space before its closing bracket when it is filled: by that it is known to have been there before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from foldline.errors import ConfigError

_WAS_THERE = " "
_INDENT = re.compile(r"^([ \t]+)\"", re.MULTILINE)
_space = re.compile(r"[ \t\n\r]*").match
_BLANK = " \t\n\r"


class Item(NamedTuple):
    """A member of an object or an item of a list, and where it stands: `text[start:end]`."""

    key: str
    start: int
    at: int
    """Where its value begins."""
    end: int
    value: Any


def _no_json(word: str) -> Any:
    raise ValueError(f"{word} is no number")


_decoder = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_no_json)
"""Numbers stay as they are spelled: nothing is computed, and none is too large."""


def root(text: str) -> int:
    """Where the object begins that the text is; ConfigError when it is none."""
    at = _skip(text, 1 if text.startswith("\ufeff") else 0)
    if at == len(text):
        raise ConfigError("empty (settings without anything in them are {})")
    try:
        value, end = _decoder.raw_decode(text, at)
        if _skip(text, end) != len(text):
            raise json.JSONDecodeError("Extra data", text, end)
    except RecursionError:
        raise ConfigError("not JSON that can be read (nested too deeply)") from None
    except ValueError as error:
        raise ConfigError(f"not JSON ({error})") from None
    if not isinstance(value, dict):
        raise ConfigError("not an object in braces")
    return at


def items(text: str, at: int) -> list[Item]:
    """What the container holds that begins at `at`, in a text that was checked.

    >>> [item[:4] for item in items('{"a": [1], "b": 2}', 0)]
    [('a', 1, 6, 9), ('b', 11, 16, 17)]
    """
    found: list[Item] = []
    in_object = text[at] == "{"
    at = _skip(text, at + 1)
    while text[at] not in "]}":
        start, key = at, ""
        if in_object:
            key, at = _decoder.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        value, end = _decoder.raw_decode(text, at)
        found.append(Item(key, start, at, end, value))
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found


def member(text: str, at: int, key: str) -> Item | None:
    """The member of that name; ConfigError when there are two, as nobody knows which of them counts."""
    found = [item for item in items(text, at) if item.key == key]
    if len(found) > 1:
        raise ConfigError(f'"{key}" stands twice in the same object')
    return found[0] if found else None


def put(text: str, at: int, value: Any, key: str = "") -> str:
    """The text with one item more at the end of the container that begins at `at`, written as its neighbours are."""
    newline = "\r\n" if "\r\n" in text else "\n"
    found = items(text, at)
    if found:
        last = found[-1]
        lead = text[len(text[: last.start].rstrip(_BLANK)) : last.start]
        base = lead.rpartition("\n")[2] if "\n" in lead else None
        made = _written(text, key, value, newline, base)
        return f"{text[: last.end]},{' ' if base is None else newline + base}{made}{text[last.end :]}"
    line = text[:at].rpartition("\n")[2]
    base = line[: len(line) - len(line.lstrip(" \t"))] + _indent(text)
    lined = "\n" in text.strip() or not text[:at].strip("\ufeff" + _BLANK)
    made = (newline + base if lined else "") + _written(text, key, value, newline, base if lined else None)
    return f"{text[: at + 1]}{made}{_WAS_THERE}{text[at + 1 :]}"


def cut(text: str, path: Sequence[tuple[int, int]]) -> str:
    """The text without one item: where each container around it begins, and which of its items is meant.

    A container that holds nothing else goes with it, unless it was there before. Of a text that is nothing but such
    containers its last line end is left.
    """
    at, index = path[-1]
    found = items(text, at)
    item = found[index]
    if index:
        return text[: found[index - 1].end] + text[item.end :]
    if len(found) > 1:
        return text[: item.start] + text[found[1].start :]
    if text.startswith(_WAS_THERE, item.end):
        return text[: at + 1] + text[item.end + len(_WAS_THERE) :]
    if len(path) > 1:
        return cut(text, path[:-1])
    closing = _skip(text, item.end)
    return "\n" if at == 0 and text[closing + 1 :] == "\n" else text[: at + 1] + text[closing:]


def _written(text: str, key: str, value: Any, newline: str, base: str | None) -> str:
    """A new item: on lines that begin with `base`, or on one line."""
    made = json.dumps(value, ensure_ascii=False, indent=None if base is None else _indent(text))
    return (f'"{key}": ' if key else "") + made.replace("\n", newline + (base or ""))


def _indent(text: str) -> str:
    """How the text is indented; two spaces where it does not say."""
    found = _INDENT.search(text)
    return found[1] if found else "  "


def _skip(text: str, at: int) -> int:
    found = _space(text, at)
    return found.end() if found else at
