"""A call without a result, and background work without a report, stay known through every fold."""

from __future__ import annotations

import json

import pytest

from foldline import Policy, Session
from foldline.digest.digester import Digester
from foldline.digesters import local_digest
from foldline.message import Message, ToolCall, assistant, tool, user
from foldline.testing import Scripted, assert_sendable
from foldline.wire.formats import REQUEST_FORMATS

POLICY = Policy(keep_tokens=300, digest_tokens=1_500)
CALL = ToolCall(id="confirm_1", name="confirm_deploy", arguments='{"target": "eu-west-7"}')


def talk(number: int) -> list[Message]:
    run = ToolCall(id=f"run_{number}", name="run", arguments=json.dumps({"command": f"make step{number}"}))
    return [user(f"do step {number}"), assistant("", run), tool(run.id, f"step {number} is built\n" * 60)]


def sent(session: Session, format: str = "") -> str:
    rendered = session.view().render(format)
    assert_sendable(rendered)
    return json.dumps(rendered.body)


def folded(session: Session, *, times: int = 3, start: int = 0) -> Session:
    for number in range(start, start + times):
        for each in range(4):
            session.add(*talk(10 * number + each))
        assert session.fold(force=True)
    return session


@pytest.mark.parametrize("format", REQUEST_FORMATS)
def test_a_call_that_waits_for_the_user_is_carried_through_folds(format: str) -> None:
    session = Session(policy=POLICY, format=format)
    session.add(user("deploy it"), assistant("Shall I?", CALL), user("first something else"))
    folded(session)
    assert "eu-west-7" in sent(session)
    session.add(tool(CALL.id, "the user confirmed"))
    body = sent(session)
    assert "eu-west-7" in body
    assert "the user confirmed" in body
    if format != "gemini":  # its calls and results have no ids there
        place = body.index("the user confirmed")
        assert "confirm_1" in body[place - 200 : place]


def test_the_late_result_of_a_carried_call_is_paired_and_then_folded_with_it() -> None:
    session = Session(policy=POLICY, format="anthropic")
    session.add(user("deploy it"), assistant("Shall I?", CALL), user("first something else"))
    folded(session, times=1)
    session.add(tool(CALL.id, "the user confirmed"), assistant("Deployed."))
    folded(session, times=2, start=5)
    assert sent(session).count("tool_use_id") == sent(session).count('"tool_use"')
    assert session.timeline.unanswered == {}


def test_a_call_too_large_to_carry_is_named_with_its_arguments() -> None:
    call = ToolCall(id="big_1", name="approve_patch", arguments=json.dumps({"id": "PR-4711", "patch": "line\n" * 9000}))
    session = Session(policy=POLICY, model="gpt-4o")
    session.add(user("merge it"), assistant("Shall I?", call), user("first something else"))
    folded(session)
    body = sent(session)
    assert "approve_patch" in body
    assert "PR-4711" in body
    assert "no result yet" in body
    assert len(body) < 20_000


@pytest.mark.parametrize(
    "reply", ["", "# Objective\nbuild the steps\n# Status\nall steps so far are built and verified"]
)
def test_a_background_agent_that_has_not_reported_stays_named(reply: str) -> None:
    digester = Digester(complete=Scripted(reply), model="m") if reply else None
    session = Session(policy=POLICY, digester=digester)
    start = ToolCall(id="task_1", name="Task", arguments='{"description": "audit licences", "run_in_background": true}')
    session.add(user("audit it"), assistant("", start))
    session.add(tool("task_1", "Async agent launched successfully.\nagentId: ag-7f3e (use it to ask for results)"))
    folded(session, times=5)
    assert "ag-7f3e" in sent(session)
    session.add(user("<task-notification><task-id>ag-7f3e</task-id><status>completed</status></task-notification>"))
    folded(session, times=2, start=6)
    assert "ag-7f3e runs, no report yet" not in sent(session)


def test_another_process_carries_the_same_calls() -> None:
    session = Session(policy=POLICY)
    session.add(user("deploy it"), assistant("Shall I?", CALL), user("first something else"))
    folded(session)
    other = Session(record=session.record)
    assert sent(other) == sent(session)
    folded(other, times=1, start=7)
    assert "eu-west-7" in sent(other)


def dead_call(session: Session) -> Session:
    """A session whose process was killed in a tool. The user asked again, and the agent replied."""
    dead = ToolCall(id="dead_1", name="run", arguments='{"command": "python f3.py"}')
    session.add(user("the task"), assistant("Reading.", dead), user("please go on"), assistant("f3 is understood."))
    return session


@pytest.mark.parametrize("format", REQUEST_FORMATS)
def test_a_call_is_folded_like_any_other_when_the_conversation_went_on_without_its_result(format: str) -> None:
    session = folded(dead_call(Session(policy=POLICY, format=format)))
    fold = session.timeline.fold
    assert fold
    assert not {1, 2, 3} & {*fold.pinned, *fold.carried}
    digest = fold.digest.message.text if fold.digest else ""
    assert 'run {"command": "python f3.py"} (dead_1): no result, the work went on without it' in digest
    assert "no result was recorded" not in sent(session)
    other = Session(record=session.record, format=format)
    assert sent(other) == sent(session)


def test_the_late_result_of_a_folded_call_is_sent_as_text_with_the_name_of_the_call() -> None:
    session = folded(dead_call(Session(policy=POLICY, format="anthropic")), times=2)
    session.add(tool("dead_1", "exit code 0, 17 files"), assistant("It has finished."))
    body = sent(session)
    assert r"[result of a call that is not in this conversation: dead_1]\nexit code 0, 17 files" in body
    assert '"tool_use_id": "dead_1"' not in body


def test_a_call_stays_in_the_view_until_a_later_prompt_has_a_reply() -> None:
    session = Session(policy=POLICY)
    for number in range(4):
        session.add(*talk(number))
    session.add(user("deploy it"), assistant("Shall I?", CALL), user("wait a moment"))
    assert session.fold(force=True)
    assert "confirm_1" in sent(session)
    session.add(assistant("I wait."))
    folded(session, times=1, start=2)
    assert session.timeline.fold
    assert session.timeline.fold.carried == ()
    digest = json.loads(sent(session))["messages"][0]["content"]
    assert 'confirm_deploy {"target": "eu-west-7"} (confirm_1): no result, the work went on without it' in digest


def test_a_call_without_a_result_is_no_longer_named_as_open_after_later_replies() -> None:
    start = ToolCall(id="task_1", name="Task", arguments='{"description": "audit licences", "run_in_background": true}')
    messages = [user("audit it"), assistant("", start), tool("task_1", "Async agent launched.\nagentId: ag-7f3e")]
    messages += [user("deploy it"), assistant("Shall I?", CALL)]
    states = list[str]()
    for number in range(5):
        digest = local_digest(messages, cap=4_000, size=len)
        states.append(digest.partition(" (confirm_1): ")[2].partition(" [#")[0])
        assert "ag-7f3e runs, no report yet" in digest
        messages += [*talk(number), assistant(f"Step {number} is built.")]
    went_on = "no result, the work went on without it"
    assert states == ["no result yet", went_on, went_on, "", ""]


@pytest.mark.parametrize("format", REQUEST_FORMATS)
def test_a_text_that_is_pinned_while_a_tool_runs_stays_and_its_call_leaves_with_the_result(format: str) -> None:
    session = Session(policy=POLICY, format=format)
    session.add(user("deploy it"), assistant("I deploy it.", CALL))
    session.pin("the port is 47113")
    session.add(tool(CALL.id, "it is deployed\n" * 60))
    assert sent(session).count("the port is 47113") == 1
    step = session.timeline.step(1)
    assert [*step] == [1, 2, 3]
    folded(session)
    body = sent(session)
    assert body.count("the port is 47113") == 1
    assert "it is deployed\\nit is deployed" not in body
