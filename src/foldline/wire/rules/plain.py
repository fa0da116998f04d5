"""A request read without our codecs: who speaks, in which blocks, and what is malformed already.

The validator must not share a mistake with the codecs it judges, so it has its own small reader per provider. A reader
takes any JSON value and never raises: what it does not expect becomes a fault, what it does not know becomes a block of
kind "other". Roles come out as system, user, assistant or tool.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Block(NamedTuple):
    """One piece of a message.

    Kinds: text, thinking, call, result, media, server-call, server-result, other. For a result, `inner` holds its own
    blocks; for thinking, `signed` says whether the provider's proof is there; `size` counts base64 characters.
    """

    kind: str
    at: int
    id: str = ""
    name: str = ""
    text: str = ""
    signed: bool = True
    error: bool = False
    inner: tuple[Block, ...] = ()
    size: int = 0


class Turn(NamedTuple):
    """One element of the list (or several that count as one): its place, its role, its blocks."""

    at: int
    role: str
    blocks: list[Block]


class Fault(NamedTuple):
    """Something malformed in itself: a violation code, the element, and plain words."""

    code: str
    at: int
    words: str


class Plain(NamedTuple):
    """All that a reader found."""

    turns: list[Turn]
    faults: list[Fault]
    marks: list[int]
    """The element of each cache breakpoint; -1 outside the messages."""


def string(value: Any) -> str:
    """A text, or "" for whatever else stands in its place."""
    return value if isinstance(value, str) else ""


def _get(part: Mapping[str, Any], camel: str, snake: str) -> Any:
    """A field of Gemini's JSON, which may be spelt either way."""
    return part[camel] if camel in part else part.get(snake)


def text_of(block: Mapping[str, Any], index: int, plain: Plain) -> str:
    """The text of a text block; a fault when there is none."""
    said = block.get("text")
    if not isinstance(said, str):
        plain.faults.append(Fault("shape", index, "a text block has no text"))
        return "?"
    return said


_CALL_KINDS = {"tool_use": "call", "server_tool_use": "server-call", "mcp_tool_use": "server-call"}
_PROOFS = {"thinking": "signature", "redacted_thinking": "data"}
_MEDIA_KINDS = ("image", "document", "container_upload")


def anthropic(elements: list[Any], body: Mapping[str, Any]) -> Plain:
    """Messages, with the cache marks of the whole request."""
    plain = Plain([], [], [])
    for key in ("system", "tools"):
        blocks = body.get(key)
        for block in blocks if isinstance(blocks, list) else ():
            if isinstance(block, dict) and block.get("cache_control"):
                plain.marks.append(-1)
            if key == "system" and isinstance(block, dict) and not string(block.get("text")).strip():
                plain.faults.append(Fault("blank", -1, "a block of the system prompt has no visible text"))
    if body.get("cache_control"):
        plain.marks.append(-1)
    for index, message in enumerate(elements):
        if not isinstance(message, dict):
            plain.faults.append(Fault("shape", index, "not an object"))
            continue
        role = message.get("role")
        if role not in ("user", "assistant", "system"):
            plain.faults.append(Fault("role", index, f"the role {role!r} is unknown"))
            continue
        content = message.get("content")
        if isinstance(content, str):
            plain.turns.append(Turn(index, role, [Block("text", index, text=content)] if content else []))
        elif isinstance(content, list):
            plain.turns.append(Turn(index, role, [_anthropic_block(block, index, plain) for block in content]))
            if role == "system" and not content:
                plain.turns.pop()
        else:
            plain.faults.append(Fault("shape", index, "content is neither text nor a list of blocks"))
    return plain


def _anthropic_block(block: Any, index: int, plain: Plain) -> Block:
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        plain.faults.append(Fault("shape", index, "a content block is not an object with a type"))
        return Block("other", index)
    if block.get("cache_control"):
        plain.marks.append(index)
    kind = block["type"]
    if kind == "text":
        return Block("text", index, text=text_of(block, index, plain))
    if kind in _PROOFS:
        return Block("thinking", index, signed=bool(string(block.get(_PROOFS[kind]))))
    if kind in _CALL_KINDS:
        return _anthropic_call(block, index, plain)
    if kind == "tool_result":
        return _anthropic_result(block, index, plain)
    if kind.endswith("_tool_result"):
        return Block("server-result", index, string(block.get("tool_use_id")))
    if kind in _MEDIA_KINDS:
        source = block.get("source")
        return Block("media", index, size=len(string(source.get("data"))) if isinstance(source, dict) else 0)
    return Block("other", index)


def _anthropic_call(block: Mapping[str, Any], index: int, plain: Plain) -> Block:
    if not isinstance(block.get("input"), dict):
        plain.faults.append(Fault("input-form", index, "the input of a call is not an object"))
    if not string(block.get("id")):
        plain.faults.append(Fault("id-form", index, "a call has no id"))
    return Block(_CALL_KINDS[block["type"]], index, string(block.get("id")), string(block.get("name")))


def _anthropic_result(block: Mapping[str, Any], index: int, plain: Plain) -> Block:
    """A result; an empty text instead of blocks counts as no content, which is accepted."""
    content = block.get("content")
    inner: tuple[Block, ...] = ()
    if isinstance(content, str):
        inner = (Block("text", index, text=content),) if content else ()
    elif isinstance(content, list):
        inner = tuple(_anthropic_block(each, index, plain) for each in content)
    elif content is not None:
        plain.faults.append(Fault("shape", index, "the content of a result is neither text nor a list of blocks"))
    error = block.get("is_error") is True
    return Block("result", index, string(block.get("tool_use_id")), error=error, inner=inner)


_GEMINI_ROLES = {"user": "user", "model": "assistant", "function": "user"}


def gemini(elements: list[Any], body: Mapping[str, Any]) -> Plain:  # noqa: ARG001  (all readers take the same)
    """Contents."""
    plain = Plain([], [], [])
    for index, content in enumerate(elements):
        if not isinstance(content, dict):
            plain.faults.append(Fault("shape", index, "not an object"))
            continue
        role = _GEMINI_ROLES.get(content.get("role") or "user") if isinstance(content.get("role"), str | None) else None
        parts = content.get("parts")
        if role is None:
            plain.faults.append(Fault("role", index, f"the role {content.get('role')!r} is unknown"))
        elif parts is not None and not isinstance(parts, list):
            plain.faults.append(Fault("shape", index, "parts is not a list"))
        else:
            plain.turns.append(Turn(index, role, [_gemini_part(part, index, plain) for part in parts or ()]))
    return plain


def _gemini_part(part: Any, index: int, plain: Plain) -> Block:
    if not isinstance(part, dict) or not part:
        plain.faults.append(Fault("shape", index, "a part without data"))
        return Block("other", index)
    call, result = _get(part, "functionCall", "function_call"), _get(part, "functionResponse", "function_response")
    if isinstance(call, dict):
        if not isinstance(call.get("args", {}), dict | None):
            plain.faults.append(Fault("input-form", index, "the args of a function call are not an object"))
        return Block("call", index, string(call.get("id")), string(call.get("name")))
    if isinstance(result, dict):
        if not isinstance(result.get("response"), dict):
            plain.faults.append(Fault("input-form", index, "the response of a function is not an object"))
        inner = result.get("parts")
        blocks = tuple(_gemini_part(each, index, plain) for each in inner) if isinstance(inner, list) else ()
        return Block("result", index, string(result.get("id")), string(result.get("name")), inner=blocks)
    inline = _get(part, "inlineData", "inline_data")
    if isinstance(inline, dict):
        return Block("media", index, size=len(string(inline.get("data"))))
    if _get(part, "fileData", "file_data") is not None:
        return Block("media", index)
    if "text" not in part or _get(part, "thoughtSignature", "thought_signature"):
        return Block("other", index)
    text = text_of(part, index, plain)
    return Block("thinking" if part.get("thought") is True else "text", index, text=text)
