"""Functions that return True only for Gemini contents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foldline.wire.formats import Sign


def _is_content(item: Mapping[str, Any]) -> bool:
    is_empty_reply = item.get("role") == "model" and item.get("parts") is None
    return (isinstance(item.get("parts"), list) or is_empty_reply) and "content" not in item and "type" not in item


ELEMENT = Sign("contents with parts", _is_content)
