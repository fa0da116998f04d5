"""The shapes and seams of the window budget: what is configured, what is found, and where a host plugs in.

Nothing here does anything beyond refusing settings that cannot work.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, get_args

from foldline.compat.window_budget.messages import AgentMessage
from foldline.errors import ConfigError

CondenseScope: TypeAlias = Literal["session", "branch"]
"""The session that goes on, or a branch that was left."""

Condenser: TypeAlias = Callable[[list[AgentMessage]], list[AgentMessage] | Awaitable[list[AgentMessage]]]
"""List in, list out: the very same list when there is nothing to do."""


@dataclass(frozen=True, slots=True)
class BudgetPolicy:
    """When to fold, and how much of the newest part stays word for word."""

    trigger_ratio: float
    """Share of the usable window above which a fold is due, in (0, 1]."""
    keep_recent: int
    """Tokens."""
    reserve_tokens: int | None = None
    """Taken off the window first."""

    def __post_init__(self) -> None:
        if not 0 < self.trigger_ratio <= 1:
            raise ConfigError(f"trigger_ratio must be above 0 and at most 1, not {self.trigger_ratio}")
        sizes: dict[str, Any] = {"keep_recent": self.keep_recent, "reserve_tokens": self.reserve_tokens or 0}
        for name, value in sizes.items():
            if not isinstance(value, int) or value < 0:
                raise ConfigError(f"{name} must be a number of tokens, not {value!r}")


@dataclass(frozen=True, slots=True)
class TokenEstimate:
    """How full the window is."""

    context_tokens: int
    context_window: int
    anchored: bool
    """Whether the figure rests on the provider's own usage rather than on an estimate alone."""


@dataclass(frozen=True, slots=True)
class CondensePlan:
    """Where to cut: `kept` is `messages[cut:]`, `dropped` is `messages[:cut]`. A cut of 0 condenses nothing."""

    cut: int
    kept: Sequence[Any]
    dropped: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Summary:
    """The one message that stands for others."""

    message: Any
    covered_count: int
    """How many messages it replaces."""
    cause: str = ""
    """Why foldline wrote it and not the model; empty when the model did."""


class CompleteFn(Protocol):
    """The model: one request, one reply."""

    def __call__(self, model: Any, context: Any, options: Any = None, logger: Any = None) -> Awaitable[Any]:
        """The assistant's reply to a `Context`."""


@dataclass(frozen=True, slots=True)
class CondenserDeps:
    """What a condenser works with. Without a model it has no window to measure, and does nothing."""

    complete: CompleteFn | None = None
    model: Any = None
    policy: BudgetPolicy | None = None


@dataclass(frozen=True, slots=True)
class SummarizeDeps:
    """What one digest is made with. Without a model it is made locally."""

    complete: CompleteFn | None = None
    model: Any = None
    scope: CondenseScope = "session"
    prior_digest: str | None = None
    """The digest before this one."""
    signal: Any = None
    """Handed to the completer as it is."""
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        if self.scope not in get_args(CondenseScope):
            raise ConfigError(f"no scope is called {self.scope!r}", hint='use "session" or "branch"')
