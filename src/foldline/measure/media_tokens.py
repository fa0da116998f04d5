"""What an image, a document, a sound or a film costs.

Providers price what they see, not the base64 it travels in: a picture of the same pixels costs the same at 5 kB and at
5 MB. So a size is read from the first bytes of the data and put into the provider's rule, and where the size cannot be
known (an address, a damaged header) a stated upper figure stands in. The rules are data; a model names the one it uses.
"""

from __future__ import annotations

import re
from binascii import Error as BadBase64
from binascii import a2b_base64
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any

from foldline.errors import ConfigError
from foldline.message import Media


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaRule:
    """How one kind of model prices what is not text. Pixels are cut into squares of `square` pixels."""

    square: int = 0
    """0: every image costs `base`."""
    each: float = 1.0
    """Tokens of one square."""
    base: int = 0
    """Tokens of an image before its first square; also what a low-detail image costs."""
    most: int = 0
    """No image has more squares than this: larger ones are scaled down first. 0: no such limit."""
    long: int = 0
    """The long edge is scaled down to this. 0: not scaled."""
    short: int = 0
    """The short edge is then scaled down to this. 0: not scaled."""
    unknown: int
    """Tokens of an image whose size cannot be read."""
    page: int
    """Tokens of a page of a document: its text and its picture."""
    audio_second: int = 32
    video_second: int = 300


RULES = {
    # 28-pixel squares, read off public measurements of ten image sizes (2026-10) and stated by several clients. Before
    # 4.7 images were scaled to 1,568 pixels and about 1,600 tokens; since then to 2,576 pixels and 4,784 tokens.
    # A page of text was measured at 2,100 (Haiku 4.5) and 2,350 (5.5); the provider says 1,500 to 3,000 and its image.
    "claude": MediaRule(square=28, most=1_600, long=1_568, unknown=1_600, page=3_000),
    "claude-hd": MediaRule(square=28, most=4_784, long=2_576, unknown=4_784, page=3_400),
    # 512-pixel tiles inside 2,048 by 768, by the OpenAI guide: GPT-4o and 4.1; GPT-5 and 5.1; the o-series; 4o-mini.
    "tiles": MediaRule(square=512, each=170, base=85, long=2_048, short=768, unknown=1_445, page=2_000),
    "tiles-5": MediaRule(square=512, each=140, base=70, long=2_048, short=768, unknown=1_190, page=2_000),
    "tiles-o": MediaRule(square=512, each=150, base=75, long=2_048, short=768, unknown=1_275, page=2_000),
    "tiles-mini": MediaRule(square=512, each=5_667, base=2_833, long=2_048, short=768, unknown=48_169, page=30_000),
    # 32-pixel squares times a factor, by the same guide: 4.1-mini and 5-mini; the nano models; o4-mini; since 5.4 a
    # budget of 10,000 squares. Where the size is unknown there: what "high" detail allows (2,500 squares).
    "squares-mini": MediaRule(square=32, each=1.62, most=1_536, unknown=2_489, page=3_500),
    "squares-nano": MediaRule(square=32, each=2.46, most=1_536, unknown=3_779, page=4_800),
    "squares-o4": MediaRule(square=32, each=1.72, most=1_536, unknown=2_642, page=3_700),
    "squares": MediaRule(square=32, each=1.2, most=10_000, unknown=3_000, page=4_000),
    # 768-pixel tiles of 258 tokens until Gemini 2.5; since Gemini 3 a fixed figure per image and 560 a page (measured).
    "gemini": MediaRule(square=768, each=258, most=16, unknown=1_548, page=258),
    "gemini-3": MediaRule(base=1_120, unknown=1_120, page=560),
    # What nobody documents: the dearest common rule that is not absurd.
    "default": MediaRule(square=28, most=4_784, unknown=3_000, page=3_400),
    # The flat figure of the window_budget preset, whatever the resolution.
    "flat-1024": MediaRule(base=1_024, unknown=1_024, page=1_024),
}
"""The rules by name."""

_PDF_PAGE_BYTES = 75_000
"""A page of an average PDF, where its pages cannot be counted."""
_AUDIO_BYTES, _VIDEO_BYTES = 8_000, 125_000
"""A second of compressed sound (64 kbit) and film (1 Mbit), where no header says more: low, so seconds err high."""
_UNKNOWN_SECONDS = 60
"""A sound or film that is only an address."""


def rule(name: str) -> MediaRule:
    """A rule by name."""
    found = RULES.get(name)
    if found is None:
        raise ConfigError(f"no media rule {name!r}", hint=f"use one of {', '.join(RULES)}")
    return found


def media_tokens(media: Media, by: MediaRule) -> int:
    """Tokens of one image, document, sound or film; its text, if it has any, is the caller's to count."""
    mime = media.mime.lower()
    if media.kind == "image" or mime.startswith("image/"):
        return _image_tokens(media, by)
    if media.kind == "audio" or mime.startswith("audio/"):
        return ceil(_seconds(media, _AUDIO_BYTES) * by.audio_second)
    if media.kind == "video" or mime.startswith("video/"):
        return ceil(_seconds(media, _VIDEO_BYTES) * by.video_second)
    if media.text:
        return 0
    return _pages(media) * by.page


def _image_tokens(media: Media, by: MediaRule) -> int:
    if not by.square or _low_detail(media):
        return by.base or by.unknown
    size = image_size(base64_of(media))
    if size is None:
        return by.unknown
    width, height = size
    for edge_of, limit in ((max, by.long), (min, by.short)):
        scale = limit / edge_of(width, height) if limit else 1
        if scale < 1:
            width, height = width * scale, height * scale
    squares = ceil(width / by.square) * ceil(height / by.square)
    return by.base + ceil(by.each * (min(squares, by.most) if by.most else squares))


def _low_detail(media: Media) -> bool:
    """Whether the request asks for the cheap form of an image, as OpenAI's formats can."""
    value = media.wire.value if media.wire else None
    if not isinstance(value, dict):
        return False
    inner: Any = value.get("image_url")
    return "low" in (value.get("detail"), inner.get("detail") if isinstance(inner, dict) else None)


def base64_of(media: Media) -> str:
    """The base64 of a medium: its data, or what a `data:` address carries. Empty for any other address."""
    if media.data:
        data = media.data
    elif media.url[:5].lower() == "data:":
        data = media.url
    else:
        return ""
    return data[data.find(",") + 1 :] if data[:5].lower() == "data:" else data


def image_size(data: str) -> tuple[float, float] | None:
    """Width and height from the header of base64 data (PNG, GIF, WebP, JPEG), reading as little as that takes."""
    head = _bytes(data, 48)
    size: tuple[int, int] | None = None
    if head.startswith(b"\x89PNG\r\n\x1a\n") and head[12:16] == b"IHDR":
        size = _big(head[16:20]), _big(head[20:24])
    elif head.startswith((b"GIF87a", b"GIF89a")):
        size = _little(head[6:8]), _little(head[8:10])
    elif head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        size = _webp_size(head)
    elif head.startswith(b"\xff\xd8"):
        for chars in (4_096, 131_072, 2_097_152):
            size = _jpeg_size(_bytes(data, chars))
            if size or len(data) <= chars:
                break
    return size if size and size[0] > 0 and size[1] > 0 else None


def _bytes(data: str, chars: int) -> bytes:
    """The bytes behind the first characters of base64 text; b"" if it is not base64."""
    piece = "".join(data[:chars].split())
    try:
        return a2b_base64(piece[: len(piece) // 4 * 4].replace("-", "+").replace("_", "/"))
    except (BadBase64, ValueError):
        return b""


def _big(raw: bytes) -> int:
    return int.from_bytes(raw, "big")


def _little(raw: bytes) -> int:
    return int.from_bytes(raw, "little")


def _webp_size(head: bytes) -> tuple[int, int] | None:
    """WebP in its three forms: lossy, lossless, extended."""
    form = head[12:16]
    if form == b"VP8 ":
        return _little(head[26:28]) & 0x3FFF, _little(head[28:30]) & 0x3FFF
    if form == b"VP8L":
        bits = _little(head[21:25])
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if form == b"VP8X":
        return _little(head[24:27]) + 1, _little(head[27:30]) + 1
    return None


def _jpeg_size(raw: bytes) -> tuple[int, int] | None:
    """The frame header of a JPEG, which may stand behind long comments and thumbnails."""
    for marker, start in _jpeg_segments(raw):
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            frame = raw[start + 3 : start + 7]
            return (_big(frame[2:4]), _big(frame[0:2])) if len(frame) == 4 else None
    return None


def _jpeg_segments(raw: bytes) -> Iterator[tuple[int, int]]:
    """Each marker with the place of its length field."""
    at = 2
    while at + 4 <= len(raw) and raw[at] == 0xFF:
        marker = raw[at + 1]
        if marker == 0xFF:
            at += 1
            continue
        yield marker, at + 2
        at += 2 + max(2, _big(raw[at + 2 : at + 4]))


def _pages(media: Media) -> int:
    """Pages of a PDF: counted where they are in plain sight, else by its size, and at least one."""
    data = base64_of(media)
    size = len(data) * 3 // 4
    raw = _bytes(data, 4_194_304)
    seen = len(re.findall(rb"/Type\s*/Page\b(?!s)", raw))
    told = max((int(number) for number in re.findall(rb"/Count\s+(\d{1,5})\b", raw)), default=0)
    return max(seen, told) or max(1, ceil(size / _PDF_PAGE_BYTES))


def _seconds(media: Media, bytes_per_second: int) -> float:
    """How long a sound or film lasts: by its own header if it is a WAV, else by its size."""
    data = base64_of(media)
    if not data:
        return _UNKNOWN_SECONDS
    head = _bytes(data, 64)
    if head[:4] == b"RIFF" and head[8:12] == b"WAVE" and head[12:16] == b"fmt " and (rate := _little(head[28:32])):
        bytes_per_second = rate
    return len(data) * 3 / 4 / bytes_per_second
