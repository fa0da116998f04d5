"""A caller's list, read once: whatever it holds, as messages with their sizes and the places where it may be cut.

Reading is total. A host hands over its own objects, wire dicts, and sometimes things that are neither; what cannot be
read still counts by its serialised form, and a result is still a result, so that no fold can start with one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

from foldline.compat.given import MESSAGE, OBJECT, Given, form_of, written
from foldline.compat.window_budget.messages import UserMessage
from foldline.measure.estimator import CHARS_36, Count
from foldline.measure.message_size import Framing, message_tokens
from foldline.message import Message, Meta, Opaque, ToolResult, user
from foldline.models.table import MediaRule
from foldline.plan.timeline import Timeline, timeline_of
from foldline.policy import Policy
from foldline.wire.fields import pick, plain, text_of

PRESET = Policy.preset("indus")
HEADERS = {"session": PRESET.digest_header, "branch": "[branch digest — archived from a path not taken]"}
"""The first line of a digest, by scope."""
REQUEST = "[the user's newest request, word for word]"
"""Stands in a digest before the request that the kept messages answer, when they do not hold it themselves."""
FRAMING = Framing(
    name="window_budget",
    message=4,
    part=2,
    call=6,
    result=-2,  # a result is a message in this API, not a part of one as in foldline
    reply=0,
    tool=0,
    media=MediaRule(tile_pixels=0, base_tokens=1_024, unknown_tokens=1_024, page_tokens=1_024),
)
"""The documented constants: tokens added per message, part and call, and a flat figure per image."""
CHARS_PER_TOKEN: float = CHARS_36.tenths / 10
IMAGE_TOKENS: int = FRAMING.media.unknown_tokens

_KINDS = {"session": "digest", "branch": "branch_digest"}
_RESULTS = ("toolResult", "tool")


class Talk:
    """The list as given, and the message that each of its elements is."""

    def __init__(self, items: Sequence[Any]) -> None:
        self.items = items
        self.form, self.messages = _read(items)

    @cached_property
    def timeline(self) -> Timeline:
        """The messages with their sizes, to be cut only where no call is parted from its result.

        Its newest unit, which always stays, is the last message that a cut can stand before: in a documented slice the
        tail in tokens decides, also over a row of prompts that nobody has answered yet.
        """
        timeline = timeline_of(self.messages, map(tokens, self.messages))
        whole = _whole(self.messages)
        for cuts in timeline.cuts.values():
            cuts[:] = [cut for cut in cuts if whole[cut]]
        timeline.tail = max(timeline.cuts["message"], default=timeline.lead)
        return timeline

    def digest(self, text: str, scope: str = "session") -> Any:
        """A digest as a user's message in the form of the list. It bears the time of the newest message there was."""
        newest = max((each.meta.at for each in self.messages if each.meta.at is not None), default=None)
        if self.form == MESSAGE:
            return replace(user(text, kind=_KINDS[scope]), meta=Meta(at=newest))
        if self.form == OBJECT or not self.items:
            return UserMessage(content=text, timestamp=None if newest is None else newest * 1000)
        return written([user(text)], self.form)[0]


class Carried(NamedTuple):
    """The digests in front of some messages, without their headers; the request they kept; what was said since."""

    prior: str
    request: str
    said: tuple[Message, ...]

    @classmethod
    def of(cls, messages: Sequence[Message]) -> Carried:
        """Take the digests off the front; a later one is something said."""
        lead = next((place for place, each in enumerate(messages) if each.role != "system"), len(messages))
        end = next((place for place in range(lead, len(messages)) if messages[place].kind != "digest"), len(messages))
        pieces = [headless(each.text).partition(REQUEST) for each in messages[lead:end]]
        return cls(
            prior="\n\n".join(filter(None, (body.strip() for body, _, _ in pieces))),
            request=pieces[-1][2].strip() if pieces else "",
            said=(*messages[:lead], *messages[end:]),
        )


def tokens(message: Message) -> int:
    """The documented estimate: characters by 3.6, rounded up once, with so much around each message, block and call."""
    letters = _Letters()
    around = message_tokens(message, letters, FRAMING)
    return around - (-letters.seen * 10 // CHARS_36.tenths)


def is_said(message: Message) -> bool:
    """Whether a message is more than an order of the host or a digest of what was said before."""
    return message.role != "system" and message.kind != "digest"


class _Letters:
    """Counts letters instead of tokens, so that a message is rounded up once and not for each of its parts."""

    name, exact = CHARS_36.name, False

    def __init__(self) -> None:
        self.seen = 0

    def count(self, text: str) -> Count:
        """Remember the letters."""
        self.seen += len(text)
        return Count(0, False, self.name)


def _read(items: Sequence[Any]) -> tuple[str, tuple[Message, ...]]:
    try:
        given = Given(items)
        return given.form, tuple(map(_marked, given.messages))
    except Exception:  # noqa: BLE001 (a host's object may raise anything when it is looked at)
        form = next((found for item in items if (found := _form(item))), OBJECT)
        return form, tuple(_marked(_read_one(item, form)) for item in items)


def _form(item: Any) -> str:
    """The format of a dict on its own; "" for what shows none."""
    try:
        return form_of([item]) if isinstance(item, Mapping) else ""
    except Exception:  # noqa: BLE001 (as above)
        return ""


def _read_one(item: Any, form: str) -> Message:
    try:
        return Given([item], form).messages[0]
    except Exception:  # noqa: BLE001 (as above)
        return _unread(item)


def _unread(item: Any) -> Message:
    """A message of what cannot be read."""
    role, call = _field(item, "role"), _field(item, "toolCallId")
    try:
        value = plain(item)
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


def _marked(message: Message) -> Message:
    """A digest of ours that comes back as a user's message is a digest all the same."""
    if message.role != "user" or message.kind:
        return message
    text = message.text
    scope = next((scope for scope, header in HEADERS.items() if text.startswith(header)), None)
    return message if scope is None else replace(message, kind=_KINDS[scope])


def headless(text: str) -> str:
    """A digest without its header."""
    for header in HEADERS.values():
        text = text.removeprefix(header)
    return text.strip()


def _whole(messages: Sequence[Message]) -> list[bool]:
    """For each place whether everything before it that was answered was answered before it."""
    called: dict[str, int] = {}
    answered: dict[int, int] = {}
    for index, message in enumerate(messages):
        answered.update((called[part.call_id], index) for part in message.results if part.call_id in called)
        called.update((call.id, index) for call in message.calls)
    whole, furthest = [], -1
    for index in range(len(messages)):
        whole.append(furthest < index)
        furthest = max(furthest, answered.get(index, -1))
    return whole
