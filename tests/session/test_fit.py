"""`foldline.fit`: a list in, a list out, in the same format."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import foldline
from foldline import Policy, ViewTooLarge, fit, fitting, render
from foldline.digesters import DigesterCall
from foldline.errors import InputError
from foldline.message import Message, ToolCall, assistant, tool, user
from foldline.testing import assert_sendable, proper
from foldline.testing.provider import judge
from foldline.wire.formats import request_format

TASK = "Port the parser in src/parser.py to Rust. Never touch src/lexer.py."
FORMATS = {"anthropic": "claude-sonnet-5", "openai": "gpt-5", "openai-responses": "gpt-5", "gemini": "gemini-2.5-pro"}


def history(steps: int) -> list[Message]:
    messages = [user(TASK)]
    for number in range(steps):
        call = ToolCall(id=f"call_{number}", name="read", arguments=f'{{"path": "src/part_{number}.py"}}')
        messages.append(assistant(f"I read part {number} now.", call))
        messages.append(tool(call.id, f"def part_{number}():\n" + f"    return {number}  # a line of code\n" * 60))
    return messages


def listed(steps: int, format: str) -> list[Any]:
    elements: list[Any] = render(history(steps), format).body[request_format(format).list_key]
    return elements


@pytest.mark.parametrize("format", FORMATS)
def test_the_result_fits_keeps_the_task_and_has_a_digest(format: str) -> None:
    messages = listed(60, format)
    fitting = fit(messages, model=FORMATS[format], budget=20_000)
    text = str(fitting)
    assert len(fitting) < len(messages)
    assert TASK in text
    assert "[session digest" in text
    assert "recall" not in text
    assert "[#" not in text
    assert fitting[-1] is messages[-1]
    assert_sendable(fitting, format)


@pytest.mark.parametrize("format", FORMATS)
def test_a_list_that_fits_is_the_same_object(format: str) -> None:
    messages = listed(5, format)
    assert fit(messages, model=FORMATS[format], budget=50_000) is messages
    assert fit(messages, model=FORMATS[format]) is messages


def test_an_empty_list_is_returned() -> None:
    empty: list[Any] = []
    assert fit(empty, model="gpt-5") is empty


@settings(max_examples=10)
@given(start=st.integers(20, 40), more=st.integers(1, 6))
def test_between_folds_the_result_only_grows_at_its_end(start: int, more: int) -> None:
    """With the whole history, every time: a fold is made at the same place, so the prompt cache stays valid."""
    changes = 0
    before = fit(listed(start, "openai"), model="gpt-5", budget=12_000)
    for steps in range(start + 1, start + more + 1):
        after = fit(listed(steps, "openai"), model="gpt-5", budget=12_000)
        changes += after[: len(before)] != before
        before = after
    assert changes <= 1 + more // 3


def test_in_a_small_window_not_every_turn_needs_a_new_fold() -> None:
    """Steps of a fifth of the window: a fold once kept two of them, so that the next one needed a fold again."""
    messages: list[Any] = []
    changes, before = 0, list[Any]()
    for turn in range(16):
        lines = "\n".join(f"def function_{turn}_{line}(x): return x * {line * 7919 % 9973}" for line in range(122))
        call = {"type": "tool_use", "id": f"call_{turn}", "name": "read", "input": {"path": f"src/part{turn}.py"}}
        result = {"type": "tool_result", "tool_use_id": f"call_{turn}", "content": lines}
        messages += [{"role": "user", "content": f"Read part {turn}."}, {"role": "assistant", "content": [call]}]
        messages += [{"role": "user", "content": [result]}]
        after = fit(messages, model="claude-sonnet-5", budget=16_000)
        changes += after[: len(before)] != before
        before = after
        messages.append({"role": "assistant", "content": "Done."})
    assert 4 <= changes <= 8


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=8), st.sampled_from(list(FORMATS)), st.integers(20, 45))
def test_a_list_that_grew_is_folded_as_if_it_were_new(growth: list[int], format: str, start: int) -> None:
    steps = start
    for more in growth:
        steps += more
        grown = fit(listed(steps, format), model=FORMATS[format], budget=12_000)
    fitting._fitted.clear()
    assert fit(listed(steps, format), model=FORMATS[format], budget=12_000) == grown


def test_a_list_that_grew_costs_only_what_is_new() -> None:
    calls: list[DigesterCall] = []

    def write(call: DigesterCall) -> str:
        calls.append(call)
        return proper(call)

    first = fit(listed(60, "openai"), model="gpt-5", budget=12_000, digester=write)
    folds = len(calls)
    fitting._remembered.clear()
    grown = fit(listed(61, "openai"), model="gpt-5", budget=12_000, digester=write)
    assert grown[: len(first)] == first
    assert len(calls) == folds


def test_an_edited_list_is_not_taken_for_the_earlier_one() -> None:
    messages = listed(40, "openai")
    fit(messages, model="gpt-5", budget=12_000)
    edited = [{**messages[0], "content": "Port the lexer instead."}, *messages[1:]]
    assert TASK not in str(fit(edited, model="gpt-5", budget=12_000))


def test_many_threads_can_fit_the_same_list() -> None:
    messages = listed(40, "openai")
    expected = fit(messages, model="gpt-5", budget=12_000)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: fit(messages, model="gpt-5", budget=12_000), range(8)))
    assert all(result == expected for result in results)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (None, "fit takes a list of messages, not NoneType"),
        ("hello", "fit takes a list of messages, not str"),
        (iter([]), "fit takes a list of messages, not list_iterator"),
        ({"model": "gpt-5", "messages": []}, 'pass body["messages"]'),
    ],
)
def test_what_is_not_a_list_is_refused(given: Any, told: str) -> None:
    with pytest.raises(InputError, match=re.escape(told)):
        fit(given, model="gpt-5")


def test_a_budget_of_nothing_is_refused_by_its_name() -> None:
    with pytest.raises(InputError, match="budget must be at least 1 token, not 0"):
        fit([], model="gpt-5", budget=0)


def test_the_returned_list_can_be_kept_and_grown() -> None:
    kept: list[Any] = []
    for message in listed(80, "openai"):
        kept = fit([*kept, message], model="gpt-5", budget=12_000)
    text = str(kept)
    assert TASK in text
    assert text.count("[session digest") == 1
    assert "part_3" in text  # from a message that was folded many folds ago
    assert_sendable(kept, "openai")


@pytest.mark.parametrize("budget", [1_500, 3_000, 6_000])
def test_a_list_that_is_fitted_again_and_again_has_one_digest_that_counts_all_messages(budget: int) -> None:
    kept: list[Any] = [user(TASK)]
    added = 0
    for number in range(60):
        path = f'{{"path": "/w/src/part_{number}.py", "new_string": "x = {number}"}}'
        new = [assistant("", ToolCall(id=f"call_{number}", name="edit", arguments=path))]
        new += [tool(f"call_{number}", f"edited part {number}. " + "It is a long result. " * 20)]
        if number % 4 == 0:
            new += [assistant("Done."), user(f"Now use port {7_000 + number} for the service.")]
        kept, added = fit([*kept, *new], budget=budget), added + len(new)
    (digest,) = [message.text for message in kept if "session digest" in message.text]
    assert "Earlier digest" not in digest
    assert digest.count("earlier messages were condensed") == 1
    assert f"{added + 1 - (len(kept) - 1)} earlier messages were condensed." in digest
    assert "User: Now use port 7000 for the service." in digest, "the oldest prompt of the first digest"


@pytest.mark.parametrize("is_async", [False, True])
def test_a_digester_is_asked_once_for_the_same_messages(is_async: bool) -> None:
    calls: list[DigesterCall] = []

    def write(call: DigesterCall) -> str:
        calls.append(call)
        return proper(call)

    async def write_later(call: DigesterCall) -> str:
        return write(call)

    digester = write_later if is_async else write
    first = fit(listed(30, "openai"), model="gpt-5", budget=12_000, digester=digester)
    asked = len(calls)
    assert asked
    assert "The user asked" in str(first)
    assert fit(listed(30, "openai"), model="gpt-5", budget=12_000, digester=digester) == first
    assert len(calls) == asked


@pytest.mark.parametrize("hangs", [False, True])
def test_a_digester_that_fails_is_asked_once(hangs: bool) -> None:
    calls: list[DigesterCall] = []
    released = Event()

    def broken(call: DigesterCall) -> str:
        calls.append(call)
        if hangs:
            released.wait()
        raise RuntimeError("no model")

    policy = Policy.preset("balanced").but(digest_seconds=1)
    messages = listed(60, "openai")
    results = [
        fit(messages, model="gpt-5", budget=6_000, policy=policy, digester=broken),
        fit(messages, model="gpt-5", budget=6_000, policy=policy, digester=broken),
        fit(messages[:-1], model="gpt-5", budget=6_000, policy=policy, digester=broken),
    ]
    released.set()
    assert len(calls) == 1
    assert all(TASK in str(result) and len(result) < len(messages) for result in results)


def test_a_digester_that_failed_is_asked_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now, calls = [1000.0], []

    def broken(call: DigesterCall) -> str:
        calls.append(call)
        raise RuntimeError("no model")

    monkeypatch.setattr(fitting, "monotonic", lambda: now[0])
    for _ in range(3):
        fit(listed(60, "openai")[:-1], model="gpt-5", budget=6_000, digester=broken)
        now[0] += 3600
    assert len(calls) == 3


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("budget", [9_000, 900_000])
def test_a_call_at_the_end_stays_open_until_the_caller_appends_its_result(format: str, budget: int) -> None:
    before, messages = history(30), history(31)
    list_key = request_format(format).list_key
    elements: list[Any] = render([*before, messages[-2]], format).body[list_key]
    fitting = fit(elements, model=FORMATS[format], budget=budget, format=format)
    assert (fitting is elements) == (budget > 100_000)
    assert fitting[-1] is elements[-1]
    result = render(messages, format).body[list_key][len(elements) :]
    body: dict[str, Any] = {list_key: [*fitting, *result]}
    if format != "gemini":
        body["model"] = FORMATS[format]
    if format == "anthropic":
        body |= {"max_tokens": 100, "tools": [{"name": "read", "input_schema": {"type": "object"}}]}
    assert judge(format.replace("-", "_"), body, model=FORMATS[format]) is None


def test_what_cannot_fit_is_refused() -> None:
    with pytest.raises(ViewTooLarge, match="history"):
        fit([{"role": "user", "content": "word " * 9_000}], model="gpt-5", budget=2_000)


@pytest.mark.parametrize("budget", [None, 8_000])
def test_the_error_about_a_large_first_prompt_names_an_argument_of_fit(budget: int | None) -> None:
    task = {"role": "user", "content": "word " * 400_000}
    messages = [task, {"role": "assistant", "content": "done"}, {"role": "user", "content": "next"}]
    named = 'Policy.preset("balanced").but(keep_first_prompt=False)'
    with pytest.raises(ViewTooLarge) as refused:
        fit(messages, model="gpt-4o", budget=budget)
    assert f"pass policy={named}, or " in refused.value.hint
    policy = Policy.preset("balanced").but(keep_first_prompt=False)
    assert messages[0] not in fit(messages, model="gpt-4o", budget=budget, policy=policy)


def test_a_list_without_content_is_refused() -> None:
    with pytest.raises(InputError, match="no message of the list has content"):
        fit([{"role": "user", "content": None}])


def test_message_values_and_a_named_format() -> None:
    fitting = foldline.fit(history(60), model="gpt-5", budget=12_000)
    assert all(isinstance(message, Message) for message in fitting)
    plain = [{"role": "user", "content": "hi"}]
    assert fit(plain, model="claude-sonnet-5", format="anthropic") is plain


@settings(max_examples=40, deadline=None)
@given(
    gone=st.sets(st.integers(0, 90), max_size=12),
    format=st.sampled_from(list(FORMATS)),
    budget=st.sampled_from([4_000, 9_000, 60_000]),
    late=st.booleans(),
)
def test_a_broken_history_becomes_a_list_that_the_provider_accepts(
    gone: set[int], format: str, budget: int, late: bool
) -> None:
    """Results are missing or late, calls are missing, and a text has a lone surrogate."""
    messages = history(30)
    messages.insert(7, user("half of an emoji: \ud83d"))
    if late:
        messages.append(messages.pop(3))
    kept = [message for at, message in enumerate(messages) if at not in gone - {0}]
    kept.append(user("go on"))
    elements = render(kept, format).body[request_format(format).list_key]
    fitting = fit(elements, model=FORMATS[format], budget=budget, format=format)
    body: dict[str, Any] = {request_format(format).list_key: fitting}
    if format != "gemini":
        body["model"] = FORMATS[format]
    if format == "anthropic":
        body |= {"max_tokens": 100, "tools": [{"name": "read", "input_schema": {"type": "object"}}]}
    assert judge(format.replace("-", "_"), body, model=FORMATS[format]) is None
