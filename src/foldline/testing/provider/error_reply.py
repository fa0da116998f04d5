"""A provider's refusal of a request: status, error type and text, and the body in each vendor's format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from foldline.errors import ConfigError

FORMATS = ("anthropic", "openai_chat", "openai_responses", "gemini")
"""The request formats that the simulated provider accepts."""

ALIASES = {
    "openai": "openai_chat",
    "openai-chat": "openai_chat",
    "openai-responses": "openai_responses",
    "responses": "openai_responses",
}
"""Other names of the formats, each with the name in `FORMATS`."""

_GOOGLE_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ErrorReply:
    """An error answer of a provider. `rule` is a short, stable name of the broken rule, for tests and statistics."""

    format: str
    rule: str
    message: str
    status: int = 400
    type: str = "invalid_request_error"
    code: str | None = None
    param: str | None = None

    def __str__(self) -> str:
        return f"{self.status} {self.type}: {self.message}"

    def body(self, request_id: str = "req_simulated") -> dict[str, Any]:
        """The error body as the vendor writes it."""
        if self.format == "anthropic":
            error: dict[str, Any] = {"type": self.type, "message": self.message}
            if self.code:
                error["details"] = {"error_code": self.code}
            return {"type": "error", "error": error, "request_id": request_id}
        if self.format == "gemini":
            status = _GOOGLE_STATUS.get(self.status, "UNKNOWN")
            return {"error": {"code": self.status, "message": self.message, "status": status}}
        return {"error": {"message": self.message, "type": self.type, "param": self.param, "code": self.code}}


class RequestRefused(Exception):
    """Raised when a request breaks a rule. `judge` catches this exception and returns its `ErrorReply`."""

    def __init__(self, reply: ErrorReply) -> None:
        super().__init__(str(reply))
        self.reply = reply


def format_name(format: str) -> str:
    """The canonical name of a request format.

    >>> format_name("openai"), format_name("openai-responses")
    ('openai_chat', 'openai_responses')
    """
    name = ALIASES.get(format, str(format).replace("-", "_"))
    if name not in FORMATS:
        raise ConfigError(f"unknown request format {format!r}", hint=f"use one of {', '.join(FORMATS)}")
    return name
