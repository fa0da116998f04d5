"""Counts the tokens of an image, a document, a sound or a film.

Vendors count the pixels of an image, not its base64 text. So width and height are read from the first bytes of the
data, and the model's `MediaRule` gives the number of tokens. If width and height are unknown (a URL, a damaged header),
the rule's figure for images of unknown size is used.
"""

from __future__ import annotations

import re
from binascii import Error as BadBase64
from binascii import a2b_base64
from math import ceil
from typing import Any

from foldline.message import Media
from foldline.models.table import MediaRule

_PDF_PAGE_BYTES = 75_000
"""The assumed size of a PDF page in bytes, for PDFs whose pages cannot be counted."""
_AUDIO_BYTES, _VIDEO_BYTES = 8_000, 125_000
"""The assumed number of bytes per second of compressed sound (64 kbit/s) and film (1 Mbit/s).

The values are low, so that the estimated duration is not too short.
"""
_UNKNOWN_SECONDS = 60
"""The assumed duration of a sound or film that is given by its URL."""


def media_tokens(media: Media, by: MediaRule) -> int:
    """Tokens of one image, document, sound or film. The text of a text document is not included."""
    mime = media.mime.lower()
    if media.kind == "image" or mime.startswith("image/"):
        return _image_tokens(media, by)
    if media.kind == "audio" or mime.startswith("audio/"):
        return ceil(_seconds(media, _AUDIO_BYTES) * by.audio_tokens)
    if media.kind == "video" or mime.startswith("video/"):
        return ceil(_seconds(media, _VIDEO_BYTES) * by.video_tokens)
    return 0 if media.text else _pages(media) * by.page_tokens


def _image_tokens(media: Media, by: MediaRule) -> int:
    if not by.tile_pixels or _low_detail(media):
        return by.base_tokens or by.unknown_tokens
    size = image_size(base64_of(media))
    if size is None:
        return by.unknown_tokens
    width, height = size
    for edge_of, limit in ((max, by.max_long_edge), (min, by.max_short_edge)):
        scale = limit / edge_of(width, height) if limit else 1
        if scale < 1:
            width, height = width * scale, height * scale
    squares = ceil(width / by.tile_pixels) * ceil(height / by.tile_pixels)
    return by.base_tokens + ceil(by.tile_tokens * (min(squares, by.max_tiles) if by.max_tiles else squares))


def _low_detail(media: Media) -> bool:
    """Whether the request asks for an image in low detail. Only OpenAI's formats have this option."""
    value = media.wire.value if media.wire else None
    if not isinstance(value, dict):
        return False
    inner: Any = value.get("image_url")
    return "low" in (value.get("detail"), inner.get("detail") if isinstance(inner, dict) else None)


def base64_of(media: Media) -> str:
    """The base64 text of a medium: its data, or the data in its `data:` URL; "" for any other URL."""
    data = media.data or media.url
    return data[data.find(",") + 1 :] if data[:5].lower() == "data:" else media.data


def image_size(data: str) -> tuple[float, float] | None:
    """Width and height of a PNG, GIF, WebP or JPEG image in base64; None if unknown.

    Only the start of the data is decoded.
    """
    head = _bytes(data, 48)
    size: tuple[int, int] | None = None
    if head.startswith(b"\x89PNG\r\n\x1a\n") and head[12:16] == b"IHDR":
        size = int.from_bytes(head[16:20]), int.from_bytes(head[20:24])
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
    """The decoded bytes of the first `chars` characters of base64 text; b"" if the text is not base64."""
    piece = "".join(data[:chars].split())
    try:
        return a2b_base64(piece[: len(piece) // 4 * 4].replace("-", "+").replace("_", "/"))
    except (BadBase64, ValueError):
        return b""


def _little(raw: bytes) -> int:
    return int.from_bytes(raw, "little")


def _webp_size(head: bytes) -> tuple[int, int] | None:
    """Width and height of a WebP image in any of its three forms: lossy, lossless, extended."""
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
    """Width and height in the frame header of a JPEG. Long comments and thumbnails may come before this header."""
    at = 2
    while at + 4 <= len(raw) and raw[at] == 0xFF:
        marker = raw[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            frame = raw[at + 5 : at + 9]
            return (int.from_bytes(frame[2:4]), int.from_bytes(frame[0:2])) if len(frame) == 4 else None
        at += 1 if marker == 0xFF else 2 + max(2, int.from_bytes(raw[at + 2 : at + 4]))
    return None


def _pages(media: Media) -> int:
    """The number of pages of a PDF, at least 1.

    The pages are counted if the page objects are uncompressed; otherwise their number is estimated from the file size.
    """
    data = base64_of(media)
    size = len(data) * 3 // 4
    raw = _bytes(data, 4_194_304)
    counted = len(re.findall(rb"/Type\s*/Page\b(?!s)", raw))
    declared = max((int(number) for number in re.findall(rb"/Count\s+(\d{1,5})\b", raw)), default=0)
    return max(counted, declared) or max(1, ceil(size / _PDF_PAGE_BYTES))


def _seconds(media: Media, bytes_per_second: int) -> float:
    """The duration of a sound or film in seconds.

    The header of a WAV file states the duration; for other files it is estimated from the size of the data.
    """
    data = base64_of(media)
    if not data:
        return _UNKNOWN_SECONDS
    head = _bytes(data, 64)
    if head[:4] == b"RIFF" and head[8:12] == b"WAVE" and head[12:16] == b"fmt " and (rate := _little(head[28:32])):
        bytes_per_second = rate
    return len(data) * 3 / 4 / bytes_per_second
