"""`foldline statusline`: prints the status line. Claude Code runs this command."""

from __future__ import annotations

import click

from foldline.watch.status_line import run


@click.command()
def statusline() -> int:
    r"""Print the status line of Claude Code from the JSON on standard input.

    \b
    Example:       foldline statusline < event.json
    Installed by:  foldline install claude-code
    """
    return run()
