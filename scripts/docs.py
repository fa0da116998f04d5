"""Every printed output in README and docs is generated: this writes it, a test checks that nothing is stale.

A block is marked by a comment in front of it, and the command's output replaces what is inside the fence:

    <!-- output of: foldline inspect examples/broken-session.json -->
    ```text
    ...
    ```
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_BLOCK = re.compile(r"(<!-- output of: (?P<command>.+?) -->\n```\w*\n)(?P<output>.*?)(```\n)", re.DOTALL)
_TIME = re.compile(r"\b\d+\.\d+ s\b")
"""How long a command took differs from run to run: the pages say so many seconds."""
_PLAIN = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "PYTHONHASHSEED": "0"}


def pages() -> list[Path]:
    """The pages a user reads."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def regenerate(text: str) -> str:
    """The page with every marked output as the command prints it now."""
    return _BLOCK.sub(lambda found: found[1] + _run(found["command"]) + found[4], text)


def _run(command: str) -> str:
    """What a command of this checkout prints, or its last lines (`| tail -9`); it is `foldline` or `python`."""
    command, _, lines = command.partition(" | tail -")
    name, *arguments = shlex.split(command)
    start = {"foldline": [sys.executable, "-m", "foldline.cli"], "python": [sys.executable]}[name]
    env = {**os.environ, **_PLAIN}
    done = subprocess.run([*start, *arguments], cwd=ROOT, env=env, capture_output=True, text=True, timeout=120)
    printed = _TIME.sub("1.0 s", done.stdout + done.stderr)
    return "".join(line.rstrip() + "\n" for line in printed.rstrip().splitlines()[-int(lines or 0) :])


if __name__ == "__main__":
    for page in pages():
        old = page.read_text()
        new = regenerate(old)
        if new != old:
            page.write_text(new)
            print(f"updated {page.relative_to(ROOT)}")
