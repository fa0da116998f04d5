"""What agents and gateways get wrong is healed in the view: the simulated provider accepts every request."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import pytest

from foldline import Policy, Session, fit
from foldline.errors import InputError
from foldline.testing.provider import Account, ScriptedReply, judge

MODELS = {
    "anthropic": "claude-sonnet-5",
    "openai": "gpt-5",
    "openai-responses": "gpt-5",
    "gemini": "gemini-3-pro",
}
LISTS = {"anthropic": "messages", "openai": "messages", "openai-responses": "input", "gemini": "contents"}
ASKED: dict[str, Any] = {"role": "user", "content": "hello"}
Element = dict[str, Any]


def elements_of(session: Session) -> list[Any]:
    """The elements of the request, after the simulated provider has accepted them."""
    format = session.format
    body = dict(session.view().render().body)
    assert judged(format, body[LISTS[format]]) is None
    found: list[Any] = body[LISTS[format]]
    return found


def judged(format: str, elements: list[Any]) -> Any:
    model = MODELS[format]
    body: dict[str, Any] = {LISTS[format]: elements}
    if format != "gemini":
        body["model"] = model
    if format == "anthropic":
        body |= {"max_tokens": 10, "tools": [{"name": "f", "input_schema": {"type": "object"}}]}
    return judge(format.replace("-", "_"), body, model=model)


def session_of(format: str, *added: Any) -> Session:
    session = Session(model=MODELS[format], format=format)
    for each in added:
        session.add(each)
    return session


CALL: dict[str, Element] = {
    "anthropic": {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
    "openai": {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    },
    "openai-responses": {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
    "gemini": {"role": "model", "parts": [{"functionCall": {"id": "c", "name": "f", "args": {}}}]},
}


def text(format: str, role: str, words: str) -> Element:
    if format == "gemini":
        return {"role": "model" if role == "assistant" else role, "parts": [{"text": words}]}
    return {"role": role, "content": words}


@pytest.mark.parametrize("role", ["user", "developer", "assistant"])
def test_an_item_with_an_empty_list_of_parts_is_sent_with_an_empty_text(role: str) -> None:
    item = {"type": "message", "role": role, "id": "msg_1", "status": "incomplete", "content": []}
    sent = elements_of(session_of("openai-responses", ASKED, item, ASKED))
    assert sent[1]["content"] == ""


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (None, ""),
        ([{"type": "text", "text": "port 7091"}], "port 7091"),
        ([{"type": "output_text", "text": "port 7091"}], "port 7091"),
        ({"port": 7091}, '{"port":7091}'),
        (7091, "7091"),
        (["port", 7091], "7091"),
    ],
    ids=str,
)
def test_the_output_of_a_function_reaches_the_model_in_a_form_that_is_accepted(output: Any, words: str) -> None:
    result = {"type": "function_call_output", "call_id": "c", "output": output}
    session = session_of("openai-responses", ASKED, CALL["openai-responses"], result)
    assert words in str(elements_of(session)[2]["output"])
    assert words in session.messages[2].results[0].text


@pytest.mark.parametrize("content", [{"port": 7091}, 7091, ["port 7091"], ["port", {"type": "text", "text": "7091"}]])
def test_a_result_of_another_type_is_sent_as_text_and_not_called_missing(content: Any) -> None:
    block = {"type": "tool_result", "tool_use_id": "c", "content": content, "is_error": "true"}
    session = session_of("anthropic", ASKED, CALL["anthropic"], {"role": "user", "content": [block]})
    (sent,) = elements_of(session)[2]["content"]
    assert "7091" in str(sent["content"])
    assert sent["is_error"] is True
    assert "7091" in session.messages[2].results[0].text


def test_texts_in_the_content_of_a_chat_message_become_parts() -> None:
    result = {"role": "tool", "tool_call_id": "c", "content": ["port 7091"]}
    sent = elements_of(session_of("openai", ASKED, CALL["openai"], result))
    assert sent[2]["content"] == [{"type": "text", "text": "port 7091"}]


@pytest.mark.parametrize(
    "response",
    [
        {"response": {"output": "x"}},
        {"name": "f", "response": "x"},
        {"name": "f", "response": ["x"]},
        {"name": "f", "response": None},
        {"name": "f"},
    ],
    ids=str,
)
def test_a_function_response_gets_its_name_and_an_object(response: Element) -> None:
    result = {"role": "user", "parts": [{"functionResponse": {"id": "c", **response}}]}
    sent = elements_of(session_of("gemini", text("gemini", "user", "go"), CALL["gemini"], result))
    answer = sent[2]["parts"][0]["functionResponse"]
    assert answer["name"] == "f"
    assert isinstance(answer["response"], dict)


def test_a_part_with_only_a_signature_gets_an_empty_text() -> None:
    bare = {"role": "model", "parts": [{"thoughtSignature": "YWJj"}]}
    sent = elements_of(session_of("gemini", text("gemini", "user", "go"), bare, text("gemini", "user", "on")))
    assert sent[1]["parts"] == [{"thoughtSignature": "YWJj", "text": ""}]


def test_an_image_without_data_is_named_and_left_out() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": ""}
    sent = elements_of(
        session_of("anthropic", ASKED, {"role": "user", "content": [{"type": "image", "source": source}]})
    )
    assert "image" in sent[1]["content"][0]["text"]


def test_a_call_with_a_text_as_input_is_not_taken_for_a_request() -> None:
    call = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c", "name": "apply_patch", "input": "*** Begin"}
    output = {"type": "custom_tool_call_output", "call_id": "c", "output": "refused"}
    session = Session(model="gpt-5", format="openai-responses")
    for item in (ASKED, call, output):
        session.add(item, format="openai-responses")
    assert elements_of(session) == [ASKED, call, output]
    assert session.messages[1].role == "assistant"


@pytest.mark.parametrize("thinking", [None, {"type": "disabled"}, {"type": "adaptive"}], ids=str)
def test_drop_block_is_asked_for_only_while_the_model_may_think(thinking: Element | None) -> None:
    account, policy = Account(), Policy.preset("balanced").but(bound_thinking="drop_block", window_tokens=8_000)
    session = Session(model="claude-opus-5-5", policy=policy.but(reply_tokens=2_000))
    for number in range(20):
        session.add({"role": "user", "content": f"question {number} " + "word " * 200})
        extra = {"thinking": thinking} if thinking else {}
        body = session.view().request("anthropic", max_tokens=1_800, **extra)
        betas = [beta for beta in body.pop("extra_headers", {}).get("anthropic-beta", "").split(",") if beta]
        reply = ScriptedReply(thinking="hm", text="answer " * 100)
        answer = account.answer("anthropic", body, betas=betas, reply=reply)
        assert answer.error is None
        session.add(answer.body)
    assert session.folds


def test_the_betas_of_the_caller_and_of_foldline_are_sent_together() -> None:
    block = {"type": "compaction", "content": "sum"}
    session = session_of("anthropic", ASKED, {"role": "assistant", "content": [block, {"type": "text", "text": "x"}]})
    session.add(ASKED)
    view = session.view()
    body = view.request("anthropic", max_tokens=9, betas=["context-management-2025-06-27"])
    assert body["betas"] == ["context-management-2025-06-27", "compact-2026-01-12"]
    assert "extra_headers" not in body
    body = view.request("anthropic", max_tokens=9, extra_headers={"Anthropic-Beta": "files-api-2025-04-14"})
    assert body["extra_headers"] == {"anthropic-beta": "files-api-2025-04-14,compact-2026-01-12"}


@pytest.mark.parametrize("budget", [1_500, 3_000, 100_000])
@pytest.mark.parametrize("place", ["at the start", "in the middle", "with a lone surrogate", "nowhere"])
@pytest.mark.parametrize("format", MODELS)
def test_a_fitted_list_is_accepted_although_a_call_has_no_result(format: str, place: str, budget: int) -> None:
    turns = [
        element
        for number in range(30)
        for element in (
            text(format, "user", f"q{number} " + "word " * 60),
            text(format, "assistant", f"a{number} " + "so " * 60),
        )
    ]
    open_call = [
        text(format, "user", "go"),
        CALL[format],
        text(format, "user", "stop"),
        text(format, "assistant", "ok"),
    ]
    history = {
        "at the start": [*open_call, *turns],
        "in the middle": [*turns[:30], *open_call, *turns[30:]],
        "with a lone surrogate": [text(format, "user", "x \ud800"), *turns[1:]],
        "nowhere": turns,
    }[place]
    history.append(text(format, "user", "end"))
    fitted = fit(
        history, model="gemini-2.5-pro" if format == "gemini" else MODELS[format], budget=budget, format=format
    )
    assert judged(format, fitted) is None


@pytest.mark.parametrize("name", ["max_output_tokens", "max_completion_tokens"])
def test_the_providers_own_name_of_the_limit_is_checked_too(name: str) -> None:
    session = Session(model="gpt-5", policy=Policy.preset("balanced").but(window_tokens=8_000, reply_tokens=500))
    session.add(ASKED)
    with pytest.raises(InputError, match="reserved for the reply"):
        session.view().request("openai", **{name: 7_900})


@pytest.mark.parametrize("format", MODELS)
def test_a_reply_does_not_change_the_request_that_it_answers(format: str) -> None:
    """The request had closing results for calls without a result."""
    session = Session(model=MODELS[format], format=format, policy=Policy(breakpoints=0))
    session.add(text(format, "user", "a"))
    session.add(CALL[format])
    sent = [elements_of(session)]
    reply = text(format, "assistant", "no result?")
    if format == "openai-responses":
        reasoning = {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "y"}
        output: Element = {"type": "message", "id": "msg_2", "role": "assistant", "status": "completed"}
        output["content"] = [{"type": "output_text", "text": "no result?", "annotations": []}]
        usage = {"input_tokens": 9, "output_tokens": 3, "total_tokens": 12}
        reply = {"id": "resp_2", "object": "response", "model": "gpt-5", "status": "completed", "usage": usage}
        reply["output"] = [reasoning, output]
    session.add(reply)
    session.add(text(format, "user", "b"))
    sent.append(elements_of(session))
    for before, after in pairwise(sent):
        assert after[: len(before)] == before


def test_a_mark_of_foldline_never_comes_for_an_hour_after_five_minutes() -> None:
    hour, short = {"type": "ephemeral", "ttl": "1h"}, {"type": "ephemeral", "ttl": "5m"}
    ids = ("a", "b", "c")
    results = [{"type": "tool_result", "tool_use_id": name, "content": "x"} for name in ids]
    for marks in product((None, hour, short), repeat=3):
        marked = [
            {**result, "cache_control": mark} if mark else result for result, mark in zip(results, marks, strict=True)
        ]
        calls = [{"type": "tool_use", "id": name, "name": "f", "input": {}} for name in ids]
        session = session_of("anthropic", ASKED, {"role": "assistant", "content": calls})
        session.add({"role": "user", "content": marked})
        elements_of(session)


def test_automatic_caching_counts_as_one_of_four_marks() -> None:
    session = Session(model="claude-sonnet-5", format="anthropic")
    for number in range(5):
        block = {"type": "text", "text": f"question {number}", "cache_control": {"type": "ephemeral"}}
        session.add({"role": "user", "content": [block]}, {"role": "assistant", "content": "a"})
    session.add(ASKED)
    body = session.view().request("anthropic", max_tokens=5, cache_control={"type": "ephemeral"})
    assert judge("anthropic", body) is None
