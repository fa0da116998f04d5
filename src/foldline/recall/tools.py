"""The tools with which a model manages its own context: recall, pin, fold, context_left.

    tools = Tools(session)
    client.chat.completions.create(tools=tools.definitions("openai"), ...)
    session.add(tools.answer(call))         # a tool call as the SDK gives it, or as a dict

The answer to an invalid call gives the reason, and says what to do instead.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import Any, Protocol

from foldline.errors import FoldlineError, InputError
from foldline.message import Message, ToolCall, tool
from foldline.plan.gate import Load
from foldline.recall.excerpt import RECALL_TOOL
from foldline.recall.search import LEAST_TOKENS, TOKENS
from foldline.wire.formats import request_format
from foldline.wire.tool_definitions import convert_tools

PINNED_CHARS = 4000
"""Maximum length of a pinned text in characters. To pin a longer text, pin its message by the handle."""


class ToolSession(Protocol):
    """The methods of a session that the tools call. The results of these methods are converted with `str()`."""

    def recall(self, query: str = "", *, handle: str = "", tokens: int = TOKENS, everywhere: bool = False) -> Any:
        """The messages that match a query, or the messages that a handle names."""

    def pin(self, text: str = "", *, handle: str = "") -> Sequence[str]:
        """Pin a text, or the messages that a handle names. Returns the names of the pins."""

    def fold(self) -> Any:
        """Fold now."""

    def load(self) -> Load:
        """The sizes of the request and of the window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextTool:
    """The definition of a tool."""

    name: str
    description: str
    properties: Mapping[str, Mapping[str, Any]]

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the tool's arguments."""
        properties = {name: dict(value) for name, value in self.properties.items()}
        return {"type": "object", "properties": properties, "additionalProperties": False}


RECALL = ContextTool(
    name=RECALL_TOOL,
    description=(
        "Read earlier messages of this conversation, also those that are no longer shown. Search all messages with a "
        "question or keywords (names, paths, ids and error texts work well), or give a handle such as #120-131 to get "
        "those messages word for word. Give either query or handle."
    ),
    properties={
        "query": {"type": "string", "description": "What to look for, in the words that were probably used."},
        "handle": {"type": "string", "description": "Messages by number, for example #120 or #120-131."},
        "everywhere": {"type": "boolean", "description": "Search the user's other conversations too. Default false."},
        "tokens": {
            "type": "integer",
            "minimum": LEAST_TOKENS,
            "maximum": TOKENS,
            "description": f"How long the answer may be. Default {TOKENS}.",
        },
    },
)
PIN = ContextTool(
    name="pin",
    description=(
        "Keep a short text or earlier messages in the context for the rest of this conversation, word for word, even "
        "after a fold. Give either text or handle."
    ),
    properties={
        "text": {"type": "string", "maxLength": PINNED_CHARS, "description": "The text to keep."},
        "handle": {"type": "string", "description": "Messages by number, for example #12."},
    },
)
FOLD = ContextTool(
    name="fold",
    description=(
        "Make room in the context window now: a digest replaces the older part of this conversation, and recall can "
        "still read that part. Use this tool at the end of a task, before a large new task."
    ),
    properties={},
)
CONTEXT_LEFT = ContextTool(
    name="context_left", description="How much of the context window is used, and how much is left.", properties={}
)
TOOLS = (RECALL, PIN, FOLD, CONTEXT_LEFT)
NOTHING_FOLDED = "Nothing was folded: the messages in the context are recent, or too small to make room."


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswer:
    """The result of a call."""

    text: str
    is_error: bool = False

    def __str__(self) -> str:
        return self.text


class Tools:
    """The tools of one session. Returns their definitions, and runs their calls."""

    def __init__(self, session: ToolSession) -> None:
        if not callable(getattr(session, "recall", None)):
            raise InputError(f"Tools takes a Session, not {type(session).__name__}", hint="Tools(session)")
        if iscoroutinefunction(session.recall):
            kind = type(session).__name__
            raise InputError(f"session must be Session, not {kind}", hint="Tools(Session(…)), or AsyncTools(session)")
        self.session = session
        self._runners: dict[str, Callable[[dict[str, Any]], str]] = {
            RECALL.name: self._recall,
            PIN.name: self._pin,
            FOLD.name: lambda _: str(self.session.fold() or NOTHING_FOLDED),
            CONTEXT_LEFT.name: lambda _: describe_load(self.session.load()),
        }

    @staticmethod
    def definitions(format: str) -> list[dict[str, Any]]:
        """The definitions of the tools in a request format: "anthropic", "openai", "openai-responses" or "gemini"."""
        request_format(format)
        functions = [{"name": it.name, "description": it.description, "input_schema": it.schema} for it in TOOLS]
        return convert_tools(functions, format)

    def run_call(self, call: Any) -> ToolAnswer:
        """Run a call, given as a `ToolCall`, a dict of a wire format, or an SDK object."""
        try:
            parsed = parse_call(call)
            return self.run(parsed.name, _parse_arguments(parsed.arguments))
        except FoldlineError as error:
            return ToolAnswer(text=f"error: {error}", is_error=True)

    def run(self, name: str, arguments: Mapping[str, Any], others: Sequence[str] = ()) -> ToolAnswer:
        """Run the tool with this name; the arguments are already parsed.

        `others` are names of other tools that the caller offers; the error for an unknown name lists them, too.
        """
        try:
            chosen = next((tool_ for tool_ in TOOLS if tool_.name == name), None)
            if chosen is None:
                raise InputError(
                    f"unknown tool {name!r:.60}", hint=f"use one of {', '.join([*self._runners, *others])}"
                )
            return ToolAnswer(text=self._runners[name](_check_arguments(chosen, arguments)))
        except FoldlineError as error:
            return ToolAnswer(text=f"error: {error}", is_error=True)

    def answer(self, call: Any) -> Message:
        """The message that answers a call, to be added to the session."""
        result, parsed = self.run_call(call), ToolCall(id="", name="")
        with suppress(InputError):
            parsed = parse_call(call)
        return tool(parsed.id, result.text, name=parsed.name, is_error=result.is_error)

    def _recall(self, arguments: dict[str, Any]) -> str:
        query, handle = _exactly_one(arguments, "query", "handle")
        tokens, everywhere = arguments.get("tokens", TOKENS), arguments.get("everywhere", False)
        return str(self.session.recall(query, handle=handle, tokens=min(tokens, TOKENS), everywhere=everywhere))

    def _pin(self, arguments: dict[str, Any]) -> str:
        text, handle = _exactly_one(arguments, "text", "handle")
        if len(text) > PINNED_CHARS:
            raise InputError(f"{len(text):,} characters are too many to pin", hint=f"pin at most {PINNED_CHARS:,}")
        names = self.session.pin(text, handle=handle)
        return f"Pinned {', '.join(map(str, names))}: it stays in the context after every fold."


def describe_load(load: Load) -> str:
    """A sentence that says how much of the window is used.

    >>> describe_load(Load(request=75_000, history=70_000, count=100, usable=100_000))
    '75,000 of 100,000 tokens are used (75%), 25,000 are left.'
    """
    used, usable = load.request, load.usable
    rest = f"{usable - used:,} are left" if usable >= used else f"{used - usable:,} too many"
    return f"{used:,} of {usable:,} tokens are used ({used / max(1, usable):.0%}), {rest}."


def parse_call(thing: Any) -> ToolCall:
    """Convert a call to a `ToolCall`. The call may be a `ToolCall`, a dict of a wire format, or an SDK object."""
    if isinstance(thing, ToolCall):
        return thing
    value = thing.model_dump() if hasattr(thing, "model_dump") else thing
    if not isinstance(value, Mapping):
        raise InputError(f"not a tool call: {type(thing).__name__}", hint="give a ToolCall, a dict or an SDK's object")
    inner = value.get("function")
    named = inner if isinstance(inner, Mapping) else value
    arguments = next((named[key] for key in ("arguments", "input", "args") if named.get(key) is not None), "{}")
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments)
    call_id = str(value.get("call_id") or value.get("id") or "")
    return ToolCall(id=call_id, name=str(named.get("name") or ""), arguments=arguments)


def _parse_arguments(text: str) -> dict[str, Any]:
    """The arguments of a call; an empty dict if the text is blank."""
    try:
        value = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        raise InputError("the arguments are not valid JSON", hint="send one JSON object") from None
    if not isinstance(value, dict):
        raise InputError("the arguments are not a JSON object", hint='for example {"query": "..."}')
    return value


_TYPES: dict[str, type] = {"string": str, "boolean": bool, "integer": int}


def _check_arguments(tool_: ContextTool, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments without null values. Raises `InputError` if they do not match the schema."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name not in tool_.properties:
            known = ", ".join(tool_.properties) or "none"
            raise InputError(f"{tool_.name} has no argument {name!r:.60}", hint=f"its arguments: {known}")
        if value is None:
            continue
        kind = tool_.properties[name]["type"]
        if not isinstance(value, _TYPES[kind]) or (kind == "integer" and isinstance(value, bool)):
            raise InputError(f"{name} must be of type {kind}, not {json.dumps(value, default=str)[:60]}")
        found[name] = value
    return found


def _exactly_one(given: Mapping[str, Any], one: str, other: str) -> tuple[str, str]:
    """The values of two arguments; raises `InputError` unless exactly one is given."""
    first, second = given.get(one, ""), given.get(other, "")
    if bool(first.strip()) == bool(second.strip()):
        raise InputError(f"give either {one} or {other}", hint="exactly one of them is needed")
    return first if first.strip() else "", second if second.strip() else ""
