"""Requests that contain only the new messages, because the provider stores the earlier messages.

Such a request cannot be folded. It is passed on, or refused if `ProxySettings` says so. The refusal is the error that a
provider sends when it does not have the earlier messages. After this error, the client sends its whole history.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from foldline.proxy.interception import OwnAnswer

PARTIAL = ("previous_response_id", "conversation", "thread_id", "thread")
"""Fields of requests that contain only the new messages."""


def partial_refusal(format: str, field: Callable[[str], Any]) -> OwnAnswer:
    """The refusal of a request that contains only the new messages. `field` returns a field of the request."""
    if format == "anthropic":
        text = "thread_unsupported_request: this endpoint keeps no threads. Send all messages."
        error: dict[str, Any] = {"type": "invalid_request_error", "message": text}
        return OwnAnswer(status=400, body=json.dumps({"type": "error", "error": error}).encode())
    name = next((key for key in PARTIAL if field(key)), PARTIAL[0])
    error = {"type": "invalid_request_error", "param": name, "code": "previous_response_not_found"}
    error["message"] = f"Previous response with id {str(field(name))[:200]!r} not found."
    return OwnAnswer(status=400, body=json.dumps({"error": error}).encode())
