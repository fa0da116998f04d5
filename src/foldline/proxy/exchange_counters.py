"""Counts what the proxy has done since it started: requests, folds, faults, tokens, money, and
cache misses by cause.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from foldline.ledger.receipts import Receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeTotals:
    """The sums of all exchanges since the proxy started."""

    requests: int = 0
    folded: int = 0
    """Requests that were sent with the view of a folded session."""
    retried: int = 0
    """Requests that were sent again after the provider refused them as too large."""
    faults: int = 0
    compactions: int = 0
    """Compaction requests of clients that were answered from the ledger."""
    truncated: int = 0
    """Requests for which the provider reported far fewer tokens than were sent."""
    prompt_tokens: int = 0
    """Prompt tokens that the provider reported."""
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    untouched_tokens: int = 0
    """Estimated prompt tokens of the requests that the client sent, before they were folded."""
    usd: float = 0.0
    """Cost in US dollars, for the models with known prices."""
    untouched_usd: float = 0.0
    """Estimated cost in US dollars of the requests that the client sent, before they were folded."""
    missed_tokens: Mapping[str, int] = field(default_factory=dict)
    """Tokens that could have been read from the prompt cache but were not, by cause."""


class ExchangeCounters:
    """The totals. Several threads may add to them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sums: dict[str, Any] = asdict(ExchangeTotals())

    def add(self, **counts: float) -> None:
        """Add to some of the totals."""
        with self._lock:
            for name, count in counts.items():
                self._sums[name] += count

    def set(self, **counts: int) -> None:
        """Set some of the totals."""
        with self._lock:
            self._sums.update(counts)

    def add_receipt(self, receipt: Receipt) -> None:
        """Add the figures of one receipt."""
        usage, miss = receipt.usage, receipt.miss
        self.add(
            prompt_tokens=usage.prompt,
            cache_read_tokens=usage.cache_read,
            cache_write_tokens=usage.cache_write,
            output_tokens=usage.output,
            untouched_tokens=receipt.untouched.prompt,
            usd=receipt.usd or 0.0,
            untouched_usd=receipt.untouched_usd or 0.0,
        )
        if miss is not None:
            with self._lock:
                missed = self._sums["missed_tokens"]
                missed[miss.cause] = missed.get(miss.cause, 0) + miss.tokens

    def totals(self) -> ExchangeTotals:
        """The totals so far."""
        with self._lock:
            return ExchangeTotals(**{**self._sums, "missed_tokens": dict(self._sums["missed_tokens"])})

    def metrics(self) -> str:
        """The totals in the text format of Prometheus."""
        lines = []
        for name, value in asdict(self.totals()).items():
            metric = f"foldline_proxy_{name}_total"
            lines.append(f"# TYPE {metric} counter")
            if isinstance(value, dict):
                lines += [f'{metric}{{cause="{cause}"}} {tokens}' for cause, tokens in value.items()]
            else:
                lines.append(f"{metric} {value}")
        return "\n".join(lines) + "\n"
