"""The PostgreSQL that the tests start, and where benches that need a ledger find an empty one."""

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
    """The module that starts it: `server()` and `database(admin)`, both to be used with `with`."""
    tests = str(Path(__file__).parent.parent / "tests")
    if tests not in sys.path:
        sys.path.append(tests)
    return import_module("support.postgres")


@contextmanager
def places(*, on_postgres: bool) -> Iterator[Iterator[str]]:
    """Places for ledgers that are not there yet, one after the other: files, or databases of one server."""
    with ExitStack() as stack:
        if on_postgres:
            support = postgres()
            admin = stack.enter_context(support.server())
            yield (stack.enter_context(support.database(admin)) for _ in count())
        else:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            yield (str(folder / f"{number}.db") for number in count())
