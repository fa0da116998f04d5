"""Renders messages as the elements of a request.

Missing call ids are added. Unchanged messages keep their original text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from foldline.errors import check_type
from foldline.message import Message, Opaque, Part, ToolCall, ToolResult
from foldline.wire.formats import Format, LossCollector, Lost, element_format, request_format


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """Messages in a request format: the request fields that hold them, and the content that was lost."""

    format: str
    body: dict[str, Any]
    lost: tuple[Lost, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Other request fields that this request needs. Merge them with your own fields."""
    betas: tuple[str, ...] = ()
    """The values for the provider's beta header that the fields in `parameters` and some blocks need."""


def render(messages: Iterable[Message], format: str) -> Rendered:
    """The messages in a request format. Unchanged messages of that format are rendered as their original values."""
    target = request_format(format)
    loss = LossCollector()
    check_type(messages, Iterable, "messages", hint="pass a list of Message values")
    sequence = tuple(messages)
    for message in sequence:
        check_type(message, Message, "an element", hint="render takes Message values: render(parse(dicts).messages, …)")
    system = leading_system(sequence, target)
    body: dict[str, Any] = {}
    prompt = target.render_system(system, loss) if system and target.render_system else None
    if prompt is not None:
        body[target.system_key] = prompt
    body[target.list_key] = [element for element, _ in elements(sequence, target, loss, start=len(system))]
    return Rendered(format=format, body=body, lost=tuple(loss.items), betas=tuple(loss.betas))


def elements(
    messages: Sequence[Message], target: Format, loss: LossCollector, *, start: int = 0
) -> list[tuple[Any, str | None]]:
    """The list elements for the messages, starting at index `start`.

    Each element is paired with its original text if its message is unchanged, and with None otherwise.
    """
    messages = with_ids(messages, target)
    rendered: list[tuple[Any, str | None]] = []
    is_new = False
    for index in range(start, len(messages)):
        message = messages[index]
        loss.message = index
        for part in message.parts:
            if isinstance(part, ToolCall):
                loss.names[part.id] = part.name
                loss.kinds[part.id] = part.kind
            elif type(part) is Opaque and target.beta_of is not None and (beta := target.beta_of(part)):
                loss.betas[beta] = None
        exact = is_exact(message, target.element_format)
        raw = message.wire.raw if exact and message.wire and message.wire.format == target.name else None
        for element in target.render(message, loss):
            joined = target.join(rendered[-1][0], element) if target.join and is_new and not exact else None
            if joined is None:
                rendered.append((element, raw))
            else:
                rendered[-1] = (joined, None)
            is_new = not exact
    return rendered


def with_joined_turns(rendered: list[tuple[Any, str | None]], target: Format) -> list[tuple[Any, str | None]]:
    """The elements. If the provider demands that roles alternate, all elements of one turn are merged.

    A merged element has no original text.
    """
    if target.join_turns is None:
        return rendered
    texts = {id(element): raw for element, raw in rendered}
    return [(element, texts.get(id(element))) for element in target.join_turns([element for element, _ in rendered])]


def with_ids(messages: Sequence[Message], target: Format) -> Sequence[Message]:
    """The messages. If the target format needs ids, calls and results without an id get one.

    An id is derived from the call and the number of equal calls before it, so a history always gets the same ids.
    """
    if not target.has_call_ids or not any(_lacks_id(message) for message in messages):
        return messages
    unanswered: list[ToolCall] = []
    counts: dict[str, int] = {}
    return [
        replace(message, parts=tuple([_with_id(part, unanswered, counts) for part in message.parts]))
        if _lacks_id(message) and not (message.wire and element_format(message.wire.format) == target.element_format)
        else message
        for message in messages
    ]


def _lacks_id(message: Message) -> bool:
    return any(
        (isinstance(part, ToolCall) and not part.id) or (isinstance(part, ToolResult) and not part.call_id)
        for part in message.parts
    )


def _with_id(part: Part, unanswered: list[ToolCall], counts: dict[str, int]) -> Part:
    """The part with an id. A call gets a new id; a result gets the id of the first unanswered call with its name."""
    if isinstance(part, ToolCall) and not part.id:
        content = f"{part.name}\0{part.arguments}".encode("utf-8", "surrogatepass")
        base = "call_" + hashlib.sha256(content).hexdigest()[:16]
        count = counts[base] = counts.get(base, 0) + 1
        call = replace(part, id=base if count == 1 else f"{base}_{count}")
        unanswered.append(call)
        return call
    if isinstance(part, ToolResult) and not part.call_id:
        for place, call in enumerate(unanswered):
            if part.name in ("", call.name):
                del unanswered[place]
                return replace(part, call_id=call.id)
    return part


def is_exact(message: Message, elements_of: str) -> bool:
    """True if the message is unchanged and its wire value is an element of this format."""
    wire = message.wire
    return wire is not None and wire.exact and element_format(wire.format) == elements_of


def leading_system(messages: Sequence[Message], target: Format) -> tuple[Message, ...]:
    """The system messages at the start of `messages` that are written into the request's system field.

    Newer Anthropic models allow system messages in the message list. If a system message was read from such a list and
    the target has the same format, this message and all messages after it stay in the list.
    """
    count = 0
    while target.render_system and count < len(messages) and messages[count].role == "system":
        wire = messages[count].wire
        if wire is not None and element_format(wire.format) == target.element_format and _is_element(wire.value):
            break
        count += 1
    return tuple(messages[:count])


def _is_element(value: Any) -> bool:
    """True if the wire form of a system message is an element of the message list.

    Such an element has the fields `role` and `content` (in Codex, inside `payload`). A system prompt outside of the
    list lacks one of them.
    """
    inner = value.get("payload", value) if isinstance(value, Mapping) else None
    return isinstance(inner, Mapping) and "role" in inner and "content" in inner
