"""No command prints a secret: not in its output, not as JSON, not in an error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from foldline.cli.shared.ledger_choice import LedgerLocation
from support.command import foldline

PASSWORD = "Zq8" + "vR2nL6@x9"
KEY = "ghp_" + "aK7xP9mQ2wE5rT8yU1iO3pA6sD4fG0hJaK7x"


def parts(secret: str) -> list[str]:
    return [secret[at : at + 6] for at in range(len(secret) - 5)]


@pytest.mark.parametrize("flags", [[], ["--json"], ["--all"]])
@pytest.mark.parametrize("url", [f"postgresql://app:{PASSWORD}@db/agents", f"postgresql://db/x?password={PASSWORD}"])
def test_config_hides_the_password_of_the_ledger(flags: list[str], url: str, tmp_path: Path) -> None:
    done = foldline("config", *flags, cwd=tmp_path, FOLDLINE_LEDGER=url)
    assert done.returncode == 0
    assert "postgresql://" in done.stdout
    assert not any(part in done.stdout + done.stderr for part in parts(PASSWORD)), done.stdout


@pytest.mark.parametrize("command", [["sessions"], ["doctor"], ["doctor", "--json"], ["verify"]])
@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://app:{PASSWORD}@127.0.0.1:1/agents",
        f"postgresql://app:{PASSWORD}/more:x@127.0.0.1:1/agents",
        f"mysql://app:{PASSWORD}@127.0.0.1:1/agents",
    ],
)
def test_errors_about_the_ledger_hide_its_password(command: list[str], url: str, tmp_path: Path) -> None:
    done = foldline(*command, cwd=tmp_path, FOLDLINE_LEDGER=url)
    assert done.returncode != 0
    assert not any(part in done.stdout + done.stderr for part in parts(PASSWORD)), done.stdout + done.stderr


def test_errors_about_the_configuration_hide_secrets(tmp_path: Path) -> None:
    (tmp_path / "foldline.toml").write_text(f'ledger = ["postgresql://app:{PASSWORD}@db/x"]\n')
    done = foldline("config", cwd=tmp_path)
    assert done.returncode == 2
    assert not any(part in done.stdout + done.stderr for part in parts(PASSWORD)), done.stderr
    done = foldline("inspect", f"missing-{KEY}.jsonl", cwd=tmp_path)
    assert not any(part in done.stdout + done.stderr for part in parts(KEY)), done.stderr


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_recall_and_inspect_print_no_secrets_and_no_escape_sequences(flags: list[str], tmp_path: Path) -> None:
    file = tmp_path / "session.json"
    messages = [
        {"role": "user", "content": f"deploy with \x1b[32m{KEY}\x1b[0m please"},
        {"role": "assistant", "content": "\x1b[31mdeployed\x1b[0m \x9b1mwell"},
    ]
    file.write_text(json.dumps(messages))
    ledger = str(tmp_path / "l.db")
    foldline("import", str(file), "--ledger", ledger, cwd=tmp_path)
    for command in (["recall", "deploy", "--ledger", ledger], ["inspect", str(file)]):
        done = foldline(*command, *flags, cwd=tmp_path)
        assert "deploy" in done.stdout, done.stderr
        assert not any(part in done.stdout for part in parts(KEY)), done.stdout
        assert not {"\x1b", "\x9b"} & set(done.stdout)


def test_a_location_hides_a_password_with_an_at_sign() -> None:
    assert str(LedgerLocation(url="postgresql://a:p@ss@h/x")) == "postgresql://a:…@h/x"
