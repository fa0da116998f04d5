"""`foldline inspect`: show what fills a transcript, what is broken, and where a policy would fold it."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable
from typing import Any

import click

from foldline.cli.shared import options
from foldline.cli.shared.output import first_words, line_printer, print_json, printable, table
from foldline.cli.shared.settings import Settings
from foldline.errors import ViewTooLarge
from foldline.measure.estimator import format_tokens
from foldline.measure.message_size import part_tokens
from foldline.message import Message, Part, Text, Thinking, ToolCall, ToolResult
from foldline.plan.timeline import handle
from foldline.replay import context_segments, without_usage
from foldline.session import Session
from foldline.wire import REQUEST_FORMATS, Transcript, read_all
from foldline.wire.formats import element_format
from foldline.wire.repair import repair

LARGEST = 5
"""How many of the largest messages are listed."""
PREVIEW = 60
"""How many characters of each message are shown."""
PLACES = 4
"""How many positions of the same problem are listed."""
_KINDS = {ToolCall: "tool calls", ToolResult: "tool results", Thinking: "thinking"}


@click.command()
@click.argument("file", type=click.Path())
@options.format_option
@options.policy_options
@options.output_options("Print one JSON object for each conversation, one per line.")
def inspect(file: str, format: str | None, settings: Settings, as_json: bool) -> None:
    r"""Show what fills a transcript, what is broken, and where it would be folded.

    \b
    Example:  foldline inspect session.jsonl
              foldline inspect request.json --model gpt-5.1 --json
    """
    for transcript in read_all(file, format):
        report = examine(transcript, settings)
        if as_json:
            print_json({"file": file, **report})
        else:
            _print(file, report)


def examine(transcript: Transcript, settings: Settings) -> dict[str, Any]:
    """The report as JSON."""
    name = settings.model(transcript.model)
    session = Session(model=name, policy=settings.policy, tools=transcript.tools)
    seen = context_segments(transcript)[-1]
    session.add(*without_usage(seen))
    sizes = [session.size(message) for message in transcript.messages]
    spoken = element_format(transcript.format)
    provider = spoken if spoken in REQUEST_FORMATS else session.model.format or "openai"
    mended = repair(transcript.messages, provider)
    return {
        "format": transcript.format,
        "model": name,
        "model_source": session.model.source,
        "messages": len(transcript.messages),
        "tokens": sum(sizes) + session.state.tools,
        "exact": session.state.setup.counter.exact,
        "counter": session.state.setup.counter.name,
        "window": session.window,
        "usable": session.usable,
        "blocks": _blocks(transcript.messages, sizes, session),
        "results_by_tool": _by_tool(transcript.messages, session),
        "largest": _largest(transcript.messages, sizes),
        "broken": [{"message": note.index + 1, "code": note.code, "text": note.words} for note in mended.notes],
        "notes": [{"line": note.line, "text": note.text} for note in transcript.notes],
        "policy": settings.name,
        "reported": next((message.meta.usage.prompt for message in reversed(seen) if message.meta.usage), None),
        "fold": _fold(session, len(transcript.messages) - len(seen)),
    }


def _blocks(messages: Iterable[Message], sizes: Iterable[int], session: Session) -> dict[str, int]:
    blocks: Tally[str] = Tally({"tools": session.state.tools})
    for message, size in zip(messages, sizes, strict=True):
        parts = [part_tokens(part, session.state.setup.counter, session.state.setup.framing) for part in message.parts]
        for part, tokens in zip(message.parts, parts, strict=True):
            blocks[_kind(message, part)] += tokens
        blocks["framing"] += size - sum(parts)
    return {name: size for name, size in blocks.most_common() if size}


def _kind(message: Message, part: Part) -> str:
    if isinstance(part, Text):
        return message.kind.replace("_", " ") or message.role
    return _KINDS.get(type(part), "media and other")


def _by_tool(messages: Iterable[Message], session: Session) -> dict[str, dict[str, int]]:
    """Number and tokens of results by tool."""
    names: dict[str, str] = {}
    found: dict[str, dict[str, int]] = {}
    for message in messages:
        names |= {call.id: call.name for call in message.calls}
        for result in message.results:
            row = found.setdefault(result.name or names.get(result.call_id, "?"), {"results": 0, "tokens": 0})
            row["results"] += 1
            row["tokens"] += part_tokens(result, session.state.setup.counter, session.state.setup.framing)
    return dict(sorted(found.items(), key=lambda item: -item[1]["tokens"]))


def _largest(messages: tuple[Message, ...], sizes: list[int]) -> list[dict[str, Any]]:
    order = sorted(range(len(messages)), key=lambda index: -sizes[index])[:LARGEST]
    return [
        {
            "message": index + 1,
            "role": messages[index].role,
            "tokens": sizes[index],
            "starts": first_words(messages[index], PREVIEW),
        }
        for index in order
    ]


def _fold(session: Session, earlier: int) -> dict[str, Any]:
    """Where the policy would fold. `earlier` is the number of messages that the agent compacted itself."""
    before = session.load().request
    try:
        view = session.view()
    except ViewTooLarge as refusal:
        return {"need": "HARD", "refused": str(refusal), "before": before}
    return {
        "need": view.need.name,
        "before": before,
        "after": view.tokens,
        "folded": handle(earlier, earlier + view.cut - 1) if session.timeline.fold else "",
        "reason": session.timeline.fold.reason if session.timeline.fold else view.verdict.reason,
    }


def _print(file: str, report: dict[str, Any]) -> None:
    echo = line_printer()
    exact, total = report["exact"], max(1, report["tokens"])
    shown = format_tokens(report["tokens"], exact)
    echo(f"{file}: {report['format']}, {report['messages']} messages, {shown} tokens ({report['counter']})")
    echo(f"window {report['window']:,} ({report['model_source']}), {report['usable']:,} usable")
    if report["reported"]:
        reported = f"reported size of the last request: {report['reported']:,} tokens"
        echo(f"{reported} (with the system prompt and tools, which the file may not hold)")
    echo("")
    blocks = table("what", "tokens", "share")
    for name, size in report["blocks"].items():
        blocks.add_row(name, f"{size:,}", f"{size / total:.1%}", "█" * round(30 * size / total))
    echo(blocks, soft_wrap=False)
    if report["results_by_tool"]:
        tools = table("tool", "results", "tokens")
        for name, row in list(report["results_by_tool"].items())[:LARGEST]:
            tools.add_row(printable(name), f"{row['results']:,}", f"{row['tokens']:,}")
        echo("")
        echo(tools, soft_wrap=False)
    echo("\nlargest messages")
    for row in report["largest"]:
        echo(f"  #{row['message']:<6} {row['tokens']:>8,}  {row['role']:<9} {row['starts']}")
    if report["broken"]:
        echo(
            f"\nbroken in {len(report['broken'])} places; foldline repairs what is sent and leaves the file unchanged",
            soft_wrap=False,
        )
    groups: dict[str, list[int]] = {}
    for row in report["broken"]:
        groups.setdefault(row["text"], []).append(row["message"])
    for words, numbers in groups.items():
        more = f" and {len(numbers) - PLACES} more" if len(numbers) > PLACES else ""
        places = ", ".join(f"#{number}" for number in numbers[:PLACES])
        echo(f"  {places}{more}: {printable(words)}")
    for row in report["notes"]:
        echo(f"  line {row['line']}: {printable(row['text'])}")
    echo(f"\n{_verdict(report)}")


def _verdict(report: dict[str, Any]) -> str:
    fold = report["fold"]
    if fold.get("refused"):
        return f"policy {report['policy']}: cannot be sent: {fold['refused']}"
    if fold["folded"]:
        sizes = f"{format_tokens(fold['before'], False)} → {format_tokens(fold['after'], False)}"
        return f"policy {report['policy']}: {fold['folded']} would be folded, {sizes} ({fold['reason']})"
    return f"policy {report['policy']}: fits without a fold"
