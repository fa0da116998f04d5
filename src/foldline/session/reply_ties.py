"""Stores with a reply which view it answers, so that its usage and its thinking are not used for another view."""

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
    """Ties the replies with usage that a caller adds to the views that the caller got."""

    __slots__ = ("_is_answered", "view")

    def __init__(self) -> None:
        self.view: ViewIdentity | None = None
        """The identity of the last view that the caller got, extended if the caller went on without a new view."""
        self._is_answered = False
        """Whether the last message is a reply."""

    def follow(self, view: ViewIdentity | None) -> None:
        """Take a view as the one that the caller sends next."""
        self.view, self._is_answered = view, False

    def tie(self, messages: list[Message], answered: ViewIdentity | None, state: State) -> None:
        """Store with each reply with usage which view it answers: `answered`, or the last view.

        If the caller adds further messages and replies without a new view, it has sent that view plus the added
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
    """The identity of the view that a reply answers if the caller got none.

    `added` are the messages added before it. The view is unknown for the first reply after a fold or another change: it
    may answer an earlier view of another process.
    """
    changed_at = state.snapshot.changed_at
    if changed_at:
        known = islice(state.timeline.messages, changed_at, None)
        if not any(message.role == "assistant" for message in chain(known, added)):
            return UNKNOWN_VIEW
    return state.identity().extension
