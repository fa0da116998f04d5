"""The plugin for Claude Code and the entry for the MCP registry agree with the package."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from foldline import __version__
from foldline.watch.agent_hooks import EVENTS
from foldline.watch.installer import TIMEOUT_SECONDS

ROOT = Path(__file__).resolve().parent.parent.parent
PLUGIN = ROOT / "plugins" / "claude-code"
CLAUDE = shutil.which(os.environ.get("FOLDLINE_CLAUDE", "no agent"))


def value(path: Path) -> Any:
    return json.loads(path.read_text())


def test_the_plugin_has_the_hooks_that_are_installed() -> None:
    hook = {"type": "command", "command": "foldline hook", "timeout": TIMEOUT_SECONDS}
    assert value(PLUGIN / "hooks" / "hooks.json") == {"hooks": {event: [{"hooks": [hook]}] for event in EVENTS}}


def test_plugin_and_registry_have_the_version_of_the_package() -> None:
    server = value(ROOT / "server.json")
    assert value(PLUGIN / ".claude-plugin" / "plugin.json")["version"] == __version__
    assert value(ROOT / "plugins" / "pi" / "package.json")["version"] == __version__
    assert server["version"] == server["packages"][0]["version"] == __version__
    assert f"mcp-name: {server['name']}" in (ROOT / "README.md").read_text()


def test_the_marketplace_names_the_plugin() -> None:
    entry = value(ROOT / ".claude-plugin" / "marketplace.json")["plugins"][0]
    assert (ROOT / entry["source"]).resolve() == PLUGIN
    assert entry["name"] == value(PLUGIN / ".claude-plugin" / "plugin.json")["name"]


@pytest.mark.skipif(CLAUDE is None, reason="FOLDLINE_CLAUDE names no agent")
@pytest.mark.parametrize("path", [PLUGIN, ROOT], ids=["plugin", "marketplace"])
def test_claude_code_accepts_the_files(path: Path, tmp_path: Path) -> None:
    assert CLAUDE is not None
    done = subprocess.run(
        [os.path.abspath(CLAUDE), "plugin", "validate", str(path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "HOME": str(tmp_path)},
    )
    assert "Validation passed" in done.stdout
