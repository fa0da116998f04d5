"""Signed thinking comes back unchanged and behind its own prefix, or is refused or dropped."""

from __future__ import annotations

from typing import Any

import pytest

from foldline.testing.provider import Account, ScriptedReply
from foldline.testing.provider.seal import Seal
from support.provider_requests import TOOL, anthropic, assistant, text, thinking, tool_result, user

NEW, OLD = "claude-opus-5-5", "claude-opus-4-8"
BETA = ("thinking-binding-controls-2026-08-01",)
DROP = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
Message = dict[str, Any]


def conversation(account: Account, model: str = NEW, turns: int = 3, **fields: Any) -> list[Message]:
    """Turns in which the model thinks, calls a tool, thinks again and answers; a user message stands last."""
    messages = [user("turn 0")]
    for turn in range(turns):
        calls = (("bash", {"command": f"ls {turn}"}),)
        reply = account.answer(
            "anthropic",
            anthropic(*messages, model=model, **fields),
            reply=ScriptedReply(thinking=f"look {turn}", calls=calls),
        )
        assert reply.error is None, reply.error
        content = reply.body["content"]
        messages += [assistant(content), user([tool_result(content[1]["id"])])]
        reply = account.answer(
            "anthropic",
            anthropic(*messages, model=model, **fields),
            reply=ScriptedReply(thinking=f"sum up {turn}", text=f"answer {turn}"),
        )
        assert reply.error is None, reply.error
        messages += [assistant(reply.body["content"]), user(f"turn {turn + 1}")]
    return messages


def strip(messages: list[Message], keep: Any = lambda number: False) -> list[Message]:
    """The messages without their thinking, except in those that are kept."""
    found = []
    for number, message in enumerate(messages):
        if isinstance(message["content"], list) and not keep(number):
            blocks = [block for block in message["content"] if block["type"] != "thinking"]
            found.append({**message, "content": blocks})
        else:
            found.append(message)
    return found


def refusal(account: Account, messages: list[Message], model: str = NEW, **fields: Any) -> str:
    reply = account.answer("anthropic", anthropic(*messages, model=model, **fields))
    return reply.error.message if reply.error else ""


@pytest.fixture
def account() -> Account:
    return Account()


def test_an_unchanged_history_is_taken(account: Account) -> None:
    assert refusal(account, conversation(account)) == ""


def test_cache_marks_may_move(account: Account) -> None:
    messages = conversation(account, system=[text("You are.")])
    marked = [text("You are.", cache_control={"type": "ephemeral"})]
    assert refusal(account, messages, system=marked) == ""


def test_deferred_tools_may_be_added(account: Account) -> None:
    messages = conversation(account)
    assert refusal(account, messages, tools=[TOOL, {**TOOL, "name": "more", "defer_loading": True}]) == ""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"system": "Another."}, "The `system` prompt differs from the one this block was created with."),
        ({"tools": [TOOL, {**TOOL, "name": "more"}]}, "The `tools` differ from the ones this block was created with."),
    ],
    ids=["system", "tools"],
)
def test_a_changed_head_is_refused(account: Account, change: dict[str, Any], words: str) -> None:
    found = refusal(account, conversation(account), **change)
    assert found.startswith(
        "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation."
    )
    assert words in found


def test_a_changed_message_invalidates_the_thinking_behind_it(account: Account) -> None:
    messages = conversation(account)
    messages[4] = user("turn 1, edited")
    found = refusal(account, messages)
    assert found.startswith("messages.5.content.0: Invalid `signature`")
    assert "The messages before this block differ" in found


def test_a_local_fold_invalidates_the_thinking_of_the_tail(account: Account) -> None:
    messages = conversation(account)
    folded = [user("Summary of what was said."), *messages[5:]]
    assert "bound to a different conversation" in refusal(account, folded)
    assert refusal(account, [folded[0], *strip(folded[1:])]) == ""


def test_leaving_out_one_block_between_others_is_refused(account: Account) -> None:
    messages = conversation(account)
    found = refusal(account, strip(messages, keep=lambda number: number != 3))
    assert "The `thinking` block that preceded this one when it was created is missing from this request." in found


def test_leaving_out_all_thinking_is_taken(account: Account) -> None:
    messages = strip(conversation(account))
    assert refusal(account, messages) == ""
    reply = account.answer("anthropic", anthropic(*messages, model=NEW), reply=ScriptedReply(thinking="a", text="b"))
    assert refusal(account, [*messages, assistant(reply.body["content"]), user("more")]) == ""


def test_leaving_out_the_newest_thinking_is_taken(account: Account) -> None:
    messages = conversation(account)
    assert refusal(account, strip(messages, keep=lambda number: number < 11)) == ""


def test_drop_block_drops_and_lists_what_does_not_match(account: Account) -> None:
    messages = conversation(account, turns=2)
    messages[4] = user("edited")
    reply = account.answer("anthropic", anthropic(*messages, model=NEW, thinking=DROP), betas=BETA)
    assert reply.error is None
    assert reply.body["input_transformations"] == [
        {"type": "thinking_dropped", "path": f"messages.{number}.content.0", "reason": "prefix_binding_mismatch"}
        for number in (5, 7)
    ]


def test_thinking_written_after_a_drop_is_valid(account: Account) -> None:
    messages = conversation(account, turns=2)
    messages[4] = user("edited")
    body = anthropic(*messages, model=NEW, thinking=DROP)
    reply = account.answer("anthropic", body, betas=BETA, reply=ScriptedReply(thinking="new", text="x"))
    body["messages"] += [assistant(reply.body["content"]), user("more")]
    later = account.answer("anthropic", body, betas=BETA)
    assert [entry["path"] for entry in later.body["input_transformations"]] == [
        "messages.5.content.0",
        "messages.7.content.0",
    ]


def test_dropped_blocks_are_not_counted(account: Account) -> None:
    long = ScriptedReply(thinking="word " * 2_000, text="x")
    reply = account.answer("anthropic", anthropic(user(), model=NEW), reply=long)
    messages = [user("edited"), assistant(reply.body["content"]), user()]
    dropped = account.answer("anthropic", anthropic(*messages, model=NEW, thinking=DROP), betas=BETA)
    assert dropped.body["usage"]["input_tokens"] < 1_000


def test_without_the_beta_nothing_is_listed(account: Account) -> None:
    reply = account.answer("anthropic", anthropic(user(), model=NEW))
    assert "input_transformations" not in reply.body
    listed = account.answer("anthropic", anthropic(user(), model=NEW), betas=BETA)
    assert listed.body["input_transformations"] == []


def test_an_older_model_takes_its_own_thinking_behind_any_prefix(account: Account) -> None:
    messages = conversation(account, OLD)
    messages[0] = user("edited")
    assert refusal(account, messages, OLD, system="Another.") == ""


def test_an_older_account_is_not_checked() -> None:
    old = Account(enforces_binding=False)
    messages = conversation(old)
    assert refusal(old, messages, system="Another.") == ""


@pytest.mark.parametrize("model", [NEW, OLD])
def test_modified_thinking_is_refused(account: Account, model: str) -> None:
    messages = conversation(account, model)
    latest, earlier = messages[-2]["content"][0], messages[1]["content"][0]
    latest["thinking"] += "!"
    assert "blocks in the latest assistant message cannot be modified." in refusal(account, messages, model)
    latest["thinking"] = latest["thinking"][:-1]
    earlier["thinking"] += "!"
    found = refusal(account, messages, model)
    assert found == "messages.1.content.0: Invalid `signature` in `thinking` block"


@pytest.mark.parametrize("model", [NEW, OLD])
def test_thinking_of_another_provider_is_refused(account: Account, model: str) -> None:
    foreign = conversation(Account(seal=Seal("another provider")), model)
    assert "Invalid `signature` in `thinking` block" in refusal(account, foreign, model)
    made_up = [user(), assistant([thinking(), text()]), user()]
    assert "Invalid `signature` in `thinking` block" in refusal(account, made_up, model)


def test_thinking_of_recorded_sessions_is_taken_where_a_test_asks_for_it() -> None:
    lenient = Account(takes_foreign=True)
    assert refusal(lenient, [user(), assistant([thinking(), text()]), user()]) == ""


def test_thinking_of_another_model_is_dropped_without_an_error(account: Account) -> None:
    messages = conversation(account, "claude-fable-5-1", turns=1)
    reply = account.answer("anthropic", anthropic(*messages, model=NEW), betas=BETA)
    assert reply.error is None
    reasons = {entry["reason"] for entry in reply.body["input_transformations"]}
    assert reasons == {"model_binding_mismatch"}


def test_some_models_read_each_other(account: Account) -> None:
    messages = conversation(account, "claude-opus-5-5", turns=1)
    reply = account.answer("anthropic", anthropic(*messages, model="claude-fable-5-1"), betas=BETA)
    assert reply.body["input_transformations"] == []


def test_thinking_of_sonnet_5_5_belongs_to_its_account() -> None:
    seal = Seal()
    messages = conversation(Account(name="a", seal=seal), "claude-sonnet-5-5", turns=1)
    other = Account(name="b", seal=seal)
    reply = other.answer("anthropic", anthropic(*messages, model="claude-sonnet-5-5"), betas=BETA)
    reasons = {entry["reason"] for entry in reply.body["input_transformations"]}
    assert reasons == {"organization_binding_mismatch"}
