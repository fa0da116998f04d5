"""Text and files as numbered lines, one at a time, so that a long session log never has to fit into memory at once.

Only a line feed ends a line: JSON text may hold every other character that Unicode calls a line break. Whatever can go
wrong with a file (missing, a folder, compressed and cut off, not text at all) is one typed error that names it.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from io import BufferedReader
from typing import NamedTuple

from foldline.errors import WireError

LINE_BYTES = 1 << 30
"""No message is that long: a larger line is something else, and reading it would only fill the memory."""

_HEAD_BYTES = 4096
_GZIP = b"\x1f\x8b"
_BOM = "\ufeff"


class TextLine(NamedTuple):
    """A line: its number from 1, its text without the line end, and whether it has one."""

    number: int
    text: str
    ended: bool


def of_text(text: str) -> Iterator[TextLine]:
    """The lines of a text."""
    start, number = len(_BOM) if text.startswith(_BOM) else 0, 0
    while start < len(text):
        end = text.find("\n", start)
        number += 1
        yield TextLine(number, text[start : end if end >= 0 else None], end >= 0)
        start = end + 1 if end >= 0 else len(text)


def of_file(path: str | os.PathLike[str]) -> Iterator[TextLine]:
    """The lines of a file, also of a gzip-compressed one."""
    name = os.fspath(path)
    try:
        with open(name, "rb") as plain:
            zipped = plain.peek(len(_GZIP))[: len(_GZIP)] == _GZIP
            with gzip.open(plain) if zipped else plain as stream:
                yield from _of_stream(stream, name)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise WireError(f"cannot be read ({_reason(error)})", file=name) from None


def _of_stream(stream: gzip.GzipFile | BufferedReader, name: str) -> Iterator[TextLine]:
    if b"\0" in stream.peek(_HEAD_BYTES):
        raise WireError("a binary file, not JSON", file=name, line=1)
    number = 0
    while raw := stream.readline(LINE_BYTES):
        number += 1
        ended = raw.endswith(b"\n")
        if not ended and len(raw) == LINE_BYTES:
            raise WireError(f"a line of more than {LINE_BYTES:,} bytes", file=name, line=number)
        text = raw.decode("utf-8", "surrogateescape")
        text = text.removeprefix(_BOM) if number == 1 else text
        yield TextLine(number, text[:-1] if ended else text, ended)


def _reason(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error) or type(error).__name__
