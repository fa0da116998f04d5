"""`foldline doctor` reports what is installed and what to fix."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from foldline import ledger
from foldline.cli.doctor import extras
from foldline.ledger.schema import MIGRATIONS
from support import postgres
from support.command import foldline
from support.shapes import documented, wrong


def findings(done: subprocess.CompletedProcess[str]) -> dict[str, list[dict[str, Any]]]:
    report = json.loads(done.stdout)
    assert not wrong(report, documented("doctor"))
    assert done.returncode == (1 if report["problems"] else 0)
    assert report["problems"] == sum(row["state"] == "problem" for row in report["findings"])
    by_subject: dict[str, list[dict[str, Any]]] = {}
    for row in report["findings"]:
        by_subject.setdefault(row["about"], []).append(row)
    return by_subject


def test_a_working_installation_has_no_problems(tmp_path: Path) -> None:
    done = foldline("doctor", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert done.stdout.rstrip().endswith("no problems")
    found = findings(foldline("doctor", "--json", cwd=tmp_path))
    assert {"foldline", "configuration", "model", "counter", "prices", "window", "policy", "ledger"} <= set(found)
    assert "extra exact" in found


def test_extras_are_two_lines_after_the_other_checks(tmp_path: Path) -> None:
    lines = foldline("doctor", cwd=tmp_path).stdout.splitlines()
    subjects = [line.split()[1] for line in lines if line[:1] in "✓·✗" and line]
    assert subjects[0] == "foldline"
    assert set(subjects[-2:]) <= {"ledger", "extras"}
    assert subjects.count("extras") <= 2


def test_a_model_that_is_not_set_is_not_called_checked(tmp_path: Path) -> None:
    found = findings(foldline("doctor", "--json", cwd=tmp_path))
    assert found["model"][0]["state"] == "note"
    assert found["model"][0]["says"].startswith("not set; the next checks are for claude-sonnet-4-5")


def test_a_window_without_room_for_a_conversation_is_a_problem(tmp_path: Path) -> None:
    found = findings(foldline("doctor", "--json", "--window", "100", cwd=tmp_path))
    assert found["policy"][0]["state"] == "problem"
    assert "too few" in found["policy"][0]["says"]


def test_extras_are_those_of_the_package() -> None:
    assert list(extras()["exact"]) == ["splintr-rs"]
    assert "test" not in extras()


def test_a_version_that_an_adapter_does_not_support_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs = ("langchain<2,>=1.4; extra == 'langchain'", "pydantic-ai-slim<3,>=2.66; extra == 'pydantic-ai'")
    packages = {"langchain-1.3.0": (), "pydantic_ai_slim-2.70.1rc1": (), "foldline-0.2.0": needs}
    for package, requirements in packages.items():
        folder = tmp_path / "packages" / f"{package}.dist-info"
        folder.mkdir(parents=True)
        name, _, version = package.partition("-")
        lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
        (folder / "METADATA").write_text("\n".join([*lines, *(f"Requires-Dist: {each}" for each in requirements)]))
    monkeypatch.syspath_prepend(tmp_path / "packages")
    found = findings(foldline("doctor", "--json", cwd=tmp_path))
    row = found["extra langchain"][0]
    assert row["state"] == "problem"
    assert row["says"] == "langchain 1.3.0 is not supported, only <2,>=1.4"
    assert row["fix"] == "install foldline[langchain]; in a clone of foldline: pip install '.[langchain]'"
    assert found["extra pydantic-ai"][0]["state"] == "ok"


def test_counter_window_and_prices_follow_the_model(tmp_path: Path) -> None:
    found = findings(foldline("doctor", "--json", "--model", "nobody/knows-this", cwd=tmp_path))
    assert found["model"][0]["state"] == "note"
    assert "FOLDLINE_MODELS" in found["model"][0]["fix"]
    assert found["prices"][0]["state"] == "note"
    found = findings(foldline("doctor", "--json", "--model", "gpt-4o", "--window", "50000", cwd=tmp_path))
    assert "50,000 from flag" in found["window"][0]["says"]


def test_an_invalid_setting_is_a_problem_with_a_fix(tmp_path: Path) -> None:
    too_wide = findings(foldline("doctor", "--json", "--model", "gpt-4o", "--window", "500000", cwd=tmp_path))
    assert "has a window of 128,000" in too_wide["policy"][0]["says"]
    nothing = findings(foldline("doctor", "--json", cwd=tmp_path, FOLDLINE_RESERVE_TOKENS="999999"))
    assert "reserve_tokens" in nothing["policy"][0]["fix"]
    (tmp_path / "foldline.toml").write_text("[policy]\nkeep_tokenz = 1\n")
    broken = findings(foldline("doctor", "--json", cwd=tmp_path))
    assert broken["configuration"][0]["state"] == "problem"
    assert "keep_tokens" in broken["configuration"][0]["fix"]


def test_unknown_variables_are_reported(tmp_path: Path) -> None:
    env = {"FOLDLINE_KEEP_TOKENZ": "3", "FOLDLINE_MODELS": str(tmp_path / "none.toml")}
    rows = findings(foldline("doctor", "--json", cwd=tmp_path, **env))["environment"]
    assert [row["state"] for row in rows] == ["note", "problem"]
    assert "KEEP_TOKENS" in rows[0]["fix"]


def test_the_ledger_is_checked_and_never_created(tmp_path: Path) -> None:
    place = tmp_path / "agent.db"
    found = findings(foldline("doctor", "--json", cwd=tmp_path, FOLDLINE_LEDGER=str(place)))
    assert "foldline import creates it" in found["ledger"][0]["says"]
    assert not place.exists()
    store = ledger.open(place)
    store.session("one")
    store.close()
    said = findings(foldline("doctor", "--json", "--ledger", str(place)))["ledger"][0]["says"]
    assert "1 session" in said
    assert f"schema {len(MIGRATIONS)}" in said
    _from_the_future(place)
    assert findings(foldline("doctor", "--json", FOLDLINE_LEDGER=str(place)))["ledger"][0]["fix"] == "update foldline"
    place.write_bytes(b"this is no ledger at all" * 100)
    assert findings(foldline("doctor", "--json", FOLDLINE_LEDGER=str(place)))["ledger"][0]["state"] == "problem"
    gone = str(tmp_path / "no" / "such" / "place.db")
    assert findings(foldline("doctor", "--json", FOLDLINE_LEDGER=gone))["ledger"][0]["state"] == "problem"


def _from_the_future(place: Path) -> None:
    with closing(sqlite3.connect(place)) as link, link:
        link.execute("INSERT INTO migrations (number, name, at) VALUES (999, 'from the future', 0)")


def test_checking_a_server_creates_no_ledger(admin: str) -> None:
    with postgres.database(admin) as address:
        for _ in range(2):
            found = findings(foldline("doctor", "--json", FOLDLINE_LEDGER=address))
            assert "has no ledger yet" in found["ledger"][0]["says"]
        ledger.open(address).close()
        assert "schema" in findings(foldline("doctor", "--json", FOLDLINE_LEDGER=address))["ledger"][0]["says"]


def test_a_password_is_not_printed(tmp_path: Path) -> None:
    done = foldline("doctor", cwd=tmp_path, FOLDLINE_LEDGER="postgresql://me:hunter2@127.0.0.1:9/none")
    assert done.returncode == 1
    assert "hunter2" not in done.stdout + done.stderr


def test_the_figures_of_an_unknown_model_are_called_defaults(tmp_path: Path) -> None:
    found = findings(foldline("doctor", "--json", "--model", "nosuch", cwd=tmp_path))
    window, counter = found["window"][0], found["counter"][0]
    assert window["state"] == "note"
    assert window["says"].startswith("200,000 by default, because the model is unknown")
    assert "--window" in window["fix"]
    assert "(the model is unknown)" in counter["says"]
    known = findings(foldline("doctor", "--json", "--model", "claude-sonnet-4-5", cwd=tmp_path))
    assert "from the model table" in known["window"][0]["says"]
    assert "its vocabulary is not public" in known["counter"][0]["says"]
    given = findings(foldline("doctor", "--json", "--model", "nosuch", "--window", "9000", cwd=tmp_path))
    assert given["window"][0]["says"].startswith("9,000 from flag")
