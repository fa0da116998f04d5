"""The simulated prompt caches read and write as the vendors document, by a clock that tests move."""

from __future__ import annotations

from typing import Any

from foldline.testing.provider import Account
from support.provider_requests import (
    TOOL,
    anthropic,
    assistant,
    chat,
    content,
    gemini,
    image,
    responses,
    text,
    user,
)

MODEL = "claude-opus-4-8"  # at least 1,024 tokens are cached
MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}
WORDS = 400


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def account(clock: Clock | None = None) -> Account:
    """An account that counts words, so that sizes are known."""
    return Account(clock=clock or Clock(), counter=lambda words: len(words.split()))


def words(count: int = WORDS, word: str = "w") -> str:
    return " ".join([word] * count)


def usage(account: Account, body: dict[str, Any], format: str = "anthropic", **fields: Any) -> dict[str, Any]:
    reply = account.answer(format, body, **fields)
    assert reply.error is None, reply.error
    found: dict[str, Any] = reply.body.get("usage") or reply.body["usageMetadata"]
    return found


def request(*texts: str, marked: int = -1, ttl: dict[str, str] = MARK, **fields: Any) -> dict[str, Any]:
    blocks = [text(words) for words in texts]
    if marked is not None:
        blocks[marked]["cache_control"] = ttl
    return anthropic(user(blocks), model=MODEL, tools=[], **fields)


def test_a_marked_prefix_is_written_once_and_read_afterwards() -> None:
    simulated = account()
    first = usage(simulated, request(words(2_000), words(10, "x"), marked=0))
    assert first["cache_read_input_tokens"] == 0
    assert first["cache_creation"] == {"ephemeral_5m_input_tokens": 2_004, "ephemeral_1h_input_tokens": 0}
    second = usage(simulated, request(words(2_000), words(20, "y"), marked=0))
    assert second["cache_read_input_tokens"] == 2_004
    assert second["cache_creation_input_tokens"] == 0
    assert second["input_tokens"] < 40


def test_without_a_mark_nothing_is_cached() -> None:
    simulated = account()
    body = anthropic(user(words(2_000)), model=MODEL, tools=[])
    for _ in range(2):
        found = usage(simulated, body)
        assert found["cache_creation_input_tokens"] == found["cache_read_input_tokens"] == 0


def test_a_prefix_below_the_minimum_is_not_cached() -> None:
    simulated = account()
    assert usage(simulated, request(words(900)))["cache_creation_input_tokens"] == 0
    small = {**request(words(900)), "model": "claude-opus-5"}  # 512 there
    assert usage(simulated, small)["cache_creation_input_tokens"] > 900


def test_an_entry_expires_after_five_minutes_unless_it_is_read() -> None:
    clock = Clock()
    simulated = account(clock)
    usage(simulated, request(words(2_000)))
    for _ in range(3):
        clock.now += 299
        assert usage(simulated, request(words(2_000)))["cache_read_input_tokens"] > 0
    clock.now += 301
    assert usage(simulated, request(words(2_000)))["cache_read_input_tokens"] == 0


def test_reading_a_long_prefix_renews_the_shorter_ones_in_it() -> None:
    clock = Clock()
    simulated = account(clock)
    system = [{"type": "text", "text": words(2_000, "s"), "cache_control": MARK}]
    usage(simulated, request(words(2_000), system=system))
    for _ in range(4):
        clock.now += 200
        usage(simulated, request(words(2_000), system=system))
    clock.now += 200
    found = usage(simulated, request(words(2_000, "other"), system=system))
    assert 2_000 <= found["cache_read_input_tokens"] < 3_000


def test_an_hour_is_billed_apart_and_lasts_an_hour() -> None:
    clock = Clock()
    simulated = account(clock)
    found = usage(simulated, request(words(2_000), ttl=HOUR))
    assert found["cache_creation"]["ephemeral_1h_input_tokens"] > 2_000
    assert found["cache_creation"]["ephemeral_5m_input_tokens"] == 0
    clock.now += 3_500
    assert usage(simulated, request(words(2_000), ttl=HOUR))["cache_read_input_tokens"] > 2_000


def test_two_marks_of_different_length_split_what_is_written() -> None:
    body = anthropic(
        user([text(words(500, "x"), cache_control=MARK)]),
        model=MODEL,
        tools=[],
        system=[text(words(2_000), cache_control=HOUR)],
    )
    found = usage(account(), body)["cache_creation"]
    assert found["ephemeral_1h_input_tokens"] == 2_000
    assert 500 <= found["ephemeral_5m_input_tokens"] < 520


def test_a_mark_finds_an_entry_at_most_twenty_blocks_back() -> None:
    start = [words(2_000)]
    for added, is_found in ((19, True), (20, False)):
        simulated = account()
        usage(simulated, request(*start))
        found = usage(simulated, request(*start, *[f"block {n}" for n in range(added)]))
        assert (found["cache_read_input_tokens"] > 0) == is_found, added


def test_a_second_mark_bridges_the_distance() -> None:
    simulated = account()
    usage(simulated, request(words(2_000)))
    body = request(words(2_000), *[f"block {n}" for n in range(40)])
    body["messages"][0]["content"][0]["cache_control"] = MARK
    assert usage(simulated, body)["cache_read_input_tokens"] > 2_000


def test_a_change_of_tools_loses_everything_and_one_of_the_system_loses_the_messages() -> None:
    simulated = account()
    tool = {**TOOL, "description": words(1_500), "cache_control": MARK}
    body = anthropic(
        user([text(words(1_500), cache_control=MARK)]), model=MODEL, tools=[tool], system=[text(words(100, "s"))]
    )
    usage(simulated, body)
    whole = usage(simulated, body)["cache_read_input_tokens"]
    changed_system = usage(simulated, {**body, "system": [text("other")]})["cache_read_input_tokens"]
    changed_tool = usage(simulated, {**body, "tools": [{**tool, "name": "other"}]})["cache_read_input_tokens"]
    assert whole > changed_system > changed_tool == 0


def test_a_change_of_tool_choice_loses_the_messages_only() -> None:
    simulated = account()
    body = anthropic(
        user([text(words(1_500), cache_control=MARK)]), model=MODEL, system=[text(words(1_500), cache_control=MARK)]
    )
    usage(simulated, body)
    whole = usage(simulated, body)["cache_read_input_tokens"]
    changed = usage(simulated, {**body, "tool_choice": {"type": "any"}})["cache_read_input_tokens"]
    assert whole > changed > 1_500


def test_the_first_image_loses_the_cached_messages() -> None:
    simulated = account()
    body = anthropic(user([text(words(1_500), cache_control=MARK)]), model=MODEL, tools=[])
    usage(simulated, body)
    body["messages"] += [assistant(), user([text(), image()])]
    assert usage(simulated, body)["cache_read_input_tokens"] == 0


def test_another_model_reads_nothing() -> None:
    simulated = account()
    usage(simulated, request(words(2_000)))
    assert usage(simulated, {**request(words(2_000)), "model": "claude-opus-5"})["cache_read_input_tokens"] == 0


def test_an_automatic_mark_follows_the_conversation() -> None:
    simulated = account()
    body = anthropic(user(words(2_000)), model=MODEL, tools=[], cache_control=MARK)
    usage(simulated, body)
    body["messages"] += [assistant("hi"), user("go on")]
    assert usage(simulated, body)["cache_read_input_tokens"] > 2_000


def test_openai_caches_from_1024_tokens_in_steps_of_128() -> None:
    simulated = account()
    first = chat(user(words(1_300)))
    assert usage(simulated, first, "openai")["prompt_tokens_details"]["cached_tokens"] == 0
    later = usage(simulated, chat(*first["messages"], assistant(), user("go on")), "openai")
    assert later["prompt_tokens_details"]["cached_tokens"] == 1_280
    assert later["prompt_tokens"] > 1_300
    assert "cache_write_tokens" not in later["prompt_tokens_details"]
    small = chat(user(words(900, "z")))
    usage(simulated, small, "openai")
    assert usage(simulated, small, "openai")["prompt_tokens_details"]["cached_tokens"] == 0


def test_openai_reports_writes_since_5_6_and_keeps_them_half_an_hour() -> None:
    clock = Clock()
    simulated = account(clock)
    body = responses({"role": "user", "content": words(2_000)}, model="gpt-5.6")
    first = usage(simulated, body, "openai_responses")["input_tokens_details"]
    assert first["cached_tokens"] == 0
    assert first["cache_write_tokens"] >= 2_000
    clock.now += 1_700
    assert usage(simulated, body, "openai_responses")["input_tokens_details"]["cached_tokens"] >= 1_920


def test_gemini_caches_by_itself_from_its_minimum() -> None:
    simulated = account()
    body = gemini(content("user", words(5_000)))
    assert "cachedContentTokenCount" not in usage(simulated, body, "gemini", model="gemini-3-pro")
    assert usage(simulated, body, "gemini", model="gemini-3-pro")["cachedContentTokenCount"] >= 5_000
    small = gemini(content("user", words(3_000, "s")))
    usage(simulated, small, "gemini", model="gemini-3-pro")
    assert "cachedContentTokenCount" not in usage(simulated, small, "gemini", model="gemini-3-pro")
