"""Claude Code with everything that foldline adds to it, where it is installed: FOLDLINE_CLAUDE names its command."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import foldline
from foldline.testing import SimulatedProvider
from foldline.testing.provider import ScriptedReply, call
from support.command import ENTRY, clean

CLAUDE = shutil.which(os.environ.get("FOLDLINE_CLAUDE", "no agent"))


@pytest.mark.skipif(CLAUDE is None, reason="FOLDLINE_CLAUDE names no agent")
def test_proxy_hooks_and_mcp_server_work_together(tmp_path: Path) -> None:
    assert CLAUDE is not None
    agent, folder = os.path.abspath(CLAUDE), tmp_path / "project"
    folder.mkdir()
    settings = {"HOME": str(tmp_path), "XDG_DATA_HOME": "", "ANTHROPIC_API_KEY": "x", "DISABLE_AUTOUPDATER": "1"}

    def run(*command: str, **environment: str) -> str:
        done = subprocess.run(
            command,
            cwd=folder,
            env=clean(**settings, **environment, CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1"),
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run(*ENTRY, "install", "claude-code", "--yes")
    run(agent, "mcp", "add", "foldline", "--", *ENTRY, "mcp")
    waits = [ScriptedReply(calls=(("WaitForMcpServers", {}),), seconds=3)] * 7  # a busy machine starts it slowly
    options = ("--allowedTools", "Bash", "mcp__foldline__recall")
    with SimulatedProvider() as provider:
        provider.script(call("Bash", command="echo the port is 7091"), "The port is 7091.")
        answer = run(*ENTRY, "run", agent, "-p", "Which port?", *options, ANTHROPIC_BASE_URL=provider.url)
        assert answer == "The port is 7091.\n"
        provider.script(*waits, call("mcp__foldline__recall", query="port"), "It was 7091.")
        answer = run(*ENTRY, "run", agent, "-c", "-p", "Which one was it?", *options, ANTHROPIC_BASE_URL=provider.url)
        assert answer == "It was 7091.\n"
        assert provider.refused == []
        last = json.dumps(provider.requests[-1].body["messages"])
    assert "working notes were kept" in last, "the hook of foldline has spoken"
    assert "tool_use_error" not in last.rpartition("mcp__foldline__recall")[2]
    assert "7091" in last.rpartition("mcp__foldline__recall")[2], "recall has found it"
    with foldline.open(tmp_path / ".local" / "share" / "foldline" / "ledger.db") as ledger:
        assert len(ledger.sessions()) == 1, "the proxy has recorded both runs in one session"
