"""Removes from Anthropic elements and blocks the fields that the API refuses.

Such fields are optional fields that an SDK's dump sets to null, and fields that an agent adds to its history. The API
refuses every request with such a field ("Extra inputs are not permitted"). A block of an unknown type is not changed.
"""

from __future__ import annotations

from typing import Any

from foldline.wire.anthropic.fields import BLOCKS, CITATIONS, MESSAGE, RESULT_BLOCKS, SOURCES
from foldline.wire.anthropic.parse import is_reply, is_true, result_content
from foldline.wire.object_fields import with_inner, with_inner_list, with_known_fields

_CALLERS = ("direct", "code_execution_20250825", "code_execution_20260120")
_FIELDS = {**RESULT_BLOCKS, **BLOCKS}


def sendable_element(element: dict[str, Any]) -> dict[str, Any]:
    """The message without refused fields; the same object if it has no refused fields."""
    sent = with_inner_list(element, "content", sendable_block)
    return sent if is_reply(element) else with_known_fields(sent, MESSAGE)


def sendable_block(block: Any) -> Any:
    """The block without refused fields; the same object if it has no refused fields."""
    kind = block.get("type") if isinstance(block, dict) else None
    fields = _FIELDS.get(kind) if isinstance(kind, str) else None
    if fields is None:
        return block
    sent: dict[str, Any] = with_known_fields(block, fields)
    caller = sent.get("caller")
    if isinstance(caller, dict) and caller.get("type") not in _CALLERS:
        sent = {key: value for key, value in sent.items() if key != "caller"}
    if kind == "tool_result":
        sent = with_inner(with_inner(sent, "content", result_content), "is_error", is_true)
    sent = with_inner_list(with_inner(sent, "source", _sendable_source), "content", sendable_block)
    return with_inner_list(sent, "citations", _sendable_citation)


def _sendable_source(source: Any) -> Any:
    known = SOURCES.get(str(source.get("type"))) if isinstance(source, dict) else None
    return with_inner_list(with_known_fields(source, known), "content", sendable_block) if known else source


def _sendable_citation(citation: Any) -> Any:
    known = CITATIONS.get(str(citation.get("type"))) if isinstance(citation, dict) else None
    return with_known_fields(citation, known) if known else citation
