"""`foldline handoff`: hand a session over to another agent."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from foldline.cli.shared import options
from foldline.cli.shared.files import STDOUT, read_conversation, refuse_to_overwrite, write_file
from foldline.cli.shared.ledger_choice import LedgerLocation, SessionName, choose_session, ledger_options, open_ledger
from foldline.cli.shared.output import console
from foldline.cli.shared.settings import Settings
from foldline.cli.shared.transcript_import import fill_session
from foldline.integrations.handoff import TARGETS, handoff_text, session_file
from foldline.json_text import dumps
from foldline.ledger import MAIN
from foldline.session import Session


@click.command()
@click.argument("source", metavar="SESSION", type=SessionName())
@click.option("--to", type=click.Choice(TARGETS), default="markdown", show_default=True, help="Write for this agent.")
@click.option("--out", "-o", type=click.Path(), help="Write to this file; - is standard output.")
@click.option("--folder", type=click.Path(), default=".", show_default=True, help="Where the next agent will work.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@click.option("--branch", default=MAIN, show_default=True, help="Branch of the session.")
@ledger_options
@options.policy_options
@options.output_options("Print the report as one JSON object (to standard error with -o -).")
def handoff(source: str, to: str, out: str | None, location: LedgerLocation, as_json: bool, **flags: Any) -> None:
    r"""Write a hand-over of a session, so that another agent can continue it.

    SESSION is a session of the ledger, or a session file. The hand-over has a digest of the conversation and the last
    turn; secrets are removed. With --to claude-code, codex or pi, it becomes a session file in the folder of that
    agent, and the command that starts the agent with this file is printed. The original session is not changed.

    \b
    Example:  foldline handoff ticket-42 --to codex
              foldline handoff ~/.claude/projects/x/1234.jsonl --to pi
              claude "$(foldline handoff ticket-42)"
    """
    text = handoff_text(_copy_of(source, location, flags["branch"], flags["settings"]))
    resume, data = "", text.encode()
    target = out or STDOUT
    if to != "markdown":
        folder = Path(flags["folder"]).resolve()
        made = session_file(to, text, folder=folder, session_id=str(uuid.uuid4()), at=datetime.now(UTC))
        target, resume, data = out or str(made.path), made.resume, made.data
    if out is None and target != STDOUT:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
    refuse_to_overwrite(target, [source] if Path(source).is_file() else [], force=flags["force"])
    write_file(target, [data])
    report = {"session": source, "to": to, "out": target, "bytes": len(data), "resume": resume}
    if as_json:
        click.echo(dumps(report), err=target == STDOUT)
    elif target != STDOUT:
        console().print(f"wrote {target}: {len(data):,} bytes", soft_wrap=True, markup=False)
        if resume and out is None:
            console().print(f"go on with: {resume}", soft_wrap=True, markup=False)


def _copy_of(source: str, location: LedgerLocation, branch: str, settings: Settings) -> Session:
    """A session in memory with the messages of a session file, or of a session of the ledger."""
    if Path(source).is_file():
        transcript = read_conversation(source).transcript
        session = Session(model=settings.model(transcript.model), policy=settings.policy, tools=transcript.tools)
        fill_session(session, transcript)
        return session
    with open_ledger(location) as ledger:
        choice = choose_session(ledger, session=source, branch=branch)
        stored = ledger.session(choice.info.name, branch=choice.branch.name)
        copy = Session(model=settings.model(stored.model.name), policy=settings.policy, format=stored.format)
        copy.record.append(list(stored.messages))
    copy.refresh()
    return copy
