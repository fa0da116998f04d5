"""The code blocks of README and docs as programs, and the folder in which a reader would run them."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

from support.command import ROOT, clean

PAGES = [
    ROOT / "README.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if not page.name.startswith("integrations")),
]
"""All pages but those about frameworks, which the suite does not install."""

GIVEN = {
    "client": "from anthropic import Anthropic\nclient = Anthropic()",
    "TOOLS": "from typing import Any\nTOOLS: list[dict[str, Any]] = []",
    "messages": "from foldline import Message, Text\nmessages = [Message(role='user', parts=(Text(text='Why?'),))]",
    "stream": "from typing import Any\nstream: list[dict[str, Any]] = []",
    "send": "def send(text: str) -> None: ...",
    "fold": "from foldline.fold import Fold\nfold = Fold(cut=0)",
}
"""Names that a reader of a page has already, and the code that makes them."""

STANDS_FOR = {
    "claude": f'cat "{ROOT}/examples/agent-stream.jsonl"',
    "codex": "true",
    "pip": "true",
    "docker": "true",
    "foldline": f'exec "{sys.executable}" -m foldline.cli "$@"',
    "python": f'exec "{sys.executable}" "$@"',
}
"""Programs that the pages start, and what stands for them here."""


def blocks(page: Path, kind: str) -> list[str]:
    """The code blocks of one kind, except outputs."""
    text = re.sub(r"<!-- output of: .+? -->\n```\w*\n.*?```\n", "", page.read_text(), flags=re.DOTALL)
    text = re.sub(r"<!-- made of: api -->\n.*?<!-- end -->\n", "", text, flags=re.DOTALL)
    return re.findall(rf"^```{kind}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def program(page: Path) -> str:
    """The Python blocks of a page as one program, after the names that the reader has; "" without a block."""
    code = "\n".join(blocks(page, "python"))
    given = [made for name, made in GIVEN.items() if _is_used(name, code)]
    return "\n".join([*given, code]) if code else ""


def _is_used(name: str, code: str) -> bool:
    """Whether code uses a name that it does not define."""
    is_defined = re.search(rf"^ *(?:{name}\b.* = |.* as {name}\b)", code, re.MULTILINE)
    return not is_defined and re.search(rf"(?<!\.)\b{name}\b", code) is not None


def shell_lines(page: Path) -> list[str]:
    """Every command in the shell blocks of a page; comments are left out."""
    joined = [block.replace("\\\n", " ") for block in blocks(page, "sh")]
    lines = [line.partition(" #")[0].strip() for block in joined for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def reader_folder(folder: Path) -> dict[str, str]:
    """Make a home and a working folder with the files that the pages name; returns the environment."""
    projects = folder / ".claude" / "projects" / "app"
    projects.mkdir(parents=True)
    (folder / ".config" / "fish" / "completions").mkdir(parents=True)
    shutil.copy(ROOT / "examples" / "agent-stream.jsonl", projects / "3f0c.jsonl")
    shutil.copy(projects / "3f0c.jsonl", folder / "session.jsonl")
    (folder / "agent.py").write_text("print('done')\n")
    for name in ("examples", "scripts", "src", "docs", "tests", "demo", "test"):
        (folder / name).symlink_to(ROOT / name)
    programs = folder / "programs"
    programs.mkdir()
    for name, line in STANDS_FOR.items():
        (programs / name).write_text(f"#!/bin/sh\n{line}\n")
        (programs / name).chmod(0o755)
    home = {"HOME": str(folder), "XDG_DATA_HOME": f"{folder}/.local/share", "XDG_CONFIG_HOME": f"{folder}/.config"}
    return clean(**home, PATH=f"{programs}:{os.environ['PATH']}", PYTHONPATH=str(ROOT / "src"))
