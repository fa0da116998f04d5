"""A provider that counts the words and signs of a rendered request, and says how many they were."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from foldline.message import Message, Meta, Usage, assistant
from foldline.view.compose import View

WORDS = (
    *("the", "build", "fails", "when", "we", "read", "a", "file", "that", "has", "no", "line", "at", "its", "end"),
    *("so", "look", "at", "the", "test", "and", "change", "that", "part"),
)
"""Words of one token each, for every vocabulary."""
RATES = {"claude-sonnet-4-5": 0.95, "claude-opus-4-7": 1.13}
"""Tokens for a word, where it is not one on average."""


def words(count: int, seed: int = 0) -> str:
    """A text of so many tokens."""
    chosen = random.Random(seed)
    return " ".join(chosen.choices(WORDS, k=count))


def tools(count: int, size: int = 60) -> list[dict[str, Any]]:
    """Tool definitions of about `size` tokens and a little more each."""
    return [
        {"name": f"tool_{number}", "description": words(size, number), "input_schema": {"type": "object"}}
        for number in range(count)
    ]


def prompt_tokens(view: View, *, model: str = "", tools: object = (), hidden: int = 0) -> int:
    """What the provider counts for a request with this view."""
    texts = [*texts_of(view.render().body), json.dumps(tools) if tools else ""]
    found = sum(len(re.findall(r"\w+|[^\w\s]", text)) for text in texts)
    return round(found * RATES.get(model, 1.0)) + hidden


def texts_of(value: Any) -> Iterator[str]:
    """All texts of a JSON value, with its keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from texts_of(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from texts_of(inner)


def reply(text: str, prompt: int, **figures: int) -> Message:
    """A reply with the provider's figures."""
    usage = Usage(input=prompt, output=len(text.split()) + 4)._replace(**figures)
    return replace(assistant(text), meta=Meta(usage=usage))
