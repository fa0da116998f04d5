"""What a session tells whoever listens: each thing once, and after it is a fact."""

from __future__ import annotations

from typing import Any

from foldline.events import Event, Listener, heard, tell
from foldline.fold import Fold
from foldline.plan.gate import Load
from foldline.plan.plan import Plan
from foldline.policy import Rule
from foldline.session.state import Desk


class Teller:
    """Tells of one session. All it keeps is what it told, so that nothing is told twice."""

    def __init__(self, name: str, listener: Listener | None) -> None:
        self.name, self.listener = name, listener
        self._fired: tuple[Rule, ...] = ()
        """The rules that held at the last view."""
        self._told = (0, 0)
        """Messages that were shortened on arrival, and those that had to be mended."""

    def tell(self, kind: str, **facts: Any) -> None:
        """Tell everybody."""
        tell(Event(kind, self.name, facts), self.listener)

    def begin(self, desk: Desk) -> None:
        """What lies on a desk already was told when it came."""
        self._told = desk.pruned, len(desk.timeline.broken)

    def verdict(self, made: Plan, load: Load, desk: Desk) -> None:
        """How full it is, what was mended, a wish that was not granted; a warning once until it no longer holds."""
        if heard(self.listener):
            self.tell("measured", tokens=load.request, usable=load.usable)
        if (desk.pruned, len(desk.timeline.broken)) != self._told:
            self._arrived(desk)
        fired = made.verdict.fired
        if fired != self._fired:
            for rule in fired:
                if rule.action in {"warn", "pause"} and rule not in self._fired:
                    self.tell("warned", reason=str(rule))
            self._fired = fired
        if made.skipped:
            self.tell("skipped", reason=made.skipped)

    def _arrived(self, desk: Desk) -> None:
        pruned, mended = self._told
        self.begin(desk)
        if self._told[0] > pruned:
            self.tell("pruned", results=self._told[0] - pruned)
        if self._told[1] > mended:
            self.tell("repaired", messages=self._told[1] - mended)

    def committed(self, fold: Fold) -> None:
        """A fold that the record has, and the results that were shortened with it."""
        if fold.stubs:
            self.tell("pruned", results=len(fold.stubs))
        by = fold.digest.by if fold.digest else ""
        self.tell("committed", cut=fold.cut, before=fold.before, after=fold.after, by=by)
