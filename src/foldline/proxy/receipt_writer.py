"""Makes the receipt of an exchange: what the request cost, and what the client's own request would have cost.

The client's own request is the request as the client made it, before foldline folded it. Its figures are computed from
the previous receipt. Between two folds, the request that was sent and the client's own request grow by the same number
of tokens. If a fold was made since the previous receipt, the growth is estimated from the number of bytes. The cache is
assumed to be as if foldline had never folded a request.
"""

from __future__ import annotations

from dataclasses import replace

from foldline.ledger.receipts import CacheMiss, Receipt, added
from foldline.message import Usage
from foldline.models.table import model as model_of
from foldline.models.table import usage_cost
from foldline.proxy.cache_misses import FOLD, NewRequest, answered_request, cached_tokens, find_miss, ttl_seconds
from foldline.proxy.conversation import ClientConversation
from foldline.proxy.planned_request import Ticket
from foldline.proxy.recall_relay import RecallTrail
from foldline.proxy.request_difference import field_hashes


def make_receipt(ticket: Ticket, conversation: ClientConversation, usage: Usage, *, window: int = 0) -> Receipt:
    """The receipt of an exchange. `window` is the configured window in tokens; 0 means the model's own window."""
    history, previous = ticket.located.history, conversation.sent
    hashes = field_hashes(history.scan, history.format)
    if ticket.is_folded:
        hashes[FOLD] = ticket.fold_key
    request = NewRequest(
        body=ticket.sent_body or history.scan.data,
        format=ticket.format,
        model=ticket.model,
        usage=usage,
        sent_at=ticket.sent_at,
        hashes=hashes,
        is_edited=ticket.is_edited,
    )
    miss = find_miss(previous, request) if previous is not None else None
    client_bytes = len(history.scan.data)
    sent_bytes = len(ticket.sent_body) or client_bytes
    untouched = usage
    if ticket.is_folded:
        before = previous.receipt if previous is not None else None
        untouched = untouched_usage(before, request, miss, sent_bytes=sent_bytes, client_bytes=client_bytes)
    model = model_of(ticket.model)
    prices = model.prices
    receipt = Receipt(
        usage=usage,
        untouched=untouched,
        model=ticket.model,
        format=ticket.format,
        usd=usage_cost(usage, prices) if prices is not None else None,
        untouched_usd=usage_cost(untouched, prices) if prices is not None else None,
        untouched_fits=untouched.prompt <= (window or model.window),
        sent_bytes=sent_bytes,
        client_bytes=client_bytes,
        is_folded=ticket.is_folded,
        is_retried=ticket.is_retried,
        is_held_out=ticket.is_held_out,
        miss=miss,
        sent_at=ticket.sent_at,
        field_hashes=hashes,
    )
    conversation.sent = answered_request(receipt, request.body)
    return _with_recall(receipt, ticket.recall)


def _with_recall(receipt: Receipt, trail: RecallTrail | None) -> Receipt:
    """The receipt, with the cost of the additional requests that recall calls caused."""
    if trail is None or not trail.calls:
        return receipt
    prices, usage = model_of(receipt.model).prices, receipt.usage
    output = sum(one.output for one in trail.usages)  # the usage of the joined reply already includes this output
    for one in trail.usages:
        usage = added(usage, one)
    usage = usage._replace(output=usage.output - output)
    usd = usage_cost(usage, prices) if prices is not None else None
    return replace(receipt, usage=usage, usd=usd, recall_calls=trail.calls)


def untouched_usage(
    before: Receipt | None, request: NewRequest, miss: CacheMiss | None, *, sent_bytes: int, client_bytes: int
) -> Usage:
    """An estimate of the usage that the client's own request would have had, under the same cache rules."""
    usage, model = request.usage, model_of(request.model)
    total = max(usage.prompt, _untouched_total(before, request, sent_bytes=sent_bytes, client_bytes=client_bytes))
    is_cached = cached_tokens(usage, model, request.format) > 0
    if not is_cached:
        return replace_prompt(usage, fresh=total, read=0, written=0)
    read = usage.cache_read
    if before is not None and before.model == request.model:
        held = cached_tokens(before.untouched, model, request.format)
        is_warm = request.sent_at - before.sent_at <= ttl_seconds(before.usage, model)
        if miss is None or miss.cause in ("fold", "lookback"):
            read = held if is_warm else read
        elif miss.cause == "history":
            sent = cached_tokens(before.usage, model, before.format)
            read = held - (min(sent, usage.prompt) - usage.cache_read)
    if request.format == "anthropic" or usage.cache_write:
        read = max(0, min(read, total - usage.input))
        return replace_prompt(usage, fresh=usage.input, read=read, written=total - read - usage.input)
    read = max(0, min(read, total))
    return replace_prompt(usage, fresh=total - read, read=read, written=0)


def replace_prompt(usage: Usage, *, fresh: int, read: int, written: int) -> Usage:
    """A copy of a usage with new figures for the prompt. If `usage` has tokens that are cached for an hour, all
    `written` tokens count as cached for an hour.
    """
    hour = written if usage.cache_write_1h else 0
    return usage._replace(input=fresh, cache_read=read, cache_write=written, cache_write_1h=hour)


def _untouched_total(before: Receipt | None, request: NewRequest, *, sent_bytes: int, client_bytes: int) -> int:
    """An estimate of the number of prompt tokens that the client's own request would have had."""
    prompt = request.usage.prompt
    if before is None:
        return prompt * client_bytes // max(1, sent_bytes)
    same_fold = before.field_hashes.get(FOLD) == request.hashes.get(FOLD)
    if same_fold and not request.is_edited and before.model == request.model:
        return before.untouched.prompt + prompt - before.usage.prompt
    ratio = before.untouched.prompt / max(1, before.client_bytes)
    return before.untouched.prompt + round((client_bytes - before.client_bytes) * ratio)
