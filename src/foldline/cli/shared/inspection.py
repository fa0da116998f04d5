"""The report of `foldline inspect`: what the model sees of a transcript, the cost, and what a policy would do.

If the agent compacted its history, the report is about the messages since the last compaction, because the model sees
no other messages. The total size comes from the usage of the last reply, as in a session that `foldline import` makes.
The sizes of the parts are estimates, scaled so that they add up to the total size.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from foldline.cli.shared.output import first_words
from foldline.cli.shared.settings import Settings
from foldline.cli.shared.transcript_import import transcript_session
from foldline.errors import ViewTooLarge
from foldline.fold import Fold
from foldline.measure.message_size import part_tokens, tools_tokens
from foldline.message import Message, Part, Text, Thinking, ToolCall, ToolResult
from foldline.models.table import model as model_of
from foldline.models.table import usage_cost
from foldline.plan.gate import HIDDEN, scale_blocks
from foldline.plan.timeline import left_handles
from foldline.session import Session
from foldline.session.transcript_session import compacted_messages, names_window, request_messages, request_tools
from foldline.tool_calls import interpret_call
from foldline.wire import REQUEST_FORMATS, Transcript
from foldline.wire.formats import SentRequest, element_format
from foldline.wire.repair import repair
from foldline.wire.tool_definitions import single_tools, tool_names

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
"""Codes of repairs that write the same conversation in another way. They do not mean that the history is broken."""
_KINDS = {ToolCall: "tool calls", ToolResult: "tool results", Thinking: "thinking"}
_MILLION = 1_000_000


def examine(transcript: Transcript, settings: Settings) -> dict[str, Any]:
    """The report of `foldline inspect` as JSON."""
    name = settings.model(transcript.model)
    earlier = compacted_messages(transcript)
    live, seen, tools = transcript.messages[earlier:], request_messages(transcript), request_tools(transcript)
    session = transcript_session(transcript, settings)
    load, view = session.load(), session.state.view()
    estimated = _blocks(seen, session) + Tally({"tools": session.state.setup.tools})
    blocks = scale_blocks(estimated, load.request, hidden=0 if transcript.sent else load.blocks.get(HIDDEN, 0))
    shrink = (load.request - blocks.get(HIDDEN, 0)) / max(1, estimated.total())
    spoken = element_format(transcript.format)
    repairs = repair(live, spoken if spoken in REQUEST_FORMATS else session.model.format or "openai").notes
    notes = [{"message": earlier + each.index + 1, "code": each.code, "text": each.words} for each in repairs]
    named = names_window(transcript, settings.policy, name)
    return {
        "format": transcript.format,
        "model": name,
        "model_source": session.model.source,
        "messages": len(transcript.messages),
        "compacted": earlier,
        "tokens": load.request,
        "exact": view.exact,
        "source": view.source,
        "counter": session.state.setup.counter.name,
        "window": session.window,
        "window_source": "the file" if named else "settings" if settings.policy.window_tokens else session.model.source,
        "usable": session.usable,
        "blocks": {what: size for what, size in Tally(blocks).most_common() if size},
        "by_tool": _by_tool(seen, tools, session, shrink),
        "by_file": _by_file(seen, session, shrink),
        "largest": _largest(live, [session.size(message) for message in live], earlier),
        "broken": [row for row in notes if row["code"] not in HARMLESS],
        "adjusted": [row for row in notes if row["code"] in HARMLESS],
        "notes": [{"line": note.line, "text": note.text} for note in transcript.notes],
        "policy": settings.name,
        "reported": next((one.meta.usage.prompt for one in reversed(live) if one.meta.usage), None),
        "sent": _proof(transcript.sent),
        "cost": _cost(transcript.messages, name, load.request),
        "fold": _fold(session, earlier, load.request),
    }


def _proof(sent: SentRequest | None) -> str | None:
    """The text "proven" if each value of a logged request has the hash that the log names for it; otherwise "unproven".

    None if the log has no request.
    """
    return None if sent is None else "proven" if sent.is_proven else "unproven"


def _blocks(messages: Iterable[Message], session: Session) -> Tally[str]:
    """Estimated tokens of each kind of part."""
    blocks: Tally[str] = Tally()
    for message in messages:
        parts = [_tokens(part, session) for part in message.parts]
        for part, tokens in zip(message.parts, parts, strict=True):
            blocks[_kind(message, part)] += tokens
        blocks["framing"] += session.size(message) - sum(parts)
    return blocks


def _tokens(part: Part, session: Session) -> int:
    return part_tokens(part, session.state.setup.counter, session.state.setup.framing)


def _kind(message: Message, part: Part) -> str:
    if isinstance(part, Text):
        return "system prompt" if message.role == "system" else message.kind.replace("_", " ") or message.role
    return _KINDS.get(type(part), "media and other")


def _by_tool(
    messages: Iterable[Message], tools: Sequence[Any], session: Session, scale: float
) -> dict[str, dict[str, Any]]:
    """For each tool: the number of calls, the MCP server, and the tokens of the definition, calls and results.

    The tokens are estimates, multiplied by `scale`.
    """
    names: dict[str, str] = {}
    found: dict[str, dict[str, Any]] = {}

    def row(name: str) -> dict[str, Any]:
        return found.setdefault(name, {"calls": 0, "results": 0, "definition": 0, "tokens": 0, "server": _server(name)})

    for tool in single_tools(tools):
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
    for each in found.values():
        each |= {column: round(scale * each[column]) for column in ("definition", "tokens")}
    return dict(sorted(found.items(), key=lambda item: -item[1]["tokens"]))


def _tool_name(tool: Mapping[str, Any]) -> str:
    """The name of a tool. A tool without a name is called by its type, or by its first field (Gemini).

    >>> _tool_name({"functionDeclarations": [{"name": "grep"}]}), _tool_name({"googleSearch": {}})
    ('grep', 'googleSearch')
    """
    names = [*tool_names(tool), tool.get("type"), *tool]
    return next((name for name in names if isinstance(name, str)), "?")


def _server(name: str) -> str:
    """The MCP server of a tool; "" if the tool has none.

    >>> _server("mcp__github__create_issue"), _server("Read")
    ('github', '')
    """
    start, _, rest = name.partition("mcp__")
    return rest.partition("__")[0] if rest and not start else ""


def _by_file(messages: Iterable[Message], session: Session, scale: float) -> dict[str, int]:
    """For each file, the tokens of the calls that read or change the file, including the results of these calls.

    The tokens are estimates, multiplied by `scale`.
    """
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
    return {path: round(scale * tokens) for path, tokens in found.most_common()}


def _largest(messages: Sequence[Message], sizes: Sequence[int], earlier: int) -> list[dict[str, Any]]:
    order = sorted(range(len(messages)), key=lambda index: -sizes[index])[:LARGEST]
    return [
        {
            "message": earlier + index + 1,
            "role": messages[index].shown_role,
            "tokens": sizes[index],
            "starts": first_words(messages[index], PREVIEW),
        }
        for index in order
    ]


def _cost(messages: Iterable[Message], model: str, tokens: int) -> dict[str, float | None]:
    """The cost of the reported usage so far, and the cost of the next request with and without the cache.

    All costs are in US dollars.
    """
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


def _fold(session: Session, earlier: int, before: int) -> dict[str, Any]:
    """Where the policy would fold. `earlier` is the number of messages that the agent had compacted."""
    try:
        view = session.view()
    except ViewTooLarge as refusal:
        return {"need": "HARD", "refused": str(refusal), "before": before}
    fold = session.timeline.fold
    made = fold if fold is not None and fold.made_at > earlier else None
    return {
        "need": view.need.name,
        "before": before,
        "after": view.tokens,
        "folded": left_handles(made, Fold(cut=earlier)),
        "reason": made.reason if made else view.verdict.reason,
    }
