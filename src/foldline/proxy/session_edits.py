"""Changes a session after the client went back to an earlier message or compacted its history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from foldline.errors import Conflict
from foldline.events import LOG
from foldline.session.record import ATTEMPTS, too_many_conflicts
from foldline.session.session import Session

PROMPT_SHARE = 0.25
"""The first prompt stays in every view only if it takes at most this share of the usable window."""


def release_long_prompt(session: Session) -> None:
    """Let the next fold remove the first prompt, if this prompt is long and the session has a newer prompt.

    A long prompt that stays in every view leaves little or no room for the history. After the fold, the digest quotes
    the prompt.
    """
    state, prompts = session.state, session.state.timeline.prompts
    if not state.policy.keep_first_prompt or len(prompts) < 2:
        return
    tokens, most = state.scaled(state.timeline.tokens(prompts[0])), PROMPT_SHARE * state.usable
    if tokens > most:
        LOG.info("%s: the first prompt (%d tokens) does not stay in every view", session.name, tokens)
        session.use(policy=state.policy.but(keep_first_prompt=False))


def rewind(session: Session, length: int) -> None:
    """Shorten the session to its first `length` messages. The ledger keeps the other messages."""
    _change(session, lambda entry: session.record.move(length, entry))


def fold_before(session: Session, position: int, *, reason: str) -> None:
    """Fold everything before a position, without a digest. The message at this position is the client's own summary of
    the folded messages.
    """

    def fold(entry: int) -> object:
        state, timeline = session.state, session.state.timeline
        planned = state.plan_at(position, reason)
        pinned = tuple(index for index in planned.pinned if index in timeline.pins)
        tokens = sum(map(timeline.tokens, pinned))
        left_out = planned.carried_tokens + planned.pinned_tokens - tokens
        bare = replace(
            planned,
            pinned=pinned,
            pinned_tokens=tokens,
            carried=(),
            carried_tokens=0,
            stubs={},
            after=planned.after - state.scaled(left_out),
        )
        return session.record.fold(state.complete(bare, None), entry)

    _change(session, fold)


def _change(session: Session, change: Callable[[int], object]) -> None:
    with session.lock:
        for _ in range(ATTEMPTS):
            session.refresh()
            try:
                change(session.state.snapshot.version.entry)
            except Conflict:
                continue
            session.reload()
            return
    raise too_many_conflicts()
