"""Standard input and output of what an agent runs at every turn: closed or full, they cost a line and no traceback.

What is printed waits in no buffer, since Python would complain about it once more at its end. Imports next to nothing.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

FAILED = 1
"""A status that no agent takes for a veto."""


def read_stdin() -> bytes:
    """All of standard input; nothing where it is closed."""
    return b"" if sys.stdin is None else sys.stdin.buffer.read()


def print_answer(name: str, text: str) -> int:
    """Print a command's answer; the exit status."""
    try:
        _write(sys.stdout, text)
    except BrokenPipeError:
        return 0
    except OSError as error:
        return print_failure(name, f"the answer cannot be written ({error.strerror}); standard output must take it")
    return 0


def print_failure(name: str, why: str) -> int:
    """Say in one line why a command gives no answer; the exit status."""
    with suppress(OSError):
        _write(sys.stderr, f"foldline {name}: " + "".join(char if char.isprintable() else "�" for char in why))
    return FAILED


def _write(file: Any, text: str) -> None:
    """Write a line at once, past the buffer."""
    if file is None:
        return
    out, data = getattr(file.buffer, "raw", file.buffer), (text + "\n").encode("utf-8", "replace")
    while data:
        data = data[out.write(data) or 0 :]
