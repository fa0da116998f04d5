"""The condenser: a function that gets a list of messages and returns a list that fits."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any

from foldline.message import user
from foldline.window_budget.budget.estimate import gauge_of
from foldline.window_budget.budget.gate import exceeds_limit
from foldline.window_budget.budget.slice import slice_at
from foldline.window_budget.contract import BudgetPolicy, CondenserDeps, SummarizeDeps, Summary
from foldline.window_budget.host_messages import PRESET, REQUEST, DigestInput, HostMessages, is_conversation, tokens
from foldline.window_budget.summarize.condense import (
    DigestText,
    condense_scope,
    local_digest_text,
    model_digest_text,
    quoted_digest_text,
    summarize,
)

__all__ = ["DEFAULT_POLICY", "condense", "condense_scope", "condense_transcript", "create_condenser"]

DEFAULT_POLICY = BudgetPolicy(
    trigger_ratio=PRESET.rules[0].ratio or 1,
    keep_recent=PRESET.keep_tokens,
    reserve_tokens=PRESET.reserve_tokens,
)
_LOG = logging.getLogger("foldline.window_budget")


async def condense(messages: Sequence[Any], deps: SummarizeDeps | None = None) -> Summary:
    """Call `summarize` with the scope "session"."""
    return await summarize(messages, replace(deps or SummarizeDeps(), scope="session"))


def create_condenser(deps: CondenserDeps | None = None) -> Callable[[Any], Coroutine[Any, Any, Any]]:
    """A condenser. If a fold is due, the condenser returns one digest and the newest messages.

    If no fold is due, the condenser returns the same list. Two sizes are computed: the documented estimate, and the
    size from the last reported usage. The larger size is used, because the estimate counts characters and is far too
    low for some writing systems.
    """
    deps = deps or CondenserDeps()
    policy = deps.policy or DEFAULT_POLICY

    async def condenser(messages: Any) -> Any:
        if deps.model is None:
            return messages
        host = HostMessages(messages)
        gauge = gauge_of(host)
        size = max(host.timeline.prefix[-1], gauge.tokens if gauge.is_anchored else 0)
        if not exceeds_limit(size, deps.model, policy):
            return messages
        return await _fold(host, slice_at(host, policy), deps)

    return condenser


async def condense_transcript(messages: Any, force: bool = False, deps: CondenserDeps | None = None) -> Any:
    """Fold everything except the newest `keep_recent` tokens, even if no fold is due.

    A host can call this function when a user asks for a fold. With `force` (for `/compact`), fold everything before the
    last user turn, even if this saves little. A list that cannot become smaller is returned unchanged. Without a model,
    the digest is written locally.
    """
    deps = deps or CondenserDeps()
    host = HostMessages(messages)
    if force:
        turns = host.timeline.cuts["turn"]
        return await _fold(host, turns[-1] if turns else 0, deps)
    return await _fold(host, slice_at(host, deps.policy or DEFAULT_POLICY), deps)


async def _fold(host: HostMessages, cut: int, deps: CondenserDeps) -> Any:
    """The list with a digest in place of the messages before the cut.

    If the digest saves no tokens, the same list is returned. Leading system messages stay. The saving is computed
    before the model is called, and again afterwards.
    """
    lead = host.timeline.lead
    head = host.messages[lead:cut]
    if not any(map(is_conversation, head)):
        return host.items
    source, needs = DigestInput.of(head), SummarizeDeps(complete=deps.complete, model=deps.model)
    request = _request(source, host, cut)
    gain = host.timeline.prefix[cut] - host.timeline.prefix[lead]
    local = local_digest_text(source, needs)
    local = quoted_digest_text(source, local, gain - 1 - (_size(local, request) - _size(local, "")))
    if _size(local, request) >= gain:
        return host.items
    made = await model_digest_text(source, needs)
    if made.cause or _size(made, request) >= gain:
        made = local._replace(cause=made.cause or "the digest is larger than the messages it replaces")
    if made.cause and deps.model is not None:
        # Log only the kind of failure: an error text may contain an address with a key.
        _LOG.warning("digest written locally: %s", made.cause.partition(":")[0])
    digest = host.digest(made.text + request)
    return [*host.items[:lead], digest, *host.items[cut:]]


def _request(source: DigestInput, host: HostMessages, cut: int) -> str:
    """The text that quotes the user's newest prompt below the digest. "" if a kept message is a prompt, or if there is
    none.
    """
    if any(message.is_prompt for message in host.messages[cut:]):
        return ""
    asked = [message.text for message in source.messages if message.is_prompt and message.text]
    newest = asked[-1] if asked else source.request
    return f"\n\n{REQUEST}\n{newest}" if newest else ""


def _size(made: DigestText, request: str) -> int:
    return tokens(user(made.text + request))
