"""Gate, slice and digest in one function: list in, list out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any

from foldline.compat.window_budget.budget import DEFAULT_POLICY, gauge_of, over, slice_at
from foldline.compat.window_budget.contract import CondenserDeps, SummarizeDeps
from foldline.compat.window_budget.summarize import Written, write, write_locally
from foldline.compat.window_budget.talk import REQUEST, Carried, Talk, is_said, tokens
from foldline.message import user

_LOG = logging.getLogger("foldline.window_budget")


def create_condenser(deps: CondenserDeps | None = None) -> Callable[[Any], Coroutine[Any, Any, Any]]:
    """A condenser: the very same list while there is nothing to do, else one digest and the newest messages.

    The gate is the documented one, and also the provider's own figure where a reply brought one: an estimate by
    characters is far too low for some scripts.
    """
    deps = deps or CondenserDeps()
    policy = deps.policy or DEFAULT_POLICY

    async def condenser(messages: Any) -> Any:
        if deps.model is None:
            return messages
        talk = Talk(messages)
        gauge = gauge_of(talk)
        size = max(talk.timeline.prefix[-1], gauge.tokens if gauge.anchored else 0)
        if not over(size, deps.model, policy):
            return messages
        return await _fold(talk, slice_at(talk, policy), deps)

    return condenser


async def condense_transcript(messages: Any, force: bool = False, deps: CondenserDeps | None = None) -> Any:
    """What a host's own command does: fold all that lies beyond the newest `keep_recent` tokens.

    With `force` (`/compact`) everything before the last user turn, however little that is. Without a model the digest
    is a local one.
    """
    deps = deps or CondenserDeps()
    talk = Talk(messages)
    if force:
        turns = talk.timeline.cuts["turn"]
        return await _fold(talk, turns[-1] if turns else 0, deps, force=True)
    return await _fold(talk, slice_at(talk, deps.policy or DEFAULT_POLICY), deps)


async def _fold(talk: Talk, cut: int, deps: CondenserDeps, *, force: bool = False) -> Any:
    """The list with a digest in place of what is before the cut; the same list where that would gain nothing.

    System messages stay in front. What would be gained is looked at before the model is asked, and again after. A
    forced fold may be content with fewer messages.
    """
    lead = talk.timeline.lead
    head = talk.messages[lead:cut]
    if not any(map(is_said, head)):
        return talk.items
    carried, needs = Carried.of(head), SummarizeDeps(complete=deps.complete, model=deps.model)
    request = _request(carried, talk, cut)
    gain = talk.timeline.prefix[cut] - talk.timeline.prefix[lead]
    local = write_locally(carried, needs)
    if _size(local, request) >= gain and not (force and len(head) > 1):
        return talk.items
    made = await write(carried, needs)
    if _size(made, request) >= gain:
        made = local._replace(cause="the digest is larger than what it stands for")
    if made.cause and deps.model is not None:
        # The kind of failure only: what an error says may hold an address with a key in it.
        _LOG.warning("digest made without the model: %s", made.cause.partition(":")[0])
    digest = talk.digest(made.text + request)
    return [*talk.items[:lead], digest, *talk.items[cut:]]


def _request(carried: Carried, talk: Talk, cut: int) -> str:
    """The user's newest words as the end of a digest, when they are not among what is kept."""
    if any(message.is_prompt for message in talk.messages[cut:]):
        return ""
    asked = [message.text for message in carried.said if message.is_prompt and message.text]
    newest = asked[-1] if asked else carried.request
    return f"\n\n{REQUEST}\n{newest}" if newest else ""


def _size(made: Written, request: str) -> int:
    return tokens(user(made.text + request))
