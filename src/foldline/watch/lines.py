"""The lines of a stream or of a file that is still being written, in bounded memory, as they come.

Nothing waits for more than one line, and no line is held that is longer than any event: the rest of it is skipped and
counted. A file may grow or be cut off while it is followed; half a line at its end waits for its other half.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import IO, cast

from foldline.errors import WireError

CHUNK_BYTES = 1 << 16
LINE_BYTES = 32 << 20
"""No event is longer: a request body cannot be either."""
POLL_SECONDS = 0.2


class Cutter:
    """Cuts chunks of bytes into lines."""

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._size = 0
        self.too_long = 0
        """Lines that were skipped because of their length."""
        self._skipping = False

    def lines(self, chunk: bytes) -> Iterator[bytes]:
        """The lines that a chunk completes."""
        pieces = chunk.split(b"\n")
        last = pieces.pop()
        for piece in pieces:
            if self._held:
                piece = b"".join((*self._held, piece))  # noqa: PLW2901
                self._held, self._size = [], 0
            if self._skipping:
                self._skipping = False
            elif len(piece) > LINE_BYTES:
                self.too_long += 1
            elif piece:
                yield piece
        if last:
            self._hold(last)

    def rest(self) -> bytes:
        """A last line without an end."""
        found = b"".join(self._held)
        self._held, self._size = [], 0
        return b"" if self._skipping else found

    def _hold(self, piece: bytes) -> None:
        if self._skipping:
            return
        self._size += len(piece)
        if self._size > LINE_BYTES:
            self._held, self._size, self._skipping = [], 0, True
            self.too_long += 1
        else:
            self._held.append(piece)


def of_stream(file: int, cutter: Cutter, tee: Callable[[bytes], None] | None = None) -> Iterator[bytes]:
    """The lines of an open stream; each chunk goes on unchanged, before anything is made of it."""
    while chunk := os.read(file, CHUNK_BYTES):
        if tee is not None:
            tee(chunk)
        yield from cutter.lines(chunk)
    rest = cutter.rest()
    if rest:
        yield rest


def of_file(
    path: str, cutter: Cutter, *, follow: bool, idle_seconds: float = 0.0, tee: Callable[[bytes], None] | None = None
) -> Iterator[bytes]:
    """The lines of a session file; when it is followed, also those still to come, until it was idle for so long."""
    quiet_since = time.monotonic()
    with _opened(path) as stream:
        while True:
            chunk = stream.read(CHUNK_BYTES)
            if chunk:
                quiet_since = time.monotonic()
                if tee is not None:
                    tee(chunk)
                yield from cutter.lines(chunk)
                continue
            if not follow or (idle_seconds and time.monotonic() - quiet_since > idle_seconds):
                break
            if stream.tell() > os.fstat(stream.fileno()).st_size:
                stream.seek(0)
                cutter.rest()
            time.sleep(POLL_SECONDS)
    rest = cutter.rest()
    if rest:
        yield rest


def _opened(path: str) -> IO[bytes]:
    """A file to read, also a compressed one."""
    try:
        with open(path, "rb") as file:
            zipped = file.read(2) == b"\x1f\x8b"
        if not zipped:
            return open(path, "rb", buffering=0)
        import gzip  # noqa: PLC0415

        return cast("IO[bytes]", gzip.open(path, "rb"))
    except OSError as error:
        raise WireError(f"cannot be read ({error.strerror})", file=path) from None
