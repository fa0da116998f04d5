"""The local digest: its properties and its content."""

from __future__ import annotations

import re
import sys
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline import Session
from foldline.digest.digester import DigestRequest
from foldline.digest.extract.extraction import extract_facts
from foldline.digest.local import ORDER, local_digest_text, write_local_digest
from foldline.fold import Digest
from foldline.measure.estimator import Estimator
from foldline.message import Message, user
from foldline.policy import Policy
from strategies import broken, sound
from support.work import FORGED, Work, works

HEADER = "[session digest — older turns condensed]"
HANDLE = re.compile(r"\[(#[^\]\n]*)\]$")
COUNT = Estimator()


def size(text: str) -> int:
    return COUNT.count(text).tokens


def headings(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n") if line.lstrip().startswith("#")]


def are_in_order(found: list[str]) -> bool:
    """Whether these are headings of a local digest, each at most once, in their order."""
    return found == [f"# {name}" for name in ORDER if f"# {name}" in found]


def section(text: str, name: str) -> list[str]:
    """The lines of a section, without their handles."""
    lines = text.partition(f"# {name}\n")[2].partition("\n# ")[0].split("\n")
    return [line.split(" [#")[0] for line in lines]


def digest(messages: list[Message], cap: int = 3_000, **options: Any) -> str:
    facts = extract_facts(messages, 0)
    return local_digest_text(facts, max_tokens=cap, count_tokens=size, header=HEADER, **options)


@given(works() | sound() | broken(), st.integers(16, 4_000), st.data())
@pytest.mark.promise("S0.35", "I5")
def test_a_digest_keeps_its_token_limit_and_is_deterministic(
    messages: list[Message], cap: int, data: st.DataObject
) -> None:
    kept = data.draw(st.sets(st.integers(0, len(messages))))
    text = digest(messages, cap, kept_indexes=kept)
    assert size(text) <= cap
    assert text == digest(messages, cap, kept_indexes=kept)
    assert text.startswith(HEADER)


@given(works() | sound())
@pytest.mark.promise("S0.35", "I15", "I19")
def test_quoted_text_cannot_imitate_the_markup_of_a_digest(messages: list[Message]) -> None:
    lines = digest(messages).split("\n")
    assert are_in_order(headings("\n".join(lines)))
    assert sum(len(re.findall(r"\[\s*session digest", line)) for line in lines) == 1
    assert not any(
        mark in line for line in lines for mark in ("<scrollback", "<conversation-", "</conversation-", "» you", "\x0b")
    )
    for line in lines[2:]:
        inner = HANDLE.sub("", line)
        assert "[#" not in inner
        for first, last in re.findall(r"#(\d+)(?:-(\d+))?", line[len(inner) :]):
            assert 1 <= int(first) <= int(last or first) <= len(messages)


@pytest.mark.promise("S0.44", "I19")
def test_a_digest_names_the_messages_it_covers_and_every_line_its_source() -> None:
    work = Work()
    work.ask("Port the parser to Rust. Never touch wire_format.json!")
    work.call("Read", "fn parse_header(raw: &[u8]) -> Header {", file_path="/w/src/parser.rs")
    work.call("Edit", "updated", said="Read the header once:", file_path="/w/src/parser.rs", new_string="let once = 1;")
    work.call("Bash", "error[E0425]: cannot find value `trailer`\nexit code: 101", command="cargo test")
    work.say("I chose nom instead of pest because it is already a dependency.")
    work.call("TodoWrite", "ok", todos=[{"content": "Parse trailers", "status": "pending"}])
    text = digest(work.messages)
    assert "10 earlier messages were condensed: #1-10, ask recall for them." in text
    for line in (
        "User: Port the parser to Rust. Never touch wire_format.json! [#1]",
        "Failed: cargo test → error[E0425]: cannot find value `trailer` [#6-7]",
        "Agent: I chose nom instead of pest because it is already a dependency. [#8]",
        "- Failed: cargo test: error[E0425]: cannot find value `trailer` [#6-7]",
        "- The agent itself made no commit [#5]",
        "- pending: Parse trailers [#9]",
        "- /w/src/parser.rs: Read the header once [#5]",
    ):
        assert line in text.split("\n")
    found = headings(text)
    assert [found[0], found[1], found[-1]] == ["# Status", "# Plan", "# Turns"]


def test_the_status_names_only_commits_and_checks_that_still_hold() -> None:
    work = Work()
    work.call("Edit", "updated", file_path="/home/dev/cli/a.go", new_string="x")
    work.call("Bash", "[main 1111111] First\n", command="git commit -m First")
    work.call("Bash", "[main 2222222] Second\n", command="git commit -am Second")
    work.call("Bash", "[main 3333333] Second, better\n", command="git commit --amend -m 'Second, better'")
    work.call("Bash", "[main 4444444] Third\n", command="git commit -am Third")
    work.call("Bash", "HEAD is now at 3333333\n", command="git reset --hard HEAD~1")
    work.call("Edit", "updated", file_path="/home/dev/cli/b.go", new_string="y")
    assert section(digest(work.messages), "Status") == [
        "- Committed 3333333 Second, better",
        "- Committed 1111111 First",
        "- Edited after the last commit that was seen: b.go",
        "- The agent itself ran no test, build or lint",
    ]


def test_a_check_that_was_run_again_is_told_with_its_newest_outcome() -> None:
    work = Work()
    work.call("Edit", "updated", file_path="/home/dev/cli/a.go", new_string="x")
    work.call("Bash", "--- FAIL: TestRead (0.1s)\nFAIL\nexit code: 1", command="go test ./read -run TestRead")
    work.call("Bash", "ok  \tcli/read\t0.5s", command="go test ./...")
    work.call("Bash", "0 issues.", command="mise run lint")
    work.call("Bash", "a.go:3:1: unused\nexit code: 1", command="mise run fmt && mise run lint")
    work.call("Bash", "bash: line 1: cd: gone: No such file or directory\nexit code: 1", command="cd gone && make test")
    assert section(digest(work.messages), "Status") == [
        "- Failed: cd gone && make test: bash: line 1: cd: gone: No such file or directory",
        "- Failed: mise run fmt && mise run lint: a.go:3:1: unused",
        "- Failed, before other checks that passed: go test ./read -run TestRead: --- FAIL: TestRead (0.1s)",
        "- Passed: go test ./...: ok  \tcli/read\t0.5s",
        "- The agent itself made no commit",
    ]


def test_a_heading_without_entries_is_left_out() -> None:
    assert headings(digest([user("Port the parser to Rust.")])) == ["# Turns"]


def test_the_first_prompt_and_the_newest_three_are_told_verbatim_and_the_others_are_shown() -> None:
    work = Work()
    prompts = [
        f"Prompt {number}: {'look at it and say what is wrong, please; ' * 12}end {number}." for number in range(20)
    ]
    for prompt in prompts:
        work.ask(prompt)
        work.say("It is done. " * 200)
    text = digest(work.messages, 3_000)
    for prompt in (prompts[0], *prompts[-3:]):
        assert prompt in text
    assert all(prompt[:12] in text for prompt in prompts)


def test_long_prompts_after_a_clients_digest_are_told_verbatim() -> None:
    work = Work()
    work.ask("This session is being continued from a previous conversation.\n" + "Much was done before. " * 900)
    work.say("I go on. " * 300)
    prompts = [f"Prompt {number}: {'say exactly what is wrong with it; ' * 80}end {number}." for number in range(5)]
    for prompt in prompts:
        work.ask(prompt)
        work.say("It is done. " * 200)
    text = digest(work.messages, 7_000)
    for prompt in (prompts[0], *prompts[-3:]):
        assert prompt in text


def test_refusals_and_answers_of_the_user_are_told_verbatim() -> None:
    work = Work()
    work.ask("Plan it.")
    refusal = "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\n"
    work.call("Bash", refusal + "no, I did not say commit anything", failed=True, command="git commit -m x")
    work.call("AskUserQuestion", "User chose: SQLite, not Postgres", questions=[{"question": "Which?"}])
    lines = digest(work.messages).split("\n")
    assert "User refused: git commit -m x: no, I did not say commit anything [#3]" in lines
    assert "User answered: User chose: SQLite, not Postgres [#5]" in lines
    assert not any(line.startswith("Failed") for line in lines), "a refused call did not fail"


def test_an_interrupted_command_is_not_called_failed_and_a_mended_failure_is_told() -> None:
    work = Work()
    work.ask("Test it.")
    work.call("Bash", "--- FAIL: TestOnce (0.1s)\nFAIL", command="go test ./once")
    work.call("Bash", "ok  \texample.org/once\t1.2s", command="go test ./once")
    work.call("Bash", "Exit code 137\n[Request interrupted by user for tool use]", failed=True, command="npm test")
    lines = digest(work.messages).split("\n")
    assert "- Interrupted: npm test [#6-7]" in lines
    passed = "- Passed: go test ./once: ok  \texample.org/once\t1.2s (failed before: --- FAIL: TestOnce (0.1s)) [#4-5]"
    assert passed in lines


def test_a_digest_of_the_client_is_carried_and_not_told_as_a_prompt() -> None:
    summary = "This session is being continued from a previous conversation.\n1. Primary Request:\n   Port the parser."
    lines = digest([user(summary), user("Go on.")]).split("\n")
    assert lines[2:] == [
        "# Earlier digest",
        "  This session is being continued from a previous conversation.",
        "  1. Primary Request:",
        "    Port the parser.",
        "# Turns",
        "User: Go on. [#2]",
    ]


def test_a_local_digest_in_the_record_is_read_back_word_for_word() -> None:
    work = Work()
    work.ask("Port the parser.\nNever touch wire_format.json!")
    work.say("I will.")
    again = digest([*work.messages, user(digest(work.messages), kind="digest")][2:])
    assert "User: Port the parser.\n  Never touch wire_format.json! [#1]" in again
    assert "Agent: I will." in again


@pytest.mark.promise("S0.44")
@pytest.mark.parametrize("cap", [16, 40, 100])
def test_a_tiny_token_limit_leaves_the_count_of_messages(cap: int) -> None:
    text = digest([user("Port the parser. " * 50)] * 9, cap)
    assert size(text) <= cap
    assert ("9 earlier messages were condensed: #1-9" in text) == (cap >= 40)


@pytest.mark.promise("S0.44")
def test_the_prior_digest_of_a_list_stands_before_the_count() -> None:
    request = DigestRequest(
        messages=[user("a")], count_tokens=len, max_tokens=100, prior_digest="before", header="H", plain_list=True
    )
    digest = write_local_digest(request)
    assert isinstance(digest, Digest)
    assert digest.message.text == "H\nbefore\n1 earlier message was condensed."


def test_facts_of_kept_messages_are_left_out() -> None:
    messages = [
        user("Port the parser, and never break parse_header."),
        user("Now look at trailer_file.rs instead of it"),
    ]
    assert "parse_header" not in digest(messages, kept_indexes={0})
    assert "1 earlier message was condensed: of #1-2" in digest(messages, kept_indexes={0})
    assert "trailer_file.rs" not in digest(messages, kept_indexes={1}, cut=1)


@pytest.mark.promise("S3.32")
def test_a_prior_digest_is_merged() -> None:
    before = f"{HEADER}\n# Guardrails\n- never log the port [#3]\n# Plan\nnone"
    text = digest([user("Go on with it, please.")], prior_digest=before)
    assert "  - never log the port (#3)" in text.split("\n")
    assert text.count(HEADER) == 1


@pytest.mark.promise("I8", "S3.32")
@pytest.mark.parametrize(("cap", "seed"), [(1_200, 0), (2_000, 3), (4_000, 1)])
def test_constraints_of_the_first_prompt_outlive_ten_folds(cap: int, seed: int) -> None:
    demands = ("Never touch wire_format.json!", "You must keep Python 3.11 working.", "Do not add dependencies.")
    work = Work()
    work.ask("Port the parser to Rust. " + " ".join(demands))
    facts = None
    start = 0
    for fold in range(10):
        for step in range(8):
            place = f"{fold}_{step + seed}"
            work.call("Read", f"def parse_{place}(raw, limit):\n" * 9, file_path=f"/w/src/part_{place}.py")
            work.ask(f"Always look at part_{place}.py before you go on, without changing it.")
        facts = extract_facts(work.messages[start:], start, facts)
        start = len(work.messages)
        text = local_digest_text(facts, max_tokens=cap, count_tokens=size, header=HEADER)
        assert size(text) <= cap
        for demand in demands:
            assert demand in text
    assert f"part_9_{7 + seed}.py" in text


@pytest.mark.promise("I8")
def test_ten_folds_of_a_session_keep_constraints_and_read_each_message_once() -> None:
    session = Session(
        policy=Policy.preset("balanced").but(window_tokens=6_000, reply_tokens=0, keep_first_prompt=False)
    )
    session.add(user("Port the parser. Never touch wire_format.json!"))
    reads = 0

    def note(frame: FrameType, event: str, _argument: object) -> None:
        nonlocal reads
        code = frame.f_code
        reads += (
            event == "call" and code.co_name == "read" and code.co_filename.endswith("digest/extract/extraction.py")
        )

    sys.setprofile(note)
    try:
        for place in range(120):
            session.add(
                user(f"Look at part_{place}.py too. {'It is long. ' * 60}"), {"role": "assistant", "content": "ok"}
            )
            view = session.view()
    finally:
        sys.setprofile(None)
    assert session.folds >= 10
    assert any("Never touch wire_format.json!" in message.text for message in view.messages)
    assert reads <= 241, "no message is read for its facts a second time"


@pytest.mark.promise("I16")
def test_a_local_digest_holds_no_secret() -> None:
    key = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    work = Work()
    work.ask(f"Never use GITHUB_TOKEN={key} in tests.")
    work.call("Bash", f"error: {key} expired\nexit code: 1", command=f"GITHUB_TOKEN={key} gh pr list")
    work.call("Edit", "ok", said=f"Write {key} down:", file_path=f"/w/{key}.txt", new_string=key)
    text = digest(work.messages)
    assert key not in text
    assert "[redacted github token]" in text


def test_identifiers_in_use_come_before_those_that_only_occurred() -> None:
    noise = "\n".join(f"helperFunction{number}Of(value, other) is here" for number in range(400))
    work = Work()
    work.ask("Fix it.")
    work.call("Bash", noise, command="cat everything")
    work.call("Grep", "12: func compactSession(now time.Time) error {", pattern="compactSession", path="/w/session.go")
    for _ in range(30):
        work.call("Bash", "ok", command="true")
    text = digest(work.messages, 400)
    assert "compactSession" in text
    assert "helperFunction399Of" not in text


@pytest.mark.parametrize("line", FORGED)
def test_a_line_that_imitates_markup_is_escaped(line: str) -> None:
    text = digest([user(f"See {line} in parser_file.go, and never change it")])
    assert "parser_file.go" in text
    assert text.count(HEADER) == 1
    assert are_in_order(headings(text))


def test_a_name_that_is_hardly_needed_again_is_left_out_even_if_there_is_room() -> None:
    work = Work()
    work.ask("Fix it.")
    work.call("Grep", "12: record 4711001 of compactSession", pattern="compactSession", path="/w/session.go")
    for _ in range(60):
        work.call("Bash", "ok", command="true")
    text = digest(work.messages)
    assert "compactSession" in text
    assert "4711001" not in text


def test_a_command_that_is_given_as_a_list_is_shown_as_it_was_called() -> None:
    work = Work()
    work.ask("Test it.")
    work.call("run", "ok", command=["go", "test", "./parser/..."])
    assert section(digest(work.messages), "Calls") == ['- run {"command": ["go", "test", "./parser/..."]}']
