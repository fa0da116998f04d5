"""The commands on a ledger: import, sessions, show, recall, pin, unfold, worker, export, verify and prune."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import foldline as library
from foldline.cli.shared import ledger_choice as ledgers
from foldline.message import ToolCall, assistant, user
from support.command import BAD, ENTRY, NO_DATA, clean, foldline, one_sentence, spawned
from support.compacted_session import claude_code_session
from support.sessions import SESSIONS
from support.shapes import documented, wrong

STEPS = 12
READING = (["sessions"], ["show"], ["recall", "port"], ["verify"], ["export", "-o", "-"], ["pin", "x"], ["unfold"])
"""Commands that need a ledger to be there, with just enough to run."""


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    file = tmp_path / "3f0c.jsonl"
    file.write_text(SESSIONS["claude-code"](STEPS))
    return file


@pytest.fixture
def place(tmp_path: Path) -> str:
    """A ledger with one session that was folded twice, and one with a pin."""
    url, file = str(tmp_path / "agent.db"), tmp_path / "request.json"
    file.write_text(SESSIONS["anthropic"](STEPS))
    done = foldline("import", str(file), "--session", "3f0c", "--ledger", url, "--window", "9000")
    assert done.returncode == 0, done.stderr
    file.unlink()
    with library.open(url) as opened:
        folded = opened.session("3f0c")
        folded.view()
        folded.add(
            {"role": "assistant", "content": "The queue was full."}, {"role": "user", "content": "Make it wait."}
        )
        assert folded.fold(force=True) is not None
        other = opened.session("ticket-42", model="gpt-4o")
        other.add({"role": "user", "content": "Never touch the port 7091.\tIt is \x1b[31mours\x1b[0m."})
        other.add({"role": "assistant", "content": "Understood."})
        other.pin(handle="#1", name="port")
    return url


def report(command: str, *arguments: str, shape: str = "", home: str = NO_DATA) -> Any:
    done = foldline(command, *arguments, "--json", XDG_DATA_HOME=home)
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout)
    assert not wrong(found, documented(shape or command))
    return found


# From nothing to a ledger


def test_a_claude_code_file_becomes_a_session_of_the_default_ledger(transcript: Path, tmp_path: Path) -> None:
    home = str(tmp_path / "data")
    assert "there is no ledger at" in one_sentence(foldline("recall", "port", XDG_DATA_HOME=home))
    assert not (tmp_path / "data").exists(), "reading makes nothing"
    found = report("import", str(transcript), home=home)
    assert [(row["session"], row["format"]) for row in found["sessions"]] == [("3f0c", "claude-code")]
    assert (tmp_path / "data" / "foldline" / "ledger.db").stat().st_size
    assert (tmp_path / "data" / "foldline").stat().st_mode & 0o077 == 0, "only the user can read it"
    assert "7091" in foldline("recall", "which", "port", "drops", "jobs", XDG_DATA_HOME=home).stdout
    assert "no faults" in foldline("verify", XDG_DATA_HOME=home).stdout


@pytest.mark.parametrize("name", SESSIONS)
def test_every_format_can_be_imported(name: str, tmp_path: Path) -> None:
    file, url = tmp_path / "talk.json", str(tmp_path / "agent.db")
    file.write_text(SESSIONS[name](3))
    messages = library.read(file).messages
    assert report("import", str(file), "--ledger", url)["sessions"][0]["messages"] == len(messages)
    with library.open(url) as opened:
        kept = [stored.message for stored in opened.store.read(opened.store.session("talk"))]
    assert kept == list(messages)


def test_importing_a_grown_file_adds_only_new_messages(transcript: Path, tmp_path: Path) -> None:
    lines, url = transcript.read_text().splitlines(keepends=True), str(tmp_path / "agent.db")
    transcript.write_text("".join(lines[:10]))
    first = report("import", str(transcript), "--ledger", url)["sessions"][0]
    transcript.write_text("".join(lines))
    second = report("import", str(transcript), "--ledger", url)["sessions"][0]
    assert 0 < first["messages"] < second["messages"]
    assert second["new"] == second["messages"] - first["messages"]
    assert "none new" in foldline("import", str(transcript), "--ledger", url).stdout
    transcript.write_text(SESSIONS["anthropic"](2))
    assert "--session" in one_sentence(foldline("import", str(transcript), "--ledger", url))
    assert report("import", str(transcript), "--ledger", url, "-s", "other")["sessions"][0]["session"] == "other"


def test_importing_an_older_copy_of_a_file_adds_nothing(transcript: Path, tmp_path: Path) -> None:
    lines, url = transcript.read_text().splitlines(keepends=True), str(tmp_path / "agent.db")
    whole = report("import", str(transcript), "--ledger", url)["sessions"][0]["messages"]
    transcript.write_text("".join(lines[:10]))
    done = foldline("import", str(transcript), "--ledger", url)
    assert done.returncode == 0, done.stderr
    assert "none new" in done.stdout
    assert report("show", "--ledger", url)["messages"] == whole


def test_a_compaction_by_the_agent_becomes_a_fold(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in SESSIONS["claude-code"](2).splitlines()]
    digest = {"role": "user", "content": "This session is being continued: we looked at the queue."}
    boundary = {**lines[-1], "uuid": "c-1", "type": "user", "isCompactSummary": True, "message": digest}
    after = {
        **lines[-1],
        "uuid": "c-2",
        "parentUuid": "c-1",
        "type": "user",
        "message": {"role": "user", "content": "Go"},
    }
    file, url = tmp_path / "long.jsonl", str(tmp_path / "agent.db")
    file.write_text("".join(json.dumps(line) + "\n" for line in [*lines, boundary, after]))
    row = report("import", str(file), "--ledger", url)["sessions"][0]
    assert row["compacted"] == row["messages"] - 2
    seen = report("show", "--ledger", url)
    assert seen["folded"] == f"#1-{row['compacted']}"
    assert [line["starts"][:4] for line in seen["view"]] == ["This", "Go"]
    assert "7091" in foldline("recall", "port", "--ledger", url).stdout, "and still there"


def test_a_folder_is_imported_and_other_files_are_skipped(transcript: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text('{"what": "is this"}')
    found = report("import", str(tmp_path), "--ledger", str(tmp_path / "agent.db"))
    assert [row["session"] for row in found["sessions"]] == ["3f0c"]
    assert [Path(row["file"]).name for row in found["skipped"]] == ["notes.json"]
    assert foldline("import", str(tmp_path), "-s", "one", "--ledger", str(tmp_path / "b.db")).returncode == 2


@pytest.mark.parametrize("name", BAD)
def test_an_unreadable_file_creates_no_ledger(name: str, tmp_path: Path) -> None:
    file, url = tmp_path / "bad.json", tmp_path / "agent.db"
    file.write_bytes(BAD[name])
    assert "bad.json" in one_sentence(foldline("import", str(file), "--ledger", str(url)))
    assert not url.exists()


def test_missing_files_and_folders_without_transcripts_are_refused(tmp_path: Path) -> None:
    url = str(tmp_path / "agent.db")
    assert "nowhere.json" in one_sentence(foldline("import", str(tmp_path / "nowhere.json"), "--ledger", url))
    assert "no transcript found in" in one_sentence(foldline("import", str(tmp_path), "--ledger", url))
    assert "does not exist" in one_sentence(
        foldline("import", str(tmp_path), "--ledger", str(tmp_path / "no" / "agent.db")), code=4
    )


# Which ledger, which session


def test_the_ledger_is_set_by_flag_environment_or_file(place: str, tmp_path: Path) -> None:
    project = tmp_path / "project" / "deep"
    project.mkdir(parents=True)
    (tmp_path / "project" / ".git").mkdir()
    (tmp_path / "project" / "foldline.toml").write_text('ledger = "../agent.db"\n')
    for given in (
        foldline("sessions", "--ledger", place),
        foldline("sessions", FOLDLINE_LEDGER=place),
        foldline("sessions", cwd=project),
    ):
        assert "ticket-42" in given.stdout, given.stderr
    assert "--ledger" in one_sentence(foldline("sessions", FOLDLINE_LEDGER=":memory:"))
    assert "postgresql://" in one_sentence(foldline("sessions", "--ledger", "mysql://me:hunter2@host/x"))
    assert "hunter2" not in foldline("sessions", "--ledger", "mysql://me:hunter2@host/x").stderr


def test_an_owner_sees_only_own_sessions(place: str, transcript: Path) -> None:
    assert "no sessions" in one_sentence(foldline("show", "--ledger", place, "--owner", "bob"))
    assert report("import", str(transcript), "--ledger", place, "--owner", "bob")["sessions"][0]["new"]
    names = [row["name"] for row in report("sessions", "--ledger", place, "--owner", "bob")["sessions"]]
    assert names == ["3f0c"]
    assert len(report("sessions", "--ledger", place)["sessions"]) == 2


def test_the_last_used_session_is_the_default_and_is_printed(place: str) -> None:
    done = foldline("recall", "port", "--ledger", place)
    assert "session ticket-42, the last used of 2; choose another with --session" in done.stderr
    assert not foldline("recall", "port", "--ledger", place, "-s", "3f0c").stderr
    assert report("show", "--ledger", place, "-s", "tick")["session"] == "ticket-42", "how it begins is enough"
    assert "foldline sessions" in one_sentence(foldline("show", "--ledger", place, "-s", "nothing"))
    assert "main" in one_sentence(foldline("show", "--ledger", place, "-s", "3f0c", "--branch", "nothing"))
    foldline("pin", "x", "--ledger", place, "-s", "ticket-42")
    with library.open(place) as opened:
        opened.session("ticket-43")
    assert "ticket-42" in one_sentence(foldline("show", "--ledger", place, "-s", "ticket"))


def test_a_branch_is_chosen_by_name(place: str) -> None:
    with library.open(place) as opened:
        opened.session("ticket-42").branch("try", at=1).add({"role": "user", "content": "Another way."})
    assert report("show", "--ledger", place, "-s", "ticket-42", "--branch", "try")["messages"] == 2
    assert "branches: try" in foldline("sessions", "--ledger", place).stdout
    assert "Another way" in foldline("recall", "another", "way", "--ledger", place, "--branch", "try").stdout


def test_completion_offers_session_names(place: str, tmp_path: Path) -> None:
    def ask(words: str) -> str:
        count = str(len(words.split(" ")) - 1)
        return str(spawned(_FOLDLINE_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=count).stdout)

    assert ask(f"foldline show --ledger {place} --session tick").split() == ["plain,ticket-42"]
    assert not ask(f"foldline show --ledger {tmp_path}/none.db --session x").split()


# What it shows


def test_sessions_are_listed(place: str) -> None:
    rows = report("sessions", "--ledger", place)["sessions"]
    assert [row["name"] for row in rows] == ["ticket-42", "3f0c"]
    assert rows[1]["folds"] == 2
    printed = foldline("sessions", "--ledger", place).stdout
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d +\d+ +2 +3f0c", printed)


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


# What it changes


def test_pins_are_added_and_removed(place: str) -> None:
    there = ("--ledger", place, "-s", "3f0c")
    made = report("pin", "never", "push", "to", "main", "--name", "rule", *there)
    assert made["changed"] == ["rule"]
    assert made["pins"][0]["message"] == report("show", *there)["messages"]
    assert report("pin", "--handle", "#2-3", *there)["changed"] == ["#2", "#3"]
    printed = foldline("show", *there).stdout
    assert "3 pins" in printed
    assert "rule  never push to main" in printed
    assert re.search(r"pin never push to main", printed)
    assert [row["name"] for row in report("pin", "--remove", "rule", *there)["pins"]] == ["#2", "#3"]
    assert "#2, #3" in one_sentence(foldline("pin", "--remove", "rule", *there))
    assert "#99" in one_sentence(foldline("pin", "--handle", "#99", *there))
    listed = foldline("pin", *there).stdout
    assert re.search(r"2 pins\n  #2 +\S.*\n  #3", listed)
    assert report("pin", *there)["changed"] == []
    assert foldline("show", "--handle", "2", *there).stdout == foldline("show", "--handle", "#2", *there).stdout
    for wrong_use in (["x", "--handle", "#1"], ["--handle", "#1", "--remove", "#2"]):
        assert foldline("pin", *wrong_use, *there).returncode == 2


def test_a_name_for_several_messages_is_refused_and_nothing_is_pinned(place: str) -> None:
    there = ("--ledger", place, "-s", "3f0c")
    said = one_sentence(foldline("pin", "--handle", "#1-3", "--name", "begin", *there))
    assert "the name 'begin' can be given to only one message, but #1-3 names several" in said
    assert "leave out the name" in said
    assert report("pin", *there)["pins"] == []


def test_unfold_undoes_the_newest_fold(place: str) -> None:
    there = ("--ledger", place, "-s", "3f0c")
    before = report("show", *there)
    made = report("unfold", *there)
    assert made["folds"] == 1
    assert made["tokens"] > before["tokens"]
    assert report("show", *there)["folded"] == before["folds"][0]["folded"]
    assert "nothing is folded now" in foldline("unfold", *there).stdout
    assert "has no fold to undo" in one_sentence(foldline("unfold", *there))


def test_a_worker_makes_a_queued_fold(tmp_path: Path) -> None:
    url = str(tmp_path / "agent.db")
    policy = library.Policy.preset("balanced").but(window_tokens=8_000, reply_tokens=0, counter="chars/4")
    with library.open(url, worker="process") as opened:
        session = opened.session("s", policy=policy)
        while session.view().need is library.Need.NONE:
            session.add({"role": "user", "content": "why " * 100}, {"role": "assistant", "content": "so " * 500})
    made = report("worker", "--once", "--ledger", url)
    assert (made["session"], made["outcome"]) == ("s", "committed")
    assert report("show", "--ledger", url)["folds"]


# The whole of it


def test_an_exported_ledger_imports_to_the_same_ledger(place: str, tmp_path: Path) -> None:
    copy, other = tmp_path / "copy.jsonl", str(tmp_path / "other.db")
    made = report("export", "-o", str(copy), "--ledger", place)
    assert made["bytes"] == copy.stat().st_size
    assert "--force" in one_sentence(foldline("export", "-o", str(copy), "--ledger", place))
    assert "is also the input" in one_sentence(foldline("export", "-o", place, "--force", "--ledger", place))
    back = report("import", str(copy), "--ledger", other)
    assert {row["session"] for row in back["sessions"]} == {"3f0c", "ticket-42"}
    assert {row["format"] for row in back["sessions"]} == {"foldline"}
    one, two = (report("show", "--ledger", url, "-s", "3f0c") for url in (place, other))
    assert {**one, "ledger": ""} == {**two, "ledger": ""}
    assert report("verify", "--ledger", other)["sound"]
    assert "already exists" in one_sentence(foldline("import", str(copy), "--ledger", other))


def test_the_beginning_of_a_name_is_enough_for_an_export(place: str, tmp_path: Path) -> None:
    made = report("export", "-s", "tick", "-o", str(tmp_path / "one.jsonl"), "--ledger", place)
    assert made["sessions"] == ["ticket-42"]
    assert "unknown session 'x'" in one_sentence(foldline("export", "-s", "x", "-o", "-", "--ledger", place))


def test_a_session_can_be_piped_from_a_file_to_a_server(place: str, admin: str) -> None:
    from support import postgres

    with postgres.database(admin) as server:
        piped = f'foldline export -o - -s 3f0c --ledger "{place}" | foldline import - --ledger "{server}"'
        program = " ".join(ENTRY)
        done = subprocess.run(
            [
                "sh",
                "-c",
                piped.replace("foldline export", f"{program} export").replace("foldline import", f"{program} import"),
            ],
            env=clean(),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        there = ("--ledger", server)
        assert [row["name"] for row in report("sessions", *there)["sessions"]] == ["3f0c"]
        assert "7091" in foldline("recall", "port", *there).stdout
        assert report("pin", "--handle", "#1", *there)["changed"] == ["#1"]
        assert report("unfold", *there)["folds"] == 1
        assert report("verify", *there)["sound"]
        assert "foldline sessions" in one_sentence(foldline("export", "-o", "-", "-s", "none", *there))
        assert report("prune", "--older-than", "1w", *there)["sessions"] == []


def test_a_session_from_standard_input_needs_a_name(transcript: Path, tmp_path: Path) -> None:
    url = str(tmp_path / "agent.db")

    def piped(*arguments: str) -> subprocess.CompletedProcess[str]:
        with transcript.open() as source:
            command = [*ENTRY, "import", "-", "--ledger", url, *arguments]
            return subprocess.run(
                command, stdin=source, env=clean(), capture_output=True, text=True, timeout=60, check=False
            )

    assert "--session" in one_sentence(piped())
    assert "session talk: claude-code" in piped("-s", "talk").stdout


def test_verify_reports_changed_rows(place: str) -> None:
    assert report("verify", "--ledger", place)["sound"]
    with closing(sqlite3.connect(place)) as link, link:
        link.execute("UPDATE messages SET body = X'00' WHERE id = 3")
    done = foldline("verify", "--ledger", place)
    assert done.returncode == 1
    assert "message 2 of segment 1" in done.stdout
    found = json.loads(foldline("verify", "--json", "--ledger", place).stdout)
    assert not wrong(found, documented("verify"))
    assert not found["sound"]


def flip_a_byte(url: str, *, compressed: bool) -> None:
    """Damage every stored message that is compressed, or every one that is not."""
    with closing(sqlite3.connect(url)) as link, link:
        rows = link.execute("SELECT body, id FROM messages").fetchall()
        chosen = [(body, id_) for body, id_ in rows if body.startswith(b"x") == compressed]
        assert chosen
        damaged = [(body[:9] + bytes([body[9] ^ 0xFF]) + body[10:], id_) for body, id_ in chosen]
        link.executemany("UPDATE messages SET body = ? WHERE id = ?", damaged)


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize(
    "command",
    [
        ["show", "-s", "3f0c"],
        ["recall", "the queue", "-s", "3f0c"],
        ["pin", "x", "-s", "3f0c"],
        ["unfold", "-s", "3f0c"],
        ["handoff", "3f0c", "--to", "markdown"],
        ["export", "-o", "-"],
        ["usage"],
    ],
    ids=lambda command: command[0],
)
def test_a_damaged_row_is_named_in_one_sentence(command: list[str], compressed: bool, place: str) -> None:
    flip_a_byte(place, compressed=compressed)
    assert "is damaged: foldline verify" in one_sentence(foldline(*command, "--ledger", place), code=4)


def test_prune_names_a_damaged_row(place: str) -> None:
    with library.open(place) as opened:
        opened.session("3f0c").recall("queue")  # the index is complete, so prune must read what it removes from it
    flip_a_byte(place, compressed=True)
    with closing(sqlite3.connect(place)) as link, link:
        link.execute("UPDATE entries SET at = ? WHERE branch = 1", (time.time() - 100 * 86_400,))
    done = foldline("prune", "--older-than", "90d", "--yes", "--ledger", place)
    assert "a message is damaged" in one_sentence(done, code=4)


def test_a_row_that_is_no_text_is_an_error_of_the_ledger(place: str) -> None:
    with closing(sqlite3.connect(place)) as link, link:
        link.execute("UPDATE messages SET body = CAST(X'7BFF' AS TEXT) WHERE id = 3")
    assert "Could not decode" in one_sentence(foldline("show", "-s", "3f0c", "--ledger", place), code=4)


def test_prune_lists_sessions_and_asks_before_it_deletes(place: str) -> None:
    with closing(sqlite3.connect(place)) as link, link:
        link.execute("UPDATE entries SET at = ? WHERE branch = 1", (time.time() - 100 * 86_400,))
    old = ("prune", "--older-than", "90d", "--ledger", place)
    assert report(*old) == {
        "ledger": place,
        "deleted": False,
        "sessions": [{"owner": "", "session": "3f0c"}],
    }
    done = foldline(*old)
    assert done.returncode == 2
    assert "3f0c" in done.stdout
    assert "--yes" in done.stderr
    assert len(report("sessions", "--ledger", place)["sessions"]) == 2
    assert report(*old, "--yes")["deleted"]
    assert [row["name"] for row in report("sessions", "--ledger", place)["sessions"]] == ["ticket-42"]
    assert "no session in" in foldline(*old).stdout
    for age in ("90", "0d", "soon", "-3d"):
        assert "at least 1 and a unit, such as 90d" in foldline("prune", "--older-than", age, "--ledger", place).stderr


def test_verify_and_prune_can_cover_all_owners(place: str, transcript: Path) -> None:
    assert foldline("import", str(transcript), "--ledger", place, "--owner", "bob").returncode == 0
    with closing(sqlite3.connect(place)) as link, link:
        (bob,) = link.execute("SELECT id FROM owners WHERE name = 'bob'").fetchone()
        link.execute("UPDATE entries SET at = 1 WHERE owner = ?", (bob,))
    assert report("verify", "--ledger", place)["sessions"] == 2
    found = report("verify", "--all-owners", "--ledger", place)
    assert found["sessions"] == 3
    assert {fault["owner"] for fault in found["faults"]} == {"bob"}
    assert report("prune", "--older-than", "1d", "--yes", "--ledger", place)["sessions"] == []
    everybody = ("prune", "--older-than", "1d", "--all-owners", "--ledger", place)
    assert "bob: 3f0c: " in foldline(*everybody).stdout
    assert report(*everybody, "--yes")["sessions"] == [{"owner": "bob", "session": "3f0c"}]
    assert report("verify", "--all-owners", "--ledger", place)["sound"]


@pytest.mark.parametrize(("answer", "left"), [("n\n", 2), ("y\n", 1)])
def test_prune_deletes_only_after_yes(place: str, answer: str, left: int) -> None:
    with closing(sqlite3.connect(place)) as link, link:
        link.execute("UPDATE entries SET at = 1 WHERE branch = 1")
    main, terminal = os.openpty()
    command = [*ENTRY, "prune", "--older-than", "90d", "--ledger", place]
    with subprocess.Popen(command, stdin=terminal, stdout=subprocess.PIPE, env=clean(), text=True) as running:
        os.close(terminal)
        os.write(main, answer.encode())
        assert running.stdout is not None
        assert "permanently delete" in running.stdout.read()
    os.close(main)
    assert len(report("sessions", "--ledger", place)["sessions"]) == left


# What cannot be used


@pytest.mark.parametrize("command", READING, ids=lambda command: command[0])
def test_a_reading_command_creates_no_ledger(command: list[str], tmp_path: Path) -> None:
    url, empty = tmp_path / "agent.db", tmp_path / "empty.db"
    empty.touch()
    for one in (url, empty):
        assert "there is no ledger" in one_sentence(foldline(*command, "--ledger", str(one)))
    assert not url.exists()
    assert empty.stat().st_size == 0


@pytest.mark.parametrize("command", [*READING, ["import"]], ids=lambda command: command[0])
def test_a_file_that_is_no_ledger_is_refused(command: list[str], transcript: Path, tmp_path: Path) -> None:
    text, database, future = tmp_path / "text.db", tmp_path / "other.db", tmp_path / "future.db"
    text.write_bytes(b"this is no ledger at all " * 100)
    with closing(sqlite3.connect(database)) as link, link:
        link.execute("CREATE TABLE recipes (name TEXT)")
    library.open(future).close()
    with closing(sqlite3.connect(future)) as link, link:
        link.execute("INSERT INTO migrations (number, name, at) VALUES (999, 'from the future', 0)")
    more = [str(transcript)] if command == ["import"] else []
    no_database = "is not a ledger (file is not a database): name another file"
    for one, says in ((text, no_database), (database, "not a ledger"), (future, "update foldline")):
        assert says in one_sentence(foldline(*command, *more, "--ledger", str(one)), code=4)
    assert "is a folder" in one_sentence(foldline(*command, *more, "--ledger", str(tmp_path)), code=4)


@contextmanager
def held(place: str) -> Iterator[None]:
    with closing(sqlite3.connect(place, isolation_level=None)) as link:
        link.execute("BEGIN IMMEDIATE")
        yield
        link.execute("ROLLBACK")


def test_a_ledger_can_be_read_while_another_process_writes(
    place: str, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledgers, "WAIT_SECONDS", 0.2)
    with held(place):
        for command in READING[:4]:
            assert foldline(*command, "--ledger", place).returncode == 0, command
        for writing in (["pin", "x", "-s", "3f0c"], ["unfold", "-s", "3f0c"], ["import", str(transcript), "-s", "new"]):
            assert "another process held the lock" in one_sentence(foldline(*writing, "--ledger", place), code=4)
    assert report("verify", "--ledger", place)["sound"]


def test_an_unreachable_server_exits_with_4() -> None:
    said = one_sentence(foldline("sessions", "--ledger", "postgresql://me:hunter2@127.0.0.1:9/none"), code=4)
    assert "check that the server runs" in said
    assert "hunter2" not in said


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_ledger_without_read_permission_is_refused(place: str) -> None:
    os.chmod(place, 0)
    one_sentence(foldline("sessions", "--ledger", place), code=4)


@pytest.mark.parametrize("command", [["show"], ["export", "-o", "-"], ["recall", "port"]], ids=lambda words: words[0])
def test_a_closed_pipe_is_no_error(command: list[str], place: str) -> None:
    whole = (
        [*ENTRY, *command, "--ledger", place, "-s", "3f0c"]
        if command[0] != "export"
        else [*ENTRY, *command, "--ledger", place]
    )
    with subprocess.Popen(whole, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean()) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert running.stderr.read() == b""
    assert running.returncode == 0


def test_ctrl_c_leaves_no_partial_import(transcript: Path, tmp_path: Path) -> None:
    url, pipe = str(tmp_path / "agent.db"), tmp_path / "slow.jsonl"
    assert foldline("import", str(transcript), "--ledger", url).returncode == 0
    os.mkfifo(pipe)
    with (
        subprocess.Popen(
            [*ENTRY, "import", str(pipe), "--ledger", url], stderr=subprocess.PIPE, env=clean()
        ) as running,
        pipe.open("wb") as writer,
    ):
        writer.write(b'{"foldline":1,"owner":""}\n{"branch":"main","session":"half","origin":null,')
        writer.flush()
        time.sleep(0.3)
        running.send_signal(signal.SIGINT)
        assert running.stderr is not None
        assert running.stderr.read().split() == [b"stopped"]
    assert running.returncode == 130
    assert [row["name"] for row in report("sessions", "--ledger", url)["sessions"]] == ["3f0c"]
    assert report("verify", "--ledger", url)["sound"]


def test_ctrl_c_waits_for_an_atomic_change() -> None:
    done: list[str] = []

    def write() -> None:
        with ledgers.defer_interrupt():
            os.kill(os.getpid(), signal.SIGINT)
            done.append("written")

    with pytest.raises(KeyboardInterrupt):
        write()
    assert done == ["written"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


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
