"""Usage is evidence about one request: it says nothing about a view that did not grow from that request."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import foldline
from foldline.digest.digester import Digester
from foldline.errors import InputError
from foldline.message import assistant, user
from foldline.plan.gate import Need
from foldline.policy import Policy
from foldline.session import Session
from foldline.testing import Scripted, proper
from foldline.testing.provider import Account, ScriptedReply
from support.command import foldline as run
from support.counting import prompt_tokens, reply, tools, words
from support.ledgers import Open

MODEL = "claude-sonnet-4-5"
POLICY = Policy.preset("balanced").but(window_tokens=60_000, reply_tokens=0)
NEAR = 0.15
"""The estimator's stated margin."""


def fill(session: Session, tokens: int, size: int = 1_000) -> None:
    """Turns of which the provider counts each request, until it counts `tokens`."""
    counted = 0
    while counted < tokens:
        session.add(user(words(size, counted)))
        view = session.view()
        counted = prompt_tokens(view)
        session.add(reply(words(size, counted + 1), counted), view=view)


def is_near(session: Session, real: int) -> bool:
    return abs(session.load().request - real) <= NEAR * real


# A fold while the reply is on its way


@pytest.mark.promise("I10", "I11")
def test_a_reply_to_the_request_before_a_background_fold_does_not_measure_the_folded_view(opens: Open) -> None:
    ledger = opens(digester=Digester(complete=Scripted(proper), model="quick", window=200_000))
    session = ledger.session("s", model=MODEL, policy=POLICY)
    fill(session, 40_000)
    session.add(user(words(15_000)))
    sent = session.view()
    assert sent.need is Need.SOFT
    assert ledger.wait(20)
    session.add(reply("It is the port.", prompt_tokens(sent)))
    session.add(user("and then?"))
    view = session.view()
    assert session.folds == 1
    assert abs(view.tokens - prompt_tokens(view)) <= NEAR * prompt_tokens(view)
    assert ledger.wait(20)
    session.view()
    assert session.folds == 1, "nothing asks for a second fold"
    assert session.timeline.fold is not None
    assert session.timeline.fold.digest is not None
    assert session.timeline.fold.digest.by == "quick"
    assert ledger.session("s").view().tokens == view.tokens


@pytest.mark.promise("I10")
@pytest.mark.parametrize("same_object", [True, False])
def test_a_fold_of_another_process_voids_the_reply_on_its_way(opens: Open, same_object: bool) -> None:
    """Also when the process that adds the reply is not the one that made the request."""
    first, second = opens(), opens()
    session = first.session("s", model=MODEL, policy=POLICY)
    fill(session, 40_000)
    session.add(user("and now?"))
    sent = session.view()
    assert second.session("s").fold(force=True)
    receiver = session if same_object else first.session("s")
    receiver.add(reply("It is the port.", prompt_tokens(sent)))
    receiver.add(user("and then?"))
    for reader in (receiver, second.session("s")):
        view = reader.view()
        assert abs(view.tokens - prompt_tokens(view)) <= NEAR * prompt_tokens(view)
        assert reader.folds == 1


def test_a_process_that_made_no_request_does_not_take_a_late_reply_for_an_answer_to_the_folded_view(
    opens: Open,
) -> None:
    ledger = opens()
    session = ledger.session("s", model=MODEL, policy=POLICY)
    fill(session, 40_000)
    session.add(user("and now?"))
    sent = session.view()
    assert ledger.session("s").fold(force=True)
    receiver = ledger.session("s")
    receiver.add(user("one more thing"))
    receiver.add(reply("It is the port.", prompt_tokens(sent)), user("and then?"))
    assert is_near(receiver, prompt_tokens(receiver.view()))


def test_a_message_that_was_added_while_the_reply_was_on_its_way_is_counted() -> None:
    session = Session(model=MODEL, policy=POLICY)
    fill(session, 10_000)
    session.add(user("and now?"))
    sent = session.view()
    session.add(user(words(8_000)))
    session.add(reply("It is the port.", prompt_tokens(sent)))
    view = session.view()
    assert abs(view.tokens - prompt_tokens(view)) <= 0.03 * prompt_tokens(view)
    assert "usage of reply" in view.source


def test_replies_of_a_caller_that_goes_on_without_another_view_are_tied_to_what_it_sent() -> None:
    """It asks for a view once and then adds to its own list; the first reply has no usage."""
    session = Session(model=MODEL, policy=POLICY)
    session.add(user(words(3_000)))
    session.view()
    session.add(assistant("Let me look."), user(words(4_000)))
    session.add(reply("And there.", prompt_tokens(session.state.view())), user("so?"))
    assert session.load().request == pytest.approx(prompt_tokens(session.state.view()), abs=50)
    assert session.fold(force=True)
    session.add(reply("Done.", 7_200), user("and then?"))
    expected = prompt_tokens(session.state.view())
    assert expected < 6_000
    assert session.load().request == pytest.approx(expected, rel=0.15), "the reply answers the unfolded list"


def test_an_older_request_does_not_replace_the_figure_of_a_newer_one() -> None:
    session = Session(model=MODEL, policy=POLICY)
    fill(session, 5_000)
    session.add(user("one"))
    first = session.view()
    session.add(user(words(4_000)))
    second = session.view()
    session.add(reply("to the second", prompt_tokens(second)), view=second)
    measured = session.load().request
    session.add(reply("to the first", prompt_tokens(first)), view=first)
    assert measured < session.load().request < measured + 50


def test_a_reply_can_name_the_view_that_it_answers_in_another_process(opens: Open) -> None:
    session = opens().session("s", model=MODEL, policy=POLICY)
    fill(session, 5_000)
    session.add(user("and now?"))
    view, other = session.view(), opens().session("s")
    assert view.identity == other.view().identity
    other.add(user("a note", kind="note"))
    other.add(reply("It is the port.", prompt_tokens(view)), view=str(view.identity))
    assert is_near(other, prompt_tokens(other.view()))
    assert "usage of reply" in other.view().source


def test_a_name_that_is_no_identity_is_refused_before_anything_is_added() -> None:
    session = Session(model=MODEL)
    with pytest.raises(InputError, match="identity of a view"):
        session.add(user("Hello"), view="the last one")
    assert len(session.timeline) == 0


# Unfold, tools, model, format, branch


@pytest.mark.promise("I10", "I19")
def test_an_unfold_voids_what_was_measured_while_the_fold_was_in_force() -> None:
    session = Session(model=MODEL, policy=POLICY)
    fill(session, 30_000)
    before = session.load().request
    session.add(user("and now?"))
    assert session.fold(force=True)
    view = session.view()
    session.add(reply("It is the port.", prompt_tokens(view)))
    session.unfold()
    assert before < session.load().request < before + 200, "the figures from before the fold hold again"
    assert is_near(session, prompt_tokens(session.state.view()))


def compacted_log(folder: Path, size: int = 3_000) -> Path:
    """A Claude Code file with a compaction: replies after it measured the short context."""
    lines: list[dict[str, Any]] = []

    def line(kind: str, message: dict[str, Any], **fields: Any) -> None:
        place = len(lines)
        stamps = {"uuid": f"u{place}", "parentUuid": f"u{place - 1}" if place else None, "sessionId": "s"}
        lines.append({"type": kind, "message": message, **stamps, "timestamp": "2026-01-01T00:00:00Z", **fields})

    def turn(number: int, prompt: int) -> None:
        line("user", {"role": "user", "content": words(size, number)})
        usage = {"input_tokens": prompt, "output_tokens": size}
        text = [{"type": "text", "text": words(size, -number)}]
        line("assistant", {"role": "assistant", "id": f"m{number}", "model": MODEL, "content": text, "usage": usage})

    for number in range(1, 11):
        turn(number, (2 * number - 1) * size)
    line("user", {"role": "user", "content": "Summary: " + words(500)}, isCompactSummary=True)
    for number in range(11, 14):
        turn(number, 500 + (2 * (number - 10) - 1) * size)
    file = folder / "log.jsonl"
    file.write_text("".join(json.dumps(value) + "\n" for value in lines))
    return file


@pytest.mark.promise("I10", "I19")
def test_an_unfold_of_an_imported_compaction_is_measured_as_it_is_sent(tmp_path: Path) -> None:
    url = str(tmp_path / "agent.db")
    done = run("import", str(compacted_log(tmp_path)), "--ledger", url, "--session", "s")
    assert done.returncode == 0, done.stderr
    with foldline.open(url) as ledger:
        session = ledger.session("s", policy=POLICY)
        assert is_near(session, 500 + 6 * 3_000)
        assert "usage of reply" in session.state.view().source
        session.unfold()
        assert is_near(session, 26 * 3_000)
        assert session.plan().verdict.need is Need.HARD
        view = session.state.view()
        assert sum(view.blocks.values()) == view.tokens


@pytest.mark.promise("I10", "I19")
@pytest.mark.parametrize(("before", "after"), [(0, 600), (600, 0), (300, 500), (500, 300)])
def test_other_tools_change_the_measured_size_by_their_own(before: int, after: int) -> None:
    session = Session(model=MODEL, policy=POLICY.but(window_tokens=150_000), tools=tools(before))
    session.add(user(words(20_000)))
    real = prompt_tokens(session.view(), tools=tools(before), hidden=3_000)
    session.add(reply("It is the port.", real), user("and then?"))
    session.use(tools=tools(after))
    view = session.view()
    now = prompt_tokens(view, tools=tools(after), hidden=3_000)
    assert abs(view.tokens - now) <= NEAR * now
    assert sum(view.blocks.values()) == view.tokens
    session.use(tools=tools(before))
    assert session.load().request == pytest.approx(real, abs=100)


def test_a_fold_keeps_what_usage_taught_of_hidden_tokens_under_other_tools() -> None:
    session = Session(model=MODEL, policy=POLICY, tools=tools(10))
    session.add(user("Hello"), assistant("Hello!"), user(words(20_000)))
    session.add(reply("It is the port.", prompt_tokens(session.view(), tools=tools(10), hidden=9_000)), user("so?"))
    assert session.fold(force=True)
    session.use(tools=tools(200))
    view = session.view()
    now = prompt_tokens(view, tools=tools(200), hidden=9_000)
    assert abs(view.tokens - now) <= NEAR * now


@pytest.mark.promise("I10", "I22")
def test_another_model_is_measured_by_its_own_estimate_and_the_first_one_again_by_its_usage() -> None:
    session = Session(model=MODEL, policy=POLICY)
    fill(session, 44_000)
    measured = session.load().request
    session.use(model="claude-opus-4-7")
    real = prompt_tokens(session.state.view(), model="claude-opus-4-7")
    assert is_near(session, real)
    assert session.load().upper >= real
    assert session.plan().verdict.need > Need.NONE
    session.use(model=MODEL)
    assert session.load().request == measured


def test_another_format_voids_the_figure() -> None:
    session = Session(model=MODEL, policy=POLICY, format="anthropic")
    session.add(user(words(2_000)))
    session.view()
    session.add(reply("It is the port.", 2_500))
    assert "usage of reply" in session.view().source
    session.use(format="openai")
    assert "usage of reply" not in session.view().source


@pytest.mark.promise("I10", "I22")
@pytest.mark.parametrize("folds", [False, True])
@pytest.mark.parametrize("hidden", [0, 12_000])
def test_another_model_is_measured_with_the_hidden_tokens_that_usage_has_shown(hidden: int, folds: bool) -> None:
    """A system prompt that the caller adds to every request is sent to the other model too."""
    session = Session(model=MODEL, policy=POLICY)
    for number in range(8):
        session.add(user(words(300 if number < 2 else 2_000, number)))
        view = session.view()
        session.add(reply(words(100, -number), prompt_tokens(view, model=MODEL, hidden=hidden)), view=view)
    session.add(user("and now?"))
    assert session.fold(force=True) or not folds
    if not folds:
        session.unfold()
    for model, format in (("claude-opus-4-7", "anthropic"), ("gpt-5.1", "openai"), (MODEL, "anthropic")):
        session.use(model=model, format=format)
        real = prompt_tokens(session.state.view(), model=model, hidden=hidden)
        assert session.load().request == pytest.approx(real, rel=NEAR), model


@pytest.mark.parametrize("at", [None, 6])
def test_a_branch_keeps_the_figures_of_the_messages_that_it_shares(opens: Open, at: int | None) -> None:
    session = opens().session("s", model=MODEL, policy=POLICY)
    fill(session, 10_000)
    branch = session.branch("side", at=at)
    assert "usage of reply" in branch.state.view().source
    branch.add(user("and now?"))
    assert is_near(branch, prompt_tokens(branch.view()))


def test_a_reply_after_a_rewind_does_not_measure_the_shorter_history() -> None:
    session = Session(model=MODEL, policy=POLICY)
    fill(session, 20_000)
    session.add(user("and now?"))
    sent = session.view()
    session.clear()
    session.add(user("again"))
    session.add(reply("It is the port.", prompt_tokens(sent)))
    assert session.load().request < 200


# What is shown


@pytest.mark.promise("I19")
@pytest.mark.parametrize("hidden", [-2_000, 0, 25_000])
def test_the_blocks_add_up_to_the_size_that_is_shown(hidden: int) -> None:
    session = Session(model=MODEL, policy=POLICY, tools=tools(20))
    session.add(user(words(5_000)))
    view = session.view()
    assert sum(view.blocks.values()) == view.tokens
    session.add(reply("It is the port.", view.tokens + hidden), user("and then?"))
    view = session.view()
    assert sum(view.blocks.values()) == view.tokens
    assert all(size >= 0 for size in view.blocks.values())
    assert view.blocks.get("hidden", 0) == pytest.approx(max(hidden, 0), rel=0.05)


@pytest.mark.promise("I3", "I10")
@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-sonnet-5"])
@pytest.mark.parametrize("turns", [1, 4])
def test_a_long_reply_of_claude_is_measured_as_the_provider_counts_it(model: str, turns: int) -> None:
    account = Account(models={model: 30_000})
    session = Session(model=model, policy=POLICY.but(window_tokens=30_000, reply_tokens=500))
    for number in range(turns):
        session.add(user(words(4_000, number)))
        done = account.answer("anthropic", session.view().request(), reply=ScriptedReply(text=words(9_000, -number)))
        assert done.error is None, number
        session.add(done.body)
    session.add(user("go on"))
    view = session.view()
    done = account.answer("anthropic", view.request())
    assert done.error is None
    assert done.tokens is not None
    assert view.tokens == pytest.approx(done.tokens.total, rel=NEAR)


# A provider that is wrong


@pytest.mark.promise("I10")
@pytest.mark.parametrize("has_cache_figures", [True, False])
def test_a_provider_that_counts_cached_tokens_twice_is_never_believed(has_cache_figures: bool) -> None:
    session = Session(model=MODEL, policy=POLICY)
    cached = 0
    for number in range(12):
        session.add(user(words(1_500 if number else 8_000, number)))
        view = session.view()
        real = prompt_tokens(view)
        assert view.tokens == pytest.approx(real, rel=NEAR), number
        figures = {"input": real, "cache_read": cached} if has_cache_figures else {"input": real + cached}
        session.add(reply(words(300, number), 0, **figures))
        cached = real
    assert session.folds == 0


FAULTS: dict[str, Any] = {
    "nothing": lambda real, before, total: {"input": 0},
    "less than nothing": lambda real, before, total: {"input": -real},
    "a constant": lambda real, before, total: {"input": 5},
    "a hundred times the size": lambda real, before, total: {"input": 100 * real},
    "more tokens than there are": lambda real, before, total: {"input": 10**15},
    "the sum of all requests": lambda real, before, total: {"input": total},
    "cached tokens twice": lambda real, before, total: {"input": real, "cache_read": before},
    "cached tokens twice in one figure": lambda real, before, total: {"input": real + before},
    "only tokens that are not cached": lambda real, before, total: {"input": real - before},
}


@pytest.mark.promise("I10")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("since", [0, 5])
@pytest.mark.parametrize("fault", FAULTS)
def test_absurd_figures_are_never_believed(fault: str, since: int, seed: int) -> None:
    """However the sizes of the steps vary: a short step before a long one must not make the fault look constant."""
    session, chance = Session(model=MODEL, policy=POLICY.but(window_tokens=150_000)), random.Random(seed)
    before = total = 0
    for number in range(16):
        session.add(user(words(chance.randint(200, 3_000) if number else 4_000, number)))
        view = session.view()
        real = prompt_tokens(view)
        total += real
        assert view.tokens == pytest.approx(real, rel=NEAR), number
        figures = FAULTS[fault](real, before, total) if number >= since else {"input": real}
        session.add(reply(words(chance.randint(20, 300), number), 0, **figures), view=view)
        before = real
    assert session.folds == 0
