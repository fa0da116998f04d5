"""The way through the house on one screen: a message is recorded, measured and indexed; a view is planned and composed.

    session = Session(model="claude-sonnet-5")
    session.add({"role": "user", "content": "Why does the build fail?"})
    body = session.view().render("anthropic").body

Everything a session knows follows from its record: the messages it was given and the folds it made, in order. Whoever
else writes to the same record is noticed at the next call. Threads may share a session: their calls take turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING, Any

from foldline.digest.digester import Digester
from foldline.digest.model_digest import FoldRefused
from foldline.errors import Conflict, InputError
from foldline.events import Listener
from foldline.fold import Fold
from foldline.ledger.jobs import Claim
from foldline.message import Message, user
from foldline.models.table import Model
from foldline.plan.gate import Load, Need
from foldline.plan.plan import Plan
from foldline.plan.timeline import Timeline
from foldline.plan.timeline import handle as numbered
from foldline.policy import Policy, read_knobs
from foldline.recall.excerpt import searchable_text
from foldline.recall.handles import fetch, parse_handle
from foldline.recall.search import TOKENS, RecallQuery, search
from foldline.session.digest_writer import Pulse, Scribe, Wish, appoint
from foldline.session.emitter import Teller
from foldline.session.lock import in_turn
from foldline.session.preview import Preview, preview_of
from foldline.session.record import Mark, Memory, Record, Refused, knobs
from foldline.session.state import Desk
from foldline.view.compose import View
from foldline.wire.reader import parse

if TYPE_CHECKING:
    from foldline.session.worker import Worker

ATTEMPTS = 5
"""How often a change is decided anew when somebody else was faster."""


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
        worker: Worker | None = None,
    ) -> None:
        self.name, self._digester, self.listener, self.worker = name, digester, listener, worker
        self.teller, self.turn = Teller(name, listener), RLock()
        self.record = record or Memory()
        self.scribe = Scribe(self.record)
        self._at = Mark()
        self.folds = 0
        self.refused: Refused | None = None
        """The fold that was last tried in vain."""
        self._behind = False
        """Whether a fold that can wait is made by the worker."""
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
        desk = Desk(model=name, policy=chosen, tools=settings.get("tools", 0) if tools is None else tools)
        desk.resume(known, self.record.read)
        self.desk = desk
        self.folds, self._at, self.refused, self._moves = known.folds, known.at, known.refused, known.moves
        self.digester = appoint(self._digester, chosen)
        self.teller.begin(self.desk)
        self.scribe.sit(self.desk, self.digester, known.moves)
        able = self.worker is not None and (self.worker.is_remote or self.digester is not None)
        self._behind = able and chosen.background and chosen.leave == "digest"
        now = {"model": name, "policy": knobs(chosen), "tools": self.desk.tools}
        if now != settings:
            try:
                self._at = Mark(known.at.length, self.record.settle(now, known.at.mark).mark)
            except Conflict:
                self._load(model, policy, tools)

    def _refresh(self) -> None:
        """Take in what others have written."""
        at = self.record.look()
        if at == self._at:
            return
        if at.mark != self._at.mark or at.length < self._at.length:
            self._load()
            return
        for message in self.record.read(len(self.desk.timeline), at.length):
            self.desk.add(message)
        self._at = at

    @in_turn
    def use(
        self, *, model: str | None = None, policy: Policy | str | None = None, tools: Sequence[Any] | None = None
    ) -> None:
        """Go on with another model, policy or set of tools: what depends on them is derived anew."""
        self._load(model, policy, tools)

    # The way of a message

    @in_turn
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
        before, at, put = self._at, self.record.append(messages), self.desk.add
        if at.mark != before.mark or at.length != before.length + len(messages):
            self._refresh()
            return
        for message in messages:
            put(message)
        self._at = at

    @in_turn
    def view(self) -> View:
        """What to send now. Folds first where the policy says so; raises `ViewTooLarge` when nothing may leave."""
        for _ in range(ATTEMPTS):
            self._refresh()
            desk, at = self.desk, self._at
            load = desk.load()
            made = desk.plan(load)
            self.teller.verdict(made, load, desk)
            if self._at is not at:  # whoever listens has changed it
                continue
            if made.fold is not None and not self._due(made.fold, must=made.verdict.need is Need.HARD):
                continue
            thinner = self.desk.thinned()
            if thinner is not None and not self._commit(thinner, must=True):
                continue
            return desk.view(load, made.verdict) if self._at is at else self.desk.view()
        raise Conflict("others changed this session each time a fold was ready", hint="try again")

    def _due(self, planned: Fold, *, must: bool) -> bool:
        """Make the fold of a plan, unless it can wait and one was refused a short time ago."""
        cools = self._cooling
        return (cools and not must) or self._commit(planned, must=must, cools=cools)

    @property
    def _cooling(self) -> bool:
        """Whether a fold was refused so short a time ago that the next would be refused too."""
        refused = self.refused
        return refused is not None and len(self.desk.timeline) < refused.at + self.desk.policy.cooldown_messages

    @in_turn
    def plan(self) -> Plan:
        """What would be done now, without doing it."""
        self._refresh()
        return self.desk.plan()

    # The way of a fold

    @in_turn
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
            if self._make(planned, Wish(must=force, instructions=instructions, text=digest)):
                return self.desk.timeline.fold if self.folds > folds else None
        raise Conflict("others changed this session each time a fold was ready", hint="try again")

    @in_turn
    def preview(self, *, instructions: str = "", force: bool = False) -> Preview | None:
        """What `fold` would do now, with what it would cost; `approve` does it."""
        self._refresh()
        planned, mark = self.desk.by_hand(force=force), self._at.mark
        made = None if planned is None else self.scribe.write(planned, Wish(must=force, instructions=instructions))
        if planned is None or isinstance(made, FoldRefused):
            return None
        return preview_of(self.desk, self.desk.complete(planned, made), mark, self.record.place)

    @in_turn
    def approve(self, preview: Preview, *, digest: str | None = None) -> Fold:
        """Make the fold of a preview, with its digest or with `digest` in its place.

        `Conflict` when anything but messages was added since.
        """
        self._refresh()
        if (preview.place, preview.mark) != (self.record.place, self._at.mark):
            raise Conflict("this preview was made for something else than what holds now", hint="make another one")
        fold, reason = preview.fold, "approved by hand"
        if digest is not None:
            made = self.scribe.write(fold, Wish(text=digest))
            fold = _smaller(self.desk.complete(fold, None if isinstance(made, FoldRefused) else made))
            reason += ", with a digest by hand"
        fold = replace(fold, reason=reason)
        self.record.fold(fold, preview.mark)
        self._load()
        self.teller.committed(fold)
        return fold

    @in_turn
    def unfold(self) -> None:
        """Take back the newest fold: what left is in the view again."""
        self._refresh()
        self.record.unfold(self._at.mark)
        self._load()

    def _commit(self, planned: Fold, *, must: bool, cools: bool = False) -> bool:
        """A fold that is due: by the worker where it can wait for a model's digest, else at once.

        `cools`: a digest was refused a short time ago, so the digester is not asked, and not paid, again.
        """
        behind = self._behind and planned.cut > self.desk.timeline.cut
        if behind and not must and self.worker is not None:
            self.worker.request_fold(self.record.searched()[1])
            return True
        local = self.refused.cause if cools and self.refused is not None else "it could not wait" if behind else ""
        if not self._make(planned, Wish(must=must, local=local)):
            return False
        if behind:
            self.cancel()  # whoever is at it comes too late
        return True

    def _make(self, planned: Fold, wish: Wish, claim: Claim | None = None) -> bool:
        """Make a planned fold and write it down, unless it is refused; False when somebody else was faster."""
        at, by = self._at, self.digester.name if self.digester and not wish.local else "local"
        self.teller.tell("planned", cut=planned.cut, reason=planned.reason)
        self.teller.tell("started", cut=planned.cut, by=by)
        if self._at.mark != at.mark:  # whoever listens has changed it
            return False
        made = self.scribe.write(planned, wish)
        if self._at.mark != at.mark or (wish.pulse is not None and wish.pulse.is_set()):
            return False
        try:
            if isinstance(made, FoldRefused):
                self.refused = Refused(len(self.desk.timeline), made.cause)
                self._at = Mark(self._at.length, self.record.refuse(self.refused, at.mark).mark)
                self.teller.tell("skipped", reason=made.cause)
                return True
            fold = self.desk.complete(planned, made)
            if wish.text is not None:
                fold = _smaller(fold)
            self._at = Mark(self._at.length, self.record.fold(fold, at.mark, claim).mark)
        except Conflict:
            return False
        self.desk.put(fold)
        self.folds, self.refused = self.folds + 1, None
        if made is not None and made.cause and not wish.local:
            self.teller.tell("failed", cause=made.cause)
        self.teller.committed(fold)
        return True

    @in_turn
    def work(self, claim: Claim, pulse: Pulse, *, local: str = "") -> bool:
        """Make the fold that is due, for whoever holds the job; False when none is. `Conflict` when it is too late.

        `local` says why no model is asked.
        """
        self._refresh()
        folds, made = self.folds, self.desk.plan()
        if made.fold is None or self._cooling:
            return False
        wish = Wish(must=made.verdict.need is Need.HARD, local=local, pulse=pulse)
        if not self._make(made.fold, wish, claim):
            raise Conflict("what a fold was made for has changed", hint="its digest is dropped")
        return self.folds > folds

    def cancel(self) -> bool:
        """Take a fold that is being made in the background from whoever makes it; False when none is."""
        return self.record.cancel()

    # By hand

    @in_turn
    def pin(self, text: str = "", *, handle: str = "", name: str = "") -> tuple[str, ...]:
        """Let no fold touch messages, by their handle, or a text that is added for this; the names of the pins."""
        if bool(text) == bool(handle):
            raise InputError("pin a text or a handle", hint='pin("the port is 4711") or pin(handle="#12")')
        if text:
            position = self._say(text)
            return (self._hold(position, name),)
        self._refresh()
        length, wanted = len(self.desk.timeline), parse_handle(handle)
        if wanted.strand is not None:
            raise InputError(f"{handle} was said elsewhere", hint="pin what it says, as a text")
        if wanted.last >= length:
            raise InputError(f"there is no message {numbered(wanted.last)}", hint=f"the session has {length}")
        one = wanted.first == wanted.last
        return tuple(self._hold(place, name if one else "") for place in range(wanted.first, wanted.last + 1))

    def _say(self, text: str) -> int:
        """Add a note; where it stands."""
        position = self.record.append([user(text, kind="note")]).length - 1
        self._refresh()
        return position

    def _again(self, position: int) -> int:
        """Where that is said again which has left the view: where it is pinned already, or at the end."""
        timeline = self.desk.timeline
        text = "".join(searchable_text(message) for message in self.record.read(position, position + 1))
        if not text:
            raise InputError(f"{numbered(position)} says nothing that could be pinned", hint="pin a text")
        known = [pin for pin in timeline.pins if timeline.messages[pin].text == text]
        return known[0] if known else self._say(text)

    def _hold(self, position: int, name: str) -> str:
        """Pin a message where it stands; what has left the view is said again at its end, and stays there."""
        name, moves = name or numbered(position), self._moves
        for _ in range(ATTEMPTS):
            if self._moves != moves:
                break
            if not self.desk.shows(position):
                position = self._again(position)
                continue
            try:
                self.record.pin(name, position, self._at.mark)
            except Conflict:
                self._refresh()
                continue
            self._load()
            return name
        raise Conflict("others changed this session each time", hint="try again")

    @in_turn
    def unpin(self, name: str) -> None:
        """Let go of a pin."""
        self._insist(lambda mark: self.record.unpin(name, mark))

    @in_turn
    def branch(self, name: str, *, at: int | None = None) -> Session:
        """Another session that shares the first `at` messages (all of them unless said) and then goes its own way."""
        self._refresh()
        length = len(self.desk.timeline) if at is None else at
        record = self.record.fork(name, length)
        return Session(
            digester=self._digester, record=record, name=self.name, listener=self.listener, worker=self.worker
        )

    def recall(self, query: str = "", *, handle: str = "", tokens: int = TOKENS, everywhere: bool = False) -> Any:
        """What was said about something, or exactly by its handle, within so many tokens; print it."""
        if bool(query) == bool(handle):
            raise InputError(
                "recall by a question or by a handle", hint='recall("which port?") or recall(handle="#12")'
            )
        store, branch = self.record.searched()
        if handle:
            found: Any = fetch(store, branch, parse_handle(handle), tokens=tokens, counter=self.desk.counter)
        else:
            ask = RecallQuery(query=query, tokens=tokens, everywhere=everywhere)
            found = search(store, branch, ask, self.desk.counter)
        self.teller.tell("recalled", handle=handle, tokens=found.tokens)
        return found

    @in_turn
    def clear(self) -> None:
        """Begin anew with an empty view. A ledger keeps what was said: `recall(everywhere=True)` finds it."""
        self._insist(lambda mark: self.record.move(0, mark))

    def _insist(self, change: Callable[[int], object]) -> None:
        """Make a change that is wanted whatever others did meanwhile."""
        for _ in range(ATTEMPTS):
            self._refresh()
            try:
                change(self._at.mark)
            except Conflict:
                continue
            self._load()
            return
        raise Conflict("others changed this session each time", hint="try again")

    # What it shows of its desk

    @property
    def timeline(self) -> Timeline:
        """The messages with their index."""
        return self.desk.timeline

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


def _smaller(fold: Fold) -> Fold:
    """A fold with a person's digest, if that is no larger than what it stands for."""
    if fold.after >= fold.before:
        told = f"with this digest the view would grow from {fold.before:,} to {fold.after:,} tokens"
        raise InputError(told, hint="write a shorter one")
    return fold


def fold_list(messages: Iterable[Message], **options: Any) -> tuple[Message, ...]:
    """List in, list out: the view of a conversation that was never seen before."""
    session = Session(**options)
    session.add(*messages)
    return session.view().messages
