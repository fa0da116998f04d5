"""Rules of Anthropic's Messages API for pairs: tool calls and results, server tools and their results."""

from __future__ import annotations

from typing import Any

from foldline.testing.provider.anthropic_blocks import Block, blocks_of, refuse

SERVER_RESULTS = {
    "advisor": "advisor_tool_result",
    "bash_code_execution": "bash_code_execution_tool_result",
    "code_execution": "code_execution_tool_result",
    "text_editor_code_execution": "text_editor_code_execution_tool_result",
    "tool_search_tool_bm25": "tool_search_tool_result",
    "tool_search_tool_regex": "tool_search_tool_result",
    "web_fetch": "web_fetch_tool_result",
    "web_search": "web_search_tool_result",
}
"""The type of the result block of each server tool."""


def check_ids(messages: list[dict[str, Any]]) -> None:
    """Raise if two calls have the same id."""
    seen = set[str]()
    for message in messages:
        for block in blocks_of(message.get("content")):
            if block["type"] in {"tool_use", "server_tool_use", "mcp_tool_use"}:
                if block["id"] in seen:
                    refuse("duplicate_id", "messages: `tool_use` ids must be unique")
                seen.add(block["id"])


def check_results(messages: list[dict[str, Any]], *, is_compaction: bool) -> None:
    """Raise if a call has no result in the next message, or if a result has no call in the message before it.

    Results must be the first blocks of their message. With `is_compaction`, unanswered calls in the last message are
    ignored here, because another rule refuses these calls.
    """
    open_ids: list[str] = []
    end = [] if is_compaction else [{"role": "assistant", "content": []}]
    for number, message in enumerate([*messages, *end]):
        blocks = blocks_of(message.get("content"))
        answered = _answered_ids(blocks, open_ids, number)
        missing = [call for call in open_ids if call not in answered]
        if missing:
            refuse(
                "result_missing",
                f"messages.{number - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the "
                "next message.",
            )
        open_ids = [block["id"] for block in blocks if block["type"] == "tool_use"]


def _answered_ids(blocks: list[Block], calls: list[str], number: int) -> set[str]:
    """The ids of the calls that are answered by the results at the start of a message.

    Raises for a result that answers no call, and for a second result of one call.
    """
    open_ids, answered = set(calls), set[str]()
    leading = True
    for index, block in enumerate(blocks):
        if block["type"] != "tool_result":
            leading = False
            continue
        call = block["tool_use_id"]
        if call not in open_ids:
            refuse(
                "result_unexpected",
                f"messages.{number}.content.{index}: unexpected `tool_use_id` found in `tool_result` blocks: {call}. "
                "Each `tool_result` block must have a corresponding `tool_use` block in the previous message.",
            )
        if call in answered:
            refuse(
                "result_repeated",
                f"messages.{number}.content.{index}: each tool_use must have a single result. Found multiple "
                f"`tool_result` blocks with id: {call}",
            )
        if leading:
            answered.add(call)
    return answered


def check_server_tools(messages: list[dict[str, Any]]) -> None:
    """Raise if a result of a server tool has no earlier call, or if a call of a server tool has no result.

    A call that is still running needs no result yet. A call may still be running if it is in the last message. A call
    may also be running if it is in the last assistant message and this message has calls for the client.
    """
    calls: dict[str, tuple[int, str, str]] = {}
    waiting = set[str]()
    for number, message in enumerate(messages):
        for index, block in enumerate(blocks_of(message.get("content"))):
            kind = block["type"]
            if kind == "server_tool_use":
                calls[block["id"]] = (number, block["name"], SERVER_RESULTS[block["name"]])
            elif kind == "mcp_tool_use":
                calls[block["id"]] = (number, block["name"], "mcp_tool_result")
            elif kind == "tool_use":
                waiting.add((block.get("caller") or {}).get("tool_id", ""))
            elif kind == "mcp_tool_result" or kind in SERVER_RESULTS.values():
                _number, _name, expected = calls.pop(block["tool_use_id"], (0, "", ""))
                if expected != kind:
                    call = "mcp_tool_use" if kind == "mcp_tool_result" else "server_tool_use"
                    refuse(
                        "server_result_unexpected",
                        f"messages.{number}.content.{index}: unexpected `tool_use_id` found in `{kind}` blocks: "
                        f"{block['tool_use_id']}. Each `{kind}` block must have a corresponding `{call}` block before "
                        "it.",
                    )
    latest = max((at for at, message in enumerate(messages) if message["role"] == "assistant"), default=-1)
    for call, (number, name, expected) in calls.items():
        beside = any(block["type"] == "tool_use" for block in blocks_of(messages[number].get("content")))
        is_running = number == len(messages) - 1 or (number == latest and beside)
        if not is_running and call not in waiting:
            refuse(
                "server_result_missing",
                f"messages.{number}: `{name}` tool use with id `{call}` was found without a corresponding "
                f"`{expected}` block",
            )
