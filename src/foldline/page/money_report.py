"""Tokens and money of all sessions, grouped by day, model, project or session.

The report also says what the folds saved, and compares the costs with those of held-out sessions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import sqrt
from statistics import fmean, variance
from typing import Any, NamedTuple

from foldline.cli.shared.files import expand_paths
from foldline.cli.shared.output import without_secrets
from foldline.cli.shared.usage_rows import GROUPS, UsageReader, usage_totals
from foldline.errors import InputError
from foldline.ledger import Store
from foldline.ledger.receipts import Receipt, read_receipts, sum_receipts
from foldline.page.session_tree import parents_of

_RECEIPTS = 1_000
"""Number of receipts that are read at once."""
_LEAST_SESSIONS = 3
"""If one side of the comparison has fewer sessions than this, the 95 % interval is not computed."""
_SPREAD = 1.96
"""Half the width of a 95 % interval, in standard errors."""


def money_report(
    stores: Sequence[Store],
    folders: Sequence[str],
    saved: Mapping[str, Sequence[dict[str, Any]]],
    *,
    by: str,
    source: str,
) -> dict[str, Any]:
    """Tokens and money by group. `source` is `ledger` or `files`.

    `saved` maps the name of a session in the ledger to what its folds saved (see `RequestCosts.saving`).
    """
    if by not in GROUPS:
        raise InputError(f"unknown group {by!r}", hint=f"use one of {', '.join(GROUPS)}")
    if source not in ("ledger", "files"):
        raise InputError(f"unknown source {source!r}", hint="use ledger or files")
    reader = UsageReader()
    if source == "files":
        named, found = expand_paths(folders)
        for path in (*named, *found):
            reader.read_file(path)
    else:
        for store in stores:
            reader.read_ledger(store)
    totals, overall, unpriced = usage_totals(reader.rows, (by,), None)
    parents = parents_of([key[0] for key in totals]) if by == "session" else {}
    receipts = {} if source == "files" else dict(pair for store in stores for pair in all_receipts(store))
    held_out = {name for (_, name), found in receipts.items() if _is_held_out(found)} if by == "session" else set()
    every = [one for found in receipts.values() for one in found]
    answer: dict[str, Any] = without_secrets(
        {
            "by": by,
            "source": source,
            "groups": [
                {
                    "name": key[0],
                    "parent": parents.get(key[0], ""),
                    "is_held_out": key[0] in held_out,
                    **total.as_json(),
                    "saved": _sum(saved.get(key[0], ())) if by == "session" else None,
                }
                for key, total in totals.items()
            ],
            "saved": _sum([one for name in {row.session for row in reader.rows} for one in saved.get(name, ())]),
            "owner": stores[0].owner if source == "ledger" and len(stores) == 1 else None,
            "total": overall.as_json(),
            "without_price": unpriced,
            "unreported": reader.unreported,
            "savings": _savings(every),
            "holdout": holdout_comparison(list(receipts.values())),
        }
    )
    return answer


def _sum(savings: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The sum of what the folds of several sessions saved; None if no price is known, or if there are no folds.

    `from_receipts` is False if a part of the sum is an estimate.
    """
    priced = [one for one in savings if one["money"] is not None]
    if not priced:
        return None
    return {"usd": sum(one["money"] for one in priced), "from_receipts": all(one["from_receipts"] for one in priced)}


def all_receipts(store: Store) -> Iterator[tuple[tuple[str, str], list[Receipt]]]:
    """The receipts of each session of a store, with the owner and the name of the session.

    Sessions without receipts are left out.
    """
    for info in store.sessions():
        found: list[Receipt] = []
        while page := read_receipts(store, info.name, after=found[-1].id if found else 0, limit=_RECEIPTS):
            found += page
        if found:
            yield (store.owner, info.name), found


def _savings(receipts: Sequence[Receipt]) -> dict[str, Any] | None:
    """What the folds of the proxy saved, computed from its receipts; None if there are no receipts."""
    if not receipts:
        return None
    total = sum_receipts(receipts)
    misses: dict[str, dict[str, float]] = {}
    for one in receipts:
        if one.miss is not None:
            row = misses.setdefault(one.miss.cause, {"tokens": 0, "usd": 0.0, "requests": 0})
            row["tokens"] += one.miss.tokens
            row["usd"] += one.miss.usd or 0.0
            row["requests"] += 1
    return {
        "requests": total.requests,
        "folded": total.folded,
        "usd": total.usd,
        "untouched_usd": total.untouched_usd,
        "tokens": total.usage.prompt,
        "untouched_tokens": total.untouched.prompt,
        "misses": [{"cause": cause, **row} for cause, row in sorted(misses.items(), key=lambda item: -item[1]["usd"])],
    }


class _Side(NamedTuple):
    sessions: int
    requests: int
    per_request: float
    variance: float | None


def _is_held_out(receipts: Sequence[Receipt]) -> bool:
    """Whether a session is held out: the proxy did not fold it, so that folded sessions can be compared with it."""
    return any(one.is_held_out for one in receipts)


def holdout_comparison(sessions: Iterable[Sequence[Receipt]]) -> dict[str, Any] | None:
    """Compares the cost of a request in held-out sessions with the cost in all other sessions; None if one group is
    empty.

    In the result, `difference` is the saving per request in US dollars. `low` and `high` are the ends of the 95 %
    interval of `difference`; they are None if a group has too few sessions.
    """
    sides: dict[bool, list[list[float]]] = {False: [], True: []}
    for receipts in sessions:
        prices = [one.usd for one in receipts if one.usd is not None]
        if prices:
            sides[_is_held_out(receipts)].append(prices)
    if not sides[True] or not sides[False]:
        return None
    folded, held = _side(sides[False]), _side(sides[True])
    difference = held.per_request - folded.per_request
    low = high = None
    if folded.variance is not None and held.variance is not None:
        spread = _SPREAD * sqrt(folded.variance / folded.sessions + held.variance / held.sessions)
        low, high = difference - spread, difference + spread
    return {
        "folded": {"sessions": folded.sessions, "requests": folded.requests, "per_request": folded.per_request},
        "held_out": {"sessions": held.sessions, "requests": held.requests, "per_request": held.per_request},
        "difference": difference,
        "low": low,
        "high": high,
    }


def _side(sessions: Iterable[Sequence[float]]) -> _Side:
    groups = list(sessions)
    means, requests = [fmean(prices) for prices in groups], sum(map(len, groups))
    known = len(means) >= _LEAST_SESSIONS
    return _Side(len(means), requests, fmean(means), variance(means) if known else None)
