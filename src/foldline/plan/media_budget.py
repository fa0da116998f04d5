"""The media budget: how many images and other media a request may have, and how many bytes they may have together.

A provider refuses a request with too many media, or with a medium that is too large, even if the media have few tokens.
A medium that can never be sent is replaced on arrival. If the budget is exceeded, the oldest media are removed until at
most half of each limit is used. So the beginning of the prompt changes rarely, and not with each new image. Anthropic
accepts no large image in a request with many images. In such a request, large images are scaled down or removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from foldline.errors import ViewTooLarge
from foldline.measure.media_tokens import base64_of, image_size
from foldline.message import Media, Message, Part, Text, ToolResult, edited
from foldline.placeholders import missing_media
from foldline.plan.timeline import Timeline, handle

TEXT_BYTES = 8
"""Bytes that are reserved for each token of text. The reserve is at most half of the largest allowed request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaAllowance:
    """The limits on media in one request. A limit that is not known is None."""

    max_count: int | None = None
    max_bytes: int | None = None
    """The largest allowed size of one medium, in bytes of base64."""
    max_total_bytes: int | None = None
    max_pixels: int | None = None
    """The largest allowed width or height of an image, in pixels."""
    many_images: int | None = None
    """In a request with more images than this, the limit is `max_pixels_of_many`."""
    max_pixels_of_many: int | None = None


class MediaTotals(NamedTuple):
    """The number of media, their bytes, the number of images, and the number of large images."""

    number: int = 0
    size: int = 0
    images: int = 0
    large: int = 0

    def plus(self, media: Media, allowance: MediaAllowance, sign: int = 1) -> MediaTotals:
        """The totals with one more medium. If `sign` is -1, one medium is subtracted instead."""
        is_image = media.kind == "image"
        large = is_image and is_large(media, allowance.max_pixels_of_many)
        size = self.size + sign * len(media.data)
        return MediaTotals(self.number + sign, size, self.images + sign * is_image, self.large + sign * large)


Downscale = Callable[[Media, int], Media | None]
"""A function that scales an image down to a number of pixels on its longer side.

The function returns None if the image cannot be scaled.
"""


def no_scaling(_media: Media, _pixels: int) -> Media | None:
    """A `Downscale` that scales nothing."""
    return None


def is_large(media: Media, pixels: int | None) -> bool:
    """True for an image whose width or height exceeds `pixels`; False if its size cannot be read."""
    if pixels is None or media.kind != "image" or not (data := base64_of(media)):
        return False
    size = image_size(data)
    return size is not None and max(size) > pixels


def bytes_for_media(request: int | None, usable: int) -> int | None:
    """The bytes that are left for media; None if `request` is None.

    `request` is the largest size of a request in bytes. Room for `usable` tokens of text is subtracted from it.
    """
    return None if request is None else request - min(request // 2, TEXT_BYTES * usable)


def media_in(message: Message) -> list[Media]:
    """All media of a message in order, including those inside tool results."""
    found: list[Media] = []
    for part in message.parts:
        inner = part.parts if isinstance(part, ToolResult) else (part,)
        found += [media for media in inner if isinstance(media, Media)]
    return found


def without_oversized_media(
    message: Message, index: int, allowance: MediaAllowance, downscale: Downscale = no_scaling
) -> Message:
    """The message, with media that are too large replaced by smaller images or by placeholders.

    Returns the same object if no medium is too large.
    """
    each, pixels = allowance.max_bytes, allowance.max_pixels
    media = media_in(message)
    if pixels is not None:
        wide = {id(one): downscale(one, pixels) for one in media if is_large(one, pixels)}
        if wide:
            reason = f"over {pixels:,} pixels on a side"
            message = message.with_parts(*_replaced(message.parts, wide, handle(index), reason))
            media = media_in(message)
    heavy = {id(one): None for one in media if each is not None and len(one.data) > each}
    if not heavy:
        return message
    return message.with_parts(*_replaced(message.parts, heavy, handle(index), f"over {each:,} bytes"))


class MediaBudget:
    """Counts the media in the view of a timeline as messages are added."""

    def __init__(self, timeline: Timeline, allowance: MediaAllowance) -> None:
        self.timeline, self.allowance = timeline, allowance
        self.totals = MediaTotals()

    def add(self, message: Message) -> None:
        """Count the media of a new message."""
        for media in media_in(message):
            self.totals = self.totals.plus(media, self.allowance)

    def recount(self) -> None:
        """Count all media of the view again, after a fold."""
        self.totals = MediaTotals()
        fold = self.timeline.fold
        kept = (*fold.pinned, *fold.carried) if fold else ()
        for index in (*kept, *range(self.timeline.cut, len(self.timeline))):
            self.add(self.timeline.shown[index])

    @property
    def is_exceeded(self) -> bool:
        """True if a provider would refuse the request because of its media."""
        return not _is_within(self.totals, self.allowance, 1.0) or _has_large_among_many(self.totals, self.allowance)

    def stub_oldest(
        self, size: Callable[[Message], int], *, may_fold: bool = True, downscale: Downscale = no_scaling
    ) -> dict[int, tuple[Message, int]]:
        """Stubs (messages without their media) for the oldest messages, so that the view is within the limits.

        If there are many images, large images are scaled down with `downscale`. Large images that cannot be scaled down
        are removed before other media. Pins and unanswered prompts keep their media. Raises `ViewTooLarge` if the view
        still exceeds a limit. With `may_fold=False` (the policy never folds), no media are removed.
        """
        allowance, left = self.allowance, self.totals
        places = list(self._replaceable()) if may_fold else []
        scaled: dict[tuple[int, int], Media | None] = {}
        """For each large image (message index and `id` of the object): the smaller image that replaces it; None if it
        is removed.
        """
        for index, media in places:
            if _has_large_among_many(self.totals, allowance) and is_large(media, allowance.max_pixels_of_many):
                smaller = downscale(media, allowance.max_pixels_of_many or 0)
                scaled[index, id(media)] = smaller
                left = left.plus(media, allowance, -1)
                left = left.plus(smaller, allowance) if smaller else left
        out: dict[int, dict[int, Media | None]] = {}
        for (index, name), smaller in scaled.items():
            out.setdefault(index, {})[name] = smaller
        for index, media in places:
            goal = 0.5 if index < self.timeline.tail else 1.0
            kept = scaled.get((index, id(media)), media)
            if kept is None or (_is_within(left, allowance, goal) and not _has_large_among_many(left, allowance, goal)):
                continue
            out.setdefault(index, {})[id(media)] = None
            left = left.plus(kept, allowance, -1)
        if not _is_within(left, allowance, 1.0) or _has_large_among_many(left, allowance):
            raise self._refusal(left)
        stubs: dict[int, tuple[Message, int]] = {}
        for index, chosen in out.items():
            shown = self.timeline.shown[index]
            message = shown.with_parts(*_replaced(shown.parts, chosen, handle(index), "too many for one request"))
            stubs[index] = message, size(message)
        return stubs

    def _replaceable(self) -> Iterator[tuple[int, Media]]:
        """The media that may be removed, oldest first, each with the index of its message."""
        timeline = self.timeline
        for index in range(timeline.cut, len(timeline)):
            if index in timeline.pins or (index >= timeline.tail and timeline.messages[index].is_prompt):
                continue
            for media in media_in(timeline.shown[index]):
                yield index, media

    def _refusal(self, left: MediaTotals) -> ViewTooLarge:
        most, total = self.allowance.max_count, self.allowance.max_total_bytes
        hint = "send fewer or smaller media at once, or use a policy that folds"
        many = self.allowance.many_images
        if many is not None and _has_large_among_many(left, self.allowance):
            hint = f"send images of at most {self.allowance.max_pixels_of_many:,} pixels on a side, or fewer images"
            return ViewTooLarge(left.images, many, {"media": left.images}, unit="images with a large one", hint=hint)
        if most is not None and left.number > most:
            return ViewTooLarge(left.number, most, {"media": left.number}, unit="media", hint=hint)
        return ViewTooLarge(left.size, total or 0, {"media": left.size}, unit="bytes of media", hint=hint)


def _is_within(totals: MediaTotals, allowance: MediaAllowance, share: float) -> bool:
    most, total = allowance.max_count, allowance.max_total_bytes
    return (most is None or totals.number <= most * share) and (total is None or totals.size <= total * share)


def _has_large_among_many(totals: MediaTotals, allowance: MediaAllowance, share: float = 1.0) -> bool:
    """True if there are many images and at least one of them is large."""
    many = allowance.many_images
    return many is not None and totals.large > 0 and totals.images > many * share


def _replaced(parts: Iterable[Part], chosen: Mapping[int, Media | None], name: str, reason: str) -> tuple[Part, ...]:
    """The parts of a message. Each chosen medium is replaced by a smaller image or by a placeholder."""
    left: list[Part] = []
    for part in parts:
        if isinstance(part, Media) and id(part) in chosen:
            left.append(chosen[id(part)] or Text(text=missing_media(part.kind, reason, name)))
        elif isinstance(part, ToolResult) and any(id(inner) in chosen for inner in part.parts):
            left.append(edited(part, parts=_replaced(part.parts, chosen, name, reason)))
        else:
            left.append(part)
    return tuple(left)
