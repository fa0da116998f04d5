"""What the result of a call proves: an outcome is stated only if the record shows it."""

from __future__ import annotations

import pytest

from foldline.call_outcomes import call_outcome
from foldline.tool_calls import InterpretedCall


@pytest.mark.parametrize(
    ("command", "result", "status"),
    [
        ("pytest -q", "...\n3 passed in 0.1s", "passed"),
        ("go test ./... 2>&1 | tail -20", "ok  \texample.org/a\t1.2s", "passed"),
        ("make", "Exit code: 0\ndone", "passed"),
        ("go test ./... | tail -20", "Exit code: 0\nsomething", ""),
        ("mise run lint | tail -5 && mise run test | tail", "ok  \texample.org/a\t(cached)", ""),
        ("pytest -q; echo done", "3 passed in 0.1s", ""),
        ("go test ./... | grep ok", "ok  \texample.org/a\t1.2s", ""),
        ("go test -run Nothing ./a", "ok  \texample.org/a\t1.2s [no tests to run]", ""),
        ("go test ./... | tail -20", "--- FAIL: TestOnce (0.1s)\nok  \texample.org/a\t1.2s", ""),
        ("go test ./... | tail -20", "--- FAIL: TestOnce (0.1s)\nFAIL", "failed"),
        ("cargo test", "error[E0425]: cannot find value\nexit code: 101", "failed"),
        ("grep -rn nothing src", "Exit code 1", ""),
        ("cd /w && go env && grep -rn nothing src", "Exit code 1", ""),
        ("cat run.log", "ok  \texample.org/a\t1.2s", ""),
        ("sleep 5 && tail run.log", "Exit code: 0\n3 passed in 0.1s", ""),
        ("bash -c 'cd /w && grep -rn nothing src'", "Exit code 1", ""),
        ("cd /w && go vet ./...", "Exit code 1\nvet: a.go:3:1: undefined: b", "failed"),
        ("make", "<tool_use_error>Sibling tool call errored</tool_use_error>", "interrupted"),
        ("cat notes.md", "the job ended with exit code 3\nand more", ""),
        ("git commit -m x", "The user doesn't want to proceed with this tool use.", "refused"),
        ("npm test", "Exit code 137\n[Request interrupted by user for tool use]", "interrupted"),
        ("npm test", "ok so far\nExit code: 143", "interrupted"),
        ("npm test", "Command timed out after 2m 0.0s", "interrupted"),
        ("npm test | tail", "Exit code 137", ""),
        ("go build ./... && go test ./... | tail", "Exit code 1\na.go:4:1: syntax error: unexpected type", "failed"),
        ("go build ./... && go test ./... | grep ok", "Exit code 1", ""),
    ],
)
def test_an_outcome_is_stated_only_if_the_result_proves_it(command: str, result: str, status: str) -> None:
    call = InterpretedCall(kind="run", command=command)
    assert call_outcome(result, failed=False, call=call).status == status


def test_a_search_without_a_match_did_not_fail() -> None:
    call = InterpretedCall(kind="run", command="grep -rn nothing src")
    assert call_outcome("(no output)\n\nCommand exited with code 1", failed=True, call=call).status == ""


def test_an_interrupted_edit_was_not_done() -> None:
    outcome = call_outcome("[Request interrupted by user for tool use]", failed=True, call=InterpretedCall(kind="edit"))
    assert outcome.status == "interrupted"
    assert not outcome.is_done


def test_a_failed_lint_is_told_with_the_line_of_its_first_issue() -> None:
    issue = "[lint] cmd/registry.go:27:1: Get returns interface (ireturn)"
    result = f"Exit code 1\n{issue}\n[lint] func Get(name string) (Strategy, error) {{\n[lint] ERROR task failed"
    call = InterpretedCall(kind="run", command="mise run lint")
    assert call_outcome(result, failed=True, call=call) == ("failed", issue)
