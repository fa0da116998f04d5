"""Media and documents of one vendor, sent to another vendor or to another format of the same vendor."""

from __future__ import annotations

from typing import Any

import pytest

from foldline import Session
from foldline.testing.provider import judge

IMAGE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
GEMINI_TOOLS = [{"functionDeclarations": [{"name": "look", "description": "Look."}]}]
MODELS = {"anthropic": "claude-sonnet-5", "openai": "gpt-5", "openai-responses": "gpt-5", "gemini": "gemini-3-pro"}


def result_of(block: dict[str, Any]) -> list[dict[str, Any]]:
    """An Anthropic conversation in which a tool returned a block."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [block]}
    return [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]


def gemini_response(model: str, block: dict[str, Any]) -> dict[str, Any]:
    """The function response that Gemini gets for the result, in a request that Gemini accepts."""
    session = Session(model="claude-sonnet-5", format="anthropic")
    session.add(*result_of(block))
    session.use(model=model, format="gemini", tools=GEMINI_TOOLS)
    request = session.view().request("gemini")
    judge("gemini", {"contents": request["contents"], "tools": GEMINI_TOOLS}, model=model)
    response: dict[str, Any] = request["contents"][-1]["parts"][0]["functionResponse"]
    return response


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "hello"}}, "hello"),
        (
            {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "inside"}]}},
            "inside",
        ),
        ({"type": "image", "source": {"type": "file", "file_id": "file_1"}}, "[image left out]"),
        ({"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}, "[image left out]"),
    ],
)
def test_what_a_gemini_result_cannot_hold_is_in_its_text(block: dict[str, Any], text: str) -> None:
    response = gemini_response("gemini-3-pro", block)
    assert response["response"] == {"output": text}
    assert "parts" not in response


@pytest.mark.parametrize(("model", "has_image"), [("gemini-3-pro", True), ("gemini-2.5-pro", False)])
def test_an_image_in_a_result_is_sent_to_the_models_that_accept_one(model: str, has_image: bool) -> None:
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE}}
    response = gemini_response(model, block)
    assert ("parts" in response) == has_image
    assert has_image or response["response"]["output"].startswith("[image")


@pytest.mark.parametrize("format", ["openai", "openai-responses", "anthropic"])
@pytest.mark.parametrize(
    "file",
    [
        {"mimeType": "image/png", "fileUri": "https://generativelanguage.googleapis.com/v1beta/files/abc-123"},
        {"mimeType": "application/pdf", "fileUri": "https://generativelanguage.googleapis.com/v1beta/files/abc-123"},
        {"fileUri": "https://www.youtube.com/watch?v=9hE5-98ZeCg"},
        {"mimeType": "application/pdf", "fileUri": "gs://bucket/a.pdf"},
    ],
)
def test_an_address_that_only_google_reads_stays_with_google(format: str, file: dict[str, Any]) -> None:
    session = Session(model="gemini-3-pro", format="gemini")
    session.add({"role": "user", "parts": [{"fileData": file}, {"text": "what is this?"}]})
    assert file["fileUri"] in str(session.view().request("gemini"))
    session.use(model=MODELS[format], format=format)
    rendered = session.view().render(format)
    assert file["fileUri"] not in str(rendered.body)
    assert "left out" in str(rendered.body)
    assert rendered.lost


@pytest.mark.parametrize("format", ["openai", "openai-responses", "gemini"])
@pytest.mark.parametrize("is_result", [True, False])
def test_the_text_of_a_search_result_reaches_every_format(format: str, is_result: bool) -> None:
    source, text = "https://example.com/kb/7", [{"type": "text", "text": "the port is 7091"}]
    block = {"type": "search_result", "source": source, "title": "Ports", "content": text}
    session = Session(model="claude-sonnet-5", format="anthropic")
    session.add(*(result_of(block) if is_result else [{"role": "user", "content": [block]}]))
    assert block in blocks_of(session.view().render("anthropic").body)
    session.use(model=MODELS[format], format=format)
    assert "Ports\\nhttps://example.com/kb/7\\nthe port is 7091" in str(session.view().render(format).body)


def blocks_of(body: dict[str, Any]) -> list[Any]:
    """All blocks in a body, also those inside results."""
    blocks = [block for message in body["messages"] for block in message["content"] if isinstance(block, dict)]
    inner = [each for block in blocks for each in block.get("content") or () if isinstance(each, dict)]
    return [{key: value for key, value in block.items() if key != "cache_control"} for block in (*blocks, *inner)]


@pytest.mark.parametrize("own", ["openai", "openai-responses"])
@pytest.mark.parametrize("format", ["openai", "openai-responses"])
def test_a_request_in_another_format_of_the_vendor_is_repaired_alike(own: str, format: str) -> None:
    session = Session(model="gpt-5", format=own)
    picture = {"inlineData": {"mimeType": "image/heic", "data": "AAAAGGZ0eXBoZWljAAAAAG1pZjFoZWlj"}}
    session.add({"role": "user", "parts": [picture, {"text": "q"}]}, format="gemini")
    session.add({"role": "user", "content": "hi", "timestamp": 1763390000, "_row": 7}, format=format)
    sent = str(session.view().request(format))
    assert "heic;base64" not in sent
    assert "timestamp" not in sent


def test_fields_that_gemini_does_not_know_are_left_out() -> None:
    session = Session(model="gemini-3-pro", format="gemini")
    session.add({"role": "user", "parts": [{"text": "hi", "row": 1}], "timestamp": 1763390000})
    assert session.view().request("gemini")["contents"] == [{"role": "user", "parts": [{"text": "hi"}]}]


FILE = {"type": "file", "file": {"file_id": "file-1"}}
TEXT_FILE = {"type": "file", "file": {"filename": "a.txt", "file_data": "data:text/plain;base64,aGVsbG8="}}
JSON_FILE = {"type": "file", "file": {"filename": "a.json", "file_data": "data:application/json;base64,aGVsbG8="}}
UPLOADED = {"type": "input_file", "file_id": "file-1"}


@pytest.mark.parametrize(
    ("given", "part", "format", "sent"),
    [
        ("openai", FILE, "openai-responses", UPLOADED),
        ("openai-responses", UPLOADED, "openai", FILE),
        ("openai", TEXT_FILE, "openai-responses", {"type": "input_file", **TEXT_FILE["file"]}),  # type: ignore[dict-item]
        (
            "openai",
            TEXT_FILE,
            "anthropic",
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "hello"}},
        ),
        (
            "openai",
            JSON_FILE,
            "anthropic",
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "hello"}},
        ),
    ],
)
def test_a_file_keeps_its_id_its_name_and_its_text(
    given: str, part: dict[str, Any], format: str, sent: dict[str, Any]
) -> None:
    session = Session(model=MODELS[format], format=format)
    session.add({"role": "user", "content": [part]}, format=given)
    rendered = session.view().render(format)
    content = (rendered.body.get("messages") or rendered.body["input"])[0]["content"][0]
    assert {key: value for key, value in content.items() if key != "cache_control"} == sent
    assert rendered.lost == ()


@pytest.mark.parametrize("mime", ["image/bmp", "image/svg+xml", "image/tiff", "image/heic"])
@pytest.mark.parametrize("format", ["openai", "openai-responses"])
@pytest.mark.parametrize("model", ["claude-sonnet-5", "gemini-3-pro"])
def test_an_image_that_openai_cannot_read_is_replaced_in_a_request_for_it(model: str, format: str, mime: str) -> None:
    data = "PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciLz4="
    image: dict[str, Any] = {"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}}
    message: dict[str, Any] = {"role": "user", "content": [image, {"type": "text", "text": "q"}]}
    if model.startswith("gemini"):
        message = {"role": "user", "parts": [{"inlineData": {"mimeType": mime, "data": data}}, {"text": "q"}]}
    session = Session(model=model)
    session.add(message)
    request = session.view().request(format, max_tokens=50)
    assert judge(format, request) is None
    assert data not in str(request)
