"""The measurements: each gives one figure, for whoever is measured, within a bounded time."""

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
"""Turns that are not counted."""
BLOCKS, BLOCK = 40, 50
"""Turns are timed in blocks and the quietest block is taken: on a shared machine the rest is other people's work."""


class Peer(Protocol):
    """Whoever keeps a conversation under a budget. Only `add` and `view` are timed."""

    def native(self, talk: Talk) -> Any:
        """The messages in the peer's own form."""

    def add(self, native: Any) -> None:
        """Append them."""

    def view(self) -> Any:
        """What would be sent now."""

    def said(self, view: Any) -> Talk:
        """A view in plain form."""


Make = Callable[[int], Peer]


class TookTooLong(BaseException):
    """A cell's time is up. Not an `Exception`, so that nobody who catches everything goes on."""


@contextmanager
def limit(seconds: float) -> Iterator[None]:
    """Stop whatever runs inside after so many seconds."""

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
    """How many were bad, of how many, and why."""

    of: int = 0
    bad: int = 0
    why: Counter[str] = field(default_factory=Counter)
    kept: int = 0
    """Tokens of all views that stayed at the start of the next."""
    sent: int = 0
    """Tokens of all views that had a next."""

    def book(self, found: list[str]) -> None:
        """Book one view."""
        self.of += 1
        self.bad += bool(found)
        self.why.update(found)

    @property
    def reuse(self) -> float:
        """Share of the earlier views' tokens that stayed a stable prefix."""
        return self.kept / self.sent if self.sent else 1.0


def turn_cost(make: Make, length: int, seconds: float) -> float:
    """Microseconds to append a turn and produce the view, warm, at a length of history; the quietest block's median."""
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
    """Milliseconds to take in a history never seen before and produce its first view; the best of some tries.

    Of processor time: it takes long enough for the machine to do other people's work in between.
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
    """Bad views among talks that are cut once."""
    tally = Tally()
    for talk, budget in cases:
        tally.book(judge(make, talk, budget))
    return tally


def judge(make: Make, talk: Talk, budget: int) -> list[str]:
    """What is bad about the one view of a talk."""
    try:
        peer = make(budget)
        peer.add(peer.native(talk))
        return faults(peer.said(peer.view()), talk, budget)
    except Exception as error:  # noqa: BLE001 (a peer may raise anything, and that is the finding)
        return [f"{type(error).__name__}: {_short(error)}"]


def drive(make: Make, sessions: Iterator[list[Talk]]) -> Tally:
    """Bad views among all requests of whole sessions, and how much of each view the next one can reuse."""
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
    """Tokens that a request adds on average, and what nobody's reuse can exceed.

    What was added and no longer fits has left, and left a view's prefix when it did; no view is larger than its budget.
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
