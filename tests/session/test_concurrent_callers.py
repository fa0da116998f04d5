"""Any order of what two callers and a worker do to one session: each view can be sent, fits, and misses nothing."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import foldline
from foldline.digest.digester import Digester, DigesterCall
from foldline.message import Message, ToolCall, assistant, tool, user
from foldline.policy import Policy
from foldline.session import Ledger, Session
from foldline.session.record import BranchRecord
from foldline.session.worker import JobOutcome, run_fold_job
from foldline.testing import Scripted, assert_sendable, proper
from foldline.view.compose import View

OWNERS = itertools.count()
TIGHT = Policy.preset("balanced").but(
    window_tokens=4_000,
    reply_tokens=0,
    counter="chars/4",
    rules=["warn when request > 40%", "fold when request > 50%"],
    target_ratio=0.3,
    keep_ratio=0.1,
    min_gain_tokens=200,
)
"""Much room between the wish to fold and the need to."""
MOST_BRANCHES = 3
SIZES = st.sampled_from((10, 400, 1_500))


@dataclass
class Seen:
    """The last view of a caller, and which marks of the record it was made from."""

    mark: int = -1
    messages: tuple[Message, ...] = ()


@dataclass
class Model:
    """A branch as a list would keep it, its two callers, and behind them the session of its worker."""

    said: list[Message] = field(default_factory=list)
    callers: list[Session] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)


class Machine(RuleBasedStateMachine):
    url = ":memory:"

    def __init__(self) -> None:
        super().__init__()
        self.owner = f"sessions {next(OWNERS)}"
        self.ledger = self.open()
        self.models: dict[str, Model] = {}
        self.numbers = itertools.count()
        self.meanwhile: Callable[[], None] = lambda: None

    def open(self) -> Ledger:
        return foldline.open(self.url, owner=self.owner, worker="process")

    def teardown(self) -> None:
        assert list(self.ledger.verify()) == []
        self.ledger.close()

    @initialize()
    def begin(self) -> None:
        self.ledger.session("s", policy=TIGHT).add(user("Please keep the build green."))
        self.models["main"] = Model(said=[user("Please keep the build green.")])
        self.callers("main")

    def callers(self, name: str) -> None:
        model = self.models[name]
        model.callers = [self.ledger.session("s", branch=name) for _ in range(2)]
        record = BranchRecord(self.ledger.store, self.ledger.store.session("s", name))
        digester = Digester(complete=self.complete, model="model", window=100_000)
        model.callers.append(Session(digester=digester, record=record))
        model.seen = [Seen() for _ in model.callers]

    def complete(self, ask: DigesterCall) -> Any:
        """The worker's model: things happen while it writes."""
        self.meanwhile()
        return Scripted(proper)(ask)

    def model(self, number: int) -> Model:
        return list(self.models.values())[number % len(self.models)]

    def turn(self, size: int, *, calls: bool) -> list[Message]:
        number = next(self.numbers)
        said = [user(f"question {number} " + "w" * size)]
        if calls:
            said.append(assistant("", ToolCall(id=f"c{number}", name="run", arguments="{}")))
            said.append(tool(f"c{number}", f"result {number} " + "r" * size))
        return [*said, assistant(f"answer {number} " + "a" * size)]

    which = st.integers(0, MOST_BRANCHES - 1)
    who = st.integers(0, 1)

    @rule(which=which, who=who, sizes=st.lists(SIZES, min_size=1, max_size=4), calls=st.booleans())
    def append(self, which: int, who: int, sizes: list[int], calls: bool) -> None:
        model = self.model(which)
        for size in sizes:
            turn = self.turn(size, calls=calls)
            model.callers[who].add(*turn)
            model.said += turn

    @rule(which=which, who=who, force=st.booleans())
    def fold(self, which: int, who: int, force: bool) -> None:
        self.model(which).callers[who].fold(force=force)

    @rule(which=which, who=who)
    def unfold(self, which: int, who: int) -> None:
        session = self.model(which).callers[who]
        session.view()
        if session.folds:
            session.unfold()

    @rule(which=which, who=who)
    def clear(self, which: int, who: int) -> None:
        model = self.model(which)
        model.callers[who].clear()
        model.said.clear()

    @rule(which=which, who=who)
    def pin(self, which: int, who: int) -> None:
        text = f"note {next(self.numbers)}"
        self.model(which).callers[who].pin(text, name="p")
        self.model(which).said.append(user(text, kind="note"))

    @rule(which=which, who=who)
    def cancel(self, which: int, who: int) -> None:
        assert not self.model(which).callers[who].cancel(), "nobody is at it now"

    @precondition(lambda self: len(self.models) < MOST_BRANCHES)
    @rule(which=which, who=who, back=st.integers(0, 6))
    def branch(self, which: int, who: int, back: int) -> None:
        model, name = self.model(which), f"b{len(self.models)}"
        at = max(0, len(model.said) - back)
        model.callers[who].branch(name, at=at)
        self.models[name] = Model(said=model.said[:at])
        self.callers(name)

    @rule()
    def reopen(self) -> None:
        if self.url != ":memory:":
            self.ledger.close()
            self.ledger = self.open()
            for name in self.models:
                self.callers(name)

    meanwhiles = st.sampled_from(("", "append", "fold", "clear", "pin", "unfold", "cancel", "view"))

    @rule(which=which, who=who, meanwhile=meanwhiles)
    def work(self, which: int, who: int, meanwhile: str) -> None:
        """A worker makes what is due; while the digest is written, a caller does something."""
        model, spoiled = self.model(which), [False]
        while model.callers[who].plan().fold is None:
            self.append(which, who, [400], calls=True)

        def happen() -> None:
            before = self.mark(model)
            if meanwhile == "cancel":
                assert model.callers[who].cancel()
            elif meanwhile == "append":
                self.append(which, who, [400], calls=False)
            elif meanwhile == "fold":
                self.fold(which, who, force=True)
            elif meanwhile == "view":
                model.callers[who].view()
            elif meanwhile:
                getattr(self, meanwhile)(which, who)
            spoiled[0] = meanwhile == "cancel" or self.mark(model) != before

        worker, jobs, folds = model.callers[2], self.ledger.store.jobs, self.folds(model)
        assert isinstance(worker.record, BranchRecord)
        self.meanwhile = happen
        outcome = run_fold_job(worker, jobs, worker.record.branch)
        self.meanwhile = lambda: None
        assert outcome in {"committed", "nothing", "dropped"}
        assert not (spoiled[0] and outcome is JobOutcome.COMMITTED), "a fold was applied to what is no longer there"
        if outcome is JobOutcome.COMMITTED:
            assert self.folds(model) == folds + 1
        assert not jobs.get(worker.record.branch).is_held, "nobody holds what is over"

    def mark(self, model: Model) -> int:
        return model.callers[0].record.version().entry

    def folds(self, model: Model) -> int:
        return model.callers[0].record.snapshot().folds

    @invariant()
    def views(self) -> None:
        for model in self.models.values():
            for session, seen in zip(model.callers, model.seen, strict=True):
                self.look(session, seen, model)
            texts = [[message.text for message in self.view(session).messages] for session in model.callers]
            assert texts == [texts[0]] * 3, "all who read the same rows send the same"

    def view(self, session: Session) -> View:
        """What a caller would send; the worker only looks, or it would fold whatever is due by looking."""
        if session.worker is not None:
            return session.view()
        session.plan()
        return session.state.view()

    def look(self, session: Session, seen: Seen, model: Model) -> None:
        view, mark = self.view(session), session.record.version().entry
        assert view.tokens <= view.usable
        if view.messages:
            assert_sendable(view.render("anthropic"))
        prompts = [message.text for message in model.said if message.is_prompt]
        if prompts:
            assert prompts[-1] in [message.text for message in view.messages], "the newest prompt stands word for word"
        if mark == seen.mark:
            assert view.messages[: len(seen.messages)] == seen.messages, "between folds it only grows at its end"
        seen.mark, seen.messages = mark, view.messages
        assert [message.text for message in session.record.read(0, 10_000)] == [each.text for each in model.said]
        pinned = {self.text(session, index) for index in session.timeline.pins}
        assert all([message.text for message in view.messages].count(text) == 1 for text in pinned)

    def text(self, session: Session, index: int) -> str:
        return next(iter(session.record.read(index, index + 1))).text


@pytest.mark.promise("I6", "I7", "I8", "I11", "I14", "S3.34", "S3.38")
def test_any_order_of_what_callers_and_a_worker_do(ground: str) -> None:
    class Here(Machine):
        url = ground

    run_state_machine_as_test(Here, settings=settings(max_examples=8, stateful_step_count=16, deadline=None))
