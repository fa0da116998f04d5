"""Counts what the proxy did: requests, folds, faults, and tokens sent against tokens of the client's own requests."""

from __future__ import annotations

import threading
from dataclasses import asdict, dataclass

from foldline.message import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeTotals:
    """The sums of all exchanges since the proxy started."""

    requests: int = 0
    folded: int = 0
    """Requests that were sent with the view of a folded session."""
    retried: int = 0
    """Requests that were sent again after the provider refused them as too large."""
    faults: int = 0
    prompt_tokens: int = 0
    """Prompt tokens that the provider reported."""
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    untouched_tokens: int = 0
    """An estimate of the prompt tokens of the client's own requests, from the ratio of the bytes."""


class ExchangeCounters:
    """The totals, which several threads add to."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sums = asdict(ExchangeTotals())

    def add(self, **counts: int) -> None:
        """Add to some of the totals."""
        with self._lock:
            for name, count in counts.items():
                self._sums[name] += count

    def add_usage(self, usage: Usage, *, sent_bytes: int, client_bytes: int) -> None:
        """Add the usage of one exchange."""
        untouched = usage.prompt * client_bytes // max(1, sent_bytes) if client_bytes > sent_bytes else usage.prompt
        self.add(
            prompt_tokens=usage.prompt,
            cache_read_tokens=usage.cache_read,
            cache_write_tokens=usage.cache_write,
            output_tokens=usage.output,
            untouched_tokens=untouched,
        )

    def totals(self) -> ExchangeTotals:
        """The totals so far."""
        with self._lock:
            return ExchangeTotals(**self._sums)

    def metrics(self) -> str:
        """The totals in the text format of Prometheus."""
        lines = []
        for name, value in asdict(self.totals()).items():
            lines += [f"# TYPE foldline_proxy_{name}_total counter", f"foldline_proxy_{name}_total {value}"]
        return "\n".join(lines) + "\n"
