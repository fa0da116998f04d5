"""The scratch model and its index: what is collected and what the index shows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.compat.context_budget import ScratchModel
from foldline.watch.scratch import PAGE_LINES, SECTIONS
from support.agent_events import EVENTS, answer, boundary, call, reply, said
from support.watching import full_model

FILES = tuple(section.file for section in SECTIONS)


@pytest.mark.promise("S1.15")
def test_only_text_written_by_people_is_human_input() -> None:
    model = ScratchModel()
    model.extract(said("first"))
    model.extract(said([{"type": "text", "text": "second"}]))
    for event in (
        answer("output of a tool"),
        said("a sub-agent's task", parent_tool_use_id="t1"),
        said("a sub-agent's task", isSidechain=True),
        said("made up", isMeta=True),
        said("a digest", isCompactSummary=True),
        said("a digest", isSynthetic=True),
        said("<local-command-stdout>Compacted</local-command-stdout>"),
        said("<command-name>/compact</command-name><command-args></command-args>"),
        said("[Request interrupted by user]"),
        said("<system-reminder>be nice</system-reminder>"),
        said(""),
    ):
        model.extract(event)
    model.extract(said("<command-name>/review</command-name>\n<command-args>the parser</command-args>"))
    assert model.human_inputs == ["first", "second", "/review the parser"]


def test_the_prompts_of_a_codex_session_are_human_input() -> None:
    model = ScratchModel()
    instructions = [{"type": "input_text", "text": "# AGENTS.md instructions for /src\n\n<INSTRUCTIONS/>"}]
    model.extract({"type": "response_item", "payload": {"type": "message", "role": "user", "content": instructions}})
    for text in ("fill out the search skill", "commit", ""):
        content = [{"type": "input_text", "text": text}]
        model.extract({"type": "response_item", "payload": {"type": "message", "role": "user", "content": content}})
        model.extract({"type": "event_msg", "payload": {"type": "user_message", "message": text}})
        model.extract({"type": "event_msg", "payload": {"type": "agent_message", "message": "Done."}})
    model.extract({"type": "event_msg", "payload": {"type": "user_message", "message": ["not", "a", "text"]}})
    assert model.human_inputs == ["fill out the search skill", "commit"]


@pytest.mark.parametrize("mark", [{}, {"isSynthetic": True}, {"isCompactSummary": True}])
def test_the_digest_after_a_compaction_is_not_human_input(mark: dict[str, bool]) -> None:
    model = ScratchModel()
    for event in (said("before"), boundary(), said("This session is being continued ...", **mark), said("after")):
        model.extract(event)
    assert model.human_inputs == ["before", "after"]


@pytest.mark.promise("S1.17", "F10")
def test_changed_files_are_found_in_every_kind_of_event() -> None:
    model = ScratchModel()
    model.extract({"type": "tool_use", "name": "Write", "input": {"file_path": "top.py"}})
    model.extract(
        reply(9, call("Edit", file_path="a.py"), call("Read", file_path="read.py"), call("Edit", file_path="a.py"))
    )
    model.extract(reply(9, call("MultiEdit", file_path="b.py"), call("NotebookEdit", notebook_path="c.ipynb")))
    model.extract({"type": "response_item", "payload": {"name": "apply_patch", "input": "*** Update File: d.rs\n+x"}})
    assert model.artifacts == ["top.py", "a.py", "b.py", "c.ipynb", "d.rs"]


@pytest.mark.promise("S1.34")
def test_answers_to_the_agents_questions_are_decisions() -> None:
    model = ScratchModel()
    model.extract(reply(9, call("AskUserQuestion", "q1", questions=[{"question": "Tabs or spaces?"}])))
    model.extract(answer("spaces", "q1"))
    model.extract(reply(9, call("ExitPlanMode", "q2", plan="rewrite it")))
    model.extract(answer("no", "q2", error=True))
    assert model.decisions == ["Tabs or spaces?\nspaces"]
    assert "## Decisions" in model.render()


@pytest.mark.promise("S1.20", "S1.21", "S1.22", "S1.24", "F11")
@pytest.mark.parametrize("count", [0, 1, 46, 47, 48, 500])
def test_the_index_has_four_equal_sections_and_at_most_200_lines(count: int) -> None:
    text = full_model(count).render()
    lines = text.splitlines()
    assert len(lines) <= PAGE_LINES
    assert [line for line in lines if line.startswith("## ")] == [
        "## Human Input",
        "## State Changes",
        "## Dead Ends",
        "## Artifacts",
    ]
    shown = min(count, 47)
    assert sum("words" in line for line in lines) == shown
    assert sum("trap" in line for line in lines) == shown
    if count:
        assert f"- #{count}: words {count}" in lines
        assert f"- #{count}: trap {count}" in lines
        assert all(f".context/{name}" in text for name in FILES[:4])


@pytest.mark.promise("S1.23")
def test_a_long_message_is_cut_to_120_characters() -> None:
    model = ScratchModel()
    model.extract(said("x" * 121))
    model.extract(said("y" * 120))
    lines = model.render().splitlines()
    assert "- #1: " + "x" * 119 + "…" in lines
    assert "- #2: " + "y" * 120 in lines


@given(st.lists(st.text(), max_size=60), st.text(), st.text())
def test_any_text_is_one_line_of_the_index(texts: list[str], job: str, phase: str) -> None:
    model = ScratchModel(job=job, phase=phase)
    for text in texts:
        model.add_dead_end(text)
        model.add_decision(text)
        model.record_state_change(text, text)
    lines = model.render().splitlines()
    assert len(lines) <= PAGE_LINES
    assert sum(line.startswith("## ") for line in lines) == 4 + bool(texts)


@given(st.lists(EVENTS, max_size=10))
def test_no_event_can_break_the_model(events: list[Any]) -> None:
    model = ScratchModel()
    for event in events:
        model.extract(event)
    assert len(model.render().splitlines()) <= PAGE_LINES
    assert len(set(model.artifacts)) == len(model.artifacts)


def asked(name: str, given: dict[str, Any], reply_text: str) -> list[str]:
    model = ScratchModel()
    model.extract(reply(9, call(name, "q", **given)))
    model.extract(answer(reply_text, "q"))
    return model.decisions


def test_an_approved_plan_is_noted_once() -> None:
    plan = "# Rewrite it\n\n1. the parser\n2. the rest\n"
    words = "User has approved your plan. You can now start coding.\n\n## Approved Plan:\n" + plan
    assert asked("ExitPlanMode", {"plan": plan}, words) == [
        "plan: # Rewrite it\n\n1. the parser\n2. the rest\nUser has approved your plan. You can now start coding."
    ]


def test_an_edited_plan_is_noted_beside_the_original() -> None:
    (found,) = asked("ExitPlanMode", {"plan": "a plan"}, "User has approved.\n\n## Approved Plan:\nanother one")
    assert found == "plan: a plan\nUser has approved.\n\n## Approved Plan:\nanother one"


def test_a_question_that_the_answer_repeats_is_noted_once() -> None:
    questions = [{"question": "Tabs?"}, {"question": "How many?"}]
    words = 'User has answered your questions: "Tabs?"="No", "How many?"="2".'
    assert asked("AskUserQuestion", {"questions": questions}, words) == [words]
    assert asked("AskUserQuestion", {"questions": questions}, "no, 2") == ["Tabs? / How many?\nno, 2"]
    assert asked("ExitPlanMode", {}, "approved") == ["approved"]


REFUSED = "To tell you how to proceed, the user said:"


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


@pytest.mark.promise("S1.15")
def test_a_persons_first_words_after_a_compaction_are_kept() -> None:
    model = ScratchModel()
    for event in (said("before"), boundary(), said("go on"), reply(9), said("after")):
        model.extract(event)
    assert model.human_inputs == ["before", "go on", "after"]
