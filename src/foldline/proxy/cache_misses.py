"""Finds the cause of a prompt cache miss, and computes the extra cost of a request after the cache has expired."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from foldline.ledger.receipts import CacheMiss, MissCause, Receipt
from foldline.measure.paid_again import paid_again
from foldline.message import Usage
from foldline.models.table import Model
from foldline.models.table import model as model_of
from foldline.proxy.request_difference import added_blocks, first_difference, repeated_share
from foldline.wire.formats import request_format

HOUR = 3_600.0
FOLD = "fold"
"""The name under which `NewRequest.hashes` and `Receipt.field_hashes` contain the hash of the fold."""
_CHANGES: tuple[MissCause, ...] = ("tools", "system", "settings", "fold")
"""The parts of a request that can change, in the order in which a prompt cache compares them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdPrice:
    """How much more the next request costs if the prompt cache has expired by then."""

    expires_at: float
    """Seconds since 1970."""
    tokens: int
    usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredRequest:
    """The last request of a conversation that already has a receipt."""

    receipt: Receipt
    body: bytes = b""
    """The body that was sent; empty if another process sent the request."""
    cold: ColdPrice | None = None
    """How much more the next request costs if the prompt cache has expired by then; None if nothing was cached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRequest:
    """A request whose receipt is being made. The provider has already answered it."""

    body: bytes
    format: str
    model: str
    usage: Usage
    sent_at: float
    hashes: Mapping[str, str]
    is_edited: bool = False
    """Whether the client changed messages that it had sent before."""


def answered_request(receipt: Receipt, body: bytes = b"") -> AnsweredRequest:
    """The answered request to which a receipt belongs."""
    return AnsweredRequest(receipt=receipt, body=body, cold=cold_price(receipt))


def cached_tokens(usage: Usage, model: Model, format: str) -> int:
    """The number of tokens that a prompt cache holds after a request with this usage."""
    if format == "anthropic":
        return usage.cache_read + usage.cache_write
    is_cached = model.vendor and usage.prompt >= model.cache.min_tokens
    return usage.prompt if is_cached or usage.cache_read else 0


def ttl_seconds(usage: Usage, model: Model) -> float:
    """The number of seconds for which a prompt cache keeps the tokens that a request read or wrote."""
    return HOUR if usage.cache_write_1h else float(model.cache.ttl_seconds)


def cold_price(receipt: Receipt) -> ColdPrice | None:
    """How much more the next request after a receipt costs if the prompt cache has expired by then.

    None if nothing was cached.
    """
    model = model_of(receipt.model)
    tokens = cached_tokens(receipt.usage, model, receipt.format)
    if not tokens:
        return None
    expires_at = receipt.sent_at + ttl_seconds(receipt.usage, model)
    return ColdPrice(expires_at=expires_at, tokens=tokens, usd=miss_cost(tokens, receipt.usage, model))


def miss_cost(tokens: int, usage: Usage, model: Model) -> float | None:
    """The extra cost of tokens that are not read from the cache, in US dollars; None if the prices are unknown."""
    prices = model.prices
    if prices is None:
        return None
    written = prices.write_1h if usage.cache_write_1h else prices.write
    paid = written if usage.cache_write or usage.cache_read else prices.input
    return tokens * max(0.0, max(paid, prices.input) - prices.read) / 1_000_000


def find_miss(previous: AnsweredRequest, request: NewRequest) -> CacheMiss | None:
    """The number of tokens that a request repeats but did not read from the cache, and the cause.

    Returns None if the number of missed tokens is too small to be reported.
    """
    before = previous.receipt
    model = model_of(before.model)
    held = cached_tokens(before.usage, model, before.format)
    missed = paid_again(held, request.usage)
    if missed and previous.body and before.format == request.format:
        share = repeated_share(previous.body, request.body, request_format(request.format))
        missed = paid_again(held, request.usage, left=round((1 - share) * held))
    if not missed:
        return None
    pause = max(0.0, request.sent_at - before.sent_at)
    cause, path, offset = _cause(previous, request, pause > ttl_seconds(before.usage, model))
    return CacheMiss(
        cause=cause,
        tokens=missed,
        usd=miss_cost(missed, request.usage, model_of(request.model)),
        path=path,
        offset=offset,
        pause_s=round(pause, 3),
    )


def _cause(previous: AnsweredRequest, request: NewRequest, is_expired: bool) -> tuple[MissCause, str, int]:
    """The cause of a miss, and the path and byte offset at which the request differs from the previous request.

    Path and offset are "" and -1 if the requests do not differ.
    """
    before = previous.receipt
    if before.model != request.model:
        return "model", "model", -1
    if is_expired:
        return "expired", "", -1
    changed = [name for name in _CHANGES if before.field_hashes.get(name) != request.hashes.get(name)]
    found = None
    if previous.body and before.format == request.format:
        found = first_difference(previous.body, request.body, request_format(request.format))
    path, offset = (found.path, found.offset) if found is not None else ("", -1)
    if changed:
        return changed[0], path, offset
    if found is not None and found.kind == "system":
        return "system", path, offset
    if found is not None or request.is_edited:
        return "history", path, offset
    return ("lookback" if _is_far(previous, request) else "provider"), "", -1


def _is_far(previous: AnsweredRequest, request: NewRequest) -> bool:
    """Whether the request added so many blocks that the cache does not find the prefix of the previous request.

    The cache searches only a limited number of blocks before a breakpoint.
    """
    limit = model_of(request.model).cache.lookback_blocks
    if not limit or not previous.body:
        return False
    return added_blocks(previous.body, request.body, request_format(request.format)) >= limit
