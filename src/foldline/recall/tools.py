"""What a model may do about its own context, as tools: recall, pin, fold, and ask how much room is left.

    tools = Tools(session)
    client.chat.completions.create(tools=tools.definitions("openai"), ...)
    session.add(tools.answer(call))         # a tool call as the SDK gives it, or as a dict

Whatever a model writes into a call is data: it is checked, and a call that cannot be carried out is answered with the
reason and what to do instead. A call that folds is answered like any other, and the newest step is never folded, so the
call and its answer stay together.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from foldline.errors import ConfigError, FoldlineError, InputError
from foldline.message import Message, ToolCall, tool
from foldline.plan.gate import Load
from foldline.recall.search import LEAST_TOKENS, TOKENS

PINNED_CHARS = 4000
"""A longer text is no note but a message: it is pinned by its handle."""


class ToolSession(Protocol):
    """What the tools need of a session. Every answer is read as text."""

    def recall(self, query: str = "", *, handle: str = "", tokens: int = TOKENS, everywhere: bool = False) -> Any:
        """What was said about it, or by its handle."""
        ...

    def pin(self, text: str = "", *, handle: str = "") -> Any:
        """Keep a text, or messages, in every view from now on."""
        ...

    def fold(self) -> Any:
        """Make room now."""
        ...

    def load(self) -> Load:
        """How full the window is."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool as a model sees it."""

    name: str
    description: str
    properties: Mapping[str, Mapping[str, Any]]

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its arguments."""
        properties = {name: dict(value) for name, value in self.properties.items()}
        return {"type": "object", "properties": properties, "additionalProperties": False}


RECALL = Tool(
    name="recall",
    description=(
        "Read back what was said earlier in this conversation and is no longer shown: search everything that was ever "
        "said with a question or keywords (names, paths, ids and error texts work well), or give a handle such as "
        "#120-131 to get those messages word for word. Give either query or handle."
    ),
    properties={
        "query": {"type": "string", "description": "What to look for, in the words it was probably said in."},
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
PIN = Tool(
    name="pin",
    description=(
        "Keep something in sight for the rest of this conversation, word for word, whatever else is folded away: a "
        "short text, or earlier messages by handle. Give either text or handle."
    ),
    properties={
        "text": {"type": "string", "maxLength": PINNED_CHARS, "description": "What must not be forgotten."},
        "handle": {"type": "string", "description": "Messages by number, for example #12."},
    },
)
FOLD = Tool(
    name="fold",
    description=(
        "Make room in the context window now: the older part of this conversation is replaced by a digest and stays "
        "within reach of recall. Use it at the end of a piece of work, before a large new one."
    ),
    properties={},
)
CONTEXT_LEFT = Tool(
    name="context_left", description="How much of the context window is used, and how much is left.", properties={}
)
TOOLS = (RECALL, PIN, FOLD, CONTEXT_LEFT)
NOTHING_FOLDED = "Nothing was folded: what is in sight is recent, or too little to make room."


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswer:
    """What a call is answered with."""

    text: str
    is_error: bool = False

    def __str__(self) -> str:
        return self.text


class Tools:
    """The tools of one session."""

    def __init__(self, session: ToolSession) -> None:
        self.session = session
        self._acts: dict[str, Callable[[dict[str, Any]], str]] = {
            RECALL.name: self._recall,
            PIN.name: self._pin,
            FOLD.name: lambda _: str(self.session.fold() or NOTHING_FOLDED),
            CONTEXT_LEFT.name: lambda _: left(self.session.load()),
        }

    @staticmethod
    def definitions(provider: str) -> list[dict[str, Any]]:
        """The tools as a provider wants them."""
        return definitions(provider)

    def handle(self, call: Any) -> ToolAnswer:
        """Carry out a call: a `ToolCall`, a provider's dict, or an SDK's object."""
        try:
            made = call_of(call)
            return self.carry_out(made.name, _arguments(made.arguments))
        except FoldlineError as error:
            return ToolAnswer(text=f"error: {error}", is_error=True)

    def carry_out(self, name: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Carry out a call whose arguments were read already."""
        try:
            chosen = next((tool_ for tool_ in TOOLS if tool_.name == name), None)
            if chosen is None:
                raise InputError(f"no tool {name!r:.60}", hint=f"there are {', '.join(self._acts)}")
            return ToolAnswer(text=self._acts[name](_checked(chosen, arguments)))
        except FoldlineError as error:
            return ToolAnswer(text=f"error: {error}", is_error=True)

    def answer(self, call: Any) -> Message:
        """The message that answers a call, to be added to the session."""
        given = self.handle(call)
        try:
            made = call_of(call)
        except InputError:
            made = ToolCall(id="", name="")
        return tool(made.id, given.text, name=made.name, is_error=given.is_error)

    def _recall(self, given: dict[str, Any]) -> str:
        query, handle = _either(given, "query", "handle")
        tokens, everywhere = given.get("tokens", TOKENS), given.get("everywhere", False)
        return str(self.session.recall(query, handle=handle, tokens=min(tokens, TOKENS), everywhere=everywhere))

    def _pin(self, given: dict[str, Any]) -> str:
        text, handle = _either(given, "text", "handle")
        if len(text) > PINNED_CHARS:
            raise InputError(f"{len(text):,} characters are too many to pin", hint=f"at most {PINNED_CHARS:,}")
        return str(self.session.pin(text, handle=handle))


def left(load: Load) -> str:
    """How full the window is, in words.

    >>> left(Load(request=75_000, history=70_000, count=100, usable=100_000))
    '75,000 of 100,000 tokens are used (75%), 25,000 are left.'
    """
    used, usable = load.request, max(1, load.usable)
    room = load.usable - used
    rest = f"{room:,} are left" if room >= 0 else f"{-room:,} too many"
    return f"{used:,} of {load.usable:,} tokens are used ({used / usable:.0%}), {rest}."


def definitions(provider: str) -> list[dict[str, Any]]:
    """The tools as a provider wants them: "openai" (chat), "openai-responses", "anthropic"."""
    match provider:
        case "openai":
            return [{"type": "function", "function": _function(tool_)} for tool_ in TOOLS]
        case "openai-responses":
            return [{"type": "function"} | _function(tool_) for tool_ in TOOLS]
        case "anthropic":
            return [
                {"name": tool_.name, "description": tool_.description, "input_schema": tool_.schema} for tool_ in TOOLS
            ]
        case _:
            raise ConfigError(f"no tools for {provider!r}", hint="use openai, openai-responses or anthropic")


def _function(tool_: Tool) -> dict[str, Any]:
    return {"name": tool_.name, "description": tool_.description, "parameters": tool_.schema}


def call_of(thing: Any) -> ToolCall:
    """A call in whatever form an SDK or a provider gives it."""
    if isinstance(thing, ToolCall):
        return thing
    value = thing.model_dump() if hasattr(thing, "model_dump") else thing
    if not isinstance(value, Mapping):
        raise InputError(f"not a tool call: {type(thing).__name__}", hint="give a ToolCall, a dict or an SDK's object")
    inner = value.get("function")
    named = inner if isinstance(inner, Mapping) else value
    arguments = named.get("arguments", named.get("input", "{}"))
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments)
    return ToolCall(
        id=str(value.get("call_id") or value.get("id") or ""), name=str(named.get("name") or ""), arguments=arguments
    )


def _arguments(text: str) -> dict[str, Any]:
    """The arguments of a call; none is the same as an empty object."""
    try:
        value = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        raise InputError("the arguments are no JSON", hint="send one JSON object") from None
    if not isinstance(value, dict):
        raise InputError("the arguments are no JSON object", hint='for example {"query": "..."}')
    return value


_TYPES: dict[str, type] = {"string": str, "boolean": bool, "integer": int}


def _checked(tool_: Tool, given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments that are what the schema says; null is the same as nothing."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name not in tool_.properties:
            known = ", ".join(tool_.properties) or "none"
            raise InputError(f"{tool_.name} has no argument {name!r:.60}", hint=f"there are: {known}")
        if value is None:
            continue
        kind = tool_.properties[name]["type"]
        if not isinstance(value, _TYPES[kind]) or (kind == "integer" and isinstance(value, bool)):
            raise InputError(f"{name} must be a {kind}", hint=f"not {json.dumps(value, default=str)[:60]}")
        found[name] = value
    return found


def _either(given: Mapping[str, Any], one: str, other: str) -> tuple[str, str]:
    """Two arguments of which exactly one must be given."""
    first, second = given.get(one, ""), given.get(other, "")
    if bool(first.strip()) == bool(second.strip()):
        raise InputError(f"give {one} or {other}", hint="exactly one of them")
    return first if first.strip() else "", second if second.strip() else ""
