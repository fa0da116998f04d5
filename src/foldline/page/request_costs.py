"""Computes what each request and each cache miss of a session cost, and what foldline's folds saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from foldline.message import Usage
from foldline.models.table import Model, Prices, usage_cost
from foldline.models.table import model as model_of
from foldline.plan.fold_cost import is_cache_warm, prices_of, reports_cache, request_cost

_MILLION = 1e6


class RequestCosts:
    """Computes the costs of one session's requests in US dollars. A cost is None if a price is unknown."""

    def __init__(self, used: Model) -> None:
        self.used = used
        self._models = {used.name: used, "": used}

    def _model(self, name: str) -> Model:
        if name not in self._models:
            self._models[name] = model_of(name)
        return self._models[name]

    def cost(self, model: str, usage: Usage | None) -> float | None:
        """The price of a request and its reply."""
        prices = self._model(model).prices
        return None if prices is None or usage is None else usage_cost(usage, prices)

    def miss_cost(self, model: str, usage: Usage | None, missed: int) -> float | None:
        """What a cache miss cost: the price of the missed tokens, minus the price of reading these tokens from the
        cache.
        """
        prices = self._model(model).prices
        if prices is None or usage is None:
            return None
        return missed * max(0.0, _paid(usage, prices) - prices.read) / _MILLION

    def saving(self, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """The tokens and the money that foldline's folds saved, compared with requests without these folds.

        The savings by compactions of the agent, its client or its provider are not included.

        If there are receipts of the proxy, the money comes from the receipts. Otherwise, the money is estimated: the
        cost of requests without foldline's folds at the same times, minus the cost of the requests that were sent. The
        cost of the sent requests includes the cache writes that folds caused.
        """
        sent, whole = sum(row["tokens"] for row in rows), sum(row["whole"] for row in rows)
        found = {"tokens": whole - sent, "sent": sent, "whole": whole}
        paid = [row["untouched_usd"] - row["usd"] for row in rows if row["untouched_usd"] is not None]
        if paid:
            return {**found, "money": sum(paid), "from_receipts": True}
        if self.used.prices is None:
            return {**found, "money": None, "from_receipts": False}
        return {**found, "money": self._estimated_saving(rows), "from_receipts": False}

    def _estimated_saving(self, rows: Sequence[dict[str, Any]]) -> float:
        usages = (Usage(row["fresh"], row["read"], row["written"]) for row in rows if row["exact"])
        prices = prices_of(self.used, is_cached=reports_cache(usages, self.used.cache.min_tokens))
        saved, before = 0.0, None
        for row in rows:
            warm = before is not None and is_cache_warm(prices, before["at"], row["at"])
            last = before or {"fold": 0, "compaction": 0, "tokens": 0, "whole": 0}
            common = min(last["whole"], row["whole"]) if last["compaction"] == row["compaction"] else 0
            whole = request_cost(prices, tokens=row["whole"], common=common, warm=warm)
            if row["exact"]:
                sent = prices.read * row["read"] + prices.write * row["written"] + prices.input * row["fresh"]
            else:
                common = min(last["tokens"], row["tokens"]) if last["fold"] == row["fold"] else 0
                sent = request_cost(prices, tokens=row["tokens"], common=common, warm=warm)
            saved += whole - sent if _is_folded(row) or _is_folded(last) else 0.0
            before = row
        return saved / _MILLION


def _is_folded(row: Mapping[str, Any]) -> bool:
    """Whether a request was sent with a fold that foldline made."""
    return bool(row["fold"] != row["compaction"])


def _paid(usage: Usage, prices: Prices) -> float:
    """The price of a million prompt tokens that were not read from the cache."""
    return max(prices.write, prices.input) if usage.cache_write else prices.input
