"""Dead ends that are noticed by themselves, and everything that is none."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.watch.deadends import MOST, DeadEnd, DeadEnds
from support.agent_events import EVENTS, answer, call, reply, result, said

pytestmark = pytest.mark.promise("S1.35")

RED = "--- FAIL: TestFold (0.0{0}s)\n    fold_test.go:{0}1: expected 3, got {1}\nFAIL\n"
GREEN = "ok  \texample/fold\t0.4s\n"


class Agent:
    """An agent at work, and what was noticed about it."""

    def __init__(self) -> None:
        self.watch = DeadEnds()
        self.found: list[DeadEnd] = []
        self._ids: Iterator[int] = count(1)

    def does(self, name: str, text: str = "ok", *, error: bool = False, **given: Any) -> str:
        """One call and its result; the id of the call."""
        name_of_call = f"t{next(self._ids)}"
        for event in (reply(9, call(name, name_of_call, **given)), answer(text, name_of_call, error=error)):
            self.found += self.watch.feed(event)
        return name_of_call

    def edits(self, old: str, new: str, path: str = "fold.go", **fields: Any) -> str:
        return self.does("Edit", file_path=path, old_string=old, new_string=new, **fields)

    def tests(self, text: str, *, error: bool = False) -> str:
        return self.does("Bash", text, error=error, command="cd /work && go test ./... 2>&1 | tail -20")

    def ends(self) -> list[DeadEnd]:
        self.found += self.watch.feed(result())
        return self.found

    @property
    def kinds(self) -> list[str]:
        return [found.kind for found in self.ends()]


def test_the_same_call_failing_twice_in_the_same_way() -> None:
    agent = Agent()
    first = agent.does(
        "Bash", "Exit code 127\nzsh: command not found: foo", error=True, command="foo x", description="a"
    )
    second = agent.does(
        "Bash", "Exit code 127\nzsh: command not found: foo", error=True, command="foo x", description="b"
    )
    (found,) = agent.ends()
    assert found.kind == "failed again"
    assert found.evidence == (first, second)
    assert "`foo x` failed 2 times" in found.text
    assert "command not found: foo" in found.text


def test_a_call_that_worked_in_between_is_no_dead_end() -> None:
    agent = Agent()
    for error in (True, False, True):
        agent.does("Bash", "Error: timeout" if error else "fine", error=error, command="deploy")
    assert agent.kinds == []


def test_another_failure_of_the_same_call_is_none() -> None:
    agent = Agent()
    agent.does("Bash", "Error: no such flag", error=True, command="deploy")
    agent.does("Bash", "Error: not signed in", error=True, command="deploy")
    assert agent.kinds == []


def test_a_tool_that_fails_whatever_it_is_given() -> None:
    agent = Agent()
    for pattern in "abc":
        agent.does("Grep", "ENOENT: no such file or directory, posix_spawn 'rg'", error=True, pattern=pattern)
    (found,) = agent.ends()
    assert "Grep fails whatever it is given, 3 times" in found.text


@pytest.mark.parametrize(
    "text",
    [
        "The user doesn't want to proceed with this tool use.",
        "<tool_use_error>Sibling tool call errored</tool_use_error>",
        "<tool_use_error>File has not been read yet. Read it first.</tool_use_error>",
    ],
)
def test_what_says_nothing_about_the_call_is_none(text: str) -> None:
    agent = Agent()
    for _ in range(4):
        agent.does("Bash", text, error=True, command="deploy")
    assert agent.kinds == []


def test_a_search_without_a_hit_is_an_answer() -> None:
    agent = Agent()
    for _ in range(4):
        agent.does("Bash", "Exit code 1", error=True, command="grep -r needle .")
    assert agent.kinds == []


def test_an_edit_that_is_put_back() -> None:
    agent = Agent()
    first = agent.edits("limit = 20", "limit = 20\nif limit > 80 { limit = 80 }")
    agent.does("Bash", "looks odd", command="./demo")
    last = agent.edits("limit = 20\nif limit > 80 { limit = 80 }", "limit = 20")
    (found,) = agent.ends()
    assert found.kind == "undone"
    assert found.evidence == (first, last)
    assert "fold.go" in found.text
    assert "limit > 80" in found.text


def test_many_edits_put_back_in_one_go_are_one_dead_end() -> None:
    agent = Agent()
    names = [f"handle{letter}" for letter in "ABCDEFGH"]
    for name in names:
        agent.edits(f"gemini_{name}", name, path=f"{name}.go")
    agent.does("Bash", "redeclared", command="./build")
    for name in names:
        agent.edits(name, f"gemini_{name}", path=f"{name}.go")
    (found,) = agent.ends()
    assert "8 edits" in found.text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", 'fmt.Println("here", x)'),
        ("x := 1", 'x := 1\nfmt.Fprintf(os.Stderr, "%v", x)\nstart := time.Now()'),
        ("", 'import (\n"fmt"\n"strings"\n)'),
        ("", "# a remark"),
    ],
)
def test_what_was_there_to_look_at_something_may_go(old: str, new: str) -> None:
    agent = Agent()
    agent.edits(old, new)
    agent.edits(new, old)
    assert agent.kinds == []


def test_an_edit_written_better_is_no_way_left() -> None:
    agent = Agent()
    agent.edits("", "func Fold() error {\nreturn nil\n}")
    agent.edits("func Fold() error {\nreturn nil\n}", "func Fold(cut int) error {\nreturn fold(cut)\n}\n// and more")
    assert agent.kinds == []


def test_code_that_moves_to_another_file_is_no_way_left() -> None:
    agent = Agent()
    body = "func readPrompt(tree Tree) string {\nfile := tree.File(name)\nreturn file.Contents()\n}"
    agent.edits("package auto", "package auto\n" + body, path="auto.go")
    agent.edits("package common", "package common\n" + body, path="common.go")
    agent.edits("package auto\n" + body, "package auto", path="auto.go")
    assert agent.kinds == []


def test_a_file_written_back_to_what_it_was() -> None:
    agent = Agent()
    for content in ("version one", "version two", "version one"):
        agent.does("Write", file_path="notes.md", content=content)
    (found,) = agent.ends()
    assert found.kind == "changed back"
    assert "notes.md" in found.text


@pytest.mark.parametrize(
    "command",
    [
        "git checkout -- src/fold.go",
        "git checkout src/fold.go",
        "git restore src/fold.go",
        "git reset --hard",
        "git checkout .",
    ],
)
def test_changes_that_git_throws_away(command: str) -> None:
    agent = Agent()
    agent.edits("a = one", "a = two", path="/repo/src/fold.go")
    agent.does("Bash", "", command=command)
    (found,) = agent.ends()
    assert found.kind == "changed back"
    assert "/repo/src/fold.go" in found.text


@pytest.mark.parametrize(
    "command",
    [
        "git checkout main",
        "git checkout -b src/fold.go",
        "git restore --staged src/fold.go",
        "git checkout other.go",
        "git 'x",
    ],
)
def test_git_commands_that_throw_nothing_away(command: str) -> None:
    agent = Agent()
    agent.edits("a = one", "a = two", path="/repo/src/fold.go")
    agent.does("Bash", "", command=command)
    assert agent.kinds == []


def test_what_was_committed_is_not_thrown_away() -> None:
    agent = Agent()
    agent.edits("a = one", "a = two")
    agent.does("Bash", "", command="git commit -am done")
    agent.does("Bash", "", command="git reset --hard")
    assert agent.kinds == []


def test_a_test_that_stays_red_in_the_same_way_after_a_change() -> None:
    agent = Agent()
    first = agent.tests(RED.format(1, 5))
    agent.edits("cut = one", "cut = two")
    second = agent.tests(RED.format(2, 5))
    (found,) = agent.ends()
    assert found.kind == "still red"
    assert found.evidence == (first, second)
    assert "TestFold still red in the same way after changing fold.go" in found.text
    assert "expected 3, got 5" in found.text


@pytest.mark.parametrize(
    "between",
    [
        lambda agent: None,
        lambda agent: agent.edits("", 'fmt.Println("look")'),
        lambda agent: (agent.edits("cut = one", "cut = two"), agent.tests(GREEN)),
    ],
    ids=["nothing changed", "only a print", "green in between"],
)
def test_red_twice_is_not_always_a_dead_end(between: Any) -> None:
    agent = Agent()
    agent.tests(RED.format(1, 5), error=True)
    between(agent)
    agent.tests(RED.format(2, 5), error=True)
    assert agent.kinds == []


def test_another_failure_of_the_same_test_is_progress() -> None:
    agent = Agent()
    agent.tests(RED.format(1, "an error"))
    agent.edits("cut = one", "cut = two")
    agent.tests(RED.format(2, "nothing"))
    assert agent.kinds == []


def test_a_subject_is_told_once_and_a_session_is_not_flooded() -> None:
    agent = Agent()
    for _ in range(5):
        agent.does("Bash", "Error: no", error=True, command="deploy")
    assert agent.kinds == ["failed again"]
    for number in range(3 * MOST):
        for _ in range(2):
            agent.does(f"Tool{number}", f"Error: no such thing as {number}", error=True, x="y")
    assert len(agent.ends()) == MOST


def test_a_sub_agents_troubles_are_its_own() -> None:
    watch = DeadEnds()
    for each in ("a", "b"):
        assert not watch.feed(reply(9, call("Bash", each, command="x"), parent_tool_use_id="t0"))
        assert not watch.feed(answer("Error: no", each, error=True, parent_tool_use_id="t0"))


@given(st.lists(EVENTS, max_size=15))
def test_no_event_can_break_it(events: list[Any]) -> None:
    watch = DeadEnds()
    for event in [said("go"), *events]:
        if isinstance(event, dict):
            for found in watch.feed(event):
                assert len(str(found)) < 2_000


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_command_and_any_output_is_taken(command: str, output: str) -> None:
    agent = Agent()
    for text in (output, "FAIL " + output, "git " + command):
        agent.does("Bash", text, error=True, command=command)
        agent.does("Bash", text, command="go test " + command)
        agent.edits(command, output)
        agent.does("Bash", text, command="git checkout " + command)
    agent.ends()
