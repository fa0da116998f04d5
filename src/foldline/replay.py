"""A recorded session again, request by request, under a policy: what would have been sent, what it would have cost.

For every reply in a record there was a request. Here it is built anew from the messages before it, by the same engine
that serves a live session, and accounted for as the provider would: what the last request began with is read from the
prompt cache while that is warm, the rest is written to it. Beside it runs the account of sending everything, whether
that fits or not. The usage in a log is left out, since it measured the requests that were sent then and not these; and
so are the digests of compactions that the agent made itself: in a replay the policy makes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import NamedTuple

from foldline.errors import ViewTooLarge
from foldline.fold import Loss
from foldline.measure.estimator import Count
from foldline.measure.message_size import message_tokens, tools_tokens
from foldline.measure.tokenizers import counter_for
from foldline.message import Message
from foldline.models.table import model as model_of
from foldline.plan.fold_cost import is_cache_warm, prices_of, request_cost
from foldline.policy import Policy
from foldline.session import Session
from foldline.view.compose import View
from foldline.wire.formats import Transcript, framing_of
from foldline.wire.session_logs.claude_code import segments

MILLION = 1_000_000
"""Prices are for so many tokens."""


def unmeasured(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Messages without the usage that was logged with them."""
    return tuple([replace(message, meta=replace(message.meta, usage=None)) for message in messages])


def seen_together(transcript: Transcript) -> tuple[tuple[Message, ...], ...]:
    """The runs of messages that the model saw together: from one recorded compaction to the next."""
    if any(message.kind == "digest" for message in transcript.messages):
        return segments(transcript)
    return (transcript.messages,)


def requests(messages: Sequence[Message]) -> list[int]:
    """Where requests were made: the first message of each reply that answers something."""
    return [
        index
        for index, message in enumerate(messages)
        if message.role == "assistant" and index and messages[index - 1].role != "assistant"
    ]


class Step(NamedTuple):
    """One request of a replay."""

    place: int
    """The message that answered it then."""
    whole: int
    """Tokens of all messages before it, by the session's counter, none of them folded for this request."""
    view: View | None
    """What would have been sent; None where it could not be made to fit."""


def steps(messages: Sequence[Message], session: Session, points: Iterable[int]) -> Iterator[Step]:
    """Add messages to a session one by one, with a request before each of the `points`."""
    asked = set(points)
    for place, message in enumerate(messages):
        if place in asked:
            whole = session.timeline.prefix[-1]
            try:
                view = session.view()
            except ViewTooLarge:
                view = None
            yield Step(place, whole, view)
        session.add(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What a policy would have done with one session. Money is in US dollars, for what is sent, replies apart."""

    policy: str
    model: str
    messages: int
    requests: int = 0
    refused: int = 0
    """Requests that could not be made to fit, and were not sent."""
    over: int = 0
    """Requests that the policy took for small enough, though by the model's own counter they exceed its window."""
    folds: int = 0
    folded: int = 0
    """Messages that a digest stands for at the end."""
    sent: int = 0
    """Tokens of all requests together."""
    everything: int = 0
    """The same with nothing folded."""
    read: int = 0
    """Tokens of `sent` that the prompt cache still had."""
    largest: int = 0
    """The largest request."""
    whole: int = 0
    """The largest request with nothing folded."""
    window: int = 0
    usable: int = 0
    """What a request could fill of the window."""
    cost: float | None = None
    """None where the model's prices are not known."""
    cost_everything: float | None = None
    facts: int = 0
    """Facts in what was folded, as far as a digest was audited."""
    kept: int = 0
    """Those of them that the digests show."""
    sizes: tuple[int, ...] = ()
    """Tokens of each request; 0 for one that was refused."""


class Sizes:
    """Counts every text once, for all policies that are tried on one session."""

    def __init__(self, model: str) -> None:
        self.model = model_of(model)
        self.inner = counter_for(model)
        self.name, self.exact = self.inner.name, self.inner.exact
        self.framing = framing_of(self.model.format, self.model.media)
        self._known: dict[str, Count] = {}

    def count(self, text: str) -> Count:
        """The size of a text."""
        found = self._known.get(text)
        if found is None:
            found = self._known[text] = self.inner.count(text)
        return found

    def of(self, message: Message) -> int:
        """The size of a message by the model's own counter, whatever a policy counts by."""
        return message_tokens(message, self, self.framing)


def replay(transcript: Transcript, policy: Policy, *, name: str, sizes: Sizes, beside: int = 0) -> Replay:
    """Replay one session. `beside` is what every request carried and no message shows: system prompt, tool schemas."""
    session = Session(model=sizes.model.name, policy=policy, tools=transcript.tools, extra_tokens=beside, counter=sizes)
    talk = unmeasured(message for message in transcript.messages if message.kind != "digest")
    fixed = tools_tokens(transcript.tools, sizes, sizes.framing) + beside
    account, whole = Account(sizes, fixed), Account(sizes, fixed)
    timeline: list[int] = []
    for step in steps(talk, session, requests(talk)):
        at = talk[step.place - 1].meta.at or talk[step.place].meta.at
        whole.send(talk[: step.place], at)
        timeline.append(account.send(step.view.messages, at) if step.view else 0)
    fold = session.timeline.fold
    loss = (fold.digest.loss if fold and fold.digest else None) or Loss(facts=0, kept=0)
    return Replay(
        policy=name,
        model=sizes.model.name,
        messages=len(talk),
        requests=len(timeline),
        refused=timeline.count(0),
        over=sum(size > session.window for size in timeline),
        folds=session.folds,
        folded=fold.cut - session.timeline.lead - len(fold.pinned) - len(fold.carried) if fold else 0,
        sent=account.tokens,
        everything=whole.tokens,
        read=account.read,
        largest=account.largest,
        whole=whole.largest,
        window=session.window,
        usable=session.usable,
        cost=account.dollars,
        cost_everything=whole.dollars,
        facts=loss.facts,
        kept=loss.kept,
        sizes=tuple(timeline),
    )


class Account:
    """What the requests of one session cost, each beside the one before it."""

    def __init__(self, sizes: Sizes, fixed: int) -> None:
        self.sizes, self.fixed = sizes, fixed
        self.prices = prices_of(sizes.model)
        self.tokens = self.read = self.largest = 0
        self._cost = 0.0
        self._last: Sequence[Message] = ()
        self._ends: list[int] = [fixed]
        """Tokens up to each message of the last request."""
        self._at: float | None = None

    @property
    def dollars(self) -> float | None:
        """The money, where the model's prices are known."""
        return self._cost / MILLION if self.sizes.model.prices is not None else None

    def send(self, messages: Sequence[Message], at: float | None) -> int:
        """Book a request and give its size: what it has in common with the last one is at its beginning."""
        same = sum(1 for _ in takewhile(_equal, zip(self._last, messages, strict=False)))
        del self._ends[same + 1 :]
        common = self._ends[-1] if self._last else 0
        for message in messages[same:]:
            self._ends.append(self._ends[-1] + self.sizes.of(message))
        tokens = self._ends[-1]
        warm = is_cache_warm(self.prices, self._at, at)
        self._cost += request_cost(self.prices, tokens=tokens, common=common, warm=warm)
        self.read += common if warm and common >= self.prices.min_prefix else 0
        self.tokens += tokens
        self.largest = max(self.largest, tokens)
        self._last = messages
        self._at = self._at if at is None else at
        return tokens


def _equal(pair: tuple[Message, Message]) -> bool:
    return pair[0] is pair[1] or pair[0] == pair[1]
