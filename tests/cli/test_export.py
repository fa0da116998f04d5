"""The command `export`: sessions leave a ledger and can be imported again."""

from __future__ import annotations

import subprocess
from pathlib import Path

from support.command import ENTRY, clean, foldline, one_sentence
from support.shapes import report


def test_an_exported_ledger_imports_to_the_same_ledger(place: str, tmp_path: Path) -> None:
    copy, other = tmp_path / "copy.jsonl", str(tmp_path / "other.db")
    made = report("export", "-o", str(copy), "--ledger", place)
    assert made["bytes"] == copy.stat().st_size
    assert "--force" in one_sentence(foldline("export", "-o", str(copy), "--ledger", place))
    assert "is also the input" in one_sentence(foldline("export", "-o", place, "--force", "--ledger", place))
    back = report("import", str(copy), "--ledger", other)
    assert {row["session"] for row in back["sessions"]} == {"3f0c", "ticket-42"}
    assert {row["format"] for row in back["sessions"]} == {"foldline"}
    one, two = (report("show", "--ledger", url, "-s", "3f0c") for url in (place, other))
    assert {**one, "ledger": ""} == {**two, "ledger": ""}
    assert report("verify", "--ledger", other)["sound"]
    assert "already exists" in one_sentence(foldline("import", str(copy), "--ledger", other))


def test_the_beginning_of_a_name_is_enough_for_an_export(place: str, tmp_path: Path) -> None:
    made = report("export", "-s", "tick", "-o", str(tmp_path / "one.jsonl"), "--ledger", place)
    assert made["sessions"] == ["ticket-42"]
    assert "unknown session 'x'" in one_sentence(foldline("export", "-s", "x", "-o", "-", "--ledger", place))


def test_a_session_can_be_piped_from_a_file_to_a_server(place: str, admin: str) -> None:
    from support import postgres

    with postgres.database(admin) as server:
        piped = f'foldline export -o - -s 3f0c --ledger "{place}" | foldline import - --ledger "{server}"'
        program = " ".join(ENTRY)
        done = subprocess.run(
            [
                "sh",
                "-c",
                piped.replace("foldline export", f"{program} export").replace("foldline import", f"{program} import"),
            ],
            env=clean(),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        there = ("--ledger", server)
        assert [row["name"] for row in report("sessions", *there)["sessions"]] == ["3f0c"]
        assert "7091" in foldline("recall", "port", *there).stdout
        assert report("pin", "--handle", "#1", *there)["changed"] == ["#1"]
        assert report("unfold", *there)["folds"] == 1
        assert report("verify", *there)["sound"]
        assert "foldline sessions" in one_sentence(foldline("export", "-o", "-", "-s", "none", *there))
        assert report("prune", "--older-than", "1w", *there)["sessions"] == []
