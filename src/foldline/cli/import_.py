"""`foldline import`: bring transcripts, or an exported ledger, into a ledger.

A transcript in any supported format becomes a session. It is made in memory first and then added in one transaction,
as an exported session is: all of it is in the ledger, or nothing. A file that has grown since adds what is new.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import click

from foldline import ledger, text_lines
from foldline.cli.shared import options
from foldline.cli.shared.files import gathered
from foldline.cli.shared.ledger_choice import Place, at_ledger, opened
from foldline.cli.shared.output import console, counted, print_json, progress, safe
from foldline.cli.shared.settings import Settings
from foldline.errors import FoldlineError, InputError
from foldline.fold import Fold
from foldline.ledger import MAIN
from foldline.message import Message
from foldline.replay import seen_together
from foldline.session import Ledger
from foldline.wire import Transcript, read_all

STDIN = "-"
EXPORT = "foldline"
"""What an exported ledger is called among the formats; its first line has it as a key."""
SKIPPED = 3
"""How many of the files that are no transcripts are named."""


@click.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="FILE|FOLDER...")
@click.option("--session", "-s", metavar="NAME", help="What to call the session; else it has the name of its file.")
@options.form
@options.chosen
@at_ledger
@options.output("One JSON object with every session that was brought in.")
def import_(files: tuple[str, ...], place: Place, chosen: Settings, as_json: bool, **given: Any) -> None:
    r"""Bring transcripts of any supported format into a ledger, or what foldline export wrote.

    The ledger is made if there is none. Each transcript becomes a session; one that is there already gets what is new.
    In a folder, files that are no transcripts are passed over. - reads standard input.

    \b
    Example:  foldline import ~/.claude/projects/shop/3f0c.jsonl
              foldline import sessions/ --ledger agent.db
              foldline export -o - | foldline import - --ledger postgresql://host/agents
    """
    named, inside = gathered(files)
    if given["session"] and len(named) + len(inside) > 1:
        raise click.UsageError("--session names one session: give one file with it.")
    done: list[dict[str, Any]] = []
    skipped: list[dict[str, str]] = []
    if place.missing:
        _refuse_unreadable(named, given["form"])
    with opened(place, make=True) as found, progress(len(named) + len(inside), "files") as tick:
        for file in (*named, *inside):
            try:
                done += _bring(found, file, chosen, given)
            except FoldlineError as error:
                if file in named:
                    raise
                skipped.append({"file": file, "why": str(error)})
            tick()
    if not done:
        raise InputError(f"no transcript in {', '.join(files)}", hint="name a transcript or a folder of them")
    if as_json:
        print_json({"ledger": str(place), "sessions": done, "skipped": skipped})
    else:
        _print(place, done, skipped)


def _refuse_unreadable(files: Sequence[str], form: str | None) -> None:
    """Say no to what cannot be read before a ledger is made for it."""
    for file in files:
        if file != STDIN and not _is_export(file):
            read_all(file, form)


def _is_export(file: str) -> bool:
    first = next((line.text for line in text_lines.lines_of_file(file) if line.text.strip()), "")
    return first.startswith('{"foldline":')


def _bring(found: Ledger, file: str, chosen: Settings, given: dict[str, Any]) -> list[dict[str, Any]]:
    """All sessions of one file."""
    if file == STDIN:
        with tempfile.NamedTemporaryFile() as kept:  # it is read more than once
            shutil.copyfileobj(sys.stdin.buffer, kept)
            kept.flush()
            if not given["session"] and not _is_export(kept.name):
                raise InputError("standard input has no name", hint="give the session one with --session")
            return [{**row, "file": STDIN} for row in _bring(found, kept.name, chosen, given)]
    if _is_export(file):
        return _restore(found, file)
    transcripts = read_all(file, given["form"])
    name = given["session"] or _name(file)
    names = [name] if len(transcripts) == 1 else [f"{name}-{number + 1}" for number in range(len(transcripts))]
    return [_add(found, *pair, chosen, file) for pair in zip(names, transcripts, strict=True)]


def _name(file: str) -> str:
    """What a file calls its session.

    >>> _name("projects/3f0c.jsonl.gz")
    '3f0c'
    """
    return Path(Path(file).name.removesuffix(".gz")).stem


def _restore(found: Ledger, file: str) -> list[dict[str, Any]]:
    before = {info.name for info in found.sessions()}
    new = found.load(line.text for line in text_lines.lines_of_file(file) if line.text.strip())
    added = [info for info in found.sessions() if info.name not in before]
    rows = [{"session": info.name, "file": file, "format": EXPORT, "messages": info.messages} for info in added]
    return [{**row, "new": new if len(rows) == 1 else row["messages"], "compacted": 0} for row in rows]


def _add(found: Ledger, name: str, transcript: Transcript, chosen: Settings, file: str) -> dict[str, Any]:
    """One conversation as a session, all of it or nothing."""
    messages = transcript.messages
    compacted = len(messages) - len(seen_together(transcript)[-1])
    if any(info.name == name for info in found.sessions()):
        new = _grown(found, name, messages, compacted)
    else:
        found.load(_made(name, transcript, chosen, compacted))
        new = len(messages)
    figures = {"messages": len(messages), "new": new, "compacted": compacted}
    return {"session": name, "file": file, "format": transcript.format, **figures}


def _made(name: str, transcript: Transcript, chosen: Settings, compacted: int) -> list[str]:
    """A new session as the lines of an export. What the agent itself compacted away is folded here too."""
    with Ledger(ledger.open(":memory:")) as made:
        model = chosen.model(transcript.model)
        session = made.session(name, model=model, policy=chosen.policy, tools=transcript.tools)
        session.record.append(transcript.messages)
        if compacted:
            made.store.append_fold(made.store.session(name), _compaction(transcript.messages, compacted))
        return list(made.export())


def _compaction(messages: Sequence[Message], cut: int) -> Fold:
    """The agent's own compaction: its digest is the first message behind the cut, its sizes those of the usage."""
    return Fold(
        cut=cut,
        reason="compacted by the agent itself",
        made_at=cut,
        before=_reported(reversed(messages[:cut])),
        after=_reported(messages[cut:]),
    )


def _reported(messages: Iterable[Message]) -> int:
    """The size of the first request among them that has its usage."""
    return next((message.meta.usage.prompt for message in messages if message.meta.usage), 0)


def _grown(found: Ledger, name: str, messages: Sequence[Message], compacted: int) -> int:
    """Add what a session does not have yet; how many messages that is."""
    store, branch = found.store, found.store.session(name, MAIN)
    known = 0
    for stored, message in zip_longest(store.read(branch), messages):
        if stored is None:
            break
        if stored.message != message:
            raise InputError(
                f"session {name!r} is there already and says something else from #{known + 1} on",
                hint="give this one another name with --session",
            )
        known += 1
    if known < len(messages):
        head = store.head(branch)
        store.append(branch, messages[known:], expected=head.key)
        if compacted > known:
            store.append_fold(branch, _compaction(messages, compacted), mark=head.mark)
    return len(messages) - known


def _print(place: Place, done: list[dict[str, Any]], skipped: list[dict[str, str]]) -> None:
    out = console()
    for row in done:
        if not row["new"] and len(done) > 1:
            continue
        new = "" if row["new"] == row["messages"] else f", {row['new']:,} of them new" if row["new"] else ", none new"
        earlier = f"; {row['compacted']:,} of them compacted by the agent" if row["compacted"] else ""
        what = f"{row['format']}, {counted(row['messages'], 'message')}{new}{earlier}"
        out.print(f"session {safe(row['session'])}: {what}", soft_wrap=True)
    if skipped:
        some = ", ".join(safe(row["file"]) for row in skipped[:SKIPPED])
        out.print(f"passed over: {counted(len(skipped), 'file')} ({some}{', …' * (len(skipped) > SKIPPED)})")
    fresh = sum(row["new"] for row in done)
    what = f"{counted(len(done), 'session')}, {counted(fresh, 'new message')}"
    out.print(f"{what} brought into {place}", soft_wrap=True)
    there = f" --ledger {place}" if place.source == "flag" else ""
    out.print(f"next: foldline show{there}, or foldline recall{there} QUESTION", style="dim", soft_wrap=True)
