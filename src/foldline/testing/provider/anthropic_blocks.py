"""Rules of Anthropic's Messages API for single blocks: texts, results, cache marks, images, tool definitions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NoReturn

from foldline.models.table import model as model_of
from foldline.testing.provider import image_rules
from foldline.testing.provider.error_reply import ErrorReply, RequestRefused

TOOL_ID = re.compile(r"[a-zA-Z0-9_-]+\Z")
SERVER_TOOL_ID = re.compile(r"srvtoolu_[a-zA-Z0-9_]+\Z")
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}\Z")
MAX_MARKS = 4
Block = dict[str, Any]


def refuse(rule: str, message: str, *, status: int = 400, type: str = "invalid_request_error") -> NoReturn:  # noqa: A002
    """Raise Anthropic's answer to a request that breaks a rule."""
    raise RequestRefused(ErrorReply(format="anthropic", rule=rule, message=message, status=status, type=type))


def blocks_of(content: Any) -> list[Block]:
    """The content of a message as a list of blocks. A string becomes one text block.

    >>> blocks_of("hi")
    [{'type': 'text', 'text': 'hi'}]
    """
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


def check_block(block: Block, where: str) -> None:
    """Raise for a block that the API refuses wherever it is."""
    kind = block["type"]
    if kind == "text":
        check_text(block["text"], "messages")
    elif kind in {"tool_use", "server_tool_use", "mcp_tool_use"}:
        _check_call(block, f"{where}.{kind}")
    elif kind == "tool_result":
        _check_result(block, f"{where}.{kind}")
    elif kind == "compaction" and block.get("content") == "":
        refuse("empty_compaction", f"{where}.compaction.content: String should have at least 1 character")


def check_text(text: str, place: str) -> None:
    """Raise for an empty or blank text block."""
    if not text:
        refuse("empty_text", f"{place}: text content blocks must be non-empty")
    if not text.strip():
        refuse("blank_text", f"{place}: text content blocks must contain non-whitespace text")


def _check_call(block: Block, where: str) -> None:
    pattern = SERVER_TOOL_ID if block["type"] == "server_tool_use" else TOOL_ID
    if not pattern.match(block["id"]):
        refuse("tool_id", f"{where}.id: String should match pattern '^{pattern.pattern.removesuffix(chr(92) + 'Z')}$'")
    if not block["name"]:
        refuse("tool_name", f"{where}.name: String should have at least 1 character")
    if len(block["name"]) > 200:
        refuse("tool_name", f"{where}.name: String should have at most 200 characters")


def _check_result(block: Block, where: str) -> None:
    if not TOOL_ID.match(block["tool_use_id"]):
        refuse("tool_id", f"{where}.tool_use_id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    content = block.get("content")
    for part in content if isinstance(content, list) else ():
        if part["type"] == "text":
            check_text(part["text"], "messages")
    if not block.get("is_error"):
        return
    if not content:
        refuse("empty_error", f"{where}: content cannot be empty if `is_error` is true")
    if isinstance(content, list) and any(part["type"] != "text" for part in content):
        refuse("error_content", f'{where}: all content must be type "text" if `is_error` is true')


def nested_blocks(block: Block) -> Iterator[tuple[str, Block]]:
    """The blocks inside the content of a block (a tool result, a document, a search result), each with its path."""
    content = block.get("content")
    if isinstance(content, list):
        for index, part in enumerate(content):
            if isinstance(part, dict):
                yield f"{block['type']}.content.{index}", part


def request_blocks(body: dict[str, Any]) -> Iterator[tuple[str, Block]]:
    """The parts of a request that can hold a cache mark, each with its path, in the order of the prompt."""
    for index, tool in enumerate(body.get("tools") or ()):
        yield f"tools.{index}", tool
    if isinstance(body.get("system"), list):
        for index, block in enumerate(body["system"]):
            yield f"system.{index}", block
    for number, message in enumerate(body["messages"]):
        for index, block in enumerate(blocks_of(message.get("content"))):
            for inner, part in nested_blocks(block):
                yield f"messages.{number}.content.{index}.{inner}", part
            yield f"messages.{number}.content.{index}", block


def check_cache_marks(body: dict[str, Any]) -> None:
    """Raise for cache marks that Anthropic refuses.

    Anthropic refuses too many marks, a mark on an empty text, and a mark on a deferred tool. Anthropic also refuses a
    mark for one hour that comes after a mark for five minutes. Automatic caching (`cache_control` of the request)
    counts as a mark on the last block. If the last block has its own mark, both marks must have the same lifetime.
    """
    automatic = body.get("cache_control")
    marks = 1 if automatic else 0
    short = False
    last: dict[str, Any] | None = None
    for where, block in request_blocks(body):
        mark = last = block.get("cache_control")
        if not mark:
            continue
        marks += 1
        if block.get("type") == "text" and not block.get("text"):
            refuse("mark_on_empty_text", f"{where}.text: cache_control cannot be set for empty text blocks")
        if block.get("defer_loading"):
            name = block.get("name")
            refuse("mark_on_deferred_tool", f"Tool '{name}' cannot have both defer_loading=true and cache_control set.")
        if mark.get("ttl") == "1h" and short:
            refuse(
                "mark_order",
                f"{where}.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' "
                "cache_control block. Note that blocks are processed in the following order: `tools`, `system`, "
                "`messages`.",
            )
        short = short or mark.get("ttl") != "1h"
    if automatic and last and last.get("ttl", "5m") != automatic.get("ttl", "5m"):
        text = "cache_control.ttl: the last block already has a cache_control with a different ttl."
        refuse("mark_lifetime", text)
    if automatic and automatic.get("ttl") == "1h" and short:
        refuse(
            "mark_order",
            "cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block.",
        )
    if marks > MAX_MARKS:
        refuse("too_many_marks", f"A maximum of 4 blocks with cache_control may be provided. Found {marks}.")


def check_images(body: dict[str, Any]) -> None:
    """Raise for too many images, and for an image that is too large, damaged or not of the stated type."""
    sized: list[tuple[str, image_rules.ImageSize]] = []
    count = 0
    for where, block in request_blocks(body):
        if block.get("type") != "image":
            continue
        count += 1
        source = block["source"]
        if source["type"] == "base64":
            place = f"{where}.image.source.base64"
            sized.append((place, _image_size(source, place)))
    if count > image_rules.MAX_IMAGES:
        is_large = model_of(body["model"]).window > 200_000
        most = image_rules.MAX_IMAGES_OF_LARGE_WINDOW if is_large else image_rules.MAX_IMAGES
        if count > most:
            refuse("too_many_images", f"messages: Too many images: {count} > {most} maximum")
    for place, size in sized:
        if size.longest > image_rules.MAX_EDGE:
            limit = f"max allowed size: {image_rules.MAX_EDGE} pixels"
        elif count > image_rules.MANY_IMAGES and size.longest > image_rules.MAX_EDGE_OF_MANY:
            limit = f"max allowed size for many-image requests: {image_rules.MAX_EDGE_OF_MANY} pixels"
        else:
            continue
        refuse("image_pixels", f"{place}.data: At least one of the image dimensions exceed {limit}")


def _image_size(source: dict[str, Any], place: str) -> image_rules.ImageSize:
    data, stated = source["data"], source["media_type"]
    if len(data) > image_rules.MAX_BYTES:
        limit = f"{len(data)} bytes > {image_rules.MAX_BYTES} bytes"
        refuse("image_bytes", f"{place}: image exceeds 5 MB maximum: {limit}")
    if not data or not image_rules.is_base64(data):
        refuse("image_base64", f"{place}: invalid base64 data")
    size = image_rules.image_size(data)
    if size is None:
        refuse("image_unreadable", "Could not process image")
    if size.media_type != stated:
        refuse(
            "image_type",
            f"{place}.data: The image was specified using the {stated} media type, but the image appears to be a "
            f"{size.media_type} image",
        )
    return size


def check_tools(body: dict[str, Any]) -> None:
    """Raise for tool definitions and a tool choice that the API refuses."""
    tools = body.get("tools") or []
    names = [tool["name"] for tool in tools if "name" in tool]
    for index, tool in enumerate(tools):
        if tool.get("type") not in (None, "custom"):
            continue
        where = f"tools.{index}.custom"
        if not TOOL_NAME.match(tool["name"]):
            refuse("tool_definition", f"{where}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        schema = tool["input_schema"]
        if "type" not in schema:
            refuse("tool_definition", f"{where}.input_schema.type: Field required")
        if schema["type"] != "object":
            refuse("tool_definition", f"{where}.input_schema.type: Input should be 'object'")
        if {"oneOf", "allOf", "anyOf"}.intersection(schema):
            text = "input_schema does not support oneOf, allOf, or anyOf at the top level"
            refuse("tool_definition", f"{where}.input_schema: {text}")
    if len(set(names)) != len(names):
        refuse("tool_definition", "tools: Tool names must be unique.")
    if tools and all(tool.get("defer_loading") for tool in tools):
        refuse("tool_definition", "At least one tool must have defer_loading=false.")
    _check_tool_choice(body, names)


def _check_tool_choice(body: dict[str, Any], names: list[str]) -> None:
    choice = body.get("tool_choice")
    if not choice:
        return
    if not body.get("tools"):
        refuse("tool_choice", "tool_choice: may only be specified while providing tools")
    if choice["type"] == "tool" and choice["name"] not in names:
        refuse("tool_choice", f"Tool '{choice['name']}' not found in provided tools")
    thinking = (body.get("thinking") or {}).get("type")
    if choice["type"] in {"any", "tool"} and thinking in {"enabled", "adaptive"}:
        refuse("tool_choice", "Thinking may not be enabled when tool_choice forces tool use.")
