"""Answers a request to Anthropic: checks thinking and compaction, counts the tokens, and writes the message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from foldline.testing.provider.account_reply import AccountReply, PromptSize, echo
from foldline.testing.provider.anthropic_blocks import blocks_of
from foldline.testing.provider.anthropic_replies import anthropic_content, anthropic_message, anthropic_usage
from foldline.testing.provider.anthropic_rules import check_anthropic
from foldline.testing.provider.compaction import check_compaction, check_compaction_request, compaction_block
from foldline.testing.provider.error_reply import ErrorReply, RequestRefused
from foldline.testing.provider.model_features import features_of
from foldline.testing.provider.script import ScriptedReply
from foldline.testing.provider.thinking import (
    BINDING_BETA,
    ConversationHash,
    ThinkingCheck,
    ThinkingRules,
    ThinkingSigner,
    check_thinking,
    without_dropped,
)

if TYPE_CHECKING:
    from foldline.testing.provider.account import Account


def answer(
    account: Account, body: Any, betas: tuple[str, ...], endpoint: str, reply: ScriptedReply | None
) -> AccountReply:
    """Judge and answer a request to /v1/messages, or count its tokens for /v1/messages/count_tokens."""
    kind = "count" if endpoint == "count" else "request"
    check_anthropic(body, betas=betas, endpoint=kind, needs_tools=account.needs_tools)
    model = body["model"]
    account.check_model("anthropic", model)
    if body.get("thread"):
        code = "thread_unsupported_request"
        text = "thread: This request can't be used with a thread. Send the whole conversation without `thread`."
        raise RequestRefused(ErrorReply(format="anthropic", rule=code, message=text, code=code))
    if "compaction" in body:
        check_compaction_request(body)
    checked = _check_history(account, body)
    shown = without_dropped(body, checked.dropped)
    pieces = account.reader.pieces("anthropic", shown, is_new_claude=_is_new_claude(model))
    if endpoint == "count":
        return AccountReply(body={"input_tokens": account.total(pieces)})
    size = account.measure("anthropic", model, body, pieces)
    if body.get("compaction"):
        message, output = _compaction_message(account, body, checked.position, reply, size)
    else:
        message, output = _message(account, body, checked.position, reply, size)
    if BINDING_BETA in betas:
        message["input_transformations"] = checked.transformations()
    return account.charge(model, size.tokens, output, message)


def _is_new_claude(model: str) -> bool:
    """Whether a model has the tokenizer of Claude 4.7 and later."""
    return not features_of(model).manual_thinking


def _ratio(account: Account, model: str) -> float:
    """The number of tokens of a model for each token that the account's counter counts."""
    return account.reader.ratio_of("anthropic", is_new_claude=_is_new_claude(model))


def _check_history(account: Account, body: Mapping[str, Any]) -> ThinkingCheck:
    start = check_compaction(body, account.seal, account.name)
    binding = (body.get("thinking") or {}).get("block_binding") or {}
    rules = ThinkingRules(
        seal=account.seal,
        account=account.name,
        drops=binding.get("prefix_mismatch_behavior") == "drop_block",
        takes_foreign=account.takes_foreign,
        enforces=account.enforces_binding,
    )
    return check_thinking(body, rules, start)


def _message(
    account: Account, body: Mapping[str, Any], position: ConversationHash, reply: ScriptedReply | None, size: PromptSize
) -> tuple[dict[str, Any], int]:
    name, model = account.next_name(), body["model"]
    written = reply or ScriptedReply(text=echo(_last_text(body)))
    position.open_message("assistant")
    signer = ThinkingSigner(seal=account.seal, model=model, account=account.name, position=position)
    content = [signer.sign(block) for block in anthropic_content(written, name)]
    output = account.output_tokens(written, _ratio(account, model))
    stop = written.stop or ("tool_use" if written.calls else "end_turn")
    if size.fills_window:
        stop = "model_context_window_exceeded"
    if body["max_tokens"] == 0:
        content, output, stop = [], 0, "max_tokens"
    return anthropic_message(name, model, content, stop, anthropic_usage(size.tokens, output)), output


def _compaction_message(
    account: Account, body: Mapping[str, Any], position: ConversationHash, reply: ScriptedReply | None, size: PromptSize
) -> tuple[dict[str, Any], int]:
    name, model = account.next_name(), body["model"]
    count = len(body["messages"])
    summary = reply.text if reply and reply.text else f"Summary of {count} messages, the last: {_last_text(body)[:200]}"
    block = compaction_block(account.seal, summary=summary, model=model, account=account.name, position=position)
    output = account.output_tokens(ScriptedReply(text=summary), _ratio(account, model))
    usage = anthropic_usage(size.tokens, output)
    return anthropic_message(name, model, [block], "compaction", usage), output


def _last_text(body: Mapping[str, Any]) -> str:
    """The last text in a request: a text block, or a tool result that is a string; "" if there is no such text."""
    for message in reversed(body["messages"]):
        for block in reversed(blocks_of(message.get("content"))):
            if block["type"] == "text":
                return str(block["text"])
            if block["type"] == "tool_result" and isinstance(block.get("content"), str):
                return str(block["content"])
    return ""
