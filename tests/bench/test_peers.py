"""The bench beside the peers: its judge finds every fault it is there for, and foldline's own driver runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.peers import ENTRIES as PEERS
from bench.peers import Scale, cells, measure, table, talks
from bench.peers.ours import Ours
from bench.peers.talk import Call, Said, faults, shared, size

ROOT = Path(__file__).parents[2]
SYSTEM, ASKED = Said("system", "Be brief."), Said("user", "Why does it fail?")
CALL = Call("c1", "run", "{}")
CALLS, RESULT = Said("assistant", "", (CALL,)), Said("tool", "no such file", answers="c1")
TALK = [SYSTEM, Said("user", "Hello"), Said("assistant", "Hi"), ASKED, CALLS, RESULT]


@pytest.mark.parametrize(
    ("view", "found"),
    [
        (TALK, []),
        ([SYSTEM, ASKED, CALLS, RESULT], []),
        ([SYSTEM, Said("user", "A summary.\nWhy does it fail?"), CALLS, RESULT], []),
        ([SYSTEM], ["empty"]),
        ([SYSTEM, CALLS, RESULT, ASKED], ["first message not user"]),
        ([SYSTEM, ASKED, RESULT], ["orphan result"]),
        ([SYSTEM, ASKED, CALLS, RESULT, RESULT], ["orphan result"]),
        ([SYSTEM, ASKED, CALLS], ["unanswered call"]),
        ([SYSTEM, CALLS, ASKED, RESULT], ["first message not user", "orphan result", "unanswered call"]),
        ([ASKED, CALLS, RESULT], ["system lost"]),
        ([SYSTEM, Said("user", "Hello"), CALLS, RESULT], ["newest user lost"]),
        ([*TALK, Said("assistant", "x" * 200)], ["over budget"]),
    ],
)
def test_the_judge_finds_each_fault(view: list[Said], found: list[str]) -> None:
    assert faults(view, TALK, size(TALK) + 10) == found


def test_reuse_counts_the_tokens_before_the_first_change() -> None:
    assert shared(TALK, [*TALK, ASKED]) == size(TALK)
    assert shared(TALK, [SYSTEM, ASKED]) == size([SYSTEM])


def test_the_talks_are_what_the_protocol_says() -> None:
    sizes = set[int]()
    for seed in range(40):
        talk, budget = talks.random_talk(seed)
        sizes.add(len(talk))
        assert talks.SHORTEST <= len(talk) <= talks.LONGEST
        assert talk[-1].role in {"user", "tool"}
        assert not faults(talk, talk, size(talk))
        assert budget < size(talk) + 1_000
    assert min(sizes) < 80 < 350 < max(sizes)
    assert sum(map(len, talks.sessions())) == talks.REQUESTS
    for seed in range(20):
        talk, budget = talks.overlong(seed)
        newest = max(index for index, said in enumerate(talk) if said.role == "user")
        assert size(talk[newest:]) + size(talk[:1]) > budget


def test_our_own_driver_gives_every_figure() -> None:
    scale = Scale(lengths=(100,), repeats=1, bad=6, sessions=0, overlong=4, seconds=60)
    row = measure(PEERS[0], scale)
    assert row["bad"] == {"bad": 0, "of": 6, "reuse": 1.0, "why": {}}
    assert row["overlong"]["bad"] == 0
    assert row["turn 100"] > 0 < row["first"]
    assert "foldline balanced" in "\n".join(table([row], scale))


def test_a_drive_judges_every_request_and_counts_reuse() -> None:
    tally = cells.drive(Ours, iter([next(talks.sessions())[:40]]))
    assert (tally.of, tally.bad, tally.why) == (40, 0, {})
    assert tally.reuse > 0.8


def test_a_figure_has_its_time() -> None:
    def forever() -> None:
        with cells.limit(0.01):
            while True:
                pass

    with pytest.raises(cells.TookTooLong):
        forever()


def test_who_is_not_installed_is_listed() -> None:
    command = [sys.executable, "-m", "bench", "peers", "--quick", "--json", "--only", "trim_messages"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, timeout=120)
    row = json.loads(done.stdout)
    assert row["name"] == "trim_messages"
    assert row.get("missing", "").startswith("not installed") or "bad" in row
