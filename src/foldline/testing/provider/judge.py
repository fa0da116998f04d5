"""Judges a request by a provider's rules, without a server and without state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from foldline.testing.provider.anthropic_rules import check_anthropic
from foldline.testing.provider.error_reply import ErrorReply, RequestRefused, format_name
from foldline.testing.provider.gemini_rules import check_gemini
from foldline.testing.provider.openai_chat_rules import check_openai_chat
from foldline.testing.provider.openai_responses_rules import check_openai_responses


def judge(
    format: str, body: Any, *, betas: Iterable[str] = (), model: str = "", needs_tools: bool = True
) -> ErrorReply | None:
    """The provider's refusal of a request; None if the provider accepts it.

    `betas` are the values of the `anthropic-beta` header. `model` is needed only for Gemini, because a Gemini request
    names its model in the address and not in the body. Anthropic refuses tool calls in a request without `tools`. With
    `needs_tools=False` this rule does not apply, so that you can judge messages alone. Rules that need state (signed
    thinking, compaction blocks, stored responses, the window) are checked only by an `Account`.

    >>> judge("openai", {"model": "gpt-5", "messages": []}).rule
    'empty_array'
    """
    name = format_name(format)
    try:
        if name == "anthropic":
            check_anthropic(body, betas=betas, needs_tools=needs_tools)
        elif name == "openai_chat":
            check_openai_chat(body)
        elif name == "openai_responses":
            check_openai_responses(body)
        else:
            check_gemini(body, model=model)
    except RequestRefused as refused:
        return refused.reply
    return None
