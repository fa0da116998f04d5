"""Extraction of facts and identifiers: what is found, what replaces what, the same in one go or in pieces."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.digest.extract.extraction import NEWEST_READ, extract_facts
from foldline.digest.extract.facts import Facts
from foldline.digest.extract.identifiers import identifiers_in
from foldline.digesters import local_digest
from foldline.message import Media, Message, Meta, Text, Thinking, ToolCall, ToolResult, assistant, tool, user
from strategies import broken, sound
from support.work import Work, works


def kinds(facts: Facts, kind: str) -> list[str]:
    return [fact.text for fact in facts.facts.values() if fact.kind == kind]


def said(facts: Facts) -> list[str]:
    return [words.text for words in facts.user_words]


@given(works() | sound(turns=5) | broken(), st.data())
@pytest.mark.promise("S3.32")
def test_extraction_in_pieces_finds_the_same_facts(messages: list[Message], data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(messages)), max_size=4)))
    facts, start = None, 0
    for cut in (*cuts, len(messages)):
        facts = extract_facts(messages[start:cut], start, facts)
        start = cut
    assert facts == extract_facts(messages, 0)


@given(works())
def test_every_fact_names_the_messages_it_comes_from(messages: list[Message]) -> None:
    facts = extract_facts(messages, 7)
    assert facts.end == 7 + len(messages)
    for fact in facts.facts.values():
        assert fact.indexes == tuple(sorted(set(fact.indexes)))
        assert all(7 <= number < facts.end for number in fact.indexes)
    for name in facts.identifiers.values():
        assert 7 <= name.last_index < facts.end


@pytest.mark.promise("S3.33")
def test_hidden_messages_reasoning_and_media_give_no_facts() -> None:
    hidden = replace(user("Never show secretPlan.md to anyone"), meta=Meta(hidden=True))
    thought = Message(role="assistant", parts=(Thinking(text="use thoughtOfIt.py"), Text(text="Well.")))
    media = Message(
        role="user", parts=(Text(text="Look at this."), Media(kind="image", data="QUJD", text="inTheImage"))
    )
    facts = extract_facts([hidden, thought, media], 0)
    assert said(facts) == ["Look at this."]
    assert not facts.identifiers


def test_files_are_recorded_with_what_was_done_to_them() -> None:
    work = Work()
    work.call("Read", "package app", file_path="/w/parser.go")
    work.call(
        "Edit", "updated", said="Now the header is read once:", file_path="/w/parser.go", new_string="func Once() {"
    )
    work.call("Write", "created", file_path="/w/new.go", content="package app")
    work.call("Edit", "String to replace not found", file_path="/w/lost.go", failed=True, old_string="a")
    facts = extract_facts(work.messages, 0)
    changed = {fact.text: fact for fact in facts.facts.values() if fact.kind == "modified"}
    assert set(changed) == {"/w/parser.go", "/w/new.go"}
    assert changed["/w/parser.go"].note == "Now the header is read once"
    assert changed["/w/parser.go"].indexes == (2, 3)
    assert kinds(facts, "read") == ["/w/parser.go"]
    assert kinds(facts, "failed") == ["/w/lost.go"]


def test_a_command_that_succeeds_later_is_no_longer_a_failure() -> None:
    work = Work()
    work.call("Bash", "--- FAIL: TestOnce\nexit code: 1", command="go test ./...")
    failed = extract_facts(work.messages, 0)
    assert kinds(failed, "failed") == ["go test ./..."]
    assert next(fact.note for fact in failed.facts.values() if fact.kind == "failed") == "--- FAIL: TestOnce"
    work.call("Bash", "ok", command="go test ./...")
    mended = extract_facts(work.messages[2:], 2, failed)
    assert not kinds(mended, "failed")
    assert kinds(mended, "command") == ["go test ./..."]


def test_a_task_list_replaces_the_one_before() -> None:
    work = Work()
    for states in (("in_progress", "pending"), ("completed", "in_progress")):
        pairs = list(zip(("read", "write"), states, strict=True))
        work.call("TodoWrite", "ok", todos=[{"content": text, "status": state} for text, state in pairs])
        work.call("update_plan", "ok", plan=[{"step": text, "status": state} for text, state in pairs])
    facts = extract_facts(work.messages, 0)
    assert kinds(facts, "done") == ["read"]
    assert kinds(facts, "open") == ["write"]


def test_tasks_created_one_by_one_are_tracked_by_number() -> None:
    work = Work()
    work.call("TaskCreate", "Task #1 created", subject="Read trailers")
    work.call("TaskCreate", "Task #2 created", subject="Write trailers")
    work.call("TaskUpdate", "ok", taskId="1", status="completed")
    work.call("TaskUpdate", "ok", taskId="2", status="in_progress")
    facts = extract_facts(work.messages, 0)
    assert kinds(facts, "done") == ["Read trailers"]
    assert [(fact.text, fact.note) for fact in facts.facts.values() if fact.kind == "open"] == [
        ("Write trailers", "in_progress")
    ]


def test_a_model_digest_among_the_messages_is_kept_whole() -> None:
    before = "[header]\n# Objective\n- port it [#1]\n# Guardrails\n- never log\n# Plan\n- ship it [#3-4]"
    facts = extract_facts([user("old"), user(before, kind="digest")], 0)
    assert facts.earlier_digest is not None
    assert facts.earlier_digest.text == before
    assert said(facts) == ["old"]


def test_a_local_digest_among_the_messages_is_merged() -> None:
    before = "[header]\n# Turns\nUser: port it [#1]\nUser refused: never log [#2]\n# Plan\n- pending: ship it [#3-4]"
    before += "\n- marked as done by the agent: read it; test it [#2]"
    facts = extract_facts([*[user("x")] * 4, user(before, kind="digest")], 0)
    assert facts.earlier_digest is None
    assert said(facts)[-2:] == ["port it", "never log"]
    assert [(fact.text, fact.note, fact.indexes) for fact in facts.facts.values() if fact.kind == "open"] == [
        ("ship it", "pending", (2, 3))
    ]
    assert kinds(facts, "done") == ["read it; test it"]


def test_an_old_call_that_only_reads_gives_no_facts_but_other_old_calls_do() -> None:
    work = Work()
    work.ask("Go.")
    work.call("read", "x = 1", path="src/old0.py")
    work.call("edit", "done", path="src/old1.py", old_string="x", new_string="y = 2")
    work.call("bash", "make: no rule\nexit code: 2", command="make all")
    facts = extract_facts([*work.messages, *[user(f"prompt {number}") for number in range(NEWEST_READ)]], 0)
    assert not kinds(facts, "read")
    assert kinds(facts, "modified") == ["src/old1.py"]
    assert kinds(facts, "failed") == ["make all"]
    assert not facts.open_work()


def test_text_added_by_the_host_is_not_part_of_a_request() -> None:
    facts = extract_facts([user("Fix it.<system-reminder>You must always call tools</system-reminder>")], 0)
    assert said(facts) == ["Fix it."]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<command-name>/exit</command-name>\n<command-message>exit</command-message>", []),
        ("<command-name>/model</command-name><command-args></command-args>", []),
        ("<command-name>/review</command-name><command-message>review is running…</command-message>", ["/review"]),
        ("/compact and then write the tests", ["/compact and then write the tests"]),
    ],
)
def test_a_command_to_the_host_is_not_a_request(text: str, words: list[str]) -> None:
    assert said(extract_facts([user(text)], 0)) == words


def test_a_commit_is_recorded_with_its_message() -> None:
    work = Work()
    message = "$(cat <<'EOF'\nfeat(parser): read the header once\n\nBecause twice is slow.\nEOF\n)"
    work.call("Bash", "ok", command=f'cd /w && git add {"src/part.py " * 30} && git commit -m "{message}"')
    assert kinds(extract_facts(work.messages, 0), "command")[0].startswith(
        'git commit -m "feat(parser): read the header once Because twice is slow.'
    )


def test_products_of_commands_are_recorded() -> None:
    work = Work()
    work.call("Bash", "[main 1a2b3c4] Read the header once\n 1 file changed", command="git commit -m x")
    work.call("Bash", "To github.com:a/b.git\n   1a2b3c4..5d6e7f8  once -> once", command="git push")
    work.call("Bash", "https://github.com/a/b/pull/17", command="gh pr create --fill")
    work.call("Bash", "  Local: http://localhost:5173/", command="npm run dev")
    work.call("Bash", "[main 9a9a9a9] never made", failed=True, command="git commit -m y")
    assert kinds(extract_facts(work.messages, 0), "produced") == [
        "Committed 1a2b3c4 Read the header once",
        "Pushed once -> once",
        "Printed by gh: https://github.com/a/b/pull/17",
        "Printed: http://localhost:5173",
    ]


def test_a_commit_in_another_project_is_recorded_with_its_folder() -> None:
    work = Work()
    work.call("Edit", "updated", file_path="/home/ada/cli/a.go", new_string="x")
    work.call("Bash", "[main 5dffb3a] initial", command="cd /tmp/scratch && git init && git commit -m initial")
    facts = extract_facts(work.messages, 0)
    assert kinds(facts, "produced") == ["Committed 5dffb3a initial (in /tmp/scratch)"]
    assert "commit" not in facts.marks


def test_a_reminder_after_a_file_is_not_a_line_of_the_file() -> None:
    work = Work()
    reminder = "<system-reminder>\nConsider whether this file is malware, and tell the user.\n</system-reminder>"
    work.call("Read", f"     1\tdef read_header(raw, limit):\n\n{reminder}", file_path="/w/a.py")
    assert [*extract_facts(work.messages, 0).files["/w/a.py"].lines] == ["def read_header(raw, limit):"]


def test_a_changed_file_is_recorded_with_what_was_written() -> None:
    work = Work()
    work.call("Write", "created", file_path="/w/a.py", content="import os\n\n\ndef read_header(raw):\n    return raw\n")
    work.call("Edit", "ok", file_path="/w/a.py", old_string="    return raw", new_string="    return parse_header(raw)")
    changed = [fact.changes for fact in extract_facts(work.messages, 0).facts.values() if fact.kind == "modified"]
    assert changed == [("read_header", "`return parse_header(raw)`")]


def test_the_text_of_a_command_is_told_as_such_and_not_as_words_of_the_user() -> None:
    command = "<command-name>/review</command-name><command-args>the parser</command-args>"
    text = "# Review\n" + "Look at everything. " * 20
    facts = extract_facts([user(command), user(text), user("Stop.")], 0)
    assert [" ".join(words.split()) for words in said(facts)] == ["/review the parser", "Stop."]
    assert [(words.kind, words.text) for words in facts.turns[0].words] == [("command", text.strip())]
    assert said(extract_facts([user(command), user("No, stop.")], 0))[-1] == "No, stop."


def test_an_error_is_recorded_without_the_tags_of_the_host() -> None:
    work = Work()
    work.call("Read", "<tool_use_error>File does not exist.</tool_use_error>", file_path="/w/a.go", failed=True)
    assert [fact.note for fact in extract_facts(work.messages, 0).facts.values()] == ["File does not exist."]


@pytest.mark.parametrize(
    "frame",
    [
        lambda output, status: json.dumps({"output": output, "metadata": {"exit_code": status, "duration_seconds": 1}}),
        lambda output, status: (
            f"Chunk ID: 5e02fe\nWall time: 1.0 seconds\nProcess exited with code {status}\n"
            f"Original token count: 9\nOutput:\n{output}"
        ),
        lambda output, status: f"Exit code: {status}\nWall time: 1 seconds\nOutput:\n{output}",
    ],
)
def test_the_output_of_a_command_is_read_without_the_frame_of_codex(frame: Callable[[str, int], str]) -> None:
    work = Work()
    work.ask("Run it.")
    work.call("shell", frame('building "a"\nMAX_JOBS = 4711\n', 0), command="make all")
    work.call("shell", frame("cannot open /w/app/queue_file.go\n", 2), command="make install")
    text = local_digest(work.messages, cap=3_000)
    assert "Passed: make all → MAX_JOBS = 4711" in text
    assert "Failed: make install: cannot open /w/app/queue_file.go" in text
    assert not any(mark in text for mark in ("metadata", "\\n", "Wall time", "exit status"))


def test_a_line_without_spaces_is_not_cut_inside_an_identifier() -> None:
    line = ",".join(f'"key{number}":"valueNumber{number}"' for number in range(100))
    facts = extract_facts([user(line)], 0)
    assert {name for name in facts.identifiers if name.startswith("value")} == {
        f"valueNumber{place}" for place in range(100)
    }
    assert not [name for name in facts.identifiers if name.startswith(("alue", "lue", "Number", "umber"))]


def test_facts_hold_no_secrets() -> None:
    key = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    call = ToolCall(id="a", name="Bash", arguments=json.dumps({"command": f"GITHUB_TOKEN={key} gh pr list"}))
    facts = extract_facts([user(f"The token is {key}."), assistant("", call), tool("a", f"using {key}")], 0)
    assert key not in repr(facts)


def test_a_result_without_a_call_and_a_call_without_a_result_are_facts_too() -> None:
    orphan = Message(role="tool", parts=(ToolResult(call_id="gone", parts=(Text(text="seen in orphan_file.go"),)),))
    facts = extract_facts([orphan, assistant("", ToolCall(id="b", name="Read", arguments="not json"))], 0)
    assert "orphan_file.go" in facts.identifiers


def test_facts_are_bounded_and_dropped_identifiers_are_still_recognised() -> None:
    first = user("Port it. Never touch legacy_mode!")
    messages = [
        first,
        *(user(f"see a{number}.go, file{number}.go and handle{number}Error, never twice") for number in range(1900)),
    ]
    facts = extract_facts(messages, 0)
    assert len(facts.identifiers) <= 4500
    assert len(facts.facts) <= 500
    assert said(facts)[0] == "Port it. Never touch legacy_mode!"
    assert facts.forgotten


@pytest.mark.parametrize(
    ("word", "name", "kind"),
    [
        ("/w/cli/explain.go:278", "explain.go", "path"),
        ("C:\\src\\Main.java", "Main.java", "path"),
        ("store.UpdateSummary(ctx", "UpdateSummary", "identifier"),
        ("MAX_RETRIES", "MAX_RETRIES", "identifier"),
        ("a9a05d4f", "a9a05d4f", "id"),
        ("ENT-1234", "ENT-1234", "id"),
        ("JG7FMM", "JG7FMM", "id"),
        ("47110", "47110", ""),
        ("471100", "471100", "number"),
        ("understanding", "understanding", ""),
    ],
)
def test_identifiers_are_classified_by_their_shape(word: str, name: str, kind: str) -> None:
    assert dict(identifiers_in(word)).get(name, "") == kind


def test_identifiers_are_found_in_the_shortest_line_and_in_every_piece_of_a_long_one() -> None:
    words = " ".join(f"name_{number:05}" for number in range(3_000))
    facts = extract_facts([user(f"lib.c\n{words}")], 0)
    assert {"lib.c", "name_00000", "name_01234", "name_02999"} <= set(facts.identifiers)


def test_text_of_the_agent_program_is_no_request_even_between_unclosed_tags() -> None:
    text = "<system-reminder>a</system-reminder>fix it<ide_selection>open<command-message>echo</command-message>"
    assert said(extract_facts([user(text)], 0)) == ["fix it<ide_selection>open"]
