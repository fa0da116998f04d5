"""The same tests on both databases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from foldline import ledger
from foldline.ledger import Store
from support import postgres

DATABASES = ("sqlite", "postgres")


@pytest.fixture(scope="session")
def admin() -> Iterator[str]:
    """A PostgreSQL server, started when the first test wants it."""
    with postgres.server() as address:
        yield address


@pytest.fixture(scope="session")
def shared_postgres(admin: str) -> Iterator[str]:
    """One database for tests that keep apart by owner."""
    with postgres.database(admin) as address:
        yield address


@pytest.fixture(params=DATABASES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where an empty ledger can be made."""
    if request.param == "sqlite":
        yield str(tmp_path / "agent.db")
        return
    with postgres.database(request.getfixturevalue("admin")) as address:
        yield address


@pytest.fixture
def opened(url: str) -> Iterator[Callable[..., Store]]:
    """Opens stores of the ledger at `url`, as many as a test wants, and closes them."""
    with ExitStack() as stack:

        def make(**options: object) -> Store:
            store = ledger.open(url, **options)  # type: ignore[arg-type]  # whatever the test gives
            stack.callback(store.close)
            return store

        yield make


@pytest.fixture
def store(opened: Callable[..., Store]) -> Store:
    return opened()


@pytest.fixture(params=DATABASES)
def ground(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A ledger for property tests: every example is an owner of its own."""
    if request.param == "sqlite":
        return str(tmp_path_factory.mktemp("ledger") / "agent.db")
    address: str = request.getfixturevalue("shared_postgres")
    return address
