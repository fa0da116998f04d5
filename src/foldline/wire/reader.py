"""Reads a `Transcript` from JSON, JSONL, lists, request bodies, replies and session files.

The format is detected; if it is not clear, an error asks for `format=`. Bad input always raises an `InputError`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple

from foldline import text_lines
from foldline.errors import FormatUnknown, WireError, check_type
from foldline.json_text import Slice, decode, dumps, loads, scan, scan_list
from foldline.message import Message
from foldline.text_lines import TextLine
from foldline.wire.detect import PLAIN, Detected, detect
from foldline.wire.field_access import string_at
from foldline.wire.formats import (
    BROKEN_LINE,
    FORMATS,
    REQUEST_FORMATS,
    Format,
    JsonLine,
    ReadNote,
    Transcript,
    element_format,
    format_of,
    plain_message,
)
from foldline.wire.named_format import check_named_format, not_in_format
from foldline.wire.request import Request, parse_elements, unknown_format
from foldline.wire.sdk_objects import is_sdk_object, sdk_json
from foldline.wire.streaming.stream_events import EventAssembler, is_event_list

_PEEK = 100
"""Number of lines of a file that are read to detect its format."""
_DEEPEST_OBJECT = 4
"""SDK objects are converted down to this depth: list, message, content, block."""


_PATH = re.compile(r"[^\s{}]*[./\\][^\s{}]+")
"""Matches a word that looks like the path of a file."""


NO_TRANSCRIPT = (
    "a transcript is JSON or JSONL: a request or its messages (Anthropic, OpenAI, Gemini), or a session file of Claude "
    "Code, Codex, pi, Gemini CLI or OpenHands"
)
"""The hint for a file that does not begin like JSON."""


class _Known(NamedTuple):
    """The format that the caller named, and the default for a value whose format is not clear."""

    format: str | None = None
    default: str | None = None
    strict: bool = False
    """Whether a line that cannot be read is an error. If False, the line is left out, and a note names it."""

    def detect(self, value: Any) -> Detected | None:
        """The format and shape of a value; None if they are not clear."""
        return detect(value, self.format, self.default)


def sign_of(value: Any) -> str | None:
    """The request format that a message, list, body or reply clearly has; None if it is not clear.

    For a line of a session file, this is the request format of its messages.

    >>> sign_of({"role": "user", "content": "hi"}), sign_of({"role": "user", "parts": [{"text": "hi"}]})
    (None, 'gemini')
    """
    if isinstance(value, Message):
        form = value.wire.format if value.wire else None
    else:
        found = detect(_json(value))
        form = found.format if found and found.clear else None
    form = form and element_format(form)
    return form if form in REQUEST_FORMATS else None


def parse(source: Any, format: str | None = None, *, default: str | None = None, file: str = "") -> Transcript:
    """The conversation in bytes, text (JSON or JSONL), a list, a dict, one message, or a reply object of an SDK.

    If `format` is given, the format is not detected. `default` is the format for input whose format is not clear, such
    as a message with only a role and a text. Without a default, such a message is read as OpenAI chat. A text is always
    content, never a path: use `read` for files.
    """
    _check_name(format)
    form = format or default or PLAIN
    plain = plain_message(source, form)
    if plain is not None:
        return Transcript(format=form, messages=(plain,))
    found = _only_conversation(_conversations(source, _Known(format, default, strict=True)), file)
    for note in found.broken_lines:
        raise WireError(note.text, file=file, line=note.line)
    return found


def read(path: str | os.PathLike[str], format: str | None = None) -> Transcript:
    """The conversation in a file, which may be compressed with gzip. A broken line is left out, and a note names it."""
    _check_name(format)
    _check_path(path)
    return _only_conversation(_from_lines(text_lines.lines_of_file(path), _Known(format)), os.fspath(path))


def read_all(path: str | os.PathLike[str], format: str | None = None) -> list[Transcript]:
    """All conversations in a file, at any depth. A broken line is left out, and a note names it."""
    _check_path(path)
    return list(_with_file_in_errors(_from_lines(text_lines.lines_of_file(path), _Known(format)), os.fspath(path)))


def _check_path(path: object) -> None:
    """Raise `InputError` for a value that is not a path."""
    hint = "pass the path of a file; for values in memory, use parse(…)"
    check_type(path, (str, bytes, os.PathLike), "the path of a transcript", hint=hint)


def _check_name(format: str | None) -> None:
    """Raise `ConfigError` for an unknown format."""
    if format is not None and format not in FORMATS:
        format_of(format)


def _only_conversation(found: Iterator[Transcript], file: str) -> Transcript:
    found = _with_file_in_errors(found, file)
    first, second = next(found, None), next(found, None)
    if first is None:
        raise WireError("no conversation found", file=file)
    if second is not None:
        raise WireError("more than one conversation found", file=file, hint="use foldline.read_all(path)")
    return first


def _with_file_in_errors(found: Iterator[Transcript], file: str) -> Iterator[Transcript]:
    """Yield the given conversations. Errors name the file, and nesting that is too deep raises a `WireError`."""
    try:
        yield from found
    except WireError as error:
        raise error.at(file=file) from None
    except FormatUnknown as error:
        raise FormatUnknown(f"{file}: {error.message}" if file else error.message, hint=error.hint) from None
    except RecursionError:
        raise WireError("nested too deeply to read", file=file) from None


def _conversations(source: Any, known: _Known) -> Iterator[Transcript]:
    if _is_message_object(source):
        source = (source,)
    if is_event_list(source):
        yield _from_events(source, known)
        return
    if isinstance(source, (bytes, bytearray, memoryview)):
        source = decode(source)
    if isinstance(source, str):
        yield from _from_lines(text_lines.lines_of_text(source), known)
    elif isinstance(source, Sequence) and source and all(_is_message_object(item) for item in source):
        yield _from_objects(source, known)
    else:
        yield from _from_value(_json(source), known)


def _is_message_object(item: Any) -> bool:
    """True for a `Message` and for any other object with a role, except SDK objects."""
    return hasattr(item, "role") and not hasattr(item, "model_dump")


def _from_objects(items: Sequence[Any], known: _Known) -> Transcript:
    """The transcript of message objects; a `Message` is used unchanged."""
    parse_one = format_of("pi").parse
    messages = tuple(item if isinstance(item, Message) else parse_one(item, None) for item in items)
    form = known.format or next((message.wire.format for message in messages if message.wire), known.default or PLAIN)
    return Transcript(format=form, messages=messages, model=_model(messages))


def _from_events(events: list[Any], known: _Known) -> Transcript:
    """The transcript of a streamed reply, whose events are given as a list."""
    assembler = EventAssembler(known.format or "")
    for event in events:
        assembler.take(event)
    reply = assembler.finish()
    if reply is None or not reply.messages:
        raise WireError("these stream events hold no complete part of a reply", hint="pass all events of one stream")
    return Transcript(format=assembler.format, messages=reply.messages, model=_model(reply.messages))


def _json(value: Any, deepest: int = _DEEPEST_OBJECT) -> Any:
    """The value with SDK objects converted to JSON; the same object if it holds no SDK objects."""
    if is_sdk_object(value):
        return sdk_json(value)
    if deepest and isinstance(value, Mapping):
        converted = {key: _json(inner, deepest - 1) for key, inner in value.items()}
        return value if all(converted[key] is value[key] for key in converted) else converted
    if deepest and isinstance(value, (list, tuple)):
        listed = [_json(inner, deepest - 1) for inner in value]
        same = isinstance(value, list) and all(new is old for new, old in zip(listed, value, strict=True))
        return value if same else listed
    return value


def _from_lines(source: Iterator[TextLine], known: _Known) -> Iterator[Transcript]:
    """The conversations of JSONL lines or of one JSON document.

    The text is JSONL if its first line is a JSON object or list and more lines follow.
    """
    head = _up_to_text(source)
    if not head or not head[-1].text.strip():
        raise WireError("empty: there is nothing to read")
    more = _up_to_text(source)
    try:
        first = JsonLine(head[-1].number, loads(head[-1].text), head[-1].text.removesuffix("\r"))
    except WireError:
        first = None
    if first is not None and isinstance(first.value, (dict, list)) and more and more[-1].text.strip():
        notes: list[ReadNote] = []
        yield from _from_jsonl(chain([first], _json_lines(chain(more, source), notes)), known, notes)
        return
    lines = [*head, *more, *source]
    text = "".join(line.text + "\n" * line.ended for line in lines)
    try:
        value = loads(text)
    except WireError as error:
        if not _is_mostly_objects(lines):
            raise _not_json(text, error) from None
        notes = []
        yield from _from_jsonl(_json_lines(lines, notes), known, notes)
    else:
        yield from _from_value(value, known, text)


def _not_json(text: str, error: WireError) -> WireError:
    """The error for a text that is not JSON. If the text does not begin like JSON, the error has a hint."""
    start = text.strip()[:300]
    if start.startswith(("{", "[")):
        return error
    hint = "use read(path) for a file" if _PATH.fullmatch(start) else NO_TRANSCRIPT
    return WireError(error.reason, line=error.line, field=error.field, hint=hint)


def _is_mostly_objects(lines: Iterable[TextLine]) -> bool:
    """True if more than half of the lines are JSON objects.

    Such a text is read as JSONL, although some lines are broken.
    """
    filled = [line.text for line in lines if line.text.strip()]
    return 2 * sum(map(_is_object, filled)) > len(filled)


def _is_object(text: str) -> bool:
    try:
        return isinstance(loads(text), dict)
    except WireError:
        return False


def _up_to_text(source: Iterator[TextLine]) -> list[TextLine]:
    """The next lines, up to and including the first line that is not blank."""
    taken: list[TextLine] = []
    for line in source:
        taken.append(line)
        if line.text.strip():
            break
    return taken


def _json_lines(source: Iterable[TextLine], notes: list[ReadNote]) -> Iterator[JsonLine]:
    """Each line as JSON. A note names every line that is not a JSON object or list."""
    for line in source:
        if not line.text.strip():
            continue
        try:
            value = loads(line.text)
        except WireError as error:
            words = f"{BROKEN_LINE}{error.reason}" if line.ended else "half-written last line left out"
            notes.append(ReadNote(line.number, words))
            continue
        if isinstance(value, (dict, list)):
            yield JsonLine(line.number, value, line.text.removesuffix("\r"))
        else:
            notes.append(ReadNote(line.number, f"{BROKEN_LINE}not a JSON object ({line.text.strip()[:40]})"))


def _from_jsonl(source: Iterator[JsonLine], known: _Known, notes: list[ReadNote]) -> Iterator[Transcript]:
    """The conversations of a JSONL file: a session file, one message per line, or one conversation per line."""
    head = list(islice(source, _PEEK))
    source = chain(head, source)
    values = [line.value for line in head]
    found = known.detect(values) or _format_of_most(head, known)
    if found is not None and found.shape != "reply":
        if known.format:
            check_named_format(values, found, partial(_transcript, values, text=None))
        transcript = _from_one_file(source, format_of(found.format), known, notes)
        if not transcript.messages:
            _raise_for_broken_line([*transcript.notes, *notes])
        yield replace(transcript, notes=(*transcript.notes, *notes))
        return
    last = None
    for line in source:
        try:
            for transcript in _inside(line.value, known):
                if last is not None:
                    yield last
                last = transcript
        except WireError as error:
            raise error.at(line=line.number) from None
    if last is None:
        _raise_for_broken_line(notes)
        raise not_in_format(values, known.format, None) if known.format else unknown_format(values, "file")
    yield replace(last, notes=(*last.notes, *notes))


def _raise_for_broken_line(notes: Iterable[ReadNote]) -> None:
    """Raise the error of the first broken line, if there is one.

    The reader calls this function if it found no message in the file.
    """
    for note in notes:
        if note.text.startswith(BROKEN_LINE):
            raise WireError(note.text.removeprefix(BROKEN_LINE), line=note.line)


def _format_of_most(lines: Sequence[JsonLine], known: _Known) -> Detected | None:
    """The format of the messages in these lines, if more than half of the lines are messages; else None."""
    values = [line.value for line in lines if isinstance(line.value, dict) and known.detect([line.value])]
    return known.detect(values) if 2 * len(values) > len(lines) else None


def _from_one_file(source: Iterator[JsonLine], target: Format, known: _Known, notes: list[ReadNote]) -> Transcript:
    """The conversation of a session file, or of a file with one message per line."""
    lines = _objects(source, notes)
    if target.read is not None:
        return target.read(lines)
    messages: list[Message] = []
    first_error: WireError | None = None
    for line in lines:
        try:
            messages.append(target.parse(line.value, line.raw))
        except WireError as error:
            if known.strict:
                raise error.at(line=line.number) from None
            first_error = first_error or error.at(line=line.number)
            notes.append(ReadNote(line.number, f"{BROKEN_LINE}{error}"))
    if first_error is not None and not messages:
        raise first_error
    return Transcript(format=target.name, messages=tuple(messages), model=_model(messages))


def _objects(source: Iterable[JsonLine], notes: list[ReadNote]) -> Iterator[JsonLine]:
    """The lines that are JSON objects with at least one field. Each remaining line is named in a note."""
    for line in source:
        if isinstance(line.value, dict) and line.value:
            yield line
        else:
            what = "an empty object" if line.value == {} else "not a JSON object"
            notes.append(ReadNote(line.number, f"{BROKEN_LINE}{what} ({dumps(line.value)[:40]})"))


def _from_value(value: Any, known: _Known, text: str | None = None) -> Iterator[Transcript]:
    """The conversations in a value: the value itself if it is a conversation, else the conversations inside it."""
    for name in filter(None, (known.format, known.default)):
        format_of(name)
    found = known.detect(value)
    if found is not None:
        yield _named_transcript(value, found, text, known)
        return
    if known.format and (other := detect(value)) is not None and other.clear and other.shape == "body":
        raise not_in_format(value, known.format, other)
    inside = _inside(value, known)
    first = next(inside, None)
    if first is None:
        raise not_in_format(value, known.format, None) if known.format else unknown_format(value, "input")
    yield first
    yield from inside


def _inside(value: Any, known: _Known) -> Iterator[Transcript]:
    """The conversations inside a document: lists of messages, request bodies, replies under the key `response`."""
    if not isinstance(value, (list, Mapping)):
        return
    found = detect(value)
    if found is not None and found.shape != "reply" and (isinstance(value, list) or found.key):
        yield _named_transcript(value, known.detect(value) or found, None, known)
        return
    for key, inner in value.items() if isinstance(value, Mapping) else enumerate(value):
        held = detect(inner) if key == "response" else None
        if held is not None and held.shape == "reply":
            yield _transcript(inner, held, None)
        else:
            yield from _inside(inner, known)


def _named_transcript(value: Any, found: Detected, text: str | None, known: _Known) -> Transcript:
    """The conversation in a value. Raises `WireError` if the caller named another format than the value has."""
    if known.format == found.format:
        check_named_format(value, found, partial(_transcript, value, text=None))
    return _transcript(value, found, text)


def _transcript(value: Any, found: Detected, text: str | None) -> Transcript:
    target = format_of(found.format)
    if found.shape == "reply":
        messages = target.reply.parse(value) if target.reply else ()
        return Transcript(format=found.format, messages=messages, model=_model(messages))
    if found.shape == "body":
        return _with_reply(Request.parse(value if text is None else text, found.format).transcript(), value)
    items = _items(value, found.key, text)
    if target.read is not None:
        recorded = target.read(
            JsonLine(number, item.value, text[item.start : item.end] if text is not None else None)
            for number, item in enumerate(items, start=1)
        )
        return replace(recorded, session=recorded.session or string_at(value, "sessionId"))
    messages = tuple(parse_elements(target, items, text, found.key))
    return Transcript(format=found.format, messages=messages, model=_model(messages))


def _items(value: Any, key: str, text: str | None) -> Sequence[Slice]:
    """The elements of a list, each with its position in the text.

    If `key` is not "", the list is the value of this field. A value that is not a list is returned as the only element.
    """
    if text is None:
        return [Slice(item, 0, 0) for item in (value[key] if key else value if isinstance(value, list) else [value])]
    if key:
        return scan(text, key).elements[key]
    if isinstance(value, list):
        return scan_list(text)
    return [Slice(value, len(text) - len(text.lstrip()), len(text.rstrip()))]


def _with_reply(transcript: Transcript, value: Mapping[str, Any]) -> Transcript:
    """The transcript, with the reply as its last message if the value holds a reply under the key `response`."""
    response = value.get("response")
    found = detect(response) if isinstance(response, Mapping) else None
    if found is None or found.shape != "reply":
        return transcript
    reply = _transcript(response, found, None)
    return replace(transcript, messages=transcript.messages + reply.messages, model=transcript.model or reply.model)


def _model(messages: Sequence[Message]) -> str:
    return next((message.meta.model for message in reversed(messages) if message.meta.model), "")
