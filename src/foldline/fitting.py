"""One function that makes a list of messages fit a model's window.

    messages = foldline.fit(messages, model="gpt-5")

`fit` applies the default policy without a record. A digest replaces the oldest messages, the first prompt stays, and
large tool results become previews. A list of messages has no recall tool, so the result does not mention recall.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from inspect import isawaitable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from foldline.compat.caller_messages import CallerMessages, without_recall_advice
from foldline.digest.digester import Digester, DigesterCall, DigesterReply
from foldline.digest.endpoints import digester_of
from foldline.errors import ViewTooLarge
from foldline.message import Message, Text
from foldline.placeholders import without_handles
from foldline.policy import Policy
from foldline.session.session import Session
from foldline.session.setup import DEFAULT_POLICY

_REPLIES = 64
"""Number of digest replies that are remembered for each digester."""
_remembered: WeakKeyDictionary[Any, dict[tuple[object, ...], DigesterReply]] = WeakKeyDictionary()

Messages = TypeVar("Messages", bound=Sequence[Any])


def fit(  # noqa: PLR0913 (all but one are named at the call)
    messages: Messages,
    *,
    model: str = "",
    budget: int | None = None,
    format: str | None = None,
    digester: Digester | Callable[[DigesterCall], Any] | None = None,
    tools: Sequence[Any] = (),
    policy: Policy | str = DEFAULT_POLICY,
) -> Messages:
    """The messages in the same format, shortened so that they fit. A list that already fits is returned as the same
    object.

    `budget` is the largest number of tokens, including the tools. By default, it is the window of `model` minus the
    tokens that are reserved for the reply. `format` is a wire format; by default, the format is detected. `digester`
    writes the digest with a model. You can append to the returned list, or pass the whole history every time. In both
    cases, the beginning of the result changes only when more messages must be folded. Raises `ViewTooLarge` if the
    newest messages alone do not fit.
    """
    chosen = Policy.preset(policy) if isinstance(policy, str) else policy
    if budget is not None:
        chosen = chosen.but(window_tokens=budget, reply_tokens=0, reserve_tokens=0)
    caller = CallerMessages(messages, format)
    read = [_with_kind(message, chosen) for message in caller.messages]
    session = _session(model, chosen, tools, caller, digester)
    session.add(*read)
    if session.plan().fold is not None:
        session = _session(model, chosen, tools, caller, digester)
        _replay(session, read)
    view = session.view()
    originals = dict(zip(map(id, read), caller.messages, strict=True))
    shown = [originals.get(id(message)) or _plain(message) for message in view.messages]
    fitting: Messages = caller.restore(shown)
    return fitting


def _session(model: str, policy: Policy, tools: Sequence[Any], caller: CallerMessages, digester: Any) -> Session:
    return Session(
        model=model,
        policy=policy,
        tools=tools,
        format=caller.wire_format,
        digester=_with_memory(digester),
    )


def _replay(session: Session, messages: Sequence[Message]) -> None:
    """Add the messages one by one, and fold before each reply if a fold is due, as a session does before each request.

    So a list that grows is folded at the same places every time, and the provider's prompt cache stays valid.
    """
    pending: list[Message] = []
    for message in messages:
        if message.role == "assistant" and pending and pending[-1].role != "assistant":
            session.add(*pending)
            pending.clear()
            with suppress(ViewTooLarge):  # only the last request has to fit
                session.view()
        pending.append(message)
    session.add(*pending)


def _with_kind(message: Message, policy: Policy) -> Message:
    """The message.

    If it is a digest of an earlier call, it gets the kind "digest", so that the next digest includes it.
    """
    is_digest = message.role == policy.digest_role and message.text.startswith(policy.digest_header)
    return replace(message, kind="digest") if is_digest and not message.kind else message


def _plain(message: Message) -> Message:
    """A new message without handles and without advice to recall."""
    if message.kind != "digest":
        return without_recall_advice(message)
    return message.with_parts(Text(text=without_handles(message.text)))


def _with_memory(given: Digester | Callable[[DigesterCall], Any] | None) -> Digester | None:
    """The digester, with a memory of its replies.

    If it is called again with the same text, it returns the earlier reply without a request.
    """
    digester = digester_of(given)
    try:
        owner = given.complete if isinstance(given, Digester) else given
        known = _remembered.setdefault(owner, {})
    except TypeError:  # None, or an object without weak references
        return digester
    if digester is None:
        return None
    complete = digester.complete

    def run(call: DigesterCall) -> DigesterReply | Awaitable[DigesterReply]:
        key = (call.model, call.system, call.text, call.max_tokens)
        if key in known:
            return known[key]
        reply = complete(call)
        return remember_later(key, reply) if isawaitable(reply) else remember(key, reply)

    async def remember_later(key: tuple[object, ...], reply: Awaitable[DigesterReply]) -> DigesterReply:
        return remember(key, await reply)

    def remember(key: tuple[object, ...], reply: DigesterReply) -> DigesterReply:
        while len(known) >= _REPLIES:
            known.pop(next(iter(known)))
        known[key] = reply
        return reply

    return replace(digester, complete=run)
