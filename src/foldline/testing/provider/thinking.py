"""Signs the thinking in replies, and checks the signed thinking in later requests (Anthropic).

On models with preserved thinking, a thinking block is valid only if everything before the block is unchanged: the
system prompt, the tools (except deferred ones), the messages and the previous thinking block. Older models accept any
thinking that the provider wrote, if the text of the thinking is unchanged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from foldline.testing.provider.anthropic_blocks import blocks_of, refuse
from foldline.testing.provider.anthropic_rules import THINKING
from foldline.testing.provider.model_features import features_of
from foldline.testing.provider.prompt_layout import content_digest
from foldline.testing.provider.seal import Seal

BINDING_BETA = "thinking-binding-controls-2026-08-01"
READABLE: dict[str, tuple[str, ...]] = {"claude-fable-5-1": ("claude-opus-5", "claude-opus-5-5")}
"""Maps a model to the other models whose thinking it can read."""
SHARED = ("claude-haiku-5-5",)
"""Models whose thinking every model can read."""
ACCOUNT_BOUND = ("claude-sonnet-5-5", "claude-haiku-5-5")
"""Models whose thinking can be sent back only by the account that received it."""
Block = dict[str, Any]


@dataclass(slots=True)
class ConversationHash:
    """The hash of a conversation up to a position.

    Thinking blocks are not part of this hash. There is a separate hash chain for thinking blocks.
    """

    system: str
    tools: str
    state: bytes = b"messages"
    thinking: str = ""
    """The hash of the last valid thinking block; "" if there is none."""

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> ConversationHash:
        """The hash of a conversation before its first message: system prompt and tools."""
        tools = [tool for tool in body.get("tools") or () if not tool.get("defer_loading")]
        system = blocks_of(body.get("system"))
        return cls(system=content_digest(system).hex(), tools=content_digest(tools).hex())

    def open_message(self, role: str) -> None:
        """Add the start of a message to the hash."""
        self.state = _chain(self.state, role.encode())

    def add(self, block: Block) -> None:
        """Add a block to the hash."""
        if block["type"] not in THINKING:
            self.state = _chain(self.state, content_digest(block))

    def binding(self) -> dict[str, str]:
        """The hashes that a thinking block at this position is bound to."""
        return {"system": self.system, "tools": self.tools, "messages": self.state.hex(), "before": self.thinking}


def _chain(state: bytes, data: bytes) -> bytes:
    return hashlib.blake2b(state + data, digest_size=16).digest()


def _text_digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


@dataclass(slots=True)
class ThinkingSigner:
    """Signs the thinking blocks of a reply in their order."""

    seal: Seal
    model: str
    account: str
    position: ConversationHash

    def sign(self, block: Block) -> Block:
        """The block, with a signature if it is thinking. Call this method for every block of a reply, in order."""
        if block["type"] not in THINKING:
            self.position.add(block)
            return block
        text = block.get("thinking", "")
        value = {"text": _text_digest(text), "model": self.model, "account": self.account, **self.position.binding()}
        signature = self.seal.sign(value)
        self.position.thinking = _text_digest(signature)
        key = "signature" if block["type"] == "thinking" else "data"
        return {**block, key: signature}


@dataclass(kw_only=True, slots=True)
class ThinkingCheck:
    """The thinking blocks that were dropped from a request, and the hash of the whole conversation."""

    position: ConversationHash
    dropped: dict[tuple[int, int], str] = field(default_factory=dict)

    def transformations(self) -> list[dict[str, str]]:
        """The dropped blocks in the format of `input_transformations`."""
        return [
            {"type": "thinking_dropped", "path": f"messages.{number}.content.{index}", "reason": reason}
            for (number, index), reason in self.dropped.items()
        ]


@dataclass(frozen=True, kw_only=True, slots=True)
class ThinkingRules:
    """How the thinking in a request is checked."""

    seal: Seal
    account: str
    drops: bool = False
    """Whether the request asks for `drop_block`."""
    takes_foreign: bool = False
    """Whether signatures that this provider did not write are accepted without a check."""
    enforces: bool = True
    """Whether the prefix check is enforced. Accounts that were made before 2026-08-31 do not enforce it."""


def check_thinking(
    body: Mapping[str, Any], rules: ThinkingRules, start: ConversationHash | None = None
) -> ThinkingCheck:
    """Check every thinking block of a request.

    Raises if the request is refused; otherwise returns the blocks that are left out. If the request begins with a
    compaction block, `start` is the hash after this block, and the block itself is not checked.
    """
    found = ThinkingCheck(position=start or ConversationHash.of(body))
    messages = body["messages"]
    latest = max((at for at, message in enumerate(messages) if message["role"] == "assistant"), default=-1)
    for number, message in enumerate(messages):
        blocks = blocks_of(message.get("content"))
        if start is not None and number == 0 and len(blocks) == 1:
            continue
        found.position.open_message(message["role"])
        for index, block in enumerate(blocks):
            if start is not None and number == index == 0:
                continue
            if block["type"] in THINKING:
                place = f"messages.{number}.content.{index}"
                reason = _mismatch(block, place, body["model"], rules, found.position, is_latest=number == latest)
                if reason:
                    found.dropped[number, index] = reason
            found.position.add(block)
    return found


def _mismatch(  # noqa: PLR0913
    block: Block, place: str, model: str, rules: ThinkingRules, position: ConversationHash, *, is_latest: bool
) -> str:
    """Why a block is left out; "" if it is kept. Raises if the request is refused."""
    kind = block["type"]
    text = block.get("signature") or block.get("data") or ""
    value = rules.seal.read(text)
    if value is None or "text" not in value:
        if rules.takes_foreign:
            position.thinking = _text_digest(text)
            return ""
        refuse("thinking_signature", f"{place}: Invalid `signature` in `{kind}` block")
    if kind == "thinking" and value["text"] != _text_digest(block["thinking"]):
        if is_latest:
            refuse(
                "thinking_modified",
                f"{place}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
                "modified. These blocks must remain as they were in the original response.",
            )
        refuse("thinking_signature", f"{place}: Invalid `signature` in `{kind}` block")
    if not features_of(model).bound_thinking:
        return ""
    reason = _binding_reason(value, model, rules, position)
    if not reason:
        position.thinking = _text_digest(text)
        return ""
    if reason != "prefix_binding_mismatch" or rules.drops:
        return reason
    if rules.enforces:
        _refuse_bound(place, kind, value, position)
    return ""


def _refuse_bound(place: str, kind: str, value: Mapping[str, Any], position: ConversationHash) -> NoReturn:
    refuse(
        "thinking_bound",
        f"{place}: Invalid `signature` in `{kind}` block. The block is bound to a different conversation. Remove the "
        'block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block". That setting requires the '
        f"`{BINDING_BETA}` value in the `anthropic-beta` header. {_difference(value, position)}",
    )


def _binding_reason(value: Mapping[str, Any], model: str, rules: ThinkingRules, position: ConversationHash) -> str:
    maker = value["model"]
    if value["account"] != rules.account and maker.startswith(ACCOUNT_BOUND):
        return "organization_binding_mismatch"
    if maker != model and not maker.startswith(SHARED) and maker not in READABLE.get(model, ()):
        return "model_binding_mismatch"
    expected = position.binding()
    return "" if all(value[key] == expected[key] for key in expected) else "prefix_binding_mismatch"


def _difference(value: Mapping[str, Any], position: ConversationHash) -> str:
    if value["system"] != position.system:
        return "The `system` prompt differs from the one this block was created with."
    if value["tools"] != position.tools:
        return "The `tools` differ from the ones this block was created with."
    if value["messages"] != position.state.hex():
        return "The messages before this block differ from the ones it was created with."
    return "The `thinking` block that preceded this one when it was created is missing from this request."


def without_dropped(body: Mapping[str, Any], dropped: Mapping[tuple[int, int], str]) -> dict[str, Any]:
    """The request without the dropped blocks. The dropped blocks are neither counted nor shown to the model."""
    if not dropped:
        return dict(body)
    messages = []
    for number, message in enumerate(body["messages"]):
        if isinstance(message.get("content"), list):
            kept = [block for index, block in enumerate(message["content"]) if (number, index) not in dropped]
            messages.append({**message, "content": kept})
        else:
            messages.append(message)
    return {**body, "messages": messages}
