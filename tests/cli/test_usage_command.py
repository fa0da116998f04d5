"""`foldline usage`: what agents' logs and ledgers say about tokens and money."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import foldline
from foldline.message import Message, Meta, Text, Usage
from support.command import foldline as run
from support.shapes import documented, wrong


def claude_line(reply: str, *, read: int, written: int, fresh: int = 10, output: int = 100, **more: Any) -> str:
    usage = {
        "input_tokens": fresh,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        "output_tokens": output,
    }
    message = {"id": reply, "role": "assistant", "model": "claude-opus-4-5", "content": [], "usage": usage}
    line = {"type": "assistant", "sessionId": "s1", "cwd": "/home/me/shop", "timestamp": "2026-11-02T12:00:00Z"}
    return json.dumps({**line, "message": message, **more})


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def report(*arguments: object, home: object = "/dev/null") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("usage", *map(str, arguments), "--json", HOME=str(home)).stdout)
    assert not wrong(found, documented("usage"))
    return found


def test_a_reply_in_several_lines_and_files_counts_once(tmp_path: Path) -> None:
    first = claude_line("msg_1", read=0, written=10_000, output=1)
    last = claude_line("msg_1", read=0, written=10_000, output=500)
    write(tmp_path / "a.jsonl", first, last)
    write(tmp_path / "b.jsonl", last)
    total = report(tmp_path)["total"]
    assert (total["requests"], total["output"], total["cache_write"]) == (1, 500, 10_000)
    assert total["cost"] == round((10 * 5 + 10_000 * 6.25 + 500 * 25) / 1e6, 6)


def test_tokens_that_left_the_cache_are_counted_with_what_they_cost(tmp_path: Path) -> None:
    lines = [
        claude_line("msg_1", read=0, written=10_000),
        claude_line("msg_2", read=10_000, written=2_000),
        claude_line("msg_3", read=0, written=13_000),
    ]
    total = report(write(tmp_path / "a.jsonl", *lines))["total"]
    assert total["missed"] == 12_000
    assert total["miss_cost"] == round(12_000 * (6.25 - 0.5) / 1e6, 6)


def test_a_sub_agent_does_not_miss_what_the_main_agent_had_cached(tmp_path: Path) -> None:
    lines = [
        claude_line("msg_1", read=0, written=10_000),
        claude_line("msg_2", read=0, written=3_000, isSidechain=True, agentId="a1"),
        claude_line("msg_3", read=10_000, written=100),
    ]
    assert report(write(tmp_path / "a.jsonl", *lines))["total"]["missed"] == 0


def test_groups_by_project_and_model_and_the_days_since_one(tmp_path: Path) -> None:
    old = claude_line("msg_1", read=0, written=1_000, timestamp="2026-10-01T12:00:00Z")
    new = claude_line("msg_2", read=0, written=1_000)
    broken = '{"type": "assistant", "usage'
    file = write(tmp_path / "a.jsonl", old, broken, new)
    found = report(file, "--by", "project", "--by", "model", "--since", "2026-11-01")
    (group,) = found["groups"]
    assert (group["project"], group["model"], group["requests"]) == ("/home/me/shop", "claude-opus-4-5", 1)
    shown = run("usage", str(file)).stdout
    assert "2026-10-01" in shown
    assert "total" in shown


def test_models_with_the_same_beginning_stay_distinct_in_a_narrow_table(tmp_path: Path) -> None:
    models = ("claude-opus-4-5-20251101", "claude-opus-4-6", "claude-sonnet-4-5")
    lines = [claude_line(f"msg_{number}", read=0, written=10) for number in range(3)]
    made = [line.replace("claude-opus-4-5", model) for line, model in zip(lines, models, strict=True)]
    write(tmp_path / "a.jsonl", *made)
    printed = run("usage", str(tmp_path), "--by", "model", "--by", "project", COLUMNS="80").stdout
    assert "claude-…" not in printed
    column = "".join(line.split("  ")[0].strip() for line in printed.splitlines())
    assert all(model in column for model in models)


def test_the_id_of_a_session_is_not_cut_in_a_wide_table(tmp_path: Path) -> None:
    name = "53ea1606-cf60-417b-928a-068324ecc7b3"
    line = json.loads(claude_line("msg_1", read=0, written=10)) | {"sessionId": name}
    write(tmp_path / "a.jsonl", json.dumps(line))
    assert f"{name}  " in run("usage", str(tmp_path), "--by", "session", COLUMNS="120").stdout


def test_codex_and_pi_logs(tmp_path: Path) -> None:
    total = {"input_tokens": 5_000, "cached_input_tokens": 4_000, "output_tokens": 50}
    codex = [
        {"type": "session_meta", "payload": {"id": "c1", "cwd": "/home/me/api"}},
        {"type": "turn_context", "payload": {"model": "gpt-5", "cwd": "/home/me/api"}},
        *[
            {
                "type": "event_msg",
                "timestamp": "2026-11-02T12:00:00Z",
                "payload": {"type": "token_count", "info": {"total_token_usage": total, "last_token_usage": total}},
            }
        ]
        * 2,
    ]
    usage = {"input": 7, "output": 3, "cacheRead": 90, "cacheWrite": 10}
    pi = [
        {"type": "session", "id": "p1", "cwd": "/home/me/pi", "modelId": "claude-opus-4-5"},
        {"type": "message", "id": "m1", "message": {"role": "assistant", "model": "claude-opus-4-5", "usage": usage}},
    ]
    write(tmp_path / "codex.jsonl", *map(json.dumps, codex))
    write(tmp_path / "pi.jsonl", *map(json.dumps, pi))
    found = {group["session"]: group for group in report(tmp_path, "--by", "session")["groups"]}
    assert (found["c1"]["requests"], found["c1"]["input"], found["c1"]["cache_read"]) == (1, 1_000, 4_000)
    assert (found["p1"]["input"], found["p1"]["cache_read"], found["p1"]["cache_write"]) == (7, 90, 10)


def test_a_ledger(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    with foldline.open(file) as ledger:
        session = ledger.session("ticket", model="gpt-5")
        session.add({"role": "user", "content": "hi"})
        meta = Meta(model="gpt-5", reply="r1", usage=Usage(input=100, output=20))
        session.add(Message(role="assistant", parts=(Text(text="hello"),), meta=meta))
        session.branch("other")
    (group,) = report("--ledger", file, "--by", "session")["groups"]
    assert (group["session"], group["requests"], group["input"], group["output"]) == ("ticket", 1, 100, 20)


def test_a_reply_that_was_taken_back_was_paid_for(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    with foldline.open(file) as ledger:
        session = ledger.session("ticket", model="gpt-5")
        for number, words in enumerate(("one", "two")):
            session.rewind(0)
            session.add({"role": "user", "content": words})
            meta = Meta(model="gpt-5", reply=f"r{number}", usage=Usage(input=100, output=20))
            session.add(Message(role="assistant", parts=(Text(text=words),), meta=meta))
        session.branch("other", at=1).add({"role": "user", "content": "three"})
    total = report("--ledger", file)["total"]
    assert (total["requests"], total["input"], total["output"]) == (2, 200, 40)


def codex_lines(session: str) -> list[str]:
    total = {"input_tokens": 5_000, "cached_input_tokens": 4_000, "output_tokens": 50, "total_tokens": 5_050}
    count = {"type": "token_count", "info": {"total_token_usage": total, "last_token_usage": total}}
    meta = {"id": session, "cwd": "/home/me/api", "base_instructions": {"text": "be brief"}}
    asked, answered = [
        {"type": "message", "role": role, "content": [{"type": kind, "text": "hello"}]}
        for role, kind in (("user", "input_text"), ("assistant", "output_text"))
    ]
    lines = [
        {"type": "session_meta", "payload": meta},
        {"type": "turn_context", "payload": {"model": "gpt-5"}},
        {"type": "response_item", "payload": asked},
        {"type": "response_item", "payload": answered},
        {"type": "event_msg", "timestamp": "2026-11-02T12:00:00Z", "payload": count},
    ]
    return [json.dumps(line) for line in lines]


def pi_lines(session: str) -> list[str]:
    usage = {"input": 7, "output": 3, "cacheRead": 90, "cacheWrite": 10}
    answer = {"role": "assistant", "model": "claude-opus-4-5", "content": [{"type": "text", "text": "hi"}]}
    lines = [
        {"type": "session", "version": 3, "id": session, "timestamp": "2026-11-02T12:00:00Z", "cwd": "/home/me/pi"},
        {"type": "message", "id": "m1", "parentId": None, "message": {"role": "user", "content": "hello"}},
        {"type": "message", "id": "m2", "parentId": "m1", "message": {**answer, "usage": usage}},
    ]
    return [json.dumps(line) for line in lines]


def gemini_document(session: str) -> str:
    asked = {"id": "1", "type": "user", "content": "hello"}
    tokens = {"input": 100, "output": 10, "cached": 0, "thoughts": 0, "tool": 0, "total": 110}
    answered = {"id": "2", "type": "gemini", "content": "hi", "model": "gemini-2.5-pro", "tokens": tokens}
    return json.dumps({"sessionId": session, "projectHash": "0b7d", "messages": [asked, answered]}, indent=2)


def four_logs(folder: Path) -> list[Path]:
    """A log of each agent, under names that say nothing about the session."""
    folder.mkdir()
    line = json.loads(claude_line("msg_1", read=0, written=10_000))
    line["message"]["content"] = [{"type": "text", "text": "hi"}]
    asked = {"type": "user", "sessionId": "s1", "uuid": "u1", "message": {"role": "user", "content": "hello"}}
    return [
        write(folder / "a.jsonl", json.dumps(asked), json.dumps({**line, "uuid": "u2", "parentUuid": "u1"})),
        write(folder / "b.jsonl", *codex_lines("c1")),
        write(folder / "c.jsonl", *pi_lines("p1")),
        write(folder / "d.json", gemini_document("g1")),
    ]


def test_a_session_in_a_log_and_in_a_ledger_counts_once(tmp_path: Path) -> None:
    logs, ledger = four_logs(tmp_path / "logs"), tmp_path / "a.db"
    for log in logs:
        run("import", str(log), "--ledger", str(ledger), "--session", f"copy of {log.stem}")
    files, both = report(*logs, "--by", "session"), report(*logs, "--ledger", ledger, "--by", "session")
    assert files["total"]["requests"] == 4
    assert both["total"] == files["total"]
    assert [group["session"] for group in both["groups"]] == ["c1", "g1", "p1", "s1"]
    assert both["in_files"] == 4
    assert report("--ledger", ledger, home=tmp_path)["total"]["requests"] == 4
    printed = run("usage", *map(str, logs), "--ledger", str(ledger)).stdout
    assert "counted from their files only: 4 sessions of the ledger" in printed


def test_a_session_is_known_again_after_an_export_and_an_update(tmp_path: Path) -> None:
    log, first, second = write(tmp_path / "b.jsonl", *codex_lines("c1")), tmp_path / "a.db", tmp_path / "b.db"
    run("import", str(log), "--ledger", str(first))
    run("import", str(log), "--ledger", str(first))
    run("export", "--ledger", str(first), "-o", str(tmp_path / "out.jsonl"))
    run("import", str(tmp_path / "out.jsonl"), "--ledger", str(second))
    assert report(log, "--ledger", second)["total"]["requests"] == 1


def test_a_session_that_is_named_by_the_agents_id_counts_once(tmp_path: Path) -> None:
    """The proxy names its sessions so, and so did imports before the id was stored."""
    uuid = "019d78fc-c449-7300-92a1-1e92604a4f6a"
    log, ledger = write(tmp_path / "b.jsonl", *codex_lines(uuid)), tmp_path / "a.db"
    for name in (uuid, f"{uuid}.2", f"rollout-2026-11-02T12-00-00-{uuid}"):
        with foldline.open(ledger) as opened:
            session = opened.session(name, model="gpt-5")
            session.add({"role": "user", "content": name})
            meta = Meta(model="gpt-5", reply=f"resp {name}", usage=Usage(input=1_000, cache_read=4_000, output=50))
            session.add(Message(role="assistant", parts=(Text(text="hello"),), meta=meta))
    assert report("--ledger", ledger, home=tmp_path)["total"]["requests"] == 3
    assert report(log, "--ledger", ledger)["total"]["requests"] == 1


def test_a_ledger_is_read_in_addition_to_the_logs_in_the_home_folder(tmp_path: Path) -> None:
    ledger, folder = tmp_path / "a.db", tmp_path / ".codex" / "sessions"
    folder.mkdir(parents=True)
    write(folder / "b.jsonl", *codex_lines("c1"))
    for session in ("c1", "c2"):
        log = write(tmp_path / f"{session}.jsonl", *codex_lines(session))
        run("import", str(log), "--ledger", str(ledger))
    groups = report("--ledger", ledger, "--by", "project", home=tmp_path)["groups"]
    assert [(group["project"], group["requests"]) for group in groups] == [("/home/me/api", 1), ("ledger", 1)]


def test_replies_with_the_same_id_count_apart_and_a_shared_reply_counts_once(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    for owner in ("", "alice"):
        with foldline.open(file, owner=owner) as ledger:
            session = ledger.session("ticket", model="gpt-5")
            for tokens in (100, 200):  # the server gives every reply the same id
                session.add({"role": "user", "content": "hi"})
                meta = Meta(model="gpt-5", reply="r1", usage=Usage(input=tokens, output=20))
                session.add(Message(role="assistant", parts=(Text(text="hello"),), meta=meta))
            session.branch("other")
            other = ledger.session("copy", model="gpt-5")
            other.add({"role": "user", "content": "another beginning"})
            other.add(Message(role="assistant", parts=(Text(text="hello"),), meta=meta))
    total = report("--ledger", file)["total"]
    assert (total["requests"], total["input"]) == (4, 600)


def test_lines_with_the_same_id_and_other_figures_are_other_requests(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", claude_line("msg_1", read=0, written=10_000))
    write(tmp_path / "b.jsonl", claude_line("msg_1", read=0, written=20_000))
    total = report(tmp_path)["total"]
    assert (total["requests"], total["cache_write"]) == (2, 30_000)


def test_a_ledger_is_read_if_the_home_folder_has_no_session_files(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    with foldline.open(file) as ledger:
        session = ledger.session("s", model="gpt-5")
        session.add({"role": "user", "content": "hello"})
        meta = Meta(model="gpt-5", reply="r1", usage=Usage(input=100, output=20))
        session.add(Message(role="assistant", parts=(Text(text="hello"),), meta=meta))
    (tmp_path / ".claude" / "projects").mkdir(parents=True)
    assert report("--ledger", file, home=tmp_path)["total"]["requests"] == 1
    assert "no session files in ~/.claude/projects" in run("usage", HOME=str(tmp_path)).stderr


def test_what_cannot_be_found_is_said(tmp_path: Path) -> None:
    nothing = run("usage", HOME=str(tmp_path))
    assert nothing.returncode == 2
    assert "no session files in ~/.claude/projects" in nothing.stderr
    (tmp_path / "empty").mkdir()
    empty = run("usage", str(tmp_path / "empty"))
    assert empty.returncode == 2
    assert f"no session file in {tmp_path / 'empty'}" in empty.stderr
    assert "there is no such file" in run("usage", str(tmp_path / "x")).stderr
    assert "write it as 2026-11-01" in run("usage", str(tmp_path), "--since", "monday").stderr
