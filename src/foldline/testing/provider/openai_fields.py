"""The fields and types of requests to OpenAI's endpoints, and the texts of its errors."""

from __future__ import annotations

import copy
import re
from functools import cache
from typing import Any, NoReturn

from foldline.testing.provider.error_reply import ErrorReply, RequestRefused
from foldline.testing.provider.request_schema import Check, SchemaMismatch, TagName, compile_schema, read_schema

NAME = re.compile(r"[a-zA-Z0-9_-]+\Z")
MAX_TEXT = 10 * 1024 * 1024
"""The largest number of characters in a string."""
_PLURALS = {
    "string": "a string",
    "object": "an object",
    "array": "an array of objects",
    "integer": "an integer",
    "number": "a decimal number",
    "boolean": "a boolean",
    "null": "null",
}
_ACCEPTED: dict[str, dict[str, dict[str, Any]]] = {
    "openai_chat": {
        "ChatCompletionAssistantMessage": {"annotations": "any"},
        "ChatCompletionToolMessage": {"name": "string"},
    },
    "openai_responses": {
        "Message": {"id": "string"},
        "ResponseCreateParamsNonStreaming": {"client_metadata": "any"},
        "ResponseCustomToolCall": {"status": "string"},
        "ResponseReasoningItem": {"content": {"union": [{"list": {"object": "Content"}}, "null"]}},
    },
}
"""Fields that the API accepts although the types of its SDK do not allow them. The API returns these fields itself, its
guides show them, or its own clients send them.
"""
_OPTIONAL = {
    "openai_responses": {
        "ResponseOutputMessage": {"id", "status", "type"},
        "ResponseOutputText": {"annotations", "logprobs"},
        "ResponseInputImage": {"detail"},
    },
    "openai_chat": {},
}
"""Fields that may be missing although the types of the SDK require them.

Clients that do not use stored responses leave these fields out, and so do the examples in the guides.
"""


def refuse(  # noqa: PLR0913
    format: str, rule: str, message: str, *, param: str | None = None, code: str | None = None, status: int = 400
) -> NoReturn:
    """Raise OpenAI's answer to a request that breaks a rule."""
    raise RequestRefused(ErrorReply(format=format, rule=rule, message=message, param=param, code=code, status=status))


@cache
def _check(format: str) -> Check:
    schema = read_schema(format)
    types: dict[str, Any] = copy.deepcopy(schema["types"])
    for name, extra in _ACCEPTED[format].items():
        types[name]["fields"] |= extra
    for name, optional in _OPTIONAL[format].items():
        types[name]["required"] = [key for key in types[name]["required"] if key not in optional]
    return compile_schema(types, schema["request"])


def check_openai_fields(format: str, body: Any) -> None:
    """Raise the API's error for a field that is unknown, missing or of the wrong type."""
    try:
        _check(format)(body)
    except SchemaMismatch as mismatch:
        _refuse_field(format, mismatch)


def path_text(path: list[str | int]) -> str:
    """A path in the form that OpenAI's errors use.

    >>> path_text(["messages", 0, "content"])
    'messages[0].content'
    """
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        elif not isinstance(key, TagName):
            text += f".{key}" if text else key
    return text


def _refuse_field(format: str, mismatch: SchemaMismatch) -> NoReturn:
    path, rule = path_text(mismatch.path), f"field_{mismatch.kind}"
    if mismatch.kind == "unknown":
        refuse(format, rule, f"Unknown parameter: '{path}'.", param=path, code="unknown_parameter")
    if mismatch.kind == "missing":
        refuse(format, rule, f"Missing required parameter: '{path}'.", param=path, code="missing_required_parameter")
    if mismatch.kind in {"enum", "tag"}:
        values = mismatch.expected
        if mismatch.kind == "tag":
            key, values = mismatch.expected
            path = f"{path}.{key}"
        *rest, last = (f"'{value}'" for value in values)
        known = f"{', '.join(rest)}, and {last}" if rest else last
        message = f"Invalid value: '{mismatch.value}'. Supported values are: {known}."
        refuse(format, rule, message, param=path, code="invalid_value")
    names = [_PLURALS.get(name, name) for name in dict.fromkeys(mismatch.expected)]
    expected = f"one of {' or '.join(names)}" if len(names) > 1 else names[0]
    found = _PLURALS[_json_type(mismatch.value)].removesuffix(" of objects")
    message = f"Invalid type for '{path}': expected {expected}, but got {found} instead."
    refuse(format, rule, message, param=path, code="invalid_type")


def _json_type(value: Any) -> str:
    names = {str: "string", dict: "object", list: "array", bool: "boolean", int: "integer", float: "number"}
    return names.get(type(value), "null")


def check_length(format: str, text: str, path: str, *, least: int = 1, most: int = MAX_TEXT) -> None:
    """Raise for a string that is too short or too long."""
    if len(text) < least:
        refuse(
            format,
            "empty_string",
            f"Invalid '{path}': empty string. Expected a string with minimum length {least}, but got an empty string "
            "instead.",
            param=path,
            code="empty_string",
        )
    if len(text) > most:
        refuse(
            format,
            "string_too_long",
            f"Invalid '{path}': string too long. Expected a string with maximum length {most}, but got a string with "
            f"length {len(text)} instead.",
            param=path,
            code="string_above_max_length",
        )


def check_name(format: str, name: str, path: str, most: int = 64) -> None:
    """Raise for a function name that does not match the pattern."""
    check_length(format, name, path, most=most)
    if not NAME.match(name):
        refuse(
            format,
            "name_pattern",
            f"Invalid '{path}': string does not match pattern. Expected a string that matches the pattern "
            "'^[a-zA-Z0-9_-]+$'.",
            param=path,
            code="invalid_value",
        )


def check_array(format: str, items: list[Any], path: str, *, most: int = 0) -> None:
    """Raise for an array that is empty or too long."""
    if not items:
        refuse(
            format,
            "empty_array",
            f"Invalid '{path}': empty array. Expected an array with minimum length 1, but got an empty array instead.",
            param=path,
            code="empty_array",
        )
    if most and len(items) > most:
        refuse(
            format,
            "array_too_long",
            f"Invalid '{path}': array too long. Expected an array with maximum length {most}, but got an array with "
            f"length {len(items)} instead.",
            param=path,
            code="array_above_max_length",
        )


def check_image_url(format: str, url: str, path: str) -> None:
    """Raise for an image URL that is neither a web address nor a data URL of a supported type."""
    if url.startswith(("http://", "https://")):
        return
    found = re.match(r"data:image/(png|jpe?g|gif|webp);base64,", url)
    if not found:
        refuse(
            format,
            "image_url",
            f"Invalid '{path}'. Expected a valid URL, but got a value with an invalid format.",
            param=path,
            code="invalid_value",
        )
    from foldline.testing.provider.image_rules import image_size, is_base64  # noqa: PLC0415

    data = url[found.end() :]
    if not is_base64(data) or image_size(data) is None:
        refuse(
            format,
            "image_unreadable",
            "You uploaded an unsupported image. Please make sure your image has of one of the following formats: "
            "['png', 'jpeg', 'gif', 'webp'].",
            param=path,
            code="invalid_image_format",
        )
