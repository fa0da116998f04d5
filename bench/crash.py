"""Kills a process that writes to a ledger, many times, and checks the ledger after each kill.

    python -m bench crash --runs 1000               # SQLite
    python -m bench crash --runs 200 --postgres

The process appends, folds, pins, branches, moves and claims jobs as fast as it can, and prints the head of its branch
after each operation as an acknowledgement. It is killed (SIGKILL) at a random moment. After a kill, every acknowledged
operation must be stored, and at most one operation that was not acknowledged. `verify` must find no fault. A job that
the process held must be claimable after its lease. The next run continues with the same ledger.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Any

from bench.servers import places
from foldline import ledger
from foldline.fold import Digest, Fold
from foldline.ledger import Branch, Store
from foldline.message import Message, assistant, user

RUNS_PER_LEDGER = 50
"""Number of runs with one ledger. It is limited because each run verifies the whole ledger."""
LONGEST_S = 0.2
"""Maximum lifetime of a process after its first acknowledgement."""
LEASE_S = 0.2
MOST = 2
"""Maximum number of entries that one operation writes."""


def state_of(store: Store, branch: Branch) -> list[Any]:
    """The state of a branch, for comparison."""
    state = store.state(branch)
    folds = [(fold.seq, fold.cut) for fold in state.folds]
    pins = [(pin.name, pin.position) for pin in state.pins]
    return [state.head.seq, state.head.length, state.head.key.hex(), folds, pins]


def unique_turn(run: int, number: int) -> list[Message]:
    """A turn with unique text."""
    return [user(f"run {run} turn {number} " + "x" * random.randrange(2_000)), assistant(f"reply {number}")]


def step(store: Store, branch: Branch, run: int, number: int) -> None:
    """One random operation."""
    head = store.head(branch)
    fold = Fold(cut=head.length // 2, digest=Digest(message=user("so far", kind="digest")), made_at=head.length)
    match random.choice(("append", "append", "append", "fold", "job", "pin", "move", "unfold")):
        case "fold":
            store.append_fold(branch, fold, mark=head.mark)
        case "job":
            claim = store.jobs.claim(branch, lease_s=LEASE_S, deadline_s=LEASE_S * 2, holder=str(os.getpid()))
            if claim is not None:
                store.jobs.renew(claim, lease_s=LEASE_S)
                store.append_fold(branch, fold, claim=claim)
        case "pin" if head.length:
            store.pin(branch, f"p{number}", random.randrange(head.length))
        case "move" if head.length and random.random() < 0.3:
            store.append(branch, unique_turn(run, number), at=head.length // 2)
        case "unfold" if store.state(branch).folds:
            store.unfold(branch)
        case _:
            store.append(branch, unique_turn(run, number), expected=head.key)


def write(url: str, run: int, pipe: int) -> None:
    """The main function of the process that is killed."""
    store = ledger.open(url)
    main = store.session(f"run {run}")
    number = 0
    while True:
        line = json.dumps([run, *state_of(store, main)]) + "\n"
        os.write(pipe, line.encode())
        step(store, main, run, number)
        number += 1


Use = Callable[[str, int, int], None]
"""The main function of a process. It takes the URL, the run number and the pipe for acknowledgements, and runs until it
is killed.
"""


def killed(url: str, run: int, use: Use, longest_s: float = LONGEST_S) -> list[Any] | None:
    """The last acknowledgement of a process before it was killed; None if there was none."""
    read, pipe = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            random.seed(run)
            use(url, run, pipe)
        except BaseException:  # noqa: BLE001  # the error is printed, and the process ends
            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(pipe)
    with os.fdopen(read) as lines:
        first = lines.readline()
        time.sleep(random.random() * longest_s)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        whole = [line for line in [first, *lines] if line.endswith("\n")]
    assert os.WIFSIGNALED(status), "the process ended by itself, see above"
    return json.loads(whole[-1]) if whole else None


def check(url: str, last: list[Any]) -> str:
    """The faults after a kill; empty if there are none."""
    store = ledger.open(url, clock=lambda: time.time() + 3 * LEASE_S)
    try:
        settled(store)
        faults = [str(fault) for fault in store.verify()]
        if faults:
            return f"verify: {faults[0]}"
        main = store.session(f"run {last[0]}")
        now = json.loads(json.dumps(state_of(store, main)))
        if not last[1] <= now[0] <= last[1] + MOST:
            return f"entry {last[1]} was acknowledged, but the newest entry is {now[0]}"
        if now[0] == last[1] and now != last[1:]:
            return f"acknowledged {last[1:]}, found {now}"
        if sum(1 for _ in store.read(main)) != now[1]:
            return "messages are missing"
        if store.jobs.claim(main, lease_s=1, deadline_s=1) is None:
            return "a job is stuck"
        store.append(main, [user("and on it goes")])
        return ""
    finally:
        store.close()


def settled(store: Store) -> None:
    """Wait until the server has noticed that its client is gone. Until then, it may still commit a transaction."""
    if store.tx.pool.database.name != "postgres":
        return
    sql = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    while store.tx.read(lambda connection: connection.run(sql + " AND backend_type = 'client backend'"))[0][0]:
        time.sleep(0.002)


def runs(url: str, first: int, count: int) -> Counter[str]:
    """Kill a number of processes on one ledger, and count the results."""
    found: Counter[str] = Counter()
    for run in range(first, first + count):
        last = killed(url, run, write)
        if last is None:
            found["killed before the first acknowledgement"] += 1
            continue
        wrong = check(url, last)
        found[wrong or "sound"] += 1
        found["operations acknowledged"] += last[1]
    return found


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench crash", description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--postgres", action="store_true")
    options = parser.parse_args(argv)
    found: Counter[str] = Counter()
    with places(on_postgres=options.postgres) as urls:
        for first in range(0, options.runs, RUNS_PER_LEDGER):
            found += runs(next(urls), first, min(RUNS_PER_LEDGER, options.runs - first))
            print(f"\r{min(first + RUNS_PER_LEDGER, options.runs)} of {options.runs}", end="", file=sys.stderr)
    print(file=sys.stderr)
    for what, count in found.most_common():
        print(f"{count:>8,}  {what}")
    return int(found["sound"] != options.runs - found["killed before the first acknowledgement"])
