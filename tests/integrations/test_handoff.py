"""A session handed over to another agent."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import foldline
from foldline.testing import SimulatedProvider
from support.command import foldline as command
from support.shapes import documented, wrong

CLAUDE = shutil.which(os.environ.get("FOLDLINE_CLAUDE", "no agent"))
CODEX = shutil.which(os.environ.get("FOLDLINE_CODEX", "no agent"))
PI = shutil.which(os.environ.get("FOLDLINE_PI", "no agent"))
SECRET = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    file = tmp_path / "ledger.db"
    with foldline.open(file) as opened:
        session = opened.session("work", model="claude-sonnet-5")
        for part in range(5):
            call = {"type": "tool_use", "id": f"toolu_{part}", "name": "Bash", "input": {"command": f"make {part}"}}
            result = {"type": "tool_result", "tool_use_id": f"toolu_{part}", "content": f"built part {part}"}
            session.add(
                {"role": "user", "content": f"Please build part {part} of the parser."},
                {"role": "assistant", "content": [{"type": "text", "text": "I build it."}, call]},
                {"role": "user", "content": [result]},
                {"role": "assistant", "content": f"Part {part} is done."},
                format="anthropic",
            )
        session.add({"role": "user", "content": f"Now write src/lexer.py with the token {SECRET}."}, format="anthropic")
    return file


def handoff(ledger: Path, *arguments: str, **environment: str) -> Any:
    done = command("handoff", "work", "--ledger", str(ledger), *arguments, cwd=ledger.parent, **environment)
    assert done.returncode == 0, done.stderr
    return done


def test_a_hand_over_has_the_digest_and_the_last_turn(ledger: Path) -> None:
    text = handoff(ledger).stdout
    assert text.startswith("# Hand-over\n")
    assert "Please build part 0 of the parser." in text
    assert "Part 4 is done." in text
    assert text.index("## Earlier conversation") < text.index("## Last turn") < text.index("Now write src/lexer.py")


def test_a_digest_has_all_turns_and_handles(ledger: Path) -> None:
    text = handoff(ledger, "--to", "digest").stdout
    assert "Hand-over" not in text
    assert "Last turn" not in text
    assert "Now write src/lexer.py" in text
    assert "[#" in text


def test_json_on_standard_output_contains_the_hand_over(ledger: Path) -> None:
    for target in ("markdown", "digest"):
        done = handoff(ledger, "--to", target, "--json")
        found = json.loads(done.stdout)
        assert not wrong(found, documented("handoff"))
        assert "Now write src/lexer.py" in found["text"]
        assert done.stderr == ""


def test_a_hand_over_has_no_secrets(ledger: Path) -> None:
    for target in ("markdown", "digest", "claude-code", "codex", "pi"):
        assert SECRET not in handoff(ledger, "--to", target, "-o", "-").stdout


def test_the_session_is_not_changed(ledger: Path) -> None:
    handoff(ledger)
    with foldline.open(ledger) as opened:
        session = opened.session("work")
        assert session.folds == 0
        assert len(session) == 21


@pytest.mark.parametrize(
    ("target", "start", "resume"),
    [
        ("claude-code", ".claude/projects/", "claude --resume "),
        ("codex", ".codex/sessions/20", "codex resume "),
        ("pi", ".pi/agent/sessions/--", "pi --session "),
    ],
)
def test_a_session_file_is_where_the_agent_finds_it_and_can_be_read(
    ledger: Path, tmp_path: Path, target: str, start: str, resume: str
) -> None:
    report = json.loads(handoff(ledger, "--to", target, "--json", HOME=str(tmp_path)).stdout)
    file = Path(report["out"])
    assert str(file.relative_to(tmp_path)).startswith(start)
    assert report["resume"].startswith(resume)
    transcript = foldline.read(file)
    assert transcript.format == target
    assert [message.role for message in transcript.messages] == ["user"]
    assert "Now write src/lexer.py" in transcript.messages[0].text


def test_a_session_file_of_an_agent_can_be_handed_over(ledger: Path, tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    handoff(ledger, "--to", "codex", "-o", str(file))
    done = command("handoff", str(file), "--to", "markdown", cwd=tmp_path)
    assert "Now write src/lexer.py" in done.stdout


def test_an_unknown_session_is_named(ledger: Path) -> None:
    done = command("handoff", "wrong", "--ledger", str(ledger))
    assert done.returncode == 2
    assert "unknown session 'wrong'" in done.stderr


def run_agent(agent: str, arguments: list[str], home: Path, **environment: str) -> str:
    done = subprocess.run(
        [os.path.abspath(agent), *arguments],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "HOME": str(home), **environment},
        cwd=home,
        timeout=180,
        stdin=subprocess.DEVNULL,
    )
    return done.stdout


@pytest.mark.skipif(CLAUDE is None, reason="FOLDLINE_CLAUDE names no agent")
def test_claude_code_goes_on_from_a_hand_over(ledger: Path, tmp_path: Path) -> None:
    assert CLAUDE is not None
    report = json.loads(handoff(ledger, "--to", "claude-code", "--json", HOME=str(tmp_path)).stdout)
    with SimulatedProvider() as provider:
        provider.script(*["Going on."] * 5)
        settings = {"ANTHROPIC_BASE_URL": provider.url, "ANTHROPIC_API_KEY": "x"}
        resume = ["-p", "--resume", report["resume"].split()[-1], "Go on."]
        assert "Going on." in run_agent(CLAUDE, resume, tmp_path, **settings)
        assert any("src/lexer.py" in json.dumps(request.body) for request in provider.requests)
        assert provider.refused == []


@pytest.mark.skipif(CODEX is None, reason="FOLDLINE_CODEX names no agent")
def test_codex_goes_on_from_a_hand_over(ledger: Path, tmp_path: Path) -> None:
    assert CODEX is not None
    report = json.loads(handoff(ledger, "--to", "codex", "--json", HOME=str(tmp_path)).stdout)
    with SimulatedProvider() as provider:
        provider.script(*["Going on."] * 5)
        lines = ['model_provider = "x"', 'model = "gpt-5.1"', "[model_providers.x]", 'name = "x"', 'env_key = "XKEY"']
        lines += [f'base_url = "{provider.openai_url}"', 'wire_api = "responses"']
        (tmp_path / ".codex" / "config.toml").write_text("\n".join(lines))
        resume = ["exec", "--skip-git-repo-check", "resume", report["resume"].split()[-1], "Go on."]
        assert "Going on." in run_agent(CODEX, resume, tmp_path, XKEY="x")
        assert any("src/lexer.py" in json.dumps(request.body) for request in provider.requests)
        assert provider.refused == []


@pytest.mark.skipif(PI is None, reason="FOLDLINE_PI names no agent")
def test_pi_goes_on_from_a_hand_over(ledger: Path, tmp_path: Path) -> None:
    assert PI is not None
    report = json.loads(handoff(ledger, "--to", "pi", "--json", HOME=str(tmp_path)).stdout)
    with SimulatedProvider() as provider:
        provider.script(*["Going on."] * 5)
        models = [{"id": "claude-sonnet-5", "reasoning": False}]
        found = {"baseUrl": provider.url, "api": "anthropic-messages", "apiKey": "x", "models": models}
        (tmp_path / ".pi" / "agent" / "models.json").write_text(json.dumps({"providers": {"simulated": found}}))
        choice = ["--provider", "simulated", "--model", "claude-sonnet-5"]
        resume = ["-p", "--session", report["resume"].split()[-1], *choice, "Go on."]
        assert "Going on." in run_agent(PI, resume, tmp_path, PI_OFFLINE="1")
        assert any("src/lexer.py" in json.dumps(request.body) for request in provider.requests)
        assert provider.refused == []
