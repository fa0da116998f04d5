"""The turns of a local digest that has too little room for all of them."""

from __future__ import annotations

import re

import pytest

from foldline import Session
from foldline.digest.shortening import shorten_request
from foldline.digesters import local_digest
from foldline.policy import Policy
from support.work import Work

REQUEST = re.compile(r"^User: Please check module mod(\d+) and", re.MULTILINE)
REPLY = re.compile(r"^Agent: Module mod(\d+) has a race", re.MULTILINE)
FIRST, END = 200, 300


def add_turn(work: Work, number: int, *, more: str = "") -> None:
    work.ask(f"Please check module mod{number} and report. {more}")
    work.call("bash", "ok line\n" * 300, command=f"pytest tests/test_mod{number}.py")
    work.say(f"Module mod{number} has a race in the queue: fixed by a lock, error rate {7 * number} ppm. {more}")


def shown_turns(digest: str) -> tuple[list[int], list[int]]:
    """The numbers of the turns whose request is shown, and of those whose reply is shown."""
    requests, replies = ([int(found) for found in pattern.findall(digest)] for pattern in (REQUEST, REPLY))
    return requests, replies


@pytest.mark.parametrize("cap", [1_000, 2_000, 4_000, 8_000, 16_000])
@pytest.mark.parametrize("more", ["", "It is so because of what was seen there. " * 15])
def test_the_newest_turns_keep_request_and_reply_and_older_turns_lose_the_reply_first(cap: int, more: str) -> None:
    work = Work()
    for number in range(FIRST, END):
        add_turn(work, number, more=more)
    digest = local_digest(work.messages, cap=cap, size=len)
    requests, replies = shown_turns(digest)
    least = 2 if more and cap == 1_000 else 3
    assert len(replies) >= max(least, len(requests) // 4)
    assert requests == [FIRST, *range(END + 1 - len(requests), END)]
    assert replies == [*range(END - len(replies), END)]
    assert len(replies) <= len(requests)


def test_the_newest_replies_outlive_many_folds() -> None:
    session = Session(policy=Policy.preset("balanced").but(window_tokens=11_000, reply_tokens=1_000))
    work = Work()
    for number in range(FIRST, END):
        done = len(work.messages)
        add_turn(work, number)
        session.add(*work.messages[done:])
        session.view()
    digest = next(message.text for message in session.view().messages if "# Turns" in message.text)
    requests, replies = shown_turns(digest)
    assert session.folds > 20
    assert len(replies) >= 10
    assert replies == [*range(replies[0], replies[-1] + 1)]
    assert replies[-1] >= requests[-1] - 1  # the view shows the reply to the newest request
    assert f"mod{replies[-1]} has a race in the queue: fixed by a lock, error rate {7 * replies[-1]} ppm." in digest


@pytest.mark.parametrize("cap", [3_000, 9_000])
def test_long_new_prompts_leave_room_for_the_newest_replies(cap: int) -> None:
    work = Work()
    for number in range(5):
        add_turn(work, number, more="Say exactly what is wrong with it. " * 100)
    requests, replies = shown_turns(local_digest(work.messages, cap=cap, size=len))
    assert requests[-3:] == [2, 3, 4]
    assert replies[-3:] == [2, 3, 4]


def test_prompts_with_long_logs_leave_out_no_other_request() -> None:
    work = Work()
    for number in range(FIRST, FIRST + 70):
        log = "\n".join(f"2026-11-{day:02d} pool error {number} handler retry" for day in range(1, 29)) + "\n"
        work.ask(f"Rename handler{number} to worker{number}.\n{log * 4}")
        work.say("Renamed.")
    digest = local_digest(work.messages, cap=24_000, size=len)
    missing = [
        number for number in range(FIRST, FIRST + 70) if f"Rename handler{number} to worker{number}." not in digest
    ]
    assert not missing


def test_a_shortened_prompt_keeps_its_first_line_and_what_it_forbids() -> None:
    log = "\nwarn pool_a7 handler_b8 timeout_c9" * 40
    assert shorten_request(f"Why does job J7 fail?{log}", 60).startswith("Why does job J7 fail?\n")
    long = f"Please never restart host h7 during the day {'and look at the other things too ' * 9}in build_x9 again."
    assert "never restart host h7" in shorten_request(long, 80)


def test_a_prompt_of_thousands_of_short_lines_is_shortened() -> None:
    assert shorten_request("a\n" * 5_000, 4_000).endswith(" …")
    work = Work()
    work.ask("Sort these:\n" + "a\n" * 5_000)
    work.say("Sorted.")
    assert "User: Sort these:" in local_digest(work.messages, cap=6_000, size=len)


STATED = {
    3: "No, that was wrong: use unittest, and the timeout is 45 seconds.",
    7: "By the way, staging listens on port 8123.",
    12: "The branch is release/9.2 now.",
    18: "Please never push without asking me first.",
    25: "We keep the old API until March, Dana signs off.",
}


@pytest.mark.parametrize("routine", ["yes, go on", "Go on with module {0}, please look at worker_{0}.py too."])
@pytest.mark.parametrize("turns", [80, 400])
def test_what_the_user_said_once_outlives_routine_prompts(routine: str, turns: int) -> None:
    work = Work()
    for number in range(turns):
        work.ask(STATED.get(number) or routine.format(number))
        work.call("bash", "ok line\n" * 30, command=f"cat src/part_{number}.py")
        work.say(f"Module {number} is done; the parser was the hard part.")
    digest = local_digest(work.messages, cap=9_000, size=len)
    assert [text for text in STATED.values() if text not in digest] == []


def test_a_pasted_log_in_a_small_digest_leaves_out_no_turn() -> None:
    log = "\n".join(f"=== step {number}: created metadata {number:08x} in the repository ===" for number in range(120))
    work = Work()
    for number in range(12):
        add_turn(work, number)
    work.ask(f"It works now, but the line numbers are off:\n{log}")
    work.say("I look at the numbers.")
    small, large = (local_digest(work.messages, cap=cap, size=len) for cap in (9_000, 40_000))
    assert "It works now, but the line numbers are off:" in small
    assert small.count("=== step") < 120
    assert shown_turns(small) == ([*range(12)], [*range(12)])
    assert large.count("=== step") == 120
