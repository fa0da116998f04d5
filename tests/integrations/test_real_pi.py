"""pi with foldline's extension, where it is installed: FOLDLINE_PI names its command.

pi is a program, not a Python framework, so it cannot take part in the contract of `test_adapters.py`: it has no session
object, it has no async API, it counts its requests itself, and the extension sees the messages only at a compaction.
The cases that apply are here, in `test_examples.py` (folds, recall, tool pairs) and in `test_handoff.py` (restart).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import foldline
from foldline.testing import SimulatedProvider
from foldline.testing.provider import ScriptedReply

PI = shutil.which(os.environ.get("FOLDLINE_PI", "no agent"))
EXTENSION = Path(__file__).resolve().parents[2] / "plugins" / "pi" / "foldline.ts"
COMMAND = str(Path(sys.executable).with_name("foldline"))
TEXT = " ".join(f"This is sentence {number} of the answer." for number in range(8))
MODEL = "claude-sonnet-4-5"

pytestmark = pytest.mark.skipif(PI is None, reason="FOLDLINE_PI names no agent")


def work(home: Path, provider: SimulatedProvider, *options: str, command: str = COMMAND) -> tuple[list[str], bool]:
    """Let pi read a file, think, answer and compact. Returns the pieces of the answers, and whether it compacted."""
    assert PI is not None
    home.mkdir()
    models = [{"id": MODEL, "contextWindow": 64_000, "maxTokens": 8_000, "reasoning": True}]
    simulated = {"baseUrl": provider.url, "api": "anthropic-messages", "apiKey": "x", "models": models}
    (home / "models.json").write_text(json.dumps({"providers": {"simulated": simulated}}))
    compaction = {"enabled": False, "reserveTokens": 16_000, "keepRecentTokens": 1_000}
    (home / "settings.json").write_text(json.dumps({"compaction": compaction}))
    (home / "a.txt").write_text("The port is 7091. " * 300)
    own = {"PI_CODING_AGENT_DIR": str(home), "PI_OFFLINE": "1", "XDG_DATA_HOME": str(home), "FOLDLINE_COMMAND": command}
    start = [os.path.abspath(PI), "--mode", "rpc", "--provider", "simulated", "--model", MODEL, "--no-extensions"]
    pieces: list[str] = []
    with subprocess.Popen(
        [*start, "--system-prompt", "You read files.", *options],
        cwd=home,
        env={**os.environ, **own},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as pi:
        assert pi.stdin is not None
        assert pi.stdout is not None

        def send(kind: str, end: str, **fields: Any) -> Any:
            print(json.dumps({"type": kind, **fields}), file=pi.stdin, flush=True)
            for line in pi.stdout or ():
                event = json.loads(line)
                if event["type"] == "message_update" and event["assistantMessageEvent"]["type"] == "text_delta":
                    pieces.append(event["assistantMessageEvent"]["delta"])
                if event["type"] == end and event.get("command", kind) == kind:
                    return event
            return {}

        for turn in range(2):
            calls = (("read", {"path": "a.txt"}),) * (turn + 1)  # parallel calls in the second turn
            thought = ScriptedReply(calls=calls, thinking=f"I think {turn}.")
            provider.script(thought, f"{turn}: {TEXT}")
            send("prompt", "agent_end", message=f"Which port? {turn}")
        is_compacted = bool(send("compact", "response").get("success"))
        pi.stdin.close()
    return pieces, is_compacted


def test_pi_sends_and_streams_the_same_with_the_extension(tmp_path: Path) -> None:
    found = []
    for name, options in (("alone", ()), ("folded", ("--extension", str(EXTENSION)))):
        with SimulatedProvider() as provider:
            pieces, is_compacted = work(tmp_path / name, provider, *options)
            assert is_compacted
            assert provider.refused == []
            assert "".join(pieces) == f"0: {TEXT}1: {TEXT}"
            assert len(pieces) > 10
            signed = provider.requests[0].reply.body["content"][0].get("signature")
            assert signed in json.dumps(provider.requests[1].body)
            sent = json.dumps([request.body["messages"] for request in provider.requests[:4]])
            found.append((pieces, re.sub(r'"signature": "[^"]*"', "", sent)))
            summaries = ["tools" not in request.body for request in provider.requests]
            assert any(summaries) == (name == "alone")
    assert found[0] == found[1]
    with foldline.open(tmp_path / "folded" / "foldline" / "ledger.db") as ledger:
        (info,) = ledger.sessions()
        replies = [each for each in ledger.session(info.name).messages if each.role == "assistant"]
    assert [reply.text for reply in replies if reply.text] == [f"0: {TEXT}", f"1: {TEXT}"]
    assert all(reply.meta.usage for reply in replies)


def test_pi_compacts_itself_if_foldline_fails(tmp_path: Path) -> None:
    with SimulatedProvider() as provider:
        _, is_compacted = work(tmp_path / "pi", provider, "--extension", str(EXTENSION), command="no-such-command")
        assert is_compacted
        assert any("tools" not in request.body for request in provider.requests)
        assert provider.refused == []
