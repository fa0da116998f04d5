"""A fold that a session makes itself can be cancelled by another process."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from foldline.digest.digester import Digester, DigesterCall, DigesterReply
from foldline.errors import Cancelled
from foldline.ledger import Store
from foldline.policy import Policy
from foldline.session import Ledger, Session
from foldline.testing import Scripted, proper
from support.ledgers import turn

ROOMY = Policy.preset("balanced").but(window_tokens=8_000, reply_tokens=0, counter="chars/4", background=False)
WAIT_S = 20.0

CANCEL = "import sys, foldline\nwith foldline.open(sys.argv[1]) as ledger:\n    print(ledger.session('s').cancel())"
FOLD = """
import sys, time, foldline
from foldline.digest.digester import Digester, DigesterReply
from foldline.errors import Cancelled

def wait(call):
    print("asked", flush=True)
    end = time.monotonic() + 20
    while not call.signal.is_set() and time.monotonic() < end:
        time.sleep(0.01)
    print("stopped" if call.signal.is_set() else "never stopped", flush=True)
    return DigesterReply(text="late")

with foldline.open(sys.argv[1], digester=Digester(complete=wait, model="m", window=100_000)) as ledger:
    session = ledger.session("s")
    try:
        session.fold(force=True) if sys.argv[2] == "fold" else session.preview(force=True)
    except Cancelled:
        print("cancelled", flush=True)
    print("folds", session.folds, flush=True)
"""

Opens = Callable[..., Ledger]


def filled(ledger: Ledger) -> Session:
    """The session s, with turns until a fold is due."""
    session = ledger.session("s", policy=ROOMY)
    while session.plan().fold is None:
        session.add(*turn(len(session.timeline) // 2))
    return session


@pytest.mark.promise("I11", "I23")
@pytest.mark.parametrize("call", ["fold", "preview"])
def test_cancel_in_one_process_stops_the_fold_that_another_process_makes(opens: Opens, url: str, call: str) -> None:
    session = filled(opens())
    command = [sys.executable, "-c", FOLD, url, call]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "asked\n"
        assert session.cancel()
        began = time.monotonic()
        assert process.stdout.readline() == "stopped\n"
        assert time.monotonic() - began < 5.0, "a second, and the delays of a busy machine"
        assert process.stdout.read() == "cancelled\nfolds 0\n"
    assert not session.cancel(), "the fold has ended"
    assert session.plan().fold is not None
    assert session.folds == 0
    assert session.fold() is not None, "the next fold is not affected"


class Asked:
    """A digester that waits until it is told to stop or to answer."""

    def __init__(self) -> None:
        self.asked, self.answer = threading.Event(), threading.Event()
        self.digester = Digester(complete=self, model="m", window=100_000)

    def __call__(self, call: DigesterCall) -> Any:
        self.asked.set()
        end = time.monotonic() + WAIT_S
        while not call.signal.is_set() and not self.answer.is_set():
            assert time.monotonic() < end
            time.sleep(0.01)
        return DigesterReply(text="late") if call.signal.is_set() else Scripted(proper)(call)


def test_a_view_is_sent_without_the_fold_that_another_process_cancelled(opens: Opens, url: str) -> None:
    asked = Asked()
    session = filled(opens(digester=asked.digester))
    said: list[str] = []

    def cancel() -> None:
        assert asked.asked.wait(WAIT_S)
        said.append(subprocess.check_output([sys.executable, "-c", CANCEL, url], text=True))

    thread = threading.Thread(target=cancel)
    thread.start()
    assert len(session.view().messages) == len(session.timeline)
    thread.join()
    assert said == ["True\n"]
    assert session.folds == 0


def test_a_cancellation_that_comes_while_the_fold_is_committed_is_kept(
    opens: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever `cancel` returned holds: here it comes between the last check and the transaction."""
    ledger, other = opens(digester=Digester(complete=Scripted(proper), model="m", window=100_000)), opens()
    session = filled(ledger)
    commit, cancelled = Store.append_fold, []

    def late(self: Store, *args: Any, **options: Any) -> Any:
        cancelled.append(other.session("s").cancel())
        return commit(self, *args, **options)

    monkeypatch.setattr(Store, "append_fold", late)
    with pytest.raises(Cancelled):
        session.fold(force=True)
    assert cancelled == [True]
    assert other.session("s").folds == 0


def test_a_fold_that_supersedes_a_background_fold_does_not_cancel_the_fold_of_another_caller(opens: Opens) -> None:
    """Two callers fold at once: the second plans again, instead of failing as if somebody had cancelled it."""
    slow = Asked()
    first = filled(opens(digester=slow.digester))
    second = opens(digester=Digester(complete=Scripted(proper), model="m", window=100_000)).session(
        "s", policy=ROOMY.but(background=True)
    )
    outcome: list[Any] = []
    thread = threading.Thread(target=lambda: outcome.append(first.fold()))
    thread.start()
    assert slow.asked.wait(WAIT_S)
    while second.plan().fold is None or second.plan().verdict.need.name != "HARD":
        second.add(*turn(len(second.timeline) // 2))
    second.view()
    slow.answer.set()
    thread.join()
    assert len(outcome) == 1


def test_a_finished_fold_leaves_nothing_to_cancel(opens: Opens) -> None:
    ledger = opens(digester=Digester(complete=Scripted(proper), model="m", window=100_000))
    session = filled(ledger)
    assert session.fold(force=True) is not None
    assert not opens().session("s").cancel()
    assert not list(ledger.store.verify())
