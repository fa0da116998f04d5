"""Receipts: what a request cost, what the client's own request would have cost, and why the cache missed.

A receipt is stored as an event of the branch that the request continued. It holds figures and positions, never the
text of a message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias

from foldline.ledger.records import Branch
from foldline.ledger.store import Store
from foldline.message import Usage

RECEIPT = "receipt"
"""The kind of the event that stores a receipt."""
MissCause: TypeAlias = Literal[
    "expired", "tools", "system", "history", "model", "settings", "fold", "lookback", "provider"
]
"""Why a prompt cache was not read:

- `expired`: the pause since the previous request was longer than the cache's time to live
- `tools`, `system`, `settings`, `model`: the client changed this field of the request
- `history`: the client changed messages that it had sent before
- `fold`: foldline replaced messages by a digest
- `lookback`: too many blocks were added between two breakpoints
- `provider`: the request begins like the previous one, but the provider did not read its cache
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheMiss:
    """Tokens that were in the prompt cache after the previous request, but were not read by this request."""

    cause: MissCause
    tokens: int
    usd: float | None = None
    """The extra cost of the miss in US dollars, compared with reading the tokens from the cache.

    None if the model has no known price.
    """
    path: str = ""
    """The first part in which the request differs from the previous request, such as `messages[3]`; "" if equal."""
    offset: int = -1
    """Index of the first byte at which the request's body differs from the previous request's body; -1 if none."""
    pause_s: float = 0.0
    """Seconds since the previous request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The cost of one request, and the estimated cost of the request as the client wrote it."""

    usage: Usage
    """The provider's figures for the request that was sent."""
    untouched: Usage
    """The estimated figures for the client's own request. The estimate assumes that every request was sent as the
    client wrote it.

    While nothing is folded, the estimate equals `usage`.
    """
    model: str = ""
    format: str = ""
    usd: float | None = None
    """The price of the request and its reply in US dollars; None if the model has no known price."""
    untouched_usd: float | None = None
    untouched_fits: bool = True
    """Whether the client's own request would have fitted the model's window."""
    sent_bytes: int = 0
    client_bytes: int = 0
    is_folded: bool = False
    is_retried: bool = False
    """Whether the provider first refused the request as too large, so that it was folded and sent again."""
    is_held_out: bool = False
    """Whether the session belongs to the share of sessions that is never folded, for comparison."""
    miss: CacheMiss | None = None
    sent_at: float = 0.0
    """When the request was sent, in seconds since 1970."""
    field_hashes: Mapping[str, str] = field(default_factory=dict)
    """Hashes of tools, system text, settings and fold, with which the next request is compared."""
    recall_calls: int = 0
    """Number of calls of the recall tool that the proxy answered.

    If the number is above 0, `usage` is the sum over all requests that the proxy sent to get the reply.
    """
    id: int = 0
    """The id of the stored receipt; later receipts have higher ids. 0 if the receipt is not stored."""
    at: float = 0.0
    """When the receipt was stored, in seconds since 1970."""
    branch: str = ""


_STORED = tuple(field.name for field in fields(Receipt) if field.name not in ("id", "at", "branch"))
"""The fields of a receipt that are stored in the body of its event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptSum:
    """The sum of receipts. Only receipts with known prices are included in the sums of money."""

    requests: int
    folded: int
    usage: Usage
    untouched: Usage
    usd: float
    untouched_usd: float
    unpriced: int
    """Number of receipts of models without a known price."""
    misses: Mapping[str, int]
    """Number of missed tokens for each cause."""


def add_receipt(store: Store, branch: Branch, receipt: Receipt) -> None:
    """Store the receipt of a request that continued a branch."""
    store.event(branch, RECEIPT, receipt_body(receipt))


def receipt_body(receipt: Receipt) -> dict[str, Any]:
    """The body of the event in which a receipt is stored."""
    value = {name: getattr(receipt, name) for name in _STORED}
    return {**value, "miss": asdict(receipt.miss) if receipt.miss is not None else None}


def read_receipts(store: Store, session: str, *, after: int = 0, limit: int = 1_000) -> list[Receipt]:
    """The receipts of all branches of a session, oldest first.

    Only receipts with an id above `after` are returned, and at most `limit` receipts.
    """
    found = [
        replace(_receipt(event.body), id=event.id, at=event.at, branch=branch.name)
        for branch in store.branches(session)
        for event in store.events(branch, after=after, limit=limit, kind=RECEIPT)
    ]
    return sorted(found, key=lambda receipt: receipt.id)[:limit]


def last_receipt(store: Store, branch: Branch) -> Receipt | None:
    """The newest receipt of a branch; None if the branch has none."""
    event = store.last_event(branch, RECEIPT)
    return replace(_receipt(event.body), id=event.id, at=event.at, branch=branch.name) if event is not None else None


def sum_receipts(receipts: Iterable[Receipt]) -> ReceiptSum:
    """The sum of receipts."""
    total: dict[str, Any] = {"requests": 0, "folded": 0, "usd": 0.0, "untouched_usd": 0.0, "unpriced": 0}
    usage, untouched, misses = Usage(), Usage(), dict[str, int]()
    for one in receipts:
        total["requests"] += 1
        total["folded"] += one.is_folded
        usage, untouched = added(usage, one.usage), added(untouched, one.untouched)
        if one.usd is None or one.untouched_usd is None:
            total["unpriced"] += 1
        else:
            total["usd"] += one.usd
            total["untouched_usd"] += one.untouched_usd
        if one.miss is not None:
            misses[one.miss.cause] = misses.get(one.miss.cause, 0) + one.miss.tokens
    return ReceiptSum(**total, usage=usage, untouched=untouched, misses=misses)


def added(one: Usage, other: Usage) -> Usage:
    """The sum of two usages."""
    return Usage(*(left + right for left, right in zip(one, other, strict=True)))


def _receipt(body: Any) -> Receipt:
    """The receipt in the body of an event. Fields that this version does not know are left out."""
    known = {key: value for key, value in body.items() if key in Receipt.__dataclass_fields__}
    miss = known.get("miss")
    if miss is not None:
        known["miss"] = CacheMiss(**{key: miss[key] for key in CacheMiss.__dataclass_fields__ if key in miss})
    return Receipt(**{**known, "usage": Usage(*known["usage"]), "untouched": Usage(*known["untouched"])})
