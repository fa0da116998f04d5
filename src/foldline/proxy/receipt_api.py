"""Receipts as JSON: totals since the proxy started, receipts of a session, and the extra cost of an expired cache."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from foldline import ledger
from foldline.ledger import Store
from foldline.ledger.receipts import Receipt, last_receipt, read_receipts, sum_receipts
from foldline.proxy.cache_misses import cold_price
from foldline.proxy.exchange_counters import ExchangeCounters

MAX_ROWS = 1_000
_Answer = tuple[int, Any]
_Read = Callable[[str, Mapping[str, str]], _Answer]


def receipt_reads(store: Store, counters: ExchangeCounters) -> dict[str, _Read]:
    """The functions that answer the paths `receipt`, `receipts/SESSION` and `cache/SESSION` below /foldline/api/."""

    def receipts(name: str, query: Mapping[str, str]) -> _Answer:
        try:
            after, limit = int(query.get("after", "0")), int(query.get("limit", str(MAX_ROWS)))
        except ValueError:
            return 400, {"error": "after and limit must be numbers"}
        if not 0 <= after < 2**62 or not 0 < limit <= MAX_ROWS:
            return 400, {"error": f"after must be 0 or more, and limit must be between 1 and {MAX_ROWS:,}"}
        found = [one for own in _stores_with(store, name) for one in read_receipts(own, name, after=after, limit=limit)]
        if not found and not _stores_with(store, name):
            return 404, {"error": "unknown session"}
        return 200, {"sum": _value(sum_receipts(found)), "receipts": [_value(one) for one in found]}

    def cache(name: str, _query: Mapping[str, str]) -> _Answer:
        newest = _newest(store, name)
        price = cold_price(newest) if newest is not None else None
        if price is None:
            return 404, {"error": "the state of this session's cache is unknown"}
        return 200, {**asdict(price), "is_cold": time.time() > price.expires_at}

    return {"receipt": lambda _name, _query: (200, asdict(counters.totals())), "receipts": receipts, "cache": cache}


def _stores_with(store: Store, session: str) -> list[Store]:
    """The stores of all tenants that have a session with this name."""
    stores = [ledger.for_owner(store, owner) for owner in ledger.owners(store)]
    return [own for own in stores if own.branches(session)]


def _newest(store: Store, session: str) -> Receipt | None:
    """The newest receipt of all sessions with this name, in all branches and for all tenants."""
    found = [last_receipt(own, branch) for own in _stores_with(store, session) for branch in own.branches(session)]
    return max((one for one in found if one is not None), key=lambda one: one.id, default=None)


def _value(found: Any) -> dict[str, Any]:
    """A receipt, or a sum of receipts, as a JSON value. Usages become objects."""
    value = asdict(found)
    value.pop("field_hashes", None)
    return {**value, "usage": found.usage._asdict(), "untouched": found.untouched._asdict()}
