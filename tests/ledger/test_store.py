"""Messages, folds, pins and branches are stored and read back."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace

import pytest

from foldline import ledger
from foldline.errors import Conflict, InputError, LedgerBusy
from foldline.fold import Digest
from foldline.ledger import ROOT, Store
from foldline.message import Meta, Usage, assistant, user
from support.ledgers import FOLD, talk, texts


@pytest.mark.promise("S2.5", "S2.21")
def test_appended_messages_are_read_by_the_next_process(opened: Callable[..., Store]) -> None:
    main = opened().session("s")
    opened().append(main, talk("a", "b"))
    opened().append(main, talk("c"))
    assert texts(opened(), main) == ["a", "b", "c"]
    assert [stored.position for stored in opened().read(main, start=1)] == [1, 2]


def test_a_resent_history_adds_only_new_messages(store: Store) -> None:
    main, other = store.session("s"), store.session("t")
    store.append(main, talk("a", "b"))
    again = store.append(other, talk("a", "b", "c"))
    assert again.written == 1
    assert texts(store, other) == ["a", "b", "c"]
    assert texts(store, main) == ["a", "b"]
    assert store.append(main, talk("a", "b", "c"), at=0).written == 0
    assert store.head(main).key == again.head.key


def test_two_sessions_share_their_common_prefix(store: Store) -> None:
    main, other = store.session("s"), store.session("t")
    store.append(main, talk("a", "b", "c"))
    store.append(other, talk("a", "b", "x"))
    store.append(main, talk("d"))
    store.append(other, talk("y"))
    assert texts(store, main) == ["a", "b", "c", "d"]
    assert texts(store, other) == ["a", "b", "x", "y"]


@pytest.mark.promise("I11")
def test_the_second_of_two_writers_gets_a_conflict_and_writes_nothing(store: Store) -> None:
    main = store.session("s")
    first = store.append(main, talk("a"), expected=ROOT)
    with pytest.raises(Conflict):
        store.append(main, talk("b"), expected=ROOT)
    assert texts(store, main) == ["a"]
    store.append(main, talk("b"), expected=first.head.key)
    assert texts(store, main) == ["a", "b"]


def test_metadata_added_later_is_merged(store: Store) -> None:
    main = store.session("s")
    bare = assistant("hello")
    store.append(main, [user("hi"), replace(bare, meta=Meta(at=1.0))])
    later = replace(bare, meta=Meta(at=2.0, usage=Usage(input=10, output=2), model="m"))
    assert store.append(main, [user("hi"), later], at=0).written == 0
    stored = list(store.read(main))[1].message
    assert stored.meta == Meta(at=1.0, usage=Usage(input=10, output=2), model="m")


@pytest.mark.promise("S3.41", "S3.30", "I7")
def test_a_fold_is_one_entry_and_is_read_back_unchanged(opened: Callable[..., Store]) -> None:
    store = opened(clock=lambda: 5.0)
    main = store.session("s")
    store.append(main, talk("a", "b", "c", "d"))
    store.append_fold(main, FOLD, mark=0)
    state = opened().state(main)
    assert state.fold == FOLD
    assert state.folds[0].at == 5.0
    assert texts(store, main) == ["a", "b", "c", "d"], "a fold takes nothing from the record"


@pytest.mark.promise("I11", "S3.34")
def test_a_fold_is_committed_only_on_the_state_it_was_planned_on(store: Store) -> None:
    main = store.session("s")
    store.append(main, talk("a", "b", "c", "d"))
    mark = store.head(main).mark
    store.append(main, talk("e"))
    store.append_fold(main, FOLD, mark=mark)
    for change in (
        lambda: store.append_fold(main, FOLD),
        lambda: store.pin(main, "p", 0),
        lambda: store.unpin(main, "p"),
        lambda: store.unfold(main),
        lambda: store.append(main, talk("x"), at=3),
        lambda: store.move(main, 0),
        lambda: store.note(main, "model", "m2"),
    ):
        mark = store.head(main).mark
        change()
        before = store.state(main)
        with pytest.raises(Conflict):
            store.append_fold(main, FOLD, mark=mark)
        assert store.state(main) == before


def test_unfold_restores_the_fold_before(store: Store) -> None:
    main = store.session("s")
    store.append(main, talk("a", "b", "c", "d"))
    store.append_fold(main, replace(FOLD, cut=1))
    store.append_fold(main, FOLD)
    store.unfold(main)
    assert store.state(main).fold == replace(FOLD, cut=1)
    store.unfold(main)
    assert store.state(main).fold is None
    with pytest.raises(InputError):
        store.unfold(main)


def test_refold_restores_the_fold_that_was_undone_last(store: Store) -> None:
    main = store.session("s")
    store.append(main, talk("a", "b", "c", "d"))
    store.append_fold(main, replace(FOLD, cut=1))
    store.append_fold(main, FOLD)
    made = store.state(main).folds
    store.unfold(main)
    store.unfold(main)
    store.refold(main)
    assert store.state(main).fold == replace(FOLD, cut=1)
    store.refold(main)
    assert store.state(main).folds == made
    assert [entry.kind for entry in store.state(main).marks][-2:] == ["refold", "refold"]
    assert store.sessions()[0].folds == 2
    with pytest.raises(InputError):
        store.refold(main)


def test_a_fold_that_was_undone_is_not_restored_over_a_new_fold(store: Store) -> None:
    main = store.session("s")
    store.append(main, talk("a", "b", "c", "d"))
    store.append_fold(main, FOLD)
    store.unfold(main)
    store.append_fold(main, replace(FOLD, cut=1))
    with pytest.raises(InputError, match="no fold was taken back"):
        store.refold(main)


def test_an_operation_id_is_applied_once(store: Store) -> None:
    main = store.session("s")
    store.append(main, talk("a", "b", "c"))
    for _ in range(2):
        store.append_fold(main, FOLD, mark=0, op="fold-1")
        store.pin(main, "p", 0, op="pin-1")
    assert len(store.state(main).marks) == 2


@pytest.mark.promise("I8")
def test_pins_stay_until_they_are_removed(opened: Callable[..., Store]) -> None:
    store = opened()
    main = store.session("s")
    store.append(main, talk("a", "b", "c"))
    store.pin(main, "first", 0)
    store.pin(main, "rule", user("never push to main", kind="note"))
    store.append_fold(main, FOLD)
    pins = {pin.name: pin for pin in opened().state(main).pins}
    assert pins["first"].position == 0
    assert pins["rule"].message == user("never push to main", kind="note")
    store.unpin(main, "first")
    assert [pin.name for pin in store.state(main).pins] == ["rule"]
    with pytest.raises(InputError, match="no message 3"):
        store.pin(main, "late", 3)


def test_a_branch_shares_its_prefix_and_then_diverges(store: Store) -> None:
    main = store.session("s")
    store.append(main, talk("a", "b", "c", "d"))
    store.append_fold(main, FOLD)
    store.pin(main, "one", 1)
    store.pin(main, "three", 3)
    side = store.fork(main, "side", at=3)
    store.append(side, talk("x"))
    store.append(main, talk("e"))
    assert texts(store, side) == ["a", "b", "c", "x"]
    assert [pin.name for pin in store.state(side).pins] == ["one"]
    assert store.state(side).fold == FOLD
    assert store.state(store.fork(main, "early", at=1)).folds == ()
    store.unfold(main)
    assert store.state(side).fold == FOLD
    deep = store.fork(side, "deep")
    assert texts(store, deep) == ["a", "b", "c", "x"]
    assert store.state(deep).fold == FOLD
    assert [branch.name for branch in store.branches("s")] == ["main", "side", "early", "deep"]
    assert store.session("s", "side") == side
    with pytest.raises(InputError, match="already"):
        store.fork(main, "side")
    with pytest.raises(InputError, match=r"no branch .* create it with branch\(\)"):
        store.session("s", "none")


def test_clearing_a_branch_keeps_its_messages_in_the_ledger(store: Store) -> None:
    main = store.session("s")
    full = store.append(main, talk("a", "b", "c")).head
    store.append_fold(main, FOLD)
    store.move(main)
    assert texts(store, main) == []
    assert store.state(main).fold is None
    store.append(main, talk("new"))
    assert texts(store, main) == ["new"]
    assert [stored.message.text for stored in store.read(full)] == ["a", "b", "c"]


@pytest.mark.promise("S2.18", "S2.20", "S3.40")
def test_a_path_can_be_read_from_any_position(store: Store) -> None:
    main = store.session("s")
    for number in range(200):
        store.append(main, [user(f"m{number}")])
    side = store.fork(main, "side", at=150)
    store.append(side, [user("s150"), user("s151")])
    assert texts(store, side, 148) == ["m148", "m149", "s150", "s151"]
    assert [stored.message.text for stored in store.read(side, start=149, stop=151)] == ["m149", "s150"]
    assert list(store.read(side, start=999)) == []
    assert texts(store, main, 199) == ["m199"]


def test_a_history_is_found_by_its_content(store: Store) -> None:
    main = store.session("s")
    said = talk("a", "b", "c")
    store.append(main, said)
    found = store.find([*said, user("new")])
    assert found is not None
    assert (found.count, found.branch, found.length) == (3, main, 3)
    assert store.find([user("other")]) is None
    assert store.find([]) is None
    part = store.find([*said[:2], user("edited")])
    assert part is not None
    assert part.count == 2


def test_sessions_are_listed_with_their_figures(opened: Callable[..., Store]) -> None:
    now = [0.0]
    store = opened(clock=lambda: now[0])
    for name in ("old", "new"):
        now[0] += 1
        main = store.session(name)
        store.append(main, talk("a", "b", "c"))
        store.append_fold(main, FOLD)
        side = store.fork(main, "side")
        store.append(side, talk("more"))
    first, second = store.sessions()
    assert (first.name, second.name) == ("new", "old")
    assert (first.messages, first.folds, first.branches, first.last_at) == (4, 1, ("main", "side"), 2.0)


def test_events_are_read_in_order(store: Store) -> None:
    main = store.session("s")
    for number in range(3):
        store.event(main, "warned", {"left": number})
    found = store.events(main)
    assert [event.body["left"] for event in found] == [0, 1, 2]
    assert store.events(main, after=found[1].id) == found[2:]


def test_invalid_names_are_refused(store: Store) -> None:
    for name in ("a\0b", "\ud800", "x" * 600, "line\nline"):
        with pytest.raises(InputError):
            store.session(name)
        with pytest.raises(InputError):
            store.fork(store.session("s"), name)


@pytest.mark.promise("S3.40", "I14")
def test_a_long_path_is_read_in_little_memory(store: Store) -> None:
    main = store.session("s")
    store.append(main, [user(f"{number} " + "x" * 4_000) for number in range(2_000)])
    tracemalloc.start()
    try:
        assert sum(1 for _ in store.read(main)) == 2_000
        whole = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        assert len(list(store.read(main, start=1_990))) == 10
        tail = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert whole < 3_000_000, "8 MB were read"
    assert tail < 500_000


@pytest.mark.promise("S3.40", "S3.41")
def test_only_the_fold_in_force_is_read(store: Store) -> None:
    main = store.session("s")
    store.append(main, talk(*"abcdef"))
    for number in range(30):
        message = user(f"digest {number} " + "".join(f"{number * place:x}" for place in range(20_000)), kind="digest")
        store.append_fold(main, replace(FOLD, digest=Digest(message=message)))
    tracemalloc.start()
    state = store.state(main)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(state.folds) == 30
    assert state.fold is not None
    assert state.fold.digest is not None
    assert state.fold.digest.message.text.startswith("digest 29")
    assert peak < 1_000_000, "30 digests of 100 KB were there"
    first = store.fold(main, state.folds[0]).digest
    assert first is not None
    assert first.message.text.startswith("digest 0")


def test_an_unfinished_read_does_not_block_the_next_one_forever() -> None:
    store = ledger.open(":memory:", wait_s=0.05)
    store.append(store.session("s"), talk("a"))
    lines = store.export()
    next(lines)
    with pytest.raises(LedgerBusy, match="connections are in use"):
        store.session("t")
    del lines
    store.session("t")
    store.close()


def test_an_append_that_expects_an_empty_branch(store: Store) -> None:
    main = store.session("s")
    store.append(main, talk("a"), expected=ROOT)
    with pytest.raises(InputError, match="has 1 messages"):
        store.append(main, talk("b"), at=5)
    with pytest.raises(InputError, match="reserved kind"):
        store.note(main, "fold", {})
