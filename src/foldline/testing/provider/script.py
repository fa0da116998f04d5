"""What the simulated provider answers: scripted replies and scripted failures, in the order of the requests."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Literal

FailureKind = Literal["error", "timeout", "broken_stream", "garbage", "slow", "empty"]

_ERRORS = {
    400: ("invalid_request_error", "The request was refused by the script."),
    401: ("authentication_error", "invalid x-api-key"),
    403: ("permission_error", "Your API key does not have permission to use the specified resource."),
    404: ("not_found_error", "Not found"),
    408: ("timeout_error", "Request timed out"),
    413: ("request_too_large", "Request exceeds the maximum size"),
    429: ("rate_limit_error", "Number of request tokens has exceeded your per-minute rate limit"),
    500: ("api_error", "Internal server error"),
    502: ("api_error", "Bad gateway"),
    503: ("api_error", "Service unavailable"),
    504: ("timeout_error", "Gateway timeout"),
    529: ("overloaded_error", "Overloaded"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ScriptedReply:
    """A reply of the model: thinking, text, tool calls, in this order."""

    text: str = ""
    thinking: str = ""
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    """Names and arguments of tool calls."""
    stop: str = ""
    """The vendor's stop reason; by default the one that fits the reply."""
    seconds: float = 0.0
    """How long the provider waits before it answers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScriptedFailure:
    """A failure of the provider.

    `error` answers with a status; `timeout` never answers; `broken_stream` ends a stream in its middle; `garbage`
    answers with what is not JSON; `empty` answers with nothing.
    """

    kind: FailureKind = "error"
    status: int = 500
    message: str = ""
    retry_after: int = 0

    @property
    def type(self) -> str:
        """Anthropic's name of the error."""
        return _ERRORS.get(self.status, _ERRORS[500])[0]

    @property
    def text(self) -> str:
        """The words of the error."""
        return self.message or _ERRORS.get(self.status, _ERRORS[500])[1]


def fail(failure: int | FailureKind = 500, *, message: str = "", retry_after: int = 0) -> ScriptedFailure:
    """A failure by status (429, 500, 529, …) or by kind (`timeout`, `broken_stream`, `garbage`, `empty`)."""
    if isinstance(failure, int):
        return ScriptedFailure(status=failure, message=message, retry_after=retry_after)
    return ScriptedFailure(kind=failure, message=message)


def call(name: str, **arguments: Any) -> ScriptedReply:
    """A reply that calls one tool.

    >>> call("bash", command="ls").calls
    (('bash', {'command': 'ls'}),)
    """
    return ScriptedReply(calls=((name, arguments),))


ScriptEntry = str | ScriptedReply | ScriptedFailure


@dataclass(slots=True)
class Script:
    """The queue of answers; when it is empty, the provider echoes."""

    _entries: deque[ScriptEntry] = field(default_factory=deque)
    _lock: Lock = field(default_factory=Lock)

    def extend(self, entries: Iterable[ScriptEntry]) -> None:
        """Add answers at the end."""
        with self._lock:
            self._entries.extend(entries)

    def next_entry(self) -> ScriptedReply | ScriptedFailure | None:
        """The answer to the next request, None if nothing is scripted."""
        with self._lock:
            entry = self._entries.popleft() if self._entries else None
        return ScriptedReply(text=entry) if isinstance(entry, str) else entry

    def __len__(self) -> int:
        return len(self._entries)
