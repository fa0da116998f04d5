"""The command as a user runs it, with no configuration but the given.

`foldline` calls the real entry point in this process, as most tests only ask what is printed; `spawned` starts a
process of its own, for what only shows there.
"""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

from foldline.cli import main

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLE = ROOT / "examples" / "broken-session.json"
NO_DATA = str(Path(tempfile.gettempdir(), "foldline-tests", "nothing-is-here"))
ENTRY = [sys.executable, "-m", "foldline.cli"]


def clean(**given: str) -> dict[str, str]:
    """An environment without settings of whoever runs the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FOLDLINE_", "XDG_", "COVERAGE"))}
    home = {"HOME": NO_DATA, "XDG_CONFIG_HOME": "/dev/null/nowhere", "XDG_DATA_HOME": NO_DATA}
    return {**kept, "COLUMNS": "100", "NO_COLOR": "1", **home, **given}


def foldline(*arguments: str, cwd: Path | None = None, **given: str) -> subprocess.CompletedProcess[str]:
    """Run a command here; `given` are environment variables."""
    out, err = _Capture(), _Capture()
    with _as_if_started([*arguments], cwd, clean(**given)), redirect_stdout(out), redirect_stderr(err):
        try:
            main()
            code = 0
        except SystemExit as done:
            code = done.code if isinstance(done.code, int) else int(bool(done.code))
    return subprocess.CompletedProcess([*arguments], code, out.text, err.text)


class _Capture(io.TextIOWrapper):
    """Standard output that is kept."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", newline="", write_through=True)

    @property
    def text(self) -> str:
        self.flush()
        self.seek(0)
        return self.read()


@contextmanager
def _as_if_started(arguments: list[str], cwd: Path | None, environment: dict[str, str]) -> Iterator[None]:
    """What a new process would find, put back afterwards."""
    argv, before, here, on_interrupt = sys.argv, dict(os.environ), Path.cwd(), signal.getsignal(signal.SIGINT)
    try:
        sys.argv = ["foldline", *arguments]
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(cwd or here)
        yield
    finally:
        os.chdir(here)
        os.environ.clear()
        os.environ.update(before)
        sys.argv = argv
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, on_interrupt)


def spawned(*arguments: str, cwd: Path | None = None, **given: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own."""
    return subprocess.run(
        [*ENTRY, *arguments],
        capture_output=True,
        text=True,
        env=clean(**given),
        cwd=cwd,
        timeout=240,
        check=False,
    )


def one_sentence(done: subprocess.CompletedProcess[str], *, code: int = 2) -> str:
    """What an expected failure says: one line on standard error, no traceback, and the right exit code."""
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, lines
    return lines[0]


BAD = {
    "empty": b"",
    "blank": b"  \n\n",
    "binary": bytes(range(256)) * 40,
    "truncated": b'{"messages": [{"role": "user", "content": "hel',
    "no json": b"Dear foldline,\nplease fold this.\n",
    "number": b"5",
    "wrong types": b'{"model": 7, "messages": [{"role": "user", "content": 5}]}',
    "role is a list": b'[{"role": ["user"], "content": "x"}]',
    "nested": b"[" * 100_000 + b"]" * 100_000,
    "broken line": b'{"type":"user","message":{"role":"user","content":"a"}}\n{"type":\n{"type":"user"}\n',
    "unknown format": b'{"what": "is this"}',
}
"""Files that are no transcript, each in its own way."""
