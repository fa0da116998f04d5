"""`foldline completion`: print a shell's completion script."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    r"""Print the completion script for a shell.

    \b
    Example:  foldline completion bash >> ~/.bashrc
              foldline completion zsh >> ~/.zshrc
              foldline completion fish > ~/.config/fish/completions/foldline.fish
    """
    from foldline.cli.app import cli  # noqa: PLC0415  # the app imports this module

    completer = get_completion_class(shell)
    if completer is None:  # pragma: no cover  # click has all three
        raise click.UsageError(f"no completion for {shell}")
    click.echo(completer(cli, {}, "foldline", "_FOLDLINE_COMPLETE").source())
