"""The simulated provider refuses what Anthropic's Messages API refuses, in its words, and takes the rest."""

from __future__ import annotations

from typing import Any

import pytest

from foldline.testing.provider import judge
from support.provider_requests import (
    TOOL,
    anthropic,
    assistant,
    image,
    png,
    text,
    thinking,
    tool_result,
    tool_use,
    user,
)

STEP = (user(), assistant([tool_use()]), user([tool_result()]))
OLD = "claude-sonnet-4-5"
MANUAL = {"type": "enabled", "budget_tokens": 1_024}
MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
MCP_CALL = {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "find", "server_name": "s", "input": {}}
MCP_RESULT = {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "content": "x", "is_error": False}
MCP = ("mcp-client-2025-11-20",)

REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "no messages": (anthropic(), "no_messages", "messages: at least one message is required"),
    "empty content": (
        anthropic(user(""), assistant(), user()),
        "empty_message",
        "messages.0: all messages must have non-empty content except for the optional final assistant message",
    ),
    "no blocks": (anthropic(user([])), "empty_message", "messages.0: all messages must have non-empty content"),
    "empty text": (anthropic(user([text("")])), "empty_text", "messages: text content blocks must be non-empty"),
    "blank text": (
        anthropic(user([text(" \n")])),
        "blank_text",
        "messages: text content blocks must contain non-whitespace text",
    ),
    "empty text in a result": (
        anthropic(user(), assistant([tool_use()]), user([tool_result(content=[text("")])])),
        "empty_text",
        "must be non-empty",
    ),
    "empty system text": (anthropic(user(), system=[text("")]), "empty_text", "system: text content blocks must be"),
    "unknown field of a message": (
        anthropic({**user(), "id": "m1"}),
        "field_unknown",
        "messages.0.id: Extra inputs are not permitted",
    ),
    "unknown field of a block": (
        anthropic(user([text(foldline=1)])),
        "field_unknown",
        "messages.0.content.0.text.foldline: Extra inputs are not permitted",
    ),
    "unknown field of the request": (
        anthropic(user(), note=1),
        "field_unknown",
        "note: Extra inputs are not permitted",
    ),
    "unknown block": (
        anthropic(user([{"type": "input_text", "text": "x"}])),
        "field_tag",
        "messages.0.content.0: Input tag 'input_text' found using 'type' does not match any of the expected tags:",
    ),
    "missing field": (
        anthropic(user(), assistant([{"type": "tool_use", "id": "t", "name": "bash"}])),
        "field_missing",
        "messages.1.content.0.tool_use.input: Field required",
    ),
    "wrong type": (anthropic(user(), max_tokens="1"), "field_type", "max_tokens: Input should be a valid integer"),
    "unknown role": (
        anthropic({"role": "tool", "content": "x"}),
        "field_tag",
        "messages.0.role: Input should be 'user', 'assistant' or 'system'",
    ),
    "no model": ({"max_tokens": 1, "messages": [user()]}, "field_missing", "model: Field required"),
    "lone surrogate": (anthropic(user("\ud83d")), "json", "The request body is not valid JSON: no low surrogate"),
    "NaN": (
        anthropic(user(), assistant([tool_use(input={"x": float("nan")})]), user([tool_result()])),
        "json",
        "The request body is not valid JSON",
    ),
    "call without result": (
        anthropic(user(), assistant([tool_use()]), user()),
        "result_missing",
        (
            "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1. Each "
            "`tool_use` block must have a corresponding `tool_result` block in the next message."
        ),
    ),
    "call at the end": (anthropic(user(), assistant([tool_use()])), "result_missing", "messages.1: `tool_use` ids"),
    "one result of two": (
        anthropic(user(), assistant([tool_use("a"), tool_use("b")]), user([tool_result("a")])),
        "result_missing",
        "immediately after: b.",
    ),
    "results split over two messages": (
        anthropic(
            user(), assistant([tool_use("a"), tool_use("b")]), user([tool_result("a")]), user([tool_result("b")])
        ),
        "result_missing",
        "immediately after: b.",
    ),
    "text before the result": (
        anthropic(user(), assistant([tool_use()]), user([text(), tool_result()])),
        "result_missing",
        "immediately after: toolu_1.",
    ),
    "system message before the result": (
        anthropic(user(), assistant([tool_use()]), {"role": "system", "content": "x"}, user([tool_result()])),
        "system_place",
        "messages.2: role 'system' must follow a 'user' message",
    ),
    "orphan result": (
        anthropic(user([tool_result("gone")])),
        "result_unexpected",
        (
            "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: gone. Each `tool_result` "
            "block must have a corresponding `tool_use` block in the previous message."
        ),
    ),
    "two results of a call": (
        anthropic(user(), assistant([tool_use()]), user([tool_result(), tool_result()])),
        "result_repeated",
        "each tool_use must have a single result. Found multiple `tool_result` blocks with id: toolu_1",
    ),
    "the same id twice": (
        anthropic(*STEP, *STEP[1:]),
        "duplicate_id",
        "messages: `tool_use` ids must be unique",
    ),
    "call id with a space": (
        anthropic(user(), assistant([tool_use("a b")]), user([tool_result("a b")])),
        "tool_id",
        "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    ),
    "server call id of a client tool": (
        anthropic(user(), assistant([{**SEARCH, "id": "toolu_1"}, {**FOUND, "tool_use_id": "toolu_1"}]), user()),
        "tool_id",
        "server_tool_use.id: String should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'",
    ),
    "call in a user message": (
        anthropic(user([tool_use()])),
        "block_role",
        "messages.0.content.0: `tool_use` blocks can only be in `assistant` messages",
    ),
    "result in an assistant message": (
        anthropic(user(), assistant([tool_result()]), user()),
        "block_role",
        "`tool_result` blocks can only be in `user` messages",
    ),
    "empty error": (
        anthropic(user(), assistant([tool_use()]), user([tool_result(content="", is_error=True)])),
        "empty_error",
        "content cannot be empty if `is_error` is true",
    ),
    "image in an error": (
        anthropic(user(), assistant([tool_use()]), user([tool_result(content=[image()], is_error=True)])),
        "error_content",
        'all content must be type "text" if `is_error` is true',
    ),
    "first message of the assistant": (
        anthropic(assistant(), user()),
        "first_role",
        'messages: first message must use the "user" role',
    ),
    "prefill": (
        anthropic(user(), assistant()),
        "prefill",
        "This model does not support assistant message prefill. The conversation must end with a user message.",
    ),
    "trailing whitespace": (
        anthropic(user(), assistant("The answer is "), model=OLD),
        "trailing_whitespace",
        "messages: final assistant content cannot end with trailing whitespace",
    ),
    "system message first": (
        anthropic({"role": "system", "content": "x"}, user()),
        "system_place",
        "messages.0: use the top-level 'system' parameter for the initial system prompt",
    ),
    "system message before a user message": (
        anthropic(user(), {"role": "system", "content": "x"}, user()),
        "system_place",
        "messages.1: role 'system' must precede an 'assistant' message or end the array",
    ),
    "system message on an old model": (
        anthropic(user(), {"role": "system", "content": "x"}, model=OLD),
        "system_model",
        "role 'system' is not supported on this model",
    ),
    "tools missing": (
        {**anthropic(*STEP), "tools": []},
        "tools_missing",
        "Requests which include `tool_use` or `tool_result` blocks must define tools",
    ),
    "tool name": (
        anthropic(user(), tools=[{**TOOL, "name": "my tool"}]),
        "tool_definition",
        "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
    ),
    "tool name twice": (anthropic(user(), tools=[TOOL, TOOL]), "tool_definition", "tools: Tool names must be unique."),
    "tool schema": (
        anthropic(user(), tools=[{"name": "x", "input_schema": {}}]),
        "tool_definition",
        "tools.0.custom.input_schema.type: Field required",
    ),
    "tool choice of an unknown tool": (
        anthropic(user(), tool_choice={"type": "tool", "name": "grep"}),
        "tool_choice",
        "Tool 'grep' not found in provided tools",
    ),
    "tool choice without tools": (
        anthropic(user(), tools=[], tool_choice={"type": "auto"}),
        "tool_choice",
        "tool_choice: may only be specified while providing tools",
    ),
    "forced tool with thinking": (
        anthropic(user(), tool_choice={"type": "any"}, thinking={"type": "adaptive"}),
        "tool_choice",
        "Thinking may not be enabled when tool_choice forces tool use.",
    ),
    "thinking without signature": (
        anthropic(user(), assistant([thinking(signature=""), text()]), user()),
        "thinking_signature",
        "messages.1.content.0: Invalid `signature` in `thinking` block",
    ),
    "thinking at the end": (
        anthropic(user(), assistant([text(), thinking()]), user()),
        "thinking_last",
        "messages.1: The final block in an assistant message cannot be `thinking`.",
    ),
    "thinking behind text, manual": (
        anthropic(
            user(), assistant([text(), thinking(), text()]), user(), model=OLD, max_tokens=2_048, thinking=MANUAL
        ),
        "thinking_first",
        "the first block must be `thinking` or `redacted_thinking`. Found `text`.",
    ),
    "tool loop without thinking, manual": (
        anthropic(*STEP, model=OLD, max_tokens=2_048, thinking=MANUAL),
        "thinking_missing",
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.",
    ),
    "manual thinking on a new model": (
        anthropic(user(), thinking=MANUAL, max_tokens=2_048),
        "thinking_type",
        '"thinking.type.enabled" is not supported for this model.',
    ),
    "small budget": (
        anthropic(user(), model=OLD, thinking={"type": "enabled", "budget_tokens": 100}),
        "thinking_budget",
        "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
    ),
    "budget above max_tokens": (
        anthropic(user(), model=OLD, thinking=MANUAL),
        "thinking_budget",
        "`max_tokens` must be greater than `thinking.budget_tokens`.",
    ),
    "temperature on a new model": (anthropic(user(), temperature=1), "sampling", "`temperature` is not supported"),
    "temperature with thinking": (
        anthropic(
            user(),
            model="claude-sonnet-4-5",
            max_tokens=3_000,
            temperature=0.5,
            thinking={"type": "enabled", "budget_tokens": 2_000},
        ),
        "temperature",
        "`temperature` may only be set to 1",
    ),
    "block binding without its header": (
        anthropic(user(), thinking={"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}),
        "field_unknown",
        "thinking.adaptive.block_binding: Extra inputs are not permitted",
    ),
    "compaction without its header": (
        anthropic(user(), compaction={"type": "summarize"}),
        "field_unknown",
        "compaction: Extra inputs are not permitted",
    ),
    "five marks": (
        anthropic(user([text(cache_control=MARK) for _ in range(5)])),
        "too_many_marks",
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    ),
    "four marks and an automatic one": (
        anthropic(user([text(cache_control=MARK) for _ in range(4)]), cache_control=MARK),
        "too_many_marks",
        "Found 5.",
    ),
    "mark inside a result": (
        anthropic(
            user(),
            assistant([tool_use()]),
            user([tool_result(content=[text(cache_control=MARK) for _ in range(5)])]),
        ),
        "too_many_marks",
        "Found 5.",
    ),
    "an hour behind five minutes": (
        anthropic(user([text(cache_control=HOUR)]), system=[text(cache_control=MARK)]),
        "mark_order",
        (
            "messages.0.content.0.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' "
            "cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`."
        ),
    ),
    "automatic caching for an hour behind five minutes": (
        anthropic(user([text(cache_control=MARK), text()]), cache_control=HOUR),
        "mark_order",
        "cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block.",
    ),
    "automatic caching with another lifetime than the last block": (
        anthropic(user([text(cache_control=HOUR)]), cache_control=MARK),
        "mark_lifetime",
        "cache_control.ttl: the last block already has a cache_control with a different ttl.",
    ),
    "mark on thinking": (
        anthropic(user(), assistant([{**thinking(), "cache_control": MARK}, text()]), user()),
        "field_unknown",
        "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted",
    ),
    "mark on a deferred tool": (
        anthropic(user(), tools=[TOOL, {**TOOL, "name": "x", "defer_loading": True, "cache_control": MARK}]),
        "mark_on_deferred_tool",
        "defer_loading",
    ),
    "only deferred tools": (
        anthropic(user(), tools=[{**TOOL, "defer_loading": True}]),
        "tool_definition",
        "At least one tool must have defer_loading=false.",
    ),
    "image of 8,001 pixels": (
        anthropic(user([image(8_001, 5)])),
        "image_pixels",
        (
            "messages.0.content.0.image.source.base64.data: At least one of the image dimensions exceed max allowed "
            "size: 8000 pixels"
        ),
    ),
    "21 images, one of 2,001 pixels": (
        anthropic(user([image() for _ in range(20)] + [image(5, 2_001)])),
        "image_pixels",
        "max allowed size for many-image requests: 2000 pixels",
    ),
    "101 images for a small window": (
        anthropic(user([image() for _ in range(101)]), model=OLD),
        "too_many_images",
        "Too many images: 101 > 100",
    ),
    "601 images": (anthropic(user([image() for _ in range(601)])), "too_many_images", "Too many images: 601 > 600"),
    "large image": (
        anthropic(user([image(data="A" * (5 * 1024 * 1024 + 4))])),
        "image_bytes",
        "image exceeds 5 MB maximum: 5242884 bytes > 5242880 bytes",
    ),
    "image that is text": (anthropic(user([image(data="aGVsbG8=")])), "image_unreadable", "Could not process image"),
    "image that is not base64": (anthropic(user([image(data="a-b_")])), "image_base64", "invalid base64 data"),
    "image of another type": (
        anthropic(user([image(media_type="image/jpeg")])),
        "image_type",
        "The image was specified using the image/jpeg media type, but the image appears to be a image/png image",
    ),
    "server call without result": (
        anthropic(user(), assistant([SEARCH, text()]), user()),
        "server_result_missing",
        (
            "messages.1: `web_search` tool use with id `srvtoolu_1` was found without a corresponding "
            "`web_search_tool_result` block"
        ),
    ),
    "server result without call": (
        anthropic(user(), assistant([FOUND, text()]), user()),
        "server_result_unexpected",
        (
            "messages.1.content.0: unexpected `tool_use_id` found in `web_search_tool_result` blocks: srvtoolu_1. Each "
            "`web_search_tool_result` block must have a corresponding `server_tool_use` block before it."
        ),
    ),
    "mcp block without its header": (
        anthropic(user(), assistant([MCP_CALL, MCP_RESULT, text()]), user()),
        "field_tag",
        "Input tag 'mcp_tool_use' found using 'type'",
    ),
    "stop sequence": (anthropic(user(), stop_sequences=[" "]), "stop_sequences", "must contain non-whitespace"),
    "negative max_tokens": (anthropic(user(), max_tokens=-1), "max_tokens", "greater than or equal to 0"),
}

ACCEPTED: dict[str, dict[str, Any]] = {
    "a question": anthropic(user()),
    "blocks": anthropic(user([text(), image()]), assistant([text()]), user()),
    "a step": anthropic(*STEP),
    "a step with text behind the results": anthropic(
        user(), assistant([text(), tool_use("a"), tool_use("b")]), user([tool_result("b"), tool_result("a"), text()])
    ),
    "an empty result": anthropic(user(), assistant([tool_use()]), user([tool_result(content="")])),
    "a failed call": anthropic(user(), assistant([tool_use()]), user([tool_result(content="no", is_error=True)])),
    "a result with an image": anthropic(user(), assistant([tool_use()]), user([tool_result(content=[image()])])),
    "two user messages": anthropic(user(), user(), assistant(), user()),
    "a system message behind a user message": anthropic(
        user(), {"role": "system", "content": "x"}, assistant(), user()
    ),
    "a system message at the end": anthropic(*STEP, {"role": "system", "content": "x"}),
    "prefill on an old model": anthropic(user(), assistant("The answer is"), model=OLD),
    "adaptive thinking": anthropic(
        user(),
        assistant([thinking(), text(), thinking(), tool_use()]),
        user([tool_result()]),
        thinking={"type": "adaptive"},
    ),
    "thinking behind text, adaptive": anthropic(user(), assistant([text(), thinking(), text()]), user()),
    "a tool loop with manual thinking": anthropic(
        user(),
        assistant([thinking(), tool_use()]),
        user([tool_result()]),
        model=OLD,
        max_tokens=2_048,
        thinking=MANUAL,
    ),
    "a tool loop with manual thinking at its beginning": anthropic(
        user(),
        assistant([thinking(), tool_use("a")]),
        user([tool_result("a")]),
        assistant([tool_use("b")]),
        user([tool_result("b")]),
        model=OLD,
        max_tokens=2_048,
        thinking=MANUAL,
    ),
    "manual thinking behind a finished turn": anthropic(
        *STEP, assistant(), user(), model=OLD, max_tokens=2_048, thinking=MANUAL
    ),
    "redacted thinking": anthropic(user(), assistant([{"type": "redacted_thinking", "data": "x"}, text()]), user()),
    "hidden thinking": anthropic(user(), assistant([thinking(""), text()]), user()),
    "four marks": anthropic(user([text(cache_control=MARK) for _ in range(4)])),
    "five minutes behind an hour": anthropic(user([text(cache_control=MARK)]), system=[text(cache_control=HOUR)]),
    "an image of 8,000 pixels": anthropic(user([image(8_000, 5)])),
    "20 images, one of 2,001 pixels": anthropic(user([image() for _ in range(19)] + [image(5, 2_001)])),
    "21 images of 2,000 pixels": anthropic(user([image(2_000, 2_000) for _ in range(21)])),
    "101 images for a large window": anthropic(user([image() for _ in range(101)])),
    "an image by address": anthropic(user([{"type": "image", "source": {"type": "url", "url": "https://x.y/z.png"}}])),
    "a server tool": anthropic(user(), assistant([SEARCH, FOUND, text()]), user()),
    "a paused turn": anthropic(user(), assistant([text(), SEARCH])),
    "temperature on an old model": anthropic(user(), model=OLD, temperature=0.5),
    "a forced tool": anthropic(user(), tool_choice={"type": "tool", "name": "bash"}),
    "a built-in tool": anthropic(user(), tools=[{"type": "bash_20250124", "name": "bash"}]),
    "an emoji": anthropic(user("\U0001f600")),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    body, rule, words = REFUSED[name]
    found = judge("anthropic", body)
    assert found is not None
    assert (found.rule, found.status, found.type) == (rule, 400, "invalid_request_error"), found
    assert words in found.message


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name: str) -> None:
    assert judge("anthropic", ACCEPTED[name]) is None


def test_a_body_over_32_megabytes_is_too_large() -> None:
    found = judge("anthropic", anthropic(user("x" * 33 * 1024 * 1024)))
    assert found is not None
    assert (found.status, found.type) == (413, "request_too_large")


def test_beta_fields_are_taken_with_their_headers() -> None:
    binding = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    assert (
        judge("anthropic", anthropic(user(), thinking=binding), betas=["thinking-binding-controls-2026-08-01"]) is None
    )
    summary = anthropic(user(), compaction={"type": "summarize"})
    assert judge("anthropic", summary, betas=["compact-2026-09-04"]) is None
    assert judge("anthropic", anthropic(user(), assistant([MCP_CALL, MCP_RESULT, text()]), user()), betas=MCP) is None


def test_clearing_thinking_is_the_first_edit() -> None:
    edits = [{"type": "clear_thinking_20251015"}, {"type": "clear_tool_uses_20250919"}]
    betas = ["context-management-2025-06-27"]
    assert judge("anthropic", anthropic(user(), context_management={"edits": edits}), betas=betas) is None
    found = judge("anthropic", anthropic(user(), context_management={"edits": edits[::-1]}), betas=betas)
    assert found is not None
    assert found.rule == "edit_order"


def test_messages_alone_can_be_judged_without_their_tools() -> None:
    body = {**anthropic(*STEP), "tools": []}
    assert judge("anthropic", body, needs_tools=False) is None


def test_a_code_execution_that_waits_for_a_client_tool_has_its_result_later() -> None:
    code = {"type": "server_tool_use", "id": "srvtoolu_9", "name": "code_execution", "input": {"code": "x"}}
    caller = {"type": "code_execution_20250825", "tool_id": "srvtoolu_9"}
    done = {
        "type": "code_execution_tool_result",
        "tool_use_id": "srvtoolu_9",
        "content": {"type": "code_execution_result", "stdout": "", "stderr": "", "return_code": 0, "content": []},
    }
    running = [user(), assistant([code, tool_use(caller=caller)]), user([tool_result()])]
    assert judge("anthropic", anthropic(*running)) is None
    assert judge("anthropic", anthropic(*running, assistant([done, text()]), user())) is None


def test_png_header_is_read() -> None:
    from foldline.testing.provider.image_rules import image_size

    size = image_size(png(640, 480))
    assert size is not None
    assert (size.media_type, size.width, size.height) == ("image/png", 640, 480)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
def test_the_size_of_a_real_image_is_read(kind: str) -> None:
    import base64
    import io

    image_module = pytest.importorskip("PIL.Image")
    from foldline.testing.provider.image_rules import image_size

    buffer = io.BytesIO()
    image_module.new("RGB", (123, 45), "red").save(buffer, kind)
    size = image_size(base64.b64encode(buffer.getvalue()).decode())
    assert size is not None
    assert (size.media_type, size.width, size.height) == (f"image/{kind.lower()}", 123, 45)
