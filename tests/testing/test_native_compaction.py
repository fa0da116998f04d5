"""Compaction blocks and items of the providers: signed by their maker, in their place, useless to anybody else."""

from __future__ import annotations

from typing import Any

import pytest

from foldline.testing.provider import Account, ScriptedReply
from foldline.testing.provider.seal import Seal
from support.provider_requests import anthropic, assistant, responses, text, tool_use, user

MODEL = "claude-opus-5-5"
BETA = ("compact-2026-09-04",)
Message = dict[str, Any]


def ask(account: Account, *messages: Message, **fields: Any) -> Any:
    return account.answer("anthropic", anthropic(*messages, model=MODEL, **fields), betas=BETA)


def compact(account: Account, *messages: Message, **fields: Any) -> Message:
    reply = ask(account, *messages, compaction={"type": "summarize"}, **fields)
    assert reply.error is None, reply.error
    assert reply.body["stop_reason"] == "compaction"
    block: Message = reply.body["content"][0]
    return assistant([block])


@pytest.fixture
def account() -> Account:
    return Account()


@pytest.fixture
def history(account: Account) -> list[Message]:
    """Three turns with thinking; a user message stands last."""
    messages = [user("turn 0")]
    for turn in range(3):
        reply = account.answer(
            "anthropic",
            anthropic(*messages, model=MODEL),
            reply=ScriptedReply(thinking=f"hm {turn}", text=f"answer {turn}"),
        )
        messages += [assistant(reply.body["content"]), user(f"turn {turn + 1}")]
    return messages


def test_a_block_stands_for_what_it_summarises(account: Account, history: list[Message]) -> None:
    block = compact(account, *history[:4])
    whole, shorter = ask(account, *history), ask(account, block, *history[4:])
    assert shorter.error is None
    assert shorter.body["usage"]["input_tokens"] < whole.body["usage"]["input_tokens"] + 100


def test_thinking_of_the_tail_stays_valid_behind_the_block(account: Account, history: list[Message]) -> None:
    block = compact(account, *history[:2])
    assert ask(account, block, *history[2:]).error is None
    edited = [block, user("edited"), *history[3:]]
    assert ask(account, *edited).error.rule == "thinking_bound"
    assert ask(account, block, *history[4:]).error.rule == "thinking_bound"
    assert ask(account, block, *history[2:], system="Another.").error.rule == "thinking_bound"


def test_a_block_that_is_not_first_is_misplaced(account: Account, history: list[Message]) -> None:
    block = compact(account, *history[:4])
    error = ask(account, user("A note."), block, *history[4:]).error
    assert error.code == "compaction_block_misplaced"
    assert error.body()["error"]["details"] == {"error_code": "compaction_block_misplaced"}
    assert error.message == "messages.1.content.0: The `compaction` block is not the first block of the conversation."


def test_two_blocks_are_ambiguous(account: Account, history: list[Message]) -> None:
    block = compact(account, *history[:2])
    both = assistant([*block["content"], *compact(account, *history[:4])["content"]])
    assert ask(account, both, user()).error.code == "compaction_block_ambiguous"


def test_changed_content_does_not_match(account: Account, history: list[Message]) -> None:
    block = compact(account, *history[:4])
    block["content"][0]["content"] += " And more."
    assert ask(account, block, user()).error.code == "compaction_content_mismatch"


def test_changed_tool_changes_do_not_match(account: Account, history: list[Message]) -> None:
    block = compact(account, *history[:4])
    reference = {"type": "tool_reference", "name": "bash"}
    block["content"][0]["tool_changes"] = [{"type": "tool_removal", "tool": reference}]
    reply = account.answer(
        "anthropic",
        anthropic(block, user(), model=MODEL),
        betas=[*BETA, "mid-conversation-tool-changes-2026-07-01"],
    )
    assert reply.error is not None
    assert reply.error.code == "compaction_tool_changes_mismatch"


def test_a_block_of_another_account_model_or_provider_is_invalid(history: list[Message], account: Account) -> None:
    block = compact(account, *history[:4])
    for other in (Account(name="other"), Account(seal=Seal("other provider"))):
        assert ask(other, block, user()).error.code == "compaction_signature_invalid"
    reply = account.answer("anthropic", anthropic(block, user(), model="claude-sonnet-5-5"), betas=BETA)
    assert reply.error is not None
    assert reply.error.code == "compaction_signature_invalid"


def test_a_request_that_ends_in_a_call_is_incomplete(account: Account) -> None:
    error = ask(account, user(), assistant([tool_use()]), compaction={"type": "summarize"}).error
    assert error.code == "compaction_incomplete_turn"


def test_there_must_be_something_to_summarise(account: Account, history: list[Message]) -> None:
    block = compact(account, *history[:4])
    assert ask(account, block, compaction={"type": "summarize"}).error.code == "compaction_nothing_to_summarize"


def test_compaction_and_context_management_exclude_each_other(account: Account) -> None:
    reply = account.answer(
        "anthropic",
        anthropic(user(), model=MODEL, compaction={"type": "summarize"}, context_management={"edits": []}),
        betas=[*BETA, "context-management-2025-06-27"],
    )
    assert reply.error is not None
    assert reply.error.rule == "compaction"


def test_a_block_of_the_earlier_beta_may_stand_anywhere(account: Account) -> None:
    block = {"type": "compaction", "content": "What was said before."}
    body = anthropic(user("long ago"), assistant([block, text("hi")]), user(), model=MODEL)
    reply = account.answer("anthropic", body, betas=["compact-2026-01-12"])
    assert reply.error is None
    empty = anthropic(user(), assistant([{**block, "content": ""}, text()]), user(), model=MODEL)
    refused = account.answer("anthropic", empty, betas=["compact-2026-01-12"])
    assert refused.error is not None
    assert refused.error.rule == "empty_compaction"


def openai(account: Account, *items: Message, **fields: Any) -> Any:
    return account.answer("openai_responses", responses(*items, **fields))


def test_openai_compacts_on_a_trigger_and_reads_its_item_again(account: Account) -> None:
    question = {"role": "user", "content": "hello"}
    reply = openai(account, question, {"type": "compaction_trigger"})
    (item,) = reply.body["output"]
    assert item["type"] == "compaction"
    assert openai(account, item, question).error is None
    for other in (Account(name="other"), Account(seal=Seal("other provider"))):
        error = openai(other, item, question).error
        assert error.code == "invalid_encrypted_content"


def test_openai_compacts_in_the_stream_at_a_threshold(account: Account) -> None:
    edit = [{"type": "compaction", "compact_threshold": 1_000}]
    small = openai(account, {"role": "user", "content": "hi"}, context_management=edit)
    assert [item["type"] for item in small.body["output"]] == ["message"]
    large = openai(account, {"role": "user", "content": "word " * 2_000}, context_management=edit)
    assert [item["type"] for item in large.body["output"]] == ["compaction", "message"]


def test_the_compact_endpoint_returns_user_messages_and_one_item(account: Account) -> None:
    question = {"role": "user", "content": "hello"}
    answer = {"role": "assistant", "content": "hi"}
    reply = account.answer("openai_responses", responses(question, answer), endpoint="compact")
    assert reply.body["object"] == "response.compaction"
    assert [item.get("type", "message") for item in reply.body["output"]] == ["message", "compaction"]


def test_encrypted_reasoning_belongs_to_its_account(account: Account) -> None:
    question = {"role": "user", "content": "hello"}
    reply = account.answer("openai_responses", responses(question), reply=ScriptedReply(thinking="hm", text="hi"))
    items = [question, *reply.body["output"], question]
    assert openai(account, *items).error is None
    assert openai(Account(name="other"), *items).error.code == "invalid_encrypted_content"
