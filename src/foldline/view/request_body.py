"""The whole request for a view: messages, system text, model, tools and the length of the reply.

The result is a dict of keyword arguments for the call of the provider's SDK: `client.messages.create(**request)`,
`client.chat.completions.create(**request)`, `client.responses.create(**request)` and, for Gemini,
`client.models.generate_content(**request)`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from foldline.errors import InputError, check_type
from foldline.models.table import Model
from foldline.view.breakpoints import with_legal_marks
from foldline.wire.formats import request_format
from foldline.wire.json_values import fault_of, sendable_value
from foldline.wire.rendering import Rendered
from foldline.wire.tool_definitions import convert_tools, tool_names

BETA_HEADER = "anthropic-beta"
_OPENAI_NAME = (re.compile("[a-zA-Z0-9_-]{1,64}"), "use 1 to 64 letters, digits, _ and -")
_NAMES = {
    "anthropic": (re.compile("[a-zA-Z0-9_-]{1,128}"), "use 1 to 128 letters, digits, _ and -"),
    "openai": _OPENAI_NAME,
    "openai-responses": _OPENAI_NAME,
    "gemini": (
        re.compile("[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}"),
        "use 1 to 64 letters, digits, and the characters _ . : -, and begin with a letter or _",
    ),
}
"""For each format, the pattern of a tool name, and the pattern in words."""
_COMBINATIONS = ("anyOf", "oneOf", "allOf")
"""The keys that Anthropic refuses at the top level of a tool's schema."""
_LENGTH_FIELDS = ("max_completion_tokens", "max_output_tokens")
"""The names of the request fields with which providers' APIs limit the length of the reply."""


def request_body(  # noqa: PLR0913 (all but one are keyword-only)
    rendered: Rendered,
    *,
    model: Model,
    tools: tuple[Any, ...],
    max_tokens: int | None,
    reply_room: int,
    window: int,
    extra: Mapping[str, Any],
) -> dict[str, Any]:
    """The keyword arguments of the SDK's call. `reply_room` is the number of tokens that are reserved for the reply."""
    format = rendered.format
    asked = _check(rendered, max_tokens, extra)
    if asked is not None and asked > reply_room:
        raise _too_long(asked, reply_room, window, model)
    name = extra.get("model") or model.name
    if not name:
        raise InputError("the request has no model", hint='open the session with model="…", or pass model="…" here')
    definitions = convert_tools(tools, format) if tools else []
    if fault_of(definitions) in ("unicode", "number"):
        definitions = sendable_value(definitions)
    _check_tools(rendered, definitions)
    if format == "gemini":
        return {"model": name} | _gemini_fields(rendered, definitions, max_tokens, extra)
    if format == "anthropic":
        max_tokens = max_tokens or reply_room
    body = {"model": name} | http_body(rendered, model=model, definitions=definitions, max_tokens=max_tokens)
    body |= {key: value for key, value in extra.items() if key != "model"}
    for key, value in rendered.parameters.items():
        body[key] = {**value, **extra[key]} if isinstance(extra.get(key), Mapping) else extra.get(key, value)
    if rendered.betas:
        body |= _with_betas(rendered.betas, extra)
    is_marked = extra.get("cache_control") or any("cache_control" in definition for definition in definitions)
    return with_legal_marks(body) if format == "anthropic" and is_marked else body


def http_body(rendered: Rendered, *, model: Model, definitions: list[Any], max_tokens: int | None) -> dict[str, Any]:
    """The JSON body of an HTTP request, without the model. `definitions` are tools in the format of the request."""
    body: dict[str, Any] = {"tools": definitions} if definitions else {}
    if max_tokens is not None and rendered.format == "gemini":
        body = {"generationConfig": {"maxOutputTokens": max_tokens}} | body
    elif max_tokens is not None:
        body = {_length_field(rendered.format, model): max_tokens} | body
    return body | rendered.body


def _with_betas(betas: tuple[str, ...], extra: Mapping[str, Any]) -> dict[str, Any]:
    """The request arguments with the flags in `betas` and the caller's beta flags (in `extra`).

    If `extra` has an item "betas", the result has all flags in its item "betas". Otherwise, the result has all flags in
    a header in its item "extra_headers". Flags are never in both items, because the SDK then ignores those in "betas".
    """
    headers = dict(extra.get("extra_headers") or {})
    names = [name for name in headers if name.lower() == BETA_HEADER]
    given = [beta.strip() for name in names for beta in str(headers.pop(name)).split(",")]
    if extra.get("betas"):
        rest = {"extra_headers": headers} if names else {}
        return {"betas": list(dict.fromkeys((*extra["betas"], *filter(None, given), *betas))), **rest}
    headers[BETA_HEADER] = ",".join(dict.fromkeys((*filter(None, given), *betas)))
    return {"extra_headers": headers}


def _gemini_fields(
    rendered: Rendered, definitions: list[Any], max_tokens: int | None, extra: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments of `generate_content`: everything except the contents is in `config`."""
    form = request_format("gemini")
    config: dict[str, Any] = {}
    if form.system_key in rendered.body:
        config["system_instruction"] = rendered.body[form.system_key]
    if definitions:
        config["tools"] = definitions
    if max_tokens is not None:
        config["max_output_tokens"] = max_tokens
    config |= {key: value for key, value in extra.items() if key not in ("model", "config")} | _config(extra)
    return {form.list_key: rendered.body[form.list_key], **({"config": config} if config else {})}


def _config(extra: Mapping[str, Any]) -> dict[str, Any]:
    """The caller's own `config` as a dict. The caller may pass a dict or the SDK's object."""
    config = extra.get("config") or {}
    return dict(config if isinstance(config, Mapping) else config.model_dump(exclude_unset=True))


def _length_field(format: str, model: Model) -> str:
    """The request field that limits the length of the reply."""
    if format == "openai-responses":
        return "max_output_tokens"
    if format == "anthropic":
        return "max_tokens"
    return "max_completion_tokens" if model.vendor == "openai" else "max_tokens"


def _check(rendered: Rendered, max_tokens: int | None, extra: Mapping[str, Any]) -> int | None:
    """The limit for the length of the reply; None if there is none.

    Raises `InputError` if an argument would change what foldline has measured.
    """
    form = request_format(rendered.format)
    given = {*extra, *(_config(extra) if rendered.format == "gemini" else ())}
    if "tools" in given:
        raise InputError("tools are given to the session, not to a request", hint="Session(tools=…) or use(tools=…)")
    for key in (form.list_key, form.system_key, "system_instruction"):
        if key and key in given:
            raise InputError(
                f"{key!r} comes from the session's messages", hint="add the message to the session instead"
            )
    if max_tokens is not None:
        check_type(max_tokens, int, "max_tokens", hint="pass how many tokens the reply may have")
    limits = [max_tokens, *(extra.get(name) for name in _LENGTH_FIELDS), _config(extra).get("max_output_tokens")]
    max_tokens = next((limit for limit in limits if isinstance(limit, int)), None)
    if max_tokens is not None and max_tokens <= 0:
        raise InputError(f"max_tokens must be above 0, not {max_tokens}", hint="omit it for the default")
    return max_tokens


def _too_long(max_tokens: int, reply_room: int, window: int, model: Model) -> InputError:
    """The error for a `max_tokens` above the tokens that the policy reserves for the reply (`reply_room`).

    The hint names a length that the model can write, and that leaves half of the window for the request.
    """
    what = f"max_tokens {max_tokens:,} is more than the {reply_room:,} tokens that are reserved for the reply"
    most = min(model.reply, window // 2) if model.vendor else window // 2
    if most <= reply_room:
        return InputError(what, hint=f"lower it to {reply_room:,} or less")
    lower = "lower it" if max_tokens <= most else f"lower it to {most:,} or less"
    reserve = f"session.use(policy=session.policy.but(reply_tokens={min(max_tokens, most)}))"
    return InputError(what, hint=f"{lower}, {'or' if max_tokens <= most else 'and'} reserve more: {reserve}")


def _check_tools(rendered: Rendered, definitions: list[Any]) -> None:
    """Raise `InputError` for tools that the provider would refuse."""
    names = [name for definition in definitions for name in tool_names(definition)]
    for name, count in Counter(names).items():
        if count > 1:
            raise InputError(f"{count} tools are named {name!r}", hint="give each tool its own name")
    for definition in definitions:
        if fault := tool_fault(definition, rendered.format):
            raise fault
    if not definitions and lacks_tools(rendered):
        hint = "open the session with tools=…, or use(tools=…)"
        raise InputError("the messages have tool calls, but the session has no tools", hint=hint)


def tool_fault(definition: Mapping[str, Any], format: str) -> InputError | None:
    """The error for a definition that a provider refuses because of a name or a schema; None if there is no fault."""
    pattern, hint = _NAMES[format]
    for name in tool_names(definition):
        if not pattern.fullmatch(name):
            return InputError(f"a provider refuses the tool name {name!r:.80}", hint=hint)
    found = [key for key in _COMBINATIONS if key in (definition.get("input_schema") or ())]
    if format == "anthropic" and found:
        what = f"Anthropic refuses {found[0]!r} at the top level of the schema of {definition.get('name')!r:.80}"
        return InputError(what, hint=f"move {found[0]!r} into a property, or write what it says into a description")
    return None


def lacks_tools(rendered: Rendered) -> bool:
    """Whether the provider refuses these messages in a request without tools, because they have tool calls."""
    return rendered.format == "anthropic" and any(map(_has_tool_block, rendered.body["messages"]))


def _has_tool_block(message: Mapping[str, Any]) -> bool:
    content = message["content"]
    return isinstance(content, list) and any(block.get("type") in ("tool_use", "tool_result") for block in content)
