"""Computer calls of the Responses API: a screenshot is sent in the form that its place demands."""

from __future__ import annotations

from typing import Any

import pytest

from foldline import Session
from foldline.testing import assert_sendable
from foldline.testing.provider import judge

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
URL = f"data:image/png;base64,{PIXEL}"
SOURCES = [{"image_url": URL}, {"file_id": "file-1"}]
ASKED = {"role": "user", "content": "click"}


def call(call_id: str = "call_1") -> dict[str, Any]:
    action = {"type": "click", "button": "left", "x": 1, "y": 2}
    fields = {"id": "cu_1", "call_id": call_id, "status": "completed", "pending_safety_checks": []}
    return {"type": "computer_call", **fields, "action": action}


def output(source: dict[str, str], call_id: str = "call_1") -> dict[str, Any]:
    return {"type": "computer_call_output", "call_id": call_id, "output": {"type": "computer_screenshot", **source}}


def sent(*items: dict[str, Any]) -> list[Any]:
    """The items of the request, after the simulated provider has accepted them."""
    session = Session(model="gpt-5", format="openai-responses")
    for item in (ASKED, *items):
        session.add(item)
    view = session.view()
    body = view.request("openai-responses")
    assert judge("openai_responses", body) is None
    assert_sendable(view.render("openai-responses"))
    made: list[Any] = body["input"]
    return made


@pytest.mark.parametrize("source", SOURCES, ids=["url", "file"])
def test_a_screenshot_answers_its_call_unchanged(source: dict[str, str]) -> None:
    assert sent(call(), output(source)) == [ASKED, call(), output(source)]


@pytest.mark.parametrize("source", SOURCES, ids=["url", "file"])
def test_a_screenshot_without_its_call_is_sent_as_an_image_of_the_user(source: dict[str, str]) -> None:
    *_, text, picture = sent(output(source))[-1]["content"]
    assert text["type"] == "input_text"
    assert picture == {"type": "input_image", "detail": "auto", **source}


@pytest.mark.parametrize("source", SOURCES, ids=["url", "file"])
def test_a_screenshot_that_comes_late_is_sent_as_an_image_of_the_user(source: dict[str, str]) -> None:
    reply = {"role": "assistant", "content": "stopped"}
    items = sent(call(), {"role": "user", "content": "stop"}, reply, output(source), {"role": "user", "content": "go"})
    assert {"type": "input_image", "detail": "auto", **source} in items[-2]["content"]


def test_a_call_whose_id_is_shortened_keeps_the_item_id_that_it_needs() -> None:
    name = "call_" + "x" * 80
    items = sent(call(name), output(SOURCES[0], name))
    assert items[1]["call_id"] == items[2]["call_id"] != name
    assert items[1]["id"].startswith("cu")


@pytest.mark.parametrize("source", SOURCES, ids=["url", "file"])
def test_an_image_of_a_function_answers_a_computer_call_as_a_screenshot(source: dict[str, str]) -> None:
    image = {"type": "input_image", "detail": "low", **source}
    function = {"type": "function_call_output", "call_id": "call_1", "output": [image]}
    assert sent(call(), function)[2] == output(source)


@pytest.mark.parametrize(
    "made",
    [
        call(),
        {"type": "custom_tool_call", "call_id": "call_1", "name": "patch", "input": "x"},
        {"type": "shell_call", "call_id": "call_1", "action": {"commands": ["ls"]}, "status": "completed"},
        {
            "type": "apply_patch_call",
            "call_id": "call_1",
            "status": "completed",
            "operation": {"type": "delete_file", "path": "a"},
        },
    ],
    ids=lambda made: made["type"],
)
def test_a_result_in_the_form_of_a_function_gets_the_form_of_its_call(made: dict[str, Any]) -> None:
    function = {"type": "function_call_output", "call_id": "call_1", "output": "done"}
    body = {"model": "gpt-5", "input": [ASKED, made, function]}
    assert judge("openai_responses", body) is not None
    with pytest.raises(AssertionError, match="result-orphan"):
        assert_sendable(body, "openai-responses")
    assert sent(made, function)[2]["type"] == f"{made['type']}_output"
