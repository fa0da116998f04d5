"""What stands for the folded part: which digest is wanted, what goes into it, and who is asked for it.

The scribe reads the desk and the record and decides nothing about folds. The only thing it keeps is what the messages
hold, so that none is read twice; it follows from them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Protocol

from foldline.digest import endpoints as models
from foldline.digest.audit import audit
from foldline.digest.digester import Digester, DigesterCall, DigesterReply, with_policy_model
from foldline.digest.driver import RetryLimits, write_model_digest
from foldline.digest.extract.facts import Facts, gather
from foldline.digest.model_digest import DigestRequest, FoldRefused, write_local_digest
from foldline.digest.prompt import cumulative
from foldline.digest.scope import SESSION, body_of
from foldline.errors import InputError
from foldline.fold import Digest, Fold
from foldline.message import Message, user
from foldline.models.table import model as model_of
from foldline.plan.fold_cost import charge, digest_cost, tariff_of
from foldline.plan.plan import digest_room
from foldline.policy import Policy
from foldline.session.record import Record
from foldline.session.state import Desk
from foldline.view.compose import marker

PAGE = 500
"""Messages that are read at once where many are."""
AGAIN, OPENING = 2_000, 100
"""Of what is folded, how many of the newest messages and of the first a session reads when it was opened anew."""
_MAKERS: dict[str, tuple[str, Callable[..., Digester]]] = {
    "openai": ("OPENAI_API_KEY", models.openai),
    "anthropic": ("ANTHROPIC_API_KEY", models.anthropic),
}
"""Providers whose models can be asked by their name alone: where their key is, and who asks them."""


class Pulse(Protocol):
    """What a digest that is awaited goes by: whether it must stop, and how to pause."""

    def is_set(self) -> bool:
        """Whether nobody wants the digest any more."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait so long, or until it must stop."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How a digest is wanted."""

    must: bool = False
    """The fold must be made, so whatever fails, something stands in the place."""
    local: str = ""
    """Why no model is asked, where one could be."""
    instructions: str = ""
    text: str | None = None
    """What a person wrote instead."""
    pulse: Pulse | None = None


def appoint(digester: Digester | None, policy: Policy) -> Digester | None:
    """Who writes the digests under a policy: the digester given, or the model the policy names where it can be asked.

    Without its SDK or its key there is nobody, and digests are made locally.
    """
    if digester is not None or not policy.digest_model:
        return with_policy_model(digester, policy)
    provider = model_of(policy.digest_model).vendor or "openai"
    key, maker = _MAKERS.get(provider, ("", models.openai))
    if not os.environ.get(key) or find_spec(provider) is None:
        return None
    made: list[Digester] = []

    def complete(ask: DigesterCall) -> DigesterReply | Awaitable[DigesterReply]:
        if not made:
            made.append(maker(policy.digest_model))  # the SDK is loaded when it is first needed
        return made[0].complete(ask)

    return Digester(complete=complete, model=policy.digest_model)


class Scribe:
    """Writes what stands for the folded part of one conversation."""

    desk: Desk
    digester: Digester | None

    def __init__(self, record: Record) -> None:
        self.record = record
        self._facts: Facts | None = None
        self._moves = 0

    def sit(self, desk: Desk, digester: Digester | None, moves: int) -> None:
        """Work at a desk, with a digester; what was read before holds unless the timeline has moved since."""
        self.desk, self.digester = desk, digester
        if moves != self._moves:
            self._facts, self._moves = None, moves

    def write(self, fold: Fold, wish: Wish) -> Digest | FoldRefused | None:
        """The digest of a planned fold; nothing where the policy wants nothing, or why the fold is not made."""
        timeline, policy = self.desk.timeline, self.desk.policy
        lead, before = timeline.lead, timeline.fold
        if fold.cut <= lead or policy.leave == "nothing":
            return None
        if wish.text is not None:
            return self._by_hand(fold, wish.text)
        if before is not None and before.cut == fold.cut and not wish.instructions:
            large = before.digest_tokens > digest_room(policy, self.desk.usable)
            if not (large and wish.must and before.digest is not None):
                return before.digest
        if policy.leave == "marker":
            return Digest(message=marker(lead, fold.cut - 1, kept=len(fold.pinned) + len(fold.carried)), by="marker")
        job = self._job(fold, wish)
        if wish.local and self.digester is not None:
            return write_local_digest(job, cause=wish.local)
        sleep = wish.pulse.sleep if wish.pulse is not None else time.sleep
        return write_model_digest(job, self.digester, RetryLimits(seconds=policy.digest_seconds), sleep=sleep)

    def _by_hand(self, fold: Fold, text: str) -> Digest:
        """A person's own text, with the same report of what it leaves out."""
        if not text.strip():
            raise InputError("this digest says nothing", hint="write what is to stand for the folded part")
        policy = self.desk.policy
        message = SESSION.message(text, header=policy.digest_header, role=policy.digest_role)
        return Digest(message=message, by="hand", loss=audit(text, self._gathered(), kept=self._kept(fold)))

    def _job(self, fold: Fold, wish: Wish) -> DigestRequest:
        """The digest to be made: of what leaves now, from the facts of every message; a fold that must be is made."""
        desk, timeline, policy = self.desk, self.desk.timeline, self.desk.policy
        kept = self._kept(fold)
        leaves = [index for index in range(timeline.cut, fold.cut) if index not in kept]
        before = timeline.fold.digest if timeline.fold else None
        return DigestRequest(
            messages=[timeline.messages[index] for index in leaves],
            size=lambda text: desk.size(user(text)),
            cap=digest_room(policy, desk.usable),
            covered=0
            if wish.must
            else sum(map(timeline.tokens, leaves)) + (timeline.fold.digest_tokens if timeline.fold else 0),
            facts=self._gathered(),
            cut=fold.cut,
            kept=kept,
            prior=body_of(before.message.text, policy.digest_header) if before is not None else "",
            form=cumulative() if policy.digest_form == "cumulative" else None,
            header=policy.digest_header,
            role=policy.digest_role,
            instructions=wish.instructions,
            floor=policy.coverage_ratio,
            on_failure="local" if wish.must else policy.on_failure,
            prefix=self._shared(leaves),
            signal=wish.pulse,
        )

    def _kept(self, fold: Fold) -> frozenset[int]:
        """The messages that stay in the view word for word."""
        timeline = self.desk.timeline
        whole = (index for index in range(fold.cut, len(timeline)) if timeline.shown[index] is timeline.messages[index])
        return frozenset((*fold.pinned, *fold.carried, *whole)).difference(fold.stubs)

    def _shared(self, leaves: Sequence[int]) -> tuple[Message, ...]:
        """The view as it stands, where asking for the digest behind it costs less than sending what leaves anew."""
        desk, own, digester = self.desk, self.desk.model, self.digester
        if not desk.policy.digest_shared or digester is None or digester.model != own.name:
            return ()
        view, reply = desk.load().request, desk.policy.digest_tokens
        shared = charge(tariff_of(own), tokens=view + reply, common=view, warm=True)
        anew = digest_cost(tariff_of(digester.known), covered=sum(map(desk.timeline.tokens, leaves)), digest=0)
        fits = view + 2 * reply <= digester.window
        return desk.sent() if fits and shared < anew else ()

    def _gathered(self) -> Facts:
        """The facts of everything that was said so far; each message is read once."""
        timeline, facts = self.desk.timeline, self._facts or self._opening()
        start = facts.end if facts is not None else timeline.lead
        while start < timeline.cut:  # of what is folded only the record has all
            stop = min(start + PAGE, timeline.cut)
            facts = gather(list(self.record.read(start, stop)), start, facts)
            start = stop
        self._facts = gather(timeline.messages[start:], start, facts)
        return self._facts

    def _opening(self) -> Facts | None:
        """Where much is folded: its first messages and its digest, so that opening costs the same at any length.

        The newest of what is folded are read again after this, like all that is not.
        """
        timeline, fold = self.desk.timeline, self.desk.timeline.fold
        start = timeline.cut - AGAIN
        if fold is None or fold.digest is None or start - 1 < timeline.lead + OPENING:
            return None
        facts = gather(list(self.record.read(timeline.lead, timeline.lead + OPENING)), timeline.lead)
        return gather([fold.digest.message], start - 1, facts)
