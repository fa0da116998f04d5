"""After any sequence of operations the ledger has the state that a list in memory would have."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from foldline import ledger
from foldline.errors import Conflict, InputError
from foldline.fold import Fold
from foldline.ledger import Branch
from foldline.ledger.jobs import Claim
from foldline.message import Message, assistant, user
from support.ledgers import FOLD

OWNERS = itertools.count()
LEASE_S = 10.0


@dataclass
class Model:
    """A branch as a list would keep it."""

    said: list[Message] = field(default_factory=list)
    folds: list[Fold] = field(default_factory=list)
    undone: list[Fold] = field(default_factory=list)
    pins: dict[str, int] = field(default_factory=dict)
    marks: int = 0
    claim: Claim | None = None
    until: float = 0.0

    def back(self, to: int) -> None:
        del self.said[to:]
        self.folds = [fold for fold in self.folds if fold.cut <= to]
        self.undone = [fold for fold in self.undone if fold.cut <= to]
        self.pins = {name: at for name, at in self.pins.items() if at < to}


class Machine(RuleBasedStateMachine):
    url = ":memory:"
    branches = Bundle("branches")

    def __init__(self) -> None:
        super().__init__()
        self.owner = f"machine {next(OWNERS)}"
        self.now = 1_000.0
        self.store = self.open()
        self.models: dict[int, Model] = {}
        self.names = itertools.count()

    def open(self) -> ledger.Store:
        return ledger.open(self.url, owner=self.owner, clock=lambda: self.now)

    def teardown(self) -> None:
        copy = ledger.open(":memory:")
        copy.load(self.store.export())
        assert list(copy.verify()) == []
        for info in self.store.sessions():
            for mine, theirs in zip(self.store.branches(info.name), copy.branches(info.name), strict=True):
                assert [row.message for row in copy.read(theirs)] == self.models[mine.id].said
                assert [copy.fold(theirs, fold) for fold in copy.state(theirs).folds] == self.models[mine.id].folds
        copy.close()
        self.store.close()

    @rule(target=branches, name=st.sampled_from(("s", "t")))
    def session(self, name: str) -> Branch:
        branch = self.store.session(name)
        self.models.setdefault(branch.id, Model())
        return branch

    @rule(branch=branches, texts=st.lists(st.sampled_from("abc"), min_size=1, max_size=4), data=st.data())
    def append(self, branch: Branch, texts: list[str], data: st.DataObject) -> None:
        model = self.models[branch.id]
        at = data.draw(st.none() | st.integers(0, len(model.said)))
        messages = [user(text) if place % 2 else assistant(text) for place, text in enumerate(texts)]
        self.store.append(branch, messages, expected=self.store.head(branch).key, at=at)
        if at is not None and at < len(model.said):
            model.back(at)
        model.said += messages

    @rule(branch=branches)
    def append_too_late(self, branch: Branch) -> None:
        with pytest.raises(Conflict):
            self.store.append(branch, [user("late")], expected=b"another writer came")

    @rule(target=branches, branch=branches, data=st.data())
    def fork(self, branch: Branch, data: st.DataObject) -> Branch:
        model = self.models[branch.id]
        at = data.draw(st.integers(0, len(model.said)))
        made = self.store.fork(branch, f"b{next(self.names)}", at=at)
        self.models[made.id] = replace(model, said=list(model.said), claim=None, until=0.0)
        self.models[made.id].back(at)
        return made

    @rule(branch=branches, data=st.data())
    def move(self, branch: Branch, data: st.DataObject) -> None:
        model = self.models[branch.id]
        to = data.draw(st.integers(0, len(model.said)))
        self.store.move(branch, to)
        model.back(to)

    @rule(branch=branches, data=st.data())
    def fold(self, branch: Branch, data: st.DataObject) -> None:
        model = self.models[branch.id]
        fold = replace(FOLD, cut=data.draw(st.integers(0, len(model.said))))
        mark = self.store.head(branch).mark
        self.store.append_fold(branch, fold, mark=mark)
        model.folds, model.undone = [*model.folds, fold], []
        with pytest.raises(Conflict):
            self.store.append_fold(branch, fold, mark=mark)

    @rule(branch=branches)
    def unfold(self, branch: Branch) -> None:
        model = self.models[branch.id]
        if model.folds:
            self.store.unfold(branch)
            model.undone = [*model.undone, model.folds[-1]]
            model.folds = model.folds[:-1]
        else:
            with pytest.raises(InputError):
                self.store.unfold(branch)

    @rule(branch=branches)
    def refold(self, branch: Branch) -> None:
        model = self.models[branch.id]
        if model.undone:
            self.store.refold(branch)
            model.folds = [*model.folds, model.undone[-1]]
            model.undone = model.undone[:-1]
        else:
            with pytest.raises(InputError):
                self.store.refold(branch)

    @rule(branch=branches, name=st.sampled_from("pq"), data=st.data())
    def pin(self, branch: Branch, name: str, data: st.DataObject) -> None:
        model = self.models[branch.id]
        if model.said:
            at = data.draw(st.integers(0, len(model.said) - 1))
            self.store.pin(branch, name, at)
            model.pins = {**model.pins, name: at}

    @rule(branch=branches, name=st.sampled_from("pq"))
    def unpin(self, branch: Branch, name: str) -> None:
        self.store.unpin(branch, name)
        self.models[branch.id].pins = {key: at for key, at in self.models[branch.id].pins.items() if key != name}

    @rule(branch=branches)
    def claim(self, branch: Branch) -> None:
        model = self.models[branch.id]
        claim = self.store.jobs.claim(branch, lease_s=LEASE_S, deadline_s=LEASE_S * 2)
        assert (claim is not None) == (model.until <= self.now)
        if claim is not None:
            model.claim, model.until = claim, self.now + LEASE_S

    @rule(branch=branches, how=st.sampled_from(("fold", "finish", "fail", "cancel")))
    def end(self, branch: Branch, how: str) -> None:
        model = self.models[branch.id]
        claim, model.claim = model.claim, None
        if claim is None:
            return
        model.until = self.now
        if how == "fold":
            self.store.append_fold(branch, replace(FOLD, cut=0), claim=claim)
            model.folds = [*model.folds, replace(FOLD, cut=0)]
        elif how == "finish":
            self.store.jobs.finish(claim)
        elif how == "fail":
            self.store.jobs.fail(claim, "no", rest_s=5)
            model.until = self.now + 5
        else:
            assert self.store.jobs.cancel(branch)
        with pytest.raises(Conflict):
            self.store.jobs.renew(claim, lease_s=1)

    @rule(seconds=st.sampled_from((1.0, 6.0, 11.0)))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def reopen(self) -> None:
        if self.url != ":memory:":
            self.store.close()
            self.store = self.open()

    @rule(branch=branches)
    def search(self, branch: Branch) -> None:
        said = self.models[branch.id].said
        found = self.store.find([*said, user("new")])
        assert (found.count if found else 0) == len(said)

    @invariant()
    def same(self) -> None:
        for info in self.store.sessions():
            for branch in self.store.branches(info.name):
                model, state = self.models[branch.id], self.store.state(branch)
                assert [row.message for row in self.store.read(branch)] == model.said
                assert [self.store.fold(branch, fold) for fold in state.folds] == model.folds
                assert state.fold == (model.folds[-1] if model.folds else None)
                assert {pin.name: pin.position for pin in state.pins} == model.pins
        assert list(self.store.verify()) == []


@pytest.mark.promise("I7", "I11", "I14")
def test_any_order_of_operations_gives_the_state_of_a_list(ground: str) -> None:
    class Here(Machine):
        url = ground

    run_state_machine_as_test(Here, settings=settings(max_examples=12, stateful_step_count=25, deadline=None))
