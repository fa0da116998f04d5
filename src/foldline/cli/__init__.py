"""The command line. Each command has a module with the same name; `app.py` lists the commands."""

from __future__ import annotations

import sys

_WITHOUT_CLICK = {"statusline": "foldline.watch.status_line", "hook": "foldline.watch.agent_hooks"}
"""Commands that an agent runs at every turn. Without options, they run without importing `app.py`, to start fast."""


def main() -> None:
    """Run the command line. After Ctrl-C, only "stopped" is printed, even if modules are still being imported."""
    try:
        from importlib import import_module  # noqa: PLC0415

        if len(sys.argv) == 2 and sys.argv[1] in _WITHOUT_CLICK:
            sys.exit(import_module(_WITHOUT_CLICK[sys.argv[1]]).run())
        import_module("foldline.cli.app").main()
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        sys.exit(130)


__all__ = ["main"]
