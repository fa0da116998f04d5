"""Replies that follow each other without a new user message: every request is accepted and grows only at its end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from foldline import Session
from foldline.placeholders import NO_NEW_PROMPT, NO_RESULT
from foldline.testing.provider import Account, ScriptedReply, judge

MODELS = {
    "claude-opus-5-5": "anthropic",
    "claude-sonnet-4-5": "anthropic",
    "gpt-5": "openai",
    "gpt-5.5": "openai-responses",
    "gemini-3-pro-preview": "gemini",
}
TOOLS = [{"name": "run", "description": "Runs a command.", "input_schema": {"type": "object"}}]
each_model = pytest.mark.parametrize("model", MODELS)
each_way = pytest.mark.parametrize("way", ["reply", "message"])


def message_of(body: dict[str, Any]) -> Any:
    """The message, or the list of items, that a caller without the whole reply would add."""
    if "output" in body:
        return body["output"]
    if "choices" in body:
        return body["choices"][0]["message"]
    if "candidates" in body:
        return body["candidates"][0]["content"]
    return {"role": body["role"], "content": body["content"]}


def pieces(request: dict[str, Any], format: str) -> list[str]:
    """The blocks of a request as texts, each with its role. Cache marks are left out."""
    found = []
    for element in request.get("messages") or request.get("input") or request.get("contents") or []:
        blocks = element["content"] if format == "anthropic" else element.get("parts") or [element]
        blocks = [{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks
        for block in blocks:
            shown = {key: value for key, value in block.items() if key != "cache_control"}
            found.append(f"{element.get('role')}: {json.dumps(shown)}")
    return found


class Conversation:
    """A session and an account of the provider that answers the session's requests."""

    def __init__(self, model: str, way: str) -> None:
        self.format, self.way = MODELS[model], way
        self.model, self.account = model, Account()
        self.session = Session(model=model, format=self.format, tools=TOOLS)
        self.sent: list[str] = []

    def says(self, text: str) -> None:
        self.session.add({"role": "user", "content": text})

    def returns(self, call: str, text: str) -> None:
        result = {"type": "tool_result", "tool_use_id": call, "content": text}
        self.session.add({"role": "user", "content": [result]}, format="anthropic")

    def ask(self, **reply: Any) -> list[str]:
        """Send the view, check that the request is accepted and begins like the one before, and add the reply.

        Returns the ids of the reply's calls.
        """
        before = len(self.session.messages)
        self.session.add(self.answer(**reply))
        return [call.id for message in list(self.session.messages)[before:] for call in message.calls]

    def answer(self, **reply: Any) -> Any:
        """Send the view as `ask` does, and return the reply without adding it."""
        request = self.session.view().request(self.format, max_tokens=500)
        now = pieces(request, self.format)
        assert now[: len(self.sent)] == self.sent
        self.sent = now
        if self.format == "gemini":  # the request is written for the SDK
            request = {"contents": request["contents"], "tools": request["config"]["tools"]}
        answer = self.account.answer(self.format, request, model=self.model, reply=ScriptedReply(**reply))
        assert answer.error is None, answer.error
        return answer.body if self.way == "reply" else message_of(answer.body)

    def count(self, text: str) -> int:
        """The number of blocks in the last request that contain a text."""
        return sum(text in piece for piece in self.sent)


@each_way
@pytest.mark.parametrize(
    ("model", "second"),
    [
        ("claude-opus-5-5", "text"),
        ("claude-sonnet-4-5", "text"),
        *((model, second) for model in MODELS for second in ("thinking", "call")),
    ],
)
def test_a_reply_that_is_only_thinking_is_not_sent(model: str, way: str, second: str) -> None:
    talk = Conversation(model, way)
    talk.says("a hard question")
    talk.ask(thinking="until the limit", stop="max_tokens" if MODELS[model] == "anthropic" else "")
    calls = talk.ask(
        thinking="" if second == "text" else "again",
        text="" if second == "call" else "the answer",
        calls=(("run", {}),) if second == "call" else (),
    )
    for call in calls:
        talk.returns(call, "output")
    talk.says("next")
    talk.ask(text="ok")
    talk.says("and then?")
    talk.ask(text="done")
    assert len(talk.session.messages) >= 7
    if MODELS[model] != "gemini":  # Gemini accepts a reply that ends with thinking
        assert talk.count("until the limit") == 0


def test_thinking_in_a_message_of_its_own_is_sent_with_the_rest_of_its_reply() -> None:
    session = Session(model="claude-sonnet-4-5")
    thinking = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    session.add({"role": "user", "content": "go"}, {"role": "assistant", "content": [thinking]})
    session.add({"role": "assistant", "content": "so"}, {"role": "user", "content": "next"})
    request = session.view().request("anthropic", max_tokens=500)
    assert [block["type"] for block in request["messages"][1]["content"]] == ["thinking", "text"]
    assert judge("anthropic", request) is None


@each_way
@each_model
@pytest.mark.parametrize("order", ["A B", "B A", "A"])
def test_a_result_that_comes_after_the_next_call_is_sent_as_text(model: str, way: str, order: str) -> None:
    talk = Conversation(model, way)
    talk.says("Start the build, then the tests.")
    (first,) = talk.ask(thinking="t1", calls=(("run", {"n": 1}),))
    (second,) = talk.ask(thinking="t2", calls=(("run", {"n": 2}),))
    for name in order.split():
        talk.returns(first if name == "A" else second, f"output of {name}")
    talk.ask(thinking="t3", text="done")
    talk.says("next")
    talk.ask(text="ok")
    assert talk.count(NO_RESULT) == (2 if order == "A" else 1)
    assert talk.count("output of A") == 1


@each_way
@each_model
@pytest.mark.parametrize("nudge", [None, ""])
def test_the_placeholder_between_two_replies_stays(model: str, way: str, nudge: str | None) -> None:
    talk = Conversation(model, way)
    talk.says("Work until done.")
    talk.ask(text="step 0")
    if nudge is not None:
        talk.says(nudge)
    talk.ask(thinking="t", text="step 1")
    talk.way = "message" if way == "reply" else "reply"
    talk.ask(thinking="t", text="step 2")
    for number in (3, 4):
        talk.says("go on")
        talk.ask(text=f"step {number}")
    if MODELS[model] in ("anthropic", "gemini"):
        assert talk.count(NO_NEW_PROMPT) == 2


@each_way
@each_model
@pytest.mark.parametrize("count", [1, 2])
def test_the_closing_result_of_a_call_stays_before_the_next_reply(model: str, way: str, count: int) -> None:
    talk = Conversation(model, way)
    talk.says("go")
    talk.ask(thinking="t", calls=(("run", {}),) * count)
    talk.ask(text="why?")
    for number in (1, 2):
        talk.says("go on")
        talk.ask(text=f"answer {number}")
    assert talk.count(NO_RESULT) == count


@each_way
@each_model
@pytest.mark.parametrize("after_results", [False, True])
@pytest.mark.parametrize("text", ["", "I look."])
def test_a_reply_that_is_delivered_twice_is_sent_once(model: str, way: str, after_results: bool, text: str) -> None:
    talk = Conversation(model, way)
    talk.says("go")
    reply = talk.answer(thinking="t", text=text, calls=(("run", {"n": 1}), ("run", {"n": 2})))
    talk.session.add(reply)
    calls = [call.id for message in talk.session.messages for call in message.calls]
    if not after_results:
        talk.session.add(reply)
    for call in calls:
        talk.returns(call, "output")
    if after_results:
        talk.session.add(reply)
    talk.says("next")
    talk.ask(thinking="t2", text="done")
    if way == "reply" or model == "claude-sonnet-4-5":  # only its id or its signature tells a repetition
        assert talk.count("I look.") == bool(text)
        assert talk.count(NO_RESULT) == 0
    talk.says("and then?")
    talk.ask(text="ok")


def test_a_reply_with_a_server_tool_that_is_delivered_twice_is_sent_once() -> None:
    found = {
        "type": "web_search_result",
        "url": "https://e.com",
        "title": "t",
        "encrypted_content": "E",
        "page_age": None,
    }
    call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [found]}
    for text in ("found", "found something else"):
        session = Session(model="claude-opus-5-5", tools=[{"type": "web_search_20250305", "name": "web_search"}])
        session.add({"role": "user", "content": "go"})
        for end in ("found", text):
            session.add({"role": "assistant", "content": [call, result, {"type": "text", "text": end}]})
        session.add({"role": "user", "content": "next"})
        request = session.view().request("anthropic", max_tokens=500)
        assert judge("anthropic", request) is None
        assert json.dumps(request).count("server_tool_use") == 1
