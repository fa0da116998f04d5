"""The history of a framework whose own list becomes the view."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import foldline
from foldline import Policy, Session
from foldline.integrations.followed_session import MAX_BRANCHES
from foldline.integrations.item_codec import ItemCodec, wire_codec
from foldline.integrations.stored_history import StoredHistory

POLICY = Policy.preset("balanced").but(window_tokens=4_000, reply_tokens=400)


def turn(number: int) -> list[dict[str, Any]]:
    return [{"role": "user", "content": f"Question {number}: " + "why " * 300}, {"role": "assistant", "content": "So."}]


def test_a_list_that_became_the_view_is_continued() -> None:
    session = Session(policy=POLICY)
    history, items = StoredHistory(session, wire_codec("openai")), []
    for number in range(12):
        items += turn(number)
        history.take_back(items)
        items = history.show()
        items[0]["stamp"] = number  # a framework may add fields of its own
    assert session.folds >= 1
    assert len(items) < 24 == len(session) == len(history.items())


def test_threads_can_append_at_once() -> None:
    codec = wire_codec("openai")

    def read_slowly(item: Any) -> Any:
        time.sleep(0.002)
        return codec.read(item)

    history = StoredHistory(Session(policy=POLICY), ItemCodec(read=read_slowly, write=codec.write))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: history.append([{"role": "user", "content": f"{number}"}]), range(40)))
    assert len(history.items()) == len(history.followed.session) == 40


def test_a_list_that_the_framework_changed_becomes_the_history() -> None:
    history = StoredHistory(Session(policy=POLICY), wire_codec("openai"))
    history.take_back([*turn(0), *turn(1)])
    history.show()
    history.take_back([*turn(0), *turn(2)])
    assert history.items() == [*turn(0), *turn(2)]


def _pop(history: StoredHistory) -> None:
    history.pop()


def _pop_and_append(history: StoredHistory) -> None:
    history.pop()
    history.pop()
    history.append(turn(2))


def _shorten(history: StoredHistory) -> None:
    history.replace(turn(0))


def _replace(history: StoredHistory) -> None:
    history.replace([*turn(3), *turn(4)])


def _append_system_message(history: StoredHistory) -> None:
    history.append([{"role": "system", "content": "From now on, answer in French."}, *turn(2)])


def _append_after_another_request(history: StoredHistory) -> None:
    history.followed.prepare(turn(5))  # a filter of the framework may send other items than the stored ones
    history.append(turn(2))


def _make_many_requests(history: StoredHistory) -> None:
    for number in range(6, 6 + 2 * MAX_BRANCHES):
        history.followed.prepare(turn(number))
    history.append(turn(2))


@pytest.mark.parametrize(
    "change",
    [
        _pop,
        _pop_and_append,
        _shorten,
        _replace,
        _append_system_message,
        _append_after_another_request,
        _make_many_requests,
    ],
)
def test_a_history_that_was_changed_is_the_same_after_a_restart(
    change: Callable[[StoredHistory], None], tmp_path: Path
) -> None:
    codec = wire_codec("openai")
    with foldline.open(tmp_path / "ledger.db") as ledger:
        history = StoredHistory(ledger.session("work", policy=POLICY), codec)
        history.append([*turn(0), *turn(1)])
        change(history)
        expected = history.items()
    with foldline.open(tmp_path / "ledger.db") as ledger:
        again = StoredHistory(ledger.session("work"), codec)
        assert again.items() == expected
        assert again.prepare().items == expected
