"""What a person sees on a terminal: wrapped lines, and warnings of the library as one sentence."""

from __future__ import annotations

import io
import json
import time
from contextlib import redirect_stderr
from pathlib import Path

import pytest
from rich.console import Console

from foldline.cli.shared import output
from foldline.cli.shared.output import line_printer, progress
from support.command import foldline, spawned


def printed(line: str, *, is_terminal: bool = True) -> list[str]:
    file = io.StringIO()
    line_printer(out=Console(file=file, width=30, force_terminal=is_terminal, markup=False))(line)
    return file.getvalue().splitlines()


def test_a_long_line_is_indented_as_it_begins() -> None:
    assert printed("    one two three four five six seven") == ["    one two three four five", "    six seven"]
    assert printed("    short") == ["    short"]
    assert len(printed("    one two three four five six seven", is_terminal=False)) == 1


def test_an_unknown_window_is_reported_in_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "session.json"
    file.write_text(json.dumps([{"role": "user", "content": "Hello"}]))
    done = spawned("inspect", str(file))
    assert done.stderr == "foldline: no model was named; use --model, or --window if its window is not 200,000 tokens\n"


def test_a_search_without_a_result_names_the_wider_search(tmp_path: Path) -> None:
    file, ledger = tmp_path / "session.json", str(tmp_path / "ledger.db")
    file.write_text(json.dumps([{"role": "user", "content": "Hello"}]))
    assert foldline("import", str(file), "--ledger", ledger).returncode == 0
    assert "Search all sessions with --everywhere." in foldline("recall", "xyzzy", "--ledger", ledger).stdout
    assert "--everywhere" not in foldline("recall", "--everywhere", "xyzzy", "--ledger", ledger).stdout


def test_a_progress_bar_appears_while_the_first_item_is_worked_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "PROGRESS_AFTER_SECONDS", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    end, shown = time.monotonic() + 30, io.StringIO()
    with redirect_stderr(shown), progress(1, "sessions"):
        while "sessions" not in shown.getvalue() and time.monotonic() < end:
            time.sleep(0.01)
    assert "sessions" in shown.getvalue()
