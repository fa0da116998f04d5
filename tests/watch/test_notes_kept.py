"""Notes that are kept: every session's words, whatever the disk, an editor or a killed process does to the files."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foldline.compat.context_budget import ScratchModel, ScratchWriter
from foldline.errors import ConfigError
from foldline.watch.safe_files import append_line, write_whole
from foldline.watch.watcher import Watcher
from support.agent_events import answer, boundary, call, reply, result, said

NAMES = ("human-input.md", "state-changes.md", "dead-ends.md", "decisions.md")


def watched(tree: Path, *events: dict[str, Any]) -> None:
    """One run of a watcher over a stream."""
    watch = Watcher(writer=ScratchWriter(tree))
    for event in events:
        watch.feed(event)
    watch.save()


def file_of(tree: Path, name: str = "human-input.md") -> Path:
    return tree / ".context" / name


def texts(tree: Path, name: str = "human-input.md") -> list[str]:
    """The entries of a detail file as a person reads them, numbered from 1 on without a gap."""
    data = file_of(tree, name).read_bytes().decode()
    assert data.splitlines() == data.replace("\r\n", "\n").split("\n")[:-1]
    found = re.findall(r"^## #(\d+)\n((?:> .*\n|>\n)*)", data.replace("\r\n", "\n"), re.MULTILINE)
    assert [int(number) for number, _ in found] == list(range(1, len(found) + 1))
    return ["\n".join(line[2:] for line in quoted.splitlines()) for _, quoted in found]


# Sessions


@pytest.mark.promise("S1.15", "S1.34")
def test_the_same_words_in_another_session_are_other_words(tmp_path: Path) -> None:
    for session in ("A", "B", "C", "B", "A"):
        watched(tmp_path, said("fix the tests", session_id=session), result(session_id=session))
    assert texts(tmp_path) == ["fix the tests"] * 3
    assert re.findall(r"^# Session (.*)$", file_of(tmp_path).read_text(), re.MULTILINE) == ["A", "B", "C"]
    assert "3 entries → .context/human-input.md" in (tmp_path / ".context" / "scratch.md").read_text()


def test_sessions_that_take_turns_in_one_stream_are_told_apart(tmp_path: Path) -> None:
    stream = [
        said("go on", session_id="A"),
        said("go on", session_id="B"),
        boundary(session_id="B"),
        said("This session is being continued from another", session_id="B"),
        said("go on", session_id="A"),
        boundary(session_id="A"),
    ]
    watched(tmp_path, *stream)
    watched(tmp_path, *stream)
    assert texts(tmp_path) == ["go on"] * 3
    assert len(texts(tmp_path, "state-changes.md")) == 2


def test_codex_names_its_session_in_another_place(tmp_path: Path) -> None:
    for session in ("A", "B", "A"):
        meta = {"type": "session_meta", "payload": {"id": session}}
        watched(tmp_path, meta, {"type": "compacted", "payload": {}})
    assert len(texts(tmp_path, "state-changes.md")) == 2


def test_notes_from_before_sessions_were_named_count_for_any(tmp_path: Path) -> None:
    file_of(tmp_path).parent.mkdir()
    file_of(tmp_path).write_text("## #1\n> fix the tests\n\n## #2\n> and commit\n\n")
    watched(tmp_path, said("fix the tests"), said("and commit"), said("push"))
    assert texts(tmp_path) == ["fix the tests", "and commit", "push"]


def test_what_a_hook_appends_is_what_the_session_holds(tmp_path: Path) -> None:
    ScratchWriter(tmp_path).append_human_input("go on", session="A")
    ScratchWriter(tmp_path).append_human_input("go on", session="B")
    watched(tmp_path, said("go on", session_id="B"), said("go on", session_id="B"))
    watched(tmp_path, said("go on", session_id="A"))
    assert texts(tmp_path) == ["go on"] * 3


def test_what_is_noted_before_a_session_is_named_belongs_to_the_first(tmp_path: Path) -> None:
    for session in ("A", "A", "B"):
        model = ScratchModel()
        model.record_state_change("PLAN", "WORK")
        model.extract(said("x", session_id=session))
        ScratchWriter(tmp_path).write_scratch(model)
    assert texts(tmp_path, "state-changes.md") == ["PLAN → WORK"] * 2


RUNS = st.lists(
    st.tuples(
        st.sampled_from(["", "A", "B", "## #1", "x\n# Session A", "> y"]),
        st.lists(st.sampled_from(["yes", "no", "# Session A", "# No session", "a\n\n## #1\n> b", ""]), max_size=4),
        st.booleans(),
    ),
    max_size=6,
)


@given(RUNS)
@settings(max_examples=60)
def test_every_session_has_its_words_once_however_often_it_is_read(
    tmp_path_factory: pytest.TempPathFactory, runs: list[tuple[str, list[str], bool]]
) -> None:
    """Sessions grow, are read from their beginning again, and come in any order; their names are anything."""
    tree = tmp_path_factory.mktemp("tree")
    held: dict[str, list[str]] = {}
    for session, words, again in runs:
        held.setdefault(session, []).extend(words)
        for _ in range(1 + again):
            model = ScratchModel()
            model.extract({"type": "system", "subtype": "init", "session_id": session})
            for text in held[session]:
                model.add_dead_end(text)
            ScratchWriter(tree).write_scratch(model)
    unnamed = held.pop("", [])
    found = ScratchWriter(tree).counts()["dead-ends.md"]
    assert max(map(len, [unnamed, *held.values()])) <= found <= len(unnamed) + sum(map(len, held.values()))
    if not unnamed:
        assert found == sum(map(len, held.values()))


# Torn, truncated, full


@pytest.mark.promise("S1.34")
@given(st.data())
@settings(max_examples=60)
def test_a_torn_entry_is_made_whole_by_whoever_brings_it_again(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    tree = tmp_path_factory.mktemp("tree")
    stream = [said(f"words {number}: é\nand more of it", session_id="AB"[number % 2]) for number in range(1, 12)]
    watched(tree, *stream)
    whole = file_of(tree).read_bytes()
    file_of(tree).write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
    if data.draw(st.booleans()):
        ScratchWriter(tree).write_scratch(ScratchModel())
    watched(tree, *stream)
    assert file_of(tree).read_bytes() == whole
    assert "- #11: words 11: é and more of it" in (tree / ".context" / "scratch.md").read_text()


def test_a_torn_entry_that_nobody_brings_again_stays_an_entry(tmp_path: Path) -> None:
    file_of(tmp_path).parent.mkdir()
    file_of(tmp_path).write_text("## #1\n> one\n\n## #2\n> half a li")
    watched(tmp_path, said("another"))
    assert texts(tmp_path) == ["one", "half a li", "another"]


LIMITED = """
import resource, sys
from pathlib import Path
from foldline.compat.context_budget import ScratchModel, ScratchWriter
writer, model = ScratchWriter(sys.argv[1]), ScratchModel()
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
failed = 0
for number in range(300):
    model.add_dead_end(f"note {number} " + "x" * 490)
    model.add_decision(f"decision {number}")
    if number == 150 and len(sys.argv) > 3:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    try:
        writer.write_scratch(model)
        model.forget()
    except OSError as error:
        failed += 1
        said = f"{error.filename}: {error.strerror}"
print(failed, said)
"""


def limited(tree: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tree), *arguments], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


@pytest.mark.promise("S1.26")
def test_a_file_that_may_not_grow_keeps_whole_entries_and_is_named(tmp_path: Path) -> None:
    told = limited(tmp_path, "40000")
    assert "dead-ends.md: File too large: raise the limit on the size of files" in told
    data = file_of(tmp_path, "dead-ends.md").read_bytes()
    assert data.endswith(b"x\n\n")
    assert len(data) <= 40_000
    model = ScratchModel()
    for number in range(300):
        model.add_dead_end(f"note {number} " + "x" * 490)
    ScratchWriter(tmp_path).write_scratch(model)
    assert [text.split()[1] for text in texts(tmp_path, "dead-ends.md")] == [str(number) for number in range(300)]


def test_what_could_not_be_written_is_written_later_and_nothing_of_it_twice(tmp_path: Path) -> None:
    told = limited(tmp_path, "40000", "then free")
    assert 50 < int(told.split()[0]) < 100
    assert [text.split()[1] for text in texts(tmp_path, "dead-ends.md")] == [str(number) for number in range(300)]
    assert texts(tmp_path, "decisions.md") == [f"decision {number}" for number in range(300)]


def test_what_fits_is_kept_entry_by_entry(tmp_path: Path) -> None:
    """Many entries in one write for which there is no room: the first of them are there, and the rest comes later."""
    writer, model = ScratchWriter(tmp_path), ScratchModel()
    for number in range(300):
        model.extract(said(f"note {number} " + "x" * 490, session_id="AB"[number // 50 % 2]))
    free = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, free[1]))
    try:
        for _ in range(2):
            with pytest.raises(OSError, match="File too large"):
                writer.write_scratch(model)
            assert [text.split()[1] for text in texts(tmp_path)] == [str(number) for number in range(78)]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, free)
    writer.write_scratch(model)
    assert [text.split()[1] for text in texts(tmp_path)] == [str(number) for number in range(300)]
    ScratchWriter(tmp_path).write_scratch(model)
    assert len(texts(tmp_path)) == 300


def test_a_model_that_is_tried_again_claims_what_is_there(tmp_path: Path) -> None:
    """Entries of another process are in the file, the write of the rest fails, and is tried again."""
    ScratchWriter(tmp_path).append_dead_end("known")
    writer, model = ScratchWriter(tmp_path), ScratchModel()
    model.add_dead_end("known")
    model.add_dead_end("new" * 5_000)
    free = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, free[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            writer.write_scratch(model)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, free)
    writer.write_scratch(model)
    assert texts(tmp_path, "dead-ends.md") == ["known", "new" * 5_000]


# Editors and readers


@given(st.lists(st.text(alphabet="ab#> \n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029", max_size=30), max_size=5), st.booleans())
@settings(max_examples=60)
def test_no_break_of_any_reader_makes_an_entry_and_an_editor_changes_none(
    tmp_path_factory: pytest.TempPathFactory, words: list[str], crlf: bool
) -> None:
    tree = tmp_path_factory.mktemp("tree")
    for _ in range(2):
        model = ScratchModel()
        for text in (*words, "x\r## #6\r> fake"):
            model.add_dead_end(text)
        ScratchWriter(tree).write_scratch(model)
        assert len(texts(tree, "dead-ends.md")) == len(words) + 1
        if crlf:
            file = file_of(tree, "dead-ends.md")
            file.write_bytes(file.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))


def test_a_file_with_raw_breaks_of_old_is_not_recorded_anew(tmp_path: Path) -> None:
    file_of(tmp_path).parent.mkdir()
    file_of(tmp_path).write_bytes(b"## #1\n> x\r## #6\r> fake\n\n")
    watched(tmp_path, said("x\r## #6\r> fake"))
    assert ScratchWriter(tmp_path).counts()["human-input.md"] == 1


@pytest.mark.promise("S1.26")
def test_what_a_killed_writer_left_goes_with_the_next_write(tmp_path: Path) -> None:
    folder = tmp_path / ".context"
    folder.mkdir()
    (folder / ".scratch.md.tmp").write_text("half of an ind")
    ScratchWriter(tmp_path).write_scratch(ScratchModel())
    assert not [name for name in os.listdir(folder) if name.endswith(".tmp")]


# Messages


@pytest.mark.parametrize("name", [".scratch.md.tmp", "scratch.md", "human-input.md"])
def test_a_folder_in_the_place_of_a_file_is_named_with_a_way_out(tmp_path: Path, name: str) -> None:
    (tmp_path / ".context" / name).mkdir(parents=True)
    with pytest.raises(ConfigError, match=re.escape(f".context/{name}: refused (") + ".*remove it"):
        watched(tmp_path, said("x"))


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b"])
def test_a_name_that_no_folder_can_have_is_said_so(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="not a valid folder name: name another folder") as caught:
        ScratchWriter(tmp_path / name).append_human_input("x")
    str(caught.value).encode()


def test_a_work_tree_that_is_not_there_says_what_to_change(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere/\.context: cannot be created .*: name an existing folder"):
        ScratchWriter(tmp_path / "nowhere").append_human_input("x")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_told_with_the_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left on device: free some space on the disk: '/dev/full'"):
        append_line(Path("/dev/full"), "x")


def test_a_place_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match=r"file/settings\.json: cannot be written .*: check who may write there"):
        write_whole(tmp_path / "file" / "settings.json", b"{}")
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(ConfigError, match="loop: cannot be written"):
        write_whole(loop, b"{}")


# Decisions


def asked(name: str, given: dict[str, Any], reply_text: str) -> list[str]:
    model = ScratchModel()
    model.extract(reply(9, call(name, "q", **given)))
    model.extract(answer(reply_text, "q"))
    return model.decisions


def test_an_approved_plan_stands_once() -> None:
    plan = "# Rewrite it\n\n1. the parser\n2. the rest\n"
    words = "User has approved your plan. You can now start coding.\n\n## Approved Plan:\n" + plan
    assert asked("ExitPlanMode", {"plan": plan}, words) == [
        "plan: # Rewrite it\n\n1. the parser\n2. the rest\nUser has approved your plan. You can now start coding."
    ]


def test_a_plan_that_was_edited_stands_beside_the_one_asked_for() -> None:
    (found,) = asked("ExitPlanMode", {"plan": "a plan"}, "User has approved.\n\n## Approved Plan:\nanother one")
    assert found == "plan: a plan\nUser has approved.\n\n## Approved Plan:\nanother one"


def test_a_question_that_the_answer_repeats_stands_once() -> None:
    questions = [{"question": "Tabs?"}, {"question": "How many?"}]
    words = 'User has answered your questions: "Tabs?"="No", "How many?"="2".'
    assert asked("AskUserQuestion", {"questions": questions}, words) == [words]
    assert asked("AskUserQuestion", {"questions": questions}, "no, 2") == ["Tabs? / How many?\nno, 2"]
    assert asked("ExitPlanMode", {}, "approved") == ["approved"]
