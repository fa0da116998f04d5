"""Judges the parameters of a request to Anthropic's Messages API: token limits, sampling, context management,
citations and schemas.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from foldline.testing.provider.anthropic_blocks import blocks_of, check_text, refuse
from foldline.testing.provider.model_features import ModelFeatures
from foldline.testing.provider.strict_schema import is_open, object_schemas

INTERLEAVED = "interleaved-thinking-2025-05-14"
LEAST_TOP_P = 0.95
_CLEAR_THINKING = "clear_thinking_20251015"


def is_thinking(body: dict[str, Any]) -> bool:
    """Whether the request switches thinking on."""
    return (body.get("thinking") or {}).get("type") in {"enabled", "adaptive"}


def check_parameters(body: dict[str, Any], features: ModelFeatures, betas: Iterable[str], endpoint: str) -> None:
    """Raise for a parameter that the API refuses."""
    _check_reply_limit(body, features, set(betas), endpoint)
    _check_sampling(body, features)
    if "compaction" in body and "context_management" in body:
        refuse("compaction", "compaction: may not be combined with `context_management`")
    _check_edits(body, features)
    for sequence in body.get("stop_sequences") or ():
        if not sequence.strip():
            refuse("stop_sequences", "stop_sequences: each stop sequence must contain non-whitespace")
    for block in body["system"] if isinstance(body.get("system"), list) else ():
        check_text(block["text"], "system")
    _check_citations(body)
    _check_schemas(body)


def _check_sampling(body: dict[str, Any], features: ModelFeatures) -> None:
    for name in ("temperature", "top_p", "top_k"):
        if name in body and not features.sampling:
            refuse("sampling", f"`{name}` is not supported on this model.")
    if not 0 <= (body.get("temperature") or 0) <= 1:
        refuse("temperature", "temperature: Input should be less than or equal to 1")
    if not is_thinking(body):
        return
    if body.get("temperature", 1) != 1:
        refuse("temperature", "`temperature` may only be set to 1 when thinking is enabled.")
    if body.get("top_k") is not None:
        refuse("sampling", "`top_k` must be unset when thinking is enabled.")
    if (body.get("top_p") or 1) < LEAST_TOP_P:
        refuse("sampling", "`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled.")


def _check_edits(body: dict[str, Any], features: ModelFeatures) -> None:
    edits = [edit["type"] for edit in (body.get("context_management") or {}).get("edits") or ()]
    if _CLEAR_THINKING in edits[1:]:
        refuse("edit_order", f"context_management.edits: `{_CLEAR_THINKING}` must be the first edit among several")
    is_off = "thinking" in body or features.manual_thinking  # newer models think by default
    if _CLEAR_THINKING in edits and is_off and not is_thinking(body):
        refuse("edit_thinking", f"`{_CLEAR_THINKING}` strategy requires `thinking` to be enabled or adaptive")


def _check_citations(body: dict[str, Any]) -> None:
    """Raise if only some documents have citations, or if citations are combined with an output format."""
    blocks = [block for message in body["messages"] for block in blocks_of(message.get("content"))]
    cited = {bool((block.get("citations") or {}).get("enabled")) for block in blocks if block["type"] == "document"}
    if len(cited) > 1:
        refuse("citations", "messages: citations must be enabled for all documents or for none of them")
    if True in cited and (body.get("output_config") or {}).get("format"):
        refuse("citations", "output_config.format: citations are not supported with structured outputs")


def _check_schemas(body: dict[str, Any]) -> None:
    form = (body.get("output_config") or {}).get("format") or {}
    schemas = [("output_config.format.schema", form.get("schema"))]
    for number, tool in enumerate(body.get("tools") or ()):
        if tool.get("strict"):
            schemas.append((f"tools.{number}.custom", tool.get("input_schema")))
    for where, schema in schemas:
        if any(is_open(inner) for _, inner in object_schemas(schema)):
            text = f"{where}: For 'object' type, 'additionalProperties' must be explicitly set to false"
            refuse("strict_schema", text)


def _check_reply_limit(body: dict[str, Any], features: ModelFeatures, betas: set[str], endpoint: str) -> None:
    """Raise if `max_tokens` and the thinking budget do not fit together, or if the model does not accept them.

    With interleaved thinking, the budget covers all replies of a turn, so it may exceed `max_tokens`.
    """
    thinking = body.get("thinking") or {}
    limit = body.get("max_tokens", 0)
    if endpoint == "request" and limit < 0:
        refuse("max_tokens", "max_tokens: Input should be greater than or equal to 0")
    if endpoint == "request" and limit == 0 and (body.get("stream") or thinking.get("type") == "enabled"):
        refuse("max_tokens", "max_tokens: 0 may not be combined with `stream` or enabled `thinking`")
    if thinking.get("type") == "enabled":
        if not features.manual_thinking:
            refuse(
                "thinking_type",
                '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and '
                '"output_config.effort" to control thinking behavior.',
            )
        if thinking["budget_tokens"] < 1024:
            refuse("thinking_budget", "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
        is_interleaved = INTERLEAVED in betas and bool(body.get("tools"))
        if endpoint == "request" and limit <= thinking["budget_tokens"] and not is_interleaved:
            refuse("thinking_budget", "`max_tokens` must be greater than `thinking.budget_tokens`.")
