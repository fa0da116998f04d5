"""The script of the simulated provider: replies and failures, in the order of the requests."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Literal, get_args

from foldline.errors import ConfigError, check_type
from foldline.testing.provider.error_reply import ErrorReply

_DIGEST_REQUEST = "Write the digest with exactly these sections:"
"""The sentence by which foldline's requests for a digest are recognised. The section headings follow it."""
_HEADING = re.compile(r"\\n(# [^\\]+)")
"""Matches a Markdown heading in JSON text, in which line breaks are escaped."""
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
_CALLS_HINT = 'calls=(("bash", {"command": "ls"}), ("read", {"path": "a.py"}))'


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

    def __post_init__(self) -> None:
        if not isinstance(self.calls, (tuple, list)):
            raise ConfigError(f"calls must be a tuple of calls, not {type(self.calls).__name__}", hint=_CALLS_HINT)
        for each in self.calls:
            match each:
                case (str(), Mapping()):
                    continue
            raise ConfigError(f"a call must be a name and arguments, not {type(each).__name__}", hint=_CALLS_HINT)


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
        if not 400 <= failure <= 599:
            raise ConfigError(f"{failure} is not an error status", hint="use 400 to 599, for example fail(429)")
        return ScriptedFailure(status=failure, message=message, retry_after=retry_after)
    if failure not in get_args(FailureKind):
        raise ConfigError(f"unknown failure {failure!r}", hint=f"use a status or {', '.join(get_args(FailureKind))}")
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
    """The queues of scripted answers: one for each model that has its own answers, and one for all other requests.

    If no answer is left, a request for a digest gets a digest, and any other request gets an echo of its last text.
    """

    _entries: dict[str, deque[ScriptEntry]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def extend(self, entries: Iterable[ScriptEntry], model: str = "") -> None:
        """Add answers to the queue of a model; without `model`, add them to the queue for all other requests."""
        entries = tuple(entries)
        for entry in entries:
            check_type(
                entry, get_args(ScriptEntry), "a scripted answer", hint='script("text", call("bash"), fail(429))'
            )
        with self._lock:
            self._entries.setdefault(model, deque()).extend(entries)

    def next_entry(self, model: str, body: Any) -> ScriptedReply | ScriptedFailure | None:
        """The answer to the next request; None if nothing is scripted.

        A request for a digest takes only answers that are scripted for its model. So a digest that is written in the
        background does not take the agent's next answer.
        """
        _, is_digest, sections = json.dumps(body).rpartition(_DIGEST_REQUEST)
        with self._lock:
            queue = self._entries.get(model) or (None if is_digest else self._entries.get(""))
            entry = queue.popleft() if queue else None
        if entry is None and is_digest:
            headings = _HEADING.findall(sections)
            entry = "\n".join(f"{heading}\nWritten by the simulated provider." for heading in headings)
        return ScriptedReply(text=entry) if isinstance(entry, str) else entry

    def __len__(self) -> int:
        return sum(map(len, self._entries.values()))
