"""What an agent has spent, by its own figure or by usage and prices, and the limits of jobs and projects."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from foldline.errors import ConfigError
from foldline.watch.cost import CostBudget, CostLimits, ProjectCosts, Spending
from foldline.watch.watcher import Watcher
from support.agent_events import ANYTHING, lines, reply, result
from support.command import foldline
from support.watching import feed_all, filed, spawn, start, text_block


def spent(*events: dict[str, Any]) -> float:
    spending = Spending()
    for event in events:
        spending.feed(event)
    return spending.usd


@pytest.mark.promise("S1.30")
def test_usage_is_priced_by_the_model_table() -> None:
    usage = {"input_tokens": 1_000_000, "output_tokens": 100_000, "cache_read_input_tokens": 1_000_000}
    event = {"type": "assistant", "message": {"id": "m", "model": "claude-sonnet-4-5", "usage": usage}}
    assert spent(event) == pytest.approx(3 + 1.5 + 0.3)
    assert spent(event, event) == pytest.approx(3 + 1.5 + 0.3)


@pytest.mark.promise("S1.30")
def test_the_streams_own_cost_figure_replaces_the_estimate() -> None:
    assert spent(reply(100_000), result(total_cost_usd=0.5)) == pytest.approx(0.5)
    first, second = reply(100_000), reply(100_000, id="m2")
    assert spent(first, result(total_cost_usd=0.5), second, result(total_cost_usd=0.7)) == pytest.approx(0.7)


@pytest.mark.promise("S1.30")
def test_the_results_of_runs_without_assistant_events_add_their_costs() -> None:
    assert spent(result(total_cost_usd=0.5), result(total_cost_usd=0.7)) == pytest.approx(1.2)
    assert spent(*[result(total_cost_usd=0.01, session_id="a")] * 3) == pytest.approx(0.03)


def test_a_cost_figure_that_restarts_with_each_process_is_added() -> None:
    assert spent(result(total_cost_usd=0.5), result(total_cost_usd=0.2)) == pytest.approx(0.7)
    assert spent(
        result(total_cost_usd=0.5, session_id="a"), result(total_cost_usd=0.2, session_id="b")
    ) == pytest.approx(0.7)
    dear = [reply(size * 1_000_000) for size in (1, 2)]
    one = spent(dear[0])
    assert spent(dear[0], result(total_cost_usd=one), dear[1], result(total_cost_usd=2 * one)) == pytest.approx(3 * one)


def test_the_cost_of_sub_agents_counts() -> None:
    assert spent(reply(100_000), reply(90_000, parent_tool_use_id="t1")) > spent(reply(100_000))


def test_a_model_without_a_price_is_reported() -> None:
    spending = Spending()
    spending.feed(reply(100_000, model="my-own-model"))
    assert spending.usd == 0
    assert spending.unpriced == "my-own-model"


@given(st.lists(st.one_of(st.builds(lambda value: result(total_cost_usd=value), ANYTHING), st.just(reply(9)))))
def test_spending_is_never_negative_and_never_raises(events: list[dict[str, Any]]) -> None:
    assert spent(*events) >= 0


@given(st.lists(st.floats(0, 20), min_size=1))
def test_each_event_of_a_budget_comes_once_and_in_order(spendings: list[float]) -> None:
    assume(not any(0 < abs(spending - line) < 1e-6 for spending in spendings for line in (8, 10)))
    budget = CostBudget(limit_usd=10)
    names = [event.name for spending in spendings for event in budget.check(spending)]
    assert names in ([], ["COST_WARNING"], ["COST_WARNING", "COST_LIMIT", "INPUT_REQUESTED"])
    assert ("COST_WARNING" in names) == (max(spendings) >= 8)
    assert ("COST_LIMIT" in names) == (max(spendings) >= 10)


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf")])
def test_an_impossible_limit_is_refused(limit: float) -> None:
    with pytest.raises(ConfigError, match="an amount above 0"):
        CostBudget(limit_usd=limit)


def test_foreign_rows_in_the_projects_file_are_ignored(tmp_path: Path) -> None:
    file = tmp_path / "costs.jsonl"
    ProjectCosts(file, "a").record(1.5)
    with open(file, "ab") as rows:
        rows.write(b'not json\n[]\n{"job": "b", "usd": -4}\n{"job": "b", "usd": 2}\n{"job": "c", "usd": 7')
    costs = ProjectCosts(file, "d")
    assert costs.record(0.0) == pytest.approx(3.5)
    with open(file, "ab") as rows:
        rows.write(b'0}\n{"job": "b", "usd": 3}\n')
    assert costs.record(0.0) == pytest.approx(74.5)


def test_a_new_limit_warns_again() -> None:
    budget = CostBudget(limit_usd=10)
    budget.check(11)
    assert budget.answer(go_on=True, limit_usd=20) == ""
    assert [event.name for event in budget.check(16)] == ["COST_WARNING"]
    assert "COST_LIMIT" in [event.name for event in budget.check(20)]


def test_after_a_yes_the_limit_no_longer_stops_and_is_not_reported_again() -> None:
    budget = CostBudget(limit_usd=10)
    limits = CostLimits(job=budget)
    assert budget.check(12)
    assert limits.over is budget
    limits.answer(go_on=True)
    assert limits.over is None
    assert not budget.check(15)
    assert limits.over is None


@pytest.mark.promise("S1.30")
@given(st.integers(1, 100_000), st.integers(1, 100))
def test_a_share_of_a_limit_is_reached_exactly_to_the_cent(cents: int, calls: int) -> None:
    """Neither 80 % of $0.10 nor ten times $0.10 is a number that a float holds."""
    whole, part = cents / 100, cents / 100 / calls
    assert [event.name for event in CostBudget(limit_usd=whole).check(cents * 80 / 10_000)] == ["COST_WARNING"]
    assert "COST_LIMIT" in [event.name for event in CostBudget(limit_usd=whole).check(sum([part] * calls))]
    assert not CostBudget(limit_usd=whole).check((cents * 80 - 1) / 10_000)


def project(file: Path, job: str, limit: float = 1) -> CostLimits:
    return CostLimits(project=CostBudget(limit_usd=limit, scope="project"), costs=ProjectCosts(file, job))


@pytest.mark.promise("S1.32")
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 64)), min_size=1, max_size=30))
def test_processes_of_one_job_name_at_the_same_time_all_count(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int]]
) -> None:
    file = tmp_path_factory.mktemp("project") / "costs.jsonl"
    runs = [ProjectCosts(file, "fix") for _ in range(4)]
    spent = [0.0] * 4
    for run, sixteenths in rows:
        spent[run] += sixteenths / 16
        assert runs[run].record(spent[run]) == pytest.approx(sum(spent))
    assert ProjectCosts(file, "fix").record(0.5) == pytest.approx(sum(spent) + 0.5)


@pytest.mark.promise("S1.32")
def test_rows_of_earlier_versions_still_count(tmp_path: Path) -> None:
    file = tmp_path / "costs.jsonl"
    file.write_text("".join(json.dumps({"job": "fix", "usd": usd}) + "\n" for usd in (0.2, 0.4, 0.7)))
    assert ProjectCosts(file, "fix").record(0.5) == pytest.approx(1.2)


@pytest.mark.promise("S1.32")
def test_a_new_job_learns_at_once_that_the_project_limit_is_reached(tmp_path: Path) -> None:
    file = tmp_path / "costs.jsonl"
    project(file, "first").check(1.5, turn_ended=True)
    names = [event.name for event in project(file, "second").check(0.0)]
    assert names == ["COST_WARNING", "COST_LIMIT", "INPUT_REQUESTED"]


@pytest.mark.parametrize("trap", ["fifo", "folder", "link", "nowhere", "device"])
def test_an_unusable_projects_file_is_refused_at_once(tmp_path: Path, trap: str) -> None:
    file = tmp_path / "costs.jsonl"
    if trap == "fifo":
        os.mkfifo(file)
    elif trap == "folder":
        file.mkdir()
    elif trap == "link":
        file.symlink_to(tmp_path / "other")
    else:
        file = Path("/dev/null") if trap == "device" else tmp_path / "missing" / "costs.jsonl"
    with pytest.raises(ConfigError, match="name another file with --project-costs, in a folder that you may write to"):
        ProjectCosts(file, "a")


def test_an_incomplete_row_does_not_damage_other_rows(tmp_path: Path) -> None:
    file = tmp_path / "costs.jsonl"
    file.write_bytes(b'{"job": "full", "usd": 3}\n{"job": "full", "us')
    costs = ProjectCosts(file, "a")
    assert costs.record(1.0) == pytest.approx(4.0)
    assert ProjectCosts(file, "b").record(0.0) == pytest.approx(4.0)


@pytest.mark.promise("S1.30")
def test_costs_of_alternating_sessions_are_kept_apart() -> None:
    watch = Watcher()

    def priced(usd: float, session: str) -> dict[str, Any]:
        """A reply of that price, at three dollars for a million tokens."""
        event = reply(3, session=session)
        event["message"] |= {"id": f"{session} {usd}", "usage": {"input_tokens": round(usd / 3 * 1_000_000)}}
        return event

    feed_all(watch, priced(0.5, "a"), result(session_id="a", total_cost_usd=0.5))
    feed_all(watch, priced(0.6, "a"), priced(0.2, "b"), result(session_id="b", total_cost_usd=0.2))
    feed_all(watch, result(session_id="a", total_cost_usd=0.6))
    assert watch.spending.usd == pytest.approx(1.3)


@pytest.mark.promise("S1.32")
def test_a_run_without_a_result_is_recorded_and_a_file_read_twice_counts_once(tmp_path: Path) -> None:
    costs, file = tmp_path / "costs.jsonl", tmp_path / "session.jsonl"
    events = [filed({**reply(100_000 + number, text_block("so"))}) for number in range(3)]
    file.write_text("".join(json.dumps(event) + "\n" for event in events))
    ends = []
    for _ in range(2):
        done = foldline("watch", "--json", "--project-limit", "100", "--project-costs", str(costs), str(file))
        ends.append(json.loads(done.stdout.splitlines()[-1])["cost_usd"])
    rows = [json.loads(line) for line in costs.read_text().splitlines()]
    assert len({row["run"] for row in rows}) == 1
    assert ends == [rows[-1]["usd"]] * 2


@pytest.mark.promise("S1.30")
@given(st.integers(1, 400), st.sampled_from([-1, 0, 1]), st.sampled_from([4, 5]))
def test_a_limit_is_reached_at_its_last_cent_and_not_before(quarters: int, step: int, fifths: int) -> None:
    """In amounts that floats hold exactly: 80 % and 100 % of them, and a hair to each side."""
    limit = quarters * 1.25
    spent = fifths * quarters / 4 + step / 1_024
    names = [event.name for event in CostBudget(limit_usd=limit).check(spent)]
    assert ("COST_WARNING" in names) == (spent >= quarters)
    assert ("COST_LIMIT" in names) == (spent >= limit)


@pytest.mark.promise("S1.32")
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 64)), min_size=1, max_size=30))
def test_a_projects_sum_is_that_of_its_jobs_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int]]
) -> None:
    file = tmp_path_factory.mktemp("project") / "costs.jsonl"
    jobs = [ProjectCosts(file, f"job {number}") for number in range(4)]
    spent = [0.0] * 4
    for job, sixteenths in rows:
        spent[job] += sixteenths / 16
        assert jobs[job].record(spent[job]) == pytest.approx(sum(spent))


@pytest.mark.promise("S1.32")
def test_four_jobs_at_once_share_one_limit(tmp_path: Path) -> None:
    shared = ("--project-limit", "1", "--project-costs", str(tmp_path / "costs.jsonl"))
    jobs = [start("watch", "--json", "--job", f"job {number}", *shared) for number in range(4)]
    for number, job in enumerate(jobs):
        assert job.stdin is not None
        turns = [result(session_id=f"s{number}", total_cost_usd=0.03 * turn) for turn in range(1, 11)]
        job.stdin.write(lines(reply(9, session=f"s{number}"), *turns))
        job.stdin.close()
        job.stdin = None
    told = [[json.loads(line) for line in job.communicate(timeout=60)[0].splitlines()] for job in jobs]
    limits = [event for events in told for event in events if event["event"] == "cost_limit"]
    assert limits
    assert all(event["scope"] == "project" and 1 <= event["spent"] <= 1.2 for event in limits)
    assert {events[-1]["code"] for events in told} <= {0, 11}
    late = spawn("watch", "--json", "--job", "late", *shared, given=lines(reply(9), result(total_cost_usd=0.01)))
    assert late.returncode == 11
