"""Functions that return True only for Gemini contents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foldline.wire.formats import Sign


def _is_content(item: Mapping[str, Any]) -> bool:
    return isinstance(item.get("parts"), list) and "content" not in item and "type" not in item


ELEMENT = Sign("contents with parts", _is_content)
