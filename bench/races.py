"""Runs two writers and a worker on one session, each in its own process, and checks the ledger.

    python -m bench races --seconds 60              # SQLite
    python -m bench races --seconds 60 --postgres

The writers append (with the expected key), branch, move back, pin, unfold and cancel jobs; the worker claims the fold,
waits a little like a model would, and commits it. All processes check that what they read is consistent. At the end,
every acknowledged operation must be in the log once, every fold must have been made by the worker that held its job,
and `verify` must find no fault.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from bench.servers import places
from foldline import ledger
from foldline.errors import Conflict, InputError
from foldline.fold import Digest, Fold
from foldline.ledger import Branch, Head, Store
from foldline.ledger.records import BranchState
from foldline.message import assistant, user

SESSION = "contested"
LEASE_S = 0.05
WRITER, WORKER = "writer", "worker"


def look(store: Store, branch: Branch) -> BranchState:
    """Read a branch and check that it is consistent."""
    state = store.state(branch)
    length = state.head.length
    rows = list(store.read(state.head, start=max(0, length - 50)))
    assert [row.position for row in rows] == list(range(max(0, length - 50), length)), "the positions have a gap"
    assert not rows or rows[-1].key == state.head.key, "the head does not name the newest message"
    assert all(fold.cut <= length for fold in state.folds), "a fold covers messages that do not exist"
    assert all(pin.position is None or pin.position < length for pin in state.pins), (
        "a pin is on a message that does not exist"
    )
    return state


def write(store: Store, who: str, number: int) -> Iterator[tuple[str, Branch, Head]]:
    """One operation of a writer, and its acknowledgement."""
    branch = random.choice(store.branches(SESSION))
    head = look(store, branch).head
    what = random.choices(("append", "move", "fork", "pin", "unfold", "cancel", "clear"), (60, 6, 1, 6, 6, 10, 1), k=1)[
        0
    ]
    if what == "append" or not head.length:
        said = [user(f"{who} {number}"), assistant("x" * random.randrange(500))]
        yield "append", branch, store.append(branch, said, expected=head.key).head
    elif what == "move":
        said = [user(f"{who} {number}")]
        back = max(0, head.length - random.randrange(10))
        yield "append", branch, store.append(branch, said, expected=head.key, at=back).head
    elif what == "fork" and len(store.branches(SESSION)) < 6:
        made = store.fork(branch, f"{who}-{number}", at=random.randrange(head.length))
        yield "branch", made, store.head(made)
    elif what == "pin":
        yield "pin", branch, store.pin(branch, f"p{number % 5}", random.randrange(head.length), mark=head.mark)
    elif what == "unfold":
        yield "unfold", branch, store.unfold(branch, mark=head.mark)
    elif what == "cancel":
        store.jobs.cancel(branch)
    elif what == "clear":
        yield "move", branch, store.move(branch, mark=head.mark)


def work(store: Store, who: str) -> Iterator[tuple[str, Branch, Head]]:
    """One job of the worker."""
    branch = random.choice(store.branches(SESSION))
    state = look(store, branch)
    claim = store.jobs.claim(branch, lease_s=LEASE_S, deadline_s=LEASE_S * 3, holder=who)
    if claim is None:
        return
    time.sleep(random.random() * LEASE_S * random.choice((0.1, 0.5, 2)))
    digest = Digest(message=user(f"{who} {claim.fence}", kind="digest"))
    fold = Fold(cut=state.head.length // 2, digest=digest, made_at=state.head.length)
    try:
        head = store.append_fold(branch, fold, mark=state.head.mark, claim=claim)
    except Conflict as refused:
        if "held" not in str(refused):
            store.jobs.fail(claim, str(refused))
        raise
    yield "fold", branch, head


def take_part(url: str, role: str, who: str, seconds: float) -> None:
    """Run one process: print every acknowledgement."""
    store = ledger.open(url)
    random.seed(who)
    until, number = time.monotonic() + seconds, 0
    refused = 0
    while time.monotonic() < until:
        number += 1
        try:
            for kind, branch, head in write(store, who, number) if role == WRITER else work(store, who):
                print(json.dumps([kind, branch.name, head.seq, head.length, head.key.hex()]))
        except (Conflict, InputError):
            refused += 1
    print(json.dumps(["refused", "", refused, 0, ""]))
    store.close()


def run(url: str, seconds: float) -> tuple[Counter[str], list[str]]:
    """Run all processes. Returns the number of acknowledgements of each kind, and the faults."""
    store = ledger.open(url)
    store.append(store.session(SESSION), [user("begin")])
    parts = [(WRITER, "one"), (WRITER, "two"), (WORKER, "three"), (WORKER, "four")]
    command = [sys.executable, "-m", "bench", "races", "--seconds", str(seconds), "--url", url]
    processes = [
        subprocess.Popen([*command, "--part", role, "--who", who], stdout=subprocess.PIPE, text=True)
        for role, who in parts
    ]
    acknowledged: list[list[Any]] = []
    wrong: list[str] = []
    for process in processes:
        output, _ = process.communicate()
        acknowledged += [json.loads(line) for line in output.splitlines()]
        if process.returncode:
            wrong.append("a process found a fault, see above")
    wrong += [str(fault) for fault in store.verify()] + missing(store, acknowledged)
    store.close()
    counts = Counter({kind: 0 for kind, *_ in acknowledged})
    for kind, _, number, *_ in acknowledged:
        counts[kind] += number if kind == "refused" else 1
    return counts, wrong


def rows_of(store: Store, sql: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """The rows of a query."""
    return store.tx.pool.read(lambda connection: connection.run(sql, values))


def missing(store: Store, acknowledged: list[list[Any]]) -> list[str]:
    """The acknowledged operations that are missing in the log, or are in it more than once."""
    sql = "SELECT seq, kind, length, tip, op FROM entries WHERE owner = ? AND branch = ? ORDER BY seq"
    logs: dict[str, dict[int, tuple[Any, ...]]] = {}
    wrong: list[str] = []
    for branch in store.branches(SESSION):
        rows = rows_of(store, sql, (store.tx.owner.id, branch.id))
        logs[branch.name] = {row[0]: row for row in rows}
        folds = Counter(row[4] for row in rows if row[1] == "fold")
        wrong += [f"{branch.name}: fold {op} was committed {count} times" for op, count in folds.items() if count > 1]
    seen: Counter[tuple[str, int]] = Counter()
    for kind, name, seq, length, key in acknowledged:
        if kind == "refused":
            continue
        row = logs[name].get(seq)
        if row is None or (row[1], row[2], row[3].hex()) != (kind, length, key):
            wrong.append(f"{name} entry {seq}: {kind} was acknowledged, but the log has {row}")
        seen[name, seq] += 1
    return wrong + [f"{where}: acknowledged to {count}" for where, count in seen.items() if count > 1]


Part = Callable[[str, str, str, float], None]
Run = Callable[[str, float], tuple[Counter[str], list[str]]]


def main(argv: list[str]) -> int:
    return contest(argv, "bench races", __doc__, take_part, run)


def contest(argv: list[str], prog: str, about: str, part: Part, contested: Run) -> int:
    """Run one of the processes, or all of them, and print the result."""
    parser = argparse.ArgumentParser(prog=prog, description=about)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--who", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.part:
        part(options.url, options.part, options.who, options.seconds)
        return 0
    with places(on_postgres=options.postgres) as urls:
        counts, wrong = contested(next(urls), options.seconds)
    print(", ".join(f"{count:,} {kind}" for kind, count in counts.most_common()))
    print("\n".join(wrong[:20]) or "no operation lost, none stored twice, no other fault")
    return int(bool(wrong))
