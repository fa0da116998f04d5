"""The seam to a digester: one request, one reply, and what is known of who is asked.

A digester is a function from `Ask` to `Answer`, plain or async, with the name of its model beside it. The name tells
its window and its prices; both can be given instead. Whatever stands behind it (an SDK, a local model, a host's own
completer, a fake) sees nothing but these values.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias

from foldline.measure.estimator import Counter
from foldline.message import Message, Usage
from foldline.models.table import Model
from foldline.models.table import model as model_of
from foldline.policy import Policy

_LEAST_WINDOW = 512
"""In less there is no room for a prompt and a digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DigesterCall:
    """One request: a brief and one user turn. There is nothing in it to call, no media and no reasoning."""

    system: str
    text: str
    model: str = ""
    max_tokens: int | None = None
    reasoning: str = ""
    """How hard to think, in the provider's words; empty: as the model does by itself."""
    seconds: float | None = None
    """How long the reply may take; nobody waits longer."""
    signal: Any = None
    """The caller's own sign to stop, handed on as it is."""
    prefix: tuple[Message, ...] = ()
    """The session's own view, where sending it again is cheaper because the provider has it cached: `text` follows it,
    `system` is left out, and the tools stay as they are but may not be called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DigesterReply:
    """One reply."""

    text: str = ""
    stop: str = ""
    """Why it ended, in the provider's word."""
    calls: bool = False
    """Whether it calls a tool."""
    thought: bool = False
    """Whether it holds reasoning."""
    error: str = ""
    """What the provider says went wrong."""
    usage: Usage | None = None
    model: str = ""


CompleteFunction: TypeAlias = Callable[[DigesterCall], DigesterReply | Awaitable[DigesterReply]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Digester:
    """Who writes digests."""

    complete: CompleteFunction
    model: str = ""
    window: int = 0
    """How much it can read; by default what is known of its model."""
    reply: int = 0
    """The longest reply it gives; by default what is known of its model."""
    reasoning: str = ""
    count: Callable[[str], int] | None = None
    """How it counts; by default as its model does, rounded up."""
    known: Model = field(init=False, repr=False)

    def __post_init__(self) -> None:
        known = model_of(self.model)
        window = max(_LEAST_WINDOW, self.window or known.window)
        object.__setattr__(self, "known", known)
        object.__setattr__(self, "window", window)
        object.__setattr__(self, "reply", min(self.reply or known.reply, window // 2))

    @property
    def name(self) -> str:
        """How it is called in the record."""
        return self.model or "model"

    def size(self, text: str) -> int:
        """Tokens of a text, rather too many than too few."""
        return self.count(text) if self.count else _counter(self.model).count(text).upper


def with_policy_model(digester: Digester | None, policy: Policy) -> Digester | None:
    """The digester under a policy: with the model that the policy names, if it names one."""
    if digester is None or policy.digest_model in ("", digester.model):
        return digester
    return Digester(
        complete=digester.complete, model=policy.digest_model, reasoning=digester.reasoning, count=digester.count
    )


@cache
def _counter(model: str) -> Counter:
    from foldline.measure.tokenizers import counter_for  # noqa: PLC0415 (whoever asks no model loads no tokenizer)

    return counter_for(model)
