"""Detects where an agent's turns end.

In a stream, every turn ends with a result event. A session file has no result events, and most versions write no stop
reason. So in a file, a turn ends when the user writes again, or when the file ends with a reply without tool calls.
"""

from __future__ import annotations

from foldline.watch.agent_events import AgentEvent, dict_at, extract_text, human_text, text_at

_FINAL_STOP_REASONS = ("end_turn", "stop_sequence", "refusal")
_NO_MODEL = "<synthetic>"
"""Model name of a message that the agent program wrote itself, without a model."""


class TurnTracker:
    """Tracks the turns of one agent. Sub-agents are ignored."""

    def __init__(self) -> None:
        self._last: AgentEvent | None = None
        """Last reply or tool result of the turn; None if there is none."""
        self.is_open = False
        """Whether the user or the agent has written since the last turn ended."""
        self._final_reply = ""
        """Id of the reply that ended the last turn. The id is needed because each piece of the reply may contain the
        stop reason.
        """

    def is_ended_by(self, event: AgentEvent) -> bool:
        """Whether this event shows that the turn before it has ended, because the user writes again."""
        return self._last is not None and _is_from_file(event) and bool(human_text(event))

    def observe(self, event: AgentEvent) -> bool:
        """Take an event; returns whether it ends the turn."""
        if event.is_subagent:
            return False
        if event.kind == "assistant":
            message = event.message
            reply, stop = message.get("id"), message.get("stop_reason")
            if reply and reply == self._final_reply:
                return False
            self._last, self.is_open = event, True
            if stop is None or stop not in _FINAL_STOP_REASONS:
                return False
            if not _is_from_file(event) or message.get("model") == _NO_MODEL:
                return False
            self._final_reply = text_at(message, "id")
            return True
        if event.results:
            self._last, self.is_open = event, True
            return False
        if event.kind == "user":
            self.is_open = self.is_open or bool(human_text(event))
            return False
        return event.kind == "result" or (
            event.kind == "event_msg" and dict_at(event.raw, "payload").get("type") == "task_complete"
        )

    def is_complete(self) -> bool:
        """Whether the turn is complete. The caller knows that no further event follows."""
        last = self._last
        if last is None or last.kind != "assistant" or last.calls or not _is_from_file(last):
            return False
        return bool(extract_text(last.message.get("content")).strip())

    def close(self) -> None:
        """End the current turn. The next message of the user or the agent opens a new turn."""
        self._last, self.is_open = None, False

    def is_api_error(self) -> bool:
        """Whether the last message reports an API error."""
        return self._last is not None and self._last.raw.get("isApiErrorMessage") is True


def _is_from_file(event: AgentEvent) -> bool:
    """Whether the event comes from a session file.

    The field with the session id is named `sessionId` only in session files.
    """
    return "sessionId" in event.raw
