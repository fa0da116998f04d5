"""Makes the folds of a session, at once or in the background: writes the digest and commits the fold to the record."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from foldline.digest.digest_request import FoldRefused
from foldline.errors import Cancelled, Conflict, InputError
from foldline.fold import Fold
from foldline.ledger.jobs import Claim
from foldline.recall.handles import parse_handle
from foldline.session.digest_writer import WriteOptions
from foldline.session.preview import Preview, preview_of
from foldline.session.record import Refusal
from foldline.session.state import State

if TYPE_CHECKING:
    from foldline.session.session import Session


def is_cooling(state: State) -> bool:
    """Whether fewer than `cooldown_messages` messages were added since the last fold was refused."""
    refusal = state.snapshot.refusal
    return refusal is not None and len(state.timeline) < refusal.at + state.policy.cooldown_messages


def fold_due(session: Session, planned: Fold, *, must: bool) -> bool:
    """Make a fold that is due, or leave it to the worker if it can wait. Returns False after a write conflict.

    If the last fold was refused recently, a fold that can wait is not made. A fold that cannot wait then gets a local
    digest.
    """
    cooling = is_cooling(session.state)
    if cooling and not must:
        return True
    worker, policy = session.worker, session.policy
    able = worker is not None and (worker.is_remote or session.digester is not None)
    background = able and policy.background and policy.leave == "digest" and planned.cut > session.timeline.cut
    if background and not must and worker is not None:
        worker.request_fold(session.record.search_target()[1])
        return True
    local = "it could not wait" if background else ""
    if cooling and session.refusal is not None:
        local = session.refusal.cause
    try:
        if not make_fold(session, planned, WriteOptions(must=must, local=local)):
            return False
    except Cancelled as cancelled:
        if must:
            raise
        session.emit("skipped", reason=cancelled.message)
        return True
    if background:
        session.cancel()  # a background fold is superseded now
    return True


def make_fold(session: Session, planned: Fold, options: WriteOptions, claim: Claim | None = None) -> bool:
    """Write the digest of a planned fold and commit the fold, or record its refusal.

    Returns False after a write conflict. Raises `Cancelled` if the fold was cancelled before its commit.
    """
    before = session.running
    session.running = options.cancel
    try:
        return _make_fold(session, planned, options, claim)
    finally:
        session.running = before


def _make_fold(session: Session, planned: Fold, options: WriteOptions, claim: Claim | None) -> bool:
    entry, digester, cancel = session.state.snapshot.version.entry, session.digester, options.cancel
    session.emit("planned", cut=planned.cut, reason=planned.reason)
    session.emit("started", cut=planned.cut, by=digester.name if digester and not options.local else "local")
    if session.state.snapshot.version.entry != entry:  # a listener has changed it
        return False
    digest = session.writer.write(session.state, planned, digester, options)
    state = session.state
    if state.snapshot.version.entry != entry:
        return False
    fold = state.complete(planned, None if isinstance(digest, FoldRefused) else digest)
    if options.text is not None:
        _check_gain(fold)
    cancel.begin_commit()
    try:
        if isinstance(digest, FoldRefused):
            return _refuse(session, digest.cause, entry)
        if options.text is None and _grows(fold) and fold.cut > state.timeline.cut:
            return _refuse(session, f"the view would not become smaller: {fold.before:,} → {fold.after:,}", entry)
        version = session.record.fold(fold, entry, claim)
    except Conflict:
        cancel.fail_commit()
        return False
    if len(state.timeline) == fold.made_at:
        state.apply(fold, version)
    else:
        session.reload()  # messages were added while the digest was written
    if digest is not None and digest.cause and not options.local:
        session.emit("failed", cause=digest.cause)
    emit_committed(session, fold)
    return True


def _refuse(session: Session, cause: str, entry: int) -> bool:
    """Record that a fold was not made, and why. Returns True."""
    state = session.state
    refusal = Refusal(len(state.timeline), cause)
    state.follow(session.record.refuse(refusal, entry), refusal=refusal)
    session.emit("skipped", reason=cause)
    return True


def preview_fold(session: Session, options: WriteOptions, before: str = "") -> Preview | None:
    """The preview of a manual fold; None if nothing would be folded. `session.skip_reason` then has the reason."""
    state = session.state
    plan = state.plan_before(parse_handle(before).first) if before else state.plan_by_hand(force=options.must)
    session.skip_reason = plan.skip_reason
    if plan.fold is None:
        return None
    digest = session.writer.write(state, plan.fold, session.digester, options)
    if isinstance(digest, FoldRefused):
        session.skip_reason = digest.cause
        return None
    return preview_of(state, state.complete(plan.fold, digest), session.record.identity)


def approve_fold(session: Session, preview: Preview, digest: str | None) -> Fold:
    """Commit the fold of a preview, with the digest of the preview or with the text `digest`."""
    state = session.state
    if (preview.record, preview.entry) != (session.record.identity, state.snapshot.version.entry):
        raise Conflict("the session has changed since this preview was made", hint="make a new preview")
    fold, reason = preview.fold, "approved by hand"
    if digest is not None:
        written = session.writer.write(state, fold, session.digester, WriteOptions(text=digest))
        fold = state.complete(fold, None if isinstance(written, FoldRefused) else written)
        reason += ", with a digest by hand"
    _check_gain(fold)
    fold = replace(fold, reason=reason)
    session.record.fold(fold, preview.entry)
    session.reload()
    emit_committed(session, fold)
    return fold


def _check_gain(fold: Fold) -> None:
    """Raise `InputError` if the view would not become smaller."""
    if _grows(fold):
        grown = f"with this digest the view would grow from {fold.before:,} to {fold.after:,} tokens"
        raise InputError(grown, hint="write a shorter one")


def _grows(fold: Fold) -> bool:
    return fold.after >= fold.before


def emit_committed(session: Session, fold: Fold) -> None:
    """Emit an event that a fold was committed, and one with the number of results that it shortened."""
    if fold.stubs:
        session.emit("pruned", results=len(fold.stubs))
    by = fold.digest.by if fold.digest else ""
    unbound = session.state.unbound or None
    session.emit("committed", cut=fold.cut, before=fold.before, after=fold.after, by=by, thinking_left_out=unbound)
