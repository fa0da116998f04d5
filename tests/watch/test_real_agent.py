"""A real agent with everything attached, where one is installed: FOLDLINE_CLAUDE names its command."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from bench.agent import findings, run

CLAUDE = shutil.which(os.environ.get("FOLDLINE_CLAUDE", "no agent"))


@pytest.mark.skipif(CLAUDE is None, reason="FOLDLINE_CLAUDE names no agent")
@pytest.mark.promise("S1.13", "F12")
def test_a_real_agent_is_watched_and_its_notes_survive_a_compaction(tmp_path: Path) -> None:
    assert CLAUDE is not None
    notices, server, meter = run(os.path.abspath(CLAUDE), tmp_path)
    found = findings(notices, server, tmp_path / "project")
    assert [name for name, was_seen in found.items() if not was_seen] == []
    assert "compacted (manual)" in meter
