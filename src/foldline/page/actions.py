"""The changes that the page can make: preview a fold, make a fold, undo a fold, restore a fold, pin and unpin.

All changes are made by `Session`.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from dataclasses import replace
from threading import Lock
from typing import Any

from foldline.cli.shared.output import digest_row, without_secrets
from foldline.errors import Conflict, InputError, ViewTooLarge
from foldline.ledger.records import BranchState
from foldline.message import Thinking
from foldline.page.advice import cut_after
from foldline.page.session_reader import SessionReader, copied_message
from foldline.page.session_summary import kept_by
from foldline.page.sources import PageSources
from foldline.plan.fold_cost import CacheState, prices_of, request_cost
from foldline.plan.gate import Need
from foldline.plan.timeline import handle, left_handles
from foldline.recall.handles import parse_handle
from foldline.session import Session
from foldline.session.folding import check_refold
from foldline.session.preview import Preview, preview_of, removal_cost
from foldline.session.state import State

_PREVIEWS = 32
"""Maximum number of previews that are kept for approval."""


class PageActions:
    """The API calls that change a session, such as pin, fold and unfold."""

    def __init__(self, sources: PageSources) -> None:
        self.sources = sources
        self._previews: OrderedDict[str, Preview] = OrderedDict()
        self._lock = Lock()

    def _session(self, owner: str, session: str, branch: str) -> Session:
        if not self.sources.can_change(owner):
            raise InputError("this session is read-only", hint="import the file into a ledger to change it")
        self.sources.reader(owner, session, branch)  # a name that does not exist must not create a session
        return self.sources.ledger_of(owner).session(session, branch=branch)

    def preview(
        self, *, through: str = "", before: str = "", force: bool = False, instructions: str = "", **where: str
    ) -> dict[str, Any]:
        """What a fold would do now. In the answer, `id` is the argument for `approve`, or "" if nothing would be
        folded.
        """
        opened = self._session(**where)
        if through:
            before = handle(cut_after(opened.state, parse_handle(through).last))
        found = opened.preview(before=before, force=force, instructions=instructions)
        if found is None:
            return {"id": "", "skip_reason": without_secrets(opened.skip_reason)}
        cache = self.sources.reader(**where).cache_of(opened.state)  # with the same times as in `advice`
        found = preview_of(opened.state, found.fold, found.record, cache)
        return {"id": self._keep(found), "skip_reason": "", **_preview_row(found)}

    def revise(self, *, preview: str, digest: str, **where: str) -> dict[str, Any]:
        """The preview, computed again with `digest` as its digest. Nothing is changed."""
        return _preview_row(self._session(**where).revise(self._previewed(preview), digest))

    def _previewed(self, name: str) -> Preview:
        """The preview with this name. Raises `Conflict` if it is no longer known."""
        with self._lock:
            found = self._previews.get(name)
        if found is None:
            raise Conflict("the preview is no longer known", hint="make a new preview")
        return found

    def _keep(self, preview: Preview) -> str:
        """Keep a preview until it is approved, and return its name."""
        name = secrets.token_urlsafe(12)
        with self._lock:
            self._previews[name] = preview
            while len(self._previews) > _PREVIEWS:
                self._previews.popitem(last=False)
        return name

    def approve(self, *, preview: str, digest: str | None, **where: str) -> dict[str, Any]:
        """Make the fold of a preview, with the digest of the preview or with an edited digest."""
        opened = self._session(**where)
        fold = opened.approve(self._previewed(preview), digest=digest)
        with self._lock:
            self._previews.pop(preview, None)
        made = [one for one in self.sources.reader(**where).log().folds if one.cut == fold.cut]
        answer = {"folds": opened.folds, "cut": fold.cut, "before": fold.before, "after": fold.after}
        return {**answer, "fold": made[-1].id if made else ""}

    def unfold_preview(self, *, fold: str, **where: str) -> dict[str, Any]:
        """What taking back a fold would do, which must be the newest one. Nothing is changed."""
        opened, reader = self._session(**where), self.sources.reader(**where)
        log, snapshot = _log_with_newest(reader, fold), opened.record.snapshot()
        if snapshot.fold is None:
            raise Conflict("nothing is folded any more", hint="look at the list of folds")
        previous = log.folds[-2] if len(log.folds) > 1 else None
        before = reader.fold(previous) if previous else None
        shortest = previous.shortest if previous else None
        changed = replace(snapshot, fold=before, shortest=shortest, changed_at=snapshot.version.length)
        state = State(opened.state.setup, changed, opened.record.read)
        load, cost = state.load(), reader.unfold_cost(opened.state, state)
        return {
            "back": left_handles(snapshot.fold, before),
            "previous": reader.fold_history().number_of(previous) or None,
            "tokens": load.request,
            "usable": load.usable,
            **_next_fold(state),
            "cache": cost.cache,
            "rewrites": cost.tokens,
            "costs": cost.usd,
            "each_before": _repeat_cost(state, opened.state.load().request, cost.cache),
            "each_after": _repeat_cost(state, load.request, cost.cache),
        }

    def unfold(self, *, fold: str, **where: str) -> dict[str, Any]:
        """Take back a fold, which must be the newest one. `refold` restores it."""
        opened = self._session(**where)
        log = _log_with_newest(self.sources.reader(**where), fold)
        taken_back = opened.timeline.fold
        opened.record.unfold(log.head.mark)  # raises `Conflict` if the session was changed since the log was read
        opened.reload()
        load = opened.load()
        return {
            "back": left_handles(taken_back, opened.timeline.fold),
            "folds": opened.folds,
            "tokens": load.request,
            "usable": load.usable,
            **_next_fold(opened.state),
        }

    def refold(self, *, fold: str, **where: str) -> dict[str, Any]:
        """Restore a fold, which must be the one that was taken back last."""
        opened, reader = self._session(**where), self.sources.reader(**where)
        log = reader.log()
        if not log.undone or log.undone[-1].id != fold:
            why = "it applies already, or another fold was made or taken back since"
            raise Conflict(f"{_name_of(reader, fold)} cannot be restored: {why}", hint="look at the list of folds")
        check_refold(opened.state)
        opened.record.refold(log.head.mark)
        opened.reload()
        load = opened.load()
        return {"folds": opened.folds, "tokens": load.request, "usable": load.usable}

    def pin(self, *, handle: str, text: str, name: str, **where: str) -> dict[str, Any]:
        """Pin messages or a text.

        If a message is not in the view in full, a note with the text of the message is pinned instead. In the answer,
        `messages` has the numbers of the pinned messages and notes, and `added` the numbers of the new notes. If the
        session already has such a note, the note is shown again in its old place.
        """
        opened = self._session(**where)
        length = len(opened)
        names = opened.pin(text, handle=handle, name=name)
        places = [opened.state.snapshot.pins[one] for one in names]
        copied = [
            at for one, place in zip(names, places, strict=True) if (at := copied_message(one, place)) is not None
        ]
        return {
            "pins": list(names),
            "messages": [place + 1 for place in places],
            "added": [place + 1 for place in places if place >= length],
            "without_thinking": any(
                isinstance(part, Thinking)
                for at in copied
                for message in opened.record.read(at, at + 1)
                for part in message.parts
            ),
        }

    def unpin(self, *, name: str, **where: str) -> dict[str, Any]:
        """Remove a pin. A note that was added only to be pinned leaves the request at once.

        In the answer, `message` is the number of the message that was pinned. If this message is a note that repeats
        another message, `copy_of` is the number of the other message; else None. `left` says whether the pinned message
        left the request. If the pinned message stays in every request although its pin is removed, `kept_by` says why
        (`system` or `policy`); else it is "".
        """
        opened = self._session(**where)
        if name not in opened.pins:
            raise InputError(f"there is no pin {name!r} any more", hint="it was removed in the meantime")
        state, reader = opened.state, self.sources.reader(**where)
        place = state.snapshot.pins[name]
        cost = removal_cost(state, place, reader.cache_of(state))
        opened.unpin(name, at_once=True)
        left = place in opened.state.snapshot.removed
        original = copied_message(name, place)
        return {
            "pins": [*opened.pins],
            "message": place + 1,
            "copy_of": None if original is None else original + 1,
            "left": left,
            "kept_by": kept_by(reader, place),
            "rewrites": cost.tokens if left else 0,
            "costs": cost.usd if left else None,
            "cache": cost.cache,
        }


def _repeat_cost(state: State, tokens: int, cache: CacheState) -> float | None:
    """What each later request of this size costs, in US dollars; None if the prices are unknown."""
    if state.model.prices is None:
        return None
    prices = prices_of(state.model, is_cached=cache != "none")
    return request_cost(prices, tokens=tokens, common=tokens, warm=True) / 1e6


def _name_of(reader: SessionReader, fold: str) -> str:
    """The name of a fold for a person: its number in the list of folds."""
    folds = reader.fold_history().folds
    return next((f"fold {at}" for at, one in enumerate(folds, start=1) if one.reference.id == fold), f"fold {fold!r}")


def _log_with_newest(reader: SessionReader, fold: str) -> BranchState:
    """The log of a session whose newest fold is `fold`. Raises `Conflict` if another fold is the newest."""
    log = reader.log()
    newest = log.folds[-1].id if log.folds else ""
    if newest != fold:
        now = f"{_name_of(reader, newest)} is the newest fold now" if newest else "nothing is folded now"
        raise Conflict(f"{_name_of(reader, fold)} cannot be taken back: {now}", hint="look at the list of folds")
    return log


def _next_fold(state: State) -> dict[str, Any]:
    """How urgent a fold is, and whether the next request folds."""
    try:
        plan = state.plan()
    except ViewTooLarge:
        return {"need": Need.HARD.name, "folds_again": False}
    return {"need": plan.verdict.need.name, "folds_again": plan.fold is not None}


def _preview_row(preview: Preview) -> dict[str, Any]:
    fold, digest = preview.fold, preview.fold.digest
    return {
        "leaves": preview.leaves,
        "cut": fold.cut,
        "before": preview.before,
        "after": preview.after,
        "stubs": len(fold.stubs),
        "money_before": preview.money_before,
        "money_after": preview.money_after,
        "money_once": preview.money_once,
        "pays_with": preview.pays_with,
        "cache": preview.cache,
        "digest": None
        if digest is None
        else without_secrets({**digest_row(fold, digest), "text": digest.message.text}),
    }
