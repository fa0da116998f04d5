"""Reads the list of messages of a host (the program that uses this API), and computes sizes and legal cuts.

Reading never fails. The size of an element that cannot be read is the size of its serialised form. A tool result is
recognised even if it cannot be read, so that the kept part never starts with a tool result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

from foldline.compat.caller_messages import MESSAGE, OBJECT, CallerMessages, format_of, render_list
from foldline.measure.estimator import CHARS_36, Count
from foldline.measure.message_size import Framing, message_tokens
from foldline.message import Message, Meta, Opaque, ToolResult, user
from foldline.models.table import MediaRule
from foldline.plan.timeline import Timeline, timeline_of
from foldline.policy import Policy
from foldline.window_budget.messages import UserMessage
from foldline.wire.field_access import pick, plain_json, text_of

PRESET = Policy.preset("indus")
HEADERS = {"session": PRESET.digest_header, "branch": "[branch digest — archived from a path not taken]"}
"""The first line of a digest, by scope."""
REQUEST = "[the user's newest request, word for word]"
"""The line before a quoted user request. A digest quotes the newest request if no kept message is a request."""
FRAMING = Framing(
    name="window_budget",
    message=4,
    part=2,
    call=6,
    result=-2,  # in this API, a result is a message; in foldline, it is a part of a message
    reply=0,
    tool=0,
    media=MediaRule(tile_pixels=0, base_tokens=1_024, unknown_tokens=1_024, page_tokens=1_024),
)
"""The documented constants: tokens added for each message, part and call, and a fixed number for each image."""
CHARS_PER_TOKEN: float = CHARS_36.tenths / 10
IMAGE_TOKENS: int = FRAMING.media.unknown_tokens

_KINDS = {"session": "digest", "branch": "branch_digest"}
_RESULTS = ("toolResult", "tool")


class HostMessages:
    """A host's list, with a `Message` for each of its elements."""

    def __init__(self, items: Sequence[Any]) -> None:
        self.items = items
        self.format, self.messages = _read(items)

    @cached_property
    def timeline(self) -> Timeline:
        """The timeline of the messages. No cut separates a call from its result.

        The tail (the messages that always stay) begins at the last legal cut. In a session, prompts without a reply
        also belong to the tail. Here they do not, because in this design only tokens decide where a list is cut.
        """
        timeline = timeline_of(self.messages, map(tokens, self.messages))
        is_closed = _closed_steps(self.messages)
        for cuts in timeline.cuts.values():
            cuts[:] = [cut for cut in cuts if is_closed[cut]]
        timeline.tail = max(timeline.cuts["message"], default=timeline.lead)
        return timeline

    def digest(self, text: str, scope: str = "session") -> Any:
        """A digest as a user message in the format of the list.

        If messages of this format have a time, the digest gets the time of the newest message.
        """
        newest = max((each.meta.at for each in self.messages if each.meta.at is not None), default=None)
        if self.format == MESSAGE:
            return replace(user(text, kind=_KINDS[scope]), meta=Meta(at=newest))
        if self.format == OBJECT or not self.items:
            return self._user_message(text, None if newest is None else round(newest * 1000))
        return render_list([user(text)], self.format)[0]

    def _user_message(self, text: str, timestamp: int | None) -> Any:
        """A user message of the same type as the host's user messages.

        If that type cannot be created, a `UserMessage` is returned.
        """
        found = next((item for item in reversed(self.items) if _field(item, "role") == "user"), None)
        kind: Any = UserMessage if found is None else type(found)
        try:
            made = kind(content=text, timestamp=timestamp)
            return made if (made.role, made.content) == ("user", text) else UserMessage(text, timestamp)
        except Exception:  # noqa: BLE001 (as above)
            return UserMessage(content=text, timestamp=timestamp)


class DigestInput(NamedTuple):
    """The input for a digest."""

    prior: str
    """The text of the leading digests, without their headers."""
    request: str
    """The user request that the newest of the leading digests quotes; "" if it quotes none."""
    messages: tuple[Message, ...]
    """All messages except the leading digests."""

    @classmethod
    def of(cls, messages: Sequence[Message]) -> DigestInput:
        """Separate the leading digests from the other messages.

        A digest that is not at the start counts as an ordinary message.
        """
        lead = next((place for place, each in enumerate(messages) if each.role != "system"), len(messages))
        end = next((place for place in range(lead, len(messages)) if messages[place].kind != "digest"), len(messages))
        pieces = [without_header(each.text).partition(REQUEST) for each in messages[lead:end]]
        return cls(
            prior="\n\n".join(filter(None, (body.strip() for body, _, _ in pieces))),
            request=pieces[-1][2].strip() if pieces else "",
            messages=(*messages[:lead], *messages[end:]),
        )


def tokens(message: Message) -> int:
    """The documented estimate: characters / 3.6, plus fixed amounts for the message, its blocks and its calls.

    The quotient is rounded up once per message.
    """
    chars = _CharTotal()
    framing = message_tokens(message, chars, FRAMING)
    return framing - (-chars.total * 10 // CHARS_36.tenths)


def is_conversation(message: Message) -> bool:
    """Whether a message is neither a system message nor a digest."""
    return message.role != "system" and message.kind != "digest"


class _CharTotal:
    """A counter that sums up the characters of all parts of a message.

    The size is then rounded up once per message, and not once per part.
    """

    name, exact = CHARS_36.name, False

    def __init__(self) -> None:
        self.total = 0

    def count(self, text: str) -> Count:
        """Add the number of characters of a text to the total."""
        self.total += len(text)
        return Count(0, False, self.name)


def _read(items: Sequence[Any]) -> tuple[str, tuple[Message, ...]]:
    try:
        caller = CallerMessages(items)
        return caller.format, tuple(map(_with_digest_kind, caller.messages))
    except Exception:  # noqa: BLE001 (a host's object may raise any exception when it is read)
        format = next((found for item in items if (found := _format(item))), OBJECT)
        return format, tuple(_with_digest_kind(_read_one(item, format)) for item in items)


def _format(item: Any) -> str:
    """The format of a single dict; "" if it cannot be detected."""
    try:
        return format_of([item]) if isinstance(item, Mapping) else ""
    except Exception:  # noqa: BLE001 (as above)
        return ""


def _read_one(item: Any, format: str) -> Message:
    try:
        return CallerMessages([item], format).messages[0]
    except Exception:  # noqa: BLE001 (as above)
        return _opaque_message(item)


def _opaque_message(item: Any) -> Message:
    role, call = _field(item, "role"), _field(item, "toolCallId")
    try:
        value = plain_json(item)
    except Exception:  # noqa: BLE001 (as above)
        value = item
    part = Opaque(kind=type(item).__name__, value=value)
    if role in _RESULTS:
        return Message(role="tool", parts=(ToolResult(call_id=call, parts=(part,)),))
    return Message(role=role or "other", parts=(part,))


def _field(item: Any, name: str) -> str:
    try:
        return text_of(pick(item, name))
    except Exception:  # noqa: BLE001 (as above)
        return ""


def _with_digest_kind(message: Message) -> Message:
    """The message. If it is a user message that starts with a digest header, its kind is set to "digest"."""
    if message.role != "user" or message.kind:
        return message
    text = message.text
    scope = next((scope for scope, header in HEADERS.items() if text.startswith(header)), None)
    return message if scope is None else replace(message, kind=_KINDS[scope])


def without_header(text: str) -> str:
    """A digest without its header."""
    for header in HEADERS.values():
        text = text.removeprefix(header)
    return text.strip()


def _closed_steps(messages: Sequence[Message]) -> list[bool]:
    """A list that says, for each index, whether a cut at this index is allowed.

    A cut is allowed if every earlier call has its result before the cut, or has no result at all.
    """
    called: dict[str, int] = {}
    answered: dict[int, int] = {}
    for index, message in enumerate(messages):
        answered.update((called[part.call_id], index) for part in message.results if part.call_id in called)
        called.update((call.id, index) for call in message.calls)
    closed, furthest = [], -1
    for index in range(len(messages)):
        closed.append(furthest < index)
        furthest = max(furthest, answered.get(index, -1))
    return closed
