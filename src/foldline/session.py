"""The way through the house on one screen: a message is added, measured and indexed; a view is planned and composed.

    session = Session(model="claude-sonnet-5")
    session.add({"role": "user", "content": "Why does the build fail?"})
    body = session.view().render("anthropic").body

Everything a session knows follows from the messages it was given and the folds it made, in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from foldline.digest.audit import audit
from foldline.digest.facts import Facts, gather
from foldline.digest.local import local_digest
from foldline.digest.scope import REFERENCE, SESSION
from foldline.fold import Digest, Fold
from foldline.measure.anchor import Gauge, Learned
from foldline.measure.counter import MARGIN
from foldline.measure.models import model as model_of
from foldline.measure.size import framing_for, message_tokens, part_tokens, tools_tokens
from foldline.measure.tokenizers import counter_for
from foldline.message import Message, Thinking, user
from foldline.plan import cut
from foldline.plan.economy import Offer, Rent, offer, tariff_of
from foldline.plan.gate import Load, Verdict, gate
from foldline.plan.media import Allowance, Crowd, allowed, bearable, media_in
from foldline.plan.plan import Plan, digest_room, plan
from foldline.plan.prune import on_arrival
from foldline.plan.span import Path
from foldline.policy import Policy, Rule
from foldline.view.compose import Composed, View, head, marker
from foldline.wire.codec import PROVIDERS
from foldline.wire.reader import parse
from foldline.wire.rules import Limits, limits_of


class Session:
    """One conversation under one policy."""

    def __init__(self, *, model: str = "", policy: Policy | str = "balanced", tools: Sequence[Any] = ()) -> None:
        self.policy = Policy.preset(policy) if isinstance(policy, str) else policy
        self.model = model_of(model)
        self.measured = self.policy.counter == "model"
        """Whether sizes are the model's own, so that its usage figures may anchor them."""
        self.counter = counter_for(model, kind=self.policy.counter)
        self.framing = framing_for(self.model.provider if self.measured else "none", media=self.model.media)
        self.tools = tools_tokens(tools, self.counter, self.framing)
        self.window = self.policy.window_tokens or self.model.window
        self.usable = self._usable()
        self.path = Path()
        self._composed = Composed(self.path)
        self._crowd = Crowd(self.path, self._allowance())
        self.gauge = Gauge(learned=Learned(hidden=self.tools, drops_thinking=self.model.drops_thinking))
        self.folds = 0
        self._facts: Facts | None = None
        """What all messages up to the last fold hold: kept so that none is read twice; it follows from them."""
        self.latched: tuple[Rule, ...] = ()
        self._too_large = self._arrival_limit()
        self._purse = _Purse(self) if any(rule.basis == "cost" for rule in self.policy.rules) else None

    def _usable(self) -> int:
        """What a request may fill: the window without what is kept free for the reply."""
        reply = self.policy.reply_tokens
        if reply is None:
            reply = min(self.model.reply, self.window // 4)
        return max(0, self.window - reply - self.policy.reserve_tokens)

    def _arrival_limit(self) -> int:
        """From which size on a result is pruned before it is ever sent; one that is never reached when it is not."""
        limits = [self.policy.prune_arrival_tokens, 1 << 62]
        if self.policy.prune_arrival_ratio is not None:
            limits.append(max(1, int(self.policy.prune_arrival_ratio * self.usable)))
        return min(limit for limit in limits if limit is not None)

    def _allowance(self) -> Allowance:
        """What the model's provider takes of media."""
        provider = self.model.provider
        limits = limits_of(provider) if provider in PROVIDERS else Limits()
        return allowed(most=limits.media, each=limits.media_bytes, request=limits.total_bytes, usable=self.usable)

    def size(self, message: Message) -> int:
        """The size of a message by the session's counter."""
        return message_tokens(message, self.counter, self.framing)

    def add(self, *things: Any) -> None:
        """Add messages at the end: `Message` values, wire dicts, lists of them, or an SDK's reply."""
        for thing in things:
            if isinstance(thing, Message):
                self._append(thing)
            else:
                for message in parse(thing).messages:
                    self._append(message)

    def _append(self, message: Message) -> None:
        tokens = self.size(message)
        shows = media_in(message)
        borne = bearable(message, len(self.path), self._crowd.allowance) if shows else message
        shown = borne if borne is not message else None
        if tokens >= self._too_large and len(self.path) not in self.path.pins:
            shown = on_arrival(borne, len(self.path), self.policy, limit=self._too_large, size=self.size) or shown
        tokens = self.size(shown) if shown is not None else tokens
        if self._purse is not None and message.role == "assistant":
            self._purse.sent(message.meta.at)
        self.path.append(message, tokens, shown)
        if shows:
            self._crowd.add(shown or message)
        if self.measured:
            self.gauge = self.gauge.add(message, tokens, thinking=self._thinking(message))

    def _thinking(self, message: Message) -> int:
        if message.role != "assistant":
            return 0
        thoughts = (part for part in message.parts if isinstance(part, Thinking))
        return sum(part_tokens(part, self.counter, self.framing) for part in thoughts)

    def view(self) -> View:
        """What to send now. Folds first where the policy says so; raises `ViewTooLarge` when nothing may leave."""
        load, folds = self.load(), self.folds
        made = plan(self.path, load, self.policy, self.size, latched=self.latched)
        verdict = made.verdict
        if made.fold is not None:
            self._fold(made.fold)
        if self._crowd.over:
            self._fold(self._thinned())
        if self.folds > folds:
            load = self.load()
            verdict = gate(load, self.policy)
        self.latched = tuple([rule for rule in verdict.fired if rule.latched])
        return self._compose(load, verdict)

    def plan(self) -> Plan:
        """What would be done now, without doing it."""
        return plan(self.path, self.load(), self.policy, self.size, latched=self.latched)

    def load(self) -> Load:
        """What the gate looks at."""
        path, local = self.path, sum(self._blocks().values())
        measured = self.measured
        request = self.gauge.tokens if measured else local
        exact = not measured or self.counter.exact
        return Load(
            request=request,
            history=path.history,
            count=len(path) - path.cut,
            usable=self.usable,
            fixed=self.tools + max(0, request - local),
            upper=0 if exact else self.gauge.upper,
            margin=0.0 if exact else MARGIN,
            rent=self._purse.share() if self._purse is not None else 0.0,
        )

    def _fold(self, fold: Fold) -> None:
        """Commit a fold: make what stands for the folded part, then put it in force."""
        path = self.path
        if self._purse is not None:
            self._purse.bought(fold)
        path.apply(replace(fold, digest=self._stand_in(fold)))
        front = [(message, self.size(message)) for message in head(path)]
        beside = path.prefix[path.lead] + fold.pinned_tokens + fold.carried_tokens
        path.fold = replace(path.fold or fold, digest_tokens=sum(size for _, size in front) - beside)
        if self.measured:
            kept = ((path.shown[index], path.tokens(index)) for index in range(path.cut, len(path)))
            self.gauge = self.gauge.folded(chain(front, kept))
        self.folds += 1
        self.latched = ()
        self._crowd.recount()

    def _thinned(self) -> Fold:
        """The fold in force, with the oldest media left out."""
        path, before = self.path, self.load().request
        folds = any(rule.action in {"fold", "clip"} for rule in self.policy.rules)
        stubs = self._crowd.thinned(self.size, may=folds)
        return replace(
            path.fold or Fold(cut=path.cut),
            stubs=stubs,
            reason="too many media for one request",
            made_at=len(path),
            before=before,
            after=before - sum(path.tokens(index) - tokens for index, (_, tokens) in stubs.items()),
        )

    def _stand_in(self, fold: Fold) -> Digest | None:
        """What stands for the folded part."""
        lead, before = self.path.lead, self.path.fold
        if fold.cut <= lead or self.policy.leave == "nothing":
            return None
        if before is not None and before.cut == fold.cut:
            return before.digest
        if self.policy.leave == "marker":
            return Digest(message=marker(lead, fold.cut - 1, kept=len(fold.pinned) + len(fold.carried)), by="marker")
        return self._digest(fold)

    def _digest(self, fold: Fold) -> Digest:
        """The local digest: from the facts of every message, without what stays in the view word for word."""
        path, policy = self.path, self.policy
        start = self._facts.end if self._facts is not None else path.lead
        self._facts = facts = gather(path.messages[start:], start, self._facts)
        whole = (index for index in range(fold.cut, len(path)) if index not in fold.stubs)
        kept = frozenset((*fold.pinned, *fold.carried, *whole))
        made = local_digest(
            facts,
            cap=digest_room(policy, self.usable),
            size=lambda text: self.size(user(text)),
            header=f"{policy.digest_header}\n{REFERENCE}",
            kept=kept,
            cut=fold.cut,
        )
        body = made.message.text.removeprefix(policy.digest_header).lstrip("\n")
        message = SESSION.message(body, header=policy.digest_header, role=policy.digest_role)
        return replace(made, message=message, loss=audit(body, facts, kept=kept))

    def _blocks(self) -> dict[str, int]:
        """Tokens by block, in the order of the view."""
        path = self.path
        fold = path.fold or Fold(cut=path.cut)
        return {
            "system": path.prefix[path.lead],
            "tools": self.tools,
            "pins": fold.pinned_tokens,
            "digest": fold.digest_tokens,
            "history": path.history + fold.carried_tokens,
        }

    def _compose(self, load: Load, verdict: Verdict) -> View:
        return View(
            messages=self._composed.messages(self.model.provider),
            blocks=self._blocks(),
            tokens=load.request,
            exact=self.counter.exact and not self.gauge.anchored,
            source=self.gauge.count.source if self.measured else self.counter.name,
            window=self.window,
            usable=self.usable,
            verdict=verdict,
            cut=self.path.cut,
            breakpoints=self.policy.breakpoints,
        )


class _Purse:
    """What a session has paid for sending the part that could leave, and what a fold would cost it now."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.tariff = tariff_of(session.model)
        self.rent = Rent()

    def offer(self, at: float | None = None) -> Offer:
        """What a fold down to the floors would do to the request as it stands."""
        session = self.session
        floor_at = cut.floor(session.path, session.policy, session.usable)
        return offer(session.path, floor_at, digest=session.policy.digest_tokens, fixed=session.tools, at=at)

    def share(self) -> float:
        """How much of the price of folding has been earned; nothing yet when a fold was made for this very request."""
        path = self.session.path
        if path.fold is not None and path.fold.made_at == len(path):
            return 0.0
        return self.rent.share(self.offer(), self.tariff)

    def bought(self, fold: Fold) -> None:
        """Book a fold."""
        self.rent = self.rent.bought(replace(self.offer(), folded=fold.after), self.tariff)

    def sent(self, at: float | None) -> None:
        """Book the request that the model is answering, once for all messages of its reply."""
        path = self.session.path
        if path.messages and path.messages[-1].role != "assistant":
            self.rent = self.rent.sent(self.offer(at), self.tariff)


def fold_list(messages: Iterable[Message], **options: Any) -> tuple[Message, ...]:
    """List in, list out: the view of a conversation that was never seen before."""
    session = Session(**options)
    session.add(*messages)
    return session.view().messages
