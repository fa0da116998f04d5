"""Checks that recorded files are rendered unchanged in their own format, and counts what other formats cannot express.

Every file of a folder is read. Each message, rendered in its own format, must give the same JSON value as in the file,
with the same order of keys. The original text that foldline keeps with a message must be in the file. A request body
must be rendered byte for byte. Then every conversation is rendered in all four request formats, and the content that is
lost is counted by kind. The exit status is 1 if a message or a body differs.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foldline.errors import FormatUnknown, InputError
from foldline.json_text import decode
from foldline.message import Message
from foldline.wire import REQUEST_FORMATS, Request, Transcript, read_all, render
from foldline.wire.formats import LossCollector, format_of
from foldline.wire.session_logs import codex_items as codex_log

NOT_DATA = ("LICENSE", "NOTICE", "README")


@dataclass
class Tally:
    """The counts for one folder."""

    files: int = 0
    parsed: int = 0
    conversations: int = 0
    messages: int = 0
    texts: int = 0
    """Number of messages whose original text was compared."""
    bodies: int = 0
    """Number of request bodies that were compared."""
    formats: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)
    touched: Counter[str] = field(default_factory=Counter)
    """Number of messages that lost content, by format."""
    lost: Counter[str] = field(default_factory=Counter)
    """Number of losses, by format and kind."""


def main(argv: Sequence[str]) -> int:
    """Run the bench and print its figures."""
    parser = argparse.ArgumentParser(prog="python -m bench roundtrip", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with session files, requests, transcripts")
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    options = parser.parse_args(argv)
    tallies: dict[str, Tally] = {}
    for path in sorted(path for path in options.data.rglob("*") if path.is_file()):
        if not path.name.startswith(NOT_DATA):
            folder = str(path.parent.relative_to(options.data))
            _take(path, tallies.setdefault(folder, Tally()))
    if options.json:
        print(json.dumps({folder: vars(tally) for folder, tally in tallies.items()}, indent=1))
    else:
        _report(tallies)
    return 1 if any(tally.differences for tally in tallies.values()) else 0


def _take(path: Path, tally: Tally) -> None:
    tally.files += 1
    try:
        found = read_all(path)
    except FormatUnknown as error:
        tally.skipped[error.message.partition(", it ")[2] or error.message] += 1
        return
    except InputError as error:
        tally.skipped[str(error).removeprefix(str(path))] += 1
        return
    tally.parsed += 1
    data = path.read_bytes()
    data = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    text = decode(data)
    for transcript in found:
        tally.conversations += 1
        tally.formats[transcript.format] += 1
        tally.messages += len(transcript.messages)
        tally.differences += [f"{path}: {what}" for what in _compare(transcript, text, tally)]
        _cross(transcript, tally)
    if len(found) == 1 and found[0].format in REQUEST_FORMATS:
        tally.differences += [f"{path}: {what}" for what in _whole_body(data, tally)]


def _compare(transcript: Transcript, text: str, tally: Tally) -> Iterator[str]:
    """The differences after rendering in the same format."""
    for place, message in enumerate(transcript.messages):
        wire = message.wire
        if wire is None:
            yield f"message {place} has no wire form"
            continue
        if wire.raw is not None:
            tally.texts += 1
            if not all(line in text for line in wire.raw.split("\n")):
                yield f"message {place}: its text is not in the file"
            if isinstance(wire.value, dict) and _ordered(json.loads(wire.raw)) != _ordered(wire.value):
                yield f"message {place}: its text and its value differ"
        expected = _expected(message)
        if _is_system_field(message):
            given: Any = _system(message)
        else:
            loss = LossCollector()
            given = [_content(element) for element in format_of(transcript.format).render(message, loss)]
            if not given and not loss.items:
                yield f"message {place} is missing, and no loss is reported"
        if expected is not None and _ordered(given) != _ordered(expected):
            yield f"message {place} came back different"


def _expected(message: Message) -> Any:
    """The elements of a request that the file has for a message; None if they cannot be compared."""
    wire = message.wire
    value: Any = wire.value if wire else None
    form = wire.format if wire else ""
    if form in ("claude-code", "stream-json"):
        blocks: list[Any] = []
        for line in value or ():
            said = line.get("message") or {"content": line.get("attachment", {}).get("prompt")}
            content = said.get("content")
            if isinstance(content, str) and len(value or ()) == 1:
                return [content]
            blocks += [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        return [blocks]
    if form == "codex":
        return _sent_of_codex(value)
    return value if _is_system_field(message) else [_content(value)]


def _sent_of_codex(line: Any) -> Any:
    """The request item in a line of a rollout, without fields that only the log has; None if the line has no such
    item.
    """
    inner = codex_log.payload(line)
    is_item = line.get("type") == "response_item" or inner is line
    if is_item and isinstance(inner, dict) and codex_log.is_sent(inner) and inner.get("type") != "reasoning":
        return [_content(codex_log.without_log_fields(inner))]
    return None


def _content(element: Any) -> Any:
    """The part of an element that is compared. For Claude Code this is only the content, because its logs have more
    fields.
    """
    is_claude = isinstance(element, dict) and set(element) == {"role", "content"}
    return element["content"] if is_claude else element


def _is_system_field(message: Message) -> bool:
    """Whether a message comes from the system field of a request, and not from the list of messages."""
    wire = message.wire
    if wire is None or message.role != "system" or wire.format not in REQUEST_FORMATS:
        return False
    return not (isinstance(wire.value, dict) and "content" in wire.value)


def _system(message: Message) -> Any:
    target = format_of(message.wire.format if message.wire else "")
    return target.render_system((message,), LossCollector()) if target.render_system else None


def _ordered(value: Any) -> str:
    """A text that is different for values with different content or a different order of keys."""
    return json.dumps(value)


def _whole_body(data: bytes, tally: Tally) -> Iterator[str]:
    try:
        request = Request.parse(data)
    except InputError:
        return
    tally.bodies += 1
    if request.render(request.messages) != data:
        yield "the request body came back different"


def _cross(transcript: Transcript, tally: Tally) -> None:
    for provider in REQUEST_FORMATS:
        lost = render(transcript.messages, provider).lost
        tally.touched[provider] += len({item.message for item in lost})
        tally.lost.update(f"{provider}: {item.what}" for item in lost)


def _report(tallies: dict[str, Tally]) -> None:
    for folder, tally in tallies.items():
        formats = ", ".join(f"{count} {form}" for form, count in tally.formats.most_common())
        print(f"{folder}: {tally.files} files, {tally.parsed} parsed, {tally.conversations} conversations ({formats})")
        print(
            f"  {tally.messages:,} messages, {tally.texts:,} texts and {tally.bodies} bodies compared, "
            f"{len(tally.differences)} differences"
        )
        for reason, count in tally.skipped.most_common():
            print(f"  skipped {count}: {reason}")
        for provider in REQUEST_FORMATS:
            kinds = [
                (key.partition(": ")[2], count)
                for key, count in tally.lost.most_common()
                if key.startswith(f"{provider}: ")
            ]
            if kinds:
                told = ", ".join(f"{count} {kind}" for kind, count in kinds)
                print(f"  to {provider}: {tally.touched[provider]} messages with something lost ({told})")
        for difference in tally.differences[:10]:
            print(f"  DIFFERENT {difference}")
    messages = sum(tally.messages for tally in tallies.values())
    files = sum(tally.parsed for tally in tallies.values())
    differences = sum(len(tally.differences) for tally in tallies.values())
    print(f"all: {files} files, {messages:,} messages, {differences} differences")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
