"""Receipts are stored with their session, and come back as they were written."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline import ledger
from foldline.ledger import Store
from foldline.ledger.receipts import CacheMiss, Receipt, add_receipt, last_receipt, read_receipts, sum_receipts
from foldline.message import Usage, user

counts = st.integers(0, 10**9)
money = st.none() | st.floats(0, 1e6)
usages = st.builds(Usage, counts, counts, counts, counts, counts, counts)
misses = st.none() | st.builds(
    CacheMiss, cause=st.sampled_from(["expired", "tools", "fold"]), tokens=counts, usd=money, path=st.text(max_size=9)
)
receipts = st.builds(
    Receipt,
    usage=usages,
    untouched=usages,
    model=st.text(max_size=9),
    usd=money,
    untouched_usd=money,
    is_folded=st.booleans(),
    miss=misses,
)


@given(st.lists(receipts, max_size=6))
def test_receipts_come_back_as_they_were_written(written: list[Receipt]) -> None:
    with closing(ledger.open(":memory:")) as store:
        main = store.session("work")
        for one in written:
            add_receipt(store, main, one)
        found = read_receipts(store, "work")
        assert [replace(one, id=0, at=0.0, branch="") for one in found] == written
        newest = last_receipt(store, main)
        assert newest == (found[-1] if found else None)


def test_the_receipts_of_all_branches_come_in_the_order_of_their_times(opened: Callable[..., Store]) -> None:
    store = opened()
    main = store.session("work")
    store.append(main, [user("one")])
    other = store.fork(main, "other")
    for branch in (main, other, main, other):
        add_receipt(store, branch, Receipt(usage=Usage(input=1), untouched=Usage(input=2)))
    found = read_receipts(store, "work")
    assert [one.branch for one in found] == ["main", "other", "main", "other"]
    assert [one.id for one in found] == sorted(one.id for one in found)
    assert read_receipts(store, "work", after=found[1].id) == found[2:]
    assert read_receipts(store, "work", limit=3) == found[:3]
    assert read_receipts(store, "unknown") == []


def test_receipts_are_exported_and_loaded_with_their_session(opened: Callable[..., Store]) -> None:
    store = opened()
    miss = CacheMiss(cause="fold", tokens=500, path="messages[2]", offset=4711)
    add_receipt(store, store.session("work"), Receipt(usage=Usage(input=1), untouched=Usage(input=2), miss=miss))
    with closing(ledger.open(":memory:")) as copy:
        copy.load(store.export())
        assert [one.miss for one in read_receipts(copy, "work")] == [miss]


def test_a_sum_counts_tokens_money_and_misses_by_cause() -> None:
    one = Receipt(usage=Usage(cache_read=5), untouched=Usage(cache_read=9), usd=1.0, untouched_usd=2.0)
    missed = replace(one, is_folded=True, miss=CacheMiss(cause="fold", tokens=7))
    found = sum_receipts([one, missed, missed, replace(one, usd=None)])
    assert (found.requests, found.folded, found.unpriced) == (4, 2, 1)
    assert (found.usage.cache_read, found.untouched.cache_read) == (20, 36)
    assert (found.usd, found.untouched_usd) == pytest.approx((3.0, 6.0))
    assert found.misses == {"fold": 14}
