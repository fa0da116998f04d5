"""Images in a form that the provider accepts: a type that it reads, plain base64, an address that it can open."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from foldline import Session
from foldline.message import Media, Message, Text, ToolCall, ToolResult, assistant, user
from foldline.testing import assert_sendable
from foldline.testing.provider import judge
from foldline.wire.formats import REQUEST_FORMATS

MODELS = {
    "anthropic": "claude-sonnet-4-5",
    "openai": "gpt-4o",
    "openai-responses": "gpt-5",
    "gemini": "gemini-3-pro",
}
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
GIF = base64.b64encode(b"GIF89a\x01\x00\x01\x00\x80\x00\x00\xff\xff\xff\x00\x00\x00;").decode()
BMP = base64.b64encode(b"BM" + bytes(60)).decode()
IMAGES = [
    ("image/png", PNG),
    ("image/jpg", PNG),
    ("image/jpeg", PNG),
    ("IMAGE/PNG", PNG),
    ("", PNG),
    ("image/tiff", PNG),
    ("image/png", f"{PNG[:76]}\n{PNG[76:]}\n"),
    ("image/png", f"data:image/png;base64,{PNG}"),
    ("image/png", PNG.rstrip("=")),
    ("image/gif", GIF),
    ("image/png", GIF),
    ("image/bmp", BMP),
    ("image/svg+xml", "PHN2Zz48L3N2Zz4="),
    ("image/png", "AAAA"),
    ("image/png", "[removed]"),
]
ADDRESSES = ["https://a.example/b.png", "file:///tmp/x.png", "ftp://a/b.png", "x.png", "data:image/png,abc"]


def sent(format: str, *messages: Any) -> str:
    """The elements of a request that the provider accepts, as text."""
    session = Session(model=MODELS[format], format=format)
    session.add(*messages, format=format)
    rendered = session.view().render()
    body = rendered.body if format == "gemini" else {**rendered.body, "model": MODELS[format]}
    tool = {"name": "run", "input_schema": {"type": "object"}}
    body |= {"max_tokens": 100, "tools": [tool]} if format == "anthropic" else {}
    refused = judge(format, body, model=MODELS[format])
    assert refused is None, refused
    assert_sendable(body, format)
    return str(body)


def verbatim(format: str, mime: str, data: str) -> dict[str, Any]:
    """A message of the user with an image, as a client writes it."""
    if format == "anthropic":
        source = {"type": "base64", "media_type": mime, "data": data}
        return {"role": "user", "content": [{"type": "image", "source": source}, {"type": "text", "text": "see"}]}
    url = data if data.startswith("data:") else f"data:{mime};base64,{data}"
    if format == "openai":
        return {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}
    if format == "openai-responses":
        return {"role": "user", "content": [{"type": "input_image", "image_url": url}]}
    return {"role": "user", "parts": [{"inlineData": {"mimeType": mime, "data": data}}, {"text": "see"}]}


@pytest.mark.parametrize("format", REQUEST_FORMATS)
@pytest.mark.parametrize(("mime", "data"), IMAGES)
def test_any_image_is_sent_in_a_form_that_the_provider_accepts(format: str, mime: str, data: str) -> None:
    image = Media(kind="image", mime=mime, data=data)
    sent(format, Message(role="user", parts=(Text(text="see"), image)))
    call, result = ToolCall(id="c1", name="look"), ToolResult(call_id="c1", name="look", parts=(image,))
    sent(format, user("go"), assistant("", call), Message(role="tool", parts=(result,)))
    if mime:
        sent(format, verbatim(format, mime, data))


@pytest.mark.parametrize("format", REQUEST_FORMATS)
@pytest.mark.parametrize("url", ADDRESSES)
def test_an_address_that_the_provider_cannot_open_becomes_a_placeholder(format: str, url: str) -> None:
    sent(format, Message(role="user", parts=(Text(text="see"), Media(kind="image", url=url))))


def test_the_stated_type_of_an_image_becomes_its_real_one() -> None:
    assert "'media_type': 'image/png'" in sent("anthropic", verbatim("anthropic", "image/jpg", PNG))
    assert "'media_type': 'image/gif'" in sent("anthropic", verbatim("anthropic", "image/png", GIF))
    assert "'mimeType': 'image/png'" in sent("gemini", verbatim("gemini", "image/jpg", PNG))


def test_wrapped_base64_is_sent_in_one_line() -> None:
    assert PNG in sent("anthropic", verbatim("anthropic", "image/png", f"{PNG[:76]}\n{PNG[76:]}\n"))


@pytest.mark.parametrize("format", REQUEST_FORMATS)
def test_a_readable_image_is_sent_as_it_came(format: str) -> None:
    message = verbatim(format, "image/png", PNG)
    session = Session(model=MODELS[format], format=format)
    session.add(message, format=format)
    body = session.view().render().body
    elements = body.get("messages") or body.get("input") or body["contents"]
    key = "parts" if format == "gemini" else "content"
    assert elements[0][key][0] == message[key][0]


def test_an_image_of_an_unusual_type_is_sent_to_another_server() -> None:
    session = Session(model="qwen3-vl", format="openai")
    message = verbatim("openai", "image/bmp", BMP)
    session.add(message)
    assert session.view().render().body["messages"] == [message]
