"""Splits a request into the pieces that a provider sees, in order: tools, system, blocks of the messages.

Tokens are counted piece by piece, and a prompt cache compares pieces. The hash of a piece leaves out cache marks,
because they are instructions to the cache and not part of the prompt.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from foldline.testing.provider import token_rules
from foldline.testing.provider.anthropic_blocks import blocks_of
from foldline.testing.provider.gemini_rules import field_of
from foldline.testing.provider.model_features import features_of
from foldline.testing.provider.openai_responses_rules import input_items, item_type

Block = dict[str, Any]
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), check_circular=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptPiece:
    """A piece of a prompt.

    A piece has a level (tools, system or messages), the hash of its content, its tokens, and the time to live of its
    cache mark.
    """

    level: str
    digest: bytes
    tokens: int
    mark: str = ""


def content_digest(value: Any) -> bytes:
    """A hash of a JSON value without its cache marks. The order of keys does not change the hash."""
    text = _ENCODER.encode(value)
    if '"cache_control":' in text:
        text = _ENCODER.encode(without_marks(value))
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def without_marks(value: Any) -> Any:
    """A JSON value without its cache marks."""
    if isinstance(value, dict):
        return {key: without_marks(item) for key, item in value.items() if key != "cache_control"}
    return [without_marks(item) for item in value] if isinstance(value, list) else value


class PromptReader:
    """Splits requests into pieces and counts the tokens of each piece. A known piece is not counted again."""

    def __init__(self, counter: token_rules.TextCounter | None = None) -> None:
        self._counter = counter
        self._known: dict[tuple[str, bytes], int] = {}

    def pieces(self, format: str, body: dict[str, Any], *, is_new_claude: bool = True) -> list[PromptPiece]:
        """The pieces of a request in the order in which the provider reads them."""
        ratio = self.ratio_of(format, is_new_claude=is_new_claude)
        kind = f"{format}{is_new_claude}"
        entries = _anthropic(body, is_new_claude=is_new_claude) if format == "anthropic" else _READERS[format](body)
        return [self._piece(kind, ratio, *entry) for entry in entries]

    def _piece(self, kind: str, ratio: float, level: str, value: Any, measure: Measure) -> PromptPiece:
        digest = content_digest(value)
        tokens = self._known.get((kind, digest))
        if tokens is None:
            text, extra = measure(value)
            tokens = self._known[kind, digest] = self.model_tokens(text, ratio) + extra
        mark = value.get("cache_control") if isinstance(value, dict) else None
        return PromptPiece(level=level, digest=digest, tokens=tokens, mark=mark.get("ttl", "5m") if mark else "")

    def ratio_of(self, format: str, *, is_new_claude: bool) -> float:
        """The number of a model's tokens for each token of the default counter; 1 if another counter was given."""
        return 1.0 if self._counter else token_rules.ratio_of(format, is_new_claude=is_new_claude)

    def count(self, text: str) -> int:
        """The tokens of a text, by the counter."""
        return (self._counter or token_rules.default_counter())(text) if text else 0

    def model_tokens(self, text: str, ratio: float) -> int:
        """The tokens of a text for a model: the counted tokens, multiplied by `ratio`.

        The ratio is a mean over ordinary text. For other texts, such as digits between commas, the product may be too
        high. So the result is at most one token for each byte of UTF-8: no tokenizer needs more.
        """
        counted = self.count(text)
        return min(round(counted * ratio), max(counted, len(text.encode("utf-8", "surrogatepass"))))


Measure = Callable[[Any], tuple[str, int]]
"""A function that returns the text of a piece, and a number of tokens to add to the tokens of this text."""


def _anthropic(body: dict[str, Any], *, is_new_claude: bool) -> Iterator[tuple[str, Any, Measure]]:
    tools = [tool for tool in body.get("tools") or () if not tool.get("defer_loading")]
    for index, tool in enumerate(tools):
        extra = token_rules.TOOL_TOKENS + (token_rules.TOOLS_TOKENS if index == 0 else 0)
        yield "tools", tool, _json_measure(extra)
    for block in blocks_of(body.get("system")):
        yield "system", block, _json_measure(0)

    def measure(entry: Any) -> tuple[str, int]:
        text, extra = _anthropic_block(entry["block"], is_new_claude=is_new_claude)
        return text, extra + entry["first"]

    for role, index, block in _shown_blocks(body):
        extra = token_rules.MESSAGE_TOKENS if index == 0 else 0
        entry = {"role": role, "block": block, "first": extra}
        if "cache_control" in block:
            entry["cache_control"] = block["cache_control"]
        yield "messages", entry, measure


def _shown_blocks(body: dict[str, Any]) -> Iterator[tuple[str, int, Block]]:
    """The blocks that the model sees.

    Blocks before the newest compaction are left out. Thinking of earlier turns is left out if the model does not keep
    it.
    """
    messages = [(message["role"], blocks_of(message.get("content"))) for message in body["messages"]]
    turn = max((at for at, (role, blocks) in enumerate(messages) if role == "user" and _is_question(blocks)), default=0)
    keeps = features_of(body["model"]).keeps_thinking
    start = (0, 0)
    for at, (_role, blocks) in enumerate(messages):
        for index, block in enumerate(blocks):
            if block["type"] == "compaction" and block.get("content"):
                start = (at, index)
    for at, (role, blocks) in enumerate(messages):
        for index, block in enumerate(blocks):
            is_old_thinking = not keeps and at < turn and block["type"] in {"thinking", "redacted_thinking"}
            if (at, index) >= start and not is_old_thinking:
                yield role, index, block


def _is_question(blocks: list[Block]) -> bool:
    return not any(block["type"] == "tool_result" for block in blocks)


def _anthropic_block(block: Block, *, is_new_claude: bool) -> tuple[str, int]:
    kind = block["type"]
    if kind == "text":
        return block["text"], 0
    if kind == "thinking":
        return block["thinking"], 0
    if kind in {"tool_use", "server_tool_use", "mcp_tool_use"}:
        return f"{block['name']} {token_rules.json_text(block['input'])}", token_rules.CALL_TOKENS
    if kind == "image":
        data = block["source"].get("data")
        size = token_rules.base64_image(data) if data else None
        return "", token_rules.anthropic_image_tokens(size, is_new_claude=is_new_claude)
    if kind == "document" and block["source"].get("type") in {"base64", "url", "file"}:
        return str(block.get("title") or ""), token_rules.PAGE_TOKENS
    if kind == "tool_result":
        texts, extra = [], token_rules.RESULT_TOKENS
        for part in blocks_of(block.get("content")):
            text, more = _anthropic_block(part, is_new_claude=is_new_claude)
            texts.append(text)
            extra += more
        return "\n".join(texts), extra
    if kind == "compaction":
        return block.get("content") or "", 0
    text, hidden = token_rules.visible_text(block)
    return text, hidden // token_rules.OPAQUE_CHARACTERS


def _json_measure(extra: int) -> Measure:
    def measure(value: Any) -> tuple[str, int]:
        if isinstance(value, dict) and value.get("type") == "text":
            return str(value["text"]), extra
        return token_rules.visible_text(value)[0], extra

    return measure


def _openai_chat(body: dict[str, Any]) -> Iterator[tuple[str, Any, Measure]]:
    for tool in body.get("tools") or ():
        yield "tools", tool, _json_measure(token_rules.TOOL_TOKENS)
    for message in body["messages"]:
        yield "messages", message, _openai_message


def _openai_message(message: Any) -> tuple[str, int]:
    texts, extra = [], token_rules.MESSAGE_TOKENS - 1
    for part in blocks_of(message.get("content")):
        if part["type"] in {"image_url", "input_image"}:
            url = part["image_url"]["url"] if isinstance(part.get("image_url"), dict) else part.get("image_url") or ""
            extra += token_rules.openai_image_tokens(token_rules.base64_image(url) if url[:5] == "data:" else None)
        else:
            texts.append(str(part.get("text") or part.get("refusal") or token_rules.json_text(part)))
    for call in message.get("tool_calls") or ():
        callee = call[call["type"]]
        texts.append(f"{callee['name']} {callee.get('arguments') or callee.get('input') or ''}")
        extra += token_rules.CALL_TOKENS // 2
    if message.get("function_call"):
        texts.append(token_rules.json_text(message["function_call"]))
    return "\n".join(texts), extra


def _openai_responses(body: dict[str, Any]) -> Iterator[tuple[str, Any, Measure]]:
    for tool in body.get("tools") or ():
        yield "tools", tool, _json_measure(token_rules.TOOL_TOKENS)
    if body.get("instructions"):
        yield "system", body["instructions"], lambda text: (text, token_rules.MESSAGE_TOKENS)
    items = input_items(body)
    newest = max((at for at, item in enumerate(items) if item_type(item) == "compaction"), default=0)
    turn = max((at for at, item in enumerate(items) if item.get("role") == "user"), default=0)
    for at, item in enumerate(items):
        if at >= newest and not (item_type(item) == "reasoning" and at < turn):
            yield "messages", item, _responses_item


def _responses_item(item: Any) -> tuple[str, int]:
    kind = item_type(item)
    if kind == "message":
        return _openai_message(item)
    if kind in {"reasoning", "compaction"}:
        text, hidden = token_rules.visible_text(item)
        return "", len(text) // 40 + hidden // token_rules.OPAQUE_CHARACTERS
    if kind == "function_call":
        return f"{item['name']} {item['arguments']}", token_rules.CALL_TOKENS // 2
    if kind.endswith("_output") and isinstance(item.get("output"), str):
        return item["output"], token_rules.MESSAGE_TOKENS
    return token_rules.visible_text(item)[0], token_rules.MESSAGE_TOKENS


def _gemini(body: dict[str, Any]) -> Iterator[tuple[str, Any, Measure]]:
    system = field_of(body, "systemInstruction")
    if system:
        yield "system", system, _gemini_content
    for tool in body.get("tools") or ():
        yield "tools", tool, _json_measure(token_rules.TOOL_TOKENS)
    for content in body.get("contents") or ():
        yield "messages", content, _gemini_content


_READERS: dict[str, Callable[[dict[str, Any]], Iterator[tuple[str, Any, Measure]]]] = {
    "openai_chat": _openai_chat,
    "openai_responses": _openai_responses,
    "gemini": _gemini,
}


def _gemini_content(content: Any) -> tuple[str, int]:
    texts, extra = [], 0
    for part in content.get("parts") or ():
        blob = field_of(part, "inlineData")
        if part.get("text") is not None:
            texts.append(part["text"])
        elif blob and str(field_of(blob, "mimeType")).startswith("image/"):
            extra += token_rules.gemini_image_tokens(token_rules.base64_image(blob["data"]))
        elif blob:
            extra += token_rules.PAGE_TOKENS
        else:
            texts.append(token_rules.visible_text(part)[0])
    return "\n".join(texts), extra
