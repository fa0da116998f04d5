"""Starts the PostgreSQL server of the tests, and yields places for new ledgers."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any


def postgres() -> Any:
    """The module of the tests that starts PostgreSQL. It has the context managers `server()` and `database(admin)`."""
    tests = str(Path(__file__).parent.parent / "tests")
    if tests not in sys.path:
        sys.path.append(tests)
    return import_module("support.postgres")


@contextmanager
def places(*, on_postgres: bool) -> Iterator[Iterator[str]]:
    """Yields the addresses of new ledgers: paths of files that do not exist yet, or new databases of one server."""
    with ExitStack() as stack:
        if on_postgres:
            support = postgres()
            admin = stack.enter_context(support.server())
            yield (stack.enter_context(support.database(admin)) for _ in count())
        else:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            yield (str(folder / f"{number}.db") for number in count())
