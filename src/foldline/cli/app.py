"""The command `foldline`: its sub-commands, what an error looks like on a terminal, and what the exit codes mean.

Sub-commands are imported when they are run: a list of them is all that `--help` needs, and it should come at once.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from keyword import iskeyword
from typing import NamedTuple

import click

from foldline import __version__
from foldline.errors import FoldlineError, LedgerError, ViewTooLarge

EXIT_CODES = {
    0: "done",
    1: "done, and something was found that needs you (the command says what)",
    2: "wrong use, or a file or setting that cannot be read or cannot work",
    3: "the conversation cannot be made to fit the window",
    4: "a file could not be written, or a ledger or service not be reached",
    130: "stopped by Ctrl-C; nothing is left half done",
}
"""What the exit status of every command means."""


class Row(NamedTuple):
    """A sub-command's place and line in the list."""

    section: str
    line: str


COMMANDS = {
    "demo": Row("First", "Watch a recorded session being kept inside a small window"),
    "inspect": Row("Transcripts", "What fills it, what is broken, where it would be folded"),
    "fold": Row("Transcripts", "Fold it to a budget, in the format it came in"),
    "replay": Row("Transcripts", "What policies would have sent, cost and lost on old sessions"),
    "import": Row("The ledger", "Bring transcripts, or another ledger, into a ledger"),
    "sessions": Row("The ledger", "What is in it"),
    "show": Row("The ledger", "What the model sees of a session, and what stands for the rest"),
    "recall": Row("The ledger", "What was said about something, or word for word by its handle"),
    "pin": Row("The ledger", "Keep something in every view, whatever is folded"),
    "unfold": Row("The ledger", "Take back the newest fold"),
    "verify": Row("The ledger", "Whether everything is as it was once written"),
    "export": Row("The ledger", "Sessions as lines of JSON"),
    "prune": Row("The ledger", "Delete what nobody has used for long"),
    "watch": Row("Agents", "How full a running agent's window is, what it costs, what it must not forget"),
    "install": Row("Agents", "Hooks and status line for Claude Code or Codex"),
    "hook": Row("Agents", "What an installed hook runs"),
    "statusline": Row("Agents", "What an installed status line runs"),
    "mcp": Row("Services", "Recall, pin and fold as tools for any MCP client"),
    "worker": Row("Services", "Make the folds that sessions elsewhere do not wait for"),
    "config": Row("Set up", "The settings in force, and where each comes from"),
    "doctor": Row("Set up", "What is installed and in force, what cannot work, and how to mend it"),
    "completion": Row("Set up", "Completion for your shell"),
}
"""Every sub-command in the order of the list; the module and the function have its name."""


class Commands(click.Group):
    """A group that knows its commands by name and imports one when it is asked for it."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """All names, in the order of the list."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of a name."""
        if cmd_name not in COMMANDS:
            return None
        name = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
        found: click.Command = getattr(import_module(f"foldline.cli.{name}"), name)
        return _marked(found)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The list by section, from the table alone."""
        width = max(map(len, COMMANDS))
        for section in dict.fromkeys(row.section for row in COMMANDS.values()):
            with formatter.section(section):
                rows = [(name.ljust(width), row.line) for name, row in COMMANDS.items() if row.section == section]
                formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The exit codes."""
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code).rjust(3), meaning) for code, meaning in EXIT_CODES.items()])


def _marked(command: click.Command) -> click.Command:
    """The command with click's mark for lines that stay apart: a raw docstring spells it with two characters."""
    command.help = (command.help or "").replace("\\b", "\b")
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        _marked(inner)
    return command


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="foldline")
def cli() -> None:
    r"""Keep a long LLM conversation inside the model's context window.

    \b
    Try:  foldline demo
          foldline inspect session.jsonl

    Settings come from foldline.toml in the project, from your own ~/.config/foldline/config.toml, from the
    environment (FOLDLINE_...) and from flags, later ones winning: foldline config shows them.
    """


_marked(cli)


def main() -> None:
    """Run the command; every expected failure is one plain sentence on standard error and an exit code."""
    try:
        code = _run()
        if sys.stderr is not None:
            sys.stderr.flush()
    except OSError:  # there is no room even for the sentence: what is left of it must not fail once more at the end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
        code = 4
    sys.exit(code)


def _run() -> int:
    try:
        status = cli.main(prog_name="foldline", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        error.show()
        return 2
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped", err=True)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except SystemExit as done:  # click and rich end with 1 when whoever reads has gone; no command ends so
        return done.code if isinstance(done.code, int) and done.code != 1 else 0
    except FoldlineError as error:
        click.echo(f"foldline: {error}", err=True)
        return 3 if isinstance(error, ViewTooLarge) else 4 if isinstance(error, LedgerError) else 2
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        click.echo(f"foldline: {what}", err=True)
        return 4
    return status if isinstance(status, int) else 0
