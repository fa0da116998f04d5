"""The changes that the page can make: preview and make a fold, undo it, pin and unpin.

All of them are made by `Session`.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from threading import Lock
from typing import Any

from foldline.cli.shared.output import digest_row, without_secrets
from foldline.errors import Conflict, InputError
from foldline.page.sources import PageSources
from foldline.session import Session
from foldline.session.preview import Preview, preview_of

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

    def preview(self, *, before: str = "", force: bool = False, instructions: str = "", **where: str) -> dict[str, Any]:
        """What a fold would do now. `id` is the name of the preview, for `approve`; "" if nothing would be folded."""
        opened = self._session(**where)
        found = opened.preview(before=before, force=force, instructions=instructions)
        if found is None:
            return {"id": "", "skip_reason": without_secrets(opened.skip_reason)}
        return {"id": self._keep(found), "skip_reason": "", **_preview_row(found)}

    def _keep(self, preview: Preview) -> str:
        """Keep a preview until it is approved, and return its name."""
        name = secrets.token_urlsafe(12)
        with self._lock:
            self._previews[name] = preview
            while len(self._previews) > _PREVIEWS:
                self._previews.popitem(last=False)
        return name

    def approve(self, *, preview: str, digest: str | None, **where: str) -> dict[str, Any]:
        """Make the fold of a preview, with its digest or with an edited text."""
        opened = self._session(**where)
        with self._lock:
            found = self._previews.get(preview)
        if found is None:
            raise Conflict("the preview is no longer known", hint="make a new preview")
        fold = opened.approve(found, digest=digest)
        with self._lock:
            self._previews.pop(preview, None)
        return {"folds": opened.folds, "cut": fold.cut, "before": fold.before, "after": fold.after}

    def unfold(self, **where: str) -> dict[str, Any]:
        """Undo the newest fold. `undo` in the answer is a name for `approve`, which makes the fold again."""
        opened = self._session(**where)
        taken_back = opened.timeline.fold
        opened.unfold()
        load, plan = opened.load(), opened.plan()
        return {
            "undo": ""
            if taken_back is None
            else self._keep(preview_of(opened.state, taken_back, opened.record.identity)),
            "folds": opened.folds,
            "tokens": load.request,
            "usable": load.usable,
            "need": plan.verdict.need.name,
            "folds_again": plan.fold is not None,
        }

    def pin(self, *, handle: str, text: str, name: str, **where: str) -> dict[str, Any]:
        """Pin messages or a text."""
        opened = self._session(**where)
        return {"pins": list(opened.pin(text, handle=handle, name=name))}

    def unpin(self, *, name: str, **where: str) -> dict[str, Any]:
        """Remove a pin."""
        opened = self._session(**where)
        if name not in opened.pins:
            raise InputError(f"unknown pin {name!r}", hint="choose a pin from the list")
        opened.unpin(name)
        return {"pins": [*opened.pins]}


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
        "digest": None
        if digest is None
        else without_secrets({**digest_row(fold, digest), "text": digest.message.text}),
    }
