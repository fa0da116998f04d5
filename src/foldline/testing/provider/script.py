"""The script of the simulated provider: replies and failures, in the order of the requests."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Literal

from foldline.testing.provider.error_reply import ErrorReply

FailureKind = Literal["error", "timeout", "broken_stream", "stream_error", "garbage", "empty"]

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


_OPENAI_WORDS = "The server had an error while processing your request. Sorry about that!"
_OPENAI_ERRORS: dict[int, tuple[str, str | None, str]] = {
    400: ("invalid_request_error", None, "The request was refused by the script."),
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached for requests"),
}
_GEMINI_WORDS = {
    429: "Resource has been exhausted (e.g. check quota).",
    500: "An internal error has occurred. Please retry or report in https://developers.generativeai.google",
    503: "The model is overloaded. Please try again later.",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ScriptedReply:
    """A reply of the model: thinking, text, tool calls, in this order."""

    text: str = ""
    thinking: str = ""
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    """Names and arguments of tool calls."""
    stop: str = ""
    """The vendor's stop reason. By default, the stop reason is chosen to fit the reply."""
    seconds: float = 0.0
    """Seconds that the provider waits before it answers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScriptedFailure:
    """A failure of the provider.

    With `error`, the provider answers with an error status. With `timeout`, the provider never answers. With
    `broken_stream`, the provider closes the connection in the middle of a stream. With `stream_error`, the provider
    sends an error in the middle of a stream. With `garbage`, the answer is a text that is not JSON. With `empty`, the
    answer is an empty body.
    """

    kind: FailureKind = "error"
    status: int = 500
    message: str = ""
    retry_after: int = 0

    @property
    def needs_reply(self) -> bool:
        """Whether a part of an ordinary reply is sent before the failure."""
        return self.kind in {"broken_stream", "stream_error"}

    def reply(self, format: str) -> ErrorReply:
        """The error in the format and words of a vendor."""
        kind, words = _ERRORS.get(self.status, _ERRORS[500])
        code = None
        if format.startswith("openai"):
            kind, code, words = _OPENAI_ERRORS.get(self.status, ("server_error", None, _OPENAI_WORDS))
        elif format == "gemini":
            words = _GEMINI_WORDS.get(self.status, words)
        message = self.message or words
        return ErrorReply(format=format, rule="scripted", message=message, status=self.status, type=kind, code=code)


def fail(failure: int | FailureKind = 500, *, message: str = "", retry_after: int = 0) -> ScriptedFailure:
    """A failure by status (429, 500, 529, …) or by kind (`timeout`, `broken_stream`, `garbage`, …)."""
    if isinstance(failure, int):
        return ScriptedFailure(status=failure, message=message, retry_after=retry_after)
    return ScriptedFailure(kind=failure, status=529 if failure == "stream_error" else 500, message=message)


def call(name: str, **arguments: Any) -> ScriptedReply:
    """A reply that calls one tool.

    >>> call("bash", command="ls").calls
    (('bash', {'command': 'ls'}),)
    """
    return ScriptedReply(calls=((name, arguments),))


ScriptEntry = str | ScriptedReply | ScriptedFailure


@dataclass(slots=True)
class Script:
    """The queue of scripted answers. If the queue is empty, the provider echoes the last text."""

    _entries: deque[ScriptEntry] = field(default_factory=deque)
    _lock: Lock = field(default_factory=Lock)

    def extend(self, entries: Iterable[ScriptEntry]) -> None:
        """Add answers at the end."""
        with self._lock:
            self._entries.extend(entries)

    def next_entry(self) -> ScriptedReply | ScriptedFailure | None:
        """The answer to the next request; None if nothing is scripted."""
        with self._lock:
            entry = self._entries.popleft() if self._entries else None
        return ScriptedReply(text=entry) if isinstance(entry, str) else entry

    def __len__(self) -> int:
        return len(self._entries)
