"""The commands read a log with a broken line without it, and say which line it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from foldline.cli.app import cli


def log(tmp_path: Path) -> Path:
    lines = []
    for number in range(6):
        role = "assistant" if number % 2 else "user"
        message = {"role": role, "content": f"words of message {number}"}
        parent = f"u{number - 1}" if number else None
        line = {"type": role, "uuid": f"u{number}", "parentUuid": parent, "sessionId": "s", "message": message}
        lines.append(json.dumps(line))
    lines.insert(3, lines[3][:25])
    file = tmp_path / "broken.jsonl"
    file.write_text("\n".join(lines) + "\n")
    return file


@pytest.mark.parametrize("command", ["import", "replay", "inspect"])
def test_a_command_reads_a_log_without_its_broken_line_and_names_the_line(tmp_path: Path, command: str) -> None:
    file = log(tmp_path)
    options = ["--ledger", str(tmp_path / "ledger.db")] if command == "import" else []
    result = CliRunner().invoke(cli, [command, str(file), *options])
    assert result.exit_code == 0, result.output
    words = " ".join(result.output.split())
    assert ":4: left out: not JSON" in words or "line 4" in words
