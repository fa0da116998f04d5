"""The way through the house on one screen: a message is added, measured and indexed; a view is planned and composed.

    session = Session(model="claude-sonnet-5")
    session.add({"role": "user", "content": "Why does the build fail?"})
    body = session.view().render("anthropic").body

Everything a session knows follows from the messages it was given and the folds it made, in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from foldline.digest.local import count_digest
from foldline.measure.anchor import Gauge
from foldline.measure.counter import MARGIN
from foldline.measure.models import model as model_of
from foldline.measure.size import framing_for, message_tokens, tools_tokens
from foldline.measure.tokenizers import counter_for
from foldline.message import Message
from foldline.plan import cut
from foldline.plan.economy import Offer, Rent, offer, tariff_of
from foldline.plan.gate import Load
from foldline.plan.plan import Plan, plan
from foldline.plan.prune import on_arrival
from foldline.plan.span import Fold, Path
from foldline.policy import Policy, Rule
from foldline.view.compose import View, marker, messages_of
from foldline.wire.reader import parse


class Session:
    """One conversation under one policy."""

    def __init__(self, *, model: str = "", policy: Policy | str = "balanced", tools: Sequence[Any] = ()) -> None:
        self.policy = Policy.preset(policy) if isinstance(policy, str) else policy
        self.model = model_of(model)
        self.counter = counter_for(model, kind=self.policy.counter)
        self.framing = framing_for(self.model.provider if self.policy.counter == "model" else "none")
        self.tools = tools_tokens(tools, self.counter, self.framing)
        self.path = Path()
        self.gauge = Gauge()
        self.tariff = tariff_of(self.model)
        self.rent = Rent()
        self.latched: tuple[Rule, ...] = ()

    @property
    def window(self) -> int:
        """The model's window, or the one the policy states."""
        return self.policy.window_tokens or self.model.window

    @property
    def usable(self) -> int:
        """What a request may fill: the window without what is kept free for the reply."""
        reply = self.policy.reply_tokens
        if reply is None:
            reply = min(self.model.reply, self.window // 4)
        return max(0, self.window - reply - self.policy.reserve_tokens)

    def size(self, message: Message) -> int:
        """The size of a message by the session's counter."""
        return message_tokens(message, self.counter, self.framing)

    def add(self, *things: Any) -> None:
        """Add messages at the end: `Message` values, wire dicts, lists of them, or an SDK's reply."""
        for thing in things:
            for message in (thing,) if isinstance(thing, Message) else parse(thing).messages:
                self._append(message)

    def _append(self, message: Message) -> None:
        tokens = self.size(message)
        shown: Message | None = None
        limit = self._arrival_limit()
        if limit is not None and tokens >= limit:
            shown = on_arrival(message, len(self.path), self.policy, limit=limit, size=self.size)
            tokens = self.size(shown) if shown is not None else tokens
        if self._priced and message.role == "assistant" and self._awaits_reply():
            self.rent = self.rent.sent(self._offer(), self.tariff)
        self.path.append(message, tokens, shown)
        self.gauge = self.gauge.add(message, tokens)

    @property
    def _priced(self) -> bool:
        """Whether any rule asks what folding costs."""
        return any(rule.basis == "cost" for rule in self.policy.rules)

    def _awaits_reply(self) -> bool:
        return len(self.path) > 0 and self.path.messages[-1].role != "assistant"

    def _offer(self) -> Offer:
        """What a fold down to the floors would do to the request as it stands, sent when the newest message came."""
        at = self.path.messages[-1].meta.at if len(self.path) else None
        floor_at = cut.floor(self.path, self.policy, self.usable)
        return offer(self.path, floor_at, digest=self.policy.digest_tokens, fixed=self.tools, at=at)

    def _arrival_limit(self) -> int | None:
        limits = [self.policy.prune_arrival_tokens]
        if self.policy.prune_arrival_ratio is not None:
            limits.append(int(self.policy.prune_arrival_ratio * self.usable))
        return min((limit for limit in limits if limit is not None), default=None)

    def view(self) -> View:
        """What to send now. Folds first where the policy says so; raises `ViewTooLarge` when nothing may leave."""
        made = self.plan()
        self.latched = tuple(rule for rule in made.verdict.fired if rule.latched)
        if made.fold is not None:
            self._fold(made.fold)
            made = replace(made, verdict=self.plan().verdict)
        return self._compose(made)

    def plan(self) -> Plan:
        """What would be done now, without doing it."""
        return plan(self.path, self.load(), self.policy, self.size, latched=self.latched)

    def load(self) -> Load:
        """What the gate looks at."""
        path, local = self.path, sum(self._blocks().values())
        request = self.gauge.tokens + self.tools if self.gauge.anchored else local
        return Load(
            request=request,
            history=path.history,
            count=len(path) - path.cut,
            usable=self.usable,
            fixed=self.tools + max(0, request - local),
            margin=0.0 if self.counter.exact or self.policy.counter != "model" else MARGIN,
            rent=self.rent.share(self._offer(), self.tariff) if self._priced else 0.0,
        )

    def _fold(self, fold: Fold) -> None:
        """Commit a fold: make what stands for the folded part, then put it in force."""
        path = self.path
        if self._priced:
            self.rent = self.rent.bought(replace(self._offer(), folded=fold.after), self.tariff)
        digest = None
        if fold.cut > path.lead and self.policy.leave == "digest":
            digest = count_digest(
                path.messages[path.lead : fold.cut], first=path.lead, header=self.policy.digest_header
            )
            digest = replace(digest, role=self.policy.digest_role)
        elif fold.cut > path.lead and self.policy.leave == "marker":
            digest = marker(path.lead, fold.cut - 1)
        path.apply(replace(fold, digest=digest, digest_tokens=self.size(digest) if digest else 0))
        self.gauge = self.gauge.folded((message, self.size(message)) for message in messages_of(path))
        self.latched = ()

    def _blocks(self) -> dict[str, int]:
        path, fold = self.path, self.path.fold
        kept = fold.pinned if fold else ()
        carried = fold.carried if fold else ()
        return {
            "system": path.prefix[path.lead],
            "tools": self.tools,
            "pins": sum(path.tokens(index) for index in kept),
            "digest": fold.digest_tokens if fold else 0,
            "history": path.history + sum(path.tokens(index) for index in carried),
        }

    def _compose(self, made: Plan) -> View:
        count = self.gauge.count
        return View(
            messages=messages_of(self.path),
            blocks=self._blocks(),
            tokens=self.load().request,
            exact=False,
            source=count.source,
            window=self.window,
            usable=self.usable,
            verdict=made.verdict,
            cut=self.path.cut,
        )


def fold_list(messages: Iterable[Message], **options: Any) -> tuple[Message, ...]:
    """List in, list out: the view of a conversation that was never seen before."""
    session = Session(**options)
    session.add(*messages)
    return session.view().messages
