"""The desk: a conversation as far as it is known, measured, indexed and planned. It decides nothing and keeps nothing.

Everything on it follows from the messages and folds that were put there, in order; putting one more costs the same
however many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from itertools import chain
from typing import Any

from foldline.fold import Digest, Fold
from foldline.measure.estimator import MARGIN
from foldline.measure.message_size import framing_for, message_tokens, part_tokens, tools_tokens
from foldline.measure.tokenizers import counter_for
from foldline.measure.usage_anchor import Gauge, Learned
from foldline.message import Message, Thinking
from foldline.models.table import model as model_of
from foldline.plan import cut
from foldline.plan.fold_cost import Offer, Rent, offer, tariff_of
from foldline.plan.gate import Load, Verdict, gate
from foldline.plan.media_budget import Allowance, Crowd, allowed, bearable
from foldline.plan.plan import Plan, by_hand, plan
from foldline.plan.prune import on_arrival
from foldline.plan.timeline import Timeline, look
from foldline.policy import Policy, Rule
from foldline.session.record import Known
from foldline.view.compose import Composed, View, head
from foldline.wire.rules import limits_of

PAGE = 64
"""Messages that are read at once where one is looked for."""


class Desk:
    """One conversation under one policy."""

    def __init__(self, *, model: str, policy: Policy, tools: Sequence[Any] | int) -> None:
        self.policy = policy
        self.model = model_of(model)
        self.measured = self.policy.counter == "model"
        """Whether sizes are the model's own, so that its usage figures may anchor them."""
        self.counter = counter_for(model, kind=self.policy.counter)
        self.framing = framing_for(self.model.format if self.measured else "none", media=self.model.media)
        self.tools = tools if isinstance(tools, int) else tools_tokens(tools, self.counter, self.framing)
        self.window = self.policy.window_tokens or self.model.window
        self.usable = self._usable()
        self.timeline = Timeline()
        self._composed = Composed(self.timeline)
        self._crowd = Crowd(self.timeline, self._allowance())
        self.gauge = Gauge(learned=Learned(hidden=self.tools, drops_thinking=self.model.drops_thinking))
        self.latched: tuple[Rule, ...] = ()
        self.pruned = 0
        """Messages that were shortened on arrival."""
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
        """What the model's wire format takes of media."""
        limits = limits_of(self.model.format or "openai")
        return allowed(most=limits.media, each=limits.media_bytes, request=limits.total_bytes, usable=self.usable)

    def size(self, message: Message) -> int:
        """The size of a message by the session's counter."""
        return message_tokens(message, self.counter, self.framing)

    def add(self, message: Message) -> None:
        """Put a message at the end."""
        tokens = self._place(message)
        if self.measured:
            self.gauge = self.gauge.add(message, tokens, thinking=self._thinking(message))

    def _place(self, message: Message, stub: tuple[Message, int] | None = None) -> int:
        timeline, seen, shown = self.timeline, look(message), None
        if stub is not None:
            shown, tokens = stub
        else:
            tokens = message_tokens(message, self.counter, self.framing)
            if seen.media or tokens >= self._too_large:
                shown = self._on_arrival(message, tokens)
                if shown is not None:
                    tokens = self.size(shown)
                    self.pruned += 1
        if self._purse is not None and message.role == "assistant":
            self._purse.sent(message.meta.at)
        timeline.append(message, tokens, shown, seen)
        if seen.media:
            self._crowd.add(shown or message)
        return tokens

    def _on_arrival(self, message: Message, tokens: int) -> Message | None:
        """What is shown of a message that no request could carry, or that is far too large."""
        index = len(self.timeline)
        borne = bearable(message, index, self._crowd.allowance)
        shown = borne if borne is not message else None
        if tokens >= self._too_large and index not in self.timeline.pins:
            return on_arrival(borne, index, self.policy, limit=self._too_large, size=self.size) or shown
        return shown

    def _thinking(self, message: Message) -> int:
        if message.role != "assistant":
            return 0
        thoughts = (part for part in message.parts if isinstance(part, Thinking))
        return sum(part_tokens(part, self.counter, self.framing) for part in thoughts)

    def resume(self, known: Known, read: Callable[[int, int], Iterable[Message]]) -> None:
        """Put down what is known already. Of what is folded only that is read which still stands in the view."""
        timeline, fold, length = self.timeline, known.fold, known.at.length
        timeline.pins = set(known.pins.values())
        if fold is not None:
            fold = self._shared(fold, length, read)
            self._resume_head(fold, read)
            made_at = min(fold.made_at, length)
            for index, message in enumerate(read(fold.cut, made_at), start=fold.cut):
                self._place(message, fold.stubs.get(index))
            self._relearn(fold)
            self._enforce(replace(fold, stubs={}))
            self._purse = self._purse and _Purse(self)
        for message in read(len(timeline), length):
            self.add(message)

    def _shared(self, fold: Fold, length: int, read: Callable[[int, int], Iterable[Message]]) -> Fold:
        """A fold applied to a timeline that ends before the one it was made for: the newest prompt stays there too."""
        stop = length if length < fold.made_at else 0
        while stop > 0:
            start = max(0, stop - PAGE)
            found = [index for index, message in enumerate(read(start, stop), start=start) if message.is_prompt]
            stop = 0 if found else start
            if found and found[-1] < fold.cut and found[-1] not in (*fold.pinned, *fold.carried):
                tokens = fold.carried_tokens + sum(map(self.size, read(found[-1], found[-1] + 1)))
                return replace(fold, carried=tuple(sorted((*fold.carried, found[-1]))), carried_tokens=tokens)
        return fold

    def _relearn(self, fold: Fold) -> None:
        """Go on from what usage had taught of this model when the fold was made."""
        given = dict(fold.learned)
        if self.measured and given.pop("model", "") == self.model.name and given:
            self.gauge = Gauge(learned=Learned(**given))

    def _resume_head(self, fold: Fold, read: Callable[[int, int], Iterable[Message]]) -> None:
        timeline = self.timeline
        for message in read(0, fold.cut):
            if message.role != "system":
                break
            self._place(message)
        for index in sorted({*fold.pinned, *fold.carried}):
            timeline.skip(index - len(timeline))
            for message in read(index, index + 1):
                self._place(message, fold.stubs.get(index))
        timeline.skip(fold.cut - len(timeline))

    def put(self, fold: Fold) -> None:
        """Put a new fold in force: the view changes once."""
        if self._purse is not None:
            self._purse.bought(fold)
        self._enforce(fold)

    def _enforce(self, fold: Fold) -> None:
        timeline = self.timeline
        timeline.apply(fold)
        if self.measured:
            kept = ((timeline.shown[index], timeline.tokens(index)) for index in range(timeline.cut, len(timeline)))
            front = ((message, self.size(message)) for message in head(timeline))
            self.gauge = self.gauge.folded(chain(front, kept))
        self.latched = ()
        self._crowd.recount()

    def shows(self, index: int) -> bool:
        """Whether a message stands in the view word for word, or would if no fold had yet been made."""
        fold = self.timeline.fold
        if fold is None or index < self.timeline.lead:
            return True
        return index not in fold.stubs and (index >= fold.cut or index in fold.pinned or index in fold.carried)

    def complete(self, fold: Fold, digest: Digest | None) -> Fold:
        """A planned fold with what stands for the folded part, and its true sizes."""
        kept = {index: stub for index, stub in self._stubs() if index >= fold.cut or index in fold.carried}
        whole = replace(fold, digest=digest, stubs={**kept, **fold.stubs})
        beside = self.timeline.prefix[self.timeline.lead] + fold.pinned_tokens + fold.carried_tokens
        tokens = sum(self.size(message) for message in head(self.timeline, whole)) - beside
        learned = {"model": self.model.name, **asdict(self.gauge.learned)} if self.measured else {}
        return replace(whole, digest_tokens=tokens, after=fold.after - fold.digest_tokens + tokens, learned=learned)

    def _stubs(self) -> Iterable[tuple[int, tuple[Message, int]]]:
        return self.timeline.fold.stubs.items() if self.timeline.fold else ()

    def plan(self, load: Load | None = None) -> Plan:
        """What would be done now."""
        return plan(self.timeline, load or self.load(), self.policy, self.size, latched=self.latched)

    def thinned(self) -> Fold | None:
        """The fold in force with the oldest media left out, where there are too many for one request."""
        if not self._crowd.over:
            return None
        timeline, before = self.timeline, self.load().request
        folds = any(rule.action in {"fold", "clip"} for rule in self.policy.rules)
        stubs = self._crowd.thinned(self.size, may=folds)
        return replace(
            timeline.fold or Fold(cut=timeline.cut),
            stubs=stubs,
            reason="too many media for one request",
            made_at=len(timeline),
            before=before,
            after=before - sum(timeline.tokens(index) - tokens for index, (_, tokens) in stubs.items()),
        )

    def by_hand(self, *, force: bool) -> Fold | None:
        """What would leave if a person asked for it."""
        return by_hand(self.timeline, self.load(), self.policy, self.size, force=force)

    def load(self) -> Load:
        """What the gate looks at."""
        timeline, fold, measured = self.timeline, self.timeline.fold, self.measured
        history = timeline.history
        local = timeline.prefix[timeline.lead] + self.tools + history
        if fold is not None:
            local += fold.pinned_tokens + fold.digest_tokens + fold.carried_tokens
        request = self.gauge.tokens if measured else local
        count, fixed = len(timeline.messages) - timeline.cut, self.tools + max(0, request - local)
        rent = self._purse.share() if self._purse is not None else 0.0
        if not measured or self.counter.exact:
            return Load(request, history, count, self.usable, fixed, 0, 0.0, rent)
        return Load(request, history, count, self.usable, fixed, self.gauge.upper, MARGIN, rent)

    def _blocks(self) -> dict[str, int]:
        """Tokens by block, in the order of the view."""
        timeline = self.timeline
        fold = timeline.fold or Fold(cut=timeline.cut)
        return {
            "system": timeline.prefix[timeline.lead],
            "tools": self.tools,
            "pins": fold.pinned_tokens,
            "digest": fold.digest_tokens,
            "history": timeline.history + fold.carried_tokens,
        }

    def sent(self) -> tuple[Message, ...]:
        """The messages of the view as it stands."""
        return self._composed.messages(self.model.format or "openai")

    def view(self, load: Load | None = None, verdict: Verdict | None = None) -> View:
        """What to send as things stand; the load and the verdict on it need not be found again."""
        load = load or self.load()
        verdict = gate(load, self.policy) if verdict is None else verdict
        self.latched = tuple([rule for rule in verdict.fired if rule.latched]) if verdict.fired else ()
        return View(
            messages=self.sent(),
            blocks=self._blocks(),
            tokens=load.request,
            exact=self.counter.exact and not self.gauge.anchored,
            source=self.gauge.count.source if self.measured else self.counter.name,
            window=self.window,
            usable=self.usable,
            verdict=verdict,
            cut=self.timeline.cut,
            breakpoints=self.policy.breakpoints,
        )


class _Purse:
    """What a conversation has cost for sending the part that could leave, and what a fold would cost it now."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.tariff = tariff_of(desk.model)
        self.rent = Rent()

    def offer(self, at: float | None = None) -> Offer:
        """What a fold down to the floors would do to the request as it stands."""
        desk = self.desk
        floor_at = cut.floor(desk.timeline, desk.policy, desk.usable)
        return offer(desk.timeline, floor_at, digest=desk.policy.digest_tokens, fixed=desk.tools, at=at)

    def share(self) -> float:
        """How much of the price of folding has been earned; nothing yet when a fold was made for this very request."""
        timeline = self.desk.timeline
        if timeline.fold is not None and timeline.fold.made_at == len(timeline):
            return 0.0
        return self.rent.share(self.offer(), self.tariff)

    def bought(self, fold: Fold) -> None:
        """Book a fold."""
        self.rent = self.rent.bought(replace(self.offer(), folded=fold.after), self.tariff)

    def sent(self, at: float | None) -> None:
        """Book the request that the model is answering, once for all messages of its reply."""
        timeline = self.desk.timeline
        if timeline.messages and timeline.messages[-1].role != "assistant":
            self.rent = self.rent.sent(self.offer(at), self.tariff)
