"""Judges a request to Anthropic's Messages API: order of roles, tool calls and results, thinking, system messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from foldline.testing.provider.anthropic_blocks import (
    blocks_of,
    check_block,
    check_cache_marks,
    check_images,
    check_tools,
    refuse,
)
from foldline.testing.provider.anthropic_fields import check_anthropic_fields
from foldline.testing.provider.anthropic_pairs import SERVER_RESULTS, check_ids, check_results, check_server_tools
from foldline.testing.provider.anthropic_parameters import check_parameters, is_thinking
from foldline.testing.provider.json_rules import check_json
from foldline.testing.provider.model_features import ModelFeatures, features_of

MAX_BODY_BYTES = 32 * 1024 * 1024
MAX_MESSAGES = 100_000
THINKING = frozenset({"thinking", "redacted_thinking"})
ASSISTANT_ONLY = frozenset(
    {"tool_use", "server_tool_use", "mcp_tool_use", "mcp_tool_result", *THINKING, *SERVER_RESULTS.values()}
)
USER_ONLY = frozenset({"tool_result", "image", "document", "search_result", "container_upload"})


def check_anthropic(
    body: Any, *, betas: Iterable[str] = (), endpoint: str = "request", needs_tools: bool = True
) -> None:
    """Raise the API's error if the API refuses the request; `endpoint` is `request` or `count`."""
    betas = tuple(betas)
    if check_json("anthropic", body) > MAX_BODY_BYTES:
        refuse("request_too_large", "Request exceeds the maximum size", status=413, type="request_too_large")
    check_anthropic_fields(body, betas, endpoint)
    features = features_of(body["model"])
    messages = body["messages"]
    check_parameters(body, features, betas, endpoint)
    _check_messages(messages)
    _check_system_messages(messages, features)
    check_tools(body)
    check_cache_marks(body)
    check_images(body)
    check_ids(messages)
    check_results(messages, is_compaction="compaction" in body)
    check_server_tools(messages)
    _check_thinking(body, messages)
    if "compaction" not in body:
        _check_end(body, messages, features)
    if needs_tools and not body.get("tools") and _has_calls(messages):
        refuse("tools_missing", "Requests which include `tool_use` or `tool_result` blocks must define tools")


def _check_messages(messages: list[dict[str, Any]]) -> None:
    """Raise if a message has content that its role may not have."""
    if not messages:
        refuse("no_messages", "messages: at least one message is required")
    if len(messages) > MAX_MESSAGES:
        refuse("too_many_messages", f"messages: List should have at most {MAX_MESSAGES} items")
    for number, message in enumerate(messages):
        role, blocks = message["role"], blocks_of(message.get("content"))
        is_prefill = role == "assistant" and number == len(messages) - 1
        if not message.get("content") and not is_prefill and not message.get("output_config"):
            refuse(
                "empty_message",
                f"messages.{number}: all messages must have non-empty content except for the optional final assistant "
                "message",
            )
        for index, block in enumerate(blocks):
            where, kind = f"messages.{number}.content.{index}", block["type"]
            if role == "user" and kind in ASSISTANT_ONLY:
                refuse("block_role", f"{where}: `{kind}` blocks can only be in `assistant` messages")
            if role == "assistant" and kind in USER_ONLY:
                refuse("block_role", f"{where}: `{kind}` blocks can only be in `user` messages")
            if kind != "text" or not (is_prefill and isinstance(message["content"], str) and not message["content"]):
                check_block(block, where)


def _check_system_messages(messages: list[dict[str, Any]], features: ModelFeatures) -> None:
    """Raise if a system message is at a wrong position.

    A system message must come directly after a user message, or after a reply that ends with a server tool. The system
    message must also be the last message or come directly before an assistant message.
    """
    first = messages[0]
    if first["role"] == "system":
        refuse("system_place", "messages.0: use the top-level 'system' parameter for the initial system prompt")
    if first["role"] == "assistant" and not _begins_with_compaction(first):
        refuse("first_role", 'messages: first message must use the "user" role')
    for number, message in enumerate(messages):
        if message["role"] != "system":
            continue
        if not features.system_messages:
            refuse("system_model", f"messages.{number}: role 'system' is not supported on this model")
        before = messages[number - 1]
        ends_in_server_tool = before["role"] == "assistant" and _last_type(before) in {
            "server_tool_use",
            *SERVER_RESULTS.values(),
        }
        if before["role"] != "user" and not ends_in_server_tool:
            refuse(
                "system_place",
                f"messages.{number}: role 'system' must follow a 'user' message or an 'assistant' message that ends in "
                "a server tool use",
            )
        if number + 1 < len(messages) and messages[number + 1]["role"] != "assistant":
            text = f"messages.{number}: role 'system' must precede an 'assistant' message or end the array"
            refuse("system_place", text)


def _begins_with_compaction(message: dict[str, Any]) -> bool:
    blocks = blocks_of(message.get("content"))
    return bool(blocks) and blocks[0]["type"] == "compaction"


def _last_type(message: dict[str, Any]) -> str:
    blocks = blocks_of(message.get("content"))
    return str(blocks[-1]["type"]) if blocks else ""


def _has_calls(messages: list[dict[str, Any]]) -> bool:
    kinds = {"tool_use", "tool_result"}
    return any(block["type"] in kinds for message in messages for block in blocks_of(message.get("content")))


def _check_thinking(body: dict[str, Any], messages: list[dict[str, Any]]) -> None:
    manual = (body.get("thinking") or {}).get("type") == "enabled"
    for number, message in enumerate(messages):
        kinds = [block["type"] for block in blocks_of(message.get("content"))]
        if not THINKING.intersection(kinds):
            continue
        for index, block in enumerate(message["content"]):
            if block["type"] in THINKING and not block.get("signature", block.get("data")):
                refuse(
                    "thinking_signature",
                    f"messages.{number}.content.{index}: Invalid `signature` in `{block['type']}` block",
                )
        if manual and kinds[0] not in THINKING:
            refuse(
                "thinking_first",
                f"messages.{number}.content.0: If an assistant message contains any thinking blocks, the first block "
                f"must be `thinking` or `redacted_thinking`. Found `{kinds[0]}`.",
            )
        if kinds[-1] in THINKING:
            text = f"messages.{number}: The final block in an assistant message cannot be `thinking`."
            refuse("thinking_last", text)
    if manual:
        _check_tool_loop(messages)


def _has_results(message: dict[str, Any]) -> bool:
    return any(block["type"] == "tool_result" for block in blocks_of(message.get("content")))


def _check_tool_loop(messages: list[dict[str, Any]]) -> None:
    """Raise if a request ends with tool results, but no thinking begins the first or the last reply of the turn.

    A turn is a series of replies that are separated only by tool results. Thinking in the first reply is enough,
    because a model without interleaved thinking thinks only at the beginning of a turn. The rule applies only to manual
    thinking (`thinking.type` is `enabled`).
    """
    number = next((at for at in range(len(messages) - 1, -1, -1) if messages[at]["role"] == "assistant"), -1)
    if number < 0 or number + 1 >= len(messages) or not _has_results(messages[number + 1]):
        return
    first = number
    while first >= 2 and _has_results(messages[first - 1]) and messages[first - 2]["role"] == "assistant":
        first -= 2
    blocks = blocks_of(messages[number].get("content"))
    if any(blocks_of(messages[at].get("content"))[0]["type"] in THINKING for at in (first, number)):
        return
    refuse(
        "thinking_missing",
        f"messages.{number}.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
        f"`{blocks[0]['type']}`. When `thinking` is enabled, a final `assistant` message must start with a thinking "
        "block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you include thinking "
        "blocks from previous turns. To avoid this requirement, disable `thinking`.",
    )


def _check_end(body: dict[str, Any], messages: list[dict[str, Any]], features: ModelFeatures) -> None:
    """Raise if the last message is a prefill (a message of the assistant) that the model does not accept.

    No model accepts a prefill while thinking is on. A paused reply is not a prefill, and a single message that begins
    with a compaction block is not a prefill either.
    """
    last = messages[-1]
    if last["role"] != "assistant":
        return
    blocks = blocks_of(last.get("content"))
    if blocks and blocks[-1]["type"] in {"server_tool_use", *SERVER_RESULTS.values()}:
        return  # a paused reply is sent back, so that the provider continues it
    if len(messages) == 1 and _begins_with_compaction(last):
        return
    if not features.prefill or is_thinking(body):
        refuse(
            "prefill",
            "This model does not support assistant message prefill. The conversation must end with a user message.",
        )
    if blocks and blocks[-1]["type"] == "text" and blocks[-1]["text"] != blocks[-1]["text"].rstrip():
        refuse("trailing_whitespace", "messages: final assistant content cannot end with trailing whitespace")
