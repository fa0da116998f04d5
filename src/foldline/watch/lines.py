"""The lines of a stream or of a file that is still being written, in bounded memory, as they come.

Nothing waits for more than one line, and no line is held that is longer than any event: the rest of it is skipped and
counted. A file may grow, be cut off or give way to another of its name while it is followed; half a line at its end
waits for its other half.
"""

from __future__ import annotations

import os
import select
import stat
import time
import zlib
from collections.abc import Callable, Iterator
from typing import IO, TypeAlias, cast

from foldline.errors import WireError

CHUNK_BYTES = 1 << 16
LINE_BYTES = 32 << 20
"""No event is longer: a request body cannot be either."""
POLL_SECONDS = 0.2
_BOM = b"\xef\xbb\xbf"
"""What some programs put in front of a text to say that it is UTF-8."""
_GZIP = b"\x1f\x8b"

Tee: TypeAlias = Callable[[bytes], None]
"""Hears of every chunk before anything is made of it. One of full size has more behind it, or an empty one after it.

An empty one says that nothing more is there, for a followed file whenever it comes to rest."""


class Cutter:
    """Cuts chunks of bytes into lines."""

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._size = 0
        self.too_long = 0
        """Lines that were skipped because of their length."""
        self._skipping = False
        self._at_start = True

    def lines(self, chunk: bytes) -> Iterator[bytes]:
        """The lines that a chunk completes."""
        pieces = chunk.split(b"\n")
        last = pieces.pop()
        if pieces and (self._held or self._at_start):
            pieces[0] = self._joined(pieces[0])
        for piece in pieces:
            if self._skipping:
                self._skipping = False
            elif len(piece) > LINE_BYTES:
                self.too_long += 1
            elif piece:
                yield piece
        if last:
            self._hold(last)

    def rest(self) -> bytes:
        """A last line without an end; whatever comes next begins anew."""
        found = b"" if self._skipping else self._joined(b"")
        self._skipping, self._at_start = False, True
        return found

    def _joined(self, piece: bytes) -> bytes:
        """The line that ends with this piece."""
        whole = b"".join((*self._held, piece))
        self._held, self._size = [], 0
        if self._at_start:
            self._at_start = False
            whole = whole.removeprefix(_BOM)
        return whole

    def _hold(self, piece: bytes) -> None:
        if self._skipping:
            return
        self._size += len(piece)
        if self._size > LINE_BYTES:
            self._held, self._size, self._skipping = [], 0, True
            self.too_long += 1
        else:
            self._held.append(piece)


def of_stream(file: int, cutter: Cutter, tee: Tee | None = None) -> Iterator[bytes]:
    """The lines of an open stream; each chunk goes on unchanged, before anything is made of it."""
    return _cut(_arriving(file), cutter, tee)


def of_file(
    path: str, cutter: Cutter, *, follow: bool, idle_seconds: float = 0.0, tee: Tee | None = None
) -> Iterator[bytes]:
    """The lines of a session file; when it is followed, also those still to come, until it was idle for so long."""
    stream = _opened(path, follow=follow)
    chunks = _followed(path, stream, cutter, idle_seconds) if follow else _whole(path, stream)
    return _cut(chunks, cutter, tee)


def _cut(chunks: Iterator[bytes], cutter: Cutter, tee: Tee | None) -> Iterator[bytes]:
    for chunk in chunks:
        if tee is not None:
            tee(chunk)
        yield from cutter.lines(chunk)
    rest = cutter.rest()
    if rest:
        yield rest


def _arriving(file: int) -> Iterator[bytes]:
    """What comes through a pipe, also through one that its owner set not to wait."""
    while True:
        try:
            chunk = os.read(file, CHUNK_BYTES)
        except BlockingIOError:
            select.select([file], [], [])
            continue
        if not chunk:
            return
        yield chunk
        if len(chunk) == CHUNK_BYTES and not _waits(file):
            yield b""


def _waits(file: int) -> bool:
    """Whether more can be read at once."""
    try:
        return bool(select.select([file], [], [], 0)[0])
    except (OSError, ValueError):  # a system or a file that cannot tell
        return False


def _whole(path: str, stream: IO[bytes]) -> Iterator[bytes]:
    with stream:
        try:
            while chunk := stream.read(CHUNK_BYTES):
                yield chunk
                if len(chunk) == CHUNK_BYTES and not _waits(stream.fileno()):
                    yield b""
        except (EOFError, OSError, zlib.error) as error:
            raise WireError(f"cannot be read to its end ({error})", file=path) from None


def _followed(path: str, stream: IO[bytes], cutter: Cutter, idle_seconds: float) -> Iterator[bytes]:
    """A file's bytes as they are written. One that is cut off, or replaced by another, is read from its beginning."""
    quiet_since, came = time.monotonic(), False
    other: IO[bytes] | None = None
    try:
        while True:
            chunk = stream.read(CHUNK_BYTES)
            if chunk or came:
                quiet_since = time.monotonic()
                came = bool(chunk)
                yield chunk
            elif other is not None:
                stream.close()
                stream, other = other, None
                cutter.rest()
            elif idle_seconds and time.monotonic() - quiet_since > idle_seconds:
                return
            elif (other := _replacing(path, stream)) is None:
                if _is_cut_off(stream):
                    stream.seek(0)
                    cutter.rest()
                time.sleep(POLL_SECONDS)
    finally:
        stream.close()


def _replacing(path: str, stream: IO[bytes]) -> IO[bytes] | None:
    """The file that has taken the name of the one that is read, if one has."""
    try:
        if os.path.samestat(os.stat(path), os.fstat(stream.fileno())):
            return None
        return _opened(path, follow=True)
    except (OSError, WireError):
        return None


def _is_cut_off(stream: IO[bytes]) -> bool:
    found = os.fstat(stream.fileno())
    return stat.S_ISREG(found.st_mode) and stream.tell() > found.st_size


def _opened(path: str, *, follow: bool) -> IO[bytes]:
    """A file to read, also a compressed one or a pipe."""
    try:
        stream = open(path, "rb", buffering=0)  # noqa: SIM115  # whoever reads it closes it
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            return stream
        zipped = stream.read(len(_GZIP)) == _GZIP
        stream.seek(0)
    except OSError as error:
        raise WireError(f"cannot be read ({error.strerror})", file=path) from None
    if not zipped:
        return stream
    stream.close()
    if follow:
        raise WireError("is compressed, so nothing is written to it any more", file=path, hint="leave out --follow")
    import gzip  # noqa: PLC0415

    return cast("IO[bytes]", gzip.open(path, "rb"))
