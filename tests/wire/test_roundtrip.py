"""The round-trip bench, on a small folder always and on real sessions where there are some (`FOLDLINE_DATA`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def bench(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", "roundtrip", "--data", str(folder), *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_folder_is_reported_file_by_file(tmp_path: Path) -> None:
    thought = {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": "s"}]}
    body = {"system": "s", "messages": [{"role": "user", "content": "hi"}, thought], "max_tokens": 1}
    (tmp_path / "requests").mkdir()
    (tmp_path / "requests" / "a.json").write_text(json.dumps(body, indent=2))
    (tmp_path / "requests" / "b.json").write_text("{}")
    (tmp_path / "requests" / "c.json").write_text("{")
    (tmp_path / "requests" / "LICENSE").write_text("not data")
    done = bench(tmp_path)
    assert done.returncode == 0, done.stderr
    assert "requests: 3 files, 1 parsed, 1 conversations (1 anthropic)" in done.stdout
    assert "3 messages, 2 texts and 1 bodies compared, 0 differences" in done.stdout
    assert "skipped 1: shows no sign of a known format" in done.stdout
    assert "to gemini: 1 messages with something lost (1 thinking)" in done.stdout
    figures = json.loads(bench(tmp_path, "--json").stdout)
    assert figures["requests"]["differences"] == []
    assert figures["requests"]["touched"] == {"anthropic": 0, "openai": 1, "openai-responses": 1, "gemini": 1}


def test_an_unknown_bench_names_the_known_ones() -> None:
    done = subprocess.run([sys.executable, "-m", "bench"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "roundtrip" in done.stdout


@pytest.mark.skipif("FOLDLINE_DATA" not in os.environ, reason="FOLDLINE_DATA names no folder")
def test_real_files_come_back_as_they_were() -> None:
    done = bench(Path(os.environ["FOLDLINE_DATA"]))
    assert done.returncode == 0, done.stdout
    assert "0 differences" in done.stdout.splitlines()[-1]
