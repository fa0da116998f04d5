"""What each provider accepts, as plain data: the one table that both the validator and repair read.

A view that breaks one of these rules bricks a session: the provider answers 400 to this request and to every later one.
The wording of the answers is kept beside the rule, so that a person who searches for an error finds its cause. Rules
are facts of an API and stand here; sizes change with the season and stand in `limits.json` with the date of reading.

Left out on purpose, because a request alone cannot show them: whether a signature is genuine, which reasoning item a
built-in call belongs to, the pixels of an image, and what depends on request parameters (thinking switched on or off).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from foldline.wire.formats import dialect


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Sizes a provider refuses. None: no such limit is known."""

    media: int | None = None
    media_bytes: int | None = None
    total_bytes: int | None = None
    breakpoints: int | None = None
    messages: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The grammar of one provider's message list."""

    name: str
    roles: tuple[str, ...]
    """Roles that may stand in an element."""
    start: tuple[str, ...] = ()
    """Roles that may come first; empty: anyone."""
    end: tuple[str, ...] = ()
    """Roles that may come last; empty: anyone."""
    needs_user: bool = True
    alternation: Literal["merged", "required", "free"] = "free"
    """merged: neighbours of one role count as one turn; required: they are refused."""
    pairing: Literal["id", "name"] = "id"
    """How a result finds its call: by id, or by name and order where ids are missing."""
    adjacency: Literal["turn", "message", "after"] = "turn"
    """Where results must stand: in the next turn, directly after the calling message, anywhere after their calls."""
    unique: Literal["request", "reply"] = "request"
    """How far a call id must be unique."""
    results_first: bool = False
    blank: Literal["whitespace", "empty", "allowed"] = "allowed"
    """Which texts are refused: those without a visible character, or only those without any."""
    empty: tuple[str, ...] = ()
    """Roles that may come without any content."""
    signed_thinking: bool = False
    server_calls: tuple[str, ...] = ()
    """Kinds of parts that are calls which the provider runs itself, and which need their result in a later request."""
    thinking_last: bool = True
    """Whether a reply may end with thinking."""
    reasoning_followed: bool = False
    """Whether a reasoning item needs an output item after it."""
    calls_after_user: bool = False
    inline_system: Literal["after user", "free", "refused"] = "free"
    """Where a system message may stand inside the list; where it is refused, it is sent as the user's."""
    kinds_are_user: bool = False
    """Whether notes, digests and shell runs are sent as the user's messages, whatever their role."""
    results_are_user: bool = False
    """Whether a message that holds only results counts as the user's."""
    open_calls: tuple[str, ...] = ()
    """Kinds of calls that may stay without a result."""
    item_ids: bool = False
    """Whether elements have ids, none of which may occur twice."""
    renders_legal_ids: bool = False
    """Whether the renderer itself makes call ids and tool names legal, unless they came in this format."""
    empty_must_be_text: bool = False
    """Whether a message without content must hold "", and neither null nor an empty list."""
    media_roles: tuple[str, ...] = ("user",)
    media_in_results: bool = True
    error_text_only: bool = False
    """Whether a result marked as an error must have text, and nothing but text."""
    id_form: str = r".{1,64}"
    name_form: str = r"[a-zA-Z0-9_-]{1,64}"
    is_malformed: Callable[[Mapping[str, Any]], bool] = lambda _element: False
    """Whether an element breaks a rule that its parts do not show."""
    has_valid_input: Callable[[Mapping[str, Any]], bool] = lambda _call: True
    """Whether a call, as it came, has its arguments in the form of the format."""
    says: Mapping[str, str] = field(default_factory=dict)
    """What the provider answers, by violation code."""


def _is_malformed_chat(element: Mapping[str, Any]) -> bool:
    """True for an empty list, and for a result without content or id."""
    no_result = element.get("content") is None or not isinstance(element.get("tool_call_id"), str)
    return [] in (element.get("tool_calls"), element.get("content")) or (element.get("role") == "tool" and no_result)


def _has_chat_arguments(call: Mapping[str, Any]) -> bool:
    inner = call.get("function", call.get("function_call"))
    return not (isinstance(inner, dict) and "arguments" in inner) or isinstance(inner["arguments"], str)


def _has_gemini_args(part: Mapping[str, Any]) -> bool:
    call = part.get("functionCall") or part.get("function_call")
    return isinstance(call, Mapping) and isinstance(call.get("args", {}), Mapping | None)


RULES: Mapping[str, Rules] = {
    "anthropic": Rules(
        name="Anthropic",
        roles=("user", "assistant", "system"),
        start=("user",),
        end=("user",),
        alternation="merged",
        results_first=True,
        blank="whitespace",
        signed_thinking=True,
        server_calls=("server_tool_use", "mcp_tool_use"),
        results_are_user=True,
        renders_legal_ids=True,
        has_valid_input=lambda call: isinstance(call.get("input"), dict),
        thinking_last=False,
        inline_system="after user",
        error_text_only=True,
        id_form=r"[a-zA-Z0-9_-]+",
        name_form=r"[a-zA-Z0-9_-]{1,200}",
        says={
            "start": "first message must use the user role",
            "end": "This model does not support assistant message prefill. "
            "The conversation must end with a user message.",
            "blank": "text content blocks must contain non-whitespace text",
            "empty": "all messages must have non-empty content",
            "call-unanswered": "`tool_use` ids were found without `tool_result` blocks immediately after",
            "result-orphan": "unexpected `tool_use_id` found in `tool_result` blocks",
            "result-late": "`tool_use` ids were found without `tool_result` blocks immediately after",
            "result-order": "`tool_use` ids were found without `tool_result` blocks immediately after",
            "result-duplicate": "each tool_use must have a single result",
            "call-duplicate": "`tool_use` ids must be unique",
            "thinking-unsigned": "thinking.signature: Field required",
            "thinking-last": "The final block in an assistant message cannot be `thinking`.",
            "media-role": "'image' blocks are not permitted within assistant turns",
            "error-result": "tool_result: content cannot be empty if `is_error` is true",
            "id-form": "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
            "input-form": "tool_use.input: Input should be a valid dictionary",
            "breakpoints": "A maximum of 4 blocks with cache_control may be provided.",
            "total-bytes": "request_too_large",
            "system-place": "use the top-level 'system' parameter for the initial system prompt",
        },
    ),
    "openai": Rules(
        name="OpenAI",
        roles=("system", "developer", "user", "assistant", "tool", "function"),
        adjacency="message",
        unique="reply",
        empty=("system", "user", "assistant", "tool"),
        media_in_results=False,
        kinds_are_user=True,
        empty_must_be_text=True,
        is_malformed=_is_malformed_chat,
        has_valid_input=_has_chat_arguments,
        says={
            "no-user": "No user query found in messages.",
            "empty": "Invalid value for 'content': expected a string, got null.",
            "call-unanswered": "An assistant message with 'tool_calls' must be followed by tool messages "
            "responding to each 'tool_call_id'.",
            "result-late": "An assistant message with 'tool_calls' must be followed by tool messages "
            "responding to each 'tool_call_id'.",
            "result-orphan": "messages with role 'tool' must be a response to a preceding message with 'tool_calls'.",
            "media-role": "Image URLs are only allowed for messages with role 'user'",
            "media-result": "Image URLs are only allowed for messages with role 'user'",
            "id-form": "string too long. Expected a string with maximum length 64",
        },
    ),
    "openai-responses": Rules(
        name="OpenAI Responses",
        roles=("system", "developer", "user", "assistant"),
        needs_user=False,
        adjacency="after",
        empty=("system", "user", "assistant", "tool"),
        media_roles=("user", "system"),
        reasoning_followed=True,
        kinds_are_user=True,
        open_calls=("mcp_approval_request", "tool_search"),
        item_ids=True,
        has_valid_input=lambda call: call.get("type") != "function_call" or isinstance(call.get("arguments"), str),
        says={
            "call-unanswered": "No tool output found for function call",
            "result-orphan": "No tool call found for function call output with call_id",
            "result-duplicate": "Duplicate function_call_output for call_id",
            "item-duplicate": "Duplicate item found with id. Remove duplicate items from your input and try again.",
            "reasoning-alone": "Item of type 'reasoning' was provided without its required following item.",
            "id-form": "string too long. Expected a string with maximum length 64",
        },
    ),
    "gemini": Rules(
        name="Gemini",
        roles=("user", "model", "function"),
        start=("user",),
        end=("user",),
        pairing="name",
        unique="reply",
        blank="empty",
        calls_after_user=True,
        inline_system="refused",
        results_are_user=True,
        has_valid_input=_has_gemini_args,
        media_roles=("user", "assistant"),
        id_form=r".*",
        name_form=r"[a-zA-Z0-9_.:-]{1,128}",
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
    ),
}


@cache
def limits_of(format: str) -> Limits:
    """Limits of a wire format, from the dated table."""
    table = json.loads((files("foldline.wire.rules") / "limits.json").read_text())
    known = {each.name for each in fields(Limits)}
    return Limits(**{key: value for key, value in table[dialect(format)].items() if key in known})


def rules_of(format: str) -> Rules:
    """Grammar of a wire format; a session log has that of the elements it holds."""
    return RULES[dialect(format)]
