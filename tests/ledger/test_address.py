"""Addresses of ledgers: a mistyped connection string is refused, and its password is never shown or stored."""

from __future__ import annotations

from pathlib import Path

import pytest

from foldline import ledger
from foldline.errors import ConfigError
from foldline.ledger.address import check_address, hide_password
from support.command import foldline

PASSWORD = "hunter2zq"
MISTYPED = (
    f"postgres://user:{PASSWORD}@{PASSWORD}@host:5432/db",
    f"postgresql://user:{PASSWORD}/{PASSWORD}@host/db",
    f"postgresql://user:{PASSWORD} host:5432/db",
    f"postgresql+psycopg://user:{PASSWORD}@host/db",
    f"POSTGRES://user:{PASSWORD}@host/db",
    f"postgresql:user:{PASSWORD}@host/db",
    f"postgresql:/user:{PASSWORD}@host/db",
    f"mysql://user:{PASSWORD}@host/db",
    f"user:{PASSWORD}@host:5432/db",
    f"host=localhost user=u password={PASSWORD} dbname=d",
    f"user=u password = '{PASSWORD} {PASSWORD}'",
)


@pytest.mark.parametrize("address", MISTYPED)
def test_a_mistyped_address_is_refused_without_its_password(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as caught:
        ledger.open(address)
    assert PASSWORD not in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", [["sessions"], ["import", "talk.jsonl"], ["export", "out"], ["config"]])
@pytest.mark.parametrize("address", MISTYPED[::4])
def test_no_command_prints_it(
    command: list[str], address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "talk.jsonl").write_text('{"role": "user", "content": "hi"}\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FOLDLINE_LEDGER", address)
    done = foldline(*command)
    assert PASSWORD not in done.stdout + done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["talk.jsonl"]


@pytest.mark.parametrize(
    "address", ["agent.db", "./a:b@c.db", "/tmp/a@b/c.db", "notes user.db", ":memory:", "C:\\x\\y.db"]
)
def test_paths_are_accepted_and_shown_as_they_are(address: str) -> None:
    check_address(address)
    assert hide_password(address) == address


def test_a_password_with_codes_is_accepted() -> None:
    check_address("postgresql://user:p%40ss%2Fword@host:5432/db?sslmode=require")
