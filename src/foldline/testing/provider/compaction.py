"""Native compaction: Anthropic's signed `compaction` block and OpenAI's encrypted `compaction` item.

Such a block replaces the messages that it summarises. Only the provider that wrote the block can read it. Anthropic's
block must be the first block of the conversation. Thinking in a message after the block stays valid if the messages
between the block and the thinking are unchanged. This is also true for thinking that is older than the block.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NoReturn

from foldline.testing.provider.anthropic_blocks import blocks_of
from foldline.testing.provider.error_reply import ErrorReply, RequestRefused
from foldline.testing.provider.prompt_layout import content_digest
from foldline.testing.provider.seal import Seal
from foldline.testing.provider.thinking import ConversationHash

BETA = "compact-2026-09-04"
OLD_BETA = "compact-2026-01-12"
Block = dict[str, Any]


def _refuse(code: str, message: str) -> NoReturn:
    raise RequestRefused(ErrorReply(format="anthropic", rule=code, message=message, code=code))


def _digest(value: Any) -> str:
    return content_digest(value).hex()


def compaction_block(seal: Seal, *, summary: str, model: str, account: str, position: ConversationHash) -> Block:
    """A signed block that replaces the conversation up to a position."""
    value = {"summary": _digest(summary), "changes": _digest([]), "model": model, "account": account}
    value |= position.binding()
    return {"type": "compaction", "content": summary, "signature": seal.sign(value), "tool_changes": []}


def check_compaction(body: Mapping[str, Any], seal: Seal, account: str) -> ConversationHash | None:
    """Check the signed compaction block of a request, and return the hash of the conversation up to this block.

    Returns None if there is no signed block. A block without a signature comes from an earlier beta. In that beta the
    block may be anywhere, so the block is not checked here.
    """
    places = [
        (number, index, message["role"], block)
        for number, message in enumerate(body["messages"])
        for index, block in enumerate(blocks_of(message.get("content")))
        if block["type"] == "compaction" and block.get("signature") is not None and block.get("content") is not None
    ]
    if not places:
        return None
    if len(places) > 1:
        _refuse(
            "compaction_block_ambiguous",
            "`messages` holds more than one `compaction` block with content. Send only the block the conversation "
            "returned last.",
        )
    number, index, role, block = places[0]
    place = f"messages.{number}.content.{index}"
    if (number, index) != (0, 0) or role == "system":
        text = f"{place}: The `compaction` block is not the first block of the conversation."
        _refuse("compaction_block_misplaced", text)
    value = seal.read(block["signature"])
    if value is None or "summary" not in value or value["account"] != account or value["model"] != body["model"]:
        _refuse("compaction_signature_invalid", f"{place}: The `compaction` block's `signature` does not verify.")
    if value["summary"] != _digest(block["content"]):
        text = f"{place}: The `compaction` block's `content` differs from the text its `signature` recorded."
        _refuse("compaction_content_mismatch", text)
    if value["changes"] != _digest(block.get("tool_changes") or []):
        text = f"{place}: The `compaction` block's `tool_changes` differs from what was returned with the block."
        _refuse("compaction_tool_changes_mismatch", text)
    start = ConversationHash.of(body)
    start.state, start.thinking = bytes.fromhex(value["messages"]), value["before"]
    return start


def check_compaction_request(body: Mapping[str, Any]) -> None:
    """Raise if a request for a compaction has nothing to summarise, or ends with a tool call that has no result."""
    messages = [message for message in body["messages"] if message["role"] != "system"]
    blocks = [block for message in messages for block in blocks_of(message.get("content"))]
    if all(block["type"] == "compaction" for block in blocks):
        text = "`messages` holds no `user` or `assistant` content to summarize or adopt."
        _refuse("compaction_nothing_to_summarize", text)
    last = messages[-1]
    if last["role"] == "assistant" and any(
        block["type"] in {"tool_use", "server_tool_use"} for block in blocks_of(last.get("content"))[-1:]
    ):
        text = "The compaction request ends on an `assistant` turn that is not finished."
        _refuse("compaction_incomplete_turn", text)


def encrypted_item(seal: Seal, *, kind: str, text: str, account: str) -> str:
    """The encrypted content of an OpenAI item."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
    return seal.sign({"kind": kind, "text": digest, "account": account, "filler": "x" * min(len(text), 2_000)})


def check_encrypted_items(
    items: list[dict[str, Any]], seal: Seal, account: str, *, takes_foreign: bool = False
) -> None:
    """Raise for encrypted content that was not written for this account.

    With `takes_foreign`, reasoning that another provider wrote is accepted.
    """
    for item in items:
        kind, text = item.get("type"), item.get("encrypted_content")
        if kind not in {"reasoning", "compaction"} or not text:
            continue
        value = seal.read(text)
        if value is not None and value.get("kind") == kind and value.get("account") == account:
            continue
        if takes_foreign and kind == "reasoning" and value is None:
            continue
        raise RequestRefused(
            ErrorReply(
                format="openai_responses",
                rule="encrypted_content",
                message=f"The encrypted content for item {item.get('id') or kind} could not be verified. Reason: "
                "Encrypted content could not be decrypted or parsed.",
                code="invalid_encrypted_content",
            )
        )
