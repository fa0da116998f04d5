"""`python -m bench NAME ...`: one bench per module, each with a `main(argv)` that gives the exit status."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path


def benches() -> list[str]:
    """The modules that are benches: those with a `main`."""
    files = sorted(Path(__file__).parent.glob("[!_]*.py"))
    return [file.stem for file in files if "\ndef main(argv" in file.read_text()]


def run(argv: list[str]) -> int:
    if not argv or argv[0] not in benches():
        print(f"usage: python -m bench NAME ...   NAME is one of {', '.join(benches())}")
        return 2
    status: int = import_module(f"bench.{argv[0]}").main(argv[1:])
    return status


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
