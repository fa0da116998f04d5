"""OpenHands trajectories of both generations, read as chat messages."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline import read
from foldline.testing import violations
from foldline.wire import parse, read_all
from foldline.wire.formats import JsonLine
from foldline.wire.session_logs.openhands import read as read_lines
from support.command import foldline


def action(number: int, name: str, **fields: Any) -> dict[str, Any]:
    return {"id": number, "timestamp": "2025-04-30T16:32:54", "source": "agent", "action": name, "args": {}, **fields}


def called(number: int, ids: list[str], own: str) -> dict[str, Any]:
    """The metadata of an action: the reply of the model with all its calls."""
    calls = [{"id": id_, "type": "function", "function": {"name": "execute_bash", "arguments": "{}"}} for id_ in ids]
    message = {"role": "assistant", "content": "I look.", "tool_calls": calls, "function_call": None}
    usage = {"prompt_tokens": 500, "completion_tokens": 20}
    reply = {"id": f"gen-{number}", "model": "gpt-5", "choices": [{"message": message}], "usage": usage}
    return {"function_name": "execute_bash", "tool_call_id": own, "model_response": reply}


OLDER = [
    action(
        0, "system", args={"content": "You are careful.", "tools": [{"type": "function", "function": {"name": "f"}}]}
    ),
    action(1, "message", source="user", args={"content": "Why does it fail?"}),
    action(2, "recall", source="user", args={"query": "Why"}),
    {"id": 3, "source": "environment", "cause": 2, "observation": "recall", "content": "context"},
    action(4, "run", tool_call_metadata=called(1, ["c1", "c2"], "c1")),
    {
        "id": 5,
        "source": "agent",
        "cause": 4,
        "observation": "run",
        "content": "one",
        "tool_call_metadata": called(1, ["c1", "c2"], "c1"),
    },
    action(6, "run", tool_call_metadata=called(1, ["c1", "c2"], "c2")),
    {
        "id": 7,
        "source": "agent",
        "cause": 6,
        "observation": "run",
        "content": "two",
        "tool_call_metadata": called(1, ["c1", "c2"], "c2"),
    },
    action(8, "finish", args={"content": "Done."}, message="Done."),
]
NEWER = [
    {
        "kind": "SystemPromptEvent",
        "source": "agent",
        "system_prompt": {"type": "text", "text": "Be brief."},
        "tools": [],
    },
    {
        "kind": "MessageEvent",
        "source": "user",
        "llm_message": {"role": "user", "content": [{"type": "text", "text": "Go."}]},
    },
    {
        "kind": "ActionEvent",
        "source": "agent",
        "thought": [{"type": "text", "text": "I look."}],
        "tool_name": "terminal",
        "tool_call_id": "c1",
        "tool_call": {"id": "c1", "name": "terminal", "arguments": '{"command": "ls"}'},
    },
    {
        "kind": "ObservationEvent",
        "source": "environment",
        "tool_name": "terminal",
        "tool_call_id": "c1",
        "observation": {"content": [{"type": "text", "text": "a.py"}]},
    },
    {"kind": "ConversationStateUpdateEvent", "source": "environment", "key": "x"},
]


@pytest.mark.parametrize("wrap", [lambda events: events, lambda events: {"instance_id": "i", "history": events}])
def test_a_trajectory_is_read_as_the_conversation_that_the_model_saw(wrap: Any) -> None:
    found = parse(json.dumps(wrap(OLDER)))
    assert (found.format, found.model, len(found.tools)) == ("openhands", "gpt-5", 1)
    assert [message.role for message in found.messages] == ["system", "user", "assistant", "tool", "tool", "assistant"]
    assert [call.id for call in found.messages[2].calls] == ["c1", "c2"], "two actions of one reply"
    assert found.messages[2].meta.usage is not None
    assert [result.text for message in found.messages for result in message.results] == ["one", "two"]
    assert not violations(found.messages[:-1], "openai")


def test_events_of_the_sdk_are_read() -> None:
    found = parse("\n".join(map(json.dumps, NEWER)))
    assert [message.role for message in found.messages] == ["system", "user", "assistant", "tool"]
    assert found.messages[2].calls[0].arguments == '{"command": "ls"}'
    assert found.messages[3].results[0].text == "a.py"


def test_actions_without_calls_become_calls() -> None:
    events = [
        {"content": "Fix it.", "source": "user", "action": "message", "args": {"content": "Fix it."}},
        {"command": "touch LICENSE", "thought": "I add it.", "action": "run", "is_confirmed": "confirmed"},
        {"content": "ok", "command": "touch LICENSE", "exit_code": 0, "observation": "run"},
    ]
    found = parse(json.dumps(events))
    assert found.messages[1].calls[0].name == "run"
    assert found.messages[2].results[0].text == "ok"


def test_a_trajectory_can_be_inspected_and_imported(tmp_path: Path) -> None:
    file = tmp_path / "trajectory.json"
    file.write_text(json.dumps(OLDER))
    assert "openhands, 6 messages" in foldline("inspect", str(file)).stdout
    assert foldline("import", str(file), "--ledger", str(tmp_path / "a.db")).returncode == 0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "content", "choices", "message", "tool_calls", "usage", "text"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@given(
    fields=st.dictionaries(
        st.sampled_from(
            [
                "action",
                "observation",
                "kind",
                "args",
                "tool_call_metadata",
                "observation",
                "llm_message",
                "thought",
                "tool_call",
                "tool_call_id",
                "content",
                "timestamp",
            ]
        ),
        JSON,
    )
)
def test_no_event_can_break_the_reader(fields: dict[str, Any]) -> None:
    found = read_lines([JsonLine(1, [fields, *OLDER], None)])
    assert len(found.messages) >= 5


@pytest.mark.skipif("FOLDLINE_DATA" not in os.environ, reason="needs recorded sessions")
def test_recorded_trajectories_are_read() -> None:
    folder = Path(os.environ["FOLDLINE_DATA"], "openhands")
    found = read_all(folder / "multi_swe_bench_example_output.jsonl.gz")
    assert len(found) == 3
    assert all(transcript.format == "openhands" and len(transcript.messages) > 10 for transcript in found)
    assert read is not None


def test_the_first_message_is_the_users_if_events_have_no_source(tmp_path: Path) -> None:
    task = {"content": "Add a license.", "wait_for_response": False, "action": "message", "is_confirmed": "confirmed"}
    run = {"command": "ls", "thought": "I look.", "action": "run", "is_confirmed": "confirmed"}
    seen = {"content": "README.md", "command": "ls", "exit_code": 0, "observation": "run", "cause": 1}
    end = {"content": "It is added.", "action": "message", "is_confirmed": "confirmed"}
    held = {"instruction": "Add a license.", "history": [task, run, seen, end], "success": True}
    path = tmp_path / "output.jsonl"
    path.write_text(json.dumps(held) + "\n")
    found = read(path)
    assert [message.role for message in found.messages] == ["user", "assistant", "tool", "assistant"]
    assert found.messages[0].is_prompt
