"""Anthropic's limits for images, and functions that read the size of an image in pixels from its first bytes.

Only the start of the base64 text is decoded, so a large image takes no longer than a small one.
"""

from __future__ import annotations

import base64
import binascii
import re
import struct
from dataclasses import dataclass

MAX_EDGE = 8_000
"""The largest allowed width or height of an image, in pixels."""
MANY_IMAGES = 20
MAX_EDGE_OF_MANY = 2_000
"""The largest allowed width or height, in pixels, in a request with more than `MANY_IMAGES` images."""
MAX_IMAGES = 100
"""The maximum number of images in a request to a model with a window of 200,000 tokens."""
MAX_IMAGES_OF_LARGE_WINDOW = 600
MAX_BYTES = 5 * 1024 * 1024

_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}\Z")
_HEAD = 64 * 1024
"""Number of base64 characters that are decoded.

The number is large because a JPEG may hold a thumbnail before its size.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageSize:
    """An image's media type and its size in pixels."""

    media_type: str
    width: int
    height: int

    @property
    def longest(self) -> int:
        """The longer side in pixels."""
        return max(self.width, self.height)


def is_base64(data: str) -> bool:
    """Whether a text is base64 with correct padding."""
    return len(data) % 4 == 0 and bool(_BASE64.match(data))


def decoded_bytes(data: str) -> int:
    """The number of bytes that a base64 text encodes."""
    return len(data) * 3 // 4 - data[-2:].count("=")


def image_size(data: str) -> ImageSize | None:
    """The media type and size of a PNG, JPEG, GIF or WebP image in base64; None for other data."""
    for length in (96, _HEAD, len(data)):
        try:
            head = base64.b64decode(data[: length - length % 4] if length < len(data) else data)
        except (binascii.Error, ValueError):
            return None
        size = _size_of(head)
        if size is not None or length >= len(data) or not head.startswith(b"\xff\xd8"):
            return size
    return None


def _size_of(head: bytes) -> ImageSize | None:
    if head.startswith(b"\x89PNG\r\n\x1a\n") and len(head) >= 24:
        width, height = struct.unpack(">II", head[16:24])
        return ImageSize(media_type="image/png", width=width, height=height)
    if head[:6] in (b"GIF87a", b"GIF89a") and len(head) >= 10:
        width, height = struct.unpack("<HH", head[6:10])
        return ImageSize(media_type="image/gif", width=width, height=height)
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return _webp(head)
    if head.startswith(b"\xff\xd8"):
        return _jpeg(head)
    return None


def _webp(head: bytes) -> ImageSize | None:
    kind = head[12:16]
    if kind == b"VP8X" and len(head) >= 30:
        width, height = 1 + int.from_bytes(head[24:27], "little"), 1 + int.from_bytes(head[27:30], "little")
    elif kind == b"VP8L" and len(head) >= 25:
        bits = int.from_bytes(head[21:25], "little")
        width, height = 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    elif kind == b"VP8 " and len(head) >= 30:
        width, height = (value & 0x3FFF for value in struct.unpack("<HH", head[26:30]))
    else:
        return None
    return ImageSize(media_type="image/webp", width=width, height=height)


def _jpeg(head: bytes) -> ImageSize | None:
    at = 2
    while at + 9 < len(head):
        if head[at] != 0xFF:
            return None
        marker = head[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", head[at + 5 : at + 9])
            return ImageSize(media_type="image/jpeg", width=width, height=height)
        at += 2 + int.from_bytes(head[at + 2 : at + 4], "big") if marker != 0xFF else 1
    return None
