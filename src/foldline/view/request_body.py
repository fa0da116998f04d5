"""The whole request for a view: messages, system text, model, tools and the length of the reply.

The result is a dict of keyword arguments for the call of the provider's SDK: `client.messages.create(**request)`,
`client.chat.completions.create(**request)`, `client.responses.create(**request)` and, for Gemini,
`client.models.generate_content(**request)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foldline.errors import InputError
from foldline.models.table import Model
from foldline.wire.formats import request_format
from foldline.wire.rendering import Rendered
from foldline.wire.tool_definitions import convert_tools

BETA_HEADER = "anthropic-beta"


def request_body(  # noqa: PLR0913 (all but one are named at the call)
    rendered: Rendered,
    *,
    model: Model,
    tools: tuple[Any, ...],
    max_tokens: int | None,
    reply_room: int,
    extra: Mapping[str, Any],
) -> dict[str, Any]:
    """The keyword arguments of the SDK's call. `reply_room` is the number of tokens that are reserved for the reply."""
    format = rendered.format
    _check(rendered, max_tokens, reply_room, extra)
    name = extra.get("model") or model.name
    if not name:
        raise InputError("the request has no model", hint='open the session with model="…", or pass model="…" here')
    body: dict[str, Any] = {"model": name}
    definitions = convert_tools(tools, format) if tools else []
    if format == "gemini":
        return body | _gemini_fields(rendered, definitions, max_tokens, extra)
    if format == "anthropic":
        body["max_tokens"] = max_tokens or reply_room
    elif max_tokens is not None:
        body[_length_field(format, model)] = max_tokens
    if definitions:
        body["tools"] = definitions
    body |= rendered.body | {key: value for key, value in extra.items() if key != "model"}
    for key, value in rendered.parameters.items():
        body[key] = {**value, **extra[key]} if isinstance(extra.get(key), Mapping) else extra.get(key, value)
    if rendered.betas:
        headers = dict(extra.get("extra_headers") or {})
        given = headers.pop(BETA_HEADER, "")
        headers[BETA_HEADER] = ",".join(
            dict.fromkeys((*filter(None, map(str.strip, given.split(","))), *rendered.betas))
        )
        body["extra_headers"] = headers
    return body


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
    """The caller's own `config`, a dict or the SDK's object, as a dict."""
    config = extra.get("config") or {}
    return dict(config if isinstance(config, Mapping) else config.model_dump(exclude_unset=True))


def _length_field(format: str, model: Model) -> str:
    """The request field that limits the length of the reply."""
    if format == "openai-responses":
        return "max_output_tokens"
    return "max_completion_tokens" if model.vendor == "openai" else "max_tokens"


def _check(rendered: Rendered, max_tokens: int | None, reply_room: int, extra: Mapping[str, Any]) -> None:
    """Raise `InputError` if an argument would change what foldline has measured."""
    form = request_format(rendered.format)
    given = {*extra, *(_config(extra) if rendered.format == "gemini" else ())}
    if "tools" in given:
        raise InputError("tools are given to the session, not to a request", hint="Session(tools=…) or use(tools=…)")
    for key in (form.list_key, form.system_key, "system_instruction"):
        if key and key in given:
            raise InputError(
                f"{key!r} comes from the session's messages", hint="add the message to the session instead"
            )
    if max_tokens is not None and not 0 < max_tokens <= reply_room:
        what = f"max_tokens {max_tokens:,} is more than the {reply_room:,} tokens that are reserved for the reply"
        if max_tokens <= 0:
            what = f"max_tokens must be above 0, not {max_tokens}"
        raise InputError(what, hint=f"lower it, or reserve more: Policy(reply_tokens={max(max_tokens, 1)})")
