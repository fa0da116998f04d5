"""`foldline inspect`: show what fills a transcript, what is broken, and where a policy would fold it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from foldline.cli.shared import options
from foldline.cli.shared.files import read_transcripts
from foldline.cli.shared.inspection import LARGEST, examine
from foldline.cli.shared.output import (
    console,
    line_printer,
    margin_note,
    plural,
    print_json,
    printable,
    shorten,
    table,
    with_option_names,
)
from foldline.cli.shared.settings import Settings
from foldline.measure.estimator import format_tokens
from foldline.plan.gate import HIDDEN
from foldline.plan.timeline import handle

PLACES = 4
"""Maximum number of messages that are listed for the same problem."""
_NAME, _FIGURES = 40, 22
"""Minimum number of characters shown from the end of a long name, and the width of the columns beside the name."""
_LEAST_WORDS, _BEFORE_WORDS = 20, 30
"""Minimum number of characters shown of a large message, and the width of the columns before the message."""
NOT_IN_FILE = "system prompt and tools (not in the file)"
"""Explanation that is printed beside the block `hidden`."""
_BAR = 20
"""The width of the longest bar in characters."""


@click.command()
@click.argument("file", type=click.Path())
@options.format_option
@options.policy_options
@options.output_options("Print one JSON object for each conversation, one per line.")
def inspect(file: str, format: str | None, settings: Settings, as_json: bool) -> None:
    r"""Show what fills a transcript, what it costs, what is broken, and where it would be folded.

    \b
    Example:  foldline inspect session.jsonl
              foldline inspect request.json --model gpt-5.1 --json
    """
    transcripts = read_transcripts(file, format)
    for number, transcript in enumerate(transcripts, start=1):
        report = examine(transcript, settings)
        if as_json:
            print_json({"file": file, **report})
            continue
        if len(transcripts) > 1:
            click.echo(f"{'' if number == 1 else chr(10)}conversation {number} of {len(transcripts)}")
        _print(file, report)


def _print(file: str, report: dict[str, Any]) -> None:
    echo = line_printer()
    _print_head(file, report, echo)
    _print_tables(report, echo)
    echo("\nlargest messages")
    room = max(_LEAST_WORDS, console().width - _BEFORE_WORDS)
    for row in report["largest"]:
        echo(f"  #{row['message']:<6} {row['tokens']:>8,}  {row['role']:<9} {shorten(row['starts'], room)}")
    if report["broken"]:
        echo(f"\nbroken in {plural(len(report['broken']), 'place')}; foldline repairs what is sent, not the file")
    _print_notes(report["broken"], echo)
    if report["adjusted"]:
        echo("\nnot broken, but sent in another form")
    _print_notes(report["adjusted"], echo)
    if report["notes"]:
        echo("\nin the file")
    for row in report["notes"]:
        echo(f"  {'line ' + str(row['line']) + ': ' if row['line'] else ''}{printable(row['text'])}")
    echo(f"\n{_verdict(report)}")
    if note := margin_note(report["fold"].get("reason", "")):
        echo(note)


def _print_head(file: str, report: dict[str, Any], echo: Callable[..., None]) -> None:
    """Print the size of what the model sees, its share of the window, and the cost."""
    shown = format_tokens(report["tokens"], report["exact"])
    echo(f"{file}: {report['format']}, {plural(report['messages'], 'message')}, {report['model'] or 'no model named'}")
    if gone := report["compacted"]:
        live = handle(gone, report["messages"] - 1)
        echo(f"the agent compacted {handle(0, gone - 1)}: the model sees only {live}, and all figures are about these")
    share = f"{report['tokens'] / report['window']:.0%} of the window"
    how = report["source"] if report["reported"] else report["counter"]
    echo(f"the model sees {shown} tokens ({how}): {share}")
    echo(f"window {report['window']:,} (from {report['window_source']}), {report['usable']:,} usable")
    if report["sent"] == "proven":
        echo("the file holds the last request that was sent, and the hashes in the file match this request")
    elif report["sent"]:
        echo("the file holds the last request that was sent, but not all hashes in the file match this request")
    if report["reported"]:
        echo(f"the provider reported {report['reported']:,} tokens for the last request")
    cost = report["cost"]
    if cost["so_far"] is not None:
        echo(f"cost so far ${cost['so_far']:,.2f}, from the reported usage")
    if cost["next_cached"] is not None:
        cached, uncached = cost["next_cached"], cost["next_uncached"]
        echo(f"cost of the next request, without its reply: ${cached:,.4f} if it is cached, else ${uncached:,.4f}")
    echo("")


def _print_tables(report: dict[str, Any], echo: Callable[..., None]) -> None:
    total = max(1, report["tokens"])
    blocks = table("what", "tokens", "share")
    for name, size in report["blocks"].items():
        what, shown = (f"{HIDDEN}: {NOT_IN_FILE}", f"~{size:,}") if name == HIDDEN else (name, f"{size:,}")
        blocks.add_row(what, shown, f"{size / total:.1%}", "█" * round(_BAR * size / total))
    echo(blocks, soft_wrap=False)
    servers: dict[str, int] = {}
    for row in report["by_tool"].values():
        if row["server"]:
            servers[row["server"]] = servers.get(row["server"], 0) + row["tokens"]
    tools = {name: (row["calls"] or row["results"], row["tokens"]) for name, row in report["by_tool"].items()}
    _print_top("tool", ("calls", "tokens"), tools, echo)
    _print_top("MCP server", ("tokens",), {name: (size,) for name, size in servers.items()}, echo)
    _print_top("file", ("tokens",), {name: (size,) for name, size in report["by_file"].items()}, echo)


def _print_top(
    title: str, columns: tuple[str, ...], rows: Mapping[str, tuple[int, ...]], echo: Callable[..., None]
) -> None:
    """Print a table with the largest rows. If there are no rows, print nothing."""
    if not rows:
        return
    shown = table(title, *columns)
    most = max(_NAME, console().width - _FIGURES)
    for name, figures in list(rows.items())[:LARGEST]:
        short = name if len(name) <= most else f"…{name[1 - most :]}"
        shown.add_row(printable(short), *(f"{figure:,}" for figure in figures))
    echo("")
    echo(shown, soft_wrap=False)
    if len(rows) > LARGEST:
        echo(f"and {len(rows) - LARGEST} more; --json lists them all")


def _print_notes(rows: Sequence[Mapping[str, Any]], echo: Callable[..., None]) -> None:
    """Print one line for each kind of problem, with the messages that have the problem."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["code"], []).append(row)
    for found in groups.values():
        numbers = list(dict.fromkeys(row["message"] for row in found))
        more = f" and {len(numbers) - PLACES} more" if len(numbers) > PLACES else ""
        places = ", ".join(f"#{number}" for number in numbers[:PLACES])
        texts = list(dict.fromkeys(row["text"] for row in found))
        others = f" (and {plural(len(texts) - 1, 'similar problem')})" if len(texts) > 1 else ""
        echo(f"  {places}{more}: {printable(texts[0])}{others}")


def _verdict(report: dict[str, Any]) -> str:
    fold = report["fold"]
    if fold.get("refused"):
        return f"policy {report['policy']}: cannot be sent: {with_option_names(fold['refused'])}"
    if fold["folded"]:
        sizes = f"{format_tokens(fold['before'], False)} → {format_tokens(fold['after'], False)}"
        return f"policy {report['policy']}: {fold['folded']} would be folded, {sizes} ({fold['reason']})"
    return f"policy {report['policy']}: fits without a fold"
