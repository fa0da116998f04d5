"""The command as a user runs it: the real entry point in a process of its own, with no configuration but the given."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLE = ROOT / "examples" / "broken-session.json"
ENTRY = [sys.executable, "-m", "foldline.cli"]


def clean(**given: str) -> dict[str, str]:
    """An environment without settings of whoever runs the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FOLDLINE_", "XDG_", "COVERAGE"))}
    return {**kept, "COLUMNS": "100", "NO_COLOR": "1", "XDG_CONFIG_HOME": "/dev/null/nowhere", **given}


def foldline(
    *arguments: str, cwd: Path | None = None, stdin: str = "", **given: str
) -> subprocess.CompletedProcess[str]:
    """Run a command; `given` are environment variables."""
    return subprocess.run(
        [*ENTRY, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        env=clean(**given),
        cwd=cwd,
        timeout=120,
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
