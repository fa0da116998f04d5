"""One agent under watch: what is told, in which order, and what waits for its next turn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.watch.cost import CostBudget, CostLimits, ProjectCosts
from foldline.watch.interventions import InterventionQueue, compact_tool
from foldline.watch.meter import Meter
from foldline.watch.scratch import ScratchModel
from foldline.watch.scratch_files import ScratchWriter
from foldline.watch.watcher import Watcher, WatchEvent
from support.agent_events import EVENTS, answer, boundary, call, reply, result, said


def told(watch: Watcher, *events: dict[str, Any]) -> list[WatchEvent]:
    return [notice for event in events for notice in watch.feed(event)]


def names(notices: list[WatchEvent]) -> list[str]:
    return [notice.event for notice in notices if notice.event not in ("meter", "session")]


@pytest.mark.promise("S1.9", "S1.13")
def test_the_command_waits_for_the_end_of_the_turn_and_opens_the_next_one() -> None:
    watch = Watcher(model=ScratchModel(job="fix the parser"), state="WORK")
    assert names(told(watch, reply(160_000))) == ["warning", "compact"]
    assert watch.take("s1") is None
    last = told(watch, result())[-1]
    assert last.event == "intervention"
    assert watch.take("s1") == "/compact focus on fix the parser -- current CfA state is WORK"
    assert watch.take("s1") is None


@pytest.mark.promise("S1.13")
def test_a_command_is_given_once_for_each_time_the_line_is_crossed() -> None:
    watch = Watcher()
    told(watch, reply(160_000), result())
    assert watch.take("s1")
    told(watch, reply(161_000), result())
    assert watch.take("s1") is None
    told(watch, boundary(), reply(10_000), result(), reply(162_000), result())
    assert watch.take("s1")


@pytest.mark.promise("F9")
def test_the_command_belongs_to_one_session() -> None:
    watch = Watcher()
    told(watch, reply(160_000, session="a"), result(session_id="a"))
    told(watch, reply(10_000, session="b"))
    assert watch.take("b") is None
    assert watch.take("a") is None


@pytest.mark.promise("F9")
def test_the_command_is_sent_alone_and_first() -> None:
    pending = InterventionQueue()
    pending.put("s1", "wrap up")
    pending.put("s1", "/compact focus on x")
    pending.put("s1", "/compact focus on y")
    pending.put("s2", "other")
    assert [pending.take("s1"), pending.take("s1"), pending.take("s1")] == ["/compact focus on y", "wrap up", None]


@pytest.mark.promise("F9", "F24")
def test_the_agents_own_compaction_makes_the_command_lapse() -> None:
    watch = Watcher()
    told(watch, reply(160_000), result())
    notices = told(watch, boundary(trigger="auto", before=170_000))
    assert notices[0].facts == {"trigger": "auto", "before": 170_000, "after": None}
    assert watch.take("s1") is None


@pytest.mark.promise("F9")
@pytest.mark.parametrize("name", ["compact_context", "mcp__foldline__compact_context"])
def test_an_agent_may_ask_for_its_own_compaction(name: str) -> None:
    assert compact_tool()["name"] == "compact_context"
    watch = Watcher(writer=None)
    told(watch, reply(9_000, call(name, focus="the schema")), answer("noted"), result())
    assert watch.take("s1") == "/compact focus on the schema -- current CfA state is in progress"


@pytest.mark.promise("F12", "S1.14")
def test_the_scratch_is_on_disk_before_the_prompt_that_names_it(tmp_path: Path) -> None:
    watch = Watcher(writer=ScratchWriter(tmp_path), model=ScratchModel(job="j"))
    told(watch, said("keep the tabs"), reply(160_000, call("Write", file_path="a.py", content="x")))
    page = tmp_path / ".context" / "scratch.md"
    assert "keep the tabs" in page.read_text()
    page.unlink()
    (intervention,) = [one for one in told(watch, said("and this"), result()) if one.event == "intervention"]
    assert ".context/scratch.md" in intervention.facts["text"]
    assert "and this" in page.read_text()
    assert "a.py" in page.read_text()


def test_a_compaction_leaves_a_trace_in_the_scratch(tmp_path: Path) -> None:
    watch = Watcher(writer=ScratchWriter(tmp_path))
    told(watch, said("one"), boundary(before=155_000))
    text = (tmp_path / ".context" / "scratch.md").read_text()
    assert "compacted (auto, 155,000 tokens before)" in text
    assert "- #1: one" in text


@pytest.mark.promise("S1.35")
def test_dead_ends_reach_the_page_with_their_evidence(tmp_path: Path) -> None:
    watch = Watcher(writer=ScratchWriter(tmp_path))
    notices = told(
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
    assert names(told(watch, result(total_cost_usd=7.9)))[:1] == ["turn"]
    (warning, *_) = told(watch, result(total_cost_usd=8.0))
    assert (warning.event, warning.facts["scope"]) == ("cost_warning", "job")
    asked = names(told(watch, result(total_cost_usd=10.5)))
    assert asked[:2] == ["cost_limit", "input_requested"]
    assert "cost_limit" not in names(told(watch, result(total_cost_usd=11)))
    (wrap_up,) = watch.answer(go_on=False)
    assert "Then stop." in wrap_up.facts["text"]
    assert watch.take("s1") == wrap_up.facts["text"]


@pytest.mark.promise("S1.31")
def test_a_yes_lets_the_job_go_on() -> None:
    budget = CostBudget(limit_usd=10)
    watch = Watcher(limits=CostLimits(job=budget))
    told(watch, result(total_cost_usd=10.5))
    assert watch.answer(go_on=True) == []
    assert watch.take("s1") is None
    assert not budget.paused
    assert names(told(watch, result(total_cost_usd=12))) == ["turn"]


@pytest.mark.promise("S1.32")
def test_a_project_has_a_limit_of_its_own_over_all_its_jobs(tmp_path: Path) -> None:
    file = tmp_path / "costs.jsonl"
    for job in ("a", "b"):
        project = CostBudget(limit_usd=10, scope="project")
        watch = Watcher(limits=CostLimits(job=CostBudget(limit_usd=50), project=project, costs=ProjectCosts(file, job)))
        found = names(told(watch, result(total_cost_usd=6)))
    assert found[:3] == ["cost_warning", "cost_limit", "input_requested"]
    again = ProjectCosts(file, "a")
    assert again.record(1.0) == pytest.approx(13.0)


@pytest.mark.parametrize("window", [168_000, 1_000_000])
def test_the_flags_use_the_window_they_are_given(window: int) -> None:
    watch = Watcher(meter=Meter(window=window))
    told(watch, reply(140_000))
    assert watch.meter.should_compact == (window == 168_000)


@given(st.lists(EVENTS, max_size=15))
def test_no_event_can_break_it(events: list[Any]) -> None:
    watch = Watcher(limits=CostLimits(job=CostBudget(limit_usd=1)))
    for event in events:
        if isinstance(event, dict):
            for notice in watch.feed(event):
                assert notice.as_json()["event"]
    watch.take("s1")
