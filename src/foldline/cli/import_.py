"""`foldline import`: add transcripts or an exported ledger to a ledger.

A transcript becomes a session. The session is built in memory and added in one transaction, like an exported session.
If the session of a transcript exists already, only the new messages of the file are added. An exported session that
exists already is refused.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from foldline import text_lines
from foldline.cli.shared import options
from foldline.cli.shared.files import expand_paths, is_export, read_transcripts
from foldline.cli.shared.ledger_choice import LedgerLocation, ledger_options, open_ledger
from foldline.cli.shared.output import line_printer, plural, print_json, printable, progress
from foldline.cli.shared.owner_names import owner_to_write
from foldline.cli.shared.settings import Settings
from foldline.cli.shared.transcript_import import add_transcript
from foldline.errors import FoldlineError, InputError
from foldline.session import Ledger
from foldline.wire import read_all

STDIN = "-"
EXPORT = "foldline"
"""The format name of an exported ledger, as reports show it. It is also the first key in the exported file."""
SKIPPED = 3
"""How many of the skipped files are listed."""


@click.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="FILE|FOLDER...")
@click.option("--session", "-s", metavar="NAME", help="Name the session; default: the name of the file.")
@options.format_option
@options.policy_options
@ledger_options
@options.output_options("Print one JSON object with every imported session.")
def import_(files: tuple[str, ...], location: LedgerLocation, settings: Settings, as_json: bool, **flags: Any) -> None:
    r"""Add transcripts of any supported format, or files written by foldline export, to a ledger.

    The ledger is created if it does not exist. Each transcript becomes a session; if the session exists already, only
    the new messages of the transcript are added. An export is refused if one of its sessions exists already. Files in a
    folder that are not transcripts are skipped. Write - to read standard input.

    \b
    Example:  foldline import ~/.claude/projects/shop/3f0c.jsonl
              foldline import sessions/ --ledger agent.db
              foldline export -o - | foldline import - --ledger postgresql://host/agents
    """
    named, inside = expand_paths(files)
    if flags["session"] and len(named) + len(inside) > 1:
        raise click.UsageError("--session works with one file only.")
    done: list[dict[str, Any]] = []
    skipped: list[dict[str, str]] = []
    if location.missing:
        _refuse_unreadable(named, flags["format"])
    opened = open_ledger(location, create=True, owner_of=owner_to_write)
    with opened as target, progress(len(named) + len(inside), "files") as tick:
        for file in (*named, *inside):
            try:
                done += _import_file(target, file, settings, flags)
            except FoldlineError as error:
                if file in named:
                    raise
                skipped.append({"file": file, "why": str(error)})
            tick()
    if not done:
        raise InputError(
            f"no transcript found in {', '.join(files)}", hint="give a transcript or a folder with transcripts"
        )
    if as_json:
        print_json({"ledger": str(location), "sessions": done, "skipped": skipped})
    else:
        _print(location, done, skipped)


def _refuse_unreadable(files: Sequence[str], format: str | None) -> None:
    """Raise an error if a file cannot be read. This is called before a ledger is created."""
    for file in files:
        if file != STDIN and not is_export(file):
            read_all(file, format)


def _import_file(target: Ledger, file: str, settings: Settings, flags: dict[str, Any]) -> list[dict[str, Any]]:
    """Import all sessions of one file, and return a report row for each session."""
    if file == STDIN:
        with tempfile.NamedTemporaryFile() as copy:  # read more than once
            shutil.copyfileobj(sys.stdin.buffer, copy)
            copy.flush()
            if not flags["session"] and not is_export(copy.name):
                raise InputError("a session from standard input needs a name", hint="name it with --session")
            return [{**row, "file": STDIN} for row in _import_file(target, copy.name, settings, flags)]
    if is_export(file):
        return _restore(target, file)
    transcripts = read_transcripts(file, flags["format"])
    name = flags["session"] or _session_name(file)
    names = [name] if len(transcripts) == 1 else [f"{name}-{number + 1}" for number in range(len(transcripts))]
    return [{"file": file, **add_transcript(target, *pair, settings)} for pair in zip(names, transcripts, strict=True)]


def _session_name(file: str) -> str:
    """The session name for a file.

    >>> _session_name("projects/3f0c.jsonl.gz")
    '3f0c'
    """
    return Path(Path(file).name.removesuffix(".gz")).stem


def _restore(target: Ledger, file: str) -> list[dict[str, Any]]:
    before = {info.name for info in target.sessions()}
    new = target.load(line.text for line in text_lines.lines_of_file(file) if line.text.strip())
    added = [info for info in target.sessions() if info.name not in before]
    rows = [{"session": info.name, "file": file, "format": EXPORT, "messages": info.messages} for info in added]
    return [{**row, "new": new if len(rows) == 1 else row["messages"], "compacted": 0} for row in rows]


def _print(location: LedgerLocation, done: list[dict[str, Any]], skipped: list[dict[str, str]]) -> None:
    echo = line_printer()
    for row in done:
        if not row["new"] and len(done) > 1:
            continue
        new = "" if row["new"] == row["messages"] else f", {row['new']:,} of them new" if row["new"] else ", none new"
        earlier = f"; {row['compacted']:,} of them compacted by the agent" if row["compacted"] else ""
        what = f"{row['format']}, {plural(row['messages'], 'message')}{new}{earlier}"
        echo(f"session {printable(row['session'])}: {what}")
    if skipped:
        some = ", ".join(printable(row["file"]) for row in skipped[:SKIPPED])
        echo(f"skipped {plural(len(skipped), 'file')} ({some}{', …' * (len(skipped) > SKIPPED)})", soft_wrap=False)
    fresh = sum(row["new"] for row in done)
    what = f"{plural(len(done), 'session')}, {plural(fresh, 'new message')}"
    echo(f"imported into {location}: {what}")
    is_secret = str(location) != location.url
    option = f" --ledger {location}" if location.source == "flag" and not is_secret else ""
    before = "set FOLDLINE_LEDGER to the address, then " if location.source == "flag" and is_secret else ""
    echo(f"next: {before}foldline show{option}, or foldline recall{option} QUESTION", style="dim")
