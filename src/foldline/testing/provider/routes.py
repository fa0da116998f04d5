"""Finds the format and endpoint for an address of the simulated provider."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

_GEMINI = re.compile(r"/v1(?:beta|alpha)?/(?:models|tunedModels)/(?P<model>[^/:]+):(?P<action>\w+)\Z")
_PATHS = {
    "/messages": ("anthropic", "create"),
    "/messages/count_tokens": ("anthropic", "count"),
    "/chat/completions": ("openai_chat", "create"),
    "/responses": ("openai_responses", "create"),
    "/responses/compact": ("openai_responses", "compact"),
    "/responses/input_tokens": ("openai_responses", "count"),
}
_ACTIONS = {
    "generateContent": ("create", False),
    "streamGenerateContent": ("create", True),
    "countTokens": ("count", False),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Route:
    """The route of a request: its format, its endpoint, and the model and stream option in its address."""

    format: str
    endpoint: str
    model: str = ""
    streams: bool = False


def route_of(target: str) -> Route | None:
    """The route of a request target; None for an unknown address.

    >>> route_of("/v1/messages?beta=true").format, route_of("/v1beta/models/gemini-3-pro:countTokens").endpoint
    ('anthropic', 'count')
    """
    path = unquote(urlsplit(target).path)
    gemini = _GEMINI.match(path)
    if gemini:
        endpoint, streams = _ACTIONS.get(gemini["action"], ("", False))
        return Route(format="gemini", endpoint=endpoint, model=gemini["model"], streams=streams) if endpoint else None
    found = _PATHS.get(path.removeprefix("/v1"))
    return Route(format=found[0], endpoint=found[1]) if found else None


def format_of_headers(names: set[str]) -> str:
    """The format of a client, guessed from the names of its headers.

    Errors about unknown addresses are written in this format.
    """
    if {"x-api-key", "anthropic-version"} & names:
        return "anthropic"
    return "gemini" if "x-goog-api-key" in names else "openai_chat"
