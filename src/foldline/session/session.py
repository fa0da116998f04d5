"""The way through the house on one screen: a message is recorded, measured and indexed; a view is planned and composed.

    session = Session(model="claude-sonnet-5")
    session.add({"role": "user", "content": "Why does the build fail?"})
    body = session.view().render("anthropic").body

Everything a session knows follows from its record: the messages it was given and the folds it made, in order. Whoever
else writes to the same record is noticed at the next call.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from foldline.digest.ask import Digester, appointed
from foldline.digest.drive import Patience, write
from foldline.digest.facts import Facts, gather
from foldline.digest.flow import Job, Kept, locally
from foldline.digest.prompt import cumulative
from foldline.digest.scope import SESSION, body_of
from foldline.errors import Conflict, InputError
from foldline.fold import Digest, Fold
from foldline.measure.models import Model
from foldline.message import Message, user
from foldline.plan.economy import charge, digest_cost, tariff_of
from foldline.plan.gate import Load, Need
from foldline.plan.plan import Plan, digest_room
from foldline.plan.span import Path
from foldline.plan.span import handle as numbered
from foldline.policy import Policy, Rule, read_knobs
from foldline.recall.artifacts import Handle, fetch, parsed
from foldline.recall.search import TOKENS, Ask, search
from foldline.session.desk import Desk
from foldline.session.record import Mark, Memory, Record, Refused
from foldline.telemetry import Event, Listener, tell
from foldline.view.compose import View, marker
from foldline.wire.reader import parse

ATTEMPTS = 5
"""How often a change is decided anew when somebody else was faster."""
PAGE = 500
"""Messages that are read at once where many are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a fold would do, before it does it."""

    fold: Fold
    leaves: str
    """The handle of what would leave."""
    before: int
    after: int

    def __str__(self) -> str:
        return f"{self.leaves} would leave: {self.before:,} → {self.after:,} tokens\n{self.fold}"


class Session:
    """One conversation under one policy."""

    def __init__(  # noqa: PLR0913 (all are named at the call)
        self,
        *,
        model: str | None = None,
        policy: Policy | str | None = None,
        tools: Sequence[Any] | None = None,
        digester: Digester | None = None,
        record: Record | None = None,
        name: str = "",
        listener: Listener | None = None,
    ) -> None:
        self.name, self._digester, self.listener = name, digester, listener
        self.record = record or Memory()
        self._facts: Facts | None = None
        """What the messages hold: kept so that none is read twice; it follows from them."""
        self._at = Mark()
        self.folds = 0
        self.refused: Refused | None = None
        """The fold that was last tried in vain."""
        self._fired: tuple[Rule, ...] = ()
        """The rules that held at the last view: a warning is told once."""
        self._load(model, policy, tools)

    # What there is

    def _load(
        self, model: str | None = None, policy: Policy | str | None = None, tools: Sequence[Any] | None = None
    ) -> None:
        """Put down what the record holds, under the settings given, or else those it was left with."""
        known = self.record.known()
        settings = known.settings
        chosen = Policy.preset(policy) if isinstance(policy, str) else policy
        if chosen is None:
            chosen = Policy(**read_knobs(settings["policy"], "the record")) if settings else Policy.preset("balanced")
        name = settings.get("model", "") if model is None else model
        self.desk = Desk(model=name, policy=chosen, tools=settings.get("tools", 0) if tools is None else tools)
        self.desk.resume(known, self.record.read)
        self.folds, self._at, self.refused = known.folds, known.at, known.refused
        self.digester = appointed(self._digester, chosen)
        now = {"model": name, "policy": _knobs(chosen), "tools": self.desk.tools}
        if now != settings:
            self._at = self.record.settle(now)

    def _refresh(self) -> None:
        """Take in what others have written."""
        at = self.record.look()
        if at == self._at:
            return
        if at.mark != self._at.mark or at.length < self._at.length:
            self._facts = None
            self._load()
            return
        for message in self.record.read(self._at.length, at.length):
            self.desk.add(message)
        self._at = at

    def use(
        self, *, model: str | None = None, policy: Policy | str | None = None, tools: Sequence[Any] | None = None
    ) -> None:
        """Go on with another model, policy or set of tools: what depends on them is derived anew."""
        self._load(model, policy, tools)

    # The way of a message

    def add(self, *things: Any) -> None:
        """Add messages at the end: `Message` values, wire dicts, lists of them, or an SDK's reply."""
        messages: list[Message] = []
        for thing in things:
            if isinstance(thing, Message):
                messages.append(thing)
            else:
                messages += parse(thing).messages
        if not messages:
            return
        before, at = self._at, self.record.append(messages)
        if at.mark != before.mark or at.length != before.length + len(messages):
            self._refresh()
            return
        for message in messages:
            self.desk.add(message)
        self._at = at

    def view(self) -> View:
        """What to send now. Folds first where the policy says so; raises `ViewTooLarge` when nothing may leave."""
        for _ in range(ATTEMPTS):
            self._refresh()
            load, folds = self.desk.load(), self.folds
            made = self.desk.plan(load)
            must = made.verdict.need is Need.HARD
            self._tell_verdict(made)
            cools = self._cooling
            if made.fold is not None and (must or not cools) and not self._commit(made.fold, must=must, cools=cools):
                continue
            thinner = self.desk.thinned()
            if thinner is not None and not self._commit(thinner, must=True):
                continue
            return self.desk.view(load, made.verdict) if self.folds == folds else self.desk.view()
        raise Conflict("others changed this session each time a fold was ready", hint="try again")

    @property
    def _cooling(self) -> bool:
        """Whether a fold was refused so short a time ago that the next would be refused too."""
        refused = self.refused
        return refused is not None and len(self.desk.path) < refused.at + self.desk.policy.cooldown_messages

    def plan(self) -> Plan:
        """What would be done now, without doing it."""
        self._refresh()
        return self.desk.plan()

    # The way of a fold

    def fold(self, *, instructions: str = "", force: bool = False, digest: str | None = None) -> Fold | None:
        """Fold now, because somebody asks for it: down to the floors, or with `force` all before the last user turn.

        `instructions` go to whoever writes the digest and never into the view; `digest` is a text of the caller's own
        in its place. None when nothing was folded; `refused` then says why, if anything was tried.
        """
        for _ in range(ATTEMPTS):
            self._refresh()
            folds, planned = self.folds, self.desk.by_hand(force=force)
            if planned is None:
                return None
            if self._commit(planned, must=force, instructions=instructions, text=digest):
                return self.desk.path.fold if self.folds > folds else None
        raise Conflict("others changed this session each time a fold was ready", hint="try again")

    def preview(self, *, instructions: str = "", force: bool = False) -> Preview | None:
        """What `fold` would do now."""
        self._refresh()
        planned = self.desk.by_hand(force=force)
        made = None if planned is None else self._stand_in(planned, must=force, instructions=instructions)
        if planned is None or isinstance(made, Kept):
            return None
        fold, path = self.desk.complete(planned, made), self.desk.path
        return Preview(fold=fold, leaves=numbered(path.cut, fold.cut - 1), before=fold.before, after=fold.after)

    def unfold(self) -> None:
        """Take back the newest fold: what left is in the view again."""
        self._refresh()
        self.record.unfold(self._at.mark)
        self._load()

    def _commit(
        self, planned: Fold, *, must: bool, cools: bool = False, instructions: str = "", text: str | None = None
    ) -> bool:
        """Make a planned fold and write it down, unless it is refused; False when somebody else was faster.

        `cools`: a digest was refused a short time ago, so the digester is not asked, and not paid, again.
        """
        self._tell("planned", cut=planned.cut, reason=planned.reason)
        made = self._stand_in(planned, must=must, cools=cools, instructions=instructions, text=text)
        try:
            if isinstance(made, Kept):
                self.refused = Refused(len(self.desk.path), made.cause)
                self._at = self.record.refuse(self.refused)
                self._tell("skipped", reason=made.cause)
                return True
            fold = self.desk.complete(planned, made)
            self._at = self.record.fold(fold, self._at.mark)
        except Conflict:
            return False
        self.desk.put(fold)
        self.folds, self.refused = self.folds + 1, None
        if made is not None and made.cause:
            self._tell("failed", cause=made.cause)
        self._tell("committed", cut=fold.cut, before=fold.before, after=fold.after, by=made.by if made else "")
        return True

    def _stand_in(
        self, fold: Fold, *, must: bool, cools: bool = False, instructions: str = "", text: str | None = None
    ) -> Digest | Kept | None:
        """What stands for the folded part."""
        path, policy = self.desk.path, self.desk.policy
        lead, before = path.lead, path.fold
        if fold.cut <= lead or policy.leave == "nothing":
            return None
        if text is not None:
            return Digest(
                message=SESSION.message(text, header=policy.digest_header, role=policy.digest_role), by="hand"
            )
        if before is not None and before.cut == fold.cut and not instructions:
            return before.digest
        if policy.leave == "marker":
            return Digest(message=marker(lead, fold.cut - 1, kept=len(fold.pinned) + len(fold.carried)), by="marker")
        job = replace(self._job(fold, must=must), instructions=instructions)
        if cools and self.digester is not None and self.refused is not None:
            return locally(job, cause=self.refused.cause)
        return write(job, self.digester, Patience(seconds=policy.digest_seconds))

    def _job(self, fold: Fold, *, must: bool) -> Job:
        """The digest to be made: of what leaves now, from the facts of every message; a fold that must be is made."""
        desk, path, policy = self.desk, self.desk.path, self.desk.policy
        whole = (index for index in range(fold.cut, len(path)) if path.shown[index] is path.messages[index])
        kept = frozenset((*fold.pinned, *fold.carried, *whole)).difference(fold.stubs)
        leaves = [index for index in range(path.cut, fold.cut) if index not in kept]
        before = path.fold.digest if path.fold else None
        return Job(
            messages=[path.messages[index] for index in leaves],
            size=lambda text: desk.size(user(text)),
            cap=digest_room(policy, desk.usable),
            covered=0 if must else sum(map(path.tokens, leaves)) + (path.fold.digest_tokens if path.fold else 0),
            facts=self._gathered(),
            cut=fold.cut,
            kept=kept,
            prior=body_of(before.message.text, policy.digest_header) if before is not None else "",
            form=cumulative() if policy.digest_form == "cumulative" else None,
            header=policy.digest_header,
            role=policy.digest_role,
            floor=policy.coverage_ratio,
            on_failure="local" if must else policy.on_failure,
            prefix=self._shared(leaves),
        )

    def _shared(self, leaves: Sequence[int]) -> tuple[Message, ...]:
        """The view as it stands, where asking for the digest behind it costs less than sending what leaves anew."""
        desk, own, digester = self.desk, self.desk.model, self.digester
        if not desk.policy.digest_shared or digester is None or digester.model != own.name:
            return ()
        view, reply = desk.load().request, desk.policy.digest_tokens
        shared = charge(tariff_of(own), tokens=view + reply, common=view, warm=True)
        anew = digest_cost(tariff_of(digester.known), covered=sum(map(desk.path.tokens, leaves)), digest=0)
        fits = view + 2 * reply <= digester.window
        return desk.sent() if fits and shared < anew else ()

    def _gathered(self) -> Facts:
        """The facts of everything that was said so far; each message is read once."""
        path, facts = self.desk.path, self._facts
        start = facts.end if facts is not None else path.lead
        while start < path.cut:  # of what is folded only the record has all
            stop = min(start + PAGE, path.cut)
            facts = gather(list(self.record.read(start, stop)), start, facts)
            start = stop
        self._facts = gather(path.messages[start:], start, facts)
        return self._facts

    # By hand

    def pin(self, text: str = "", *, handle: str = "", name: str = "") -> tuple[str, ...]:
        """Let no fold touch messages, by their handle, or a text that is added for this; the names of the pins."""
        if bool(text) == bool(handle):
            raise InputError("pin a text or a handle", hint='pin("the port is 4711") or pin(handle="#12")')
        if text:
            self.add(user(text, kind="note"))
        self._refresh()
        length = len(self.desk.path)
        wanted = parsed(handle) if handle else Handle(first=length - 1, last=length - 1)
        if wanted.last >= length:
            raise InputError(f"there is no message {numbered(wanted.last)}", hint=f"the session has {length}")
        names = []
        for position in range(wanted.first, wanted.last + 1):
            names.append(name if name and wanted.first == wanted.last else numbered(position))
            self._at = self.record.pin(names[-1], position, self._at.mark)
        self._load()
        return tuple(names)

    def unpin(self, name: str) -> None:
        """Let go of a pin."""
        self._refresh()
        self._at = self.record.unpin(name, self._at.mark)
        self._load()

    def branch(self, name: str, *, at: int | None = None) -> Session:
        """Another session that shares the first `at` messages (all of them unless said) and then goes its own way."""
        self._refresh()
        length = len(self.desk.path) if at is None else at
        record = self.record.fork(name, length)
        return Session(digester=self._digester, record=record, name=self.name, listener=self.listener)

    def recall(self, query: str = "", *, handle: str = "", tokens: int = TOKENS, everywhere: bool = False) -> Any:
        """What was said about something, or exactly by its handle, within so many tokens; print it."""
        if bool(query) == bool(handle):
            raise InputError(
                "recall by a question or by a handle", hint='recall("which port?") or recall(handle="#12")'
            )
        store, branch = self.record.searched()
        if handle:
            found: Any = fetch(store, branch, parsed(handle), tokens=tokens, counter=self.desk.counter)
        else:
            ask = Ask(query=query, tokens=tokens, everywhere=everywhere)
            found = search(store, branch, ask, self.desk.counter)
        self._tell("recalled", handle=handle, tokens=found.tokens)
        return found

    def clear(self) -> None:
        """Begin anew with an empty view; what was said stays in the record."""
        self._refresh()
        self._at = self.record.move(0, self._at.mark)
        self._facts = None
        self._load()

    # What it shows of its desk

    @property
    def path(self) -> Path:
        """The messages with their index."""
        return self.desk.path

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self.desk.policy

    @property
    def model(self) -> Model:
        """What is known of the model."""
        return self.desk.model

    @property
    def window(self) -> int:
        """The model's limit."""
        return self.desk.window

    @property
    def usable(self) -> int:
        """What a request may fill."""
        return self.desk.usable

    def size(self, message: Message) -> int:
        """The size of a message by the session's counter."""
        return self.desk.size(message)

    def load(self) -> Load:
        """What the gate looks at."""
        return self.desk.load()

    # What it tells

    def _tell_verdict(self, made: Plan) -> None:
        """A wish that was not granted, and each warning once until it no longer holds."""
        fired = made.verdict.fired
        if fired != self._fired:
            for rule in fired:
                if rule.action in {"warn", "pause"} and rule not in self._fired:
                    self._tell("warned", reason=str(rule))
            self._fired = fired
        if made.skipped:
            self._tell("skipped", reason=made.skipped)

    def _tell(self, kind: str, **facts: Any) -> None:
        tell(Event(kind, self.name, facts), self.listener)


def _knobs(policy: Policy) -> dict[str, Any]:
    """A policy as data: what differs from the defaults."""
    bare, found = Policy(), {}
    for knob in fields(policy):
        value = getattr(policy, knob.name)
        if value != getattr(bare, knob.name):
            found[knob.name] = [str(item) for item in value] if isinstance(value, tuple) else value
    return found


def fold_list(messages: Iterable[Message], **options: Any) -> tuple[Message, ...]:
    """List in, list out: the view of a conversation that was never seen before."""
    session = Session(**options)
    session.add(*messages)
    return session.view().messages
