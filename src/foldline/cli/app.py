"""The command `foldline`: its sub-commands, and what an error looks like on a terminal.

Exit codes: 0 done, 1 done but something was found (see the command), 2 wrong use or input, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import os
import sys

import click

from foldline import __version__
from foldline.cli.inspect import inspect
from foldline.cli.promises import promises
from foldline.errors import FoldlineError


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="foldline")
def cli() -> None:
    r"""Keep a long LLM conversation inside the model's context window.

    \b
    Try:  foldline inspect session.jsonl
    """


cli.add_command(inspect)
cli.add_command(promises)


def main() -> None:
    """Run the command; every expected failure is one plain sentence on standard error."""
    try:
        cli(standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped", err=True)
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except FoldlineError as error:
        click.echo(f"foldline: {error}", err=True)
        sys.exit(2)
