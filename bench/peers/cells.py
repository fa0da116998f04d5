"""The measurements. Each function measures one peer and returns one result, within a time limit."""

from __future__ import annotations

import gc
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate
from statistics import median
from typing import Any, Protocol

from bench.peers import talks
from bench.peers.talk import Talk, faults, shared, size

TURN_BUDGET = 100_000
DRIVE_BUDGET = 20_000
FIRST_LENGTH = 10_000
WARM = 10
"""Number of turns before the measurement starts."""
BLOCKS, BLOCK = 40, 50
"""Number of blocks, and number of turns in a block. The fastest block counts, because other work on the machine slows
the other blocks down.
"""


class Peer(Protocol):
    """A package that keeps a conversation within a budget. Only `add` and `view` are timed."""

    def native(self, talk: Talk) -> Any:
        """The messages in the form that the peer takes."""

    def add(self, native: Any) -> None:
        """Append messages in the peer's form."""

    def view(self) -> Any:
        """The view: the messages that would be sent now."""

    def said(self, view: Any) -> Talk:
        """A view as a `Talk`."""


Make = Callable[[int], Peer]


class TookTooLong(BaseException):
    """A measurement took too long. This is not an `Exception`, so that a peer does not catch it."""


@contextmanager
def limit(seconds: float) -> Iterator[None]:
    """Raise `TookTooLong` in the `with` block after this many seconds."""

    def ring(*_: object) -> None:
        raise TookTooLong

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@dataclass(slots=True)
class Tally:
    """The number of views, the number of bad views, and the reasons."""

    of: int = 0
    bad: int = 0
    why: Counter[str] = field(default_factory=Counter)
    kept: int = 0
    """Tokens that are also at the start of the next view, summed over all views."""
    sent: int = 0
    """Tokens of all views that are followed by another view."""

    def book(self, found: list[str]) -> None:
        """Count one view."""
        self.of += 1
        self.bad += bool(found)
        self.why.update(found)

    @property
    def reuse(self) -> float:
        """The share of a view's tokens that are also at the start of the next view."""
        return self.kept / self.sent if self.sent else 1.0


def turn_cost(make: Make, length: int, seconds: float) -> float:
    """The time to append a turn and make the view, in microseconds: the median of the fastest block.

    `length` is the number of messages in the history.
    """
    talk, more = talks.plain(length)
    peer = make(TURN_BUDGET)
    native = peer.native(talk)
    peer.add(native)
    peer.view()
    del talk, native
    gc.collect()
    until = time.perf_counter() + seconds
    medians: list[float] = []
    taken = [_turn(peer, next(more)) for _ in range(WARM)]
    for _ in range(BLOCKS):
        taken = []
        while len(taken) < BLOCK and (len(taken) < 3 or time.perf_counter() < until):
            taken.append(_turn(peer, next(more)))
        medians.append(median(taken))
        if time.perf_counter() > until:
            break
    return min(medians) * 1e6


def _turn(peer: Peer, turn: Talk) -> float:
    native = peer.native(turn)
    start = time.perf_counter()
    peer.add(native)
    peer.view()
    return time.perf_counter() - start


def first_view(make: Make, repeats: int) -> float:
    """The time to add a new history and make its first view, in milliseconds: the minimum of several runs.

    Processor time is measured, because other work on the machine may run in between.
    """
    talk, _ = talks.plain(FIRST_LENGTH)
    best = float("inf")
    for _ in range(repeats):
        peer = make(TURN_BUDGET)
        native = peer.native(talk)
        gc.collect()
        start = time.process_time()
        peer.add(native)
        peer.view()
        best = min(best, time.process_time() - start)
    return best * 1e3


def bad_of(make: Make, cases: Iterator[tuple[Talk, int]]) -> Tally:
    """Count the bad views of conversations that are cut once."""
    tally = Tally()
    for talk, budget in cases:
        tally.book(judge(make, talk, budget))
    return tally


def judge(make: Make, talk: Talk, budget: int) -> list[str]:
    """The faults of a view of a conversation."""
    try:
        peer = make(budget)
        peer.add(peer.native(talk))
        return faults(peer.said(peer.view()), talk, budget)
    except Exception as error:  # noqa: BLE001 (any error of a peer counts as a fault)
        return [f"{type(error).__name__}: {_short(error)}"]


def drive(make: Make, sessions: Iterator[list[Talk]]) -> Tally:
    """Count the bad views in all requests of whole sessions, and the tokens that each view shares with the next one."""
    tally = Tally()
    for session in sessions:
        peer, talk, before = make(DRIVE_BUDGET), Talk(), Talk()
        for piece in session:
            talk += piece
            try:
                peer.add(peer.native(piece))
                view = peer.said(peer.view())
            except Exception as error:  # noqa: BLE001
                tally.book([f"{type(error).__name__}: {_short(error)}"])
                continue
            tally.book(faults(view, talk, DRIVE_BUDGET))
            if before:
                tally.kept += shared(before, view)
                tally.sent += size(before)
            before = view
    return tally


def reuse_bound(sessions: Iterator[list[Talk]]) -> tuple[float, float]:
    """The average number of tokens that a request adds, and the largest possible reuse of any peer.

    Tokens that no longer fit the budget must leave the view. They are then missing in the common prefix of two views.
    """
    added = sent = left = requests = 0
    for session in sessions:
        sizes = list(accumulate(size(piece) for piece in session))
        added, requests = added + sizes[-1], requests + len(sizes)
        sent += sum(min(total, DRIVE_BUDGET) for total in sizes[:-1])
        left += max(0, sizes[-1] - DRIVE_BUDGET)
    return added / max(1, requests), 1 - left / max(1, sent)


def _short(error: Exception) -> str:
    words = str(error).split("\n", maxsplit=1)[0]
    return words if len(words) <= 60 else words[:57] + "..."
