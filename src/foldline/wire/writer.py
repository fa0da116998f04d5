"""Rewrites a file with different messages, in its original format.

A request body keeps its other fields and the bytes of every kept message. Three kinds of files cannot be written: a
reply, a document that contains conversations among other data, and a session log whose format has no `LogWriter`. The
error names the formats that can be written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from foldline import text_lines
from foldline.errors import InputError
from foldline.json_text import dumps, encode, loads
from foldline.message import Message
from foldline.wire.detect import Detected, detect
from foldline.wire.formats import REQUEST_FORMATS, JsonLine, LossCollector, Lost, format_of
from foldline.wire.rendering import elements, leading_system, with_joined_turns
from foldline.wire.request import Request
from foldline.wire.session_logs.rewrite import rewritten_lines


class RewrittenFile(NamedTuple):
    """The new content of a file, and the content that was lost."""

    data: bytes
    lost: tuple[Lost, ...] = ()


def refuse_unwritable(format: str) -> None:
    """Raise `InputError` if foldline reads session files of this format, but does not write them."""
    if format not in REQUEST_FORMATS and format_of(format).writer is None:
        raise _unwritable(f"a {format} file")


def _unwritable(what: str) -> InputError:
    hint = f"write a request instead (--to): one of {', '.join(REQUEST_FORMATS)}"
    return InputError(f"{what} can be read but not written", hint=hint)


def rewrite(
    text: str, messages: Sequence[Message], format: str | None = None, *, join_turns: bool = False
) -> RewrittenFile:
    """The content of a file in which these messages replace the original messages.

    With `join_turns`, consecutive messages of one role become one element, if the file is a request and the provider
    demands that roles alternate.
    """
    source = [JsonLine(line.number, line.text, None) for line in text_lines.lines_of_text(text) if line.text.strip()]
    value, lines = _value(text, source)
    found = detect(value, format)
    writer = format_of(found.format).writer if found else None
    if found is None or found.shape == "reply":
        raise _unwritable("this kind of document")
    refuse_unwritable(found.format)
    loss = LossCollector()
    data: Any
    if writer:
        made = rewritten_lines(found.format, _records(value, found, lines), messages, loss)
        data = _joined(value, found, bool(lines) or (isinstance(value, dict) and not found.key), made)
    elif found.shape == "body":
        data = Request.parse(text, found.format).render(messages, loss, join_turns=join_turns)
    else:
        data = _joined(value, found, bool(lines), _elements(found, messages, loss, join_turns=join_turns), pretty=True)
    return RewrittenFile(encode(data) if isinstance(data, str) else bytes(data), tuple(loss.items))


def _value(text: str, source: list[JsonLine]) -> tuple[Any, list[JsonLine]]:
    """The JSON value of the file, and its lines if the file has one JSON value per line.

    A file has one value per line if it has several lines and the first line is a JSON value. For such a file, the list
    of all values is returned. Lines that are not JSON are left out, as when the file was read.
    """
    lines = [JsonLine(line.number, value, line.value.removesuffix("\r")) for line, value in _parsed(source)]
    if len(source) > 1 and lines and lines[0].number == source[0].number:
        return [line.value for line in lines], lines
    return loads(text), []


def _parsed(source: list[JsonLine]) -> Iterator[tuple[JsonLine, Any]]:
    for line in source:
        try:
            yield line, loads(line.value)
        except InputError:
            if line is source[0]:
                return


def _records(value: Any, found: Detected, lines: list[JsonLine]) -> list[JsonLine]:
    """The records of a session file. Each record has the same `number` as when the file was read."""
    if lines:
        return lines
    held = value[found.key] if found.key else value if isinstance(value, list) else [value]
    return [JsonLine(number, one, None) for number, one in enumerate(held, start=1)]


def _elements(found: Detected, messages: Sequence[Message], loss: LossCollector, *, join_turns: bool) -> list[str]:
    target = format_of(found.format)
    lead = len(leading_system(messages, target))
    rendered = elements(messages[lead:], target, loss)
    rendered = with_joined_turns(rendered, target) if join_turns else rendered
    made = [dumps(element) if raw is None else raw for element, raw in rendered]
    if lead:
        loss.add("system", "a bare list cannot hold it")
    return made


def _joined(value: Any, found: Detected, is_lines: bool, made: list[str], *, pretty: bool = False) -> str:
    """The new content of the file: lines, a bare list, or the old object with the new items in its list field."""
    if is_lines:
        return "".join(f"{line}\n" for line in made)
    if found.key:
        return dumps({**value, found.key: [loads(line) for line in made]})
    return "[" + ",\n ".join(made) + "]\n" if pretty else f"[{','.join(made)}]"
