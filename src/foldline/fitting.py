"""One function that makes a list of messages fit a model's window.

    messages = foldline.fit(messages, model="gpt-5")

`fit` applies the default policy, and stores nothing in a ledger. A digest replaces the oldest messages, the first
prompt stays, and large tool results become previews. A list of messages has no recall tool, so the result does not
mention recall.

The sessions of the last calls are kept in memory. If the list of a call continues the list of an earlier call, the
earlier session is continued, and only the new messages are processed. The result is the same as with a new session.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from inspect import isawaitable
from itertools import takewhile
from threading import Lock
from time import monotonic
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

from foldline.compat.caller_messages import CallerMessages
from foldline.digest.digester import Digester, DigesterCall, DigesterReply
from foldline.digesters import digester_of
from foldline.errors import InputError, ViewTooLarge, check_type
from foldline.events import Event
from foldline.message import Message
from foldline.placeholders import message_without_handles
from foldline.plan.remedy import FOLDING_POLICY
from foldline.policy import Policy
from foldline.session.added_values import check_input
from foldline.session.session import Session
from foldline.session.setup import DEFAULT_POLICY, policy_of
from foldline.view.compose import View
from foldline.wire.formats import request_format
from foldline.wire.tool_definitions import json_tools

_KNOB = re.compile(r"\bset (\w+) to ([^\s,]+)")
"""Matches the advice to set a knob, in the hint of an error."""
_REPLIES = 64
"""Number of digest replies that are remembered for each digester."""
_REST_S = 60.0
"""After a digester fails, it is not called for this many seconds. In this time, digests are written locally."""


@dataclass(slots=True, kw_only=True)
class _Memory:
    """What is remembered about a digester: its earlier replies, and when it may be called again after a failure."""

    replies: dict[tuple[object, ...], DigesterReply] = field(default_factory=dict)
    rests_until: float = 0.0

    @property
    def rests(self) -> bool:
        return monotonic() < self.rests_until

    def listen(self, event: Event) -> None:
        """If the digester failed during a fold, do not call it for `_REST_S` seconds."""
        if event.kind == "failed" and not self.rests:
            self.rests_until = monotonic() + _REST_S


_remembered: WeakKeyDictionary[Any, _Memory] = WeakKeyDictionary()

Messages = TypeVar("Messages", bound=Sequence[Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fitted:
    """The session of an earlier call, with the call's settings and messages."""

    settings: tuple[object, ...]
    messages: list[Message]
    session: Session

    def precedes(self, settings: tuple[object, ...], messages: list[Message]) -> bool:
        """Whether the new call continues this call: it has the same settings, and its messages begin with this call's
        messages.

        If the new call has more messages, the first additional message must be a reply.
        """
        count = len(self.messages)
        return (
            count <= len(messages)
            and (count == len(messages) or messages[count].role == "assistant")
            and self.messages[-1] == messages[count - 1]
            and self.settings == settings
            and self.messages == messages[:count]
        )


_FITTED = 16
"""Number of sessions of earlier calls that are kept."""
_fitted: list[_Fitted] = []
_lock = Lock()


def fit(  # noqa: PLR0913 (all but one are keyword-only)
    messages: Messages,
    *,
    model: str = "",
    budget: int | None = None,
    format: str | None = None,
    digester: Digester | Callable[[DigesterCall], Any] | None = None,
    tools: Sequence[Any] = (),
    policy: Policy | str = DEFAULT_POLICY,
) -> Messages:
    """The messages in the same format, shortened so that they fit. If the list already fits, the same list is returned.

    `budget` is the maximum number of tokens, including the tokens of the tools. By default, it is the window of `model`
    minus the tokens that are reserved for the reply. `format` is a wire format; by default, the format is detected.
    `digester` writes the digest with a model. You can append to the returned list, or pass the whole history every
    time. In both cases, the beginning of the result changes only when more messages must be folded. If the list ends
    with a tool call, the returned list ends with this call, too: append the result of the call before you send the
    list. Raises `ViewTooLarge` if the first prompt and the newest messages do not fit, and `InputError` if no message
    has content.
    """
    _check(messages, budget)
    chosen = policy_of(policy)
    if budget is not None:
        chosen = chosen.but(window_tokens=budget, reply_tokens=0, reserve_tokens=0)
    caller = CallerMessages(messages, format)
    read = [_with_kind(message, chosen) for message in caller.messages]
    settings = (model, chosen, list(json_tools(tools)), caller.wire_format, digester)

    memory = _memory_of(digester)

    def new_session() -> Session:
        return Session(
            model=model,
            policy=chosen,
            tools=tools,
            format=caller.wire_format,
            digester=_with_memory(digester, memory),
            listener=memory.listen,
        )

    try:
        view = _view(settings, read, new_session)
    except ViewTooLarge as error:
        raise ViewTooLarge(error.tokens, error.limit, error.bill, hint=_hint(error, policy, budget)) from None
    originals = dict(zip(map(id, read), caller.messages, strict=True))
    repaired = view.repaired_messages()
    if messages and not repaired:
        raise InputError("no message of the list has content", hint='write {"role": "user", "content": "…"}')
    kept = repaired[: _end_of_reply(repaired)] if _ends_in_call(read) else repaired
    shown = [originals.get(id(message)) or message_without_handles(message) for message in kept]
    fitting: Messages = caller.restore(shown)
    if fitting is not messages and (join := request_format(caller.wire_format).join_turns) and caller.is_wire:
        fitting = cast("Messages", join(list(fitting)))
    return fitting


def _check(messages: object, budget: int | None) -> None:
    """Raise `InputError` if `messages` is not a list of messages, or if `budget` is not a number of tokens."""
    if isinstance(messages, Mapping) and "messages" in messages:
        raise InputError("fit takes messages, not a request body", hint='pass body["messages"] and tools=body["tools"]')
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Sequence):
        raise InputError(f"fit takes a list of messages, not {type(messages).__name__}", hint="pass a list or a tuple")
    if messages:
        check_input(list(messages))
    if budget is not None:
        check_type(budget, int, "budget", hint="pass a number of tokens, or omit it to use the model's window")
    if budget is not None and budget < 1:
        raise InputError(f"budget must be at least 1 token, not {budget}", hint="omit it to use the model's window")


def _hint(error: ViewTooLarge, policy: Policy | str, budget: int | None) -> str:
    """The hint of an error, with the arguments of `fit` in place of the knobs of a policy."""
    base = f'Policy.preset("{policy}")' if isinstance(policy, str) else "policy"
    hint = error.hint
    if budget is not None:
        hint = hint.replace(FOLDING_POLICY, 'policy="balanced"').replace("window_tokens", "budget")
    return _KNOB.sub(lambda found: f"pass policy={base}.but({found[1]}={found[2]})", hint)


def _ends_in_call(messages: Sequence[Message]) -> bool:
    """Whether the messages end with a reply that calls a tool, so that the caller will append the result."""
    reply = takewhile(lambda message: message.role == "assistant", reversed(messages))
    return any(message.calls for message in reply)


def _end_of_reply(messages: Sequence[Message]) -> int:
    """The index after the model's last message."""
    return max((index for index, message in enumerate(messages) if message.role == "assistant"), default=-1) + 1


def _view(settings: tuple[object, ...], messages: list[Message], new_session: Callable[[], Session]) -> View:
    """The view of the messages, in a new session or in the session of an earlier call.

    If an earlier session is continued, its messages replace the equal messages in `messages`.
    """
    earlier = _take(settings, messages)
    if earlier is not None:
        session, known = earlier.session, earlier.messages
        messages[: len(known)] = known
        _replay(session, messages[len(known) :])
    else:
        session = new_session()
        session.add(*messages)
        if session.plan().fold is not None:
            session = new_session()
            _replay(session, messages)
    view = session.view()
    if messages and messages[-1].role != "assistant":  # the next call can continue the session only if a reply follows
        _keep(_Fitted(settings=settings, messages=messages, session=session))
    return view


def _take(settings: tuple[object, ...], messages: list[Message]) -> _Fitted | None:
    """Remove and return the kept session that these messages continue; the longest one if there are several."""
    with _lock:
        found = max(
            (each for each in _fitted if each.precedes(settings, messages)),
            key=lambda each: len(each.messages),
            default=None,
        )
        if found is not None:
            _fitted[:] = [each for each in _fitted if each is not found]
    return found


def _keep(fitted: _Fitted) -> None:
    with _lock:
        del _fitted[: len(_fitted) + 1 - _FITTED]
        _fitted.append(fitted)


def _replay(session: Session, messages: Sequence[Message]) -> None:
    """Add the messages one by one. Before each reply, fold if a fold is due.

    A session does the same before each request. So a list that grows is cut at the same messages in every call, and the
    provider's prompt cache stays valid.
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
    """The message. If it is a digest that an earlier call of `fit` wrote, its kind is set to "digest".

    The next digest then includes the text of this earlier digest.
    """
    is_digest = message.role == policy.digest_role and message.text.startswith(policy.digest_header)
    return replace(message, kind="digest") if is_digest and not message.kind else message


def _memory_of(given: Digester | Callable[[DigesterCall], Any] | None) -> _Memory:
    """The memory of a digester. If the digester is None or cannot be weakly referenced, a new memory is returned."""
    owner = given.complete if isinstance(given, Digester) else given
    try:
        return _remembered.setdefault(owner, _Memory())
    except TypeError:
        return _Memory()


def _with_memory(given: Digester | Callable[[DigesterCall], Any] | None, memory: _Memory) -> Digester | None:
    """The digester, with a cache of its replies.

    If the digester is called again with the same text, it returns the cached reply without a request. For some time
    after a failure, calls with any other text fail at once.
    """
    digester, known = digester_of(given), memory.replies
    if digester is None:
        return None
    complete = digester.complete

    def run(call: DigesterCall) -> DigesterReply | Awaitable[DigesterReply]:
        key = (call.model, call.system, call.text, call.max_tokens)
        if key in known:
            return known[key]
        if memory.rests:
            raise RuntimeError("the digester failed a short time ago")
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
