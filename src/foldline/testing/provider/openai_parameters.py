"""Judges the parameters of a request to OpenAI: sampling, lengths, limits, strict schemas."""

from __future__ import annotations

import re
from typing import Any, NoReturn

from foldline.testing.provider import openai_fields
from foldline.testing.provider.model_features import features_of
from foldline.testing.provider.openai_fields import check_array
from foldline.testing.provider.strict_schema import is_open, object_schemas

MAX_STOPS = 4
MAX_METADATA = 16
LEAST_OUTPUT_TOKENS = 16
LEAST_THRESHOLD = 1_000
CHAT = "openai_chat"
RESPONSES = "openai_responses"
_FIRST_REASONING_GPT = re.compile(r"gpt-5(?![.\d])")


def _refuse(format: str, rule: str, message: str, param: str, code: str | None = "invalid_value") -> NoReturn:
    openai_fields.refuse(format, rule, message, param=param, code=code)


def check_chat_parameters(body: dict[str, Any]) -> None:
    """Raise for a parameter of Chat Completions that the API refuses."""
    _check_sampling(CHAT, body, body.get("reasoning_effort"))
    if "max_tokens" in body and "max_completion_tokens" in body:
        text = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
        _refuse(CHAT, "max_tokens", text, "max_tokens")
    _check_least(CHAT, body, "n", 1)
    if isinstance(body.get("stop"), list):
        check_array(CHAT, body["stop"], "stop", most=MAX_STOPS)
    if body.get("stream_options") is not None and not body.get("stream"):
        text = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        _refuse(CHAT, "stream_options", text, "stream_options")
    if "parallel_tool_calls" in body and not body.get("tools"):
        text = (
            "Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified."
        )
        _refuse(CHAT, "parallel_tool_calls", text, "parallel_tool_calls")
    _check_metadata(CHAT, body)
    form = body.get("response_format") or {}
    if form.get("type") == "json_object" and "json" not in str(body["messages"]).lower():
        text = "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."
        _refuse(CHAT, "json_object", text, "messages", None)
    if form.get("type") == "json_schema" and form["json_schema"].get("strict"):
        name = form["json_schema"].get("name")
        _check_strict(CHAT, form["json_schema"].get("schema"), "response_format", f"response_format '{name}'")
    for number, tool in enumerate(body.get("tools") or ()):
        function = tool.get("function") or {}
        if function.get("strict"):
            where = f"tools[{number}].function.parameters"
            _check_strict(CHAT, function.get("parameters"), where, f"function '{function.get('name')}'")


def check_responses_parameters(body: dict[str, Any]) -> None:
    """Raise for a parameter of the Responses API that the API refuses."""
    _check_sampling(RESPONSES, body, (body.get("reasoning") or {}).get("effort"))
    _check_least(RESPONSES, body, "max_output_tokens", LEAST_OUTPUT_TOKENS)
    _check_metadata(RESPONSES, body)
    for number, entry in enumerate(body.get("context_management") or ()):
        threshold = entry.get("compact_threshold")
        if isinstance(threshold, int) and threshold < LEAST_THRESHOLD:
            _refuse_small(RESPONSES, f"context_management[{number}].compact_threshold", LEAST_THRESHOLD, threshold)
    form = (body.get("text") or {}).get("format") or {}
    if form.get("type") == "json_schema" and form.get("strict"):
        _check_strict(RESPONSES, form.get("schema"), "text.format.schema", f"response_format '{form.get('name')}'")
    for number, tool in enumerate(body.get("tools") or ()):
        if tool.get("type") == "function" and tool.get("strict"):
            where = f"tools[{number}].parameters"
            _check_strict(RESPONSES, tool.get("parameters"), where, f"function '{tool.get('name')}'")


def _check_sampling(format: str, body: dict[str, Any], effort: str | None) -> None:
    """Raise if a reasoning model gets a temperature other than 1.

    GPT-5.1 and later models accept every temperature if reasoning is off (effort "none", or no effort).
    """
    model, temperature = body.get("model") or "", body.get("temperature")
    if temperature in (None, 1) or not features_of(model).reasoning:
        return
    may_be_off = "gpt" in model and not _FIRST_REASONING_GPT.search(model)
    if may_be_off and effort in (None, "none"):
        return
    if format == RESPONSES:
        text = "Unsupported parameter: 'temperature' is not supported with this model."
        _refuse(format, "sampling", text, "temperature", "unsupported_parameter")
    text = (
        f"Unsupported value: 'temperature' does not support {temperature} with this model. Only the default (1) value "
        "is supported."
    )
    _refuse(format, "sampling", text, "temperature", "unsupported_value")


def _check_metadata(format: str, body: dict[str, Any]) -> None:
    if len(body.get("metadata") or {}) > MAX_METADATA:
        text = f"Invalid 'metadata': too many properties. Expected an object with at most {MAX_METADATA} properties."
        _refuse(format, "metadata", text, "metadata", "object_above_max_properties")


def _check_least(format: str, body: dict[str, Any], name: str, least: int) -> None:
    value = body.get(name)
    if isinstance(value, int) and value < least:
        _refuse_small(format, name, least, value)


def _refuse_small(format: str, name: str, least: int, value: int) -> NoReturn:
    text = f"Invalid '{name}': integer below minimum value. Expected a value >= {least}, but got {value} instead."
    _refuse(format, "integer_too_small", text, name, "integer_below_min_value")


def _check_strict(format: str, schema: Any, param: str, what: str) -> None:
    """Raise for a strict schema that allows unknown properties or has optional properties."""
    for path, inner in object_schemas(schema):
        context = f"Invalid schema for {what}: In context=({', '.join(map(repr, path))}), "
        if is_open(inner):
            text = f"{context}'additionalProperties' is required to be supplied and to be false."
            _refuse(format, "strict_schema", text, param, "invalid_function_parameters")
        missing = [name for name in inner.get("properties") or () if name not in (inner.get("required") or ())]
        if missing:
            text = (
                f"{context}'required' is required to be supplied and to be an array including every key in properties. "
                f"Missing '{missing[0]}'."
            )
            _refuse(format, "strict_schema", text, param, "invalid_function_parameters")
