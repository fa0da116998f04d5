"""`python -m bench NAME ...`: run one benchmark. Each benchmark is a module whose `main(argv)` returns the exit
status.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path


def benches() -> list[str]:
    """The names of the modules and packages with a `main`."""
    here = Path(__file__).parent
    files = {file.stem: file for file in here.glob("[!_]*.py")}
    files |= {file.parent.name: file for file in here.glob("*/__init__.py")}
    return sorted(name for name, file in files.items() if "\ndef main(argv" in file.read_text())


def run(argv: list[str]) -> int:
    if not argv or argv[0] not in benches():
        print(f"usage: python -m bench NAME ...   NAME is one of {', '.join(benches())}")
        return 2
    status: int = import_module(f"bench.{argv[0]}").main(argv[1:])
    return status


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
