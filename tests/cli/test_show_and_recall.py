"""The commands `show` and `recall`: what they print of a session."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import foldline as library
from foldline.message import ToolCall, assistant, user
from support.command import foldline, one_sentence
from support.compacted_session import claude_code_session
from support.sessions import SESSIONS
from support.shapes import report


def test_show_draws_the_fold_line_and_writes_nothing(place: str) -> None:
    before = report("show", "--ledger", place, "-s", "3f0c")
    printed = foldline("show", "--ledger", place, "-s", "3f0c").stdout
    assert f"─── fold line: {before['folded']} are only in the ledger" in printed
    assert "digest by local" in printed
    assert "│ # " in printed
    first = int(before["folded"].partition("-")[2]) + 1
    assert [row["message"] for row in before["view"] if row["message"] >= first] == list(
        range(first, before["messages"] + 1)
    )
    assert report("show", "--ledger", place, "-s", "3f0c") == before, "looking changes nothing"


def test_show_lists_the_kept_messages_in_the_order_in_which_they_are_sent(tmp_path: Path) -> None:
    place = str(tmp_path / "a.db")
    call = ToolCall(id="c1", name="confirm", arguments='{"target": "eu-west-7"}')
    with library.open(place) as ledger:
        session = ledger.session("deploy", policy=library.Policy.preset("balanced"), model="gpt-4o")
        session.add(user("the task"), assistant("done " * 900), user("deploy it"))
        session.add(assistant("Shall I?", call), user("wait a moment"))
        assert session.fold(force=True)
        sent = [message.text for message in session.view().messages]
    printed = foldline("show", "--ledger", place).stdout
    listed = ["the task", "digest by", "Shall I?", "wait a moment"]
    assert sorted(listed, key=printed.rindex) == listed
    assert sorted(listed, key="\n".join(sent).replace("session digest", "digest by").rindex) == listed


def test_show_prints_digests_with_their_missing_facts(place: str) -> None:
    folds = report("show", "--ledger", place, "-s", "3f0c")["folds"]
    printed = foldline("show", "--digests", "--ledger", place, "-s", "3f0c").stdout
    assert "fold 1 of 2" in printed
    assert "fold 2 of 2" in printed
    assert f"{folds[0]['digest']['kept']} of {folds[0]['digest']['facts']} facts are shown" in printed
    assert "nothing is folded" in foldline("show", "--digests", "--ledger", place, "-s", "ticket-42").stdout


def test_show_and_recall_by_handle_print_messages_verbatim(place: str) -> None:
    whole = report("show", "--handle", "#2-4", "--ledger", place, "-s", "3f0c", shape="show --handle")
    assert [row["message"] for row in whole["messages"]] == [2, 3, 4]
    assert whole["messages"][2]["text"].count("queue.put") == 40
    assert all(row["whole"] for row in whole["messages"])
    paged = report("recall", "--handle", "#2-4", "--tokens", "200", "--ledger", place, "-s", "3f0c")
    assert paged["rest"].startswith("#")
    assert paged["tokens"] <= 200
    again = report("recall", "--handle", paged["rest"], "--tokens", "200", "--ledger", place, "-s", "3f0c")
    assert again["results"]
    assert (
        "more: foldline recall --handle"
        in foldline("recall", "--handle", "#2-4", "--tokens", "200", "--ledger", place, "-s", "3f0c").stdout
    )
    for command in ("show", "recall"):
        for handle in ("#9999", "#3-1", "; DROP TABLE", "#0"):
            assert "handle" in one_sentence(foldline(command, "--handle", handle, "--ledger", place, "-s", "3f0c"))


def test_recall_finds_folded_messages_within_its_token_limit(place: str) -> None:
    found = report("recall", "job_3_17", "--ledger", place, "-s", "3f0c", "--tokens", "300")
    assert found["tokens"] <= 300
    assert "job_3_17" in json.dumps(found["results"])
    everywhere = report("recall", "port", "7091", "--everywhere", "--ledger", place)
    assert {row["session"] for row in everywhere["results"]} == {"3f0c", "ticket-42"}
    handle = everywhere["results"][0]["handle"]
    assert report("recall", "--handle", handle, "--ledger", place)["results"][0]["lines"]
    assert report("show", "--handle", handle, "--ledger", place, shape="show --handle")["messages"]
    assert "No message matches" in foldline("recall", "xylophone", "--ledger", place).stdout
    for wrong_use in ([], ["x", "--handle", "#1"], ["x", "--tokens", "1"]):
        assert foldline("recall", *wrong_use, "--ledger", place).returncode == 2


def test_control_characters_in_messages_are_not_printed(place: str) -> None:
    for arguments in (["show"], ["recall", "touch"], ["show", "--handle", "#1"]):
        printed = foldline(*arguments, "--ledger", place, "-s", "ticket-42").stdout
        assert "touch the port" in printed
        assert "\x1b" not in printed


def test_show_fits_a_screen_and_shows_all_messages_on_request(tmp_path: Path) -> None:
    ledger = str(tmp_path / "a.db")
    source = tmp_path / "session.jsonl"
    source.write_text(claude_code_session(old=10, new=101, words=30))
    foldline("import", str(source), "--ledger", ledger)
    foldline("pin", "--handle", "20", "--ledger", ledger)
    foldline("pin", "keep the port", "--name", "port", "--ledger", ledger)
    done = foldline("show", "--ledger", ledger, COLUMNS="80", LINES="40")
    lines = done.stdout.splitlines()
    assert len(lines) <= 40
    assert all(len(line) <= 80 for line in lines[1:])
    assert "… 93 messages before these: foldline show --all" in done.stdout
    assert "#113" in lines[-1]
    pins = lines[lines.index("pins") + 1 :]
    assert pins[0].startswith("  #20 ")
    assert "port  keep the port" in pins[1]
    whole = foldline("show", "--all", "--ledger", ledger).stdout
    assert all(f"#{number} " in whole for number in range(11, 112))


def test_secrets_in_the_arguments_of_a_call_are_not_printed(tmp_path: Path) -> None:
    """In the JSON of the arguments, the line ends in these commands are escaped."""
    commands = ["$ pass show mail/work\ngIrAffe-neck-22", "$ cat ~/.vault-token\n88HxjSI6bWHtP3fS2qHx6kwXoI"]
    commands.append("export TOKEN=kb4virLnAbgkhBpfmek8\\\nQCb8PBYZL3yNlsJhH2mI")
    calls = [
        {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": command}}
        for number, command in enumerate(commands)
    ]
    results = [{"type": "tool_result", "tool_use_id": call["id"], "content": "ok"} for call in calls]
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for call, result in zip(calls, results, strict=True):
        messages += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    file, place = tmp_path / "calls.json", str(tmp_path / "l.db")
    file.write_text(json.dumps(messages))
    assert foldline("import", str(file), "--ledger", place).returncode == 0
    for args in (["show"], ["show", "--all"], ["show", "--handle", "#1-7"], ["recall", "--handle", "#1-7"]):
        for option in ([], ["--json"]):
            shown = foldline(*args, *option, "--ledger", place)
            assert shown.returncode == 0
            found = [
                word
                for word in ("gIrAffe-neck", "88HxjSI6bWHt", "kb4virLnAbgk", "QCb8PBYZL3yN")
                if word in shown.stdout + shown.stderr
            ]
            assert not found, (args, option)


def test_show_suggests_handles_of_messages_that_are_only_in_the_ledger(tmp_path: Path) -> None:
    url = str(tmp_path / "agent.db")
    with library.open(url) as opened:
        session = opened.session("one", model="claude-sonnet-4-5", policy="balanced")
        for number in range(40):
            role = ("user", "assistant")[number % 2]
            session.add({"role": role, "content": f"{number} " + "word " * 50})
        session.pin(handle="#9", name="kept")
        session.fold(force=True)
        folded = session.timeline.fold
    assert folded is not None
    assert len(folded.left) > 1
    shown = foldline("show", "--ledger", url).stdout
    suggested = re.findall(r'foldline show --handle "(.+)"', shown)
    assert suggested
    assert suggested == report("show", "--ledger", url)["folded"].split(", ")[: len(suggested)]


def test_inspect_show_and_recall_give_a_message_with_results_the_same_role(tmp_path: Path) -> None:
    file, ledger = tmp_path / "gemini.json", str(tmp_path / "ledger.db")
    file.write_text(SESSIONS["gemini"]())
    row = report("inspect", str(file))["largest"][0]
    assert row["role"] == "tool"
    report("import", str(file), "--ledger", ledger)
    shown = {one["message"]: one["role"] for one in report("show", "--ledger", ledger)["view"]}
    assert shown[row["message"]] == "tool"
    handle = f"#{row['message']}"
    assert f"{handle} tool" in foldline("show", "--ledger", ledger, "--handle", handle).stdout
    assert f"{handle} tool" in foldline("recall", "--ledger", ledger, "--handle", handle).stdout


def test_the_bar_of_a_block_that_does_not_fit_is_cut_off(tmp_path: Path) -> None:
    file, ledger = tmp_path / "long.json", str(tmp_path / "ledger.db")
    file.write_text(json.dumps([{"role": "user", "content": "word " * 40_000}]))
    report("import", str(file), "--ledger", ledger, "-w", "10000")
    (line,) = [line for line in foldline("show", "--ledger", ledger).stdout.splitlines() if "█" in line]
    assert line.endswith("█" * 40 + "…")
    assert len(line) < 80
