"""The command `foldline`: the table of sub-commands, error output and exit codes.

The module of a sub-command is imported only when the sub-command runs, so that `--help` is fast.
"""

from __future__ import annotations

import io
import logging
import os
import signal
import sys
from difflib import get_close_matches
from importlib import import_module
from keyword import iskeyword
from typing import NamedTuple

import click

from foldline import __version__
from foldline.errors import FoldlineError, FormatUnknown, LedgerError, ViewTooLarge

EXIT_CODES = {
    0: "done; inspect also reports a broken or too large transcript with this code",
    1: "done, and a check found a problem (doctor, verify, serve --check, worker --once)",
    2: "wrong usage, or a file or setting that cannot be read or is invalid",
    3: "the conversation does not fit the window, so nothing was written (replay: all requests were refused)",
    4: "a file cannot be written, or a ledger or service cannot be reached",
    10: "watch: a compaction is due before the agent's next turn",
    11: "watch: a cost limit is reached",
    12: "watch: the stream ended in the middle of a turn",
    130: "stopped by Ctrl-C; no partial result is left",
}
"""The meaning of each exit status."""


class CommandEntry(NamedTuple):
    """A sub-command's section and summary in the help."""

    section: str
    summary: str


COMMANDS = {
    "demo": CommandEntry("Start here", "Replay a recorded session in a small window"),
    "inspect": CommandEntry("Transcripts", "Show what fills a transcript, what is broken, where it would fold"),
    "fold": CommandEntry("Transcripts", "Fold a transcript to a budget and write it in its own format"),
    "replay": CommandEntry("Transcripts", "Compare policies on old sessions by tokens, cost and lost facts"),
    "usage": CommandEntry("Transcripts", "Show tokens and money by day, project, model or session"),
    "import": CommandEntry("Ledger", "Add transcripts or an exported ledger to a ledger"),
    "sessions": CommandEntry("Ledger", "List the sessions of a ledger"),
    "show": CommandEntry("Ledger", "Show what the model sees of a session, and the digest of the rest"),
    "recall": CommandEntry("Ledger", "Search a session, or print messages by their handle"),
    "pin": CommandEntry("Ledger", "Keep a text or messages in every view"),
    "unfold": CommandEntry("Ledger", "Undo the newest fold"),
    "verify": CommandEntry("Ledger", "Check a ledger for changed, damaged and missing rows"),
    "export": CommandEntry("Ledger", "Write sessions as lines of JSON"),
    "handoff": CommandEntry("Ledger", "Write a hand-over of a session, so that another agent can continue it"),
    "prune": CommandEntry("Ledger", "Delete sessions that were not used for a given time"),
    "watch": CommandEntry("Agents", "Show a running agent's context use and cost, and keep its working notes"),
    "install": CommandEntry("Agents", "Install hooks and a status line for Claude Code or Codex"),
    "hook": CommandEntry("Agents", "Answer a hook of an agent (run by installed hooks)"),
    "statusline": CommandEntry("Agents", "Print a status line (run by an installed status line)"),
    "run": CommandEntry("Services", "Run an agent together with a private proxy"),
    "serve": CommandEntry("Services", "Run a proxy that keeps the conversations of agents inside the window"),
    "page": CommandEntry("Services", "Show sessions in a browser, and fold, pin and recall there"),
    "mcp": CommandEntry("Services", "Serve recall, pin and fold as tools for an MCP client"),
    "worker": CommandEntry("Services", "Run background folds for sessions in other processes"),
    "config": CommandEntry("Setup", "Show the effective settings and their sources"),
    "doctor": CommandEntry("Setup", "Check the installation and the configuration"),
    "completion": CommandEntry("Setup", "Print a completion script for a shell"),
}
"""Every sub-command, in the order of the help. A sub-command, its module and its function have the same name."""


class Commands(click.Group):
    """A click group that imports a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """All command names, in the order of `COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command with this name, or None."""
        if cmd_name not in COMMANDS:
            return None
        name = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
        found: click.Command = getattr(import_module(f"foldline.cli.{name}"), name)
        return _with_paragraph_marks(found)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is called. The error for an unknown command names a similar command."""
        similar = get_close_matches(args[0], COMMANDS, n=1) if args and args[0] not in COMMANDS else []
        if similar:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {similar[0]!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the commands by section, without importing them."""
        width = max(map(len, COMMANDS))
        for section in dict.fromkeys(row.section for row in COMMANDS.values()):
            with formatter.section(section):
                rows = [(name.ljust(width), row.summary) for name, row in COMMANDS.items() if row.section == section]
                formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the exit codes."""
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code).rjust(3), meaning) for code, meaning in EXIT_CODES.items()])


def _with_paragraph_marks(command: click.Command) -> click.Command:
    r"""Prepare a command's help text for click, and return the command.

    Raw docstrings contain `\b` as two characters. click expects a backspace character instead, which marks preformatted
    lines.
    """
    command.help = (command.help or "").replace("\\b", "\b")
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        _with_paragraph_marks(inner)
    return command


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="foldline")
def cli() -> None:
    r"""Keep a long LLM conversation inside the model's context window.

    \b
    Try:  foldline demo
          foldline inspect session.jsonl

    Settings come from foldline.toml in the project, from ~/.config/foldline/config.toml, from the environment
    (FOLDLINE_...) and from flags. Each source overrides the sources before it. foldline config shows the result.
    """


_with_paragraph_marks(cli)


def main() -> None:
    """Run the command, and exit with its code. An expected error is printed on standard error as one sentence."""
    log, warnings = logging.getLogger("foldline"), _WarningPrinter()
    log.addHandler(warnings)
    try:
        code = _run()
        if sys.stderr is not None:
            sys.stderr.flush()
    except OSError:  # standard error cannot be written: discard it, or the flush at exit fails again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
        code = 4
    finally:
        log.removeHandler(warnings)
    sys.exit(code)


class _WarningPrinter(logging.Handler):
    """Prints each warning of the library once, as one sentence on standard error.

    A service that has its own log writes its warnings to that log.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._printed: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Print the warning of a log record."""
        from foldline.events import Event  # noqa: PLC0415  # only a warning needs it

        event = record.args[0] if isinstance(record.args, tuple) and record.args else None
        text = record.getMessage()
        if isinstance(event, Event) and event.kind == "assumed":
            text = str(event.facts["reason"]).replace("set window_tokens", "use --model, or --window")
        if text not in self._printed and not logging.getLogger().handlers:
            self._printed.add(text)
            click.echo(f"foldline: {_redact(text)}", err=True)


def _run() -> int:
    try:
        status = cli.main(prog_name="foldline", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(shown)
        if isinstance(error, click.NoSuchOption) and _takes_words(error.ctx):
            shown.write("If the option belongs to the text, quote the whole text, or write -- before the text.\n")
        click.echo(_redact(shown.getvalue()), err=True, nl=False)
        return 2
    except click.Abort:
        click.echo("stopped", err=True)
        return 130
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # another Ctrl-C ends the process at once, without a traceback
        click.echo("stopped", err=True)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except SystemExit as done:  # click and rich exit with 1 only on a broken pipe
        return done.code if isinstance(done.code, int) and done.code != 1 else 0
    except FoldlineError as error:
        from foldline.cli.shared.output import with_option_names  # noqa: PLC0415

        words = with_option_names(str(error)) if isinstance(error, FormatUnknown | ViewTooLarge) else str(error)
        click.echo(f"foldline: {_redact(words)}", err=True)
        return 3 if isinstance(error, ViewTooLarge) else 4 if isinstance(error, LedgerError) else 2
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        click.echo(f"foldline: {_redact(what)}", err=True)
        return 4
    return status if isinstance(status, int) else 0


def _takes_words(context: click.Context | None) -> bool:
    """Whether the command has an argument that takes any number of words, such as the text of a pin."""
    arguments = context.command.params if context is not None else ()
    return any(
        isinstance(each, click.Argument) and each.nargs == -1 and each.type is click.STRING for each in arguments
    )


def _redact(text: str) -> str:
    from foldline.redact.redact import redact  # noqa: PLC0415  # only an error needs it

    return redact(text)
