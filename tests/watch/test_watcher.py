"""What a watcher reports, in which order, and which message waits for the next turn."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.compat.context_budget import ScratchModel, ScratchWriter
from foldline.watch.cost import CostBudget, CostLimits, ProjectCosts
from foldline.watch.interventions import InterventionQueue, compact_tool
from foldline.watch.watcher import Watcher, WatchEvent
from support.agent_events import EVENTS, answer, boundary, call, reply, result, said
from support.watching import feed_all, named


def names(notices: list[WatchEvent]) -> list[str]:
    return [notice.event for notice in notices if notice.event not in ("meter", "session")]


@pytest.mark.promise("S1.9", "S1.13")
def test_a_compaction_waits_for_the_end_of_the_turn_and_opens_the_next_one() -> None:
    watch = Watcher(model=ScratchModel(job="fix the parser"), state="WORK")
    assert names(feed_all(watch, reply(160_000))) == ["warning", "compact"]
    assert watch.take("s1") is None
    last = feed_all(watch, result())[-1]
    assert last.event == "intervention"
    assert watch.take("s1") == "/compact focus on fix the parser -- current CfA state is WORK"
    assert watch.take("s1") is None


@pytest.mark.promise("S1.13")
def test_a_compaction_is_sent_once_each_time_the_threshold_is_crossed() -> None:
    watch = Watcher()
    feed_all(watch, reply(160_000), result())
    assert watch.take("s1")
    feed_all(watch, reply(161_000), result())
    assert watch.take("s1") is None
    feed_all(watch, boundary(), reply(10_000), result(), reply(162_000), result())
    assert watch.take("s1")


@pytest.mark.promise("F9")
def test_a_compaction_belongs_to_one_session() -> None:
    watch = Watcher()
    feed_all(watch, reply(160_000, session="a"), result(session_id="a"))
    feed_all(watch, reply(10_000, session="b"))
    assert watch.take("b") is None
    assert watch.take("a") is None


@pytest.mark.promise("F9")
def test_a_compaction_is_sent_alone_and_first() -> None:
    pending = InterventionQueue()
    pending.put("s1", "wrap up")
    pending.put("s1", "/compact focus on x")
    pending.put("s1", "/compact focus on y")
    pending.put("s2", "other")
    assert [pending.take("s1"), pending.take("s1"), pending.take("s1")] == ["/compact focus on y", "wrap up", None]


@pytest.mark.promise("F9", "F24")
def test_the_agents_own_compaction_drops_the_waiting_one() -> None:
    watch = Watcher()
    feed_all(watch, reply(160_000), result())
    notices = feed_all(watch, boundary(trigger="auto", before=170_000))
    assert notices[0].facts == {"trigger": "auto", "before": 170_000, "after": None}
    assert watch.take("s1") is None


@pytest.mark.promise("F9")
@pytest.mark.parametrize("name", ["compact_context", "mcp__foldline__compact_context"])
def test_an_agent_may_ask_for_its_own_compaction(name: str) -> None:
    assert compact_tool()["name"] == "compact_context"
    watch = Watcher(writer=None)
    feed_all(watch, reply(9_000, call(name, focus="the schema")), answer("noted"), result())
    assert watch.take("s1") == "/compact focus on the schema"


@pytest.mark.promise("F12", "S1.14")
def test_the_scratch_is_on_disk_before_the_prompt_that_names_it(tmp_path: Path) -> None:
    watch = Watcher(writer=ScratchWriter(tmp_path), model=ScratchModel(job="j"))
    feed_all(watch, said("keep the tabs"), reply(160_000, call("Write", file_path="a.py", content="x")))
    page = tmp_path / ".context" / "scratch.md"
    assert "keep the tabs" in page.read_text()
    page.unlink()
    (intervention,) = [one for one in feed_all(watch, said("and this"), result()) if one.event == "intervention"]
    assert ".context/scratch.md" in intervention.facts["text"]
    assert "and this" in page.read_text()
    assert "a.py" in page.read_text()


def test_a_compaction_is_noted_as_a_state_change(tmp_path: Path) -> None:
    watch = Watcher(writer=ScratchWriter(tmp_path))
    feed_all(watch, said("one"), boundary(before=155_000))
    text = (tmp_path / ".context" / "scratch.md").read_text()
    assert "compacted (auto, 155,000 tokens before)" in text
    assert "- #1: one" in text


@pytest.mark.promise("S1.35")
def test_dead_ends_are_in_the_index_with_their_evidence(tmp_path: Path) -> None:
    watch = Watcher(writer=ScratchWriter(tmp_path))
    notices = feed_all(
        watch,
        *(
            event
            for each in ("t1", "t2")
            for event in (
                reply(9_000, call("Bash", each, command="x")),
                answer("Error: key=sk-ant-api03-" + "a" * 60, each, error=True),
            )
        ),
        result(),
    )
    (found,) = [notice for notice in notices if notice.event == "dead_end"]
    assert found.facts["evidence"] == ["t1", "t2"]
    assert "sk-ant" not in str(notices)
    detail = (tmp_path / ".context" / "dead-ends.md").read_text()
    assert "t1, t2" in detail
    assert "sk-ant" not in detail


@pytest.mark.promise("S1.30", "S1.31")
def test_the_cost_of_a_job_warns_once_and_then_asks() -> None:
    watch = Watcher(limits=CostLimits(job=CostBudget(limit_usd=10)))
    assert names(feed_all(watch, result(total_cost_usd=7.9)))[:1] == ["turn"]
    (warning, *_) = feed_all(watch, result(total_cost_usd=0.1))
    assert (warning.event, warning.facts["scope"]) == ("cost_warning", "job")
    asked = names(feed_all(watch, result(total_cost_usd=2.5)))
    assert asked[:2] == ["cost_limit", "input_requested"]
    assert "cost_limit" not in names(feed_all(watch, result(total_cost_usd=0.5)))
    (wrap_up,) = watch.answer(go_on=False)
    assert "Then stop." in wrap_up.facts["text"]
    assert watch.take("s1") == wrap_up.facts["text"]


@pytest.mark.promise("S1.31")
def test_a_yes_lets_the_job_go_on() -> None:
    budget = CostBudget(limit_usd=10)
    watch = Watcher(limits=CostLimits(job=budget))
    feed_all(watch, result(total_cost_usd=10.5))
    assert watch.answer(go_on=True) == []
    assert watch.take("s1") is None
    assert not budget.paused
    assert names(feed_all(watch, result(total_cost_usd=12))) == ["turn"]


@pytest.mark.promise("S1.32")
def test_a_project_has_a_limit_of_its_own_over_all_its_jobs(tmp_path: Path) -> None:
    file = tmp_path / "costs.jsonl"
    for job in ("a", "b"):
        project = CostBudget(limit_usd=10, scope="project")
        watch = Watcher(limits=CostLimits(job=CostBudget(limit_usd=50), project=project, costs=ProjectCosts(file, job)))
        found = names(feed_all(watch, result(total_cost_usd=6)))
    assert found[:3] == ["cost_warning", "cost_limit", "input_requested"]
    again = ProjectCosts(file, "a")
    assert again.record(1.0) == pytest.approx(13.0)


@given(st.lists(EVENTS, max_size=15))
def test_no_event_can_break_it(events: list[Any]) -> None:
    watch = Watcher(limits=CostLimits(job=CostBudget(limit_usd=1)))
    for event in events:
        if isinstance(event, dict):
            for notice in watch.feed(event):
                assert notice.as_json()["event"]
    watch.take("s1")


@pytest.mark.promise("F9", "S1.13")
def test_a_request_of_the_agent_to_compact_ends_with_its_session() -> None:
    watch = Watcher()
    wish = reply(100, call("compact_context", focus="parser of a"), session="a")
    assert not named(feed_all(watch, wish, reply(50, session="b"), result(session_id="b")), "intervention")


def test_a_refused_request_of_the_agent_to_compact_is_dropped() -> None:
    wish = reply(100, call("compact_context", focus="the parser"))
    assert not named(feed_all(Watcher(), wish, answer("no", error=True), result()), "intervention")
    assert named(feed_all(Watcher(), wish, answer("yes"), result()), "intervention")


@pytest.mark.promise("S1.12")
def test_the_prompt_names_the_absolute_path_when_the_agent_works_in_another_folder(tmp_path: Path) -> None:
    def prompt(tree: str) -> str:
        watch = Watcher(writer=ScratchWriter(tmp_path))
        init = {"type": "system", "subtype": "init", "session_id": "s1", "cwd": tree}
        return str(named(feed_all(watch, init, reply(160_000), result()), "intervention")[0].facts["text"])

    assert "read .context/scratch.md for" in prompt(f"{tmp_path}/")
    assert f"read {tmp_path}/.context/scratch.md for" in prompt("/somewhere/else")


@pytest.mark.promise("S1.14")
def test_writing_is_delayed_while_input_waits_but_not_before_a_prompt_that_names_the_notes(tmp_path: Path) -> None:
    def notes() -> str:
        file = tmp_path / ".context" / "human-input.md"
        return file.read_text("utf-8") if file.exists() else ""

    watch = Watcher(writer=ScratchWriter(tmp_path))
    watch.pace(behind=True)
    feed_all(watch, said("first"), reply(9), result())
    assert not notes()
    watch.pace(behind=False)
    assert "first" in notes()
    watch.pace(behind=True)
    feed_all(watch, said("second"), reply(10), said("third"), reply(160_000))
    assert "third" in notes()
    feed_all(watch, said("fourth"), result())
    assert "fourth" in notes()
    feed_all(watch, said("fifth"), reply(11), result())
    assert "fifth" not in notes()
    watch.end()
    assert "fifth" in notes()


@pytest.mark.promise("S1.14")
def test_a_prompt_does_not_name_notes_that_could_not_be_written(tmp_path: Path) -> None:
    class Full:
        """A writer on a full disk."""

        path = tmp_path / ".context" / "scratch.md"

        def write_scratch(self, model: ScratchModel) -> bool:
            return model.weight < 0

    watch = Watcher(writer=Full())
    found = named(feed_all(watch, said("keep the tabs"), reply(160_000), result()), "intervention")
    assert "scratch.md" not in found[0].facts["text"]
    assert watch.model.human_inputs == ["keep the tabs"]


WARN, COMPACT = Fraction(70, 100), Fraction(78, 100)


@pytest.mark.promise("S1.13")
@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(3, 200_000), st.booleans()), max_size=20))
def test_a_compaction_is_sent_only_to_a_session_that_was_full_itself(steps: list[tuple[str, int, bool]]) -> None:
    watch = Watcher()
    full: set[str] = set()
    for session, used, ends in steps:
        told = watch.feed(reply(used, session=session))
        if Fraction(used, 200_000) >= COMPACT:
            full.add(session)
        if ends:
            told += watch.feed(result(session_id=session))
        for notice in told:
            if notice.event == "intervention":
                assert notice.session == session
                assert session in full
                assert "\n" not in str(notice.facts["text"])
        other = "b" if session == "a" else "a"
        assert watch.take(other) is None
