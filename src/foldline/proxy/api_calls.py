"""Finds out from the path of a request which provider's API the request calls."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote

_GEMINI = re.compile(r"/v1(?:beta|alpha)?/(?:models|tunedModels)/(?P<model>[^/:]+):(?P<action>\w+)\Z")
_PREFIXES = ("", "/v1", "/api/v1", "/openai/v1", "/codex", "/v1/codex", "/backend-api", "/backend-api/codex")
_CALLS = {
    "/messages": ("anthropic", "create"),
    "/messages/count_tokens": ("anthropic", "count"),
    "/chat/completions": ("openai", "create"),
    "/responses": ("openai-responses", "create"),
    "/responses/compact": ("openai-responses", "compact"),
    "/responses/input_tokens": ("openai-responses", "count"),
}
_PATHS = {prefix + path: call for prefix in _PREFIXES for path, call in _CALLS.items()}
_ACTIONS = {"generateContent": "create", "streamGenerateContent": "create", "countTokens": "count"}
VENDORS = {"anthropic": "anthropic", "openai": "openai", "openai-responses": "openai", "gemini": "gemini"}
"""For each wire format, the vendor whose upstream receives the calls."""


class ApiCall(NamedTuple):
    """An API that foldline can read: the wire format and the kind of the call."""

    format: str
    kind: str
    """`create` (a model replies), `count` (tokens are counted) or `compact` (the provider compacts)."""
    model: str = ""
    """The model in the path; "" if the body names it."""

    @property
    def vendor(self) -> str:
        """The vendor of this API."""
        return VENDORS[self.format]


def api_call(path: str) -> ApiCall | None:
    """The API that a path belongs to; None for an unknown path. foldline passes on requests to unknown paths without
    reading them.

    >>> api_call("/v1/messages"), api_call("/v1beta/models/gemini-3-pro:streamGenerateContent").model
    (ApiCall(format='anthropic', kind='create', model=''), 'gemini-3-pro')
    """
    found = _PATHS.get(path)
    if found is not None:
        return ApiCall(*found)
    gemini = _GEMINI.match(path) if ":" in path or "%3" in path else None
    if gemini is None and "%" in path:
        gemini = _GEMINI.match(unquote(path))
    if gemini is None or gemini["action"] not in _ACTIONS:
        return None
    return ApiCall("gemini", _ACTIONS[gemini["action"]], unquote(gemini["model"]))
