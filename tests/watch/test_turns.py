"""Where turns end, in streams and in session files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.watch.watcher import Watcher
from support.agent_events import answer, call, reply, result, said
from support.command import foldline
from support.watching import feed_all, filed, named, text_block

STEPS = st.lists(
    st.one_of(
        st.integers(3, 150_000).map(lambda size: reply(size, text_block("so it is"))),
        st.integers(3, 150_000).map(lambda size: reply(size, call("Bash", command="ls"))),
        st.just(answer("a b c")),
    ),
    max_size=5,
)


@pytest.mark.promise("S1.9")
@given(st.lists(STEPS, min_size=1, max_size=6))
def test_a_session_file_has_a_turn_for_every_prompt_that_was_answered(turns: list[list[dict[str, Any]]]) -> None:
    watch = Watcher()
    for steps in turns:
        feed_all(watch, *map(filed, (said("go on"), *steps)))
    assert watch.turns == sum(bool(steps) for steps in turns[:-1])
    assert len(named(watch.end(), "turn")) == bool(
        turns[-1] and turns[-1][-1]["message"]["content"][0]["type"] == "text"
    )


@given(STEPS)
def test_in_a_stream_only_a_result_ends_a_turn(steps: list[dict[str, Any]]) -> None:
    watch = Watcher()
    assert not named(feed_all(watch, *steps, said("and hurry"), *steps), "turn")
    assert not watch.end()
    assert len(named(feed_all(watch, result()), "turn")) == 1


@pytest.mark.promise("S1.13")
def test_a_full_session_file_gets_its_compaction_at_the_next_prompt_or_at_its_end() -> None:
    watch = Watcher()
    full = filed(reply(160_000, text_block("done")))
    assert [notice.event for notice in feed_all(watch, full)][-2:] == ["warning", "compact"]
    assert named(feed_all(watch, filed(said("next"))), "intervention")
    assert named(Watcher().end(), "intervention") == []
    other = Watcher()
    feed_all(other, full)
    assert named(other.end(), "intervention")
    assert other.last_error is False


def test_a_stop_reason_on_every_piece_of_a_reply_ends_one_turn() -> None:
    watch = Watcher()
    pieces = [filed(reply(9, content)) for content in ({"type": "thinking", "thinking": "so"}, text_block("done"))]
    for piece in pieces:
        piece["message"]["stop_reason"] = "end_turn"
    feed_all(watch, *pieces, filed(said("next")), filed(reply(10, text_block("done"))))
    assert watch.turns == 1


@pytest.mark.promise("S1.9")
def test_only_the_agent_or_the_user_opens_a_new_turn() -> None:
    closing = filed(reply(9, text_block("done")))
    closing["message"]["stop_reason"] = "end_turn"
    aside = filed(reply(20, text_block("in the background"), parent_tool_use_id="t9"))
    for last in (closing, aside, {"type": "cost-state", "sessionId": "s1", "totalCostUSD": 1.0}):
        watch = Watcher()
        feed_all(watch, filed(said("go")), closing, last)
        assert (watch.turns, watch.last_error) == (1, False), last
    stream = Watcher()
    feed_all(stream, reply(9), result(), reply(20, parent_tool_use_id="t9"))
    assert stream.last_error is False
    for person in (filed(said("now the other one")), filed(reply(10, call("Bash", command="ls")))):
        watch = Watcher()
        feed_all(watch, filed(said("go")), closing, person)
        assert not watch.end()
        assert watch.last_error is None


@pytest.mark.promise("S1.9")
def test_a_stop_reason_ends_no_turn_of_a_stream() -> None:
    watch, last = Watcher(), reply(160_000)
    last["message"]["stop_reason"] = "end_turn"
    assert not named(feed_all(watch, said("go"), last), "turn")
    assert [notice.event for notice in feed_all(watch, result())] == ["turn", "intervention"]


def test_a_file_that_ends_with_an_api_error_ends_with_an_error() -> None:
    watch = Watcher()
    feed_all(
        watch,
        filed(said("go")),
        filed(reply(9, text_block("API Error: 500"), model="<synthetic>", isApiErrorMessage=True)),
    )
    assert named(watch.end(), "turn")
    assert watch.last_error is True


@pytest.mark.parametrize("fields", [{"is_error": True}, {"subtype": "error_max_turns"}])
def test_a_failed_turn_is_reported_as_an_error(fields: dict[str, Any]) -> None:
    watch = Watcher()
    feed_all(watch, reply(9), result(**fields))
    assert watch.last_error


def test_the_last_reply_of_a_session_file_ends_its_turn(tmp_path: Path) -> None:
    def code(*events: dict[str, Any]) -> int:
        file = tmp_path / "session.jsonl"
        file.write_text("".join(json.dumps(filed(event)) + "\n" for event in events))
        done = foldline("watch", "--json", str(file))
        assert json.loads(done.stdout.splitlines()[-1])["code"] == done.returncode
        return done.returncode

    asked, waits = said("why?"), reply(9, call("Bash", command="ls"))
    assert code(asked, waits, answer("a b"), reply(10, text_block("so it is"))) == 0
    assert code(asked, waits, answer("a b"), reply(160_000, text_block("so it is"))) == 10
    assert code(asked, waits) == 12
