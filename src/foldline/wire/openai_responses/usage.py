"""Reads the usage of OpenAI Responses replies. The input figure of a reply includes cached tokens."""

from __future__ import annotations

from typing import Any

from foldline.message import Usage
from foldline.wire.openai_chat.usage import openai_usage


def responses_usage(value: Any) -> Usage | None:
    """Usage of an OpenAI Responses reply."""
    return openai_usage(value, "input_tokens", "output_tokens")
