"""`foldline statusline`: called by Claude Code; people need it only to try it out."""

from __future__ import annotations

import click

from foldline.watch.status_line import run


@click.command()
def statusline() -> int:
    r"""Print the status line for Claude Code: its JSON comes in on standard input.

    \b
    Example:       foldline statusline < event.json
    Installed by:  foldline install claude-code
    """
    return run()
