"""Addresses of ledgers: a mistyped connection string is refused, and its password is never shown or stored."""

from __future__ import annotations

import socketserver
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from foldline import ledger
from foldline.errors import ConfigError, InputError, LedgerUnavailable
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


@pytest.mark.parametrize(
    ("code", "words", "hint"),
    [
        ("28P01", 'password authentication failed for user "me"', "check the user name and the password"),
        ("28000", 'no pg_hba.conf entry for host "127.0.0.1"', "check the user name and the password"),
        ("3D000", 'database "agents" does not exist', "check the name of the database"),
    ],
)
def test_a_refused_login_says_what_to_check_in_the_address(code: str, words: str, hint: str) -> None:
    with refusing_server(code, words) as port, pytest.raises(LedgerUnavailable, match=hint) as caught:
        ledger.open(f"postgresql://me:{PASSWORD}@127.0.0.1:{port}/agents?sslmode=disable&gssencmode=disable")
    assert PASSWORD not in str(caught.value)


@contextmanager
def refusing_server(code: str, words: str) -> Iterator[int]:
    """The port of a server that answers every start of a PostgreSQL connection with an error."""
    values = ("SFATAL", "VFATAL", f"C{code}", f"M{words}")
    fields = b"".join(f"{value}\0".encode() for value in values)
    answer = b"E" + struct.pack("!I", len(fields) + 5) + fields + b"\0"

    class Refusal(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            (size,) = struct.unpack("!I", self.request.recv(4))
            self.request.recv(size - 4)
            self.request.sendall(answer)

    with socketserver.TCPServer(("127.0.0.1", 0), Refusal) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("name", ["", " "])
def test_a_session_without_a_name_is_refused(name: str) -> None:
    store = ledger.open(":memory:")
    with pytest.raises(InputError, match="a session needs a name"):
        store.session(name)
    assert store.sessions() == ()
    store.close()
