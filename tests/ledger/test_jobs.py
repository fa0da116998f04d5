"""Claims on jobs: one worker at a time, and each result is committed once."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from foldline.errors import Conflict
from foldline.ledger import Branch, Store
from foldline.ledger.jobs import REQUEST_EXPIRY_S, JobRequest
from support.ledgers import FOLD, talk


class Clock:
    """A time that a test sets."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(opened: Callable[..., Store], clock: Clock) -> Store:
    return opened(clock=clock)


@pytest.fixture
def main(store: Store) -> Branch:
    main = store.session("s")
    store.append(main, talk("a", "b", "c", "d"))
    return main


@pytest.mark.promise("S3.35", "I11")
def test_only_one_of_many_workers_gets_the_claim(opened: Callable[..., Store], main: Branch) -> None:
    stores = [opened() for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda store: store.jobs.claim(main, lease_s=60, deadline_s=600), stores))
    assert sum(claim is not None for claim in found) == 1


@pytest.mark.promise("I23")
def test_a_job_can_be_claimed_again_when_its_lease_has_run_out(store: Store, main: Branch, clock: Clock) -> None:
    dead = store.jobs.claim(main, lease_s=10, deadline_s=60, holder="one")
    assert dead is not None
    clock.now += 9.9
    assert store.jobs.claim(main, lease_s=10, deadline_s=60) is None
    clock.now += 0.2
    next_ = store.jobs.claim(main, lease_s=10, deadline_s=60, holder="two")
    assert next_ is not None
    assert next_.fence == dead.fence + 1
    assert store.jobs.get(main).failures == 1
    for late in (
        lambda: store.append_fold(main, FOLD, claim=dead),
        lambda: store.jobs.renew(dead, lease_s=10),
        lambda: store.jobs.finish(dead),
        lambda: store.jobs.fail(dead, "too late"),
    ):
        with pytest.raises(Conflict, match="no longer valid"):
            late()
    assert store.state(main).fold is None
    store.append_fold(main, FOLD, claim=next_)
    assert store.state(main).fold == FOLD


@pytest.mark.promise("I23")
def test_a_lease_is_renewed_until_the_deadline_and_no_longer(store: Store, main: Branch, clock: Clock) -> None:
    claim = store.jobs.claim(main, lease_s=10, deadline_s=25)
    assert claim is not None
    for _ in range(4):
        clock.now += 6
        store.jobs.renew(claim, lease_s=10)
        assert store.jobs.claim(main, lease_s=10, deadline_s=25) is None
    clock.now += 1.1
    assert store.jobs.claim(main, lease_s=10, deadline_s=25) is not None


def test_a_late_result_is_accepted_if_no_other_worker_claimed_the_job(store: Store, main: Branch, clock: Clock) -> None:
    claim = store.jobs.claim(main, lease_s=10, deadline_s=25)
    clock.now += 100
    store.append_fold(main, FOLD, claim=claim)
    assert store.state(main).fold == FOLD


@pytest.mark.promise("I11", "S3.34")
def test_a_job_is_completed_once(store: Store, main: Branch) -> None:
    claim = store.jobs.claim(main, lease_s=10, deadline_s=25)
    for _ in range(2):
        store.append_fold(main, FOLD, mark=0, claim=claim)
    assert len(store.state(main).folds) == 1
    other = store.jobs.claim(main, "title", lease_s=10, deadline_s=25)
    assert other is not None
    for _ in range(2):
        store.jobs.finish(other, {"title": "build"})
    assert store.jobs.get(main, "title").body == {"title": "build"}


@pytest.mark.promise("I7", "I11")
def test_a_refused_fold_leaves_its_job_unchanged(store: Store, main: Branch) -> None:
    claim = store.jobs.claim(main, lease_s=10, deadline_s=25)
    store.pin(main, "p", 0)
    before = store.jobs.get(main)
    with pytest.raises(Conflict, match="changed meanwhile"):
        store.append_fold(main, FOLD, mark=0, claim=claim)
    assert store.jobs.get(main) == before


def test_a_cancelled_job_can_be_claimed_at_once_and_its_result_is_refused(store: Store, main: Branch) -> None:
    claim = store.jobs.claim(main, lease_s=10, deadline_s=25)
    assert store.jobs.cancel(main)
    assert not store.jobs.cancel(main)
    with pytest.raises(Conflict, match="no longer valid"):
        store.append_fold(main, FOLD, claim=claim)
    assert store.jobs.claim(main, lease_s=10, deadline_s=25) is not None


def test_failures_back_off_add_up_and_are_reset_by_a_success(
    opened: Callable[..., Store], main: Branch, clock: Clock
) -> None:
    for failures in (1, 2):
        claim = opened(clock=clock).jobs.claim(main, lease_s=10, deadline_s=25)
        assert claim is not None
        opened(clock=clock).jobs.fail(claim, "429 from the digester", rest_s=30)
        job = opened(clock=clock).jobs.get(main)
        assert (job.kind, job.failures, job.body) == ("failed", failures, "429 from the digester")
        clock.now += 29
        assert opened(clock=clock).jobs.claim(main, lease_s=10, deadline_s=25) is None
        clock.now += 2
    last = opened(clock=clock)
    claim = last.jobs.claim(main, lease_s=10, deadline_s=25)
    last.append_fold(main, FOLD, claim=claim)
    assert last.jobs.get(main).failures == 0


def test_times_are_taken_from_the_database(opened: Callable[..., Store]) -> None:
    store = opened()
    main = store.session("s")
    store.jobs.claim(main, lease_s=10, deadline_s=25)
    assert abs(store.jobs.get(main).at - time.time()) < 5


@pytest.mark.promise("S3.35", "I11")
def test_a_requested_job_is_pending_until_it_is_claimed(store: Store, main: Branch, clock: Clock) -> None:
    assert store.jobs.pending() == []
    assert store.jobs.request(main)
    assert not store.jobs.request(main)
    assert store.jobs.pending() == [JobRequest("", "s", "main", "fold")]
    dead = store.jobs.claim(main, lease_s=10, deadline_s=60)
    assert dead is not None
    assert store.jobs.pending() == []
    assert not store.jobs.request(main)
    clock.now += 11
    assert len(store.jobs.pending()) == 1, "its holder died, so it waits again"
    alive = store.jobs.claim(main, lease_s=10, deadline_s=60)
    assert alive is not None
    store.jobs.finish(alive)
    assert store.jobs.pending() == []
    assert list(store.verify()) == []


def test_a_new_request_does_not_shorten_the_back_off(store: Store, main: Branch, clock: Clock) -> None:
    claim = store.jobs.claim(main, lease_s=10, deadline_s=60)
    assert claim is not None
    store.jobs.fail(claim, "no", rest_s=30)
    assert store.jobs.request(main)
    assert store.jobs.pending() == []
    assert store.jobs.claim(main, lease_s=10, deadline_s=60) is None
    clock.now += 31
    assert len(store.jobs.pending()) == 1
    assert store.jobs.get(main).failures == 1


def test_an_expired_lease_counts_as_a_failure_when_the_job_is_requested_again(
    store: Store, main: Branch, clock: Clock
) -> None:
    claim = store.jobs.claim(main, lease_s=10, deadline_s=60)
    assert claim is not None
    clock.now += 11
    assert store.jobs.request(main)
    assert store.jobs.get(main).failures == 1
    with pytest.raises(Conflict, match="no longer valid"):
        store.append_fold(main, FOLD, claim=claim)


def test_an_old_request_expires_unless_it_is_repeated(store: Store, main: Branch, clock: Clock) -> None:
    store.jobs.request(main)
    clock.now += REQUEST_EXPIRY_S + 1
    assert store.jobs.pending() == []
    assert store.jobs.request(main)
    assert len(store.jobs.pending()) == 1


@pytest.mark.promise("I17")
def test_only_a_worker_for_all_owners_sees_the_jobs_of_others(opened: Callable[..., Store], clock: Clock) -> None:
    stores = [opened(owner=name, clock=clock) for name in ("ann", "bob")]
    for each in stores:
        each.jobs.request(each.session("s"))
    assert [wanted.owner for wanted in stores[0].jobs.pending()] == ["ann"]
    assert {wanted.owner for wanted in stores[0].jobs.pending(all_owners=True)} == {"ann", "bob"}
