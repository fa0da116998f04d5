"""The scratch model and its files: what is gathered, what the page shows, and what nobody can make them do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.compat.context_budget import ScratchModel, ScratchWriter
from foldline.errors import ConfigError
from foldline.watch.scratch import PAGE_LINES, SECTIONS
from support.agent_events import EVENTS, answer, boundary, call, reply, said

FILES = tuple(section.file for section in SECTIONS)


def full(count: int) -> ScratchModel:
    """A model with so many entries in every section."""
    model = ScratchModel(job="a job", phase="a phase")
    for number in range(1, count + 1):
        model.extract(said(f"words {number}"))
        model.extract(reply(9, call("Write", file_path=f"file{number}.py")))
        model.record_state_change(f"A{number}", f"B{number}")
        model.add_dead_end(f"trap {number}")
    return model


@pytest.mark.promise("S1.15")
def test_human_words_are_those_of_people() -> None:
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


@pytest.mark.parametrize("mark", [{}, {"isSynthetic": True}, {"isCompactSummary": True}])
def test_the_digest_after_a_compaction_is_nobodys_words(mark: dict[str, bool]) -> None:
    model = ScratchModel()
    for event in (said("before"), boundary(), said("This session is being continued ...", **mark), said("after")):
        model.extract(event)
    assert model.human_inputs == ["before", "after"]


@pytest.mark.promise("S1.17", "F10")
def test_changed_files_are_found_wherever_the_call_stands() -> None:
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
def test_the_page_has_four_equal_sections_and_never_passes_its_cap(count: int) -> None:
    text = full(count).render()
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
def test_whatever_is_said_is_one_line_of_the_page(texts: list[str], job: str, phase: str) -> None:
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


@pytest.mark.promise("S1.14", "S1.26", "S1.33", "S1.34")
def test_the_index_points_to_detail_files_that_hold_everything(tmp_path: Path) -> None:
    long = "remember this: " + "é" * 500 + "\nand this"
    model = full(60)
    model.extract(said(long))
    ScratchWriter(tmp_path).write_scratch(model)
    folder = tmp_path / ".context"
    index = (folder / "scratch.md").read_text()
    for name in FILES[:4]:
        assert f".context/{name}" in index
        assert (folder / name).exists()
    details = (folder / "human-input.md").read_text()
    assert "> words 1\n" in details
    assert "é" * 500 in details
    assert "> A7 → B7" in (folder / "state-changes.md").read_text()
    assert "> file60.py" in (folder / "artifacts.md").read_text()
    assert not [name for name in os.listdir(folder) if name.endswith(".tmp")]


@pytest.mark.promise("S1.27", "S1.28", "F11")
def test_what_is_appended_by_hand_is_not_written_twice(tmp_path: Path) -> None:
    writer, model = ScratchWriter(tmp_path), ScratchModel()
    for text in ("one", "one", "two"):
        model.extract(said(text))
        writer.append_human_input(text)
    model.add_dead_end("trap")
    writer.append_dead_end("trap")
    writer.write_scratch(model)
    writer.write_scratch(model)
    assert writer.counts() == {
        "human-input.md": 3,
        "state-changes.md": 0,
        "dead-ends.md": 1,
        "artifacts.md": 0,
        "decisions.md": 0,
    }
    assert "## #1\n> trap\n" in (tmp_path / ".context" / "dead-ends.md").read_text()


@pytest.mark.promise("F11")
def test_numbers_on_the_page_are_those_of_the_detail_file(tmp_path: Path) -> None:
    ScratchWriter(tmp_path).write_scratch(full(3))
    later = ScratchModel()
    later.add_dead_end("a new trap")
    ScratchWriter(tmp_path).write_scratch(later)
    assert "- #4: a new trap" in (tmp_path / ".context" / "scratch.md").read_text()
    assert "## #4\n> a new trap" in (tmp_path / ".context" / "dead-ends.md").read_text()


@pytest.mark.promise("S1.34")
def test_after_a_crash_the_index_is_made_again_from_the_detail_files(tmp_path: Path) -> None:
    ScratchWriter(tmp_path).write_scratch(full(5))
    folder = tmp_path / ".context"
    (folder / "scratch.md").unlink()
    with open(folder / "dead-ends.md", "ab") as file:
        file.write(b"## #6\n> half a line")
    writer = ScratchWriter(tmp_path)
    writer.write_scratch(ScratchModel())
    index = (folder / "scratch.md").read_text()
    assert "- #5: words 5" in index
    assert "- #6: half a line" in index
    writer.append_dead_end("the next")
    assert writer.counts()["dead-ends.md"] == 7
    writer.write_scratch(ScratchModel())
    assert "- #7: the next" in (folder / "scratch.md").read_text()


def test_a_session_that_is_read_again_records_nothing_twice(tmp_path: Path) -> None:
    for _ in range(3):
        ScratchWriter(tmp_path).write_scratch(full(5))
    assert set(ScratchWriter(tmp_path).counts().values()) == {0, 5}


def test_a_model_may_forget_what_is_written(tmp_path: Path) -> None:
    writer, model = ScratchWriter(tmp_path), ScratchModel()
    for _ in range(3):
        for text in ("yes", "no"):
            model.extract(said(text))
        model.extract(reply(9, call("Write", file_path="a.py")))
        writer.write_scratch(model)
        model.forget()
    assert writer.counts()["human-input.md"] == 6
    assert writer.counts()["artifacts.md"] == 1


@given(
    st.lists(st.lists(st.sampled_from(["a", "b", "## #1", "> x\n## #2", "", "\r", "\ud800"]), max_size=4), max_size=4)
)
def test_the_files_hold_every_entry_once_however_they_are_written(
    tmp_path_factory: pytest.TempPathFactory, runs: list[list[str]]
) -> None:
    place = tmp_path_factory.mktemp("scratch")
    model, writer = ScratchModel(), ScratchWriter(place)
    for run in runs:
        for text in run:
            model.add_dead_end(text)
        writer.write_scratch(model)
    again = ScratchWriter(place)
    again.write_scratch(model)
    assert again.counts()["dead-ends.md"] == sum(map(len, runs))


@pytest.mark.promise("S1.26")
def test_a_failed_write_leaves_the_old_index_and_no_litter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = ScratchWriter(tmp_path)
    writer.write_scratch(full(1))
    old = writer.path.read_text()

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space"):
        writer.write_scratch(full(2))
    monkeypatch.undo()
    assert writer.path.read_text() == old
    assert not [name for name in os.listdir(tmp_path / ".context") if name.endswith(".tmp")]


@pytest.mark.promise("S1.29")
def test_cleanup_removes_the_folder_and_nothing_that_it_links_to(tmp_path: Path) -> None:
    keep = tmp_path / "keep"
    keep.mkdir()
    (keep / "precious").write_text("x")
    writer = ScratchWriter(tmp_path)
    writer.cleanup()
    writer.write_scratch(full(1))
    (tmp_path / ".context" / "link").symlink_to(keep)
    writer.cleanup()
    assert not (tmp_path / ".context").exists()
    assert (keep / "precious").exists()
    writer.write_scratch(full(1))
    assert writer.counts()["human-input.md"] == 1


@pytest.mark.promise("S1.25")
def test_the_files_are_private_and_stay_out_of_commits(tmp_path: Path) -> None:
    writer = ScratchWriter(tmp_path)
    writer.write_scratch(full(1))
    assert (tmp_path / ".context").stat().st_mode & 0o077 == 0
    assert writer.path.stat().st_mode & 0o077 == 0
    assert (tmp_path / ".context" / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize("kind", ["link", "file"])
def test_a_folder_that_is_none_of_ours_is_refused(tmp_path: Path, kind: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    tree = tmp_path / "tree"
    tree.mkdir()
    if kind == "link":
        (tree / ".context").symlink_to(outside)
    else:
        (tree / ".context").write_text("mine")
    writer = ScratchWriter(tree)
    with pytest.raises(ConfigError, match="a link or a file"):
        writer.write_scratch(full(1))
    with pytest.raises(ConfigError, match="a link or a file"):
        writer.cleanup()
    assert not list(outside.iterdir())


@pytest.mark.parametrize("kind", ["link", "hard link", "pipe", "folder"])
@pytest.mark.parametrize("name", ["human-input.md", "artifacts.md"])
def test_a_planted_detail_file_is_never_written_through(tmp_path: Path, name: str, kind: str) -> None:
    target = tmp_path / "target"
    target.write_text("precious")
    (tmp_path / ".context").mkdir()
    place = tmp_path / ".context" / name
    if kind == "link":
        place.symlink_to(target)
    elif kind == "hard link":
        os.link(target, place)
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        place.mkdir()
    with pytest.raises(ConfigError, match="refused"):
        ScratchWriter(tmp_path).write_scratch(full(1))
    assert target.read_text() == "precious"


def test_a_planted_index_is_replaced_and_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("precious")
    (tmp_path / ".context").mkdir()
    (tmp_path / ".context" / "scratch.md").symlink_to(target)
    writer = ScratchWriter(tmp_path)
    writer.write_scratch(full(1))
    assert target.read_text() == "precious"
    assert not writer.path.is_symlink()
    assert "words 1" in writer.path.read_text()


def test_a_folder_that_is_swapped_for_a_link_is_noticed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    writer = ScratchWriter(tmp_path)
    writer.write_scratch(full(1))
    (tmp_path / ".context").rename(tmp_path / "moved")
    (tmp_path / ".context").symlink_to(outside)
    with pytest.raises(ConfigError, match="a link or a file"):
        writer.append_dead_end("x")
    assert not list(outside.iterdir())


def test_paths_in_the_stream_are_text_and_nothing_else(tmp_path: Path) -> None:
    model = ScratchModel()
    for path in ("/etc/passwd", "../../../x", "a\nb", "\x1b[2J", "a\0b"):
        model.extract(reply(9, call("Write", file_path=path)))
    ScratchWriter(tmp_path).write_scratch(model)
    index = (tmp_path / ".context" / "scratch.md").read_text()
    assert "- #1: /etc/passwd" in index
    assert "\x1b" not in index
    assert sorted(path.name for path in tmp_path.iterdir()) == [".context"]


def test_a_work_tree_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        ScratchWriter(tmp_path / "nowhere").write_scratch(ScratchModel())


def test_two_writers_at_once_lose_nothing_and_number_alike(tmp_path: Path) -> None:
    code = (
        "import sys; from foldline.compat.context_budget import ScratchWriter\n"
        "writer = ScratchWriter(sys.argv[1])\n"
        "for number in range(40): writer.append_dead_end(f'{sys.argv[2]} {number}')"
    )
    both = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), name]) for name in ("a", "b")]
    assert [one.wait(60) for one in both] == [0, 0]
    text = (tmp_path / ".context" / "dead-ends.md").read_text()
    assert [line for line in text.splitlines() if line.startswith("## ")] == [f"## #{n}" for n in range(1, 81)]
    assert all(f"> {name} {number}\n" in text for name in ("a", "b") for number in range(40))
