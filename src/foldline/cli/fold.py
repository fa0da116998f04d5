"""`foldline fold`: fold a transcript to a budget, write it in its own format, and report what was lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import click

from foldline.cli.shared import options
from foldline.cli.shared.converted_request import REQUEST, MissingField, converted_request
from foldline.cli.shared.files import (
    STDOUT,
    Conversation,
    read_conversation,
    read_text,
    refuse_to_overwrite,
    write_file,
)
from foldline.cli.shared.output import digest_row, line_printer, margin_note, plural, printable
from foldline.cli.shared.settings import Settings
from foldline.cli.shared.transcript_import import transcript_session
from foldline.errors import ViewTooLarge
from foldline.fold import Fold
from foldline.json_text import dumps, encode
from foldline.measure.estimator import format_tokens
from foldline.message import Message
from foldline.plan.timeline import left_handles
from foldline.session import Session
from foldline.view.compose import View, head
from foldline.wire import REQUEST_FORMATS
from foldline.wire.formats import Lost
from foldline.wire.writer import refuse_unwritable, rewrite

MISSING = 5
"""How many missing facts are listed."""


@click.command()
@click.argument("file", type=click.Path())
@click.option("--out", "-o", required=True, type=click.Path(), help="Write to this file; - is standard output.")
@click.option("--to", type=click.Choice(REQUEST_FORMATS), help="Write a request in this format, with tools and model.")
@options.conversation_option(
    "If the file has several conversations, fold the one with this number (the first is 1). Needs --to."
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
@options.format_option
@options.policy_options
@options.system_tokens_option
@options.output_options("Print the report as one JSON object (on standard error if -o is -).")
def fold(file: str, out: str, settings: Settings, as_json: bool, **flags: Any) -> None:
    r"""Fold a transcript so that it fits the window, and write it in its own format.

    A digest replaces the folded messages; the report says which facts the digest kept. The input file is not changed. A
    transcript that already fits is written unchanged. The window must also have room for the agent's system prompt and
    tools. Their size is computed from the reported usage.

    \b
    Example:  foldline fold session.jsonl -o folded.jsonl --window 50000
              foldline fold session.jsonl -o request.json --to openai
    """
    refuse_to_overwrite(out, [file], force=flags["force"])
    found = read_conversation(file, flags["format"], flags["conversation"])
    if not (found.is_whole_file or flags["to"]):
        raise click.UsageError(
            "The file has several conversations. A single conversation can be written only as a request: "
            "add --to FORMAT."
        )
    settings = replace(settings, policy=settings.policy.but(bound_thinking="strip"))  # a file has no beta header
    session = transcript_session(found.transcript, settings, system_tokens=flags["system_tokens"])
    before, is_exact = session.load().request, session.state.is_exact
    try:
        view = session.view()
    except ViewTooLarge:
        if not flags["to"]:
            refuse_unwritable(found.transcript.format)  # nor could a fold in a larger window be written
        raise
    made = folded_file(found, session, view, to=flags["to"], format=flags["format"])
    size = write_file(out, [made.data])
    report = {
        "file": file,
        "out": out,
        "format": flags["to"] or found.transcript.format,
        "bytes": size,
        "model": session.model.name,
        "window": session.window,
        "usable": session.usable,
        "policy": settings.name,
        "messages": len(found.live_messages),
        "before": before,
        "before_exact": is_exact,
        "after": view.tokens,
        "exact": view.exact,
        "folded_earlier": found.compacted,
        "fold": _fold(session, found.compacted),
        "lost": [
            {"message": None if item.message == REQUEST else item.message + 1, "what": item.what, "why": item.why}
            for item in made.lost
        ],
        "to_add": [{"what": item.what, "why": item.why} for item in made.missing],
    }
    if as_json:
        click.echo(dumps(report), err=out == STDOUT)
    else:
        _print(report, to_stderr=out == STDOUT)


class FoldedFile(NamedTuple):
    """The bytes to write (`data`), and the content that the output format cannot express (`lost`).

    If the bytes are a request, `missing` names what must be added before the request can be sent.
    """

    data: bytes
    lost: tuple[Lost, ...] = ()
    missing: tuple[MissingField, ...] = ()


def folded_file(found: Conversation, session: Session, view: View, *, to: str | None, format: str | None) -> FoldedFile:
    """The file to write for the view of a session.

    With `to`, the bytes are a request in that format. Without `to`, the bytes are the file with the messages of the
    view. If no message changed, the bytes are the unchanged file.

    A request is repaired, because it will be sent. A session file is not repaired, because the agent itself repairs the
    requests that it sends.
    """
    transcript, timeline = found.transcript, session.timeline
    if to is not None:
        made = converted_request(view, found, to, format)
        return FoldedFile(encode(dumps(made.body) + "\n"), made.lost, made.missing)
    if transcript.format in REQUEST_FORMATS:
        shown = view.repaired_messages(transcript.format)
    else:
        shown = head(timeline) + tuple(timeline.messages_from(timeline.cut))
    text = read_text(found.file)
    live = found.live_messages
    if len(shown) == len(live) and all(map(_is_original, shown, live)):
        return FoldedFile(encode(text))
    made_file = rewrite(text, shown, format, join_turns=True)
    return FoldedFile(made_file.data, made_file.lost)


def _is_original(one: Message, other: Message) -> bool:
    """Whether two messages are equal and have the same wire form. False if they have no wire form."""
    return one == other and one.wire is other.wire and one.wire is not None


def _fold(session: Session, compacted: int) -> dict[str, Any] | None:
    """The report on the session's fold; None if nothing was folded.

    `compacted` is the number of leading messages that the agent had already compacted.
    """
    made = session.timeline.fold
    if made is None or made.made_at == compacted:
        return None
    stay = session.timeline.lead + len(made.pinned) + len(made.carried)
    return {
        "folded": left_handles(made, Fold(cut=compacted)),
        "messages": made.cut - compacted - stay,
        "kept": len(session.timeline) - made.cut + stay,
        "stubs": len(made.stubs),
        "reason": made.reason,
        "digest": digest_row(made, made.digest) if made.digest else None,
    }


def _print(report: dict[str, Any], *, to_stderr: bool) -> None:
    echo = line_printer(err=to_stderr)
    before = format_tokens(report["before"], report["before_exact"])
    after = format_tokens(report["after"], report["exact"])
    echo(f"{report['file']}: {report['messages']} messages, {before} of {report['usable']:,} usable")
    if report["folded_earlier"]:
        echo(f"  {report['folded_earlier']} messages before them were already compacted by the agent")
    if report["fold"] is None:
        echo(f"policy {report['policy']}: fits without a fold")
    else:
        _print_fold(echo, report, before, after)
    for item in report["lost"][:MISSING]:
        place = f" of message {item['message']}" if item["message"] is not None else ""
        echo(f"  not rendered: {printable(item['what'])}{place}: {printable(item['why'])}")
    if len(report["lost"]) > MISSING:
        echo(f"  not rendered: {len(report['lost']) - MISSING} more")
    for item in report["to_add"]:
        echo(f"  to add before you send it: {printable(item['what'])} ({printable(item['why'])})")
    if report["out"] != STDOUT:
        echo(f"wrote {report['out']}: {report['format']}, {report['bytes']:,} bytes")


def _print_fold(echo: Callable[..., None], report: dict[str, Any], before: str, after: str) -> None:
    made = report["fold"]
    what = f"{made['folded']} folded, " if made["folded"] else ""
    echo(f"policy {report['policy']}: {what}{before} → {after} ({made['reason']})")
    if note := margin_note(made["reason"]):
        echo(f"  {note}")
    stubs = f", {made['stubs']} large results as stubs" if made["stubs"] else ""
    echo(f"  {made['kept']} messages stay verbatim{stubs}")
    digest = made["digest"]
    if digest is None:
        return
    facts = f", {digest['kept']} of {digest['facts']} facts kept" if digest["facts"] is not None else ""
    cause = f" ({printable(digest['cause'])})" if digest["cause"] else ""
    echo(f"  digest: {digest['by']}{cause}, {format_tokens(digest['tokens'], False)} tokens{facts}")
    missing = (digest["facts"] or 0) - (digest["kept"] or 0)
    if missing:
        echo(f"  {plural(missing, 'fact')} missing, still in {report['file']}; the most important:")
    for fact in digest["missing"][:MISSING]:
        echo(f"    {printable(fact)}")
    echo("  a handle such as #12 is the number of a message in the input file, and in a ledger after foldline import")
    if digest["unsourced"]:
        echo("  in the digest, but not in the folded messages:")
    for claim in digest["unsourced"][:MISSING]:
        echo(f"    {printable(claim)}")
