"""Sizes on the wire: every part counts, images by pixels, encrypted content by a bound, and nothing raises."""

from __future__ import annotations

import base64
import json
import struct
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foldline.measure.estimator import CHARS_4, Estimator
from foldline.measure.media_tokens import image_size, media_tokens
from foldline.measure.message_size import (
    TEXT_ONLY,
    Framing,
    encrypted_tokens,
    message_tokens,
    part_tokens,
    tools_tokens,
    value_tokens,
)
from foldline.message import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult, Wire
from foldline.models import table as model_table
from foldline.models.table import MediaRule, model
from foldline.window_budget.host_messages import FRAMING as WINDOW_BUDGET
from foldline.wire.formats import framing_of

TABLE = tomllib.loads(Path(model_table.__file__).with_name("models.toml").read_text("utf-8"))
RULES = {name: MediaRule(**row) for name, row in TABLE["media"].items()} | {"flat-1024": WINDOW_BUDGET.media}
CLAUDE = framing_of("anthropic", RULES["claude"])
COUNTER = Estimator("claude_ge47")
BARE = TEXT_ONLY


def encoded(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def png(width: int, height: int, size: int = 100) -> str:
    head = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height) + b"\x08\x02\0\0\0"
    return encoded(head + b"\x5a" * size)


def gif(width: int, height: int) -> str:
    return encoded(b"GIF89a" + struct.pack("<HH", width, height) + b"\0" * 40)


def jpeg(width: int, height: int, before: int = 0) -> str:
    """With so many bytes of thumbnail and comments before the frame header."""
    notes = b""
    while before > 0:
        part = min(before, 65_000)
        notes += b"\xff\xe1" + struct.pack(">H", part + 2) + b"\x11" * part
        before -= part
    frame = b"\xff\xc2" + struct.pack(">HBHH", 17, 8, height, width)
    return encoded(b"\xff\xd8" + notes + b"\xff\xff" + frame + b"\0" * 40)


def webp(width: int, height: int, form: str) -> str:
    bodies = {
        "VP8 ": b"\0\0\0\0\0\0\0\x9d\x01\x2a" + struct.pack("<HH", width, height),
        "VP8L": b"\0\0\0\0\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14),
        "VP8X": b"\0\0\0\0\0\0\0\0" + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little"),
    }
    return encoded(b"RIFF\0\0\0\0WEBP" + form.encode() + bodies[form] + b"\0" * 20)


def image(data: str = "", url: str = "", wire: Any = None) -> Media:
    return Media(kind="image", mime="image/png", data=data, url=url, wire=Wire("openai", wire) if wire else None)


EDGES = st.integers(1, 16_383)


@settings(deadline=None)
@given(EDGES, EDGES, st.integers(0, 300_000))
def test_the_size_of_an_image_is_read_from_its_first_bytes(width: int, height: int, before: int) -> None:
    forms = [png(width, height), gif(width, height), jpeg(width, height), jpeg(width, height, before)]
    forms += [webp(width, height, form) for form in ("VP8 ", "VP8L", "VP8X")]
    assert [image_size(data) for data in forms] == [(width, height)] * 7


@settings(deadline=None)
@given(st.one_of(st.binary(max_size=200).map(encoded), st.text(max_size=200)), st.sampled_from(sorted(RULES)))
def test_a_damaged_image_counts_as_one_of_unknown_size(data: str, name: str) -> None:
    assert media_tokens(image(data or "!"), RULES[name]) > 0
    for kind in ("document", "audio", "video", "hologram"):
        assert media_tokens(Media(kind=kind, data=data), RULES[name]) > 0


@pytest.mark.parametrize("kind", ["image", "document", "audio", "video", "hologram"])
@pytest.mark.parametrize("name", sorted(RULES))
def test_co07_media_given_by_address_count(kind: str, name: str) -> None:
    for media in (Media(kind=kind, url="https://example.org/a"), Media(kind=kind, url="file-abc123"), Media(kind=kind)):
        assert media_tokens(media, RULES[name]) > 0


def test_co05_the_same_pixels_cost_the_same_at_any_file_size() -> None:
    light, heavy = png(800, 600, 5_000), png(800, 600, 5_000_000)
    for name, by in RULES.items():
        assert media_tokens(image(light), by) == media_tokens(image(heavy), by) < 30_000, name
    heavy_message = Message(role="user", parts=(image(heavy),))
    assert message_tokens(heavy_message, COUNTER, CLAUDE) < 1_000
    in_address = Message(role="user", parts=(image(url=f"data:image/png;base64,{heavy}"),))
    assert message_tokens(in_address, COUNTER, CLAUDE) == message_tokens(heavy_message, COUNTER, CLAUDE)


@pytest.mark.parametrize(
    ("name", "width", "height", "tokens"),
    [
        ("claude", 1_000, 1_000, 1_296),
        ("claude", 8_000, 8_000, 1_600),
        ("claude", 200, 200, 64),
        ("claude-hd", 1_920, 1_080, 2_691),
        ("claude-hd", 8_000, 8_000, 4_784),
        ("tiles", 1_024, 1_024, 765),
        ("tiles", 2_048, 4_096, 1_105),
        ("tiles", 512, 512, 255),
        ("squares", 1_024, 1_024, 1_229),
        ("squares", 1_920, 1_080, 2_448),
        ("squares-mini", 1_024, 1_024, 1_659),
        ("gemini", 384, 384, 258),
        ("gemini", 1_536, 1_536, 1_032),
        ("gemini-3", 4_000, 3_000, 1_120),
        ("flat-1024", 10, 10, 1_024),
    ],
)
@pytest.mark.promise("S0.18")
def test_co10_images_cost_what_the_vendor_documents(name: str, width: int, height: int, tokens: int) -> None:
    assert media_tokens(image(png(width, height)), RULES[name]) == tokens


def test_low_detail_is_the_base_price() -> None:
    data = png(2_000, 2_000)
    chat = image(data, wire={"type": "image_url", "image_url": {"url": "…", "detail": "low"}})
    responses = image(data, wire={"type": "input_image", "detail": "low"})
    assert [media_tokens(media, RULES["tiles"]) for media in (chat, responses, image(data))] == [85, 85, 765]


def test_documents_count_by_page_and_sound_by_the_second() -> None:
    pdf = (
        b"%PDF-1.7\n"
        + b"".join(b"<< /Type /Page /Parent 2 0 R >>\n" for _ in range(7))
        + b"<< /Type /Pages /Count 7 >>"
    )
    document = Media(kind="document", mime="application/pdf", data=encoded(pdf))
    assert media_tokens(document, RULES["claude"]) == 7 * 3_000
    closed = Media(kind="document", mime="application/pdf", data=encoded(b"%PDF-1.7\n" + b"\x17" * 300_000))
    assert media_tokens(closed, RULES["claude"]) == 5 * 3_000
    head = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0" + struct.pack("<IIHH", 16_000, 32_000, 2, 16)
    wav = Media(kind="audio", mime="audio/wav", data=encoded(head + b"\0" * (320_000 - len(head))))
    assert media_tokens(wav, RULES["gemini"]) == pytest.approx(10 * 32, abs=2)
    words = Media(kind="document", mime="text/plain", text="word " * 1_000)
    assert part_tokens(words, CHARS_4, BARE) == 1_250


TEN_THOUSAND = "lorem ipsum dolor sit amet " * 1_500
"""More than ten thousand tokens in any vocabulary that is not absurd: 40,500 characters."""
KINDS: dict[str, Part] = {
    "text": Text(text=TEN_THOUSAND),
    "thinking": Thinking(text=TEN_THOUSAND, signature="c2ln"),
    "sealed thinking": Thinking(signature="A" * 60_000),
    "call": ToolCall(id="1", name="run", arguments=json.dumps({"code": TEN_THOUSAND})),
    "free-form call": ToolCall(id="1", name="apply_patch", arguments=TEN_THOUSAND, kind="custom"),
    "result": ToolResult(call_id="1", parts=(Text(text=TEN_THOUSAND),)),
    "result in a result": ToolResult(call_id="1", parts=(ToolResult(call_id="2", parts=(Text(text=TEN_THOUSAND),)),)),
    "text document": Media(kind="document", text=TEN_THOUSAND),
    "document": Media(kind="document", data=encoded(b"%PDF-1.7" + b"/Type /Page " * 10)),
    "pictures in a result": ToolResult(call_id="1", parts=(image(png(1_500, 1_500)),) * 8),
    "unknown": Opaque(kind="web_search_call", value={"type": "web_search_call", "results": [TEN_THOUSAND]}),
    "unknown, on the wire only": Opaque(kind="x", wire=Wire("anthropic", {"type": "x", "body": {"a": TEN_THOUSAND}})),
    "citations": Text(text="x", wire=Wire("anthropic", {"type": "text", "citations": [{"cited_text": TEN_THOUSAND}]})),
}


@pytest.mark.parametrize("role", ["system", "user", "assistant", "tool", "somebody"])
@pytest.mark.parametrize("kind", KINDS)
def test_co13_lo15_every_kind_of_part_counts_in_every_role(kind: str, role: str) -> None:
    assert message_tokens(Message(role=role, parts=(KINDS[kind],)), CHARS_4, CLAUDE) >= 10_000


TEXT = st.text(st.characters(exclude_categories=()), max_size=60)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=10), inner, max_size=4)),
    max_leaves=20,
)
LEAVES = st.one_of(
    st.builds(Text, text=TEXT, wire=st.one_of(st.none(), st.builds(Wire, st.just("anthropic"), JSON))),
    st.builds(Thinking, text=TEXT, signature=TEXT),
    st.builds(ToolCall, id=TEXT, name=TEXT, arguments=TEXT, kind=TEXT),
    st.builds(Media, kind=TEXT, mime=TEXT, data=TEXT, url=TEXT, text=TEXT),
    st.builds(Opaque, kind=TEXT, value=JSON),
)
PARTS = st.recursive(
    LEAVES, lambda inner: st.builds(ToolResult, call_id=TEXT, parts=st.lists(inner, max_size=3).map(tuple))
)


@settings(deadline=None)
@given(
    st.builds(Message, role=TEXT, parts=st.lists(PARTS, max_size=4).map(tuple)), st.sampled_from(["anthropic", "none"])
)
def test_co09_any_message_has_a_size(message: Message, provider: str) -> None:
    framing = framing_of(provider)
    tokens = message_tokens(message, COUNTER, framing)
    assert tokens == message_tokens(message, COUNTER, framing)
    parts = sum(framing.part + part_tokens(part, COUNTER, framing) for part in message.parts)
    assert tokens == framing.message + parts >= framing.message


class Rude:
    """An object that cannot even be printed."""

    def __str__(self) -> str:
        raise RuntimeError


def test_values_that_json_cannot_hold_have_a_size() -> None:
    deep: Any = "leaf"
    for _ in range(100_000):
        deep = [deep]
    circle: dict[str, Any] = {"name": "circle"}
    circle["self"] = circle
    for value in (deep, circle, Rude(), {1: {2, 3}}, b"bytes", float("nan"), ...):
        assert value_tokens(value, CHARS_4) > 0
    for tools in ([deep], [circle], [{"name": Rude()}]):
        assert tools_tokens(tools, CHARS_4, CLAUDE) > CLAUDE.tools


@settings(deadline=None)
@given(JSON)
def test_an_unknown_value_counts_at_least_as_its_json(value: Any) -> None:
    wire = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert CHARS_4.count(wire).tokens <= value_tokens(value, CHARS_4) <= 2 * len(wire)


def test_co11_encrypted_content_counts_by_a_bounded_rule() -> None:
    blob = encoded(bytes(range(256)) * 60)
    item = Opaque(kind="compaction", value={"type": "compaction", "encrypted_content": blob})
    assert len(blob) == 20_480
    assert 3_000 < part_tokens(item, COUNTER, CLAUDE) < 5_000 < COUNTER.count(blob).tokens
    assert part_tokens(Thinking(text="short", signature=blob), COUNTER, CLAUDE) == encrypted_tokens(len(blob))
    picture = Opaque(kind="new_image", value={"source": {"data": png(800, 600, 5_000_000)}})
    address = Opaque(kind="new_image", value={"source": f"data:image/png;base64,{png(800, 600, 5_000_000)}"})
    assert part_tokens(picture, COUNTER, CLAUDE) == pytest.approx(part_tokens(address, COUNTER, CLAUDE), abs=20)
    assert part_tokens(picture, COUNTER, CLAUDE) < 33_000
    assert encrypted_tokens(0) == 0


@pytest.mark.parametrize("gap", [" ", "\n", "_", "-", ""])
def test_words_are_never_taken_for_base64(gap: str) -> None:
    for text in (TEN_THOUSAND, TEN_THOUSAND.upper(), TEN_THOUSAND.title()):
        words = Opaque(kind="note", value={"text": text.replace(" ", gap)})
        assert part_tokens(words, CHARS_4, CLAUDE) >= 8_000
    wrapped = "\n".join(encoded(bytes(range(57))) for _ in range(200))
    assert value_tokens(wrapped, CHARS_4) == encrypted_tokens(len(wrapped))


def test_framing_differs_by_wire_format() -> None:
    call = Message(role="assistant", parts=(ToolCall(id="1", name="ls", arguments="{}"),))
    result = Message(role="user", parts=(ToolResult(call_id="1", parts=(Text(text="a"),)),))
    claude = sum(message_tokens(message, CHARS_4, CLAUDE) for message in (call, result))
    openai = sum(message_tokens(message, CHARS_4, framing_of("openai")) for message in (call, result))
    assert 50 <= claude <= 100
    assert openai < claude
    assert framing_of("deepseek") == framing_of("openai-responses") == framing_of("openai")
    assert framing_of("anthropic", RULES["claude-hd"]).media.max_tiles == 4_784


@pytest.mark.promise("S0.19")
def test_the_documented_framing_of_window_budget() -> None:
    framing = WINDOW_BUDGET
    assert (framing.message, framing.part, framing.call, framing.reply) == (4, 2, 6, 0)
    assert message_tokens(Message(role="user", parts=(image(),)), CHARS_4, framing) == 4 + 2 + 1_024
    assert message_tokens(Message(role="user", parts=(Text(text="x" * 8),)), CHARS_4, framing) == 4 + 2 + 2


def test_tools_count_as_they_are_on_the_wire() -> None:
    tool = {"name": "get_weather", "description": "Wetter für eine Stadt 天気", "input_schema": {"type": "object"}}
    text = json.dumps(tool, ensure_ascii=False, separators=(",", ":"))
    assert tools_tokens([tool], CHARS_4, CLAUDE) == CLAUDE.tools + CLAUDE.tool + CHARS_4.count(text).tokens
    assert tools_tokens([tool] * 3, CHARS_4, CLAUDE) > tools_tokens([tool], CHARS_4, CLAUDE)
    assert tools_tokens([], CHARS_4, CLAUDE) == 0


@pytest.mark.parametrize(
    "name", ["claude-opus-5", "claude-sonnet-4-5", "gpt-4o", "gpt-5.6", "gemini-2.5-pro", "unheard-of"]
)
def test_a_model_names_its_own_media_rule(name: str) -> None:
    known = model(name)
    framing: Framing = framing_of(known.format, known.media)
    entry = known.source.split()[1] if known.vendor else ""
    row = {**TABLE["default"], **TABLE["vendor"].get(known.vendor, {}), **TABLE["model"].get(entry, {})}
    assert framing.media == RULES[row["media"]]
    assert message_tokens(Message(role="user", parts=(image(png(500, 500)),)), COUNTER, framing) > 100
