"""Pictures and other media, by number and weight.

A provider refuses a request with too many of them, or with one that is too heavy, however few tokens they count for.
One that can never be sent is left out on arrival. Where they have become too many, the oldest leave together, down to
half of what is allowed, so that the prompt prefix changes once in a long while and not with each new picture.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from foldline.errors import ViewTooLarge
from foldline.message import Media, Message, Part, Text, ToolResult
from foldline.placeholders import missing_media
from foldline.plan.timeline import Timeline, handle

TEXT_BYTES = 8
"""Bytes that are kept free for each token of text, up to half of what a request may weigh."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What a provider takes; None: no such limit is known."""

    most: int | None = None
    each: int | None = None
    """Bytes of one, in the form in which it is sent."""
    total: int | None = None
    """Bytes of all together."""


class Weight(NamedTuple):
    """How many, and how many bytes of them."""

    number: int = 0
    weight: int = 0


def allowed(*, most: int | None, each: int | None, request: int | None, usable: int) -> Allowance:
    """What media may take of a request that may weigh `request` bytes and holds `usable` tokens of text."""
    total = None if request is None else request - min(request // 2, TEXT_BYTES * usable)
    return Allowance(most=most, each=each, total=total)


def media_in(message: Message) -> list[Media]:
    """All media of a message, those inside results too, in order."""
    found: list[Media] = []
    for part in message.parts:
        if isinstance(part, Media):
            found.append(part)
        elif isinstance(part, ToolResult):
            found += [inner for inner in part.parts if isinstance(inner, Media)]
    return found


def bearable(message: Message, index: int, allowance: Allowance) -> Message:
    """The message without media that no request can carry; the same object when there are none."""
    each = allowance.each
    if each is None:
        return message
    heavy = {id(media) for media in media_in(message) if len(media.data) > each}
    return _without(message, heavy, handle(index), f"over {each:,} bytes") if heavy else message


class Crowd:
    """The media that a timeline's view carries, counted while it grows."""

    def __init__(self, timeline: Timeline, allowance: Allowance) -> None:
        self.timeline, self.allowance = timeline, allowance
        self.weight = Weight()

    def add(self, message: Message) -> None:
        """Count the message that was added."""
        for media in media_in(message):
            self.weight = Weight(self.weight.number + 1, self.weight.weight + len(media.data))

    def recount(self) -> None:
        """Count anew after a fold."""
        self.weight = Weight()
        for index in self._shown():
            self.add(self.timeline.shown[index])

    def _shown(self) -> list[int]:
        fold = self.timeline.fold
        kept = (*fold.pinned, *fold.carried) if fold else ()
        return [*kept, *range(self.timeline.cut, len(self.timeline))]

    @property
    def over(self) -> bool:
        """Whether a request would be refused for what it carries."""
        return not _within(self.weight, self.allowance, 1.0)

    def thinned(self, size: Callable[[Message], int], *, may: bool = True) -> dict[int, tuple[Message, int]]:
        """Stubs that bring the view within what is allowed: the oldest media leave, save a pin's or waiting prompt's.

        Raises `ViewTooLarge` where that is not enough, or nothing `may` leave.
        """
        timeline, left, out = self.timeline, self.weight, dict[int, set[int]]()
        for index in range(timeline.cut, len(timeline)) if may else ():
            if index in timeline.pins or (index >= timeline.tail and timeline.messages[index].is_prompt):
                continue
            goal = 0.5 if index < timeline.tail else 1.0
            for media in media_in(timeline.shown[index]):
                if _within(left, self.allowance, goal):
                    break
                out.setdefault(index, set()).add(id(media))
                left = Weight(left.number - 1, left.weight - len(media.data))
        if not _within(left, self.allowance, 1.0):
            raise self._refusal(left)
        why = "too many for one request"
        stubs = {index: _without(timeline.shown[index], ids, handle(index), why) for index, ids in out.items()}
        return {index: (message, size(message)) for index, message in stubs.items()}

    def _refusal(self, left: Weight) -> ViewTooLarge:
        """What does not fit, in the unit that is exceeded."""
        most, total = self.allowance.most, self.allowance.total
        hint = "send fewer or smaller media at once, or choose a policy that folds"
        if most is not None and left.number > most:
            return ViewTooLarge(left.number, most, {"media": left.number}, unit="media", hint=hint)
        return ViewTooLarge(left.weight, total or 0, {"media": left.weight}, unit="bytes of media", hint=hint)


def _within(weight: Weight, allowance: Allowance, share: float) -> bool:
    most, total = allowance.most, allowance.total
    return (most is None or weight.number <= most * share) and (total is None or weight.weight <= total * share)


def _without(message: Message, chosen: set[int], name: str, why: str) -> Message:
    """The message with a line in the place of each chosen medium."""
    return message.with_parts(*(_marked(part, chosen, name, why) for part in message.parts))


def _marked(part: Part, chosen: set[int], name: str, why: str) -> Part:
    if id(part) in chosen and isinstance(part, Media):
        return Text(text=missing_media(part.kind, why, name))
    if isinstance(part, ToolResult) and any(id(inner) in chosen for inner in part.parts):
        wire = part.wire and part.wire._replace(raw=None, exact=False)
        return replace(part, parts=tuple(_marked(inner, chosen, name, why) for inner in part.parts), wire=wire)
    return part
