"""The preview of a fold, for a person to approve: the messages to be folded, the digest, tokens and costs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import NamedTuple

from foldline.fold import Fold
from foldline.message import NOTE, Meta
from foldline.plan.fold_cost import CacheState, break_even, fold_price, prices_of, request_cost
from foldline.plan.timeline import left_handles
from foldline.session.state import Reader, State
from foldline.view.identity import UNKNOWN_VIEW, ViewIdentity

_MILLION = 1e6
"""Prices are per million tokens."""
_NEWEST = 100
"""The state of the prompt cache is computed from this many of the newest messages, which contain dozens of replies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a fold would do. Costs are in US dollars; None if the model's prices are unknown."""

    fold: Fold
    leaves: str
    """The handles of the messages that would leave the view."""
    before: int
    after: int
    entry: int
    """The newest log entry of the record when the preview was made."""
    record: object = field(default=None, repr=False)
    """The identity of the record that the preview was made for."""
    money_before: float | None = None
    """Cost of each later request without the fold. If there is a prompt cache, the request is read from it."""
    money_after: float | None = None
    """Cost of each later request after the fold. If there is a prompt cache, the request is read from it."""
    money_once: float | None = None
    """Cost of the fold itself, because the kept part must be written to the cache again. 0 if `cache` is not `warm`."""
    pays_with: int | None = None
    """Number of requests after which the savings cover the cost of the fold; None if they never do, or if the prices
    are unknown.
    """
    cache: CacheState = "warm"
    """The state of the provider's prompt cache: `warm`, `unsent`, `expired`, or `none` if no prompt is cached.

    It is `unsent` if no request was sent since the last fold: the next request writes the cache again in any case. It
    is `none` if the session has at least two replies to large prompts, and no usage of a reply names cached tokens.
    """

    def __str__(self) -> str:
        lines = [f"{self.leaves} would leave: {self.before:,} → {self.after:,} tokens"]
        if self.money_before is not None:
            pays = f", paid back after {self.pays_with:,} requests" if self.pays_with is not None else ""
            lines.append(
                f"a request: ${self.money_before:.4f} → ${self.money_after:.4f}, once ${self.money_once:.4f}{pays}"
            )
        return "\n".join([*lines, str(self.fold)])


class RewriteCost(NamedTuple):
    """What the next request pays again because a note was removed from the view, or because a fold was undone."""

    tokens: int
    """Tokens that the next request writes to the provider's cache because of the change."""
    usd: float | None
    """What the next request pays for these tokens in addition; None if the model's prices are unknown."""
    cache: CacheState


def removal_cost(state: State, position: int, cache: CacheState) -> RewriteCost:
    """The cost of removing the note at `position` from the view.

    If no reply followed the note, the cost is 0, because the provider's cache has no text that comes after the note.
    """
    timeline = state.timeline
    start = max(position + 1, timeline.cut)
    replies = [at for at in range(start, len(timeline)) if timeline.messages[at].role == "assistant"]
    if not replies:
        return RewriteCost(0, 0.0, cache)
    carried = timeline.fold.carried if timeline.fold is not None and position < timeline.cut else ()
    local = timeline.prefix[replies[-1]] - timeline.prefix[start]
    local += sum(timeline.tokens(at) for at in carried if at > position)
    tokens = state.scaled(local)
    return RewriteCost(tokens, rewrite_cost(state, tokens, cache), cache)


def unfold_cost(state: State, unfolded: State, last: LastRequest, cache: CacheState) -> RewriteCost:
    """The cost of taking back a fold. `unfolded` is the state without the fold.

    If the newest request was sent before the fold, the cost is 0, because the provider's cache still has that request.
    """
    load = unfolded.load()
    head = unfolded.scaled(unfolded.timeline.prefix[unfolded.timeline.lead]) + load.fixed
    if last.has_fold_of(state):
        tokens = load.request - head
    elif last.has_fold_of(unfolded):
        tokens, cache = 0, "unsent" if cache == "warm" else cache
    else:
        tokens = max(0, load.request - state.load().request)
    return RewriteCost(tokens, rewrite_cost(unfolded, tokens, cache), cache)


def rewrite_cost(state: State, tokens: int, cache: CacheState) -> float | None:
    """The cost of writing tokens to the provider's cache again, in US dollars; None if the prices are unknown."""
    if state.model.prices is None:
        return None
    prices = prices_of(state.model, is_cached=cache != "none")
    return fold_price(prices, rewritten=tokens, digest_price=0.0, warm=cache == "warm") / _MILLION


class LastRequest(NamedTuple):
    """The newest request that was answered. The provider's prompt cache may hold it."""

    reply: int
    """Index of the newest message of its reply.

    If no reply is among the newest messages, this is the index directly before them, or -1 if all messages were read.
    """
    view: str
    """The identity of its view, as it is stored with the reply; "" if it is not stored."""
    metas: tuple[Meta, ...]
    """The times and the usage of the newest messages.

    Notes are left out: they are sent with the next prompt, so the cache does not have them.
    """

    def has_fold_of(self, state: State) -> bool:
        """Whether the request had the same fold as the view of a state."""
        identity, fold = ViewIdentity.read(self.view), state.timeline.fold
        if identity is not None and identity.key != UNKNOWN_VIEW.key:
            return identity.shares_fold(state.view_key)
        return self.reply >= (fold.made_at if fold is not None else 0)

    def cache_of(self, state: State, cache: CacheState) -> CacheState:
        """Whether the prompt cache holds the view of `state`: `unsent` if this request had another fold.

        Otherwise the result is `cache`, which says whether the prompt cache holds this request.
        """
        return "unsent" if cache == "warm" and not self.has_fold_of(state) else cache


def last_request(read: Reader, length: int) -> LastRequest:
    """The newest request of a session. `length` is the number of all messages. Only the newest ones are read."""
    start = max(0, length - _NEWEST)
    newest = list(enumerate(read(start, length), start=start))
    metas = tuple([one.meta for _, one in newest if one.kind != NOTE])
    replies = groupby(reversed(newest), key=lambda pair: pair[1].role == "assistant")
    reply = next((list(found) for is_reply, found in replies if is_reply), [])
    view = next((one.meta.view for _, one in reply if one.meta.view), "")
    return LastRequest(reply[0][0] if reply else start - 1, view, metas)


def preview_of(state: State, fold: Fold, record: object, cache: CacheState) -> Preview:
    """The preview of a fold that has its digest and its final sizes, at the prices of the session's model."""
    timeline, before, after = state.timeline, fold.before, fold.after
    leaves, entry = left_handles(fold, timeline.fold or Fold(cut=timeline.cut)), state.snapshot.version.entry
    preview = Preview(fold=fold, leaves=leaves, before=before, after=after, entry=entry, record=record, cache=cache)
    if state.model.prices is None:
        return preview
    prices, warm = prices_of(state.model, is_cached=cache != "none"), cache == "warm"
    head = state.tools + timeline.prefix[timeline.lead]
    rewritten = max(0, after - head)
    return replace(
        preview,
        money_before=request_cost(prices, tokens=before, common=before, warm=True) / _MILLION,
        money_after=request_cost(prices, tokens=after, common=after, warm=True) / _MILLION,
        money_once=fold_price(prices, rewritten=rewritten, digest_price=0.0, warm=warm) / _MILLION,
        pays_with=break_even(prices, rewritten=rewritten, gain=before - after, digest_price=0.0, warm=warm),
    )
