"""Emits the events about views: sizes, corrected estimates, prunings, repairs, warnings, and why a fold was skipped."""

from __future__ import annotations

import sys
from logging import DEBUG
from typing import TYPE_CHECKING

from foldline.events import LOG, TRACE
from foldline.measure.figure_series import Agreement
from foldline.plan.gate import Load
from foldline.plan.plan import Plan
from foldline.policy import Rule
from foldline.session.state import State

if TYPE_CHECKING:
    from foldline.session.session import Session


class ViewEvents:
    """Emits the events about views. Remembers what it emitted last, so that each change is emitted only once."""

    __slots__ = ("_agreement", "_arrived", "_assumption", "_fired", "_unbound")

    def __init__(self) -> None:
        self._agreement: Agreement | None = None
        """The usage figures that were reported last because they agree with each other; None if there are none."""
        self._arrived = (0, 0)
        """At the last event: the number of messages that were shortened on arrival, and the number
        of broken messages.
        """
        self._assumption = ""
        """The last reported assumption about the window; "" if there is none."""
        self._fired: tuple[Rule, ...] = ()
        """The rules that had fired at the last event."""
        self._unbound = (0, 0)
        """At the last view: the number of folds, and the number of messages whose thinking is bound to another view.
        """

    def follow(self, state: State) -> None:
        """Treat the prunings, the repairs and the corrected estimate of a state as already reported."""
        self._arrived = state.pruned, len(state.timeline.broken)
        self._agreement = state.gauge.agreement

    def report(self, session: Session, load: Load, plan: Plan) -> None:
        """Emit the events about the current view of a session."""
        state = session.state
        if session.listener is not None or LOG.isEnabledFor(DEBUG) or TRACE in sys.modules:
            session.emit("measured", tokens=load.request, usable=load.usable)
        agreement, known = state.gauge.agreement, self._agreement
        self._agreement = agreement
        if agreement is not None and agreement != known and agreement.is_beyond_margin:
            reported, expected = agreement.reported, agreement.expected
            session.emit("corrected", reported=reported, expected=expected, ratio=round(reported / expected, 2))
        if state.setup.assumption != self._assumption:
            self._assumption = state.setup.assumption
            if self._assumption:
                session.emit("assumed", window=session.window, reason=self._assumption)
        (pruned, broken), self._arrived = self._arrived, (state.pruned, len(state.timeline.broken))
        if state.pruned > pruned:
            session.emit("pruned", results=state.pruned - pruned)
        if self._arrived[1] > broken:
            session.emit("repaired", messages=self._arrived[1] - broken)
        (folds, unbound), self._unbound = self._unbound, (session.folds, state.unbound)
        if state.unbound > unbound and session.folds == folds:
            session.emit("unbound", messages=state.unbound - unbound)
        fired = plan.verdict.fired
        if fired != self._fired:
            before, self._fired = self._fired, fired
            for rule in fired:
                if rule.action in {"warn", "pause"} and rule not in before:
                    session.emit("warned", reason=str(rule))
        if plan.skip_reason:
            session.emit("skipped", reason=plan.skip_reason)
