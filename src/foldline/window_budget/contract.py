"""The types of the window budget: settings, results and the protocol of a completer (the function that calls a model).

The types have no logic, except that settings are validated when they are created.
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
"""What a digest covers: messages of the current session, or an abandoned branch."""

Condenser: TypeAlias = Callable[[list[AgentMessage]], list[AgentMessage] | Awaitable[list[AgentMessage]]]
"""A function that gets a list of messages and returns a list of messages.

If no fold is due, it returns the same object.
"""


@dataclass(frozen=True, slots=True)
class BudgetPolicy:
    """When to fold, and how many tokens of the newest messages stay verbatim."""

    trigger_ratio: float
    """Share of the usable window above which a fold is due, in (0, 1]."""
    keep_recent: int
    """Number of tokens of the newest messages that stay verbatim."""
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
    """Whether the figure is based on reported usage; otherwise it is only an estimate."""


@dataclass(frozen=True, slots=True)
class CondensePlan:
    """Where to cut: `kept` is `messages[cut:]`, and `dropped` is `messages[:cut]`.

    With a cut of 0, nothing is dropped.
    """

    cut: int
    kept: Sequence[Any]
    dropped: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Summary:
    """A digest message, and the number of messages that it replaces."""

    message: Any
    covered_count: int
    """Number of messages that the summary replaces."""
    cause: str = ""
    """Why the digest was written without a model; "" if the model wrote it."""


class CompleteFn(Protocol):
    """A function that sends one request to a model and returns its reply."""

    def __call__(self, model: Any, context: Any, options: Any = None, logger: Any = None) -> Awaitable[Any]:
        """The assistant's reply to a `Context`."""


@dataclass(frozen=True, slots=True)
class CondenserDeps:
    """The completer, model and policy of a condenser. Without a model, the condenser returns a list unchanged."""

    complete: CompleteFn | None = None
    model: Any = None
    policy: BudgetPolicy | None = None


@dataclass(frozen=True, slots=True)
class SummarizeDeps:
    """The completer, model and options of one digest. Without a model, the digest is written locally."""

    complete: CompleteFn | None = None
    model: Any = None
    scope: CondenseScope = "session"
    prior_digest: str | None = None
    """The text of the previous digest, if there is one."""
    signal: Any = None
    """A signal by which the host stops the request. The signal is passed to the completer unchanged."""
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        if self.scope not in get_args(CondenseScope):
            raise ConfigError(f"unknown scope {self.scope!r}", hint='use "session" or "branch"')
