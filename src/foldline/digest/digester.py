"""The interface to a digester: one call, one reply, and what is known of its model.

A digester is a function from `DigesterCall` to `DigesterReply`, plain or async, with the name of its model.
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

_MIN_WINDOW = 512
"""A smaller window cannot hold a prompt and a digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DigesterCall:
    """One request to a digester: a system prompt and one user turn, without tools, media or reasoning."""

    system: str
    text: str
    model: str = ""
    max_tokens: int | None = None
    reasoning: str = ""
    """Reasoning effort in the provider's words; empty: the model's default."""
    seconds: float | None = None
    """Timeout of the reply."""
    signal: Any = None
    """The caller's cancellation signal, passed on as it is."""
    prefix: tuple[Message, ...] = ()
    """The session's own view, if the provider has it cached. `text` follows it, `system` is left out, and the session's
    tools stay in the request but may not be called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DigesterReply:
    """One reply of a digester."""

    text: str = ""
    stop: str = ""
    """The stop reason in the provider's words."""
    has_tool_calls: bool = False
    has_reasoning: bool = False
    error: str = ""
    usage: Usage | None = None
    model: str = ""


CompleteFunction: TypeAlias = Callable[[DigesterCall], DigesterReply | Awaitable[DigesterReply]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Digester:
    """A model that writes digests."""

    complete: CompleteFunction
    model: str = ""
    window: int = 0
    """Context window in tokens; by default that of the model."""
    reply: int = 0
    """Longest reply in tokens; by default that of the model."""
    reasoning: str = ""
    count: Callable[[str], int] | None = None
    """Counts tokens; by default as the model does, rounded up."""
    known: Model = field(init=False, repr=False)

    def __post_init__(self) -> None:
        known = model_of(self.model)
        window = max(_MIN_WINDOW, self.window or known.window)
        object.__setattr__(self, "known", known)
        object.__setattr__(self, "window", window)
        object.__setattr__(self, "reply", min(self.reply or known.reply, window // 2))

    @property
    def name(self) -> str:
        """The author's name in the fold record."""
        return self.model or "model"

    def size(self, text: str) -> int:
        """Tokens of a text, rounded up."""
        return self.count(text) if self.count else _counter(self.model).count(text).upper


def with_policy_model(digester: Digester | None, policy: Policy) -> Digester | None:
    """The digester with the model that the policy names, if it names one."""
    if digester is None or policy.digest_model in ("", digester.model):
        return digester
    return Digester(
        complete=digester.complete, model=policy.digest_model, reasoning=digester.reasoning, count=digester.count
    )


@cache
def _counter(model: str) -> Counter:
    from foldline.measure.tokenizers import counter_for  # noqa: PLC0415  # loads a tokenizer

    return counter_for(model)
