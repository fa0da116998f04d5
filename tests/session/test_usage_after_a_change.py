"""After a change of model or format, earlier usage shows the hidden tokens and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from foldline import Policy, Session
from foldline.testing.provider import Account, ScriptedReply

POLICY = Policy.preset("balanced").but(window_tokens=30_000, reply_tokens=1_000)
CHANGES: list[dict[str, Any]] = [
    {"model": "gpt-4.1"},
    {"format": "openai-responses"},
    {"model": "claude-sonnet-5", "format": "anthropic"},
    {"model": "gemini-2.5-pro", "format": "gemini"},
]
TOOLS = [{"name": "bash", "description": "Run", "input_schema": {"type": "object", "properties": {}}}]


def chat_reply(prompt: int, text: str = "ok") -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    usage = {"prompt_tokens": prompt, "completion_tokens": 1, "total_tokens": prompt + 1}
    head = {"id": "c", "object": "chat.completion", "created": 1, "model": "gpt-5"}
    return {**head, "choices": [choice], "usage": usage}


@pytest.mark.promise("I10", "I22")
@pytest.mark.parametrize("change", CHANGES, ids=str)
@pytest.mark.parametrize("prompt", [10**12, 10**6, 10**15])
def test_a_figure_that_was_not_believed_is_not_hidden_tokens_of_another_model_or_format(
    change: dict[str, Any], prompt: int
) -> None:
    session = Session(model="gpt-5", format="openai", policy=POLICY)
    session.add({"role": "user", "content": "The queue keeps its order. " * 40})
    session.view()
    session.add(chat_reply(prompt), {"role": "user", "content": "go on"})
    before = session.view().tokens
    session.use(**change)
    view = session.view()
    assert view.tokens == pytest.approx(before, rel=0.6), "another tokenizer, and nothing more"
    assert "hidden" not in view.blocks
    session.use(model="gpt-5", format="openai")
    assert session.view().tokens == before


@pytest.mark.promise("I10", "I22")
@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_one_absurd_figure_among_good_ones_does_not_change_the_hidden_tokens(change: dict[str, Any]) -> None:
    session = Session(model="gpt-5", format="openai", policy=POLICY)
    for number in range(6):
        session.add({"role": "user", "content": "The queue keeps its order. " * 40})
        size = sum(map(session.size, session.view().messages))
        session.add(chat_reply(90_000 if number == 5 else 3_000 + size, "It does. " * 20))
    session.use(**change)
    view = session.view()
    assert 2_000 <= view.blocks["hidden"] <= 3_100


@pytest.mark.promise("I10", "I22")
@pytest.mark.parametrize("words", [1_000, 3_000, 5_000])
@pytest.mark.parametrize("change", [{"model": "gpt-4.1"}, {"format": "openai"}], ids=str)
def test_a_reply_of_several_messages_is_not_taken_for_hidden_tokens(change: dict[str, Any], words: int) -> None:
    session, account = Session(model="gpt-5", tools=TOOLS, format="openai-responses", policy=POLICY), Account()
    session.add({"role": "user", "content": "Why? " * 5_000})
    reply = ScriptedReply(text="foo_bar " * words, calls=(("bash", {"command": "ls"}),))
    session.add(account.answer("openai-responses", session.view().request(max_tokens=100), reply=reply).body)
    session.add({"role": "tool", "tool_call_id": session.messages[-1].calls[0].id, "content": "ok"}, format="openai")
    session.use(**change)
    view = session.view()
    assert "hidden" not in view.blocks
    body = account.answer(session.format, view.request(max_tokens=100)).body
    counted = body["usage"].get("input_tokens") or body["usage"]["prompt_tokens"]
    assert view.tokens == pytest.approx(counted, rel=0.02, abs=40)


@pytest.mark.promise("I10", "I22")
@pytest.mark.parametrize("change", [{}, {"model": "gpt-4.1"}, {"format": "openai"}], ids=str)
@pytest.mark.parametrize("folds", [False, True])
def test_reasoning_that_is_not_sent_again_is_not_counted(change: dict[str, Any], folds: bool) -> None:
    """Another format leaves it out, and the provider drops the reasoning of earlier turns."""
    policy = POLICY.but(window_tokens=12_000)
    session, account = Session(model="gpt-5", format="openai-responses", policy=policy), Account()
    session.add({"role": "user", "content": "Why does the build fail? " * 20})
    for number in range(5):
        reply = ScriptedReply(text="Because.", thinking="let me see " * 700)
        session.add(account.answer("openai-responses", session.view().request(max_tokens=100), reply=reply).body)
        session.add({"role": "user", "content": f"go on {number}"})
    session.use(**change)
    if folds:
        session.fold(force=True)
    made, view = session.folds, session.view()
    assert session.folds == made, "no fold for tokens that are not sent"
    usage = account.answer(session.format, view.request(max_tokens=100)).body["usage"]
    assert view.tokens == pytest.approx(usage.get("prompt_tokens") or usage["input_tokens"], abs=60)


def test_reasoning_of_another_format_has_no_size() -> None:
    session, account = Session(model="gpt-5", format="openai-responses", policy=POLICY), Account()
    session.add({"role": "user", "content": "Why?"})
    reply = ScriptedReply(text="Because.", thinking="let me see " * 700)
    session.add(account.answer("openai-responses", session.view().request(max_tokens=100), reply=reply).body)
    thought, said = session.messages[-2:]
    assert session.size(thought) > 500
    size = session.size(said)
    session.use(format="openai")
    assert session.size(thought) == 0
    assert session.size(said) == size
