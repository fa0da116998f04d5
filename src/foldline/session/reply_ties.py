"""Stores the view that each reply answers, so that the usage and thinking of a reply are not used for another view."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, islice

from foldline.message import Message, Meta
from foldline.session.state import State
from foldline.view.bound_thinking import has_thinking
from foldline.view.identity import UNKNOWN_VIEW, ViewIdentity


def is_untied(message: Message) -> bool:
    """Whether a message is a reply with usage or thinking for which no view is stored yet."""
    if message.role != "assistant" or message.meta.view:
        return False
    return message.meta.usage is not None or has_thinking(message)


def tie_reply(message: Message, identity: ViewIdentity) -> Message:
    """The reply, with the identity of the view that it answers."""
    meta = message.meta
    tied = Meta(
        reply=meta.reply,
        model=meta.model,
        stop=meta.stop,
        usage=meta.usage,
        at=meta.at,
        hidden=meta.hidden,
        source=meta.source,
        view=str(identity),
    )  # `replace` would take several times as long
    return Message(role=message.role, parts=message.parts, kind=message.kind, meta=tied, wire=message.wire)


def tie_replies(messages: Iterable[Message], identity: ViewIdentity) -> list[Message]:
    """The messages. Each reply without a stored view gets this identity."""
    return [tie_reply(message, identity) if is_untied(message) else message for message in messages]


class ReplyTies:
    """For each added reply that has usage, stores the identity of the view that the caller got before it."""

    __slots__ = ("_is_answered", "view")

    def __init__(self) -> None:
        self.view: ViewIdentity | None = None
        """The identity of the last view that the caller got.

        If messages were added after its reply, the identity of the view that grew from it.
        """
        self._is_answered = False
        """Whether the last message is a reply."""

    def follow(self, view: ViewIdentity | None) -> None:
        """Record that the caller got this view, so that the next reply answers it."""
        self.view, self._is_answered = view, False

    def tie(self, messages: list[Message], answered: ViewIdentity | None, state: State) -> None:
        """For each reply that has usage, store the view that it answers: `answered`, or the last view.

        If the caller adds messages and further replies without getting a new view, it has sent the last view plus these
        messages.
        """
        view, is_answered = self.view, self._is_answered
        for index, message in enumerate(messages):
            if message.role != "assistant":
                if is_answered and view is not None:
                    view, is_answered = view.extension, False
                continue
            is_answered = True
            if message.meta.usage is not None and is_untied(message):
                messages[index] = tie_reply(message, answered or view or _next_view(state, messages[:index]))
                answered = None
        self.view, self._is_answered = view, is_answered


def _next_view(state: State, added: Sequence[Message]) -> ViewIdentity:
    """The identity of the view that a reply answers, if the caller got no view from this object.

    `added` are the messages that are added before the reply. For the first reply after a fold or another change, the
    view is unknown: the reply may answer an earlier view of another process.
    """
    changed_at = state.snapshot.changed_at
    if changed_at:
        known = islice(state.timeline.messages, changed_at, None)
        if not any(message.role == "assistant" for message in chain(known, added)):
            return UNKNOWN_VIEW
    return state.identity().extension
