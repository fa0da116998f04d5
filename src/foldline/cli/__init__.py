"""The command line: a thin mirror of the library, with plain words for people and `--json` for machines."""

from __future__ import annotations

import sys

_AT_ONCE = {"statusline": "foldline.watch.status_line", "hook": "foldline.watch.agent_hooks"}
"""What an agent runs at every turn, without options: it starts without the rest of the command line."""


def main() -> None:
    """Run the command."""
    from importlib import import_module  # noqa: PLC0415

    if len(sys.argv) == 2 and sys.argv[1] in _AT_ONCE:
        sys.exit(import_module(_AT_ONCE[sys.argv[1]]).run())
    import_module("foldline.cli.app").main()


__all__ = ["main"]
