"""The simulated OpenAI account: it stores responses, encrypts items, compacts and completes conversations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from foldline.testing.provider.account_reply import AccountReply, echo
from foldline.testing.provider.compaction import check_encrypted_items, encrypted_item
from foldline.testing.provider.error_reply import ErrorReply, RequestRefused
from foldline.testing.provider.model_features import features_of
from foldline.testing.provider.openai_chat_rules import check_openai_chat
from foldline.testing.provider.openai_replies import (
    chat_completion,
    chat_usage,
    response_body,
    response_items,
    responses_usage,
)
from foldline.testing.provider.openai_responses_rules import check_openai_responses, input_items, item_type
from foldline.testing.provider.script import ScriptedReply

if TYPE_CHECKING:
    from foldline.testing.provider.account import Account

RESPONSES = "openai_responses"
Item = dict[str, Any]


@dataclass(slots=True)
class StoredResponses:
    """The responses and items that an account stores, by id. For each output item, the reasoning item that it needs is
    stored, too.
    """

    histories: dict[str, list[Item]] = field(default_factory=dict)
    items: dict[str, Item] = field(default_factory=dict)
    reasoning_of: dict[str, str] = field(default_factory=dict)

    def remember(self, items: list[Item]) -> None:
        """Record which reasoning item belongs to each output item of one response."""
        reasoning = ""
        for item in items:
            name = item.get("id") or ""
            if item_type(item) == "reasoning":
                reasoning = name
            elif name and reasoning:
                self.reasoning_of[name] = reasoning


def answer(account: Account, format: str, body: Any, endpoint: str, reply: ScriptedReply | None) -> AccountReply:
    """Judge and answer a request to one of OpenAI's endpoints."""
    if format == RESPONSES:
        return _answer_responses(account, body, endpoint, reply)
    check_openai_chat(body)
    model = body["model"]
    account.check_model(format, model)
    size = account.measure(format, model, body, account.reader.pieces(format, body))
    written = reply or ScriptedReply(text=echo(_text(body["messages"][-1].get("content"))))
    output, reasoning = account.output_tokens(written), account.reader.count(written.thinking)
    stop = written.stop or ("tool_calls" if written.calls else "stop")
    writes = features_of(model).paid_cache_writes
    usage = chat_usage(size.tokens, output, reasoning, reports_writes=writes)
    return account.charge(model, size.tokens, output, chat_completion(account.next_name(), model, written, stop, usage))


def _answer_responses(account: Account, body: Any, endpoint: str, reply: ScriptedReply | None) -> AccountReply:
    known = account.stored
    earlier = _earlier(known, body) if isinstance(body, dict) else None
    check_openai_responses(body, earlier=earlier, reasoning_of={} if earlier else known.reasoning_of)
    model = body["model"]
    account.check_model(RESPONSES, model)
    items = [_resolve(known, item) for item in input_items(body)]
    check_encrypted_items(items, account.seal, account.name, takes_foreign=account.takes_foreign)
    full = {**body, "input": [*(earlier or ()), *items]}
    pieces = account.reader.pieces(RESPONSES, full)
    if endpoint == "count":
        return AccountReply(body={"object": "response.input_tokens", "input_tokens": account.total(pieces)})
    size = account.measure(RESPONSES, model, full, pieces)
    name = account.next_name()
    compacts = endpoint == "compact" or (items and item_type(items[-1]) == "compaction_trigger")
    if compacts:
        output, written = [_compaction(account, name, full["input"])], ScriptedReply(text="compacted")
    else:
        written = reply or ScriptedReply(text=echo(_text(items[-1].get("content")) if items else ""))
        hidden = encrypted_item(account.seal, kind="reasoning", text=written.thinking, account=account.name)
        output = response_items(name, written, hidden)
        if _is_due(body, size.tokens.total):
            output.insert(0, _compaction(account, name, full["input"]))
    known.remember(output)
    if body.get("store") is not False:
        known.histories[f"resp_{name}"] = [*full["input"], *output]
        known.items |= {item["id"]: item for item in output if item.get("id")}
    tokens, thoughts = account.output_tokens(written), account.reader.count(written.thinking)
    usage = responses_usage(size.tokens, tokens, thoughts, reports_writes=features_of(model).paid_cache_writes)
    fields: Item = {"previous_response_id": body.get("previous_response_id"), "store": body.get("store") is not False}
    if endpoint == "compact":
        users = [item for item in full["input"] if item.get("role") == "user"]
        found = {"id": f"resp_{name}", "object": "response.compaction", "created_at": 0, "usage": usage}
        return account.charge(model, size.tokens, tokens, {**found, "output": [*users, *output]})
    return account.charge(model, size.tokens, tokens, response_body(name, model, output, usage, **fields))


def _compaction(account: Account, name: str, items: list[Item]) -> Item:
    hidden = encrypted_item(account.seal, kind="compaction", text=repr(items), account=account.name)
    return {"type": "compaction", "id": f"cmp_{name}", "encrypted_content": hidden}


def _is_due(body: Mapping[str, Any], tokens: int) -> bool:
    """Whether the request asks the provider to compact a prompt with this number of tokens."""
    edits = body.get("context_management") or ()
    return any(edit["type"] == "compaction" and tokens >= (edit.get("compact_threshold") or 0) for edit in edits)


def _earlier(known: StoredResponses, body: Mapping[str, Any]) -> list[Item] | None:
    """The items of the conversation that `previous_response_id` names; None if the request has no such field."""
    name = body.get("previous_response_id")
    if not isinstance(name, str):
        return None
    if name not in known.histories:
        error = ErrorReply(
            format=RESPONSES,
            rule="previous_response",
            message=f"Previous response with id '{name}' not found.",
            code="previous_response_not_found",
            param="previous_response_id",
        )
        raise RequestRefused(error)
    return known.histories[name]


def _resolve(known: StoredResponses, item: Item) -> Item:
    """The stored item that a reference names; an item that is not a reference is returned unchanged."""
    if item_type(item) != "item_reference":
        return item
    if item["id"] not in known.items:
        text = f"Item with id '{item['id']}' not found."
        raise RequestRefused(ErrorReply(format=RESPONSES, rule="reference", message=text, status=404, param="input"))
    return known.items[item["id"]]


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    texts = [part.get("text") for part in content or () if isinstance(part, dict)]
    return str(next((text for text in reversed(texts) if text), ""))
