"""Replay recorded sessions into a ledger as if an agent ran, with usage, folds, a pause and a pin.

    python scripts/page_example.py example.db                  # the recording that ships with foldline
    python scripts/page_example.py example.db session.jsonl    # your own, in a small window

The page's screenshots and browser tests show such a ledger.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import foldline
from foldline.cli.demo import recording
from foldline.message import Message, Usage, system
from foldline.replay import CachedCounter, CostAccount
from foldline.session import Ledger, Session
from foldline.session.transcript_session import without_usage
from foldline.wire import read

MODEL = "claude-sonnet-5"
STEP_S, PAUSE_S = 40.0, 1500.0
"""Seconds between two requests, and the length of the pause in which the cache expires."""
LENGTH_S = 3 * 3600.0
"""How many seconds ago the first request was made."""


class Clock:
    """The time in the recording. The ledger uses this clock for the times of folds."""

    def __init__(self, at: float) -> None:
        self.at = at

    def __call__(self) -> float:
        """The time in seconds since 1970."""
        return self.at


def play(session: Session, messages: Iterable[Message], clock: Clock, *, pause_at: int = 0) -> None:
    """Add messages as an agent does: build the view before each reply, and add the reply with its usage."""
    counter = CachedCounter(session.model.name)
    account = CostAccount(counter, session.state.tools + 3_000)
    at, requests = clock.at, 0
    for message in without_usage(messages):
        clock.at = at = at + STEP_S / 4
        timed = replace(message, meta=replace(message.meta, at=at, model=session.model.name))
        if message.role == "assistant":
            requests += 1
            clock.at = at = at + (PAUSE_S if requests == pause_at else STEP_S)
            view, before = session.view(), account.read
            tokens = account.send(view.repaired_messages(), at)
            read = account.read - before
            usage = Usage(
                input=12, cache_read=read, cache_write=max(0, tokens - read - 12), output=session.size(message)
            )
            timed = replace(timed, meta=replace(timed.meta, usage=usage, at=at))
        session.add(timed)


def example_ledger(path: str | Path, files: Iterable[str] = (), *, window: int = 24_000) -> Ledger:
    """A ledger with a long session that was folded several times, and two short ones."""
    clock = Clock(time.time() - LENGTH_S)
    opened = foldline.open(path, clock=clock)
    recorded = recording()
    policy = foldline.Policy.preset("balanced").but(window_tokens=window, reply_tokens=2_000, digest_tokens=1_200)
    session = opened.session("fix-the-parser", model=MODEL, policy=policy, tools=recorded.tools)
    play(session, recorded.messages, clock, pause_at=31)
    session.pin(handle="#1", name="task")
    short = opened.session("fix-the-parser/search", model=MODEL, tools=recorded.tools)
    play(short, [system("You search the code for another agent."), *recorded.messages[1:24]], clock)
    notes = opened.session("release-notes", model="gpt-5.1", tools=recorded.tools)
    play(notes, [system("You write release notes."), *recorded.messages[1:60]], clock)
    for file in files:
        transcript = read(file)
        name = Path(file).name.split(".")[0][:40]
        own = opened.session(name, model=MODEL, policy=policy.but(window_tokens=64_000))
        play(own, transcript.messages, clock, pause_at=31)
    return opened


if __name__ == "__main__":
    example_ledger(sys.argv[1], sys.argv[2:]).close()
