"""Kills a process that uses a session, many times, and opens the session again after each kill.

    python -m bench session_crash --runs 200               # SQLite
    python -m bench session_crash --runs 50 --postgres

The process adds turns, folds manually, pins, unfolds, and has folds made in the background. After each step it prints
the version of its record and a hash of its view. It is killed (SIGKILL) at a random moment. The session that is opened
again must have every acknowledged message. It must have the same view if nothing was written after the last
acknowledgement. The view must be valid and fit, a running job must be claimable after its lease, and `verify` must find
no fault.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import time
from collections import Counter
from contextlib import suppress
from typing import Any

import foldline
from bench.crash import killed, settled
from bench.servers import places
from foldline.digest.digester import Digester, DigesterCall
from foldline.errors import Conflict
from foldline.message import assistant, user
from foldline.policy import Policy
from foldline.session import Session
from foldline.session.lease import LEASE_S
from foldline.testing import Scripted, assert_sendable, proper

POLICY = Policy.preset("balanced").but(
    window_tokens=8_000, reply_tokens=0, counter="chars/4", rules=["fold when request > 40%"], target_ratio=0.2
)
LONGEST_S = 0.3
"""Maximum lifetime of a process after its first acknowledgement."""
RUNS_PER_LEDGER = 25
"""Number of runs with one ledger. It is limited because each run verifies the whole ledger."""

SOUND, SAID, COMPARED = "sound", "messages acknowledged", "views compared"
TOO_SOON = "killed before the first acknowledgement"


def model() -> Digester:
    """A model that takes a moment to answer."""

    def write(ask: DigesterCall) -> str:
        time.sleep(random.random() * 0.02)
        return proper(ask)

    return Digester(complete=Scripted(write), model="model", window=200_000)


def shown(session: Session) -> str:
    """The hash of the current view. No fold is made."""
    session.plan()
    texts = [[message.role, message.text] for message in session.state.view().messages]
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()


def version_and_view(session: Session) -> list[Any]:
    """The version of the record, and the hash of the view."""
    view = shown(session)
    return [*session.record.version(), view]


def step(session: Session, number: int) -> None:
    """One random operation."""
    match random.choice(("add", "add", "add", "add", "fold", "pin", "unfold")):
        case "fold":
            session.fold(force=random.random() < 0.3)
        case "pin":
            session.pin(f"note {number}", name="note")
        case "unfold" if session.folds:
            session.unfold()
        case _:
            session.add(user(f"question {number} " + "w" * random.randrange(2_000)), assistant(f"answer {number}"))
    session.view()


def use(url: str, run: int, pipe: int) -> None:
    """The main function of the process that is killed."""
    ledger = foldline.open(url, digester=model())
    session = ledger.session(f"run {run}", policy=POLICY)
    number = 0
    while True:
        mark, view = session.state.version, shown(session)
        if session.state.version == mark == session.record.version():  # otherwise the worker wrote in between
            os.write(pipe, (json.dumps([run, *mark, view]) + "\n").encode())
        with suppress(Conflict):  # the worker wrote first, so nothing was written here
            step(session, number)
        number += 1


def check(url: str, last: list[Any], found: Counter[str]) -> str:
    """The faults after a kill; empty if there are none."""
    run, length, mark, view = last
    with foldline.open(url, clock=lambda: time.time() + LEASE_S + 1) as ledger:
        settled(ledger.store)
        faults = [str(fault) for fault in ledger.verify()]
        if faults:
            return f"verify: {faults[0]}"
        session = ledger.session(f"run {run}")
        now = version_and_view(session)
        if now[0] < length or now[1] < mark:
            return f"{length} messages and mark {mark} were acknowledged, but the ledger has {now[:2]}"
        if now[:2] == [length, mark]:
            found[COMPARED] += 1
            if now[2] != view:
                return "the view is another one"
        if sum(1 for _ in session.record.read(0, now[0])) != now[0]:
            return "messages are missing"
        if session.timeline.messages:
            again = session.view()
            assert_sendable(again.render("anthropic"))
            if again.tokens > again.usable:
                return "the view does not fit"
        if ledger.store.jobs.claim(ledger.store.session(f"run {run}"), lease_s=1, deadline_s=1) is None:
            return "a job is stuck"
    return ""


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench session_crash", description=__doc__)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--postgres", action="store_true")
    options = parser.parse_args(argv)
    found: Counter[str] = Counter()
    with places(on_postgres=options.postgres) as urls:
        url = ""
        for run in range(options.runs):
            if run % RUNS_PER_LEDGER == 0:
                url = next(urls)
            last = killed(url, run, use, LONGEST_S)
            found[(check(url, last, found) if last is not None else TOO_SOON) or SOUND] += 1
            found[SAID] += last[1] if last is not None else 0
    print(", ".join(f"{count:,} {what}" for what, count in found.items()))
    return int(bool(set(found) - {SOUND, SAID, COMPARED, TOO_SOON}))
