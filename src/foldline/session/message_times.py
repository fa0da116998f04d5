"""Gives each added message a time, so that the record shows when the provider's prompt cache has expired."""

from __future__ import annotations

from dataclasses import replace

from foldline.message import NO_META, Message, Meta


def with_times(messages: list[Message], at: float | None) -> list[Message]:
    """The messages, each with a time. A message without a time gets the time of the message before it.

    The messages before the first message with a time get the time of that message. If no message has a time, all
    messages get `at`.
    """
    for message in messages:
        if message.meta.at is not None:
            at = message.meta.at
            break
    if at is None:
        return messages
    timed: list[Message] = []
    fresh = Meta(at=at)
    """Metadata that holds only a time. All messages without metadata of their own share it while they get the same
    time.
    """
    for message in messages:
        meta = message.meta
        if meta.at is not None:
            at, fresh = meta.at, Meta(at=meta.at)
            timed.append(message)
            continue
        timed.append(message.with_meta(fresh if meta is NO_META else replace(meta, at=at)))
    return timed
