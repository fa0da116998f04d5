"""Dead ends that are detected, and what is none."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.compat.context_budget import ScratchWriter
from foldline.watch.dead_ends import MAX_DEAD_ENDS, DeadEnd, DeadEndDetector
from foldline.watch.watcher import Watcher
from support.agent_events import EVENTS, answer, call, reply, result, said

pytestmark = pytest.mark.promise("S1.35")


RED = "--- FAIL: TestFold (0.0{0}s)\n    fold_test.go:{0}1: expected 3, got {1}\nFAIL\n"


GREEN = "ok  \texample/fold\t0.4s\n"


BROKEN = 'Exit code 1\n# x\nc.go:21:2: "v" imported and not used\nc.go:44:12: undefined: V'


class Agent:
    """An agent at work, and what was noticed about it."""

    def __init__(self) -> None:
        self.watch = DeadEndDetector()
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

    def at_once(self, text: str, *calls: dict[str, Any]) -> None:
        """Calls of one reply, which all fail with the same words."""
        for each in calls:
            self.found += self.watch.feed(reply(9, each))
        for each in calls:
            self.found += self.watch.feed(answer(text, each["id"], error=True))

    def builds(self, text: str = BROKEN, *, command: str = "go build ./x") -> str:
        return self.does("Bash", text, error=bool(text), command=command)

    def tests(self, text: str, *, error: bool = False) -> str:
        return self.does("Bash", text, error=error, command="cd /work && go test ./... 2>&1 | tail -20")

    def ends(self) -> list[DeadEnd]:
        self.found += self.watch.end_turn()
        return self.found

    @property
    def kinds(self) -> list[str]:
        return [found.kind for found in self.ends()]


def test_the_same_call_failing_twice_in_the_same_way_is_a_dead_end() -> None:
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


def test_another_failure_of_the_same_call_is_no_dead_end() -> None:
    agent = Agent()
    agent.does("Bash", "Error: no such flag", error=True, command="deploy")
    agent.does("Bash", "Error: not signed in", error=True, command="deploy")
    assert agent.kinds == []


def test_a_tool_that_fails_with_any_input_is_a_dead_end() -> None:
    agent = Agent()
    for pattern in "abc":
        agent.does("Grep", "ENOENT: no such file or directory, posix_spawn 'rg'", error=True, pattern=pattern)
    (found,) = agent.ends()
    assert "Grep failed 3 times in the same way with different input: ENOENT" in found.text
    assert found.evidence == ("t1", "t2", "t3")


@pytest.mark.parametrize(
    ("tool", "field", "error"),
    [
        ("Task", "subagent_type", "Agent type '{0}' not found. Available agents: Bash, Explore, Plan" + ", more" * 60),
        ("Read", "file_path", "<tool_use_error>File does not exist.</tool_use_error>"),
        ("Bash", "command", "Exit code 1\ncat: {1}: No such file or directory"),
    ],
)
def test_a_failure_about_the_input_does_not_blame_the_tool(tool: str, field: str, error: str) -> None:
    agent = Agent()
    for number in range(4):
        given = f"cat {number}.txt"
        agent.does(tool, error.format(given, given.split()[1]), error=True, **{field: given})
    assert agent.kinds == []


def test_calls_of_one_reply_are_one_try() -> None:
    agent = Agent()
    agent.at_once("Error: connection reset", *(call("Fetch", f"f{n}", url=f"page {n}") for n in range(4)))
    assert agent.kinds == []
    agent.does("Fetch", "Error: connection reset", error=True, url="another page")
    assert agent.kinds == ["failed again"]


def test_a_call_that_worked_in_between_is_no_dead_end_when_its_input_was_wrong() -> None:
    agent = Agent()
    for error in (True, False, True):
        agent.does("Read", "<tool_use_error>File does not exist." if error else "x", error=error, file_path="a.py")
    assert agent.kinds == []


@pytest.mark.parametrize(
    "text",
    [
        "The user doesn't want to proceed with this tool use.",
        "<tool_use_error>Sibling tool call errored</tool_use_error>",
        "<tool_use_error>File has not been read yet. Read it first.</tool_use_error>",
    ],
)
def test_a_refusal_or_cancellation_is_no_dead_end(text: str) -> None:
    agent = Agent()
    for _ in range(4):
        agent.does("Bash", text, error=True, command="deploy")
    assert agent.kinds == []


def test_a_search_without_a_hit_is_no_failure() -> None:
    agent = Agent()
    for _ in range(4):
        agent.does("Bash", "Exit code 1", error=True, command="grep -r needle .")
    assert agent.kinds == []


def test_an_edit_that_is_reverted_is_a_dead_end() -> None:
    agent = Agent()
    first = agent.edits("limit = 20", "limit = 20\nif limit > 80 { limit = 80 }")
    agent.does("Bash", "looks odd", command="./demo")
    last = agent.edits("limit = 20\nif limit > 80 { limit = 80 }", "limit = 20")
    (found,) = agent.ends()
    assert found.kind == "undone"
    assert found.evidence == (first, last)
    assert "fold.go" in found.text
    assert "limit > 80" in found.text


def test_many_edits_reverted_together_are_one_dead_end() -> None:
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
def test_removing_debug_prints_imports_and_comments_is_no_dead_end(old: str, new: str) -> None:
    agent = Agent()
    agent.edits(old, new)
    agent.edits(new, old)
    assert agent.kinds == []


def test_improving_an_edit_is_no_dead_end() -> None:
    agent = Agent()
    agent.edits("", "func Fold() error {\nreturn nil\n}")
    agent.edits("func Fold() error {\nreturn nil\n}", "func Fold(cut int) error {\nreturn fold(cut)\n}\n// and more")
    assert agent.kinds == []


def test_moving_code_to_another_file_is_no_dead_end() -> None:
    agent = Agent()
    body = "func readPrompt(tree Tree) string {\nfile := tree.File(name)\nreturn file.Contents()\n}"
    agent.edits("package auto", "package auto\n" + body, path="auto.go")
    agent.edits("package common", "package common\n" + body, path="common.go")
    agent.edits("package auto\n" + body, "package auto", path="auto.go")
    assert agent.kinds == []


def test_a_file_written_back_to_an_earlier_content_is_a_dead_end() -> None:
    agent = Agent()
    contents = ("version one", "version two", "version three", "version one")
    calls = [agent.does("Write", file_path="notes.md", content=content) for content in contents]
    (found,) = agent.ends()
    assert found.kind == "changed back"
    assert found.evidence == (calls[0], calls[2], calls[3])
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
def test_changes_that_git_discards_are_a_dead_end(command: str) -> None:
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
def test_git_commands_that_discard_nothing_are_no_dead_end(command: str) -> None:
    agent = Agent()
    agent.edits("a = one", "a = two", path="/repo/src/fold.go")
    agent.does("Bash", "", command=command)
    assert agent.kinds == []


def test_committed_changes_are_not_discarded() -> None:
    agent = Agent()
    agent.edits("a = one", "a = two")
    agent.does("Bash", "", command="git commit -am done")
    agent.does("Bash", "", command="git reset --hard")
    assert agent.kinds == []


def test_a_test_that_fails_in_the_same_way_after_a_change_is_a_dead_end() -> None:
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
        lambda agent: agent.does("Bash", "44: V()", command="grep V c.go"),
        lambda agent: agent.does("Bash", "", command="sed -i s/V/W/ c.go"),
    ],
    ids=["nothing", "a look", "an edit that did nothing"],
)
def test_a_build_or_a_test_that_fails_twice_in_the_same_way_is_a_dead_end(between: Any) -> None:
    agent = Agent()
    first = agent.builds()
    between(agent)
    second = agent.builds()
    agent.builds()
    tests = [agent.tests(RED.format(1, 5)), agent.tests(RED.format(2, 5))]
    built, tested = agent.ends()
    assert (built.kind, built.evidence) == ("failed again", (first, second))
    assert "Bash `go build ./x` failed 2 times in the same way: c.go:" in built.text
    assert (tested.kind, tested.evidence) == ("failed again", tuple(tests))


@pytest.mark.parametrize(
    "between",
    [
        lambda agent: agent.builds(""),
        lambda agent: agent.builds("Exit code 1\nc.go:44:12: undefined: W"),
        lambda agent: agent.builds(command="go build ./x 2>&1 | head -50"),
        lambda agent: (agent.edits("V()", "W()", path="d.go"), agent.builds(BROKEN, command="go vet ./y")),
        lambda agent: agent.edits("", 'fmt.Println("look")'),
    ],
    ids=["green in between", "another failure", "a closer look", "a change and another check", "only a print"],
)
def test_a_build_that_fails_twice_is_not_always_a_dead_end(between: Any) -> None:
    agent = Agent()
    agent.builds()
    between(agent)
    agent.builds()
    assert "failed again" not in agent.kinds


def test_a_check_that_the_user_refused_is_no_failure() -> None:
    agent = Agent()
    agent.builds()
    agent.builds("The user doesn't want to proceed with this tool use.")
    agent.builds()
    assert agent.kinds == ["failed again"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (BROKEN, "`go test ./...` still red in the same way after changing fold.go: c.go:44:12: undefined: V"),
        ("  ✕ renders 3 rows (12 ms)\nError: expected 3 rows", "renders 3 rows still red"),
        ("FAILED tests/a_test.py::test_1 - x\nE    x is 1", "tests/a_test.py::test_1 still red"),
        ("--- FAIL: TestFold/case_7 (0.01s)\n    a.go:7: expected 3", "TestFold still red"),
    ],
)
def test_a_dead_end_shows_names_and_numbers_as_printed(text: str, shown: str) -> None:
    agent = Agent()
    for number in range(2):
        agent.tests(text, error=True)
        agent.edits(f"cut = {number} one", f"cut = {number} two")
    agent.tests(text, error=True)
    (found,) = agent.ends()
    assert found.kind == "still red"
    assert shown in found.text
    assert "#" not in found.text


@pytest.mark.parametrize(
    "between",
    [
        lambda agent: agent.edits("", 'fmt.Println("look")'),
        lambda agent: (agent.edits("cut = one", "cut = two"), agent.tests(GREEN)),
    ],
    ids=["only a print", "green in between"],
)
def test_a_test_that_fails_twice_is_not_always_a_dead_end(between: Any) -> None:
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


def test_a_subject_is_reported_once_and_a_session_has_a_maximum() -> None:
    agent = Agent()
    for _ in range(5):
        agent.does("Bash", "Error: no", error=True, command="deploy")
    assert agent.kinds == ["failed again"]
    for number in range(3 * MAX_DEAD_ENDS):
        for _ in range(2):
            agent.does(f"Tool{number}", f"Error: no such thing as {number}", error=True, x="y")
    assert len(agent.ends()) == MAX_DEAD_ENDS


def test_failures_of_sub_agents_are_ignored() -> None:
    watch = DeadEndDetector()
    for each in ("a", "b"):
        assert not watch.feed(reply(9, call("Bash", each, command="x"), parent_tool_use_id="t0"))
        assert not watch.feed(answer("Error: no", each, error=True, parent_tool_use_id="t0"))


@given(st.lists(EVENTS, max_size=15))
def test_no_event_can_break_it(events: list[Any]) -> None:
    watch = DeadEndDetector()
    for event in [said("go"), *events]:
        if isinstance(event, dict):
            for found in watch.feed(event):
                assert len(str(found)) < 2_000


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_command_and_any_output_is_accepted(command: str, output: str) -> None:
    agent = Agent()
    for text in (output, "FAIL " + output, "git " + command):
        agent.does("Bash", text, error=True, command=command)
        agent.does("Bash", text, command="go test " + command)
        agent.edits(command, output)
        agent.does("Bash", text, command="git checkout " + command)
    agent.ends()


def test_a_result_that_comes_before_its_call_is_no_dead_end(tmp_path: Path) -> None:
    watch = Watcher(writer=ScratchWriter(tmp_path))
    for event in (answer("Exit code 1", "t1", error=True), reply(9, call("Bash", "t1", command="make")), result()):
        watch.feed(event)
    assert watch.dead_ends == 0
