"""Preserved thinking: between folds nothing changes; after a fold, thinking bound to the old view is not sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from foldline import Policy, Session
from foldline.events import Event
from foldline.message import Thinking
from foldline.testing.provider import Account, ScriptedReply, judge
from foldline.view.compose import View

MODEL = "claude-opus-5-5"
TOOL = {"name": "run", "description": "Runs a command.", "input_schema": {"type": "object", "properties": {}}}


def small_session(model: str = MODEL, **knobs: Any) -> Session:
    events: list[Event] = []
    rules = ("fold when request > 80%",)
    policy = Policy(**{"window_tokens": 6_000, "reply_tokens": 500, "keep_tokens": 1_500, "rules": rules, **knobs})
    return Session(model=model, policy=policy, tools=[TOOL], format="anthropic", listener=events.append)


def request(view: View, model: str = MODEL) -> tuple[dict[str, Any], tuple[str, ...]]:
    rendered = view.render()
    body = {"model": model, "max_tokens": 1_000, "tools": [TOOL], **rendered.body, "thinking": {"type": "adaptive"}}
    body["thinking"] |= rendered.parameters.get("thinking", {})
    return body, rendered.betas


def send(account: Account, session: Session, view: View, turn: int, model: str = MODEL) -> dict[str, Any]:
    """Send the view, fail if the provider refuses it, add the reply."""
    body, betas = request(view, model)
    calls = (("run", {"n": turn}),) if turn % 2 else ()
    answer = account.answer(
        "anthropic",
        body,
        betas=betas,
        reply=ScriptedReply(thinking=f"thought {turn} " * 20, text=f"said {turn}", calls=calls),
    )
    assert answer.error is None, answer.body
    reply: dict[str, Any] = answer.body
    session.add(reply)
    return body


def go_on(session: Session, turn: int) -> None:
    """Answer the calls of the last reply, or ask the next question."""
    calls = session.timeline.messages[-1].calls
    if calls:
        results = [{"type": "tool_result", "tool_use_id": each.id, "content": "line\n" * 60} for each in calls]
        session.add({"role": "user", "content": results})
    else:
        session.add({"role": "user", "content": f"question {turn} " + "word " * 100})


def plain(body: dict[str, Any]) -> list[str]:
    """The messages of a request without cache marks."""
    messages = json.loads(json.dumps(body["messages"]))
    for message in messages:
        if isinstance(message["content"], str):
            message["content"] = [{"type": "text", "text": message["content"]}]
        for block in message["content"]:
            block.pop("cache_control", None)
    return [json.dumps(message) for message in messages]


def drive(account: Account, session: Session, turns: int = 40) -> Iterator[tuple[bool, dict[str, Any]]]:
    """Run a conversation; whether the view was folded anew, and the request, of each turn."""
    session.add({"role": "system", "content": "Be careful."}, {"role": "user", "content": "go"})
    for turn in range(turns):
        folds = session.folds
        view = session.view()
        yield session.folds > folds, send(account, session, view, turn)
        go_on(session, turn)


def thoughts(body: dict[str, Any]) -> int:
    blocks = [
        block for message in body["messages"] if isinstance(message["content"], list) for block in message["content"]
    ]
    return sum(block["type"] == "thinking" for block in blocks)


def test_no_thinking_of_the_kept_tail_is_sent_after_a_fold_and_nothing_changes_between_folds() -> None:
    session, before, folds = small_session(), [""], 0
    for folded, body in drive(Account(), session):
        folds += folded
        if folded:
            assert thoughts(body) == 0
        elif before != [""]:
            assert plain(body)[: len(before)] == before
        before = plain(body)
    assert folds >= 2
    assert thoughts(body) > 0


def test_an_older_model_keeps_the_thinking_of_the_tail() -> None:
    session, account = small_session("claude-opus-4-6"), Account()
    session.add({"role": "user", "content": "go"})
    found = 0
    for turn in range(40):
        folds = session.folds
        body = send(account, session, session.view(), turn, "claude-opus-4-6")
        found += session.folds > folds and thoughts(body) > 0
        go_on(session, turn)
    assert found


def test_after_an_unfold_and_after_other_tools_old_thinking_is_left_out() -> None:
    session, account = small_session(), Account()
    for _ in drive(account, session, 16):
        pass
    assert session.folds
    session.use(policy=session.policy.but(window_tokens=60_000))
    session.unfold()
    for turn in range(16, 20):
        send(account, session, session.view(), turn)
        go_on(session, turn)
    session.use(tools=[TOOL, {**TOOL, "name": "other"}])
    body, _ = request(session.view())
    assert thoughts(body) == 0


def test_a_reply_to_the_view_before_a_fold_loses_its_thinking() -> None:
    session, account = small_session(rules=("fold when request > 95%",)), Account()
    for _ in drive(account, session, 8):
        pass
    view = session.view()
    assert session.fold(force=True)
    send(account, session, view, 8)
    assert any(isinstance(part, Thinking) for part in session.timeline.messages[-1].parts)
    go_on(session, 8)
    for turn in range(9, 12):
        send(account, session, session.view(), turn)
        go_on(session, turn)


def test_with_drop_block_the_thinking_stays_and_every_later_request_asks_for_it() -> None:
    session, account = small_session(bound_thinking="drop_block"), Account()
    folds = 0
    for folded, body in drive(account, session):
        folds += folded
        if folds:
            assert body["thinking"]["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}
        if folded:
            assert thoughts(body) > 0
    assert folds


def test_the_event_of_a_fold_says_that_thinking_was_left_out() -> None:
    events: list[Event] = []
    session = small_session()
    session.listener = events.append
    for _ in drive(Account(), session):
        pass
    committed = [event for event in events if event.kind == "committed"]
    assert committed
    assert all(event.facts["thinking_left_out"] for event in committed)
    assert session.view().unbound >= 0


@pytest.mark.parametrize("model", ["claude-sonnet-5", "gpt-5"])
def test_models_without_preserved_thinking_are_not_touched(model: str) -> None:
    session = small_session(model)
    assert not session.state.binds_thinking


@pytest.mark.parametrize("meanwhile", ["message", "pin"])
def test_thinking_of_a_reply_is_left_out_if_something_was_added_while_it_was_on_its_way(meanwhile: str) -> None:
    account, session = Account(), small_session()
    session.add({"role": "user", "content": "first"})
    view = session.view()
    body, betas = request(view)
    reply = account.answer("anthropic", body, betas=betas, reply=ScriptedReply(thinking="hm", text="said")).body
    if meanwhile == "message":
        session.add({"role": "user", "content": "wait!"})
    else:
        session.pin("Never touch setup.cfg.")
    session.add(reply, view=view)
    for turn in range(3):
        session.add({"role": "user", "content": f"question {turn}"})
        send(account, session, session.view(), 2 * turn)


def signed(number: int, model: str = MODEL) -> dict[str, Any]:
    thinking = {"type": "thinking", "thinking": "t", "signature": f"SIG{number}"}
    content = [thinking, {"type": "text", "text": f"said {number}"}]
    facts = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": model, "stop_reason": "end_turn"}
    return {**facts, "content": content}


def signatures(session: Session) -> list[str]:
    messages = session.view().request("anthropic", max_tokens=9)["messages"]
    blocks = [block for message in messages if isinstance(message["content"], list) for block in message["content"]]
    return [block["signature"] for block in blocks if block["type"] == "thinking"]


@pytest.mark.parametrize("other", [[], [TOOL, {**TOOL, "name": "more"}], [{**TOOL, "description": "Runs a program."}]])
def test_thinking_made_with_other_tools_is_left_out_and_returns_with_them(other: list[Any]) -> None:
    events: list[Event] = []
    session = Session(model=MODEL, tools=[TOOL], listener=events.append)
    session.add({"role": "user", "content": "q0"})
    session.view()
    session.add(signed(0), {"role": "user", "content": "q1"})
    assert signatures(session) == ["SIG0"]
    session.use(tools=other)
    assert signatures(session) == []
    assert session.view().unbound == 1
    assert [event.facts["messages"] for event in events if event.kind == "unbound"] == [1]
    session.add(signed(1), {"role": "user", "content": "q2"})
    assert signatures(session) == ["SIG1"]
    session.use(tools=[{**TOOL, "cache_control": {"type": "ephemeral"}}, {**TOOL, "name": "x", "defer_loading": True}])
    assert signatures(session) == ["SIG0"]


@pytest.mark.parametrize("again", [None, "claude-fable-5-1"])
def test_a_new_model_never_sees_the_bound_thinking_of_the_old_one(again: str | None) -> None:
    session = Session(model=MODEL, tools=[TOOL])
    session.add({"role": "user", "content": "q0"})
    session.view()
    session.add(signed(0))
    session.use(model="claude-fable-5-1")
    session.add({"role": "user", "content": "q1"})
    assert signatures(session) == []
    session.add(signed(1, "claude-fable-5-1"))
    session.use(model=again)
    session.add({"role": "user", "content": "q2"})
    assert signatures(session) == ["SIG1"]


def test_a_history_that_is_added_message_by_message_keeps_its_thinking() -> None:
    session = Session(model=MODEL, tools=[TOOL])
    for number in range(3):
        session.add({"role": "user", "content": f"q{number}"})
        session.add(signed(number))
    session.add({"role": "user", "content": "end"})
    assert signatures(session) == ["SIG0", "SIG1", "SIG2"]


OLDER = "claude-opus-4-5"
MANUAL = {"type": "enabled", "budget_tokens": 1_024}


def work_with_budget(session: Session, steps: int) -> list[dict[str, Any]]:
    """Send the steps of one turn, in which the model thinks only at the beginning, and return the requests."""
    account, sent = Account(), list[dict[str, Any]]()
    session.add({"role": "user", "content": "Look at every file."})
    for step in range(steps):
        body = session.view().request(max_tokens=1_500, thinking=MANUAL)
        sent.append(body)
        calls = (("run", {"n": step}),)
        reply = ScriptedReply(thinking="First, look." * (step == 0), calls=calls)
        answer = account.answer("anthropic", body, reply=reply)
        assert answer.error is None, (step, answer.error)
        session.add(answer.body)
        call = answer.body["content"][-1]["id"]
        result = {"type": "tool_result", "tool_use_id": call, "content": f"line {step} " * 60}
        session.add({"role": "user", "content": [result]})
    return sent


def test_a_turn_whose_thinking_was_folded_goes_on_without_thinking() -> None:
    session = small_session(OLDER, window_tokens=12_000, reply_tokens=2_000)
    sent = work_with_budget(session, 60)
    assert session.folds >= 1
    assert sent[1]["thinking"] == MANUAL
    assert sent[-1]["thinking"] == {"type": "disabled"}
    session.add({"role": "assistant", "content": "Done."}, {"role": "user", "content": "Thanks. What next?"})
    assert session.view().request(max_tokens=1_500, thinking=MANUAL)["thinking"] == MANUAL


def test_a_turn_that_another_model_began_goes_on_without_thinking() -> None:
    session = Session(model="gpt-5", format="openai", tools=[TOOL])
    call = {"id": "call_1", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    session.add({"role": "user", "content": "go"}, {"role": "assistant", "content": None, "tool_calls": [call]})
    session.add({"role": "tool", "tool_call_id": "call_1", "content": "done"})
    session.use(model=OLDER, format="anthropic")
    body = session.view().request(max_tokens=1_500, thinking=MANUAL)
    assert judge("anthropic", body) is None
    assert body["thinking"] == {"type": "disabled"}
