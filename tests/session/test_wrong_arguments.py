"""A wrong argument of a public function raises an error that says what to write instead, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import foldline
from foldline import FoldlineError, Message, Policy, Session, Text, ToolResult, Tools, digesters, fit, read, render

MESSAGE: Any = {"role": "user", "content": "Hello"}
CALLS: dict[str, tuple[Callable[[Session], Any], str]] = {
    "pin a number": (lambda s: s.pin(5), "the text of a pin must be str, not int"),  # type: ignore[arg-type]
    "pin by number": (lambda s: s.pin(handle=5), "a handle must be str, not int"),  # type: ignore[arg-type]
    "recall a number": (lambda s: s.recall(5), "a query must be str, not int"),  # type: ignore[arg-type]
    "recall no number": (lambda s: s.recall("x", tokens="many"), "tokens must be int"),  # type: ignore[arg-type]
    "rewind": (lambda s: s.rewind("x"), "length must be int, not str"),  # type: ignore[arg-type]
    "branch": (lambda s: s.branch(5), "the name of a branch must be str"),  # type: ignore[arg-type]
    "branch at": (lambda s: s.branch("b", at="x"), "at must be int, not str"),  # type: ignore[arg-type]
    "preview before": (lambda s: s.preview(before=5), "a handle must be str"),  # type: ignore[arg-type]
    "approve": (lambda s: s.approve(None), "a preview must be Preview, not NoneType"),  # type: ignore[arg-type]
    "digest": (lambda s: s.fold(digest=5, force=True), "digest must be str"),  # type: ignore[arg-type]
    "instructions": (lambda s: s.fold(instructions=5), "instructions must be str"),  # type: ignore[arg-type]
    "max_tokens": (lambda s: s.view().request("openai", max_tokens="x"), "max_tokens must be int"),  # type: ignore[arg-type]
    "format of a request": (
        lambda s: s.view().request("antropic"),
        "unknown wire format 'antropic': use one of anthropic, openai, openai-responses, gemini$",
    ),
    "a knob": (lambda _: Policy(window_token=5), "unknown knob 'window_token': did you mean window_tokens"),  # type: ignore[call-arg]
    "parts": (lambda s: s.add(Message(role="user", parts=("a",))), "must be a Part, not str"),  # type: ignore[arg-type]
    "parts as a text": (lambda s: s.add(Message(role="user", parts="a")), "must be tuple"),  # type: ignore[arg-type]
    "text": (lambda s: s.add(Message(role="user", parts=(Text(text=5),))), "text of Text must be str"),  # type: ignore[arg-type]
    "result": (
        lambda s: s.add([Message(role="tool", parts=(ToolResult(call_id="c", parts=(5,)),))]),  # type: ignore[arg-type]
        "must be a Part, not int",
    ),
    "role": (lambda s: s.add(Message(role="human", parts=(Text(text="Hi"),))), "unknown role 'human'"),
    "view": (lambda s: s.add(MESSAGE, view=5), "view must be str"),  # type: ignore[arg-type]
    "AsyncTools": (foldline.AsyncTools, "session must be AsyncSession, not Session"),  # type: ignore[dict-item]
    "Tools of an AsyncSession": (
        lambda s: Tools(foldline.AsyncSession(s)),  # type: ignore[arg-type]
        r"session must be Session, not AsyncSession: Tools\(Session\(…\)\), or AsyncTools\(session\)",
    ),
    "use": (lambda s: s.use(policy=5), "policy must be Policy, not int"),  # type: ignore[arg-type]
    "policy": (lambda _: Session(policy={}), "policy must be Policy, not dict"),  # type: ignore[arg-type]
    "tools": (lambda _: Session(tools=5), "tools must be Iterable, not int"),  # type: ignore[arg-type]
    "tool": (lambda _: Session(tools=[5]), "a tool definition must be a dict, not int"),
    "extra_tokens": (lambda _: Session(extra_tokens="x"), "extra_tokens must be int"),  # type: ignore[arg-type]
    "negative": (lambda _: Session(extra_tokens=-1), "extra_tokens must not be negative"),
    "counter": (lambda _: Session(counter=len), "not a counter"),  # type: ignore[arg-type]
    "listener": (lambda _: Session(listener=5), "listener must be a function, not int"),  # type: ignore[arg-type]
    "read": (lambda _: read(None), "the path of a transcript must be str"),  # type: ignore[arg-type]
    "render": (lambda _: render([MESSAGE], "openai"), "render takes Message values"),
    "fit": (lambda _: fit([MESSAGE], budget="x"), "budget must be int, not str"),  # type: ignore[arg-type]
    "fit with tools": (lambda _: fit([MESSAGE], tools=5), "tools must be Iterable"),  # type: ignore[arg-type]
    "fit with a policy": (lambda _: fit([MESSAGE], policy=5), "policy must be Policy"),  # type: ignore[arg-type]
    "fit with an unknown role": (
        lambda _: fit([MESSAGE, {"role": "asistant", "content": "Hi"}], model="gpt-5"),
        r"unknown role 'asistant': did you mean 'assistant'\?",
    ),
    "fit without a role": (lambda _: fit(({"content": "Hi"},), model="gpt-5"), "the message has no role"),
    "open": (lambda _: foldline.open(None), "a ledger must be str or PathLike, not NoneType"),  # type: ignore[arg-type]
    "owner": (lambda _: foldline.open(":memory:", owner=5), "the name of an owner must be str"),  # type: ignore[arg-type]
    "wrap": (lambda _: foldline.wrap(object(), session=5), "session must be Session, not int"),  # type: ignore[arg-type]
    "Tools": (lambda _: Tools(5), "Tools takes a Session, not int"),  # type: ignore[arg-type]
    "a model": (lambda _: digesters.anthropic(""), "a digester needs the name of a model"),
    "an address": (lambda _: digesters.openai_compatible("qwen3", "127.0.0.1:80"), "not an address"),
    "a window": (lambda _: digesters.anthropic("claude-haiku-4-5", window="x"), "window must be int"),
    "a function": (lambda _: digesters.function(5), "not a function: int"),  # type: ignore[arg-type]
    "local_digest": (lambda _: digesters.local_digest([MESSAGE], cap=9), "local_digest takes Message values"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_argument_is_refused_in_words(name: str) -> None:
    call, words = CALLS[name]
    session = Session(model="gpt-5", policy=Policy.preset("balanced"))
    session.add(MESSAGE, {"role": "assistant", "content": "Hi"})
    with pytest.raises(FoldlineError, match=words) as caught:
        call(session)
    assert caught.value.hint
    assert len(session) == 2
    assert session.view().request("openai")["messages"], "the session still works"


def test_without_a_key_the_error_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openai")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_ADMIN_KEY", raising=False)
    with pytest.raises(foldline.ConfigError, match="set OPENAI_API_KEY, or pass api_key"):
        digesters.openai("gpt-5-mini")
