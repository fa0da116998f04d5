"""Answers compaction requests of clients from the ledger, in the form that each client expects.

Claude Code and Codex ask for a summary in the last message of a request. Codex may also end its input with a
`compaction_trigger`, or call /responses/compact. For a trigger or such a call, Codex expects a `compaction` item, and
does not read the content of the item. foldline puts the digest and a signature into this item. When the client sends
the item back, foldline replaces it by a readable message, because no provider can read the item. No compaction request
is sent to the provider.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
import zlib
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from foldline.digest.digester import FoldRefused
from foldline.digest.markup import body_of
from foldline.fold import COMPACTIONS
from foldline.json_text import decode, dumps, encode, loads
from foldline.proxy.body_scan import BodyScan
from foldline.proxy.conversation import ClientConversation, ClientHistory
from foldline.proxy.interception import OwnAnswer
from foldline.proxy.own_replies import item_reply, openai_usage, text_reply
from foldline.session.digest_writer import WriteOptions
from foldline.session.session import Session

SEALED = b"foldline1."
"""The beginning of the content of a compaction item that foldline wrote."""
RESUMED = "Another language model started to solve this problem and produced a summary of its work so far:\n\n"
"""The beginning of the message that replaces a compaction item. `is_client_summary` recognises the message by this
beginning.
"""
_CLAUDE_CODE = ("Your task is to create a detailed summary of", "<summary>")
_CODEX = ("You are performing a CONTEXT CHECKPOINT COMPACTION",)
_OWN_WISHES = ("Additional Instructions:",)
"""If a request contains this text, the user gave instructions for the summary. Only a model can follow them."""
_SEARCHED = 20_000
MAX_TEXT = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRequest:
    """A client's request to compact its conversation."""

    kind: str
    """`claude-code`, `codex`, `trigger` or `endpoint`."""
    is_message: bool
    """Whether the compaction request is a part of the history: a text or an item at the end."""


def compaction_request(history: ClientHistory, kind: str) -> CompactionRequest | None:
    """The compaction request in a client's request; None if the client does not ask for a compaction.

    `kind` is the kind of the API call.
    """
    if kind == "compact":
        return CompactionRequest(kind="endpoint", is_message=False)
    if not len(history):
        return None
    value: Any = history.scan.values.get(len(history) - 1)
    if history.format.name == "openai-responses" and _field(value, "type") == "compaction_trigger":
        return CompactionRequest(kind="trigger", is_message=True)
    text = _last_text(value)[:_SEARCHED]
    if any(wish in text for wish in _OWN_WISHES) or _field(value, "role") != "user":
        return None
    if history.format.name == "anthropic" and all(mark in text for mark in _CLAUDE_CODE):
        return CompactionRequest(kind="claude-code", is_message=True)
    if history.format.name == "openai-responses" and text.startswith(_CODEX):
        return CompactionRequest(kind="codex", is_message=True)
    return None


def without_request(history: ClientHistory, asked: CompactionRequest) -> ClientHistory:
    """The history without the compaction request.

    Claude Code adds its request to the last message of the user. The other blocks of this message stay.
    """
    last = len(history) - 1
    rest = _without_last_text(history.scan.values.get(last)) if asked.is_message else None
    kept = last if asked.is_message and rest is None else last + 1
    scan = history.scan
    values = {index: value for index, value in scan.values.items() if index < kept}
    shorter = scan._replace(starts=scan.starts[:kept], ends=scan.ends[:kept], values=values)
    found = ClientHistory(shorter, history.format, min(history.lead, kept))
    if rest is not None:
        found.messages[last] = history.format.parse(rest, None)
    return found


def hand_over(session: Session) -> str:
    """A digest of the whole session; "" if the session has no messages or no digest can be written."""
    state = session.state
    length = len(state.timeline)
    if length <= state.timeline.lead:
        return ""
    planned = replace(state.plan_at(length, COMPACTIONS["client"]), pinned=(), carried=(), stubs={})
    digest = session.writer.write(state, planned, None, WriteOptions(must=True))
    if digest is None or isinstance(digest, FoldRefused):
        return ""
    return body_of(digest.message.text, state.policy.digest_header)


def compaction_answer(
    asked: CompactionRequest, conversation: ClientConversation, history: ClientHistory, model: str, key: bytes
) -> OwnAnswer | None:
    """The answer to a compaction request; None if no digest of the session can be written."""
    text = hand_over(conversation.session)
    if not text:
        return None
    streams, format = bool(history.scan.field("stream")), history.format.name
    if asked.kind == "claude-code":
        return text_reply(format, model, f"<summary>\n{text}\n</summary>", streams=streams)
    if asked.kind == "codex":
        return text_reply(format, model, text, streams=streams)
    item = {"type": "compaction", "id": f"cmp_{_mark(text, key)[:24]}", "encrypted_content": seal(text, key)}
    if asked.kind == "trigger":
        return item_reply(model, [item], streams=streams)
    kept = [one for one in _elements(history) if _field(one, "role") == "user"]
    body = {
        "id": f"resp_{item['id'][4:]}",
        "object": "response.compaction",
        "created_at": int(time.time()),
        "output": [*kept, item],
        "usage": openai_usage(),
    }
    return OwnAnswer(status=200, body=json.dumps(body).encode())


# Compaction items that clients send back


def seal(text: str, key: bytes) -> str:
    """A digest as the content of a compaction item."""
    packed = base64.urlsafe_b64encode(zlib.compress(text.encode("utf-8", "replace"))).decode()
    return f"{SEALED.decode()}{packed}.{_mark(text, key)}"


def unseal(content: Any, key: bytes) -> str | None:
    """The digest in a compaction item that this proxy wrote; None for any other content."""
    if not isinstance(content, str) or not content.startswith(SEALED.decode()):
        return None
    packed, _, mark = content.removeprefix(SEALED.decode()).partition(".")
    try:
        text = zlib.decompressobj().decompress(base64.urlsafe_b64decode(packed), MAX_TEXT).decode()
    except (ValueError, zlib.error):
        return None
    return text if hmac.compare_digest(mark, _mark(text, key)) else None


def with_readable_items(scan: BodyScan, key: bytes) -> bytes:
    """A request body in which each compaction item that this proxy wrote is replaced by a readable message."""
    data, pieces, at = scan.data, list[bytes](), 0
    seen = data.find(SEALED, scan.list_start, scan.list_end)
    while seen >= 0:
        index = max(0, bisect_right(scan.starts, seen) - 1)
        start, end = scan.starts[index], scan.ends[index]
        value = loads(decode(data[start:end]))
        found = unseal(_field(value, "encrypted_content"), key) if _field(value, "type") == "compaction" else None
        if found is not None:
            content = [{"type": "input_text", "text": RESUMED + found}]
            pieces += [data[at:start], encode(dumps({"type": "message", "role": "user", "content": content}))]
            at = end
        seen = data.find(SEALED, end, scan.list_end)
    return b"".join([*pieces, data[at:]]) if pieces else data


def _mark(text: str, key: bytes) -> str:
    return hmac.new(key, text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()[:32]


def _elements(history: ClientHistory) -> list[Any]:
    return [loads(decode(history.scan.element(index))) for index in range(len(history))]


def _field(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, Mapping) else None


def _last_text(value: Any) -> str:
    """The last text of a message."""
    content = _field(value, "content")
    if isinstance(content, str):
        return content
    index = _last_text_index(content)
    return str(content[index]["text"]) if index is not None else ""


def _without_last_text(value: Any) -> Any:
    """A message without its last text; None if the message has nothing else."""
    content = _field(value, "content")
    index = _last_text_index(content)
    rest = [block for at, block in enumerate(content) if at != index] if index is not None else []
    return {**value, "content": rest} if rest else None


def _last_text_index(content: Any) -> int | None:
    blocks = content if isinstance(content, list) else []
    found = (index for index in reversed(range(len(blocks))) if isinstance(_field(blocks[index], "text"), str))
    return next(found, None)
