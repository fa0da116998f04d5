"""A session that folds ten times: constraints and pins stay, rejected digests never come back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from foldline import Session
from foldline.digest.digester import Digester, DigesterCall, DigesterReply
from foldline.message import Message, ToolCall, assistant, tool, user
from foldline.policy import Policy
from foldline.testing import Scripted, assert_sendable, proper

DEMANDS = ("Never touch wire_format.json!", "You must keep Python 3.11 working.", "Do not add dependencies.")
PINS = ("The port is 4711, and only 4711.", "Release day is the third of May.", "Ask Ada before you change schema.sql.")
POLICY = Policy.preset("balanced").but(window_tokens=6_000, reply_tokens=0)


def step(number: int) -> list[Message]:
    call = ToolCall(id=f"c{number}", name="read", arguments=f'{{"path": "src/part_{number}.py"}}')
    return [
        user(f"Look at src/part_{number}.py, and always say what you saw."),
        assistant("Looking.", call),
        tool(call.id, f"def part_{number}(raw, limit): return {number}\n" * 30, name="read"),
        assistant(f"Part {number} is as it should be, so nothing was changed."),
    ]


def ten_folds(session: Session) -> Session:
    """The session after ten folds, looked at in between as an agent does."""
    session.add(user("Port the parser to Rust. " + " ".join(DEMANDS)))
    for text in PINS:
        session.pin(text)
    session.add(assistant("I will."))
    for number in range(400):
        session.add(*step(number))
        session.view()
        if session.folds >= 10:
            return session
    raise AssertionError("it never folded ten times")


@pytest.mark.promise("I8")
@pytest.mark.parametrize("keep_first_prompt", [True, False])
@pytest.mark.parametrize("by", ["local", "model"])
def test_constraints_of_the_first_prompt_and_pins_stay_verbatim(by: str, keep_first_prompt: bool) -> None:
    digester = Digester(complete=Scripted()) if by == "model" else None
    policy = POLICY.but(keep_first_prompt=keep_first_prompt, coverage_ratio=0.9)
    view = ten_folds(Session(policy=policy, digester=digester)).view()
    shown = "\n".join(message.text for message in view.messages)
    for text in (*DEMANDS, *PINS):
        assert text in shown
    assert_sendable(view.render("anthropic"))


@pytest.mark.promise("I9")
@pytest.mark.parametrize(
    "refused",
    [
        lambda ask: DigesterReply(text=f"{proper(ask)}\nQUINCE", stop="length"),
        lambda ask: DigesterReply(text=f"{proper(ask)}\nQUINCE", stop="content_filter"),
        lambda ask: DigesterReply(text=f"{proper(ask)}\nQUINCE", has_tool_calls=True, stop="tool_calls"),
        lambda ask: f"{proper(ask)}{' QUINCE' * 5_000}",
        lambda _: "QUINCE.",
        lambda _: "Error 529: QUINCE is overloaded, try again later.",
        lambda ask: f"<think>{proper(ask)} QUINCE",
    ],
    ids=["cut off", "filtered", "tool call", "too large", "too short", "error text", "reasoning"],
)
def test_a_rejected_digest_is_never_used_as_input(refused: Callable[[DigesterCall], Any]) -> None:
    scripted = Scripted(refused)
    session = ten_folds(Session(policy=POLICY.but(cooldown_messages=0), digester=Digester(complete=scripted)))
    assert len(scripted.asks) >= 10
    assert all("QUINCE" not in ask.text for ask in scripted.asks)
    assert "QUINCE" not in str(session.view().render("anthropic").body)


@pytest.mark.promise("I4")
def test_every_call_of_ten_folds_fits_a_small_digester_window() -> None:
    asks: list[DigesterCall] = []

    def reply(ask: DigesterCall) -> str:
        asks.append(ask)
        return proper(ask)

    digester = Digester(complete=Scripted(reply), window=2_600)
    session = ten_folds(Session(policy=POLICY.but(digest_tokens=400), digester=digester))
    assert len(asks) > session.folds, "it was asked in pieces"
    for ask in asks:
        assert digester.size(ask.system + ask.text) + (ask.max_tokens or 0) <= 2_600
    seen = "\n".join(ask.text for ask in asks)
    for number in range(session.state.timeline.cut // 4 - 2):
        assert f"def part_{number}(raw, limit): return {number}" in seen


CORRECTIONS = ("No, not like that: keep the old names.", "Stop. Use tabs in Makefile, as I said.")
REFUSAL = "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\n"


@pytest.mark.promise("I8")
@pytest.mark.parametrize("by", ["local", "model"])
def test_the_first_request_all_corrections_and_every_pin_outlive_ten_folds_word_for_word(by: str) -> None:
    digester = Digester(complete=Scripted()) if by == "model" else None
    session = Session(policy=POLICY.but(window_tokens=12_000, keep_first_prompt=False), digester=digester)
    request = "Port the parser to Rust.\nKeep every name of the API; the tests in tests/wire must pass unchanged."
    session.add(user(request), assistant("I will."))
    pins = [session.pin(text) for text in PINS]
    refused, number = [f"not {place}, use part_{place}.py" for place in range(3)], 0
    while session.folds < 10:
        session.add(*step(number))
        if number < len(CORRECTIONS):
            session.add(user(CORRECTIONS[number]), assistant("Understood."))
        if number < len(refused):
            call = ToolCall(id=f"r{number}", name="bash", arguments='{"command": "git commit -m x"}')
            session.add(assistant("", call), tool(call.id, REFUSAL + refused[number], name="bash", is_error=True))
        session.view()
        number += 1
    view = session.view()
    shown = " ".join("\n".join(message.text for message in view.messages).split())
    assert len(pins) == len(PINS)
    for text in (request, *CORRECTIONS, *refused, *PINS):
        assert " ".join(text.split()) in shown
