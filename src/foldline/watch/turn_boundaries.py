"""Where an agent's turns end, which only a stream says plainly.

A stream closes every turn with a result. A session file has none, and most versions write no stop reason either: a turn
has ended there when a person speaks again, or when the file ends with a reply that waits for nothing.
"""

from __future__ import annotations

from foldline.watch.agent_events import AgentEvent, dict_at, extract_text, human_text, text_at

_DONE = ("end_turn", "stop_sequence", "refusal")
"""Stop reasons of a reply that wants nothing more."""
_NO_MODEL = "<synthetic>"
"""The model of what the agent says in a model's place."""


class TurnTracker:
    """The turns of one agent, its sub-agents' left out."""

    def __init__(self) -> None:
        self._last: AgentEvent | None = None
        """The turn's last reply or result, if it has one yet."""
        self.is_open = False
        """Whether a person or the agent has spoken since the last turn ended."""
        self._closing = ""
        """The reply that ended the turn before: all its pieces may say so."""

    def has_ended(self, seen: AgentEvent) -> bool:
        """Whether the turn before a user's event is over because a person speaks again."""
        return self._last is not None and _is_filed(seen) and bool(human_text(seen))

    def see(self, seen: AgentEvent) -> bool:
        """Take an event; whether it ends the turn."""
        if seen.aside:
            return False
        if seen.kind == "assistant":
            reply, stop = seen.message.get("id"), seen.message.get("stop_reason")
            if reply and reply == self._closing:
                return False
            self._last, self.is_open = seen, True
            if stop is None or stop not in _DONE or not _is_filed(seen) or seen.message.get("model") == _NO_MODEL:
                return False
            self._closing = text_at(seen.message, "id")
            return True
        if seen.results:
            self._last, self.is_open = seen, True
            return False
        if seen.kind == "user":
            self.is_open = self.is_open or bool(human_text(seen))
            return False
        return seen.kind == "result" or (
            seen.kind == "event_msg" and dict_at(seen.event, "payload").get("type") == "task_complete"
        )

    def is_over(self) -> bool:
        """Whether the turn has ended if nothing more comes."""
        last = self._last
        if last is None or last.kind != "assistant" or last.calls or not _is_filed(last):
            return False
        return bool(extract_text(last.message.get("content")).strip())

    def close(self) -> None:
        """The turn has ended."""
        self._last, self.is_open = None, False

    def has_failed(self) -> bool:
        """Whether what the agent said last is that it could not go on."""
        return self._last is not None and self._last.event.get("isApiErrorMessage") is True


def _is_filed(seen: AgentEvent) -> bool:
    """Whether the event comes from a session file: its session is spelled another way than in a stream."""
    return "sessionId" in seen.event
