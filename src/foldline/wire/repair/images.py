"""Invariant: the provider can read every image.

An image is base64 data of a type that the provider accepts, or an address that the provider can open. Some clients
write `image/jpg` for `image/jpeg`, or state that a JPEG is a PNG. Some clients break base64 text into lines, put a data
URL where only the data belongs, or name a local file. One such image makes the provider refuse every later request.
"""

from __future__ import annotations

import re
from binascii import Error as BadBase64
from binascii import a2b_base64

from foldline.message import Media, Wire, edited
from foldline.wire.grammar import Grammar
from foldline.wire.part_mapping import split_data_url

_BASE64 = re.compile(r"[A-Za-z0-9+/]*+={0,2}").fullmatch
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:").match
_URL_SAFE = str.maketrans("-_", "+/")
_ENDS = 64
"""Number of characters that are checked at each end of the data. The middle of large data is not read."""
_UNCHECKED = ("image/heic", "image/heif")
"""Types whose first bytes are not checked."""


def readable_image(part: Media, grammar: Grammar) -> Media | None:
    """The image in a form that the provider accepts; None if there is no such form.

    An image that needs no change is returned as the same object.
    """
    if part.kind != "image":
        return part
    held = split_data_url(part.data or part.url)
    if held is None and not part.data:
        is_held = not part.url and not _is_empty(part.wire)
        return part if is_held or (part.url and _is_reachable(part.url, grammar)) else None
    mime, data = held or (part.mime, part.data)
    sent = _plain_base64(data)
    found = _type_of(sent) if sent else ""
    if not sent or not (_BASE64(sent[:_ENDS].rstrip("=")) and _BASE64(sent[-_ENDS:])):
        return None
    if grammar.image_types and mime not in _UNCHECKED:
        if not found or found not in grammar.image_types:
            return None
        if mime not in grammar.image_types or (grammar.image_type_matches and mime != found):
            mime = found
    elif grammar.image_types and mime not in grammar.image_types:
        return None
    is_same = sent == part.data and mime == part.mime
    return part if is_same or (held and part.url and sent == data and mime == held[0]) else _edited(part, mime, sent)


def _is_empty(wire: Wire | None) -> bool:
    """Whether the wire form of an image has a place for data or an address. False if it refers to an uploaded file.

    The caller checks before that this place is empty.
    """
    value = wire.value if wire is not None and isinstance(wire.value, dict) else {}
    source = value.get("source")
    if isinstance(source, dict):
        return source.get("type") in ("base64", "url")
    return any(key in value for key in ("image_url", "inlineData", "inline_data")) and not value.get("file_id")


def _edited(part: Media, mime: str, data: str) -> Media:
    changed: Media = edited(part, mime=mime, data=data, url="")
    return changed


def _is_reachable(url: str, grammar: Grammar) -> bool:
    if not grammar.image_addresses:
        return _ADDRESS(url) is not None
    return url.lower().startswith(grammar.image_addresses)


def _plain_base64(data: str) -> str:
    """The data in the alphabet of RFC 4648 without line breaks and with padding; "" if its length is impossible."""
    if "\n" in data or "\r" in data or " " in data:
        data = "".join(data.split())
    if "-" in data or "_" in data:
        data = data.translate(_URL_SAFE)
    missing = -len(data) % 4
    return "" if missing == 3 else data + "=" * missing


def _type_of(data: str) -> str:
    """The media type that the first bytes of an image show; "" for other data."""
    try:
        head = a2b_base64(data[:32])
    except (BadBase64, ValueError):
        return ""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head.startswith(b"\xff\xd8"):
        return "image/jpeg"
    return "image/webp" if head[:4] == b"RIFF" and head[8:12] == b"WEBP" else ""
