"""Foldline's own errors, in the form in which the client's provider would send them."""

from __future__ import annotations

import json
from typing import NamedTuple

_ANTHROPIC = {
    400: "invalid_request_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    502: "api_error",
    503: "overloaded_error",
    504: "timeout_error",
}
_GEMINI = {400: "INVALID_ARGUMENT", 413: "INVALID_ARGUMENT", 502: "UNAVAILABLE", 503: "UNAVAILABLE"}


class ErrorAnswer(NamedTuple):
    """An error response that foldline writes itself."""

    status: int
    message: str
    code: str = ""

    def body(self, format: str) -> bytes:
        """The JSON body in the form of a wire format; unknown formats get OpenAI's form."""
        if format == "anthropic":
            error: dict[str, object] = {"type": _ANTHROPIC.get(self.status, "api_error"), "message": self.message}
            return json.dumps({"type": "error", "error": error}).encode()
        if format == "gemini":
            status = _GEMINI.get(self.status, "DEADLINE_EXCEEDED")
            return json.dumps({"error": {"code": self.status, "message": self.message, "status": status}}).encode()
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        return json.dumps(
            {"error": {"message": self.message, "type": kind, "param": None, "code": self.code or None}}
        ).encode()


TOO_LARGE = "foldline: the request has more than {limit:,} bytes; raise --max-bytes if your provider takes it"
