"""The report of `foldline inspect`: what the model sees of a transcript, what it costs, and what a policy would do.

If the agent compacted its history, the report is about the messages since the last compaction: the model sees no
others. A log rarely holds the system prompt and the tools. Their size is then the difference between the reported size
of the last request and the counted size of its messages.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Sequence
from typing import Any

from foldline.cli.shared.output import first_words
from foldline.cli.shared.settings import Settings
from foldline.errors import ViewTooLarge
from foldline.measure.message_size import part_tokens, tools_tokens
from foldline.message import Message, Part, Text, Thinking, ToolCall, ToolResult
from foldline.models.table import model as model_of
from foldline.models.table import usage_cost
from foldline.plan.timeline import handle
from foldline.replay import context_segments, without_usage
from foldline.session import Session
from foldline.tool_calls import interpret_call
from foldline.wire import REQUEST_FORMATS, Transcript, parse
from foldline.wire.formats import SentRequest, element_format
from foldline.wire.repair import repair

LARGEST = 5
"""How many of the largest messages are listed."""
PREVIEW = 60
"""How many characters of each message are shown."""
HARMLESS = {
    "thinking-unsigned",
    "results-joined",
    "reply-joined",
    "empty",
    "end",
    "system-moved",
    "field",
    "call-unsigned",
}
"""Codes of repairs that only write the same conversation in another way. A history that needs them is not broken."""
NOT_IN_FILE = "system prompt and tools (not in the file)"
_KINDS = {ToolCall: "tool calls", ToolResult: "tool results", Thinking: "thinking"}
_MILLION = 1_000_000


def examine(transcript: Transcript, settings: Settings) -> dict[str, Any]:
    """The report as JSON."""
    name = settings.model(transcript.model)
    live = context_segments(transcript)[-1]
    earlier = len(transcript.messages) - len(live)
    policy, named = settings.policy, bool(transcript.window and settings.policy.window_tokens is None)
    if named:
        policy = policy.but(window_tokens=transcript.window)
    seen, tools = _as_sent(transcript, live)
    session = Session(model=name, policy=policy, tools=tools)
    counted, definitions = [session.size(message) for message in seen], session.state.tools
    reported = _reported(live)
    hidden = 0 if transcript.sent else _hidden(live, reported, session)
    session = Session(model=name, policy=policy, tools=tools, extra_tokens=hidden)
    session.add(*without_usage(seen))
    spoken = element_format(transcript.format)
    repairs = repair(live, spoken if spoken in REQUEST_FORMATS else session.model.format or "openai").notes
    notes = [{"message": earlier + each.index + 1, "code": each.code, "text": each.words} for each in repairs]
    blocks = _blocks(seen, counted, session) + Tally({"tools": definitions, NOT_IN_FILE: hidden})
    tokens = blocks.total()
    return {
        "format": transcript.format,
        "model": name,
        "model_source": session.model.source,
        "messages": len(transcript.messages),
        "compacted": earlier,
        "tokens": tokens,
        "exact": session.state.setup.counter.exact and not hidden,
        "counter": session.state.setup.counter.name,
        "window": session.window,
        "window_source": "the file" if named else "settings" if policy.window_tokens else session.model.source,
        "usable": session.usable,
        "blocks": {what: size for what, size in blocks.most_common() if size},
        "by_tool": _by_tool(seen, tools, session),
        "by_file": _by_file(seen, session),
        "largest": _largest(live, [session.size(message) for message in live], earlier),
        "broken": [row for row in notes if row["code"] not in HARMLESS],
        "adjusted": [row for row in notes if row["code"] in HARMLESS],
        "notes": [{"line": note.line, "text": note.text} for note in transcript.notes],
        "policy": settings.name,
        "reported": reported[1] if reported else None,
        "sent": _proof(transcript.sent),
        "cost": _cost(transcript.messages, name, tokens),
        "fold": _fold(session, earlier),
    }


def _as_sent(transcript: Transcript, live: tuple[Message, ...]) -> tuple[tuple[Message, ...], Sequence[Any]]:
    """The messages and tools of the newest request: those of the log if it holds them, else those that were read."""
    sent = transcript.sent
    if sent is None:
        return live, transcript.tools
    body = {"messages": list(sent.messages), "model": sent.model or transcript.model}
    found = parse(body | ({"system": sent.system} if sent.system else {}), "anthropic")
    return found.messages, sent.tools


def _proof(sent: SentRequest | None) -> str | None:
    """Whether the log holds the last request: "proven", "unproven", or None."""
    return None if sent is None else "proven" if sent.is_proven else "unproven"


def _reported(live: Sequence[Message]) -> tuple[int, int] | None:
    """The position of the last reply with a usage, and the reported size of its request."""
    for place in reversed(range(len(live))):
        if usage := live[place].meta.usage:
            return place, usage.prompt
    return None


def _hidden(live: Sequence[Message], reported: tuple[int, int] | None, session: Session) -> int:
    """Tokens of the last request that are not in the file: its reported size minus its counted messages."""
    if reported is None:
        return 0
    place, size = reported
    has_system = any(message.role == "system" for message in live)
    counted = sum(session.size(message) for message in live[:place]) + session.state.tools
    return 0 if has_system and session.state.tools else max(0, size - counted)


def _blocks(messages: Iterable[Message], sizes: Iterable[int], session: Session) -> Tally[str]:
    blocks: Tally[str] = Tally()
    for message, size in zip(messages, sizes, strict=True):
        parts = [_tokens(part, session) for part in message.parts]
        for part, tokens in zip(message.parts, parts, strict=True):
            blocks[_kind(message, part)] += tokens
        blocks["framing"] += size - sum(parts)
    return blocks


def _tokens(part: Part, session: Session) -> int:
    return part_tokens(part, session.state.setup.counter, session.state.setup.framing)


def _kind(message: Message, part: Part) -> str:
    if isinstance(part, Text):
        return "system prompt" if message.role == "system" else message.kind.replace("_", " ") or message.role
    return _KINDS.get(type(part), "media and other")


def _by_tool(messages: Iterable[Message], tools: Sequence[Any], session: Session) -> dict[str, dict[str, Any]]:
    """Calls, MCP server and tokens (definition, calls and results) of each tool."""
    names: dict[str, str] = {}
    found: dict[str, dict[str, Any]] = {}

    def row(name: str) -> dict[str, Any]:
        return found.setdefault(name, {"calls": 0, "results": 0, "definition": 0, "tokens": 0, "server": _server(name)})

    for tool in tools:
        size = tools_tokens([tool], session.state.setup.counter, session.state.setup.framing)
        for column in ("definition", "tokens"):
            row(_tool_name(tool))[column] += size
    for message in messages:
        for call in message.calls:
            names[call.id] = call.name
            row(call.name)["calls"] += 1
            row(call.name)["tokens"] += _tokens(call, session)
        for result in message.results:
            each = row(result.name or names.get(result.call_id, "?"))
            each["results"] += 1
            each["tokens"] += _tokens(result, session)
    return dict(sorted(found.items(), key=lambda item: -item[1]["tokens"]))


def _tool_name(tool: Any) -> str:
    inner = tool.get("function") if isinstance(tool, dict) else None
    name = (inner if isinstance(inner, dict) else tool if isinstance(tool, dict) else {}).get("name")
    return name if isinstance(name, str) else "?"


def _server(name: str) -> str:
    """The MCP server of a tool; "" for other tools.

    >>> _server("mcp__github__create_issue"), _server("Read")
    ('github', '')
    """
    start, _, rest = name.partition("mcp__")
    return rest.partition("__")[0] if rest and not start else ""


def _by_file(messages: Iterable[Message], session: Session) -> dict[str, int]:
    """Tokens of the calls that read or change each file, with their results."""
    paths: dict[str, str] = {}
    found: Tally[str] = Tally()
    for message in messages:
        for call in message.calls:
            if path := interpret_call(call, "").path:
                paths[call.id] = path
                found[path] += _tokens(call, session)
        for result in message.results:
            if path := paths.get(result.call_id, ""):
                found[path] += _tokens(result, session)
    return dict(found.most_common())


def _largest(messages: Sequence[Message], sizes: Sequence[int], earlier: int) -> list[dict[str, Any]]:
    order = sorted(range(len(messages)), key=lambda index: -sizes[index])[:LARGEST]
    return [
        {
            "message": earlier + index + 1,
            "role": messages[index].role,
            "tokens": sizes[index],
            "starts": first_words(messages[index], PREVIEW),
        }
        for index in order
    ]


def _cost(messages: Iterable[Message], model: str, tokens: int) -> dict[str, float | None]:
    """Costs in US dollars: of the reported usage so far, of the next request if it is cached, and if it is not."""
    spent, is_known = 0.0, False
    for message in messages:
        prices = model_of(message.meta.model or model).prices
        if message.meta.usage and prices:
            spent, is_known = spent + usage_cost(message.meta.usage, prices), True
    now = model_of(model).prices
    return {
        "so_far": round(spent, 4) if is_known else None,
        "next_cached": round(tokens * now.read / _MILLION, 4) if now else None,
        "next_uncached": round(tokens * now.input / _MILLION, 4) if now else None,
    }


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
