"""What a hostile stream may not bring about: false figures, lost flags, lines that are no JSON, words put elsewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foldline.compat.context_budget import ContextBudget, ScratchModel, ScratchWriter
from foldline.watch.cost import CostBudget, ProjectCosts
from foldline.watch.installer import TARGETS, plan_change
from foldline.watch.watcher import Watcher, WatchEvent
from support.agent_events import SOUND, answer, boundary, call, lines, reply, result, said
from support.command import foldline

WARN, COMPACT = Fraction(70, 100), Fraction(78, 100)
WINDOW = 1_000


def strict(line: str) -> dict[str, Any]:
    """One printed event, read as every other language reads JSON: without NaN and Infinity."""

    def refuse(word: str) -> NoReturn:
        raise AssertionError(f"{word} is no JSON")

    found = json.loads(line, parse_constant=refuse)
    assert isinstance(found, dict)
    return found


def watched(folder: pytest.TempPathFactory, stream: bytes, *options: str) -> list[dict[str, Any]]:
    """What the command tells an orchestrator about a stream."""
    file = folder.mktemp("stream") / "stream.jsonl"
    file.write_bytes(stream)
    done = foldline("watch", "--json", *options, str(file))
    assert not done.stderr
    told = [strict(line) for line in done.stdout.splitlines()]
    assert told[-1]["event"] == "end"
    assert told[-1]["code"] == done.returncode
    return told


# The flags


@pytest.mark.promise("S1.7", "S1.8", "S1.11")
@given(st.integers(1, 2_000_000) | st.integers(1, 20_000).map(lambda number: 50 * number), st.data())
def test_a_flag_comes_at_its_share_and_not_a_token_earlier(window: int, data: st.DataObject) -> None:
    edges = [int(share * window) + step for share in (WARN, COMPACT) for step in (-1, 0, 1)]
    used = data.draw(st.sampled_from([edge for edge in edges if edge >= 0]))
    budget = ContextBudget(context_window=window)
    budget.update(result(usage={"input_tokens": used}))
    assert budget.should_warn == (Fraction(used, window) >= WARN)
    assert budget.should_compact == (Fraction(used, window) >= COMPACT)


STEPS = st.one_of(
    st.tuples(st.just("reply"), st.integers(3, 2 * WINDOW)),
    st.tuples(st.sampled_from(["clear_warning", "clear_compact", "compaction", "other words"]), st.just(0)),
)


@pytest.mark.promise("S1.10")
@given(st.lists(STEPS, max_size=25))
def test_a_flag_goes_only_by_being_cleared_or_by_a_compaction(steps: list[tuple[str, int]]) -> None:
    budget = ContextBudget(context_window=WINDOW)
    warn = compact = False
    for step, used in steps:
        if step == "reply":
            budget.update(reply(used))
            warn |= Fraction(used, WINDOW) >= WARN
            compact |= Fraction(used, WINDOW) >= COMPACT
        elif step == "clear_warning":
            budget.clear_warning()
            warn = False
        elif step == "clear_compact":
            budget.clear_compact()
            compact = False
        elif step == "compaction":
            budget.update(boundary())
            warn = compact = False
        else:
            budget.update(said("go on"))
        assert (budget.should_warn, budget.should_compact) == (warn, compact)


HELPERS = st.builds(
    lambda size, mark: {**reply(size), **mark},
    st.integers(3, 400_000),
    st.sampled_from([{"parent_tool_use_id": "toolu_9"}, {"isSidechain": True}]),
)


def of_the_window(notices: list[WatchEvent]) -> list[tuple[str, Any]]:
    kinds = ("meter", "warning", "compact", "turn", "intervention", "compacted")
    return [(notice.event, notice.facts.get("used")) for notice in notices if notice.event in kinds]


@given(st.lists(st.tuples(SOUND, st.lists(HELPERS, max_size=2)), max_size=12))
def test_sub_agents_anywhere_in_between_change_no_figure(
    steps: list[tuple[dict[str, Any], list[dict[str, Any]]]],
) -> None:
    alone, among = Watcher(), Watcher()
    plain, mixed = alone.feed(reply(9)), among.feed(reply(9))
    for event, helpers in steps:
        for helper in helpers:
            mixed += among.feed(helper)
        event["session_id"] = "s1"
        plain += alone.feed(event)
        mixed += among.feed(event)
    assert of_the_window(mixed) == of_the_window(plain)
    assert among.meter.should_warn == alone.meter.should_warn
    assert among.meter.should_compact == alone.meter.should_compact


@pytest.mark.promise("S1.13")
@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(3, 200_000), st.booleans()), max_size=20))
def test_a_command_is_only_for_a_session_that_was_too_full_itself(steps: list[tuple[str, int, bool]]) -> None:
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


# The stream

NOISE = st.one_of(
    st.sampled_from(
        [b"", b"\0\0", b"\xff\xfe{", b"\xe2\x9c", b"null", b"17", b'"text"', b"[1, 2]", b'{"half": ', b"\r"]
    ),
    st.sampled_from([b"[" * 100_000, b'{"a":' * 3_000, b"9" * 5_000, b'{"type": "assistant"} trailing']),
    st.binary(max_size=30).map(lambda noise: noise.replace(b"\n", b"").replace(b"{", b"")),
)


@given(st.lists(st.tuples(SOUND, st.lists(NOISE, max_size=2)), max_size=8), st.sampled_from([b"\n", b"\r\n"]))
@settings(max_examples=60)
def test_noise_between_the_lines_changes_nothing_but_its_own_count(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[Any, list[bytes]]], end: bytes
) -> None:
    clean = lines(*(event for event, _ in steps))
    noisy = b"".join(
        b"".join(noise + end for noise in noises) + json.dumps(event).encode() + end for event, noises in steps
    )
    told, told_in_noise = watched(tmp_path_factory, clean), watched(tmp_path_factory, noisy)
    told[-1].pop("garbage")
    told_in_noise[-1].pop("garbage")
    assert told_in_noise == told


NUMBERS = (
    *("1e400", "-1e400", "NaN", "Infinity", "-Infinity", "-5", "1.5", "1e5", "true", '"123"', "null", "[1]", "{}"),
    *("9" * 400, "9" * 5_000, "1e308", "-0.0", "0.1e1", "18446744073709551616"),
)


@given(st.lists(st.sampled_from(NUMBERS), min_size=5, max_size=5))
def test_no_number_in_a_stream_gives_a_figure_that_cannot_be(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[str]
) -> None:
    usage = {"input_tokens": "@0", "cache_read_input_tokens": "@1", "output_tokens": "@2"}
    message = {"id": "m", "model": "claude-sonnet-4-5", "content": [], "usage": usage}
    window = {"claude-sonnet-4-5": {"contextWindow": "@4"}}
    odd = lines({"type": "assistant", "message": message}, result(total_cost_usd="@3", modelUsage=window)).decode()
    for place, number in enumerate(numbers):
        odd = odd.replace(f'"@{place}"', number)
    for told in watched(tmp_path_factory, odd.encode() + lines(reply(1_000), result()), "--cost-limit", "1000000"):
        assert told.get("used", 0) >= 0
        assert told.get("window", 1) >= 1
        assert told.get("cost_usd", 0.0) >= 0
    assert told["used"] == 1_000


@pytest.mark.parametrize("depth", [50, 200, 400, 900, 5_000])
@pytest.mark.parametrize("place", ["content", "usage", "input"])
def test_nesting_at_any_depth_is_survived(tmp_path_factory: pytest.TempPathFactory, depth: int, place: str) -> None:
    nest = '[{"content": ' * depth + "1" + "}]" * depth
    inside = {"content": nest, "usage": nest, "input": f'[{{"type": "tool_use", "name": "Edit", "input": {nest}}}]'}
    key = "usage" if place == "usage" else "content"
    event = (
        f'{{"type": "assistant", "session_id": "s1", "message": {{"role": "assistant", "{key}": {inside[place]}}}}}\n'
    )
    told = watched(tmp_path_factory, event.encode() + lines(reply(1_000), result()))
    assert told[-1]["used"] == 1_000
    assert told[-1]["turns"] == 1


def test_a_window_of_one_token_is_full_at_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    told = watched(tmp_path_factory, lines(reply(3), result()), "--window", "1")
    assert [event["event"] for event in told if event["event"] in ("warning", "compact", "intervention")] == [
        "warning",
        "compact",
        "intervention",
    ]
    assert (told[-1]["share"], told[-1]["code"]) == (3.0, 10)


# The cost


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


# The notes

BREAKS = st.text(alphabet="ab \n\r\v\f\x1b\x1c\x1d\x1e\x85\u202e\u2028\u2029#>-`", max_size=60)


@pytest.mark.promise("S1.20", "S1.24")
@given(st.lists(st.tuples(st.sampled_from(["said", "file", "state", "dead end"]), BREAKS), max_size=60))
@settings(max_examples=50)
def test_no_kind_of_line_break_adds_a_line_or_an_entry(
    tmp_path_factory: pytest.TempPathFactory, entries: list[tuple[str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("tree")
    model = ScratchModel(job="a\u2028b\r\nc", phase="d\x85e")
    put: dict[str, Callable[[str], None]] = {
        "said": lambda text: model.extract(said(text)),
        "file": lambda text: model.extract(reply(9, call("Write", file_path=text))),
        "state": lambda text: model.record_state_change(text, "next"),
        "dead end": model.add_dead_end,
    }
    for kind, text in entries:
        put[kind](text)
    writer = ScratchWriter(folder)
    writer.write_scratch(model)
    page = (folder / ".context" / "scratch.md").read_text("utf-8")
    assert len(page.splitlines()) <= 200
    assert all(line.isprintable() for line in page.splitlines())
    assert [line for line in page.splitlines() if line.startswith("# ")] == ["# Job: a b c"]
    headings = ["## Human Input", "## State Changes", "## Dead Ends", "## Artifacts"]
    assert [line for line in page.splitlines() if line.startswith("## ")] == headings
    before = {file.name: file.read_bytes() for file in (folder / ".context").iterdir()}
    ScratchWriter(folder).write_scratch(model)
    assert {file.name: file.read_bytes() for file in (folder / ".context").iterdir()} == before
    told = re.findall(r"^(\d+) entr", page, re.MULTILINE)
    written = [
        len(re.findall(rb"^## #\d+$", before[name], re.MULTILINE))
        for name in ("human-input.md", "state-changes.md", "dead-ends.md", "artifacts.md")
        if name in before
    ]
    assert [int(count) for count in told] == [count for count in written if count]


# The settings

OTHERS = st.fixed_dictionaries({"type": st.just("command"), "command": st.sampled_from(["mine.sh", "a 'b' $(c)", "é"])})


@given(
    st.lists(st.tuples(st.sampled_from(["PreCompact", "SessionStart", "Stop"]), st.booleans(), OTHERS), max_size=5),
    st.dictionaries(st.sampled_from(["model", "env", "permissions"]), st.sampled_from([{"A": "b"}, "opus", [1]])),
)
def test_what_a_user_puts_beside_ours_stays_when_ours_goes(
    tmp_path_factory: pytest.TempPathFactory, hooks: list[tuple[str, bool, dict[str, str]]], keys: dict[str, Any]
) -> None:
    file = tmp_path_factory.mktemp("home") / "settings.json"
    target = TARGETS["claude-code"]
    plan_change(target, file).apply()
    mine = json.loads(file.read_text("utf-8"))
    mine.update(keys)
    for event, within_ours, hook in hooks:
        groups = mine["hooks"].setdefault(event, [{"hooks": []}])
        if within_ours:
            groups[0]["hooks"].append(hook)
        else:
            groups.append({"matcher": "auto", "hooks": [hook]})
    file.write_text(json.dumps(mine), "utf-8")
    plan_change(target, file, remove=True).apply()
    left = json.loads(file.read_text("utf-8"))
    assert "foldline" not in json.dumps(left)
    assert {key: value for key, value in left.items() if key != "hooks"} == keys
    kept = sorted(
        (event, one["command"]) for event, groups in left.get("hooks", {}).items() for g in groups for one in g["hooks"]
    )
    assert kept == sorted((event, hook["command"]) for event, _, hook in hooks)


def test_a_result_that_comes_before_its_call_is_no_dead_end(tmp_path: Path) -> None:
    watch = Watcher(writer=ScratchWriter(tmp_path))
    for event in (answer("Exit code 1", "t1", error=True), reply(9, call("Bash", "t1", command="make")), result()):
        watch.feed(event)
    assert watch.dead_ends == 0
