"""The PostgreSQL that the tests start, for benches that need one."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any


def postgres() -> Any:
    """The module that starts it: `server()` and `database(admin)`, both to be used with `with`."""
    tests = str(Path(__file__).parent.parent / "tests")
    if tests not in sys.path:
        sys.path.append(tests)
    return import_module("support.postgres")
