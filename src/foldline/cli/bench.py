"""`foldline bench`: the measurements of this project, where its checkout is."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import click

from foldline.cli.promises import checkout
from foldline.errors import InputError


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[NAME [OPTIONS]...]")
def bench(arguments: tuple[str, ...]) -> None:
    r"""Run one of the project's measurements; without a name, list them. Each has its own --help and --json.

    \b
    Example:  foldline bench
              foldline bench replay --data FOLDER --policy balanced
    """
    root = checkout(Path.cwd())
    if not (root / "bench" / "__main__.py").is_file():
        raise InputError(f"{root} has no measurements in it", hint="take a whole checkout of foldline")
    sys.path.insert(0, str(root))
    found = import_module("bench.__main__")
    if not arguments:
        click.echo("\n".join(found.benches()))
        return
    try:
        status = found.run(list(arguments))
    except SystemExit as done:  # how argparse ends
        status = done.code if isinstance(done.code, int) else int(bool(done.code))
    raise click.exceptions.Exit(status)
