"""Watches one agent. Passes every event to the meter, the cost limits, the notes and the dead-end detector.

`Watcher.feed` returns events to report, and the caller acts on them. The watcher itself does two things at the end of a
turn. First it writes the scratch files (the notes). Then, if a compaction is due, the watcher queues a message for the
next turn. The message asks for the compaction and names the notes. The scratch files are also written when a threshold
is reached within a turn, because the agent may compact by itself before the turn ends.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, Protocol

from foldline.watch.agent_events import AgentEvent, RawEvent, text_at
from foldline.watch.cost import CostLimits, Spending
from foldline.watch.dead_ends import DeadEnd, DeadEndDetector
from foldline.watch.interventions import InterventionQueue, build_compact_prompt, is_compact_tool, path_for_agent
from foldline.watch.meter import Meter
from foldline.watch.scratch import ScratchModel
from foldline.watch.turn_boundaries import TurnTracker

FLUSH_CHARS = 200_000
"""When this many characters were collected, the scratch files are written. Writing them limits the memory in a long
turn.
"""

_CLAUDE_KINDS = ("assistant", "user", "result", "system", "tool_use", "cost-state")
_CODEX_KINDS = ("event_msg", "response_item", "turn_context", "session_meta", "compacted")
_KINDS = frozenset((*_CLAUDE_KINDS, *_CODEX_KINDS))
_COST_KINDS = ("assistant", "result", "cost-state", "turn_context", "event_msg")


class WatchEvent(NamedTuple):
    """Something to report: its name, the session it concerns, and its data."""

    event: str
    session: str
    facts: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        """The event as `foldline watch --json` prints it."""
        return {"event": self.event, "session": self.session, **self.facts}


class ScratchSink(Protocol):
    """An object that writes the scratch files, such as a `ScratchWriter`."""

    @property
    def path(self) -> Path:
        """Path of the index of the notes."""

    def write_scratch(self, model: ScratchModel) -> bool:
        """Write the entries that the scratch model holds. Returns False if they could not be written."""


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
        """Whether the last turn ended with an error; None while a turn is open."""
        self._state = state
        self._detector = DeadEndDetector()
        self._turns = TurnTracker()
        self._last_reply: tuple[Any, ...] = ()
        self._wish = self._wish_call = ""
        """The agent's request for its own compaction: what the compaction must keep, and the id of the agent's call."""
        self._is_compact_sent = False
        self._is_behind = False
        self._flush_at = FLUSH_CHARS
        self._cwd = ""
        """The agent's current folder, as the agent reports it."""

    def feed(self, raw: RawEvent) -> list[WatchEvent]:
        """Take one event; returns what to report."""
        event = AgentEvent(raw)
        kind = event.kind
        if kind not in _KINDS:
            return []
        reports: list[WatchEvent] = []
        if kind == "user" and not event.results and self._turns.is_ended_by(event):
            reports = self._end_turn(is_error=False)
        self.model.observe(event)
        if not self._is_repeated(event):
            reports += self._measure(event)
        dead_ends = self._detector.observe(event)
        if dead_ends:
            reports += self._report_dead_ends(dead_ends)
        if kind in _COST_KINDS:
            if event.calls and not event.is_subagent:
                self._take_wish(event)
            if self.limits is not None:
                reports += self._check_costs(turn_ended=False)
        elif self._wish and event.results:
            refused = [one.get("tool_use_id") for one in event.results if one.get("is_error") is True]
            self._wish = "" if self._wish_call in refused else self._wish
        if self._turns.observe(event):
            return reports + self._end_turn(is_error=_is_error(raw))
        if self._turns.is_open:
            self.last_error = None
        if self.model.weight > self._flush_at and not self.save():
            self._flush_at = self.model.weight + FLUSH_CHARS
        return reports

    def pace(self, *, behind: bool) -> None:
        """Tell the watcher whether more input is already waiting (`behind`).

        While input is waiting, the scratch files are not written at the end of a turn.
        """
        has_caught_up, self._is_behind = self._is_behind and not behind, behind
        if has_caught_up:
            self.save()

    def end(self) -> list[WatchEvent]:
        """Finish after the last event, and return the last reports.

        If the last turn is complete, the reports about its end are included.
        """
        is_complete, is_error = self._turns.is_complete(), self._turns.is_api_error()
        reports = self._end_turn(is_error=is_error) if is_complete else self._check_costs(turn_ended=True)
        self.save()
        return reports

    def take(self, session: str) -> str | None:
        """Remove and return the message to send as the next prompt of the session; None if there is none."""
        return self.pending.take(session)

    def save(self) -> bool:
        """Write the scratch files, and return whether they were written.

        The index includes entries that hooks added.
        """
        if self.writer is None or not self.writer.write_scratch(self.model):
            return False
        self.model.forget()
        self._flush_at = FLUSH_CHARS
        return True

    def answer(self, *, go_on: bool) -> list[WatchEvent]:
        """Apply the user's answer to the question of whether the agent may go on after a cost limit.

        If `go_on` is False, a prompt is queued that tells the agent to finish its work and stop.
        """
        texts = self.limits.answer(go_on=go_on) if self.limits is not None else []
        for text in texts:
            self.pending.put(self.meter.session, text)
        return [self._report("intervention", text=text) for text in texts]

    def figures(self) -> dict[str, Any]:
        """Current figures: window, costs, turns, compactions, dead ends."""
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

    def _report(self, event: str, **facts: Any) -> WatchEvent:
        return WatchEvent(event, self.meter.session, facts)

    def _is_repeated(self, event: AgentEvent) -> bool:
        """Whether the event contains no new figures.

        A tool result has no figures. If a piece of a reply repeats the usage of the previous piece, it has no new
        figures.
        """
        if event.kind == "user":
            return not event.session or event.session == self.meter.session
        if event.kind != "assistant" or event.is_subagent:
            return False
        reply = event.message.get("id"), event.message.get("usage"), event.session
        if reply == self._last_reply and reply[0] and reply[1] and event.session in ("", self.meter.session):
            return True
        self._last_reply = reply
        return False

    def _measure(self, event: AgentEvent) -> list[WatchEvent]:
        """Update the window and the costs, and return the reports.

        The scratch files are written before a compaction is reported.
        """
        meter = self.meter
        session, usage, flags = meter.session, meter.usage, meter.should_warn + meter.should_compact
        compaction = meter.observe(event)
        if event.kind in _COST_KINDS:
            self.spending.observe(event)
        new_flags = meter.should_warn + meter.should_compact
        if meter.session == session and compaction is None and new_flags == flags:
            return [] if meter.usage is usage else [WatchEvent("meter", session, meter.figures())]
        self._cwd = text_at(event.raw, "cwd") or self._cwd
        reports: list[WatchEvent] = []
        if session != meter.session:
            flags = 0
            self.pending.keep_only(meter.session)
            self._wish, self._is_compact_sent = "", False
            self._detector = DeadEndDetector() if session else self._detector
            reports.append(self._report("session", model=meter.model))
        if compaction is not None:
            self.pending.drop_compact()
            self._wish, self._is_compact_sent = "", False
            reports.append(self._report("compacted", **compaction._asdict()))
            size = f", {compaction.before:,} tokens before" if compaction.before else ""
            self.model.record_state_change("working", f"compacted ({compaction.trigger}{size})")
        if new_flags > flags or compaction is not None:
            self.save()
        facts = meter.figures()
        reports.append(self._report("meter", **facts))
        if new_flags > flags == 0:
            reports.append(self._report("warning", **facts))
        if new_flags > flags and meter.should_compact:
            reports.append(self._report("compact", **facts))
        return reports

    def _end_turn(self, *, is_error: bool) -> list[WatchEvent]:
        self._turns.close()
        self.turns += 1
        self.last_error = is_error
        reports = self._report_dead_ends(self._detector.end_turn()) + self._check_costs(turn_ended=True)
        if not self._is_behind:
            self.save()
        reports.append(self._report("turn", is_error=self.last_error, **self.figures()))
        if (self.meter.should_compact or self._wish) and not self._is_compact_sent:
            self._is_compact_sent = True
            writer = self.writer if self.save() else None
            path = path_for_agent(writer.path, self._cwd) if writer is not None else ""
            task = self._wish or self.model.job or "the current task"
            text = build_compact_prompt(task=task, cfa_state=self._state, scratch_path=path)
            self._wish = ""
            self.pending.put(self.meter.session, text)
            reports.append(self._report("intervention", text=text))
        if not self.meter.should_compact:
            self._is_compact_sent = False
        return reports

    def _take_wish(self, event: AgentEvent) -> None:
        """If the agent calls the compaction tool, remember the call."""
        for call in event.calls:
            if is_compact_tool(text_at(call, "name")):
                self._wish_call = text_at(call, "id")
                self._wish = text_at(call.get("input"), "focus") or "the task"
                self._is_compact_sent = False

    def _report_dead_ends(self, found: list[DeadEnd]) -> list[WatchEvent]:
        for dead_end in found:
            self.dead_ends += 1
            self.model.add_dead_end(str(dead_end))
        return [
            self._report("dead_end", kind=one.kind, text=_redact(one.text), evidence=list(one.evidence))
            for one in found
        ]

    def _check_costs(self, *, turn_ended: bool) -> list[WatchEvent]:
        if self.limits is None:
            return []
        return [
            self._report(one.name.lower(), scope=one.scope, spent=round(one.spent, 6), limit=one.limit, text=one.text)
            for one in self.limits.check(self.spending.usd, turn_ended=turn_ended)
        ]


def _is_error(raw: RawEvent) -> bool:
    """Whether the last event of a turn reports a failure.

    Some versions of the agent report a failure only in the field `subtype`.
    """
    return raw.get("is_error") is True or text_at(raw, "subtype").startswith("error")


def _redact(text: str) -> str:
    from foldline.redact.redact import clean_text  # noqa: PLC0415  # imported only for a dead end

    return clean_text(text)
