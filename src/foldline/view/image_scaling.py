"""Scales images down with Pillow, if it is installed (`pip install '.[images]'`)."""

from __future__ import annotations

import base64
import binascii
import io
from importlib import import_module
from typing import Any

from foldline.measure.media_tokens import base64_of
from foldline.message import Media, edited

_TYPES = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp"}
"""The media types of the file formats in which a scaled image is written. Images in other formats become PNG."""


def downscaled(media: Media, pixels: int) -> Media | None:
    """The image with at most `pixels` pixels on its longer side; None if Pillow is missing or cannot read the image."""
    try:
        pillow: Any = import_module("PIL.Image")
    except ImportError:
        return None
    try:
        with pillow.open(io.BytesIO(base64.b64decode(base64_of(media)))) as image:
            kind = image.format if image.format in _TYPES else "PNG"
            image.thumbnail((pixels, pixels))
            written = io.BytesIO()
            image.save(written, format=kind)
    except (OSError, ValueError, binascii.Error, pillow.DecompressionBombError):
        return None
    data = base64.b64encode(written.getvalue()).decode("ascii")
    return edited(media, mime=_TYPES[kind], data=data, url="")
