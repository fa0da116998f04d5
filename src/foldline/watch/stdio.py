"""Standard input and output of the commands that an agent runs at every turn (`hook`, `statusline`).

If a stream is closed or full, the commands print one line on standard error, and no traceback, and return an exit
status. Output is written without Python's buffer, because a failed flush would be reported again at exit. This module
imports almost nothing, so that the commands start fast.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

FAILED = 1
"""Exit status of a failure. Agents treat 2 as a veto of the action, and 1 as a warning."""


def read_stdin() -> bytes:
    """All of standard input; empty when it is closed."""
    return b"" if sys.stdin is None else sys.stdin.buffer.read()


def print_answer(command: str, text: str) -> int:
    """Print the answer of a command; returns the exit status."""
    try:
        _print(sys.stdout, text)
    except BrokenPipeError:
        return 0
    except OSError as error:
        return print_failure(command, f"cannot write the answer to standard output ({error.strerror})")
    return 0


def print_failure(command: str, reason: str) -> int:
    """Print one line that says why a command gives no answer; returns the exit status."""
    with suppress(OSError):
        _print(sys.stderr, f"foldline {command}: " + "".join(char if char.isprintable() else "�" for char in reason))
    return FAILED


def write_unbuffered(file: Any, data: bytes) -> None:
    """Write all data to a text stream without its buffer. If a non-blocking stream is full, wait until it has room."""
    raw = getattr(file.buffer, "raw", file.buffer)
    while data:
        count = raw.write(data)
        if count is None:
            import select  # noqa: PLC0415  # rarely needed

            select.select([], [raw], [])
        else:
            data = data[count:]


def _print(file: Any, text: str) -> None:
    if file is not None:
        write_unbuffered(file, (text + "\n").encode("utf-8", "replace"))
