"""`foldline completion`: what a shell needs to complete foldline's commands, options, presets and files."""

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

    made = get_completion_class(shell)
    if made is None:  # pragma: no cover  # click knows all three
        raise click.UsageError(f"no completion for {shell}")
    click.echo(made(cli, {}, "foldline", "_FOLDLINE_COMPLETE").source())
