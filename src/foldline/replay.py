"""Replays a recorded session under a policy. Computes the requests that would have been sent, and their cost.

For every reply, the request is built from the messages before the reply, with the same engine as a live session. If the
prompt cache has not expired, the common prefix of two consecutive requests is read from the cache. The rest is written
to the cache. The cost without folds is computed, too. The usage figures in the log are those of the agent's own
requests, so they are used only to compute the size of the agent's system prompt and tools. The agent's own digests are
left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress, takewhile
from typing import Any, NamedTuple

from foldline.errors import ViewTooLarge
from foldline.fold import Loss
from foldline.measure.estimator import Count
from foldline.measure.message_size import message_tokens, tools_tokens
from foldline.measure.tokenizers import counter_for
from foldline.message import Message
from foldline.models.table import model as model_of
from foldline.plan.fold_cost import is_cache_warm, prices_of, request_cost
from foldline.plan.gate import bound
from foldline.policy import Policy
from foldline.session import Session
from foldline.session.transcript_session import (
    reply_starts,
    request_tools,
    tokens_outside_messages,
    transcript_policy,
    without_usage,
)
from foldline.view.compose import View
from foldline.wire.formats import Transcript, framing_of

MILLION = 1_000_000
"""Prices are per this number of tokens."""


def request_positions(messages: Sequence[Message]) -> list[int]:
    """The index of the first message of each reply. Before each of these messages, a request was sent."""
    return reply_starts((message.role, message.meta.usage) for message in messages)


class ReplayStep(NamedTuple):
    """One request of a replay."""

    reply_index: int
    """Index of the recorded reply to this request."""
    total_tokens: int
    """Tokens of all messages before the reply, without any fold."""
    view: View | None
    """The view that would have been sent; None if the messages that must stay in the view do not fit."""
    refusal: ViewTooLarge | None = None
    """The error that prevented the view; None if there is a view."""


def replay_steps(messages: Sequence[Message], session: Session, points: Iterable[int]) -> Iterator[ReplayStep]:
    """Add messages to a session one by one.

    Before each message whose index is in `points`, build and yield a request.
    """
    requested = set(points)
    for index, message in enumerate(messages):
        if index in requested:
            total_tokens = session.timeline.prefix[-1]
            try:
                step = ReplayStep(index, total_tokens, session.view())
            except ViewTooLarge as error:
                step = ReplayStep(index, total_tokens, None, error)
            yield step
        session.add(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The result of one session under one policy. Costs are in US dollars, and do not include replies."""

    policy: str
    model: str
    messages: int
    requests: int = 0
    refused: int = 0
    """Number of requests that were refused, because the messages that must stay do not fit."""
    refusal: str = ""
    """Why the largest refused request cannot fit; "" if no request was refused."""
    remedy: str = ""
    """What would make the largest refused request fit."""
    refused_parts: dict[str, int] = field(default_factory=dict)
    """The tokens of the largest refused request by block, and the margin of the estimate."""
    largest_message: int = 0
    """Number of the largest message in the largest refused request; 0 if no request was refused."""
    largest_message_tokens: int = 0
    over: int = 0
    """Number of sent requests that are larger than the window, counted with the model's own counter."""
    folds: int = 0
    folded: int = 0
    """Number of messages that are folded when the session ends."""
    sent: int = 0
    """The sum of the tokens of all requests."""
    everything: int = 0
    """The sum of the tokens that all requests would have without any fold."""
    read: int = 0
    """Tokens of `sent` that were read from the prompt cache."""
    largest: int = 0
    """Tokens of the largest request."""
    whole: int = 0
    """Tokens that the largest request would have without any fold."""
    window: int = 0
    usable: int = 0
    """The largest request allowed, in tokens."""
    ceiling: int = 0
    """The largest estimated size of a request that is sent. It is lower than `usable` by the margin of estimates."""
    folds_at: int = 0
    """The estimated size of a request at which the policy folds; 0 if no rule depends on the size of a request."""
    cost: float | None = None
    """Cost of all requests; None if the model's prices are unknown."""
    cost_everything: float | None = None
    facts: int = 0
    """Number of facts in the folded messages, from the loss report of the last fold; 0 if there is none."""
    kept: int = 0
    """Number of facts of the folded messages that the last digest shows."""
    sizes: tuple[int, ...] = ()
    """Tokens of each request; 0 for a refused request."""


class CachedCounter:
    """A model's token counter that remembers its results. One counter is used for all policies of a session."""

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
        """The size of a message in tokens, counted with the model's counter."""
        return message_tokens(message, self, self.framing)


def replay(
    transcript: Transcript, policy: Policy, *, name: str, counter: CachedCounter, system_tokens: int | None = None
) -> Replay:
    """Replay one session. If the policy sets no window, the window that the transcript names is used.

    `system_tokens` is added to the size of every request, for a system prompt and tools that are not in the transcript.
    By default, it is the reported usage minus the tokens of the messages and tools in the transcript.
    """
    tools = request_tools(transcript)
    if system_tokens is None:
        system_tokens = tokens_outside_messages(transcript, counter.model.name, counter)
    session = Session(
        model=counter.model.name,
        policy=transcript_policy(transcript, policy, counter.model.name),
        tools=tools,
        extra_tokens=system_tokens,
        counter=counter,
        clock=lambda: None,
    )
    is_message = [message.kind != "digest" for message in transcript.messages]
    messages = without_usage(compress(transcript.messages, is_message))
    numbers = list(compress(range(1, len(is_message) + 1), is_message))
    points = [sum(is_message[:index]) for index in request_positions(transcript.messages)]
    fixed = tools_tokens(tools, counter, counter.framing) + system_tokens
    account, whole = CostAccount(counter, fixed), CostAccount(counter, fixed)
    request_tokens: list[int] = []
    refusals: list[tuple[ViewTooLarge, int]] = []
    for step in replay_steps(messages, session, points):
        at = messages[step.reply_index - 1].meta.at or messages[step.reply_index].meta.at
        whole.send(messages[: step.reply_index], at)
        refusals += [(step.refusal, step.reply_index)] if step.refusal else []
        request_tokens.append(account.send(step.view.repaired_messages(), at) if step.view else 0)
    fold = session.timeline.fold
    loss = (fold.digest.loss if fold and fold.digest else None) or Loss(facts=0, kept=0)
    load = session.load()
    fold_rules = [rule for rule in session.policy.rules if rule.action in ("fold", "clip") and rule.basis == "request"]
    return Replay(
        policy=name,
        model=counter.model.name,
        messages=len(messages),
        requests=len(request_tokens),
        refused=request_tokens.count(0),
        **_largest_refusal(refusals, messages, numbers, counter),
        over=sum(size > session.window for size in request_tokens),
        folds=session.folds,
        folded=fold.cut - session.timeline.lead - len(fold.pinned) - len(fold.carried) if fold else 0,
        sent=account.tokens,
        everything=whole.tokens,
        read=account.read,
        largest=account.largest,
        whole=whole.largest,
        window=session.window,
        usable=session.usable,
        ceiling=load.ceiling,
        folds_at=round(min([bound(rule, load) for rule in fold_rules], default=0)),
        cost=account.dollars,
        cost_everything=whole.dollars,
        facts=loss.facts,
        kept=loss.kept,
        sizes=tuple(request_tokens),
    )


def _largest_refusal(
    refusals: Sequence[tuple[ViewTooLarge, int]],
    messages: Sequence[Message],
    numbers: Sequence[int],
    counter: CachedCounter,
) -> dict[str, Any]:
    """The fields of a `Replay` about the largest refused request.

    `refusals` are the requests that the replay refused: the error, and the index in `messages` of the reply that the
    recorded session has at this place. `numbers` are the numbers of the messages in the file.
    """
    if not refusals:
        return {}
    error, length = max(refusals, key=lambda refused: refused[0].tokens)
    most = error.bill.get("history", 0) + error.bill.get("pins", 0)
    sizes = zip(map(counter.of, messages[:length]), numbers, strict=False)
    tokens, number = max((one for one in sizes if one[0] <= most), default=(0, 0))
    return {
        "refusal": str(error),
        "remedy": error.hint,
        "refused_parts": error.bill,
        "largest_message": number,
        "largest_message_tokens": tokens,
    }


class CostAccount:
    """Adds up the cost of a session's requests.

    Each request is compared with the previous request. Their common prefix is read from the cache.
    """

    def __init__(self, counter: CachedCounter, fixed: int) -> None:
        self.counter, self.fixed = counter, fixed
        self.prices = prices_of(counter.model)
        self.tokens = self.read = self.largest = 0
        self._cost = 0.0
        self._last: Sequence[Message] = ()
        self._ends: list[int] = [fixed]
        """For each message of the last request, the number of tokens up to its end."""
        self._at: float | None = None

    @property
    def dollars(self) -> float | None:
        """The cost in US dollars; None if the model's prices are unknown."""
        return self._cost / MILLION if self.counter.model.prices is not None else None

    def send(self, messages: Sequence[Message], at: float | None) -> int:
        """Add the cost of a request; returns its size in tokens."""
        pairs = zip(self._last, messages, strict=False)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1] or pair[0] == pair[1], pairs))
        del self._ends[same + 1 :]
        common = self._ends[-1] if self._last else 0
        for message in messages[same:]:
            self._ends.append(self._ends[-1] + self.counter.of(message))
        tokens = self._ends[-1]
        warm = is_cache_warm(self.prices, self._at, at)
        self._cost += request_cost(self.prices, tokens=tokens, common=common, warm=warm)
        self.read += common if warm and common >= self.prices.min_prefix else 0
        self.tokens += tokens
        self.largest = max(self.largest, tokens)
        self._last = messages
        self._at = self._at if at is None else at
        return tokens
