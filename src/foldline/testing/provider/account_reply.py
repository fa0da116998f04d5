"""The types of an account's answer and of a counted prompt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from foldline.testing.provider.cache import CachedPrompt
from foldline.testing.provider.error_reply import ErrorReply


@dataclass(frozen=True, kw_only=True, slots=True)
class AccountReply:
    """The answer of an account: a body, or an error."""

    body: dict[str, Any]
    error: ErrorReply | None = None
    tokens: CachedPrompt | None = None
    output: int = 0
    usd: float = 0.0

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.error.status if self.error else 200


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptSize:
    """The tokens of a prompt, grouped by price, and whether the reply must be cut off because the window is full."""

    tokens: CachedPrompt
    fills_window: bool = False


def echo(text: str) -> str:
    """The reply to a text if nothing is scripted. The same text always gets the same reply.

    >>> echo("hello")
    'You said: hello'
    """
    return f"You said: {text.strip()[:200]}" if text.strip() else "Done."
