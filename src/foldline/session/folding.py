"""Makes the folds of a session, at once or in the background: writes the digest and commits the fold to the record."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from threading import Event
from typing import TYPE_CHECKING

from foldline.digest.digester import FoldRefused
from foldline.errors import Cancelled, Conflict, FoldlineError, InputError
from foldline.fold import Fold
from foldline.ledger.jobs import Claim
from foldline.plan.fold_cost import cache_state
from foldline.plan.timeline import handle
from foldline.recall.handles import parse_handle
from foldline.session.cancellation import Cancellation
from foldline.session.digest_writer import WriteOptions
from foldline.session.lease import LEASE_S, SLACK_S, JobStop, LeaseKeeper
from foldline.session.preview import Preview, last_request, preview_of
from foldline.session.record import BranchRecord, Refusal
from foldline.session.state import State

if TYPE_CHECKING:
    from foldline.session.session import Session


COULD_NOT_WAIT = "the request could not wait for the model; with background=False, requests wait"
"""The recorded cause of a local digest if the fold is due at once and cannot wait for the digester."""


def is_cooling(state: State) -> bool:
    """Whether fewer than `cooldown_messages` messages were added since the last fold was refused."""
    refusal = state.snapshot.refusal
    return refusal is not None and len(state.timeline) < refusal.at + state.policy.cooldown_messages


def fold_due(session: Session, planned: Fold, *, must: bool) -> bool:
    """Make a fold that is due, or leave it to the worker if it can wait. Returns False after a write conflict.

    If the last fold was refused recently, a fold that can wait is not made, and a fold that cannot wait gets a local
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
    local = COULD_NOT_WAIT if background else ""
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
        cancel_background_fold(session)  # superseded now
    return True


def cancel_background_fold(session: Session) -> bool:
    """Cancel the fold that is requested or being made in the background. Returns False if there is none."""
    stopped = session.worker is not None and session.worker.cancel(session.record.search_target()[1])
    return session.record.cancel() or stopped


def make_fold(session: Session, planned: Fold, options: WriteOptions, claim: Claim | None = None) -> bool:
    """Write the digest of a planned fold and commit the fold. If no fold can be made, record the cause.

    Returns False after a write conflict. Raises `Cancelled` if the fold was cancelled before its commit.
    """
    if claim is not None:
        return _make_fold(session, planned, options, claim)
    with _cancellable(session, options) as (claimed, own_claim):
        return _make_fold(session, planned, claimed, own_claim)


@contextmanager
def _cancellable(session: Session, options: WriteOptions) -> Iterator[tuple[WriteOptions, Claim | None]]:
    """Let other threads and processes cancel the fold that is made in the `with` block.

    Yields the options, which contain the stop signal, and the claim for the commit (None without a ledger).
    """
    before, record, stop = session.running, session.record, options.cancel
    session.running = stop
    claim = None
    try:
        if isinstance(record, BranchRecord) and isinstance(stop, Cancellation):
            jobs, deadline_s = record.store.jobs, session.policy.digest_seconds + SLACK_S
            claim = jobs.claim_direct(record.branch, lease_s=LEASE_S, deadline_s=deadline_s)
            options = replace(options, cancel=LeaseKeeper(jobs, claim, JobStop(Event(), stop), LEASE_S))
        yield options, claim
    finally:
        session.running = before
        if claim is not None:
            with suppress(FoldlineError):  # the claim was cancelled; if not, its lease will run out
                if jobs.get(claim.branch, claim.name).is_held:
                    jobs.finish(claim)


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
        if cancel.is_set():
            raise Cancelled("the fold was cancelled", hint="nothing was changed") from None
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
    """Record that a fold was not made, and why. Returns True, because there was no write conflict."""
    state = session.state
    refusal = Refusal(len(state.timeline), cause)
    state.follow(session.record.refuse(refusal, entry), refusal=refusal)
    session.emit("skipped", reason=cause)
    return True


def preview_fold(session: Session, options: WriteOptions, before: str = "") -> Preview | None:
    """The preview of a manual fold. If nothing would be folded, returns None and sets `session.skip_reason`."""
    state = session.state
    plan = state.plan_before(parse_handle(before).first) if before else state.plan_by_hand(force=options.must)
    session.skip_reason = plan.skip_reason
    if plan.fold is None:
        return None
    with _cancellable(session, options) as (claimed, _):
        digest = session.writer.write(state, plan.fold, session.digester, claimed)
        if claimed.cancel.is_set():
            raise Cancelled("the preview was cancelled", hint="nothing was changed")
    if isinstance(digest, FoldRefused):
        session.skip_reason = digest.cause
        return None
    last = last_request(session.record.read, len(state.timeline))
    cache = last.cache_of(state, cache_state(state.model, last.metas, now=session.clock()))
    return preview_of(state, state.complete(plan.fold, digest), session.record.identity, cache)


def revise_preview(session: Session, preview: Preview, digest: str) -> Preview:
    """The preview of the same fold with the text `digest` as its digest."""
    fold = _previewed_fold(session, preview, digest)
    return preview_of(session.state, fold, session.record.identity, preview.cache)


def approve_fold(session: Session, preview: Preview, digest: str | None) -> Fold:
    """Commit the fold of a preview, with the digest of the preview or with the text `digest`."""
    fold, reason = _previewed_fold(session, preview, digest), "approved by hand"
    if digest is not None:
        reason += ", with a digest by hand"
    _check_gain(fold)
    fold = replace(fold, reason=reason)
    session.record.fold(fold, preview.entry)
    session.reload()
    emit_committed(session, fold)
    return fold


def _previewed_fold(session: Session, preview: Preview, digest: str | None) -> Fold:
    """The fold of a preview, with the digest of the preview or with the text `digest`.

    Raises `Conflict` if the session was changed after the preview.
    """
    state = session.state
    if (preview.record, preview.entry) != (session.record.identity, state.snapshot.version.entry):
        raise Conflict("the session has changed since this preview was made", hint="make a new preview")
    if digest is None:
        return preview.fold
    written = session.writer.write(state, preview.fold, session.digester, WriteOptions(text=digest))
    return state.complete(preview.fold, None if isinstance(written, FoldRefused) else written)


def check_refold(state: State) -> None:
    """Raise `InputError` if restoring the fold that was taken back last would remove or shorten a pinned message."""
    fold = state.snapshot.undone
    pinned = [index for index in sorted(state.timeline.pins) if fold is not None and not fold.shows(index)]
    if pinned:
        raise InputError(f"{handle(pinned[0])} is pinned, and the fold would remove it", hint="make a new fold")


def _check_gain(fold: Fold) -> None:
    """Raise `InputError` if the view would not become smaller."""
    if _grows(fold):
        grown = f"with this digest the view would grow from {fold.before:,} to {fold.after:,} tokens"
        raise InputError(grown, hint="write a shorter digest")


def _grows(fold: Fold) -> bool:
    return fold.after >= fold.before


def emit_committed(session: Session, fold: Fold) -> None:
    """Emit the event `committed` for a fold. If the fold shortened results, first emit `pruned` with their number."""
    if fold.stubs:
        session.emit("pruned", results=len(fold.stubs))
    by = fold.digest.by if fold.digest else ""
    unbound = session.state.unbound or None
    session.emit("committed", cut=fold.cut, before=fold.before, after=fold.after, by=by, thinking_left_out=unbound)
