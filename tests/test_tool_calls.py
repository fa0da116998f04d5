"""One reading of a tool call: pruning, the digest and the watch agree on what it does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from foldline.digest.extract.extraction import extract_facts
from foldline.message import ToolCall, assistant, tool
from foldline.tool_calls import bare_command, call_kind, command_of, edited_files, interpret_call, is_check, read_key
from foldline.watch.scratch import ScratchModel
from support.agent_events import call as event_call
from support.agent_events import reply, result

PATCH = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** End Patch"

CALLS: list[tuple[str, dict[str, Any], str, str]] = [
    ("Read", {"file_path": "a.py"}, "read", "a.py"),
    ("read_file", {"path": "a.py", "offset": 3}, "read", "a.py"),
    ("NotebookRead", {"notebook_path": "a.ipynb"}, "read", "a.ipynb"),
    ("str_replace_based_edit_tool", {"command": "view", "path": "a.py"}, "read", "a.py"),
    ("str_replace_based_edit_tool", {"command": "create", "path": "a.py", "file_text": "x"}, "edit", "a.py"),
    ("str_replace_editor", {"command": "str_replace", "path": "a.py", "old_str": "x", "new_str": "y"}, "edit", "a.py"),
    ("Edit", {"file_path": "a.py", "old_string": "x", "new_string": "y"}, "edit", "a.py"),
    ("MultiEdit", {"file_path": "a.py", "edits": [{"old_string": "x", "new_string": "y"}]}, "edit", "a.py"),
    ("Write", {"file_path": "a.py", "content": "x"}, "edit", "a.py"),
    ("NotebookEdit", {"notebook_path": "a.ipynb", "new_source": "x"}, "edit", "a.ipynb"),
    ("mcp__files__write_file", {"path": "a.py", "content": "x"}, "edit", "a.py"),
    ("put", {"filePath": "a.py", "contents": "x"}, "edit", "a.py"),
    ("apply_patch", {"input": PATCH}, "edit", "src/a.py"),
    ("apply_patch", {"input": PATCH.replace("\n", "\r\n")}, "edit", "src/a.py"),
    ("shell", {"command": ["apply_patch", PATCH]}, "edit", "src/a.py"),
    ("shell", {"command": ["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}\nEOF"]}, "edit", "src/a.py"),
    ("exec_command", {"cmd": f"cd /w && apply_patch <<'EOF'\n{PATCH}\nEOF"}, "edit", "src/a.py"),
    ("Bash", {"command": "go test ./...", "description": "Run the tests"}, "run", ""),
    ("shell", {"command": ["bash", "-lc", "cd /w && go test ./... 2>&1 | tail"]}, "run", ""),
    ("exec", {"cmd": "go test ./...", "path": "/w"}, "run", ""),
    ("python", {"code": "print(1)"}, "run", ""),
    ("Grep", {"pattern": "x", "path": "src"}, "", ""),
    ("TodoWrite", {"todos": [{"content": "ship it", "status": "pending"}]}, "", ""),
    ("ask", {}, "", ""),
]


@pytest.mark.parametrize(("name", "arguments", "kind", "path"), CALLS)
def test_prune_digest_and_watch_read_a_call_alike(name: str, arguments: dict[str, Any], kind: str, path: str) -> None:
    call = ToolCall(id="c1", name=name, arguments=json.dumps(arguments))
    assert call_kind(name, arguments) == kind
    # prune
    assert bool(read_key(call)) == (kind == "read")
    # digest
    assert interpret_call(call, "").kind == kind
    facts = extract_facts([assistant("", call), tool("c1", "ok")], 0).facts.values()
    found = {fact.kind: fact.text for fact in facts if fact.kind in {"read", "modified", "command"}}
    assert found == {"read": {"read": path}, "edit": {"modified": path}, "run": {"command": command_of(arguments)}}.get(
        kind, {}
    )
    # watch
    model = ScratchModel()
    model.extract(reply(9, event_call(name, **arguments)))
    model.extract(result())
    assert model.artifacts == ([path] if kind == "edit" else [])
    assert bool(command_of(arguments)) == (kind == "run")


@pytest.mark.parametrize("patch", [PATCH, json.dumps({"input": PATCH})])
def test_a_patch_is_an_edit_as_free_text_and_as_an_argument(patch: str) -> None:
    call = interpret_call(ToolCall(id="c", name="apply_patch", arguments=patch, kind="custom"), "")
    assert (call.kind, call.path) == ("edit", "src/a.py")


def test_a_command_that_only_contains_a_patch_is_a_run() -> None:
    assert call_kind("exec_command", {"cmd": f"cat > note.txt <<'EOF'\n{PATCH}\nEOF"}) == "run"


def test_an_edit_of_several_files_names_them_all() -> None:
    patch = "*** Add File: a.py\n+x\n*** Delete File: b.py\n"
    assert edited_files("apply_patch", {"patch": patch}) == ["a.py", "b.py"]


def test_a_command_is_compared_without_its_folder_and_filters() -> None:
    arguments = {"command": ["bash", "-lc", "cd /w && go test ./... 2>&1 | tail -5"]}
    assert bare_command(arguments) == "go test ./..."
    assert is_check(bare_command(arguments))
    assert not is_check("git status")


@pytest.mark.parametrize("value", [None, 3, [], {}, [1], {"x": 1}, ""])
def test_arguments_of_any_shape_are_read_without_fault(value: Any) -> None:
    for key in ("path", "command", "edits", "content", "todos", "input", "taskId"):
        arguments = {key: value, "path": "a"} if key != "path" else {key: value}
        call = ToolCall(id="c", name="Task update edit", arguments=json.dumps(arguments))
        assert interpret_call(call, "").kind in {"", "read", "edit", "run"}
        edited_files("x", arguments)
        bare_command(arguments)
