"""An account counts, refuses what does not fit in the vendor's words, stores responses and bills."""

from __future__ import annotations

from typing import Any

import pytest

from foldline.models.table import Prices
from foldline.testing.provider import Account, ScriptedReply, SimulatedModel, call
from support.provider_requests import (
    anthropic,
    assistant,
    chat,
    content,
    function_call,
    gemini,
    image,
    output,
    responses,
    text,
    thinking,
    user,
)

LONG = "word " * 5_000


def small(model: str, **fields: Any) -> Account:
    return Account(models={model: SimulatedModel(window=2_000, **fields)})


def test_anthropic_refuses_a_prompt_above_the_window() -> None:
    error = small("claude-opus-5").answer("anthropic", anthropic(user(LONG), model="claude-opus-5")).error
    assert error is not None
    assert error.status == 400
    assert error.message.startswith("prompt is too long: ")
    assert error.message.endswith(" tokens > 2000 maximum")


def test_an_old_claude_refuses_input_and_reply_together() -> None:
    old = Account(models={"claude-sonnet-4": 3_000})
    error = old.answer("anthropic", anthropic(user("word " * 1_500), model="claude-sonnet-4", max_tokens=2_000)).error
    assert error is not None
    assert error.message.startswith("input length and `max_tokens` exceed context limit: ")
    assert error.message.endswith(" + 2000 > 3000, decrease input length or `max_tokens` and try again")


def test_a_new_claude_stops_at_the_window_instead() -> None:
    body = anthropic(user("word " * 800), model="claude-opus-5", max_tokens=2_000)
    reply = Account(models={"claude-opus-5": 3_000}).answer("anthropic", body)
    assert reply.error is None
    assert reply.body["stop_reason"] == "model_context_window_exceeded"


def test_openai_chat_refuses_a_prompt_above_the_window() -> None:
    error = small("gpt-5").answer("openai", chat(user(LONG))).error
    assert error is not None
    assert (error.code, error.param, error.type) == ("context_length_exceeded", "messages", "invalid_request_error")
    assert error.message.startswith(
        "This model's maximum context length is 2000 tokens. However, your messages resulted in "
    )


def test_openai_responses_refuse_a_prompt_above_the_window() -> None:
    error = small("gpt-5").answer("openai_responses", responses({"role": "user", "content": LONG})).error
    assert error is not None
    assert error.code == "context_length_exceeded"
    assert error.message.startswith("Your input exceeds the context window of this model.")


def test_gemini_refuses_a_prompt_above_the_window() -> None:
    error = small("gemini-3-pro").answer("gemini", gemini(content("user", LONG)), model="gemini-3-pro").error
    assert error is not None
    assert error.message.startswith("The input token count (")
    assert error.message.endswith(") exceeds the maximum number of tokens allowed (2000).")


def test_a_reply_limit_above_the_model_is_refused() -> None:
    account = Account(models={"claude-opus-5": SimulatedModel(max_output=1_000)})
    error = account.answer("anthropic", anthropic(user(), model="claude-opus-5", max_tokens=5_000)).error
    assert error is not None
    expected = "max_tokens: 5000 > 1000, which is the maximum allowed number of output tokens for claude-opus-5"
    assert error.message == expected


def test_a_provider_can_truncate_in_silence() -> None:
    reply = small("llama", overflow="truncate").answer("openai", chat(user(LONG), model="llama"))
    assert reply.status == 200
    assert reply.body["usage"]["prompt_tokens"] == 1_000


def test_a_provider_can_ignore_its_window() -> None:
    reply = small("glm-5", overflow="ignore").answer("openai", chat(user(LONG), model="glm-5"))
    assert reply.status == 200
    assert reply.body["usage"]["prompt_tokens"] > 2_000


@pytest.mark.parametrize(
    ("format", "body", "words"),
    [
        ("anthropic", anthropic(user(), model="x"), "model: x"),
        ("openai", chat(user(), model="x"), "The model `x` does not exist or you do not have access to it."),
        ("gemini", gemini(content("user", "hi")), "models/x is not found for API version v1beta"),
    ],
)
def test_an_unknown_model_is_not_found(format: str, body: Any, words: str) -> None:
    error = Account(models={"y": 1_000}).answer(format, body, model="x").error
    assert error is not None
    assert error.status == 404
    assert error.message.startswith(words)


def test_counting_counts_what_the_request_would_be_billed() -> None:
    account = Account()
    body = anthropic(user([text(LONG), image(1_000, 1_000)]), assistant(), user())
    billed = account.answer("anthropic", body).body["usage"]["input_tokens"]
    counted = account.answer("anthropic", {**body, "max_tokens": None}, endpoint="count")
    assert counted.error is not None  # count_tokens takes no max_tokens
    del body["max_tokens"]
    assert account.answer("anthropic", body, endpoint="count").body == {"input_tokens": billed}
    assert len(account.bill.requests) == 1


def test_an_image_counts_by_its_pixels_not_by_its_bytes() -> None:
    account = Account(takes_foreign=True)

    def size(*blocks: dict[str, Any]) -> int:
        found: int = account.answer("anthropic", anthropic(user([text("hi"), *blocks]))).body["usage"]["input_tokens"]
        return found

    empty = size()
    assert size(image(750, 100)) - empty == 100
    assert size(image(1_000, 1_000)) - empty == 1_334
    assert size(image(8_000, 8_000)) - empty == 8_848


def test_thinking_of_earlier_turns_is_not_counted_where_the_model_forgets_it() -> None:
    account = Account(takes_foreign=True)
    history = [user(), assistant([thinking("word " * 1_000), text()]), user("next")]
    sizes = {
        model: account.answer("anthropic", anthropic(*history, model=model)).body["usage"]["input_tokens"]
        for model in ("claude-haiku-4-5", "claude-opus-4-5")
    }
    assert sizes["claude-opus-4-5"] - sizes["claude-haiku-4-5"] > 1_000


def test_gemini_reads_only_its_own_thought_signatures() -> None:
    account = Account()
    question = content("user", "hi")
    made = account.answer("gemini", gemini(question), model="gemini-3-pro", reply=call("bash"))
    (part,) = made.body["candidates"][0]["content"]["parts"]
    response = content("user", {"functionResponse": {"name": "bash", "response": {}, "id": part["functionCall"]["id"]}})
    for signature, is_taken in (
        (part["thoughtSignature"], True),
        ("skip_thought_signature_validator", True),
        ("c2ln", False),
    ):
        body = gemini(question, content("model", {**part, "thoughtSignature": signature}), response)
        error = account.answer("gemini", body, model="gemini-3-pro").error
        assert (error is None) == is_taken, signature
        assert is_taken or (error is not None and error.message == "Corrupted thought signature.")


def test_a_counter_of_the_test_is_used() -> None:
    account = Account(counter=lambda words: 10 * len(words.split()))
    assert account.answer("openai", chat(user("one two three"))).body["usage"]["prompt_tokens"] == 36


def test_the_default_reply_is_an_echo_and_the_same_each_time() -> None:
    bodies = [Account().answer("anthropic", anthropic(user("hello"))).body for _ in range(2)]
    assert bodies[0] == bodies[1]
    assert bodies[0]["content"] == [{"type": "text", "text": "You said: hello"}]
    assert bodies[0]["stop_reason"] == "end_turn"


def test_a_stored_response_can_be_continued() -> None:
    account = Account()
    first = account.answer("openai_responses", responses({"role": "user", "content": "hi"}), reply=call("bash"))
    name, (item,) = first.body["id"], first.body["output"]
    later = account.answer("openai_responses", responses(output(item["call_id"]), previous_response_id=name))
    assert later.error is None
    assert later.body["usage"]["input_tokens"] > first.body["usage"]["input_tokens"]
    unknown = account.answer("openai_responses", responses(output("x"), previous_response_id="resp_x")).error
    assert unknown is not None
    assert unknown.message == "Previous response with id 'resp_x' not found."
    wrong = account.answer("openai_responses", responses(output("other"), previous_response_id=name)).error
    assert wrong is not None
    assert wrong.rule == "result_missing" or wrong.rule == "result_unexpected"


def test_a_reference_to_an_unknown_item_is_not_found() -> None:
    account = Account()
    first = account.answer("openai_responses", responses({"role": "user", "content": "hi"}))
    reference = {"type": "item_reference", "id": first.body["output"][0]["id"]}
    question = {"role": "user", "content": "more"}
    assert account.answer("openai_responses", responses(question, reference, question)).error is None
    error = account.answer("openai_responses", responses({"type": "item_reference", "id": "msg_x"}, question)).error
    assert error is not None
    assert (error.status, error.message) == (404, "Item with id 'msg_x' not found.")


def test_a_call_of_a_reasoning_model_needs_its_reasoning_item() -> None:
    account = Account()
    question = {"role": "user", "content": "hi"}
    scripted = ScriptedReply(thinking="hm", calls=(("bash", {}),))
    reasoning, item = account.answer("openai_responses", responses(question), reply=scripted).body["output"]
    answered = output(item["call_id"])
    assert account.answer("openai_responses", responses(question, reasoning, item, answered)).error is None
    error = account.answer("openai_responses", responses(question, item, answered)).error
    assert error is not None
    assert error.rule == "reasoning_missing"


def test_items_of_a_recorded_session_can_be_registered() -> None:
    account = Account(takes_foreign=True)
    account.stored.remember([{"type": "reasoning", "id": "rs_9", "summary": []}, function_call("a", "fc_9")])
    body = responses({"role": "user", "content": "hi"}, function_call("a", "fc_9"), output("a"))
    error = account.answer("openai_responses", body).error
    assert error is not None
    assert error.rule == "reasoning_missing"


def test_requests_are_billed_by_the_prices_of_the_test() -> None:
    prices = {"claude-opus-5": Prices(input=1.0, output=10.0, read=0.1, write=1.25, write_1h=2.0)}
    account = Account(prices=prices, counter=lambda words: len(words.split()))
    marked = [text("w " * 1_000, cache_control={"type": "ephemeral"})]
    body = anthropic(user(marked), model="claude-opus-5", tools=[])
    first = account.answer("anthropic", body, reply=ScriptedReply(text="one two"))
    assert first.usd == pytest.approx((3 * 1.0 + 1_004 * 1.25 + 2 * 10.0) / 1_000_000)
    second = account.answer("anthropic", body, reply=ScriptedReply(text="one two"))
    assert second.usd == pytest.approx((3 * 1.0 + 1_004 * 0.1 + 2 * 10.0) / 1_000_000)
    assert account.bill.usd == pytest.approx(first.usd + second.usd)
    assert str(account.bill) == "2 requests, $0.0014: 2,014 tokens in (1,004 read from the cache, 1,004 written), 4 out"


def test_a_thread_is_refused_so_that_the_client_sends_everything() -> None:
    body = anthropic(user(), thread={"type": "create"})
    error = Account().answer("anthropic", body, betas=["message-threads-2026-08-12"]).error
    assert error is not None
    assert (error.status, error.code) == (400, "thread_unsupported_request")


def test_a_refused_request_is_not_billed() -> None:
    account = Account()
    account.answer("anthropic", anthropic())
    assert account.bill.requests == []


def test_max_tokens_zero_warms_the_cache() -> None:
    account = Account(counter=lambda words: len(words.split()))
    marked = [text("w " * 1_000, cache_control={"type": "ephemeral"})]
    reply = account.answer("anthropic", anthropic(user(marked), model="claude-opus-5", max_tokens=0))
    assert reply.body["content"] == []
    assert reply.body["usage"]["cache_creation_input_tokens"] > 1_000


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-opus-5"])
@pytest.mark.parametrize("counter", [None, lambda text: len(text.split())], ids=["default", "own"])
def test_a_text_has_as_many_tokens_in_a_reply_of_claude_as_in_a_prompt(model: str, counter: Any) -> None:
    account, words = Account(counter=counter), "the queue keeps order " * 8_000
    reply = ScriptedReply(text=words, calls=(("read_file", {"path": "a.py"}),))
    usage = account.answer("anthropic", anthropic(user(words), model=model), reply=reply).body["usage"]
    assert usage["output_tokens"] == pytest.approx(usage["input_tokens"], rel=0.02)
