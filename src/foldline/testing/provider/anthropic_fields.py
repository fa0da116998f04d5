"""The fields and types of Anthropic's Messages API, and the beta headers that some fields and types need."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from foldline.testing.provider.error_reply import ErrorReply, RequestRefused
from foldline.testing.provider.request_schema import Check, SchemaMismatch, compile_schema, read_schema

_MCP = ("mcp-client-2025-04-04", "mcp-client-2025-11-20", "mcp-client-2026-09-15")
_COMPACT = ("compact-2026-01-12", "compact-2026-09-04")
_TOOL_CHANGES = ("mid-conversation-tool-changes-2026-07-01", "inline-tools-2026-09-15")
_COMPUTER = ("computer-use-2024-10-22", "computer-use-2025-01-24", "computer-use-2025-11-24")
_BINDING = ("thinking-binding-controls-2026-08-01",)
_FALLBACK = ("server-side-fallback-2026-06-01", "server-side-fallback-2026-07-01")
_ADVISOR = ("advisor-tool-2026-03-01",)

BETA_FIELDS: dict[str, tuple[str, ...]] = {
    "request.compaction": ("compact-2026-09-04",),
    "request.context_management": ("context-management-2025-06-27", "compact-2026-01-12"),
    "request.fallback_credit_token": ("fallback-credit-2026-06-01", "fallback-credit-2026-07-01"),
    "request.fallbacks": _FALLBACK,
    "request.mcp_servers": _MCP,
    "request.safeguards": ("dangerous-tool-use-2026-09-03",),
    "request.thread": ("message-threads-2026-08-12",),
    "SystemMessage.clear_at": ("mid-conversation-system-clear-at-2026-08-21",),
    "SystemMessage.output_config": ("mid-conversation-output-config-2026-07-01", "per-turn-control-2026-07-01"),
    "OutputConfig.task_budget": ("task-budgets-2026-03-13",),
    "ThinkingConfigAdaptive.block_binding": _BINDING,
    "ThinkingConfigEnabled.block_binding": _BINDING,
}
"""Maps a field to the beta headers that allow it.

If a request has none of these headers, the API answers that the field is unknown.
"""

BETA_TYPES: dict[str, tuple[str, ...]] = {
    "advisor_20260301": _ADVISOR,
    "advisor_tool_result": _ADVISOR,
    "bash_20241022": _COMPUTER,
    "clear_thinking_20251015": ("context-management-2025-06-27",),
    "clear_tool_uses_20250919": ("context-management-2025-06-27",),
    "compact_20260112": ("compact-2026-01-12",),
    "compaction": _COMPACT,
    "computer_20241022": _COMPUTER,
    "computer_20250124": _COMPUTER,
    "computer_20251124": _COMPUTER,
    "fallback": _FALLBACK,
    "mcp_tool_listing": _MCP,
    "mcp_tool_result": _MCP,
    "mcp_tool_use": _MCP,
    "mcp_toolset": _MCP,
    "text_editor_20241022": _COMPUTER,
    "tool_addition": _TOOL_CHANGES,
    "tool_removal": _TOOL_CHANGES,
}
"""Maps a type of block, tool or edit to the beta headers that allow it."""

BETAS = frozenset(header for headers in (*BETA_FIELDS.values(), *BETA_TYPES.values()) for header in headers)
"""All beta headers that allow a field or a type."""

_NOT_IN_SDK: dict[str, Any] = {
    "temperature": "number",
    "top_p": "number",
    "top_k": "integer",
    "safeguards": {"list": {"map": "any"}},
}
"""Fields of a request that the newest SDK does not have. Models before 4.7 accept the sampling parameters.

Claude Code sends `safeguards` in its auto mode.
"""

_TYPE_NAMES = {"object": "dictionary", "array": "list", "map": "dictionary"}


@lru_cache(maxsize=64)
def _check(betas: frozenset[str], endpoint: str) -> Check:
    """The compiled schema of an endpoint, including the fields and types that the given beta headers allow."""
    schema = read_schema("anthropic")
    roots = {schema["request"], schema["count"]}
    types: dict[str, Any] = {}
    for name, entry in schema["types"].items():
        label = "request" if name in roots else name
        known = entry["fields"] | (_NOT_IN_SDK if name in roots else {})
        fields = {
            key: _allowed(field, schema["types"], betas)
            for key, field in known.items()
            if f"{label}.{key}" not in BETA_FIELDS or betas.intersection(BETA_FIELDS[f"{label}.{key}"])
        }
        types[name] = {"fields": fields, "required": entry["required"]}
    return compile_schema(types, schema[endpoint])


def _allowed(field: Any, types: dict[str, Any], betas: frozenset[str]) -> Any:
    """The schema of a field. Union members that need a missing beta header are removed."""
    if not isinstance(field, dict):
        return field
    if "list" in field:
        return {"list": _allowed(field["list"], types, betas)}
    if "union" not in field:
        return field
    members = [_allowed(member, types, betas) for member in field["union"] if _is_open(member, types, betas)]
    return {"union": members} if len(members) > 1 else (members or ["null"])[0]


def _is_open(member: Any, types: dict[str, Any], betas: frozenset[str]) -> bool:
    if not isinstance(member, dict) or "object" not in member:
        return True
    kind = types[member["object"]]["fields"].get("type")
    tags = kind.get("enum", ()) if isinstance(kind, dict) else ()
    return all(tag not in BETA_TYPES or betas.intersection(BETA_TYPES[tag]) for tag in tags)


def check_anthropic_fields(body: Any, betas: Iterable[str], endpoint: str = "request") -> None:
    """Raise the API's error for a field that is unknown, missing or of the wrong type."""
    try:
        _check(frozenset(betas) & BETAS, endpoint)(body)
    except SchemaMismatch as mismatch:
        path, message = list(mismatch.path), _words(mismatch)
        if mismatch.kind == "tag" and mismatch.expected[0] == "role":
            path.append("role")
        where = ".".join(str(key) for key in path)
        text = f"{where}: {message}" if where else message
        raise RequestRefused(ErrorReply(format="anthropic", rule=f"field_{mismatch.kind}", message=text)) from None


def _words(mismatch: SchemaMismatch) -> str:
    if mismatch.kind == "unknown":
        return "Extra inputs are not permitted"
    if mismatch.kind == "missing":
        return "Field required"
    if mismatch.kind == "enum":
        return f"Input should be {_choice(mismatch.expected)}"
    if mismatch.kind == "tag":
        key, tags = mismatch.expected
        if key == "role":
            return f"Input should be {_choice(tags)}"
        known = ", ".join(f"'{tag}'" for tag in sorted(tags))
        return f"Input tag '{mismatch.value}' found using '{key}' does not match any of the expected tags: {known}"
    names = [_TYPE_NAMES.get(name, name) for name in mismatch.expected if name != "null"]
    return f"Input should be a valid {names[0]}"


def _choice(values: Iterable[Any]) -> str:
    *rest, last = (f"'{value}'" for value in values)
    return f"{', '.join(rest)} or {last}" if rest else last
