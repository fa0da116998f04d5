"""Counts the tokens of a prompt's pieces.

Text is counted with a tokenizer, and images by their pixels. The tokens that a provider adds for each message and each
tool are added.

The default tokenizer is o200k. If it is not installed, its counts are estimated. Claude's vocabulary is not public. For
the same text, Claude models before 4.7 need about 1.18 times as many tokens as o200k. Newer Claude models need 1.3
times as many tokens as older Claude models. These factors come from the vendor's statements and from independent
measurements.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import cache
from typing import Any

from foldline.measure.estimator import Estimator
from foldline.measure.tokenizers import exact_counter
from foldline.testing.provider.image_rules import ImageSize, image_size

TextCounter = Callable[[str], int]

VOCABULARY = "o200k_base"
CLAUDE_RATIO = 1.18
CLAUDE_47_RATIO = CLAUDE_RATIO * 1.3
MESSAGE_TOKENS = 4
"""Tokens of a message's frame: role and separators."""
REPLY_TOKENS = 3
"""Framing tokens at the end of every prompt, which start the reply."""
CALL_TOKENS = 40
RESULT_TOKENS = 30
"""Framing tokens of a tool call and of its result. Measurements gave 50 to 100 tokens for a call with its result."""
TOOL_TOKENS = 12
TOOLS_TOKENS = 346
"""Tokens that Anthropic adds to the system prompt if a request has tools."""
OPAQUE_CHARACTERS = 8
"""Number of characters of encrypted content per token."""
PAGE_TOKENS = 2_000
UNKNOWN_IMAGE_TOKENS = 1_600
_OPAQUE = frozenset({"encrypted_content", "signature", "data", "thoughtSignature", "thought_signature"})


@cache
def default_counter() -> TextCounter:
    """A function that counts the tokens of a text with o200k.

    If no tokenizer is installed, the function estimates the tokens without a margin.
    """
    counter = exact_counter(VOCABULARY, VOCABULARY) or Estimator(VOCABULARY)
    return lambda text: counter.count(text).tokens


def ratio_of(format: str, *, is_new_claude: bool) -> float:
    """The number of a model's tokens for each token of o200k."""
    if format != "anthropic":
        return 1.0
    return CLAUDE_47_RATIO if is_new_claude else CLAUDE_RATIO


def json_text(value: Any) -> str:
    """A value as compact JSON text, for counting."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def visible_text(value: Any) -> tuple[str, int]:
    """The text of a JSON value without its encrypted fields, and the number of characters in the encrypted fields."""
    hidden = 0

    def strip(item: Any) -> Any:
        nonlocal hidden
        if isinstance(item, dict):
            for key in _OPAQUE.intersection(item):
                hidden += len(item[key]) if isinstance(item[key], str) else 0
            return {key: strip(part) for key, part in item.items() if key not in _OPAQUE and key != "cache_control"}
        return [strip(part) for part in item] if isinstance(item, list) else item

    return json_text(strip(value)), hidden


def anthropic_image_tokens(size: ImageSize | None, *, is_new_claude: bool) -> int:
    """The tokens of an image: width times height divided by 750.

    If a side is longer than the model's limit, the image is first scaled down.
    """
    if size is None:
        return UNKNOWN_IMAGE_TOKENS
    edge = 2_576 if is_new_claude else 1_568
    scale = min(1.0, edge / size.longest) if size.longest else 1.0
    return max(1, math.ceil(size.width * scale * size.height * scale / 750))


def openai_image_tokens(size: ImageSize | None) -> int:
    """The tokens of an image: 85, plus 170 for each tile of 512 by 512 pixels.

    An image of more than 2,048 by 768 pixels is first scaled down to fit this size.
    """
    if size is None:
        return 765
    width, height = float(size.width), float(size.height)
    scale = min(1.0, 2_048 / max(width, height, 1))
    scale *= min(1.0, 768 / max(min(width, height) * scale, 1))
    return 85 + 170 * math.ceil(width * scale / 512) * math.ceil(height * scale / 512)


def gemini_image_tokens(size: ImageSize | None) -> int:
    """The tokens of an image: 258 for a small image; for a large image, 258 for each tile of 768 by 768 pixels."""
    if size is None or max(size.width, size.height) <= 384:
        return 258
    return 258 * math.ceil(size.width / 768) * math.ceil(size.height / 768)


def base64_image(value: str) -> ImageSize | None:
    """The size of an image that is given as base64 or as a data URL."""
    return image_size(value.partition(",")[2] if value.startswith("data:") else value)
