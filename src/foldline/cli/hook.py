"""`foldline hook`: called by Claude Code and Codex at their own events; people need it only to try it out."""

from __future__ import annotations

import click

from foldline.watch.agent_hooks import run


@click.command()
def hook() -> int:
    r"""Answer a hook of Claude Code or Codex: its JSON comes in on standard input.

    \b
    Example:       foldline hook < event.json
    Installed by:  foldline install claude-code
    """
    return run()
