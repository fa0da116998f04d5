"""The types of the window budget: settings, results and the completer protocol.

The types compute nothing; settings are validated when they are created.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, get_args

from foldline.errors import ConfigError
from foldline.window_budget.messages import AgentMessage, Model, Usage

__all__ = [
    "AgentMessage",
    "BudgetPolicy",
    "CompleteFn",
    "CondensePlan",
    "CondenseScope",
    "Condenser",
    "CondenserDeps",
    "Model",
    "SummarizeDeps",
    "Summary",
    "TokenEstimate",
    "Usage",
]

CondenseScope: TypeAlias = Literal["session", "branch"]
"""What a digest covers: the current session, or an abandoned branch."""

Condenser: TypeAlias = Callable[[list[AgentMessage]], list[AgentMessage] | Awaitable[list[AgentMessage]]]
"""Takes a list and returns a list: the same object when nothing is due."""


@dataclass(frozen=True, slots=True)
class BudgetPolicy:
    """When to fold, and how much of the newest messages stays verbatim."""

    trigger_ratio: float
    """Share of the usable window above which a fold is due, in (0, 1]."""
    keep_recent: int
    """Tokens."""
    reserve_tokens: int | None = None
    """Tokens subtracted from the window before the ratio applies."""

    def __post_init__(self) -> None:
        if not 0 < self.trigger_ratio <= 1:
            raise ConfigError(f"trigger_ratio must be above 0 and at most 1, not {self.trigger_ratio}")
        sizes: dict[str, Any] = {"keep_recent": self.keep_recent, "reserve_tokens": self.reserve_tokens or 0}
        for name, value in sizes.items():
            if not isinstance(value, int) or value < 0:
                raise ConfigError(f"{name} must be a whole number of tokens, at least 0, not {value!r}")


@dataclass(frozen=True, slots=True)
class TokenEstimate:
    """How full the window is."""

    context_tokens: int
    context_window: int
    anchored: bool
    """Whether the figure builds on reported usage and not on an estimate alone."""


@dataclass(frozen=True, slots=True)
class CondensePlan:
    """Where to cut: `kept` is `messages[cut:]`, `dropped` is `messages[:cut]`. A cut of 0 condenses nothing."""

    cut: int
    kept: Sequence[Any]
    dropped: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Summary:
    """A message that replaces others."""

    message: Any
    covered_count: int
    """How many messages it replaces."""
    cause: str = ""
    """Why the digest was written locally; empty when the model wrote it."""


class CompleteFn(Protocol):
    """The model: one request, one reply."""

    def __call__(self, model: Any, context: Any, options: Any = None, logger: Any = None) -> Awaitable[Any]:
        """The assistant's reply to a `Context`."""


@dataclass(frozen=True, slots=True)
class CondenserDeps:
    """The completer, model and policy of a condenser. Without a model the condenser does nothing."""

    complete: CompleteFn | None = None
    model: Any = None
    policy: BudgetPolicy | None = None


@dataclass(frozen=True, slots=True)
class SummarizeDeps:
    """The completer, model and options of one digest. Without a model the digest is written locally."""

    complete: CompleteFn | None = None
    model: Any = None
    scope: CondenseScope = "session"
    prior_digest: str | None = None
    """The previous digest."""
    signal: Any = None
    """Passed to the completer unchanged."""
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        if self.scope not in get_args(CondenseScope):
            raise ConfigError(f"unknown scope {self.scope!r}", hint='use "session" or "branch"')
