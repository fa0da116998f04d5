"""The simulated provider refuses what Gemini's generateContent refuses, in its words, and takes the rest."""

from __future__ import annotations

from typing import Any

import pytest

from foldline.testing.provider import judge
from support.provider_requests import content, g_call, g_response, gemini, png

ASK = content("user", "hello")
STEP = (ASK, content("model", g_call()), content("user", g_response()))

REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "no contents": (gemini(), "no_contents", "GenerateContentRequest.contents: contents is not specified"),
    "no parts": (
        gemini({"role": "user", "parts": []}),
        "empty_parts",
        "GenerateContentRequest.contents[0].parts: contents.parts must not be empty.",
    ),
    "empty part": (
        gemini(content("user", {})),
        "empty_part",
        "contents[0].parts[0].data: required oneof field 'data' must have one initialized field",
    ),
    "empty text": (gemini(content("user", "")), "empty_part", "required oneof field 'data'"),
    "text and call in one part": (
        gemini(ASK, content("model", {"text": "x", **g_call()}), content("user", g_response())),
        "part_oneof",
        "oneof field 'data' is already set. Cannot set 'functionCall'",
    ),
    "unknown field": (
        gemini(content("user", {"type": "text", "text": "x"})),
        "field_unknown",
        "Invalid JSON payload received. Unknown name \"type\" at 'contents[0].parts[0]': Cannot find field.",
    ),
    "unknown field of the request": (
        gemini(ASK, messages=[]),
        "field_unknown",
        'Invalid JSON payload received. Unknown name "messages": Cannot find field.',
    ),
    "a field of Vertex AI": (
        gemini(content("user", {"inlineData": {"mimeType": "image/png", "data": png(), "displayName": "x"}})),
        "field_unknown",
        'Unknown name "displayName"',
    ),
    "role": (gemini(content("assistant", "x")), "role", "Please use a valid role: user, model."),
    "broken base64": (
        gemini(content("user", {"inlineData": {"mimeType": "image/png", "data": "a b"}})),
        "field_base64",
        "Invalid value at 'contents[0].parts[0].inline_data.data' (TYPE_BYTES), Base64 decoding failed",
    ),
    "arguments that are a string": (
        gemini(ASK, content("model", {"functionCall": {"name": "x", "args": "{}"}}), content("user", g_response("x"))),
        "field_type",
        "Invalid value at 'contents[1].parts[0].function_call.args'",
    ),
    "call behind a model turn": (
        gemini(ASK, content("model", "x"), content("model", g_call()), content("user", g_response())),
        "call_place",
        "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
    ),
    "call first": (
        gemini(content("model", "x", g_call()), content("user", g_response())),
        "call_place",
        "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
    ),
    "response without call": (
        gemini(ASK, content("model", "x"), content("user", g_response())),
        "response_place",
        "Please ensure that function response turn comes immediately after a function call turn.",
    ),
    "response first": (gemini(content("user", g_response())), "response_place", "immediately after a function call"),
    "one response of two": (
        gemini(ASK, content("model", g_call(), g_call(signature="")), content("user", g_response())),
        "response_count",
        (
            "Please ensure that the number of function response parts is equal to the number of function call parts "
            "of the function call turn."
        ),
    ),
    "call without response": (gemini(ASK, content("model", g_call()), ASK), "response_count", "number of function"),
    "response of another function": (
        gemini(ASK, content("model", g_call("a")), content("user", g_response("b"))),
        "response_name",
        "names of the function call parts",
    ),
    "response of another id": (
        gemini(ASK, content("model", g_call(id="1")), content("user", g_response(id="2"))),
        "response_id",
        "ids of the function call parts",
    ),
    "the same id twice": (
        gemini(
            ASK,
            content("model", g_call(id="1"), g_call(id="1", signature="")),
            content("user", g_response(id="1"), g_response(id="1")),
        ),
        "duplicate_id",
        "are unique",
    ),
    "call of the user": (gemini(content("user", g_call())), "part_role", "the role model."),
    "no signature": (
        gemini(ASK, content("model", g_call(signature="")), content("user", g_response())),
        "signature_missing",
        (
            "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
            "correctly, and missing thought_signature may lead to degraded model performance. Additional data, "
            "function call `default_api:bash` , position 2."
        ),
    ),
    "no signature in the second step": (
        gemini(*STEP, content("model", g_call(signature="")), content("user", g_response())),
        "signature_missing",
        "position 4.",
    ),
    "first turn of the model": (gemini(content("model", "x"), ASK), "first_role", "alternate between user and model"),
    "two user turns": (gemini(ASK, ASK), "alternation", "alternate between user and model"),
    "a user turn behind the responses": (gemini(*STEP, ASK), "alternation", "alternate between user and model"),
    "last turn of the model": (gemini(ASK, content("model", "x")), "last_role", "end with a user role"),
    "function name": (
        gemini(ASK, content("model", g_call("a b")), content("user", g_response("a b"))),
        "name",
        "Invalid function name. Must start with a letter or an underscore.",
    ),
    "no function name": (gemini(ASK, content("model", g_call("")), ASK), "name", "Name cannot be empty."),
    "no response": (
        gemini(ASK, content("model", g_call()), content("user", {"functionResponse": {"name": "bash"}})),
        "response_missing",
        "response must be set",
    ),
    "system without text": (gemini(ASK, systemInstruction={"parts": []}), "system", "system_instruction"),
    "declared twice": (
        gemini(ASK, tools=[{"functionDeclarations": [{"name": "a"}, {"name": "a"}]}]),
        "tool_definition",
        "Duplicate function declaration found: a",
    ),
    "lone surrogate": (gemini(content("user", "\ud800")), "json", "Invalid JSON payload received."),
}

ACCEPTED: dict[str, dict[str, Any]] = {
    "a question": gemini(ASK),
    "no role": gemini({"parts": [{"text": "x"}]}),
    "a step": gemini(*STEP),
    "a step in the other spelling": gemini(
        ASK,
        content("model", {"function_call": {"name": "bash", "args": {}}, "thought_signature": "c2ln"}),
        content("function", {"function_response": {"name": "bash", "response": {}}}),
    ),
    "parallel calls": gemini(
        ASK,
        content("model", g_call("a", id="1"), g_call("b", signature="", id="2")),
        content("user", g_response("b", id="2"), g_response("a", id="1")),
    ),
    "an old step without signature": gemini(
        ASK, content("model", g_call(signature="")), content("user", g_response()), content("model", "done"), ASK
    ),
    "a dummy signature": gemini(
        ASK, content("model", g_call(signature="skip_thought_signature_validator")), content("user", g_response())
    ),
    "thoughts": gemini(ASK, content("model", {"text": "hm", "thought": True}, "done"), ASK),
    "an empty text with a signature": gemini(ASK, content("model", {"text": "", "thoughtSignature": "c2ln"}), ASK),
    "an image": gemini(content("user", {"inlineData": {"mimeType": "image/png", "data": png()}})),
    "a system instruction": gemini(ASK, systemInstruction={"parts": [{"text": "x"}]}),
    "tools": gemini(ASK, tools=[{"functionDeclarations": [{"name": "a", "parametersJsonSchema": {"type": "object"}}]}]),
    "text behind the responses": gemini(ASK, content("model", g_call()), content("user", g_response(), "And hurry.")),
    "code execution": gemini(
        ASK,
        content(
            "model",
            {"executableCode": {"language": "PYTHON", "code": "1"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
        ),
        ASK,
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    body, rule, words = REFUSED[name]
    found = judge("gemini", body, model="gemini-3-pro")
    assert found is not None
    assert (found.rule, found.status) == (rule, 400), found
    assert words in found.message
    assert found.body()["error"]["status"] == "INVALID_ARGUMENT"


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name: str) -> None:
    assert judge("gemini", ACCEPTED[name], model="gemini-3-pro") is None


def test_models_before_3_need_no_signature() -> None:
    body = gemini(ASK, content("model", g_call(signature="")), content("user", g_response()))
    assert judge("gemini", body, model="gemini-2.5-pro") is None


def test_a_null_field_counts_as_missing() -> None:
    part = {"text": "hi", "thoughtSignature": None, "functionCall": None}
    body = {"contents": [{"role": "user", "parts": [part]}], "systemInstruction": None}
    assert judge("gemini", body, model="gemini-3-pro") is None
