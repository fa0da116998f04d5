"""`foldline replay` on a file, a folder, a cluster, with a plot, and on bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.command import BAD, ENTRY, ROOT, clean, foldline, one_sentence, spawned
from support.sessions import SESSIONS
from support.shapes import documented, wrong

POLICIES = ("-p", "balanced", "-p", "thrifty", "--window", "12000")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Sessions in several formats, deep in folders, among files that are none."""
    place = tmp_path / "sessions"
    (place / "deep").mkdir(parents=True)
    (place / "one.jsonl").write_text(SESSIONS["claude-code"]())
    (place / "deep" / "two.jsonl").write_text(SESSIONS["codex"](12))
    (place / "three.json").write_text(SESSIONS["openai"](8))
    (place / "settings.json").write_text('{"theme": "dark"}')
    (place / "notes.txt").write_text("not a transcript")
    return place


def report(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert not wrong(found, documented("replay"))
    return found


def test_one_session_is_replayed_under_two_policies(folder: Path) -> None:
    done = foldline("replay", str(folder / "one.jsonl"), *POLICIES)
    assert done.returncode == 0
    assert not done.stderr
    assert done.stdout.startswith("1 session, ")
    for word in ("everything", "balanced", "thrifty", "100%", "$"):
        assert word in done.stdout


def test_a_folder_is_reported_in_total_and_by_session(folder: Path) -> None:
    found = report(spawned("replay", str(folder), *POLICIES, "--json", "--jobs", "2"))
    assert found["files"] == 4
    assert [Path(row["file"]).name for row in found["skipped"]] == ["settings.json"]
    assert [row["policy"] for row in found["policies"]] == ["balanced", "thrifty"]
    alone = [report(foldline("replay", row["file"], *POLICIES, "--json"))["sessions"] for row in found["sessions"][::2]]
    assert [row for rows in alone for row in rows] == found["sessions"], "many processes find what one finds"
    for total in found["policies"]:
        rows = [row for row in found["sessions"] if row["policy"] == total["policy"]]
        assert total["sessions"] == len(rows) == 3
        assert total["sent"] == sum(row["sent"] for row in rows)
        assert total["folds"] == sum(row["folds"] for row in rows) > 0


def test_the_configured_policy_is_the_default(folder: Path) -> None:
    found = report(foldline("replay", str(folder / "one.jsonl"), "--json", FOLDLINE_PRESET="thrifty"))
    assert [row["policy"] for row in found["policies"]] == ["thrifty"]


@pytest.mark.parametrize(("name", "start"), [("costs.png", b"\x89PNG"), ("costs.svg", b"<?xml")])
def test_a_plot_is_drawn(name: str, start: bytes, folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    plot = tmp_path / name
    done = foldline("replay", str(folder / "one.jsonl"), *POLICIES, "--plot", str(plot))
    assert done.returncode == 0, done.stderr
    assert plot.read_bytes().startswith(start)
    assert str(plot) in done.stdout


def test_a_plot_that_cannot_be_drawn_is_refused_before_the_replay(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.png").write_text("mine")
    one = str(folder / "one.jsonl")
    assert "--force" in one_sentence(foldline("replay", one, "--plot", str(tmp_path / "mine.png")))
    assert ".png or .svg" in one_sentence(foldline("replay", one, "--plot", str(tmp_path / "costs.gif")))
    assert (tmp_path / "mine.png").read_text() == "mine"


def test_without_matplotlib_the_error_names_the_extra(folder: Path, tmp_path: Path) -> None:
    code = (
        "import sys, importlib.util as u\n"
        "find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'matplotlib' else find(name, *a)\n"
        f"sys.argv = ['foldline', 'replay', {str(folder / 'one.jsonl')!r}, '--plot', {str(tmp_path / 'a.png')!r}]\n"
        "from foldline.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=clean(), check=False)
    assert "foldline[plot]" in one_sentence(done)


def test_a_named_file_must_be_a_transcript(folder: Path) -> None:
    assert "settings.json" in one_sentence(foldline("replay", str(folder / "settings.json"), *POLICIES))
    both = spawned("replay", str(folder / "one.jsonl"), str(folder / "settings.json"), *POLICIES)
    assert "settings.json" in one_sentence(both)


@pytest.mark.parametrize("name", ["empty", "binary", "no json", "unknown format"])
def test_bad_input_is_one_error_sentence(name: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.json"
    file.write_bytes(BAD[name])
    assert "bad.json" in one_sentence(foldline("replay", str(file)))


def test_a_row_with_refused_requests_says_why() -> None:
    demo = str(ROOT / "src/foldline/cli/demo.json.gz")
    lines = foldline("replay", demo, "-p", "verbatim", "--window", "32000").stdout.splitlines()
    assert any(line.startswith("everything: all messages in every request, without a fold") for line in lines)
    refused = next(index for index, line in enumerate(lines) if line.startswith("verbatim: refused"))
    assert "> 24,000 (" in lines[refused + 1]
    assert "this policy never folds" in lines[refused + 1]


def test_the_exit_code_is_3_only_if_all_requests_were_refused() -> None:
    demo = str(ROOT / "src/foldline/cli/demo.json.gz")
    done = foldline("replay", demo, "-p", "balanced", "--window", "100")
    assert "balanced: refused 56 of 56 requests" in done.stdout
    assert done.returncode == 3
    some = foldline("replay", demo, "-p", "verbatim", "--window", "32000")
    assert "verbatim: refused" in some.stdout
    assert some.returncode == 0


def test_a_warning_of_several_processes_is_printed_once_as_one_sentence(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    for name in ("one.json", "two.json"):
        (tmp_path / name).write_text(json.dumps(messages))
    done = spawned("replay", str(tmp_path), "--jobs", "2")
    lines = ["foldline: no model was named; use --model, or --window if its window is not 200,000 tokens"]
    assert done.stderr.splitlines() == lines


def test_input_without_requests_is_refused(tmp_path: Path) -> None:
    assert "there is no such file" in one_sentence(foldline("replay", str(tmp_path / "nowhere.jsonl")))
    assert "no session with a request" in one_sentence(foldline("replay", str(tmp_path)))
    (tmp_path / "alone.json").write_text('[{"role": "user", "content": "hello"}]')
    assert "no session with a request" in one_sentence(foldline("replay", str(tmp_path / "alone.json")))
    assert foldline("replay").returncode == 2
    assert "dask://" in one_sentence(foldline("replay", str(tmp_path / "alone.json"), "--executor", "slurm"))


def test_an_unreachable_dask_scheduler_exits_with_4(folder: Path) -> None:
    pytest.importorskip("distributed")
    done = spawned("replay", str(folder), "--executor", "dask://127.0.0.1:9")
    assert "no Dask scheduler answers at 127.0.0.1:9" in one_sentence(done, code=4)


CLUSTER = """
import subprocess, sys
from distributed import LocalCluster

if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster:
        address = cluster.scheduler_address.removeprefix("tcp://")
        command = [sys.executable, "-m", "foldline.cli", *sys.argv[1:], "--executor", f"dask://{address}"]
        sys.exit(subprocess.run(command).returncode)
"""


def test_a_dask_cluster_gives_the_same_result_as_processes(folder: Path, tmp_path: Path) -> None:
    """The real thing: a Dask scheduler with two workers, each a process of its own."""
    pytest.importorskip("distributed")
    script = tmp_path / "cluster.py"
    script.write_text(CLUSTER)
    command = [sys.executable, str(script), "replay", str(folder), *POLICIES, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env=clean(), timeout=120, check=False)
    found = report(done)
    assert found["files"] == 4
    alone = [report(foldline("replay", row["file"], *POLICIES, "--json"))["sessions"] for row in found["sessions"][::2]]
    assert [row for rows in alone for row in rows] == found["sessions"], "a cluster finds what one process finds"


def test_a_closed_pipe_is_no_error(folder: Path) -> None:
    command = [*ENTRY, "replay", str(folder / "one.jsonl"), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean()) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert running.stderr.read() == b""
    assert running.returncode == 0
