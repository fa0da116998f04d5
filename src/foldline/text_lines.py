"""Reads the lines of a text, a file, a stream or a growing file, one at a time, with limited memory.

Only a line feed ends a line, because JSON text may contain every other character that Unicode calls a line break.
`lines_of_text` and `lines_of_file` return numbered, decoded lines, for readers of whole session logs.
`raw_lines_of_stream` and `raw_lines_of_file` return the bytes of each line as it arrives, without blank lines, for
readers of events.
"""

from __future__ import annotations

import os
import select
import stat
import time
import zlib
from collections.abc import Callable, Iterator
from io import BufferedReader
from typing import NamedTuple, TypeAlias

from foldline.errors import WireError

CHUNK_BYTES = 1 << 16
EVENT_BYTES = 32 << 20
"""Largest size of a line in a stream, in bytes. Longer lines are skipped. No provider accepts a request body of this
size.
"""
LINE_BYTES = 1 << 30
"""Largest size in bytes of a line in a file that is read completely. A longer line is an error."""
POLL_SECONDS = 0.2
_HEAD_BYTES = 4096
_GZIP = b"\x1f\x8b"
_BOM, _BOM_BYTES = "\ufeff", b"\xef\xbb\xbf"
_BLANK_BYTES = _BOM_BYTES + b" \t\r\0"

Tee: TypeAlias = Callable[[bytes], None]
"""A function that receives every chunk before the chunk is split into lines.

A chunk of less than `CHUNK_BYTES` means that no more data is waiting. So if no data follows a chunk of `CHUNK_BYTES`,
or if a followed file stops growing, the function receives an empty chunk.
"""


class TextLine(NamedTuple):
    """A line: its number (from 1), its text without the line feed, and whether it ended with a line feed."""

    number: int
    text: str
    ended: bool


class LineSplitter:
    """Splits chunks of bytes into lines.

    Drops a byte order mark, lines that are too long and, by default, blank lines.
    """

    def __init__(self, *, limit_bytes: int = EVENT_BYTES, keep_blank: bool = False) -> None:
        self._limit, self._keep_blank = limit_bytes, keep_blank
        self._pending: list[bytes] = []
        self._size = 0
        self.too_long = 0
        """Number of lines skipped because of their length."""
        self._skipping = False
        self._at_start = True

    def lines(self, chunk: bytes) -> Iterator[bytes]:
        """Lines that end in this chunk."""
        pieces = chunk.split(b"\n")
        last = pieces.pop()
        if pieces and (self._pending or self._at_start):
            pieces[0] = self._join(pieces[0])
        limit, keep_blank = self._limit, self._keep_blank
        for piece in pieces:
            if self._skipping:
                self._skipping = False
            elif len(piece) > limit:
                self.too_long += 1
            elif piece or keep_blank:
                yield piece
        if last:
            self._hold(last)

    def rest(self) -> bytes:
        """The bytes after the last line feed, as the last line; b"" if there are none.

        The next chunk is treated as the start of a new text.
        """
        found = b"" if self._skipping else self._join(b"")
        self._skipping, self._at_start = False, True
        return found

    def _join(self, piece: bytes) -> bytes:
        line = b"".join((*self._pending, piece))
        self._pending, self._size = [], 0
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(_BOM_BYTES)
        return line

    def _hold(self, piece: bytes) -> None:
        if self._skipping:
            return
        self._size += len(piece)
        if self._size > self._limit:
            self._pending, self._size, self._skipping = [], 0, True
            self.too_long += 1
        else:
            self._pending.append(piece)


def lines_of_text(text: str) -> Iterator[TextLine]:
    """Numbered lines of a text."""
    start, number = len(_BOM) if text.startswith(_BOM) else 0, 0
    while start < len(text):
        end = text.find("\n", start)
        number += 1
        yield TextLine(number, text[start : end if end >= 0 else None], end >= 0)
        start = end + 1 if end >= 0 else len(text)


def lines_of_file(path: str | os.PathLike[str]) -> Iterator[TextLine]:
    """Numbered lines of a text file, which may be gzip-compressed. Bytes that are not UTF-8 become lone surrogates."""
    name, number = os.fspath(path), 0
    splitter = LineSplitter(limit_bytes=LINE_BYTES, keep_blank=True)
    for index, chunk in enumerate(_read_chunks(name, _open(name))):
        if not index and _is_binary(chunk[:_HEAD_BYTES]):
            raise WireError("a binary file, not JSON", file=name, line=1, hint="pass a JSON or JSONL file")
        for line in splitter.lines(chunk):
            number += 1
            yield TextLine(number, line.decode("utf-8", "surrogateescape"), True)
        if splitter.too_long:
            raise WireError(f"a line of more than {LINE_BYTES:,} bytes", file=name, line=number + 1)
    if rest := splitter.rest():
        yield TextLine(number + 1, rest.decode("utf-8", "surrogateescape"), False)


def _is_binary(head: bytes) -> bool:
    """Whether the start of a file has NUL bytes and no line that begins like a JSON object or list."""
    return b"\0" in head and not any(line.lstrip(_BLANK_BYTES)[:1] in (b"{", b"[") for line in head.split(b"\n"))


def raw_lines_of_stream(file: int, splitter: LineSplitter, tee: Tee | None = None) -> Iterator[bytes]:
    """Lines of an open stream (a file descriptor)."""
    return _split(_stream_chunks(file), splitter, tee)


def raw_lines_of_file(
    path: str, splitter: LineSplitter, *, follow: bool = False, idle_seconds: float = 0.0, tee: Tee | None = None
) -> Iterator[bytes]:
    """Lines of a file. With `follow`, reading goes on until the file has not grown for `idle_seconds`."""
    if follow:
        return _split(_follow_chunks(path, _open_growing(path), splitter, idle_seconds), splitter, tee)
    return _split(_read_chunks(path, _open(path)), splitter, tee)


def _split(chunks: Iterator[bytes], splitter: LineSplitter, tee: Tee | None) -> Iterator[bytes]:
    for chunk in chunks:
        if tee is not None:
            tee(chunk)
        yield from splitter.lines(chunk)
    if rest := splitter.rest():
        yield rest


def _stream_chunks(file: int) -> Iterator[bytes]:
    """Chunks of a blocking or non-blocking stream as they arrive."""
    while True:
        try:
            chunk = os.read(file, CHUNK_BYTES)
        except BlockingIOError:
            select.select([file], [], [])
            continue
        if not chunk:
            return
        yield chunk
        if len(chunk) == CHUNK_BYTES and not _has_more(file):
            yield b""


def _has_more(file: int) -> bool:
    try:
        return bool(select.select([file], [], [], 0)[0])
    except (OSError, ValueError):  # select does not support this kind of file
        return False


def _read_chunks(path: str, stream: BufferedReader) -> Iterator[bytes]:
    """Chunks of a file up to its end. A gzip-compressed file is decompressed."""
    with stream:
        try:
            read = stream.read1
            if stream.peek(len(_GZIP)).startswith(_GZIP):
                import gzip  # noqa: PLC0415  # rarely needed

                read = gzip.GzipFile(fileobj=stream, mode="rb").read
            while chunk := read(CHUNK_BYTES):
                yield chunk
                if len(chunk) == CHUNK_BYTES and not _has_more(stream.fileno()):
                    yield b""
        except (EOFError, OSError, zlib.error) as error:
            raise _unreadable(path, error) from None


def _follow_chunks(path: str, stream: BufferedReader, splitter: LineSplitter, idle_seconds: float) -> Iterator[bytes]:
    """Chunks of a file as it grows. A file that was truncated or replaced is read from its beginning."""
    last_growth, was_growing = time.monotonic(), False
    successor: BufferedReader | None = None
    try:
        while True:
            chunk = stream.read1(CHUNK_BYTES)
            if chunk or was_growing:
                last_growth = time.monotonic()
                was_growing = bool(chunk)
                yield chunk
            elif successor is not None:
                stream.close()
                stream, successor = successor, None
                splitter.rest()
            elif idle_seconds and time.monotonic() - last_growth > idle_seconds:
                return
            elif (successor := _open_successor(path, stream)) is None:
                if _is_truncated(stream):
                    stream.seek(0)
                    splitter.rest()
                time.sleep(POLL_SECONDS)
    finally:
        stream.close()


def _open_successor(path: str, stream: BufferedReader) -> BufferedReader | None:
    """Open the file that now has this path.

    Returns None if that file is already being read, or if it cannot be opened.
    """
    try:
        same = os.path.samestat(os.stat(path), os.fstat(stream.fileno()))
        return None if same else _open_growing(path)
    except (OSError, WireError):
        return None


def _is_truncated(stream: BufferedReader) -> bool:
    found = os.fstat(stream.fileno())
    return stat.S_ISREG(found.st_mode) and stream.tell() > found.st_size


def _open(path: str) -> BufferedReader:
    try:
        return open(path, "rb")
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None


def _open_growing(path: str) -> BufferedReader:
    """Open a file that is to be followed. Raises `WireError` if the file is compressed."""
    stream = _open(path)
    if stat.S_ISREG(os.fstat(stream.fileno()).st_mode) and stream.peek(len(_GZIP)).startswith(_GZIP):
        stream.close()
        raise WireError("the file is compressed, so it cannot grow", file=path, hint="leave out --follow")
    return stream


def no_such_file(path: str) -> WireError:
    """The error for a path at which there is no file."""
    return WireError("there is no such file", file=path, hint="check the path")


def _unreadable(path: str, error: Exception) -> WireError:
    if isinstance(error, FileNotFoundError):
        return no_such_file(path)
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error) or type(error).__name__
    return WireError(f"cannot be read ({reason})", file=path)
