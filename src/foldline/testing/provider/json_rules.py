"""Checks for values that every vendor's JSON parser refuses: lone surrogates, NaN, Infinity, and Python objects."""

from __future__ import annotations

import json
from typing import Any

from foldline.testing.provider.error_reply import ErrorReply, RequestRefused

_OPENAI = (
    "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library "
    "correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON. If you have trouble "
    "figuring out how to fix this, please contact us through our help center at help.openai.com.)"
)


def json_refusal(format: str, reason: str) -> ErrorReply:
    """The answer to a body that is not valid JSON."""
    if format == "anthropic":
        return ErrorReply(format=format, rule="json", message=f"The request body is not valid JSON: {reason}")
    if format == "gemini":
        return ErrorReply(format=format, rule="json", message=f"Invalid JSON payload received. {reason}")
    return ErrorReply(format=format, rule="json", message=_OPENAI)


def check_json(format: str, body: Any) -> int:
    """The size of the body in bytes. Raises if the body cannot be sent as JSON."""
    try:
        text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError as error:
        raise RequestRefused(json_refusal(format, "unexpected character")) from error
    except (TypeError, RecursionError) as error:
        raise RequestRefused(json_refusal(format, str(error))) from error
    if text.isascii():
        return len(text)
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        reason = f"no low surrogate in string: line 1 column {error.start + 1} (char {error.start})"
        raise RequestRefused(json_refusal(format, reason)) from error


def is_json_object(text: str) -> bool:
    """Whether a string is a JSON object that holds neither NaN nor Infinity."""
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict)


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def parse_body(format: str, data: bytes) -> Any:
    """The JSON value of a request's bytes. Raises the vendor's error if the bytes are not JSON."""
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise RequestRefused(json_refusal(format, str(error))) from error
