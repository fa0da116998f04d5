"""Counts what the proxy has done since it started: requests, folds, faults, tokens, money, and cache misses by cause.

The workers keep their counts in shared memory, with a slot for each worker. So every worker can report the sum over all
workers. A worker that replaces a dead worker continues the counts of the dead worker.
"""

from __future__ import annotations

import mmap
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, get_args

from foldline.ledger.receipts import MissCause, Receipt


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
    """Estimated number of prompt tokens that the client's own requests would have had without folds."""
    usd: float = 0.0
    """Cost in US dollars, for the models with known prices."""
    untouched_usd: float = 0.0
    """Estimated cost in US dollars that the client's own requests would have had without folds."""
    missed_tokens: Mapping[str, int] = field(default_factory=dict)
    """Tokens that could have been read from the prompt cache but were not, by cause."""


_MISSED = "missed_tokens"
_COUNTS = tuple(one.name for one in fields(ExchangeTotals) if one.name != _MISSED)
_NAMES = (*_COUNTS, *(f"{_MISSED} {cause}" for cause in get_args(MissCause)))
_PLACES = {name: place for place, name in enumerate(_NAMES)}
_DOLLARS = frozenset({"usd", "untouched_usd"})


class ExchangeCounters:
    """Keeps the totals. Several threads may add to them.

    `workers` is the number of worker processes. The shared memory is made before the workers are forked. After the
    fork, each worker sets `worker` to its own index.
    """

    def __init__(self, workers: int = 1) -> None:
        self._lock = threading.Lock()
        self._values = memoryview(mmap.mmap(-1, workers * len(_NAMES) * 8)).cast("d")
        self.worker = 0

    def add(self, **counts: float) -> None:
        """Add to some of the totals."""
        for name, count in counts.items():
            self._add(name, count)

    def _add(self, name: str, count: float) -> None:
        with self._lock:
            self._values[self.worker * len(_NAMES) + _PLACES[name]] += count

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
            self._add(f"{_MISSED} {miss.cause}", miss.tokens)

    def totals(self) -> ExchangeTotals:
        """The totals of all workers so far."""
        sums = {name: sum(self._values[place :: len(_NAMES)]) for name, place in _PLACES.items()}
        missed = {cause: round(sums[f"{_MISSED} {cause}"]) for cause in get_args(MissCause)}
        counts: dict[str, Any] = {name: sums[name] if name in _DOLLARS else round(sums[name]) for name in _COUNTS}
        return ExchangeTotals(**counts, missed_tokens={cause: tokens for cause, tokens in missed.items() if tokens})

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
