"""Emits the events about views, for example `measured`, `pruned` (results were shortened) and `repaired` (messages)."""

from __future__ import annotations

import sys
from logging import DEBUG
from typing import TYPE_CHECKING, NamedTuple

from foldline.events import LOG, TRACE
from foldline.measure.figure_series import Agreement
from foldline.plan.gate import Load
from foldline.plan.plan import Plan
from foldline.policy import Rule
from foldline.session.state import State

if TYPE_CHECKING:
    from foldline.session.session import Session


class ViewFacts(NamedTuple):
    """Facts about a view. If one of them changes, an event is emitted."""

    agreement: Agreement | None = None
    """The newest usage figures that are trusted because they agree with each other; None if there are none."""
    assumption: str = ""
    """The assumption about the window; "" if there is none."""
    pruned: int = 0
    """The number of messages that were shortened on arrival."""
    broken: int = 0
    """The number of broken messages."""
    folds: int = 0
    """The number of folds, without those that were undone."""
    unbound: int = 0
    """The number of messages whose thinking is bound to another view."""
    fired: tuple[Rule, ...] = ()
    """The rules that have fired."""


class ViewEvents:
    """Emits the events about views. Remembers what it emitted last, so that each change is emitted only once."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known = ViewFacts()
        """The facts at the last view."""

    def follow(self, state: State) -> None:
        """Treat the prunings, the repairs and the corrected estimate of a state as already reported."""
        broken, agreement = len(state.timeline.broken), state.gauge.agreement
        self._known = self._known._replace(pruned=state.pruned, broken=broken, agreement=agreement)

    def report(self, session: Session, load: Load, plan: Plan) -> None:
        """Emit the events about the current view of a session."""
        state, known = session.state, self._known
        if session.listener is not None or LOG.isEnabledFor(DEBUG) or TRACE in sys.modules:
            session.emit("measured", tokens=load.request, usable=load.usable)
        found = (
            state.gauge.agreement,
            state.setup.assumption,
            state.pruned,
            len(state.timeline.broken),
            state.snapshot.folds,
            state.unbound,
            plan.verdict.fired,
        )
        if found != known:
            self._known = ViewFacts._make(found)
            _report_changes(session, known, self._known)
        if plan.skip_reason:
            session.emit("skipped", reason=plan.skip_reason)


def _report_changes(session: Session, known: ViewFacts, found: ViewFacts) -> None:
    agreement = found.agreement
    if agreement is not None and agreement != known.agreement and agreement.is_beyond_margin:
        reported, expected = agreement.reported, agreement.expected
        session.emit("corrected", reported=reported, expected=expected, ratio=round(reported / expected, 2))
    if found.assumption and found.assumption != known.assumption:
        session.emit("assumed", window=session.window, reason=found.assumption)
    if found.pruned > known.pruned:
        session.emit("pruned", results=found.pruned - known.pruned)
    if found.broken > known.broken:
        session.emit("repaired", messages=found.broken - known.broken)
    if found.unbound > known.unbound and found.folds == known.folds:
        session.emit("unbound", messages=found.unbound - known.unbound)
    for rule in found.fired:
        if rule.action in {"warn", "pause"} and rule not in known.fired:
            session.emit("warned", reason=str(rule))
