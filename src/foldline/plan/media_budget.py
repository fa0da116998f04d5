"""The media budget: how many images and other media a request may carry, and how many bytes they may have.

A provider refuses a request with too many media, or with a medium that is too large, even if the media have few tokens.
A medium that can never be sent is replaced on arrival. When the budget is exceeded, the oldest media are removed at
once until only half of the limit is used. So the prompt prefix changes rarely, and not with each new image.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from foldline.errors import ViewTooLarge
from foldline.message import Media, Message, Part, Text, ToolResult
from foldline.placeholders import missing_media
from foldline.plan.timeline import Timeline, handle

TEXT_BYTES = 8
"""Bytes that are reserved for each token of text. The reserve is at most half of the largest request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaAllowance:
    """The limits on media in one request. A limit that is not known is None."""

    max_count: int | None = None
    max_bytes: int | None = None
    """The largest allowed size of one medium, in bytes of base64."""
    max_total_bytes: int | None = None


class MediaTotals(NamedTuple):
    """The number of media and their bytes."""

    number: int = 0
    size: int = 0


def media_allowance(*, most: int | None, each: int | None, request: int | None, usable: int) -> MediaAllowance:
    """The limits on media in a request of at most `request` bytes that holds up to `usable` tokens of text."""
    total = None if request is None else request - min(request // 2, TEXT_BYTES * usable)
    return MediaAllowance(max_count=most, max_bytes=each, max_total_bytes=total)


def media_in(message: Message) -> list[Media]:
    """All media of a message in order, including those inside tool results."""
    found: list[Media] = []
    for part in message.parts:
        inner = part.parts if isinstance(part, ToolResult) else (part,)
        found += [media for media in inner if isinstance(media, Media)]
    return found


def without_oversized_media(message: Message, index: int, allowance: MediaAllowance) -> Message:
    """The message with placeholders for media that are too large to send; the same object if there are none."""
    each = allowance.max_bytes
    if each is None:
        return message
    heavy = {id(media) for media in media_in(message) if len(media.data) > each}
    if not heavy:
        return message
    return message.with_parts(*_without_media(message.parts, heavy, handle(index), f"over {each:,} bytes"))


class MediaBudget:
    """Counts the media in the view of a timeline as messages are added."""

    def __init__(self, timeline: Timeline, allowance: MediaAllowance) -> None:
        self.timeline, self.allowance = timeline, allowance
        self.totals = MediaTotals()

    def add(self, message: Message) -> None:
        """Count the media of a new message."""
        for media in media_in(message):
            self.totals = MediaTotals(self.totals.number + 1, self.totals.size + len(media.data))

    def recount(self) -> None:
        """Count all media of the view again, after a fold."""
        self.totals = MediaTotals()
        fold = self.timeline.fold
        kept = (*fold.pinned, *fold.carried) if fold else ()
        for index in (*kept, *range(self.timeline.cut, len(self.timeline))):
            self.add(self.timeline.shown[index])

    @property
    def is_exceeded(self) -> bool:
        """True if a provider would refuse the request for its media."""
        return not _is_within(self.totals, self.allowance, 1.0)

    def stub_oldest(self, size: Callable[[Message], int], *, may_fold: bool = True) -> dict[int, tuple[Message, int]]:
        """Stubs (messages without their media) for the oldest messages, so that the view is within the limits.

        Pins and unanswered prompts keep their media. Raises `ViewTooLarge` if this is not enough, or if `may_fold` is
        False because the policy never folds.
        """
        timeline, left, out = self.timeline, self.totals, dict[int, set[int]]()
        for index in range(timeline.cut, len(timeline)) if may_fold else ():
            if index in timeline.pins or (index >= timeline.tail and timeline.messages[index].is_prompt):
                continue
            goal = 0.5 if index < timeline.tail else 1.0
            for media in media_in(timeline.shown[index]):
                if _is_within(left, self.allowance, goal):
                    break
                out.setdefault(index, set()).add(id(media))
                left = MediaTotals(left.number - 1, left.size - len(media.data))
        if not _is_within(left, self.allowance, 1.0):
            raise self._refusal(left)
        stubs: dict[int, tuple[Message, int]] = {}
        for index, chosen in out.items():
            shown = timeline.shown[index]
            parts = _without_media(shown.parts, chosen, handle(index), "too many for one request")
            message = shown.with_parts(*parts)
            stubs[index] = message, size(message)
        return stubs

    def _refusal(self, left: MediaTotals) -> ViewTooLarge:
        most, total = self.allowance.max_count, self.allowance.max_total_bytes
        hint = "send fewer or smaller media at once, or use a policy that folds"
        if most is not None and left.number > most:
            return ViewTooLarge(left.number, most, {"media": left.number}, unit="media", hint=hint)
        return ViewTooLarge(left.size, total or 0, {"media": left.size}, unit="bytes of media", hint=hint)


def _is_within(totals: MediaTotals, allowance: MediaAllowance, share: float) -> bool:
    most, total = allowance.max_count, allowance.max_total_bytes
    return (most is None or totals.number <= most * share) and (total is None or totals.size <= total * share)


def _without_media(parts: Iterable[Part], chosen: set[int], name: str, reason: str) -> tuple[Part, ...]:
    """The parts, with a placeholder in place of each chosen medium."""
    left: list[Part] = []
    for part in parts:
        if isinstance(part, Media) and id(part) in chosen:
            left.append(Text(text=missing_media(part.kind, reason, name)))
        elif isinstance(part, ToolResult) and any(id(inner) in chosen for inner in part.parts):
            wire = part.wire and part.wire._replace(raw=None, exact=False)
            left.append(replace(part, parts=_without_media(part.parts, chosen, name, reason), wire=wire))
        else:
            left.append(part)
    return tuple(left)
