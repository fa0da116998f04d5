"""Checks the size of a prompt and of the requested reply, and raises the provider's error if they do not fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from foldline.errors import ConfigError, check_type
from foldline.models.table import model as model_of
from foldline.testing.provider.error_reply import ErrorReply, RequestRefused
from foldline.testing.provider.model_features import features_of

Overflow = Literal["refuse", "truncate", "ignore"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SimulatedModel:
    """A model of the simulated provider.

    `overflow` says what happens to a prompt that is too long. With `refuse`, the provider answers with the vendor's
    error. With `truncate`, the provider replies and reports a prompt of half a window, as Ollama does. With `ignore`,
    the provider replies and reports the full size of the prompt, as z.ai does.
    """

    window: int = 0
    """The window in tokens; 0 means the window in the model table."""
    max_output: int = 0
    overflow: Overflow = "refuse"

    def __post_init__(self) -> None:
        for name in ("window", "max_output"):
            check_type(getattr(self, name), int, name, hint="pass a number of tokens")
        if self.window < 0 or self.max_output < 0:
            raise ConfigError("a number of tokens must not be negative", hint="pass 0 to use the model table")
        if self.overflow not in get_args(Overflow):
            raise ConfigError(f"unknown overflow {self.overflow!r}", hint=f"use {', '.join(get_args(Overflow))}")

    def window_of(self, name: str) -> int:
        """The window of the model with this name."""
        return self.window or model_of(name).window

    def max_output_of(self, name: str) -> int:
        """The longest reply of the model with this name, in tokens."""
        return self.max_output or model_of(name).reply


def check_models(models: object) -> None:
    """Raise `ConfigError` or `InputError` unless `models` maps names to windows or to `SimulatedModel` values."""
    hint = 'models={"gpt-5": 200_000}, or {"gpt-5": SimulatedModel(window=…)}'
    check_type({} if models is None else models, Mapping, "models", hint=hint)
    for value in models.values() if isinstance(models, Mapping) else ():
        if not isinstance(value, SimulatedModel):
            SimulatedModel(window=value)


def reply_limit(format: str, body: Mapping[str, Any]) -> int:
    """The limit that a request sets for the reply, in tokens; 0 if it sets none."""
    if format == "gemini":
        config = body.get("generationConfig") or body.get("generation_config") or {}
        return config.get("maxOutputTokens") or config.get("max_output_tokens") or 0
    return next((body[key] for key in ("max_tokens", "max_completion_tokens", "max_output_tokens") if body.get(key)), 0)


def check_reply_limit(format: str, name: str, limit: int, most: int) -> None:
    """Raise for a reply limit that is above the model's longest reply."""
    if limit <= most:
        return
    if format == "anthropic":
        text = f"max_tokens: {limit} > {most}, which is the maximum allowed number of output tokens for {name}"
    elif format == "gemini":
        text = f"Unable to submit request because it has a maxOutputTokens value of {limit} but the supported range is "
        text += f"from 1 (inclusive) to {most + 1} (exclusive). Update the value and try again."
    else:
        text = f"max_tokens is too large: {limit}. This model supports at most {most} completion tokens, whereas you "
        text += f"provided {limit}."
    code = "invalid_value" if format.startswith("openai") else None
    param = "max_tokens" if format.startswith("openai") else None
    raise RequestRefused(ErrorReply(format=format, rule="max_tokens", message=text, code=code, param=param))


def check_window(format: str, name: str, tokens: int, limit: int, window: int) -> None:
    """Raise the vendor's error if a prompt, or a prompt with its reply limit, does not fit the window."""
    words = _overflow_words(format, name, tokens, limit, window)
    if not words:
        return
    code = "context_length_exceeded" if format.startswith("openai") else None
    param = {"openai_chat": "messages", "openai_responses": "input"}.get(format)
    raise RequestRefused(ErrorReply(format=format, rule="window", message=words, code=code, param=param))


def _overflow_words(format: str, name: str, tokens: int, limit: int, window: int) -> str:
    if format == "anthropic":
        if tokens > window:
            return f"prompt is too long: {tokens} tokens > {window} maximum"
        if tokens + limit > window and features_of(name).refuses_reply_over_window:
            return (
                f"input length and `max_tokens` exceed context limit: {tokens} + {limit} > {window}, decrease input "
                "length or `max_tokens` and try again"
            )
        return ""
    if format == "gemini":
        if tokens <= window:
            return ""
        return f"The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window})."
    if format == "openai_responses":
        text = "Your input exceeds the context window of this model. Please adjust your input and try again."
        return text if tokens > window else ""
    if tokens + limit <= window:
        return ""
    if limit and tokens <= window:
        return (
            f"This model's maximum context length is {window} tokens. However, you requested {tokens + limit} tokens "
            f"({tokens} in the messages, {limit} in the completion). Please reduce the length of the messages or "
            "completion."
        )
    return (
        f"This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} tokens. "
        "Please reduce the length of the messages."
    )
