"""The scratch files on disk: sessions, crashes, failed writes, planted files, several writers."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foldline.compat.context_budget import ScratchModel, ScratchWriter
from foldline.errors import ConfigError
from foldline.watch.safe_files import append_line, write_whole
from foldline.watch.scratch import SECTIONS
from foldline.watch.watcher import Watcher
from support.agent_events import boundary, call, reply, result, said
from support.watching import feed_all, full_model


def watch_all(tree: Path, *events: dict[str, Any]) -> None:
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


@pytest.mark.promise("S1.15", "S1.34")
def test_the_same_text_in_another_session_is_another_entry(tmp_path: Path) -> None:
    for session in ("A", "B", "C", "B", "A"):
        watch_all(tmp_path, said("fix the tests", session_id=session), result(session_id=session))
    assert texts(tmp_path) == ["fix the tests"] * 3
    assert re.findall(r"^# Session (.*)$", file_of(tmp_path).read_text(), re.MULTILINE) == ["A", "B", "C"]
    assert "3 entries → .context/human-input.md" in (tmp_path / ".context" / "scratch.md").read_text()


def test_alternating_sessions_in_one_stream_are_kept_apart(tmp_path: Path) -> None:
    stream = [
        said("go on", session_id="A"),
        said("go on", session_id="B"),
        boundary(session_id="B"),
        said("This session is being continued from another", session_id="B"),
        said("go on", session_id="A"),
        boundary(session_id="A"),
    ]
    watch_all(tmp_path, *stream)
    watch_all(tmp_path, *stream)
    assert texts(tmp_path) == ["go on"] * 3
    assert len(texts(tmp_path, "state-changes.md")) == 2


def test_the_session_id_of_codex_is_read(tmp_path: Path) -> None:
    for session in ("A", "B", "A"):
        meta = {"type": "session_meta", "payload": {"id": session}}
        watch_all(tmp_path, meta, {"type": "compacted", "payload": {}})
    assert len(texts(tmp_path, "state-changes.md")) == 2


def test_entries_without_a_session_match_any_session(tmp_path: Path) -> None:
    file_of(tmp_path).parent.mkdir()
    file_of(tmp_path).write_text("## #1\n> fix the tests\n\n## #2\n> and commit\n\n")
    watch_all(tmp_path, said("fix the tests"), said("and commit"), said("push"))
    assert texts(tmp_path) == ["fix the tests", "and commit", "push"]


def test_an_entry_appended_by_a_hook_matches_the_sessions_own(tmp_path: Path) -> None:
    ScratchWriter(tmp_path).append_human_input("go on", session="A")
    ScratchWriter(tmp_path).append_human_input("go on", session="B")
    watch_all(tmp_path, said("go on", session_id="B"), said("go on", session_id="B"))
    watch_all(tmp_path, said("go on", session_id="A"))
    assert texts(tmp_path) == ["go on"] * 3


def test_entries_before_the_first_session_id_belong_to_that_session(tmp_path: Path) -> None:
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
def test_every_session_has_its_entries_once_however_often_it_is_read(
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


@pytest.mark.promise("S1.34")
@given(st.data())
@settings(max_examples=60)
def test_a_torn_entry_is_completed_when_it_is_written_again(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    tree = tmp_path_factory.mktemp("tree")
    stream = [said(f"words {number}: é\nand more of it", session_id="AB"[number % 2]) for number in range(1, 12)]
    watch_all(tree, *stream)
    whole = file_of(tree).read_bytes()
    file_of(tree).write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
    if data.draw(st.booleans()):
        ScratchWriter(tree).write_scratch(ScratchModel())
    watch_all(tree, *stream)
    assert file_of(tree).read_bytes() == whole
    assert "- #11: words 11: é and more of it" in (tree / ".context" / "scratch.md").read_text()


def test_a_torn_entry_that_is_not_written_again_stays_an_entry(tmp_path: Path) -> None:
    file_of(tmp_path).parent.mkdir()
    file_of(tmp_path).write_text("## #1\n> one\n\n## #2\n> half a li")
    watch_all(tmp_path, said("another"))
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
def test_a_failed_write_keeps_complete_entries_and_names_the_file(tmp_path: Path) -> None:
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


def test_entries_that_could_not_be_written_are_written_later_once(tmp_path: Path) -> None:
    told = limited(tmp_path, "40000", "then free")
    assert 50 < int(told.split()[0]) < 100
    assert [text.split()[1] for text in texts(tmp_path, "dead-ends.md")] == [str(number) for number in range(300)]
    assert texts(tmp_path, "decisions.md") == [f"decision {number}" for number in range(300)]


def test_a_full_disk_keeps_the_entries_that_fit(tmp_path: Path) -> None:
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


def test_retrying_a_model_adds_only_what_is_missing(tmp_path: Path) -> None:
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


@given(st.lists(st.text(alphabet="ab#> \n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029", max_size=30), max_size=5), st.booleans())
@settings(max_examples=60)
def test_no_line_break_makes_an_entry_and_crlf_changes_none(
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


def test_entries_with_raw_line_breaks_of_old_versions_are_not_repeated(tmp_path: Path) -> None:
    file_of(tmp_path).parent.mkdir()
    file_of(tmp_path).write_bytes(b"## #1\n> x\r## #6\r> fake\n\n")
    watch_all(tmp_path, said("x\r## #6\r> fake"))
    assert ScratchWriter(tmp_path).counts()["human-input.md"] == 1


@pytest.mark.promise("S1.26")
def test_the_temporary_file_of_a_killed_writer_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / ".context"
    folder.mkdir()
    (folder / ".scratch.md.tmp").write_text("half of an ind")
    ScratchWriter(tmp_path).write_scratch(ScratchModel())
    assert not [name for name in os.listdir(folder) if name.endswith(".tmp")]


@pytest.mark.parametrize("name", [".scratch.md.tmp", "scratch.md", "human-input.md"])
def test_a_folder_in_place_of_a_file_is_named_with_a_hint(tmp_path: Path, name: str) -> None:
    (tmp_path / ".context" / name).mkdir(parents=True)
    with pytest.raises(ConfigError, match=re.escape(f".context/{name}: refused (") + ".*remove it"):
        watch_all(tmp_path, said("x"))


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b"])
def test_an_invalid_folder_name_is_reported(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="not a valid folder name: name another folder") as caught:
        ScratchWriter(tmp_path / name).append_human_input("x")
    str(caught.value).encode()


def test_a_missing_work_tree_gives_a_hint(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere/\.context: cannot be created .*: name an existing folder"):
        ScratchWriter(tmp_path / "nowhere").append_human_input("x")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_error_names_the_costs_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left on device: free some space on the disk: '/dev/full'"):
        append_line(Path("/dev/full"), "x")


def test_a_settings_folder_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match=r"file/settings\.json: cannot be written .*: check the permissions"):
        write_whole(tmp_path / "file" / "settings.json", b"{}")
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(ConfigError, match="loop: cannot be written"):
        write_whole(loop, b"{}")


FILES = tuple(section.file for section in SECTIONS)


@pytest.mark.promise("S1.14", "S1.26", "S1.33", "S1.34")
def test_the_index_points_to_detail_files_that_hold_everything(tmp_path: Path) -> None:
    long = "remember this: " + "é" * 500 + "\nand this"
    model = full_model(60)
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
def test_an_entry_appended_by_hand_is_not_written_twice(tmp_path: Path) -> None:
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
def test_numbers_in_the_index_are_those_of_the_detail_file(tmp_path: Path) -> None:
    ScratchWriter(tmp_path).write_scratch(full_model(3))
    later = ScratchModel()
    later.add_dead_end("a new trap")
    ScratchWriter(tmp_path).write_scratch(later)
    assert "- #4: a new trap" in (tmp_path / ".context" / "scratch.md").read_text()
    assert "## #4\n> a new trap" in (tmp_path / ".context" / "dead-ends.md").read_text()


@pytest.mark.promise("S1.34")
def test_after_a_crash_the_index_is_rebuilt_from_the_detail_files(tmp_path: Path) -> None:
    ScratchWriter(tmp_path).write_scratch(full_model(5))
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
        ScratchWriter(tmp_path).write_scratch(full_model(5))
    assert set(ScratchWriter(tmp_path).counts().values()) == {0, 5}


def test_a_model_may_forget_written_entries(tmp_path: Path) -> None:
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
def test_a_failed_write_leaves_the_old_index_and_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = ScratchWriter(tmp_path)
    writer.write_scratch(full_model(1))
    old = writer.path.read_text()

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space"):
        writer.write_scratch(full_model(2))
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
    writer.write_scratch(full_model(1))
    (tmp_path / ".context" / "link").symlink_to(keep)
    writer.cleanup()
    assert not (tmp_path / ".context").exists()
    assert (keep / "precious").exists()
    writer.write_scratch(full_model(1))
    assert writer.counts()["human-input.md"] == 1


@pytest.mark.promise("S1.25")
def test_the_files_are_private_and_stay_out_of_commits(tmp_path: Path) -> None:
    writer = ScratchWriter(tmp_path)
    writer.write_scratch(full_model(1))
    assert (tmp_path / ".context").stat().st_mode & 0o077 == 0
    assert writer.path.stat().st_mode & 0o077 == 0
    assert (tmp_path / ".context" / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize("kind", ["link", "file"])
def test_a_link_or_a_file_in_place_of_the_folder_is_refused(tmp_path: Path, kind: str) -> None:
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
        writer.write_scratch(full_model(1))
    with pytest.raises(ConfigError, match="a link or a file"):
        writer.cleanup()
    assert not list(outside.iterdir())


@pytest.mark.parametrize("kind", ["link", "hard link", "pipe", "folder"])
@pytest.mark.parametrize("name", ["human-input.md", "artifacts.md"])
def test_a_planted_link_or_pipe_is_never_written_through(tmp_path: Path, name: str, kind: str) -> None:
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
        ScratchWriter(tmp_path).write_scratch(full_model(1))
    assert target.read_text() == "precious"


def test_a_planted_index_is_replaced_and_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("precious")
    (tmp_path / ".context").mkdir()
    (tmp_path / ".context" / "scratch.md").symlink_to(target)
    writer = ScratchWriter(tmp_path)
    writer.write_scratch(full_model(1))
    assert target.read_text() == "precious"
    assert not writer.path.is_symlink()
    assert "words 1" in writer.path.read_text()


def test_a_folder_replaced_by_a_link_is_refused(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    writer = ScratchWriter(tmp_path)
    writer.write_scratch(full_model(1))
    (tmp_path / ".context").rename(tmp_path / "moved")
    (tmp_path / ".context").symlink_to(outside)
    with pytest.raises(ConfigError, match="a link or a file"):
        writer.append_dead_end("x")
    assert not list(outside.iterdir())


def test_paths_in_the_stream_are_never_opened(tmp_path: Path) -> None:
    model = ScratchModel()
    for path in ("/etc/passwd", "../../../x", "a\nb", "\x1b[2J", "a\0b"):
        model.extract(reply(9, call("Write", file_path=path)))
    ScratchWriter(tmp_path).write_scratch(model)
    index = (tmp_path / ".context" / "scratch.md").read_text()
    assert "- #1: /etc/passwd" in index
    assert "\x1b" not in index
    assert sorted(path.name for path in tmp_path.iterdir()) == [".context"]


def test_a_missing_work_tree_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        ScratchWriter(tmp_path / "nowhere").write_scratch(ScratchModel())


def test_two_writers_at_once_lose_nothing_and_number_without_gaps(tmp_path: Path) -> None:
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


def test_an_index_changed_by_another_program_is_replaced(tmp_path: Path) -> None:
    watch = Watcher(writer=ScratchWriter(tmp_path), model=ScratchModel(job="the table test"))
    feed_all(watch, said("go"), reply(9), result())
    ScratchWriter(tmp_path).write_scratch(ScratchModel())
    feed_all(watch, reply(10), result())
    assert (tmp_path / ".context" / "scratch.md").read_text("utf-8").startswith("# Job: the table test\n")


BREAKS = st.text(alphabet="ab \n\r\v\f\x1b\x1c\x1d\x1e\x85\u202e\u2028\u2029#>-`", max_size=60)


@pytest.mark.promise("S1.20", "S1.24")
@given(st.lists(st.tuples(st.sampled_from(["said", "file", "state", "dead end"]), BREAKS), max_size=60))
@settings(max_examples=50)
def test_no_kind_of_line_break_adds_a_line_to_the_index(
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


def test_notes_hold_no_escape_sequences(tmp_path: Path) -> None:
    watch_all(tmp_path, said("paint it \x1b[31mred\x1b[0m, \x9b1mbold\x9b0m and \x1b]0;title\x07link"))
    assert texts(tmp_path) == ["paint it red, bold and link"]
    for path in (tmp_path / ".context").rglob("*.md"):
        assert not {"\x1b", "\x9b", "\x07"} & set(path.read_text("utf-8")), path
