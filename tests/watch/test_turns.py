"""Where turns end, in streams and in session files, and whose turn, wish and figures they are."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.compat.context_budget import ContextBudget, ScratchModel
from foldline.text_lines import LineSplitter, raw_lines_of_file
from foldline.watch.agent_events import load
from foldline.watch.scratch_files import ScratchWriter
from foldline.watch.watcher import Watcher, WatchEvent
from support.agent_events import MODEL, answer, boundary, call, reply, result, said
from support.command import foldline

REFUSED = "To tell you how to proceed, the user said:"
DATA = Path(os.environ.get("FOLDLINE_DATA", "/nowhere"))


def told(watch: Watcher, *events: dict[str, Any]) -> list[WatchEvent]:
    return [notice for event in events for notice in watch.feed(event)]


def of(notices: list[WatchEvent], name: str) -> list[WatchEvent]:
    return [notice for notice in notices if notice.event == name]


def filed(event: dict[str, Any]) -> dict[str, Any]:
    """An event as a session file has it."""
    return {**event, "sessionId": event["session_id"], "session_id": None}


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


STEPS = st.lists(
    st.one_of(
        st.integers(3, 150_000).map(lambda size: reply(size, text("so it is"))),
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
        told(watch, *map(filed, (said("go on"), *steps)))
    assert watch.turns == sum(bool(steps) for steps in turns[:-1])
    assert len(of(watch.end(), "turn")) == bool(turns[-1] and turns[-1][-1]["message"]["content"][0]["type"] == "text")


@given(STEPS)
def test_in_a_stream_only_a_result_ends_a_turn(steps: list[dict[str, Any]]) -> None:
    watch = Watcher()
    assert not of(told(watch, *steps, said("and hurry"), *steps), "turn")
    assert not watch.end()
    assert len(of(told(watch, result()), "turn")) == 1


@pytest.mark.promise("S1.13")
def test_a_session_file_that_is_full_gets_its_compaction_at_the_next_prompt_or_at_its_end() -> None:
    watch = Watcher()
    full = filed(reply(160_000, text("done")))
    assert [notice.event for notice in told(watch, full)][-2:] == ["warning", "compact"]
    assert of(told(watch, filed(said("next"))), "intervention")
    assert of(Watcher().end(), "intervention") == []
    other = Watcher()
    told(other, full)
    assert of(other.end(), "intervention")
    assert other.last_error is False


def test_every_piece_of_the_last_reply_may_say_that_it_ends_the_turn() -> None:
    watch = Watcher()
    pieces = [filed(reply(9, content)) for content in ({"type": "thinking", "thinking": "so"}, text("done"))]
    for piece in pieces:
        piece["message"]["stop_reason"] = "end_turn"
    told(watch, *pieces, filed(said("next")), filed(reply(10, text("done"))))
    assert watch.turns == 1


@pytest.mark.promise("S1.9")
def test_what_comes_after_the_end_of_a_turn_opens_none_unless_it_is_the_agent_or_a_person() -> None:
    closing = filed(reply(9, text("done")))
    closing["message"]["stop_reason"] = "end_turn"
    aside = filed(reply(20, text("in the background"), parent_tool_use_id="t9"))
    for last in (closing, aside, {"type": "cost-state", "sessionId": "s1", "totalCostUSD": 1.0}):
        watch = Watcher()
        told(watch, filed(said("go")), closing, last)
        assert (watch.turns, watch.last_error) == (1, False), last
    stream = Watcher()
    told(stream, reply(9), result(), reply(20, parent_tool_use_id="t9"))
    assert stream.last_error is False
    for person in (filed(said("now the other one")), filed(reply(10, call("Bash", command="ls")))):
        watch = Watcher()
        told(watch, filed(said("go")), closing, person)
        assert not watch.end()
        assert watch.last_error is None


@pytest.mark.promise("S1.9")
def test_a_stop_reason_ends_no_turn_of_a_stream() -> None:
    watch, last = Watcher(), reply(160_000)
    last["message"]["stop_reason"] = "end_turn"
    assert not of(told(watch, said("go"), last), "turn")
    assert [notice.event for notice in told(watch, result())] == ["turn", "intervention"]


def test_a_file_that_ends_with_an_error_of_the_provider_has_failed() -> None:
    watch = Watcher()
    told(watch, filed(said("go")), filed(reply(9, text("API Error: 500"), model="<synthetic>", isApiErrorMessage=True)))
    assert of(watch.end(), "turn")
    assert watch.last_error is True


@pytest.mark.promise("S1.5")
def test_a_session_that_comes_back_has_its_model_and_window() -> None:
    watch = Watcher()
    for session, model in (("a", f"{MODEL}[1m]"), ("b", "claude-haiku-4-5")):
        told(watch, {"type": "system", "subtype": "init", "session_id": session, "model": model})
    assert not of(told(watch, reply(300_000, session="a")), "warning")
    assert watch.meter.window.tokens == 1_000_000
    told(watch, {"type": "system", "subtype": "init", "session_id": "c", "model": MODEL}, reply(160_000, session="c"))
    assert watch.meter.should_compact
    watch = Watcher()
    told(watch, reply(160_000), result(modelUsage={MODEL: {"contextWindow": 1_000_000}}), reply(9, session="b"))
    assert not of(told(watch, reply(161_000)), "warning")


def test_a_smaller_window_clears_no_flag() -> None:
    watch = Watcher()
    told(watch, reply(170_000), reply(100_000), result(modelUsage={MODEL: {"contextWindow": 190_000}}))
    assert watch.meter.should_warn
    assert watch.meter.should_compact


@pytest.mark.promise("F9")
def test_a_later_piece_of_a_reply_belongs_to_its_own_session() -> None:
    watch = Watcher()
    wish = reply(1_000, call("compact_context", focus="task of a"), session="a")
    found = told(watch, reply(1_000, session="a"), said("go", session_id="b"), wish, result(session_id="b"))
    assert not of(found, "intervention")


@pytest.mark.promise("S1.30")
def test_costs_of_sessions_that_take_turns_are_told_apart() -> None:
    watch = Watcher()

    def priced(usd: float, session: str) -> dict[str, Any]:
        """A reply of that price, at three dollars for a million tokens."""
        event = reply(3, session=session)
        event["message"] |= {"id": f"{session} {usd}", "usage": {"input_tokens": round(usd / 3 * 1_000_000)}}
        return event

    told(watch, priced(0.5, "a"), result(session_id="a", total_cost_usd=0.5))
    told(watch, priced(0.6, "a"), priced(0.2, "b"), result(session_id="b", total_cost_usd=0.2))
    told(watch, result(session_id="a", total_cost_usd=0.6))
    assert watch.spending.usd == pytest.approx(1.3)


@pytest.mark.promise("S1.32")
def test_a_run_without_a_result_is_noted_whole_and_a_file_that_is_read_again_once(tmp_path: Path) -> None:
    costs, file = tmp_path / "costs.jsonl", tmp_path / "session.jsonl"
    events = [filed({**reply(100_000 + number, text("so"))}) for number in range(3)]
    file.write_text("".join(json.dumps(event) + "\n" for event in events))
    ends = []
    for _ in range(2):
        done = foldline("watch", "--json", "--project-limit", "100", "--project-costs", str(costs), str(file))
        ends.append(json.loads(done.stdout.splitlines()[-1])["cost_usd"])
    rows = [json.loads(line) for line in costs.read_text().splitlines()]
    assert len({row["run"] for row in rows}) == 1
    assert ends == [rows[-1]["usd"]] * 2


@pytest.mark.parametrize("fields", [{"is_error": True}, {"subtype": "error_max_turns"}])
def test_a_turn_that_failed_says_so(fields: dict[str, Any]) -> None:
    watch = Watcher()
    told(watch, reply(9), result(**fields))
    assert watch.last_error


@pytest.mark.promise("F9", "S1.13")
def test_a_wish_lapses_with_its_session() -> None:
    watch = Watcher()
    wish = reply(100, call("compact_context", focus="parser of a"), session="a")
    assert not of(told(watch, wish, reply(50, session="b"), result(session_id="b")), "intervention")


def test_a_wish_that_was_refused_is_none() -> None:
    wish = reply(100, call("compact_context", focus="the parser"))
    assert not of(told(Watcher(), wish, answer("no", error=True), result()), "intervention")
    assert of(told(Watcher(), wish, answer("yes"), result()), "intervention")


@pytest.mark.promise("S1.7", "S1.8")
def test_a_session_that_is_full_from_its_first_event_is_told_of() -> None:
    watch = Watcher()
    told(watch, reply(160_000, session="a"))
    found = told(watch, reply(159_000, session="b"))
    assert [notice.event for notice in found] == ["session", "meter", "warning", "compact"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(3, 200_000)), max_size=20))
def test_sessions_that_take_turns_in_one_stream_keep_their_figures(steps: list[tuple[str, int]]) -> None:
    watch, last = Watcher(), dict[str, int]()
    for session, used in steps:
        told(watch, reply(used, session=session))
        last[session] = used
    for session, used in last.items():
        found = of(told(watch, result(session_id=session)), "turn")
        assert [notice.facts["used"] for notice in found] == [used]


@pytest.mark.promise("S1.5", "S1.10")
def test_a_flag_that_came_of_a_guessed_window_goes_when_the_stream_names_it() -> None:
    told_window = {"modelUsage": {MODEL: {"contextWindow": 1_000_000}}}
    watch = Watcher()
    assert not of(told(watch, reply(160_000), result(**told_window)), "intervention")
    assert of(told(watch, reply(800_000), result(**told_window)), "intervention")


@pytest.mark.promise("S1.1", "S1.10")
@given(st.integers(150_000, 250_000))
def test_a_cleared_flag_does_not_come_back_without_a_new_figure(used: int) -> None:
    budget = ContextBudget()
    budget.update(reply(used))
    budget.clear_warning()
    budget.clear_compact()
    budget.update(result())
    budget.update(result(usage={"input_tokens": used}))
    assert not budget.should_warn
    assert not budget.should_compact


@pytest.mark.promise("S1.6")
def test_figures_in_both_places_of_a_result_belong_together() -> None:
    budget = ContextBudget()
    budget.update(result(input_tokens=100, usage={"cache_read_input_tokens": 50, "input_tokens": None}))
    assert budget.used_tokens == 150


@pytest.mark.promise("S1.12")
def test_the_pointer_names_the_whole_path_when_the_notes_are_not_where_the_agent_works(tmp_path: Path) -> None:
    def prompt(tree: str) -> str:
        watch = Watcher(writer=ScratchWriter(tmp_path))
        init = {"type": "system", "subtype": "init", "session_id": "s1", "cwd": tree}
        return str(of(told(watch, init, reply(160_000), result()), "intervention")[0].facts["text"])

    assert "read .context/scratch.md for" in prompt(f"{tmp_path}/")
    assert f"read {tmp_path}/.context/scratch.md for" in prompt("/somewhere/else")


@pytest.mark.promise("S1.14")
def test_while_more_waits_to_be_read_the_notes_wait_too_but_nobody_is_pointed_to_old_ones(tmp_path: Path) -> None:
    def notes() -> str:
        file = tmp_path / ".context" / "human-input.md"
        return file.read_text("utf-8") if file.exists() else ""

    watch = Watcher(writer=ScratchWriter(tmp_path))
    watch.pace(behind=True)
    told(watch, said("first"), reply(9), result())
    assert not notes()
    watch.pace(behind=False)
    assert "first" in notes()
    watch.pace(behind=True)
    told(watch, said("second"), reply(10), said("third"), reply(160_000))
    assert "third" in notes()
    told(watch, said("fourth"), result())
    assert "fourth" in notes()
    told(watch, said("fifth"), reply(11), result())
    assert "fifth" not in notes()
    watch.end()
    assert "fifth" in notes()


def test_the_command_takes_a_session_files_last_reply_for_the_end_of_its_turn(tmp_path: Path) -> None:
    def code(*events: dict[str, Any]) -> int:
        file = tmp_path / "session.jsonl"
        file.write_text("".join(json.dumps(filed(event)) + "\n" for event in events))
        done = foldline("watch", "--json", str(file))
        assert json.loads(done.stdout.splitlines()[-1])["code"] == done.returncode
        return done.returncode

    asked, waits = said("why?"), reply(9, call("Bash", command="ls"))
    assert code(asked, waits, answer("a b"), reply(10, text("so it is"))) == 0
    assert code(asked, waits, answer("a b"), reply(160_000, text("so it is"))) == 10
    assert code(asked, waits) == 12


@pytest.mark.promise("S1.15")
@pytest.mark.parametrize(
    ("event", "words"),
    [
        (said("<ide_opened_file>The user opened /w/a.py</ide_opened_file>\nfix it"), ["fix it"]),
        (said("<ide_selection>x</ide_selection> <ide_opened_file>y</ide_opened_file>fix it"), ["fix it"]),
        (said("<ide_selection>never closed"), ["<ide_selection>never closed"]),
        (
            answer(f"The user doesn't want this. {REFUSED} use tabs\n\nNote: The user's next message may", error=True),
            ["use tabs"],
        ),
        (answer(f"{REFUSED} The user wants to clarify these questions. This means", error=True), []),
    ],
)
def test_only_a_persons_own_words_are_human_input(event: dict[str, Any], words: list[str]) -> None:
    model = ScratchModel()
    model.extract(event)
    assert model.human_inputs == words


@pytest.mark.skipif(not DATA.is_dir(), reason="FOLDLINE_DATA names no folder")
def test_every_recorded_session_that_is_full_gets_its_compaction() -> None:
    full = turns = files = 0
    for file in sorted(DATA.glob("entire-claude-code/*.jsonl.gz")):
        watch, files = Watcher(), files + 1
        notices = [
            notice
            for line in raw_lines_of_file(str(file), LineSplitter())
            if (event := load(line)) is not None
            for notice in watch.feed(event)
        ]
        notices += watch.end()
        turns += bool(of(notices, "turn"))
        if watch.meter.should_compact and watch.last_error is not None:
            full += 1
            assert of(notices, "intervention"), file.name
    assert turns > 0.9 * files
    assert full


@pytest.mark.promise("S1.14")
def test_nobody_is_pointed_to_notes_that_could_not_be_written(tmp_path: Path) -> None:
    class Full:
        """A writer on a full disk."""

        path = tmp_path / ".context" / "scratch.md"

        def write_scratch(self, model: ScratchModel) -> bool:
            return model.weight < 0

    watch = Watcher(writer=Full())
    found = of(told(watch, said("keep the tabs"), reply(160_000), result()), "intervention")
    assert "scratch.md" not in found[0].facts["text"]
    assert watch.model.human_inputs == ["keep the tabs"]


def test_an_index_that_somebody_else_wrote_is_put_right(tmp_path: Path) -> None:
    watch = Watcher(writer=ScratchWriter(tmp_path), model=ScratchModel(job="the table test"))
    told(watch, said("go"), reply(9), result())
    ScratchWriter(tmp_path).write_scratch(ScratchModel())
    told(watch, reply(10), result())
    assert (tmp_path / ".context" / "scratch.md").read_text("utf-8").startswith("# Job: the table test\n")


@pytest.mark.promise("S1.15")
def test_a_persons_first_words_after_a_compaction_are_kept() -> None:
    model = ScratchModel()
    for event in (said("before"), boundary(), said("go on"), reply(9), said("after")):
        model.extract(event)
    assert model.human_inputs == ["before", "go on", "after"]
