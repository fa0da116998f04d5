"""OpenHands trajectories: a list of events, read as messages of OpenAI's Chat Completions.

Two generations of events are read. In the older generation, an event has an `action` or an `observation`; an action of
the model carries the whole reply of the model (`tool_call_metadata`). In the newer generation (the SDK's), an event has
a `kind`. Several actions can come from one reply; the reply becomes one message. Events that the model does not see,
such as a change of state, are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from foldline.errors import WireError
from foldline.message import Message, Meta
from foldline.wire.field_access import list_at, object_at, string_at, time_of
from foldline.wire.formats import BROKEN_LINE, Format, JsonLine, ReadNote, Sign, Transcript
from foldline.wire.openai_chat import parse as chat
from foldline.wire.openai_chat.framing import FRAMING
from foldline.wire.openai_chat.render import render
from foldline.wire.openai_chat.usage import chat_usage

NAME = "openhands"
_SPEECH = ("message", "system", "finish")
"""Actions that are read as messages. If the model produced such an action with a tool call, it is read as that call."""
_UNSEEN = ("recall", "change_agent_state", "null", "agent_state_changed", "condensation", "condensation_request")
"""Actions and observations that only OpenHands uses."""
_KINDS = ("SystemPromptEvent", "MessageEvent", "ActionEvent", "ObservationEvent", "AgentErrorEvent", "Condensation")


def read(lines: Iterable[JsonLine]) -> Transcript:
    """The conversation of a trajectory, which is one list of events, or one event per line."""
    reader = _TrajectoryReader()
    for line in lines:
        for event in _events(line.value):
            reader.take(event, line.number)
    return reader.transcript()


def _events(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    held = value.get("history") if isinstance(value, Mapping) else None
    return held if isinstance(held, list) else [value]


class _TrajectoryReader:
    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.notes: list[ReadNote] = []
        self.tools: list[Any] = []
        self.model = ""
        self._replies: set[str] = set()
        """The ids of the replies whose message was added."""
        self._calls: set[str] = set()
        """The ids of the calls that wait for a result."""
        self._unseen: dict[str, int] = {}

    def take(self, event: Any, line: int) -> None:
        """Add the messages of an event. A broken event becomes a note."""
        if not isinstance(event, Mapping):
            self.notes.append(ReadNote(line, f"{BROKEN_LINE}an event must be an object"))
            return
        try:
            found = list(self._sdk_elements(event) if "kind" in event else self._elements(event))
            messages = [chat.parse(element) for element in found]
        except WireError as error:
            self.notes.append(ReadNote(line, f"{BROKEN_LINE}{error}"))
            return
        usage = chat_usage(object_at(_reply(event), "usage")) if messages and messages[0].role == "assistant" else None
        self.model = string_at(_reply(event), "model") or self.model
        stamp = time_of(event.get("timestamp"))
        for message in messages:
            is_reply = message.role == "assistant"
            model, reply = (self.model, string_at(_reply(event), "id")) if is_reply else ("", "")
            meta = Meta(model=model, reply=reply, usage=usage, at=stamp, source=str(line))
            wire = message.wire._replace(format=NAME) if message.wire else None
            self.messages.append(replace(message, meta=meta, wire=wire))

    def _elements(self, event: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The chat messages of an event of the older generation."""
        action, seen = string_at(event, "action"), string_at(event, "observation")
        call = object_at(event, "tool_call_metadata")
        arguments = object_at(event, "args")
        if (action or seen) in _UNSEEN:
            self._unseen[action or seen] = self._unseen.get(action or seen, 0) + 1
        elif action and call:
            yield from self._reply_of(event)
        elif action in _SPEECH:
            self.tools += list_at(arguments, "tools")
            content = string_at(arguments, "content") or string_at(event, "message") or string_at(event, "content")
            yield {"role": self._role(event), "content": content}
        elif action:  # this version records no calls, so a call is made from the action
            fields = arguments or {key: event[key] for key in ("command", "code", "path", "content") if key in event}
            made = {key: value for key, value in fields.items() if key != "thought"}
            text = string_at(arguments, "thought") or string_at(event, "thought")
            yield self._call(f"call_{len(self.messages)}", action, json.dumps(made), text)
        elif seen:
            yield self._result(string_at(call, "tool_call_id"), string_at(event, "content"))

    def _role(self, event: Mapping[str, Any]) -> str:
        """The role of an action that is read as a message.

        An action without a source is from the user if only system messages come before it, else from the model.
        """
        if event.get("action") == "system":
            return "system"
        is_first = all(message.role == "system" for message in self.messages)
        return "user" if event.get("source", "user" if is_first else "agent") == "user" else "assistant"

    def _reply_of(self, event: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The message of the reply that an action comes from; nothing if this reply was already added."""
        reply = _reply(event)
        key = string_at(reply, "id") or string_at(object_at(event, "tool_call_metadata"), "tool_call_id")
        if key in self._replies:
            return
        self._replies.add(key)
        choice = next((choice for choice in list_at(reply, "choices") if isinstance(choice, Mapping)), {})
        message = {name: value for name, value in object_at(choice, "message").items() if value is not None}
        self._calls |= {string_at(call, "id") for call in list_at(message, "tool_calls")}
        yield {"role": "assistant", **message}

    def _sdk_elements(self, event: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The chat messages of an event of the newer generation."""
        kind = string_at(event, "kind")
        if kind == "SystemPromptEvent":
            self.tools += list_at(event, "tools")
            yield {"role": "system", "content": string_at(object_at(event, "system_prompt"), "text")}
        elif kind == "MessageEvent":
            said = object_at(event, "llm_message")
            yield {"role": string_at(said, "role") or "user", "content": said.get("content") or ""}
        elif kind == "ActionEvent":
            call = object_at(event, "tool_call")
            inner = object_at(call, "function") or call
            text = "\n".join(string_at(part, "text") for part in list_at(event, "thought"))
            name = string_at(inner, "name") or string_at(event, "tool_name")
            yield self._call(string_at(event, "tool_call_id"), name, string_at(inner, "arguments") or "{}", text)
        elif kind in ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation"):
            yield self._result(string_at(event, "tool_call_id"), _sdk_text(event))
        else:
            self._unseen[kind] = self._unseen.get(kind, 0) + 1

    def _call(self, id_: str, name: str, arguments: str, text: str) -> dict[str, Any]:
        self._calls.add(id_)
        call = {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}
        return {"role": "assistant", "content": text or None, "tool_calls": [call]}

    def _result(self, id_: str, text: str) -> dict[str, Any]:
        """The chat message for the result of the call with this id.

        If `id_` is "" and only one call is open, the result belongs to that call. If no open call has this id, the text
        becomes a user message.
        """
        if not id_ and len(self._calls) == 1:
            id_ = next(iter(self._calls))
        if id_ not in self._calls:
            return {"role": "user", "content": text}
        self._calls.discard(id_)
        return {"role": "tool", "tool_call_id": id_, "content": text}

    def transcript(self) -> Transcript:
        """The conversation that was read."""
        notes = [ReadNote(0, f"{kind}: {count} events that are not messages") for kind, count in self._unseen.items()]
        return Transcript(
            format=NAME,
            messages=tuple(self.messages),
            tools=tuple(self.tools),
            model=self.model,
            notes=(*self.notes, *notes),
        )


def _reply(event: Mapping[str, Any]) -> dict[str, Any]:
    return object_at(object_at(event, "tool_call_metadata"), "model_response")


def _sdk_text(event: Mapping[str, Any]) -> str:
    """The text of an observation or an error."""
    seen = object_at(event, "observation")
    content = seen.get("content", seen.get("output"))
    if isinstance(content, list):
        return "\n".join(string_at(part, "text") for part in content)
    return content if isinstance(content, str) else string_at(event, "error") or string_at(event, "rejection_reason")


def _is_event(item: Mapping[str, Any]) -> bool:
    if string_at(item, "kind") in _KINDS and "source" in item:
        return True
    is_event = bool(string_at(item, "action") or string_at(item, "observation"))
    return is_event and ("args" in item or "tool_call_metadata" in item or "cause" in item or "is_confirmed" in item)


FORMAT = Format(
    name=NAME,
    element_format=chat.NAME,
    parse=chat.parse,
    render=render,
    sign=Sign("events with an action or an observation", _is_event),
    framing=FRAMING,
    read=read,
)
