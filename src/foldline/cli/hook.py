"""`foldline hook`: answers a hook event. Claude Code and Codex run this command."""

from __future__ import annotations

import click

from foldline.watch.agent_hooks import run


@click.command()
def hook() -> int:
    r"""Answer a hook event of Claude Code or Codex, read as JSON from standard input.

    \b
    Example:       foldline hook < event.json
    Installed by:  foldline install claude-code
    """
    return run()
