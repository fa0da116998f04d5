"""A function of the caller as digester: what it may return, sync and async."""

from __future__ import annotations

from typing import Any

import pytest

import foldline
from foldline import Policy, Session, digesters
from foldline.digesters import DigesterCall, DigesterReply
from foldline.errors import ConfigError
from foldline.testing import proper

SMALL = Policy.preset("balanced").but(window_tokens=8_000, reply_tokens=500, digest_tokens=1_000)


def fill(session: Session) -> None:
    for number in range(40):
        session.add({"role": "user", "content": f"Question {number}: why?"})
        session.add({"role": "assistant", "content": f"Because of reason {number}. " * 40})


async def slow(call: DigesterCall) -> str:
    return proper(call)


REPLIES: dict[str, Any] = {
    "a text": proper,
    "a reply": lambda call: DigesterReply(text=proper(call), stop="stop"),
    "an SDK's reply": lambda call: {
        "object": "chat.completion",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": proper(call)}}],
    },
    "a coroutine": slow,
}


@pytest.mark.parametrize("name", REPLIES)
def test_a_function_writes_the_digest(name: str) -> None:
    session = Session(model="gpt-5", policy=SMALL, digester=REPLIES[name])
    fill(session)
    fold = session.fold(force=True)
    assert fold is not None
    assert fold.digest is not None
    assert fold.digest.by == "model"


async def nothing_later(call: DigesterCall) -> None:
    del call


@pytest.mark.parametrize("function", [lambda call: None, nothing_later])
def test_a_function_that_returns_nothing_is_named_as_the_cause(function: Any) -> None:
    session = Session(model="gpt-5", policy=SMALL, digester=function)
    fill(session)
    fold = session.fold(force=True)
    assert fold is not None
    assert fold.digest is not None
    assert "the digester function returned None: return a text" in fold.digest.cause


def test_a_ledger_takes_a_function_too() -> None:
    with foldline.open(":memory:", digester=proper) as ledger:
        session = ledger.session("s", model="gpt-5", policy=SMALL)
        fill(session)
        fold = session.fold(force=True)
        assert fold is not None
        assert fold.digest is not None
        assert fold.digest.by == "model"


def test_the_name_of_the_model_is_in_the_record() -> None:
    session = Session(model="gpt-5", policy=SMALL, digester=digesters.function(proper, model="small-1", window=20_000))
    fill(session)
    fold = session.fold(force=True)
    assert fold is not None
    assert fold.digest is not None
    assert fold.digest.by == "small-1"


def test_something_else_is_refused_with_what_to_write() -> None:
    with pytest.raises(ConfigError, match=r"not a digester: str.*foldline\.digesters"):
        Session(digester="claude-haiku-4-5")  # type: ignore[arg-type]


def test_a_compatible_server_needs_its_address_only() -> None:
    digester = digesters.openai_compatible("qwen3", "http://127.0.0.1:9/v1", window=32_000, reply=2_000)
    assert (digester.model, digester.window, digester.reply) == ("qwen3", 32_000, 2_000)
