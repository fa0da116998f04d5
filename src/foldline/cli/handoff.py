"""`foldline handoff`: hand a session over to another agent."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from foldline.cli.shared import options
from foldline.cli.shared.files import STDOUT, read_conversation, refuse_to_overwrite, write_file
from foldline.cli.shared.ledger_choice import (
    LedgerLocation,
    SessionName,
    any_owner_option,
    choose_session,
    find_owner,
    ledger_options,
    open_ledger,
)
from foldline.cli.shared.output import console, print_json
from foldline.cli.shared.settings import Settings
from foldline.cli.shared.transcript_import import transcript_session
from foldline.integrations.handoff import TARGETS, digest_text, handoff_text, session_file
from foldline.json_text import dumps
from foldline.ledger import MAIN
from foldline.session import Session
from foldline.session.native_compaction import fold_at_native_summary


@click.command()
@click.argument("source", metavar="SESSION", type=SessionName())
@click.option(
    "--to", type=click.Choice(TARGETS), default="markdown", show_default=True, help="Choose the form of the hand-over."
)
@click.option("--out", "-o", type=click.Path(), help="Write to this file; - is standard output.")
@click.option("--folder", type=click.Path(), default=".", show_default=True, help="The next agent's working folder.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@click.option("--branch", default=MAIN, show_default=True, help="Branch of the session.")
@options.conversation_option("If the session file has several conversations, use the one with this number.")
@options.format_option
@any_owner_option
@ledger_options
@options.policy_options
@options.output_options(
    "Print one JSON object (on standard error if -o is -). Without -o, the object contains the text."
)
def handoff(source: str, to: str, out: str | None, location: LedgerLocation, as_json: bool, **flags: Any) -> None:
    r"""Write a hand-over of a session, so that another agent can continue it.

    SESSION is a session of the ledger, or a session file. The hand-over consists of a digest of the earlier
    conversation, and the last turn. Secrets are removed. With --to digest, the digest covers all turns. With --to
    claude-code, codex or pi, the hand-over is written as a session file into the folder of that agent. The command that
    starts the agent with this file is printed. The original session is not changed.

    \b
    Example:  foldline handoff ticket-42 --to codex
              foldline handoff ~/.claude/projects/x/1234.jsonl --to pi
              claude "$(foldline handoff ticket-42)"
    """
    copy = _copy_of(source, location, **flags)
    text = digest_text(copy) if to == "digest" else handoff_text(copy)
    resume, data = "", text.encode()
    target = out or STDOUT
    if to not in ("markdown", "digest"):
        folder = Path(flags["folder"]).resolve()
        made = session_file(to, text, folder=folder, session_id=str(uuid.uuid4()), at=datetime.now(UTC))
        target, resume, data = out or str(made.path), made.resume, made.data
    if out is None and target != STDOUT:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
    report = {"session": source, "to": to, "out": target, "bytes": len(data), "resume": resume}
    if as_json and out is None and target == STDOUT:
        print_json({**report, "text": text})
        return
    refuse_to_overwrite(target, [source] if Path(source).is_file() else [], force=flags["force"])
    write_file(target, [data])
    if as_json:
        click.echo(dumps(report), err=target == STDOUT)
    elif target != STDOUT:
        console().print(f"wrote {target}: {len(data):,} bytes", soft_wrap=True, markup=False)
        if resume and out is None:
            console().print(f"go on with: {resume}", soft_wrap=True, markup=False)


def _copy_of(source: str, location: LedgerLocation, *, settings: Settings, **flags: Any) -> Session:
    """A session in memory with the messages of a session file, or of a session in the ledger."""
    if Path(source).is_file():
        found = read_conversation(source, flags["format"], flags["conversation"])
        return transcript_session(found.transcript, settings)
    with open_ledger(find_owner(location, source, all_owners=flags["all_owners"])) as ledger:
        choice = choose_session(ledger, session=source, branch=flags["branch"])
        stored = ledger.session(choice.info.name, branch=choice.branch.name)
        copy = Session(model=settings.model(stored.model.name), policy=settings.policy, format=stored.format)
        copy.record.append(list(stored.messages))
    copy.refresh()
    fold_at_native_summary(copy)
    return copy
