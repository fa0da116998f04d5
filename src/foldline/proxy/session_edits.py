"""Changes a session after the client went back to an earlier message or compacted its history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from foldline.errors import Conflict
from foldline.session.record import ATTEMPTS, too_many_conflicts
from foldline.session.session import Session


def rewind(session: Session, length: int) -> None:
    """Shorten the session to its first `length` messages. The ledger keeps the others."""
    _change(session, lambda entry: session.record.move(length, entry))


def fold_before(session: Session, position: int, *, reason: str) -> None:
    """Fold everything before a position, without a digest.

    The client's own summary at that position replaces it.
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
            after=planned.after - left_out,
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
