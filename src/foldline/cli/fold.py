"""`foldline fold`: fold a transcript to a budget, write it in its own format, and report what was lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from foldline.cli.shared import options
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
from foldline.cli.shared.transcript_import import fill_session
from foldline.json_text import dumps, encode
from foldline.measure.estimator import format_tokens
from foldline.message import Message
from foldline.plan.timeline import handle
from foldline.session import Session
from foldline.view.compose import head
from foldline.wire import REQUEST_FORMATS, render
from foldline.wire.formats import Lost, element_format
from foldline.wire.repair import repair
from foldline.wire.writer import rewrite

MISSING = 5
"""How many missing facts are listed."""


@click.command()
@click.argument("file", type=click.Path())
@click.option("--out", "-o", required=True, type=click.Path(), help="Write to this file; - is standard output.")
@click.option("--to", type=click.Choice(REQUEST_FORMATS), help="Write a request in this format instead.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@options.format_option
@options.policy_options
@options.output_options("Print the report as one JSON object (to standard error with -o -).")
def fold(file: str, out: str, settings: Settings, as_json: bool, **flags: Any) -> None:
    r"""Fold a transcript so that it fits the window, and write it in its own format.

    A digest replaces the folded messages; the report says which facts the digest kept. The input file is not changed. A
    transcript that already fits is written unchanged.

    \b
    Example:  foldline fold session.jsonl -o folded.jsonl --window 50000
              foldline fold session.jsonl -o request.json --to openai
    """
    refuse_to_overwrite(out, [file], force=flags["force"])
    found = read_conversation(file, flags["format"])
    session = Session(
        model=settings.model(found.transcript.model), policy=settings.policy, tools=found.transcript.tools
    )
    fill_session(session, found.transcript)
    before = session.load().request
    view = session.view()
    data, lost = folded_file(found, session, to=flags["to"], format=flags["format"])
    write_file(out, [data])
    report = {
        "file": file,
        "out": out,
        "format": flags["to"] or found.transcript.format,
        "bytes": len(data),
        "model": session.model.name,
        "window": session.window,
        "usable": session.usable,
        "policy": settings.name,
        "messages": len(found.live_messages),
        "before": before,
        "after": view.tokens,
        "exact": view.exact,
        "folded_earlier": found.compacted,
        "fold": _fold(session, found.compacted),
        "lost": [{"message": item.message + 1, "what": item.what, "why": item.why} for item in lost],
    }
    if as_json:
        click.echo(dumps(report), err=out == STDOUT)
    else:
        _print(report, to_stderr=out == STDOUT)


def folded_file(
    found: Conversation, session: Session, *, to: str | None, format: str | None
) -> tuple[bytes, tuple[Lost, ...]]:
    """The bytes to write, and the content that the output format cannot express.

    With `to`, the bytes are a request in that format. Without `to`, the bytes are the file with the messages of the
    view; if no message changed, the unchanged file.

    A request is repaired, because it will be sent. A session file is not repaired, because its agent repairs what it
    sends.
    """
    transcript, timeline = found.transcript, session.timeline
    shown = head(timeline) + tuple(timeline.shown[timeline.cut :])
    if to is not None:
        made = render(repair(shown, to).messages, to)
        same = (
            {"model": session.model.name, "tools": list(transcript.tools)}
            if element_format(transcript.format) == to
            else {}
        )
        body = {**{key: value for key, value in same.items() if value}, **made.body}
        return encode(dumps(body) + "\n"), made.lost
    if transcript.format in REQUEST_FORMATS:
        shown = repair(shown, transcript.format).messages
    text = read_text(found.file)
    live = found.live_messages
    if len(shown) == len(live) and all(map(_is_original, shown, live)):
        return encode(text), ()
    made_file = rewrite(text, shown, format)
    return made_file.data, made_file.lost


def _is_original(one: Message, other: Message) -> bool:
    """Whether a message is unchanged since it was read."""
    return one == other and one.wire is other.wire and one.wire is not None


def _fold(session: Session, compacted: int) -> dict[str, Any] | None:
    """The report on the session's fold; None if nothing was folded.

    The agent itself compacted the first `compacted` messages.
    """
    made = session.timeline.fold
    if made is None or made.cut == compacted:
        return None
    first = max(session.timeline.lead, compacted)
    stay = session.timeline.lead + len(made.pinned) + len(made.carried)
    return {
        "folded": handle(first, made.cut - 1) if made.cut > first else "",
        "messages": made.cut - compacted - stay,
        "kept": len(session.timeline) - made.cut + stay,
        "stubs": len(made.stubs),
        "reason": made.reason,
        "digest": digest_row(made, made.digest) if made.digest else None,
    }


def _print(report: dict[str, Any], *, to_stderr: bool) -> None:
    echo = line_printer(err=to_stderr)
    before, after = (format_tokens(report[key], report["exact"]) for key in ("before", "after"))
    echo(f"{report['file']}: {report['messages']} messages, {before} of {report['usable']:,} usable")
    if report["folded_earlier"]:
        echo(f"  {report['folded_earlier']} messages before them were already compacted by the agent")
    if report["fold"] is None:
        echo(f"policy {report['policy']}: fits without a fold")
    else:
        _print_fold(echo, report, before, after)
    for item in report["lost"][:MISSING]:
        echo(f"  not rendered: {printable(item['what'])} of message {item['message']}: {printable(item['why'])}")
    if len(report["lost"]) > MISSING:
        echo(f"  not rendered: {len(report['lost']) - MISSING} more")
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
