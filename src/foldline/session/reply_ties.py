"""Stores the view that each reply answers, so that the usage and thinking of a reply are not used for another view.

Consecutive messages of the model may be several replies, or one reply in several messages. To tell them apart, a reply
without an id gets an id. If the messages before the reply already show that a new reply begins, it gets no id.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, islice

from foldline.message import REPLY_TO_VIEW, Media, Message, Meta, Text, ToolResult
from foldline.session.state import State
from foldline.view.bound_thinking import has_thinking
from foldline.view.identity import UNKNOWN_VIEW, ViewIdentity
from foldline.wire.formats import grammar_of
from foldline.wire.repair.reasoning_order import is_reasoning


def is_untied(message: Message) -> bool:
    """Whether a message is a reply that has usage or thinking, but no stored view yet."""
    if message.role != "assistant" or message.meta.view:
        return False
    return message.meta.usage is not None or has_thinking(message)


def tie_reply(message: Message, identity: ViewIdentity) -> Message:
    """The reply, with the identity of the view that it answers."""
    return _with_meta(message, message.meta.reply, str(identity))


def _with_meta(message: Message, reply: str, view: str) -> Message:
    """The message with this reply id and this view."""
    meta = message.meta
    changed = Meta(
        reply=reply,
        model=meta.model,
        stop=meta.stop,
        usage=meta.usage,
        at=meta.at,
        hidden=meta.hidden,
        source=meta.source,
        view=view,
    )  # `replace` would take several times as long
    return message.with_meta(changed)


def tie_replies(messages: Iterable[Message], identity: ViewIdentity) -> list[Message]:
    """The messages. Each reply that has no stored view gets the view `identity`."""
    return [tie_reply(message, identity) if is_untied(message) else message for message in messages]


class ReplyTies:
    """Remembers the last view that the caller got, and stores the view's identity in the replies that are added next.

    The view is stored only in replies with usage, and in replies with thinking that the provider accepts only for the
    same view. If a reply has no id and could be mistaken for a part of another reply, it gets an id, which is derived
    from the view.
    """

    __slots__ = ("_has_grown", "_is_answered", "_view")

    def __init__(self) -> None:
        self._view: ViewIdentity | None = None
        """The identity of the last view that the caller got."""
        self._has_grown = self._is_answered = False
        """`_has_grown`: other messages came after a reply to `_view`. `_is_answered`: the last message is a reply to
        `_view`.
        """

    @property
    def view(self) -> ViewIdentity | None:
        """The identity of the view that the next reply answers; None if the caller got no view.

        This is the last view that the caller got. If this view was already answered and newer messages were added, the
        next reply answers the view plus all messages that were added since the caller got it.
        """
        return self._view.extension if self._has_grown and self._view is not None else self._view

    def follow(self, view: ViewIdentity | None) -> None:
        """Record that the caller got this view, so that the next reply answers it."""
        self._view, self._has_grown, self._is_answered = view, False, False

    def tie(self, messages: list[Message], answered: ViewIdentity | None, state: State, changed_at: int) -> None:
        """Store the answered view in the replies that need it (see the class), and an id in the replies that need one.

        The first reply answers the view `answered`; if `answered` is None, it answers the last view that the caller
        got. If the caller adds messages and another reply without getting a new view, the other reply is assumed to
        answer the last view plus these messages. `changed_at` is `Snapshot.changed_at` before the messages are added.
        """
        is_answered = self._is_answered
        reply = state.timeline.messages[-1].meta.reply if is_answered and state.timeline.messages else None
        for index, message in enumerate(messages):
            if message.role != "assistant":
                if is_answered:
                    self._has_grown, is_answered, reply = True, False, None
                continue
            is_answered, meta = True, message.meta
            known = answered or (None if self._has_grown else self._view)
            if known is not None and not meta.reply and known.length >= 0:
                if reply is None:
                    reply = "" if not index and _begins_reply(state) else _reply_id(messages, index, known, state)
                if reply:
                    messages[index] = _with_meta(message, reply, meta.view)
            if (meta.usage is not None or state.binds_thinking) and is_untied(message):
                sent = answered or self.view or _next_view(state, messages[:index], changed_at)
                messages[index] = tie_reply(messages[index], sent)
                answered = None
        self._is_answered = is_answered


def _begins_reply(state: State) -> bool:
    """Whether an assistant message that is added now is certain to begin a new reply.

    This is the case if every call has its result, all reasoning has its output, and a prompt or results follow the last
    reply.
    """
    timeline = state.timeline
    if not timeline.is_complete:
        return False
    for message in reversed(timeline.messages):
        if message.role == "assistant":
            return False
        if message.role == "system":
            continue
        for part in message.parts:
            if part.text.strip() if type(part) is Text else isinstance(part, (ToolResult, Media)):
                return True  # a request shows such a part in every format, or a placeholder for it
    return False


def _reply_id(messages: Sequence[Message], index: int, answered: ViewIdentity, state: State) -> str:
    """The id for the reply `messages[index]`, which has no id. `messages` are all messages that are added now.

    The id is derived from the view `answered`. There is one exception: if the message before the reply is the reasoning
    item of the reply, the reply gets the same id as that item.
    """
    if grammar_of(state.setup.format).reasoning_followed and not has_thinking(messages[index]):
        earlier = chain(reversed(messages[:index]), reversed(state.timeline.messages))
        before = next((each for each in earlier if each.role == "assistant"), None)
        if before is not None and is_reasoning(before):
            return before.meta.reply
    return f"{REPLY_TO_VIEW}{answered.length}"


def _next_view(state: State, added: Sequence[Message], changed_at: int) -> ViewIdentity:
    """The identity of the view that a reply is assumed to answer if the caller got no view from this session object.

    Usually, this is the current view, extended by the messages before the reply. For the first reply after a fold or
    another change, this is `UNKNOWN_VIEW`, because the reply may answer a view that another process made before the
    change. `added` are the messages that are added before the reply in the same call.
    """
    if changed_at:
        known = islice(state.timeline.messages, changed_at, None)
        if not any(message.role == "assistant" for message in chain(known, added)):
            return UNKNOWN_VIEW
    return state.identity().extension
