"""Runs two agents and a worker on one session, each in its own process, and checks views and ledger.

    python -m bench session_races --seconds 60              # SQLite
    python -m bench session_races --seconds 60 --postgres   # jobs by PgQueuer

The agents add turns, read their view each time, fold manually, branch, clear, pin, unfold and cancel. The folds of one
agent are made in a thread, those of the other by the worker. Every few seconds one of the three processes is killed
(SIGKILL) and started again. A digest takes some time, as with a real model. Every view must be valid, fit, and contain
the newest prompt. Between two folds, a view may only grow at its end. At the end, every acknowledged message must be in
the ledger, each fold must have been made once by the worker that held its job, no job may be stuck, and `verify` must
find no fault.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import foldline
from bench.races import contest, rows_of
from foldline.digest.digester import Digester, DigesterCall
from foldline.errors import Conflict, InputError
from foldline.events import Event
from foldline.ledger import Store
from foldline.message import Message, assistant, user
from foldline.policy import Policy
from foldline.session import Ledger, Session
from foldline.session.worker_process import JobReport, WorkerProcess
from foldline.testing import Scripted, assert_sendable, proper

NAME = "contested"
POLICY = Policy.preset("balanced").but(
    window_tokens=12_000, reply_tokens=0, counter="chars/4", rules=["fold when request > 50%"], target_ratio=0.3
)
LEASE_S, KILL_S = 1.0, 3.0
LONGEST_S = 0.3
"""Maximum time for a digest."""
BRANCHES = 4
WHAT = ("append", "fold", "unfold", "clear", "pin", "branch", "cancel")
OFTEN = (80, 3, 4, 1, 2, 1, 4)


def slow(ask: DigesterCall) -> Any:
    """A model that is slow, and sometimes fails."""
    time.sleep(random.random() * LONGEST_S)
    return RuntimeError("the model is out") if random.random() < 0.05 else Scripted(proper)(ask)


def model() -> Digester:
    return Digester(complete=Scripted(slow), model="slow", window=200_000)


class Agent:
    """One process that uses the session."""

    def __init__(self, ledger: Ledger, who: str) -> None:
        self.ledger, self.who = ledger, who
        self.sessions: dict[str, Session] = {}
        self.seen: dict[str, tuple[int, tuple[Message, ...]]] = {}

    def step(self, number: int) -> None:
        """One random operation, then a check of the view."""
        names = [branch.name for branch in self.ledger.store.branches(NAME)]
        name = random.choice(names)
        session = self.sessions.setdefault(name, self.ledger.session(NAME, branch=name))
        what = random.choices(WHAT, OFTEN, k=1)[0]
        if what == "append":
            self.append(session, number)
        elif what == "fold":
            session.fold(force=random.random() < 0.5)
        elif what == "pin":
            session.pin(f"{self.who} note {number}", name="note")
        elif what == "branch" and len(names) < BRANCHES:
            session.branch(f"{self.who}-{number}")
        elif what in {"unfold", "clear", "cancel"}:
            getattr(session, what)()
        say(what)
        self.look(name, session)

    def append(self, session: Session, number: int) -> None:
        """Add a turn with unique text, and acknowledge it."""
        said = [
            f"{self.who} question {number} " + "w" * random.randrange(900),
            f"{self.who} answer {number} " + "a" * 900,
        ]
        session.add(user(said[0]), assistant(said[1]))
        say("said", texts=said)

    def look(self, name: str, session: Session) -> None:
        """Check a view: its size, its validity, the newest prompt, and its unchanged beginning."""
        view, timeline = session.view(), session.timeline
        if not timeline.messages:
            return
        assert view.tokens <= view.usable, "the view does not fit"
        assert_sendable(view.render("anthropic"))
        texts = [message.text for message in view.messages]
        assert not timeline.prompts or timeline.messages[timeline.prompts[-1]].text in texts, (
            "the newest prompt is missing"
        )
        mark, before = self.seen.get(name, (-1, ()))
        if mark == session.state.version.entry:
            assert view.messages[: len(before)] == before, "the view changed between two folds"
        self.seen[name] = session.state.version.entry, view.messages


def say(kind: str, **facts: Any) -> None:
    """Print an acknowledgement."""
    print(json.dumps({"kind": kind, **facts}), flush=True)


def on_event(event: Event) -> None:
    if event.kind == "committed":
        say("committed")


def take_part(url: str, role: str, who: str, seconds: float) -> None:
    """Run one process."""
    random.seed(f"{who} {time.time()}")
    if role == "worker":
        with foldline.open(url) as ledger:
            process = WorkerProcess(ledger.store, digester=model(), on_report=made, lease_s=LEASE_S, poll_s=0.2)
            asyncio.run(process.run(url, asyncio.Event()))
    where: Any = "thread" if role == "thread" else "process"
    with foldline.open(url, digester=model(), listener=on_event, worker=where) as ledger:
        agent, until, number = Agent(ledger, who), time.monotonic() + seconds, 0
        while time.monotonic() < until:
            number += 1
            try:
                agent.step(number)
            except (Conflict, InputError) as refused:
                say("refused", why=type(refused).__name__)
        ledger.wait(10)


def made(report: JobReport) -> None:
    if report.outcome == "committed":
        say("committed")


def run(url: str, seconds: float) -> tuple[Counter[str], list[str]]:
    """Run all processes. Returns the number of acknowledgements of each kind, and the faults."""
    with foldline.open(url) as ledger:
        ledger.session(NAME, policy=POLICY).add(user("begin"))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        files: list[Path] = []

        until = time.monotonic() + seconds

        def start(role: str) -> subprocess.Popen[str]:
            files.append(folder / f"{len(files)}")
            left = str(max(0.1, until - time.monotonic()))
            command = [sys.executable, "-m", "bench", "session_races", "--seconds", left, "--url", url, "--part", role]
            out = stack.enter_context(files[-1].open("w"))
            return subprocess.Popen([*command, "--who", f"{role}{len(files)}"], stdout=out, text=True)

        parts, killed = {role: start(role) for role in ("thread", "process", "worker")}, 0
        while time.monotonic() < until:
            time.sleep(random.random() * KILL_S)
            role = random.choice(list(parts))
            if role != "worker" and parts[role].poll() is not None:
                break
            parts[role].kill()
            parts[role].wait()
            killed += 1
            parts[role] = start(role)
        wrong = ["an agent found a fault, see above"] * sum(parts[role].wait() != 0 for role in ("thread", "process"))
        time.sleep(2 * LEASE_S + 1)
        parts["worker"].kill()
        parts["worker"].wait()
        lines = [line for file in files for line in file.read_text().split("\n")[:-1]]
    said = [json.loads(line) for line in lines]
    counts = Counter(line["kind"] for line in said)
    counts["kills"] = killed
    with foldline.open(url) as ledger:
        wrong += [str(fault) for fault in ledger.verify()]
        wrong += missing(ledger.store, [text for line in said if line["kind"] == "said" for text in line["texts"]])
        folds, more = twice(ledger.store)
        wrong += more
    if folds < counts["committed"]:
        wrong.append(f"{counts['committed']} folds were reported, but {folds} are stored")
    counts["folds in the record"] = folds
    return counts, wrong


def missing(store: Store, acknowledged: list[str]) -> list[str]:
    """The acknowledged messages that are not in the ledger."""
    there: set[str] = set()
    for line in store.export():
        row = json.loads(line)
        if "message" in row:
            there |= {part[1].get("text", "") for part in row["message"]["parts"]}
    return [f"lost: {text[:60]}" for text in acknowledged if text not in there]


def twice(store: Store) -> tuple[int, list[str]]:
    """The number of folds, and the faults of their jobs."""
    sql = "SELECT op FROM entries WHERE owner = ? AND branch = ? AND kind = 'fold'"
    done = "SELECT fence FROM jobs WHERE owner = ? AND branch = ? AND kind = 'done' AND body IS NOT NULL"
    total, wrong = 0, []
    for branch in store.branches(NAME):
        values = (store.tx.owner.id, branch.id)
        ops = [row[0] for row in rows_of(store, sql, values)]
        fences = [row[0] for row in rows_of(store, done, values)]
        total += len(ops)
        wrong += [f"{branch.name}: {op} was committed {count} times" for op, count in Counter(ops).items() if count > 1]
        wrong += [f"{branch.name}: job {fence} ended twice" for fence, count in Counter(fences).items() if count > 1]
        claimed = {int(op.split(":")[1]) for op in ops if op.startswith("fold:")}
        wrong += [f"{branch.name}: no job made fold {fence}" for fence in claimed - set(fences)]
        job = store.jobs.get(branch)
        if job.is_held and job.until_at > job.deadline_at:
            wrong.append(f"{branch.name}: a job is stuck")
    return total, wrong


def main(argv: list[str]) -> int:
    return contest(argv, "bench session_races", __doc__, take_part, run)
