"""Bills requests: tokens by kind, and US dollars by a price list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from foldline.models.table import Prices
from foldline.models.table import model as model_of
from foldline.testing.provider.cache import CachedPrompt


@dataclass(frozen=True, kw_only=True, slots=True)
class BilledRequest:
    """The tokens of a request and its reply, and what they cost in US dollars."""

    model: str
    prompt: CachedPrompt
    output: int
    usd: float


@dataclass(slots=True)
class Bill:
    """All billed requests of an account."""

    requests: list[BilledRequest] = field(default_factory=list)

    @property
    def usd(self) -> float:
        """The price of all requests in US dollars."""
        return sum(request.usd for request in self.requests)

    @property
    def tokens(self) -> CachedPrompt:
        """The prompt tokens of all requests by kind."""
        prompts = [request.prompt for request in self.requests]
        return CachedPrompt(
            plain=sum(prompt.plain for prompt in prompts),
            read=sum(prompt.read for prompt in prompts),
            write_5m=sum(prompt.write_5m for prompt in prompts),
            write_1h=sum(prompt.write_1h for prompt in prompts),
        )

    @property
    def output(self) -> int:
        """The tokens of all replies."""
        return sum(request.output for request in self.requests)

    def __str__(self) -> str:
        tokens = self.tokens
        return (
            f"{len(self.requests)} requests, ${self.usd:.4f}: {tokens.total:,} tokens in ({tokens.read:,} read from "
            f"the cache, {tokens.write_5m + tokens.write_1h:,} written), {self.output:,} out"
        )


def price(model: str, prompt: CachedPrompt, output: int, prices: Mapping[str, Prices]) -> float:
    """The price of a request in US dollars; 0 for a model without known prices."""
    found = prices.get(model) or model_of(model).prices
    if found is None:
        return 0.0
    cost = prompt.plain * found.input + prompt.read * found.read + output * found.output
    cost += prompt.write_5m * found.write + prompt.write_1h * found.write_1h
    return cost / 1_000_000
