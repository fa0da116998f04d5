"""One agent under watch: every event goes to the meter, the costs, the scratch and the dead ends; notices come out.

What a notice asks for is done by whoever runs the agent. Two things are done here, and in this order: where a turn ends
the scratch files are written, and only then a compaction that points to them is put in waiting for the next turn. The
scratch is also written when a line is crossed in the middle of a turn, since the agent may compact by itself before it
ends.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, Protocol

from foldline.watch.agent_events import AgentEvent, RawEvent, text_at
from foldline.watch.cost import CostLimits, Spending
from foldline.watch.dead_ends import DeadEnd, DeadEndDetector
from foldline.watch.interventions import InterventionQueue, build_compact_prompt, is_compact_tool, pointer
from foldline.watch.meter import AgentCompaction, Meter
from foldline.watch.scratch import ScratchModel
from foldline.watch.turn_boundaries import TurnTracker

FLUSH_CHARS = 200_000
"""How much is gathered before it is written, so that a turn without end needs no memory without end."""

_INTERESTING = ("assistant", "user", "result", "system", "tool_use", "event_msg", "response_item", "turn_context")
_ALSO = ("session_meta", "compacted", "cost-state")
_KINDS = frozenset((*_INTERESTING, *_ALSO))
_COSTLY = ("assistant", "result", "cost-state")


class WatchEvent(NamedTuple):
    """Something to tell: its name, the session it is about, and the facts."""

    event: str
    session: str
    facts: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        """The notice as an orchestrator reads it."""
        return {"event": self.event, "session": self.session, **self.facts}


class ScratchSink(Protocol):
    """Who writes the notes: a `ScratchWriter`, or one that gives way where it cannot."""

    @property
    def path(self) -> Path:
        """The index."""

    def write_scratch(self, model: ScratchModel) -> bool:
        """Write what a model has gathered; whether it may let go of that."""


class Watcher:
    """Watches one agent."""

    def __init__(
        self,
        *,
        meter: Meter | None = None,
        writer: ScratchSink | None = None,
        model: ScratchModel | None = None,
        limits: CostLimits | None = None,
        state: str = "",
    ) -> None:
        self.meter = meter or Meter()
        self.spending = Spending()
        self.model = model or ScratchModel()
        self.writer = writer
        self.limits = limits
        self.pending = InterventionQueue()
        self.turns = 0
        self.dead_ends = 0
        self.last_error: bool | None = None
        """Whether the last turn ended with an error; None in the middle of a turn."""
        self._state = state
        self._ends = DeadEndDetector()
        self._turns = TurnTracker()
        self._reply: tuple[Any, ...] = ()
        self._wish = self._wish_call = ""
        self._compact_told = False
        self._behind = False
        self._flush_at = FLUSH_CHARS
        self._tree = ""
        """Where the agent works, as it says."""

    def feed(self, event: RawEvent) -> list[WatchEvent]:
        """Take one event; what there is to tell about it."""
        seen = AgentEvent(event)
        kind = seen.kind
        if kind not in _KINDS:
            return []
        notices: list[WatchEvent] = []
        if kind == "user" and not seen.results and self._turns.has_ended(seen):
            notices = self._turn_ended(is_error=False)
        self.model.see(seen)
        if not self._is_known(seen):
            notices += self._measure(seen)
        found = self._ends.see(seen)
        if found:
            notices += self._dead_ends(found)
        if kind in _COSTLY:
            if seen.calls:
                self._take_wish(seen)
            notices += self._costs(turn_ended=False)
        elif self._wish and seen.results:
            self._drop_wish(seen)
        if self._turns.see(seen):
            return notices + self._turn_ended(is_error=_is_error(event))
        if self._turns.is_open:
            self.last_error = None
        if self.model.weight > self._flush_at and not self.save():
            self._flush_at = self.model.weight + FLUSH_CHARS
        return notices

    def pace(self, *, behind: bool) -> None:
        """Hear whether more waits to be read: then the notes wait too, until nothing does or somebody needs them."""
        caught_up, self._behind = self._behind and not behind, behind
        if caught_up:
            self.save()

    def end(self) -> list[WatchEvent]:
        """Nothing more will come: what there is to tell about a turn that ended without saying so."""
        over, failed = self._turns.is_over(), self._turns.has_failed()
        notices = self._turn_ended(is_error=failed) if over else self._costs(turn_ended=True)
        self.save()
        return notices

    def take(self, session: str) -> str | None:
        """What the session's next turn is to open with, alone; nothing for any other session."""
        return self.pending.take(session)

    def save(self) -> bool:
        """Write the scratch files, with an index also of what hooks added meanwhile; whether there are any to read."""
        if self.writer is None or not self.writer.write_scratch(self.model):
            return False
        self.model.forget()
        self._flush_at = FLUSH_CHARS
        return True

    def answer(self, *, go_on: bool) -> list[WatchEvent]:
        """What the person said when a limit was reached; a no has the agent wrap up."""
        texts = self.limits.answer(go_on=go_on) if self.limits is not None else []
        for text in texts:
            self.pending.put(self.meter.session, text)
        return [self._notice("intervention", text=text) for text in texts]

    def figures(self) -> dict[str, Any]:
        """How things stand."""
        meter = self.meter
        return {
            **meter.figures(),
            "window_source": meter.window.source,
            "model": meter.model,
            "cost_usd": round(self.spending.usd, 6),
            "cost_source": self.spending.source,
            "turns": self.turns,
            "compactions": meter.compactions,
            "dead_ends": self.dead_ends,
        }

    def _notice(self, event: str, **facts: Any) -> WatchEvent:
        return WatchEvent(event, self.meter.session, facts)

    def _is_known(self, seen: AgentEvent) -> bool:
        """Whether the event says nothing new of window and costs: a result, or another piece of the reply before.

        A reply comes in pieces, and each of them repeats its usage.
        """
        if seen.kind == "user":
            return not seen.session or seen.session == self.meter.session
        if seen.kind != "assistant" or seen.aside:
            return False
        reply = seen.message.get("id"), seen.message.get("usage"), seen.session
        if reply == self._reply and reply[0] and reply[1] and seen.session in ("", self.meter.session):
            return True
        self._reply = reply
        return False

    def _measure(self, seen: AgentEvent) -> list[WatchEvent]:
        """What an event says of window and costs; the scratch is written before anybody is told to compact."""
        meter = self.meter
        session, usage, flags = meter.session, meter.usage, meter.should_warn + meter.should_compact
        compaction = meter.see(seen)
        if seen.kind in _COSTLY:
            self.spending.see(seen)
        now = meter.should_warn + meter.should_compact
        if meter.session == session and compaction is None and now == flags:
            return [] if meter.usage is usage else [WatchEvent("meter", session, meter.figures())]
        self._tree = text_at(seen.event, "cwd") or self._tree
        notices: list[WatchEvent] = []
        if session != meter.session:
            flags = 0
            self.pending.keep_only(meter.session)
            self._wish, self._compact_told = "", False
            self._ends = DeadEndDetector() if session else self._ends
            notices.append(self._notice("session", model=meter.model))
        if compaction is not None:
            self.pending.drop_compact()
            self._compact_told = False
            self._wish = ""
            notices.append(self._notice("compacted", **compaction._asdict()))
            self.model.record_state_change("working", _compacted(compaction))
        if now > flags or compaction is not None:
            self.save()
        facts = meter.figures()
        notices.append(self._notice("meter", **facts))
        if now > flags == 0:
            notices.append(self._notice("warning", **facts))
        if now > flags and meter.should_compact:
            notices.append(self._notice("compact", **facts))
        return notices

    def _turn_ended(self, *, is_error: bool) -> list[WatchEvent]:
        self._turns.close()
        self.turns += 1
        self.last_error = is_error
        notices = self._dead_ends(self._ends.turn_ended()) + self._costs(turn_ended=True)
        if not self._behind:
            self.save()
        notices.append(self._notice("turn", is_error=self.last_error, **self.figures()))
        if (self.meter.should_compact or self._wish) and not self._compact_told:
            self._compact_told = True
            written = self.writer if self.save() else None
            text = self._compact_prompt(pointer(written.path, self._tree) if written is not None else "")
            self._wish = ""
            self.pending.put(self.meter.session, text)
            notices.append(self._notice("intervention", text=text))
        if not self.meter.should_compact:
            self._compact_told = False
        return notices

    def _compact_prompt(self, path: str) -> str:
        task = self._wish or self.model.job or "the current task"
        return build_compact_prompt(task=task, cfa_state=self._state or "in progress", scratch_path=path)

    def _drop_wish(self, seen: AgentEvent) -> None:
        """A wish that somebody refused is none."""
        for result in seen.results:
            if result.get("is_error") is True and result.get("tool_use_id") == self._wish_call:
                self._wish = ""

    def _take_wish(self, seen: AgentEvent) -> None:
        """The agent may ask for its own compaction."""
        for call in seen.calls if not seen.aside else ():
            if is_compact_tool(text_at(call, "name")):
                self._wish_call = text_at(call, "id")
                self._wish = text_at(call.get("input"), "focus") or "the task"
                self._compact_told = False

    def _dead_ends(self, found: list[DeadEnd]) -> list[WatchEvent]:
        for one in found:
            self.dead_ends += 1
            self.model.add_dead_end(str(one))
        return [
            self._notice("dead_end", kind=one.kind, text=_redacted(one.text), evidence=list(one.evidence))
            for one in found
        ]

    def _costs(self, *, turn_ended: bool) -> list[WatchEvent]:
        if self.limits is None:
            return []
        return [
            self._notice(one.name.lower(), scope=one.scope, spent=round(one.spent, 6), limit=one.limit, text=one.text)
            for one in self.limits.check(self.spending.usd, turn_ended=turn_ended)
        ]


def _is_error(event: RawEvent) -> bool:
    """Whether a turn's last event tells of a failure; some versions say so in the subtype alone."""
    return event.get("is_error") is True or text_at(event, "subtype").startswith("error")


def _compacted(found: AgentCompaction) -> str:
    size = f", {found.before:,} tokens before" if found.before else ""
    return f"compacted ({found.trigger}{size})"


def _redacted(text: str) -> str:
    from foldline.redact.redact import redact  # noqa: PLC0415  # only a dead end needs it

    return redact(text)
