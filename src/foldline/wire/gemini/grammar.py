"""What the Gemini API accepts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foldline.wire.gemini.validate import read_request
from foldline.wire.grammar import Grammar, RequestLimits


def _has_valid_input(part: Mapping[str, Any]) -> bool:
    """True for a call whose args are an object."""
    call = part.get("functionCall") or part.get("function_call")
    return isinstance(call, Mapping) and isinstance(call.get("args", {}), Mapping | None)


GRAMMAR = Grammar(
    name="Gemini",
    read=read_request,
    limits=RequestLimits(
        media=3000,
        total_bytes=104_857_600,
        source="2026-11: docs.cloud.google.com, page image understanding; blog.google, gemini-api-new-file-limits",
    ),
    roles=("user", "model", "function"),
    start=("user",),
    end=("user",),
    pairing="name",
    unique="reply",
    results_are_user=True,
    blank="empty",
    calls_after_user=True,
    inline_system="refused",
    media_roles=("user", "assistant"),
    id_form=r".*",
    name_form=r"[a-zA-Z0-9_.:-]{1,128}",
    has_valid_input=_has_valid_input,
    says={
        "start": "Please ensure that function call turn comes immediately after a user turn "
        "or after a function response turn.",
        "end": "Please ensure that multiturn requests end with a user turn or a function response.",
        "blank": "Unable to submit request because it has an empty text parameter.",
        "empty": "contents.parts must not be empty.",
        "call-place": "Please ensure that function call turn comes immediately after a user turn "
        "or after a function response turn.",
        "call-unanswered": "Please ensure that the number of function response parts is equal to the number of "
        "function call parts of the function call turn.",
        "result-orphan": "Please ensure that function response turn comes immediately after a function call turn.",
    },
)
