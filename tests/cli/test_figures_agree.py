"""The commands report the same size, window and fold for the same session file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import foldline as library
from foldline.page.request_rows import RequestWindow
from foldline.page.session_reader import SessionReader
from support.command import foldline
from support.compacted_session import claude_code_session
from support.sessions import SESSIONS

HIDDEN = 8_000
"""Tokens of the agent's system prompt and tools, which are in no file."""


def codex_rollout() -> str:
    """A rollout that names its window and reports the usage of each request."""
    lines: list[dict[str, Any]] = [{"type": "turn_context", "payload": {"model": "gpt-5.4"}}]
    for number in range(30):
        role, kind = ("assistant", "output_text") if number % 2 else ("user", "input_text")
        text = [{"type": kind, "text": f"message {number} " * 300}]
        lines.append({"type": "response_item", "payload": {"type": "message", "role": role, "content": text}})
        if role == "assistant":
            usage = {"input_tokens": HIDDEN + 900 * number, "output_tokens": 900}
            info = {
                "last_token_usage": usage,
                "total_token_usage": {**usage, "number": number},
                "model_context_window": 258_400,
            }
            lines.append({"type": "event_msg", "payload": {"type": "token_count", "info": info}})
    return "\n".join(map(json.dumps, lines))


def one_usage_figure() -> str:
    """A Claude Code session with one reply, whose request was much larger than the messages in the file."""
    usage = {"input_tokens": 18_000, "output_tokens": 50}
    call = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "/w/a.py"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "a line of code in a long file\n" * 280}
    reply = {"id": "msg_1", "model": "claude-sonnet-4-5", "content": [call], "usage": usage}
    contents: list[dict[str, Any]] = [{"content": "Fix the parser."}, reply, {"content": [result]}]
    lines = []
    for number, content in enumerate(contents):
        role = "assistant" if "usage" in content else "user"
        ids = {"uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number else None, "sessionId": "s"}
        lines.append({"type": role, **ids, "message": {"role": role, **content}})
    return "\n".join(map(json.dumps, lines))


FILES: dict[str, Callable[[], str]] = {
    "an agent that compacted": lambda: claude_code_session(old=40, new=9, words=40),
    "a codex rollout": codex_rollout,
    "a pi session": SESSIONS["pi"],
    "one usage figure": one_usage_figure,
}


def report(*arguments: str) -> Any:
    done = foldline(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_size_that_is_an_estimate_for_inspect_is_an_estimate_for_fold(tmp_path: Path) -> None:
    file, out = tmp_path / "session.jsonl", tmp_path / "out.jsonl"
    file.write_text(codex_rollout())
    seen = re.search(r"the model sees (\S+) tokens", foldline("inspect", str(file)).stdout)
    folded = foldline("fold", str(file), "-o", str(out), "-w", "30000").stdout
    assert seen is not None
    assert f" folded, {seen[1]} → ~" in folded
    assert f"30 messages, {seen[1]} of " in folded


@pytest.mark.parametrize("name", FILES)
def test_inspect_fold_show_and_replay_agree(name: str, tmp_path: Path) -> None:
    file, ledger = tmp_path / "session.jsonl", str(tmp_path / "a.db")
    file.write_text(FILES[name]())
    seen = report("inspect", str(file))
    folded = report("fold", str(file), "-o", str(tmp_path / "out.jsonl"))
    report("import", str(file), "--ledger", ledger)
    shown = report("show", "--ledger", ledger)
    replayed = report("replay", str(file))["sessions"][0]
    assert seen["tokens"] == folded["before"] == shown["tokens"]
    assert seen["window"] == folded["window"] == shown["window"] == replayed["window"]
    assert seen["usable"] == folded["usable"] == shown["usable"] == replayed["usable"]
    assert seen["tokens"] >= seen["reported"], "the size starts from the usage of the last reply"
    outside = seen["blocks"].get("hidden", 0)
    assert outside == shown["blocks"].get("hidden", 0)
    assert min(replayed["sizes"]) > outside
    assert bool(seen["blocks"].get("digest")) == bool(shown["blocks"]["digest"]) == (name == "an agent that compacted")


def test_inspect_and_fold_make_the_same_fold_with_room_for_what_is_not_in_the_file(tmp_path: Path) -> None:
    file, out, window = tmp_path / "session.jsonl", tmp_path / "out.jsonl", ("--window", "25000")
    file.write_text(codex_rollout())
    seen, folded = report("inspect", str(file), *window), report("fold", str(file), "-o", str(out), *window)
    assert seen["fold"]["folded"] == folded["fold"]["folded"] != ""
    assert seen["fold"]["after"] == folded["after"]
    written = report("inspect", str(out), *window, "--model", "gpt-5.4")
    assert written["tokens"] + HIDDEN < 25_000, "the agent adds its system prompt and tools again"


@pytest.mark.parametrize("window", [2_000, 6_000, 10_000])
def test_the_hidden_part_has_one_size_and_one_name_and_the_named_window_is_large_enough(
    window: int, tmp_path: Path
) -> None:
    file, out = tmp_path / "session.jsonl", str(tmp_path / "out.jsonl")
    file.write_text(codex_rollout())
    hidden = f"hidden {report('inspect', str(file))['blocks']['hidden']:,}"
    for command in (("fold", str(file), "-o", out), ("replay", str(file)), ("inspect", str(file))):
        done = foldline(*command, "--window", str(window))
        said = done.stdout + done.stderr
        assert hidden in said
        assert "shorten the hidden part (the system prompt and tools that are in no message), or raise" in said
        enough = re.search(r"raise --window to ([\d,]+)", said)
        assert enough
        again = foldline(*command, "--window", enough[1].replace(",", ""))
        assert again.returncode == 0
        assert "raise --window" not in again.stdout
    assert foldline("fold", str(file), "-o", out, "--force", "--window", str(HIDDEN)).returncode == 3


def test_a_pin_does_not_keep_a_grown_file_from_being_imported(tmp_path: Path) -> None:
    file, ledger = tmp_path / "session.jsonl", ("--ledger", str(tmp_path / "a.db"))
    lines = claude_code_session(old=40, new=9).splitlines()
    file.write_text("\n".join(lines[:20]))
    assert report("import", str(file), *ledger)["sessions"][0]["new"] == 20
    assert foldline("pin", "never", "push", "to", "main", *ledger).returncode == 0
    assert report("import", str(file), *ledger)["sessions"][0]["new"] == 0
    file.write_text("\n".join(lines[:44]))
    assert report("import", str(file), *ledger)["sessions"][0]["new"] == 24
    assert foldline("pin", "--handle", "#3", *ledger).returncode == 0, "a folded message, so its text is added"
    file.write_text("\n".join(lines))
    assert report("import", str(file), *ledger)["sessions"][0]["new"] == 6
    shown = report("show", *ledger)
    assert shown["messages"] == 50 + 2
    assert shown["folded"] == "#1-20, #22-41", "what the agent compacted; the note stays"
    texts = [row["starts"] for row in shown["view"]]
    assert texts[0] == "never push to main"
    assert texts[1] == "This session is being continued."
    assert shown["blocks"]["pins"] > 0


@pytest.mark.parametrize("name", FILES)
def test_usage_replay_and_the_page_count_the_same_requests(name: str, tmp_path: Path) -> None:
    file, ledger = tmp_path / "session.jsonl", str(tmp_path / "a.db")
    file.write_text(FILES[name]())
    used = report("usage", str(file))["total"]["requests"]
    assert report("replay", str(file))["policies"][0]["requests"] == used
    report("import", str(file), "--ledger", ledger)
    with library.open(ledger) as opened:
        branch = opened.store.session("session", "main")
        assert len(RequestWindow(SessionReader(opened.store, branch)).rows()) == used


@pytest.mark.parametrize("window", ["200000", "40000", "30000", "26000", "22000"])
def test_the_window_does_not_change_what_one_usage_figure_proves(window: str, tmp_path: Path) -> None:
    file, ledger = tmp_path / "session.jsonl", str(tmp_path / "a.db")
    file.write_text(one_usage_figure())
    whole = report("inspect", str(file))
    seen = report("inspect", str(file), "-w", window)
    assert seen["tokens"] == whole["tokens"] > seen["reported"] == 18_000
    assert seen["blocks"]["hidden"] == whole["blocks"]["hidden"] > 17_000
    report("import", str(file), "--ledger", ledger, "-w", window)
    assert report("show", "--ledger", ledger)["tokens"] == whole["tokens"]
    fits = window not in ("26000", "22000")
    assert (seen["fold"]["need"] != "HARD") == fits
    folded = foldline("fold", str(file), "-o", str(tmp_path / "out.jsonl"), "-w", window)
    assert (folded.returncode == 0) == fits
    assert (foldline("replay", str(file), "-w", window).returncode == 0) == fits
