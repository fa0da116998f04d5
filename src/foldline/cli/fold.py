"""`foldline fold`: a transcript folded to a budget, in the format it came in, with a report of what that lost."""

from __future__ import annotations

from typing import Any

import click

from foldline.cli.shared import options
from foldline.cli.shared.files import STDOUT, Conversation, content, conversation, refuse_to_overwrite, write
from foldline.cli.shared.output import console, counted, digest_row, safe
from foldline.cli.shared.settings import Settings
from foldline.json_text import dumps, encode
from foldline.measure.estimator import human
from foldline.message import Message
from foldline.plan.timeline import handle
from foldline.session import Session
from foldline.view.compose import head
from foldline.wire import PROVIDERS, render
from foldline.wire.formats import Lost, dialect
from foldline.wire.repair import repair
from foldline.wire.writer import rewrite

MISSING = 5
"""How many of the facts that only the original has are listed."""


@click.command()
@click.argument("file", type=click.Path())
@click.option("--out", "-o", required=True, type=click.Path(), help="Where to write; - for standard output.")
@click.option("--to", type=click.Choice(PROVIDERS), help="Write a request for this provider instead.")
@click.option("--force", is_flag=True, help="Replace a file that exists.")
@options.form
@options.chosen
@options.output("The report as one JSON object (on standard error when the file goes to standard output).")
def fold(file: str, out: str, chosen: Settings, as_json: bool, **given: Any) -> None:
    r"""Fold a transcript so that it fits, and write it in the format it came in.

    What was folded away is replaced by a digest; the report says what the digest kept. The file that is read stays as
    it is. A transcript that fits already is written unchanged.

    \b
    Example:  foldline fold session.jsonl -o folded.jsonl --window 50000
              foldline fold session.jsonl -o request.json --to openai
    """
    refuse_to_overwrite(out, [file], force=given["force"])
    found = conversation(file, given["form"])
    session = Session(model=chosen.model(found.transcript.model), policy=chosen.policy, tools=found.transcript.tools)
    session.add(*found.messages)
    before = session.load().request
    view = session.view()
    data, lost = written(found, session, to=given["to"], form=given["form"])
    write(out, data)
    report = {
        "file": file,
        "out": out,
        "format": given["to"] or found.transcript.format,
        "bytes": len(data),
        "model": session.model.name,
        "window": session.window,
        "usable": session.usable,
        "policy": chosen.name,
        "messages": len(found.messages),
        "before": before,
        "after": view.tokens,
        "exact": view.exact,
        "folded_earlier": found.before,
        "fold": _fold(session, found.before),
        "lost": [{"message": item.message + 1, "what": item.what, "why": item.why} for item in lost],
    }
    if as_json:
        click.echo(dumps(report), err=out == STDOUT)
    else:
        _print(report, to_stderr=out == STDOUT)


def written(
    found: Conversation, session: Session, *, to: str | None, form: str | None
) -> tuple[bytes, tuple[Lost, ...]]:
    """The bytes to write: the very file when nothing had to change, otherwise the file with what the view shows.

    A request is healed, because it will be sent. A session file is not: its agent heals what it sends by itself.
    """
    transcript, timeline = found.transcript, session.timeline
    shown = head(timeline) + tuple(timeline.shown[timeline.cut :])
    if to is not None:
        made = render(repair(shown, to).messages, to)
        same = (
            {"model": session.model.name, "tools": list(transcript.tools)} if dialect(transcript.format) == to else {}
        )
        body = {**{key: value for key, value in same.items() if value}, **made.body}
        return encode(dumps(body) + "\n"), made.lost
    if transcript.format in PROVIDERS:
        shown = repair(shown, transcript.format).messages
    text = content(found.file)
    if len(shown) == len(found.messages) and all(map(_is, shown, found.messages)):
        return encode(text), ()
    made_file = rewrite(text, shown, form)
    return made_file.data, made_file.lost


def _is(one: Message, other: Message) -> bool:
    """True for a message that is still the one that was read."""
    return one == other and one.wire is other.wire and one.wire is not None


def _fold(session: Session, offset: int) -> dict[str, Any] | None:
    """What the fold did, as data; None when there was nothing to do."""
    made = session.timeline.fold
    if made is None:
        return None
    lead = session.timeline.lead
    return {
        "folded": handle(offset + lead, offset + made.cut - 1) if made.cut > lead else "",
        "messages": made.cut - lead - len(made.pinned) - len(made.carried),
        "kept": len(session.timeline) - made.cut + lead + len(made.pinned) + len(made.carried),
        "stubs": len(made.stubs),
        "reason": made.reason,
        "digest": digest_row(made, made.digest) if made.digest else None,
    }


def _print(report: dict[str, Any], *, to_stderr: bool) -> None:
    out = console(err=to_stderr)
    before, after = (human(report[key], report["exact"]) for key in ("before", "after"))
    out.print(
        f"{report['file']}: {report['messages']} messages, {before} of {report['usable']:,} usable", soft_wrap=True
    )
    if report["folded_earlier"]:
        out.print(f"  {report['folded_earlier']} messages before them were compacted in the session already")
    made = report["fold"]
    if made is None:
        out.print(f"policy {report['policy']}: fits as it is", soft_wrap=True)
    else:
        _print_fold(out, report, made, before, after)
    for item in report["lost"][:MISSING]:
        out.print(
            f"  not carried: {safe(item['what'])} of message {item['message']}: {safe(item['why'])}", soft_wrap=True
        )
    if len(report["lost"]) > MISSING:
        out.print(f"  not carried: {len(report['lost']) - MISSING} more")
    if report["out"] != STDOUT:
        out.print(f"wrote {report['out']}: {report['format']}, {report['bytes']:,} bytes", soft_wrap=True)


def _print_fold(out: Any, report: dict[str, Any], made: dict[str, Any], before: str, after: str) -> None:
    what = f"{made['folded']} folded, " if made["folded"] else ""
    out.print(f"policy {report['policy']}: {what}{before} → {after} ({made['reason']})", soft_wrap=True)
    stubs = f", {made['stubs']} large results as stubs" if made["stubs"] else ""
    out.print(f"  {made['kept']} messages stay word for word{stubs}", soft_wrap=True)
    digest = made["digest"]
    if digest is None:
        return
    facts = f", {digest['kept']} of {digest['facts']} facts kept" if digest["facts"] is not None else ""
    cause = f" ({safe(digest['cause'])})" if digest["cause"] else ""
    out.print(f"  digest: {digest['by']}{cause}, {human(digest['tokens'], False)} tokens{facts}", soft_wrap=True)
    missing = (digest["facts"] or 0) - (digest["kept"] or 0)
    if missing:
        out.print(f"  {counted(missing, 'fact')} only {report['file']} still has, the weightiest:", soft_wrap=True)
    for fact in digest["missing"][:MISSING]:
        out.print(f"    {safe(fact)}", soft_wrap=True)
    if digest["unsourced"]:
        out.print("  said by the digest, and found nowhere in what it stands for:")
    for claim in digest["unsourced"][:MISSING]:
        out.print(f"    {safe(claim)}", soft_wrap=True)
