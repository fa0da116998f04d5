"""A request body that can be rendered with different messages. As few bytes as possible are changed.

Prompt caches and signatures depend on the bytes of kept messages. So kept messages are copied from the original text,
and only new or edited messages are written. The text around the message list (unknown fields, duplicate keys, spacing,
long numbers) stays unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from foldline.errors import FormatUnknown, WireError
from foldline.json_text import Scan, Slice, decode, dumps, encode, scan
from foldline.message import Message, user
from foldline.wire.detect import candidates, detect, list_keys
from foldline.wire.field_access import key_in, string_at
from foldline.wire.formats import FORMATS, Format, LossCollector, Transcript, request_format
from foldline.wire.rendering import elements, leading_system, with_joined_turns


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A provider request: its messages (a top-level system text is the first message), tools and model.

    `body` holds all fields of the request.
    """

    format: str
    messages: tuple[Message, ...]
    tools: tuple[Any, ...] = ()
    model: str = ""
    body: Mapping[str, Any] = field(repr=False)
    places: Scan | None = field(default=None, repr=False, compare=False)
    """The positions of fields and messages in the text, if the body came as text."""

    @classmethod
    def parse(cls, data: bytes | str | Mapping[str, Any], format: str | None = None) -> Request:
        """Read a request body; without `format`, its format is detected."""
        places = None
        if isinstance(data, Mapping):
            body: Mapping[str, Any] = data
        elif isinstance(data, (str, bytes, bytearray, memoryview)):
            places = scan(data if isinstance(data, str) else decode(data), *list_keys())
            body = {key: found.value for key, found in places.fields.items()}
        else:
            raise WireError(f"a request body must be bytes, text or a mapping, not {type(data).__name__}")
        if format is None:
            found = detect(body)
            if found is None or found.shape != "body":
                raise unknown_format(body, "request body")
            format = found.format
        target = request_format(format)
        tools = body.get("tools") or body.get("functions")
        return cls(
            format=format,
            messages=(*_system(body, target), *_messages(body, places, target)),
            tools=tuple(tools) if isinstance(tools, list) else (),
            model=string_at(body, "model"),
            body=body,
            places=places,
        )

    def transcript(self) -> Transcript:
        """The conversation in this request."""
        return Transcript(format=self.format, messages=self.messages, tools=self.tools, model=self.model)

    def render(
        self, messages: Iterable[Message], loss: LossCollector | None = None, *, join_turns: bool = False
    ) -> bytes | dict[str, Any]:
        """The body with these messages: bytes if it was read from text, otherwise a dict with the same key order.

        `loss` collects the content that is lost in newly written messages. With `join_turns`, consecutive messages of
        one role become one element, if the provider demands that roles alternate.
        """
        sequence = tuple(messages)
        if len(sequence) == len(self.messages) and all(map(_is_unchanged, sequence, self.messages)):
            return dict(self.body) if self.places is None else encode(self.places.text)
        target = request_format(self.format)
        loss = loss or LossCollector()
        system = leading_system(sequence, target)
        rendered = elements(sequence, target, loss, start=len(system))
        rendered = with_joined_turns(rendered, target) if join_turns else rendered
        list_key, system_key = key_in(self.body, target.list_key), key_in(self.body, target.system_key)
        changes: dict[str, Any] = {}
        if system != leading_system(self.messages, target) and target.render_system:
            changes[system_key] = target.render_system(system, loss) if system else None
        if self.places is None:
            changes[list_key] = [element for element, _ in rendered]
            merged = {**{key: None for key in changes if key not in self.body}, **self.body, **changes}
            return {key: value for key, value in merged.items() if key not in changes or value is not None}
        edits = [_edit(self.places, key, value) for key, value in changes.items()]
        edits.append(_list_edit(self.places, list_key, rendered))
        text = self.places.text
        for start, end, new in sorted(edits, reverse=True):
            text = text[:start] + new + text[end:]
        return encode(text)


def _is_unchanged(one: Message, other: Message) -> bool:
    return one is other or (one == other and one.wire is other.wire and one.wire is not None)


def unknown_format(value: Any, what: str) -> FormatUnknown:
    """The error for input whose format is not clear.

    The error names the features of known formats that were found, and the argument that sets the format.
    """
    shown = candidates(value)
    reasons = ", ".join(f"{form} ({why})" for form, why in shown.items())
    seen = f"it shows signs of {reasons}" if shown else "it shows no sign of a known format"
    names = ", ".join(shown or FORMATS)
    return FormatUnknown(
        f"the format of this {what} is not clear, {seen}", hint=f"name the format with format=…, one of {names}"
    )


def _system(body: Mapping[str, Any], target: Format) -> Iterator[Message]:
    key = key_in(body, target.system_key)
    if target.parse_system and body.get(key) is not None:
        try:
            yield target.parse_system(body[key])
        except WireError as error:
            raise WireError(error.reason, field=error.field or key, hint=error.hint) from None


def _messages(body: Mapping[str, Any], places: Scan | None, target: Format) -> list[Message]:
    key = key_in(body, target.list_key)
    held = body.get(key)
    if isinstance(held, str) and target.text_list:
        return [user(held)]
    if not isinstance(held, (list, tuple)):
        what = "must be a list" if key in body else "are missing"
        hint = f"the format {target.name} has its messages under {key!r}"
        raise WireError(f"the messages of a request {what}", field=key, hint=hint)
    slices = places.elements.get(key) if places else None
    return parse_elements(target, slices or [Slice(value, -1, -1) for value in held], places and places.text, key)


def parse_elements(target: Format, slices: Iterable[Slice], text: str | None, key: str) -> list[Message]:
    """The messages for list elements; an error names the element and its line in the text."""
    messages = []
    for index, item in enumerate(slices):
        try:
            messages.append(target.parse(item.value, text[item.start : item.end] if text is not None else None))
        except WireError as error:
            line = text.count("\n", 0, item.start) + 1 if text is not None else 0
            place = f"{key}[{index}]" + (f".{error.field}" if error.field else "")
            raise WireError(error.reason, line=line, field=place, hint=error.hint) from None
    return messages


def _edit(places: Scan, key: str, value: Any) -> tuple[int, int, str]:
    """The text edit that sets a field, or removes it when `value` is None."""
    text, found = places.text, places.fields.get(key)
    if found is None:
        start = text.index("{") + 1
        return start, start, f"{dumps(key)}:{dumps(value)},"
    if value is not None:
        return found.start, found.end, dumps(value)
    closing = text.rindex('"', 0, text.rindex(":", 0, found.start))
    start = text.rindex('"', 0, closing)
    rest = text[found.end :].lstrip()
    if rest.startswith(","):
        return start, len(text) - len(rest[1:].lstrip()), ""
    return text.rindex(",", 0, start), found.end, ""


def _list_edit(places: Scan, key: str, rendered: list[tuple[Any, str | None]]) -> tuple[int, int, str]:
    """The text edit that replaces the elements of the list. The spacing around kept elements stays."""
    text, field = places.text, places.fields[key]
    items = places.elements.get(key, ())
    pieces = [dumps(element) if raw is None else raw for element, raw in rendered]
    if not items:
        return field.start, field.end, f"[{','.join(pieces)}]"
    gaps = [text[one.end : other.start] for one, other in pairwise(items)] or [","]
    old_indexes = _old_indexes([text[item.start : item.end] for item in items], pieces)
    pieces_out = [text[field.start : items[0].start], *pieces[:1]]
    for before, here, piece in zip(old_indexes, old_indexes[1:], pieces[1:], strict=False):
        gap = gaps[0]
        if here:
            gap = gaps[here - 1]
        elif here is None and before is not None and before < len(gaps):
            gap = gaps[before]
        pieces_out += [gap, piece]
    return field.start, field.end, "".join(pieces_out) + text[items[-1].end : field.end]


def _old_indexes(old: list[str], new: list[str]) -> list[int | None]:
    """The indexes that the elements of the new list have in the old list.

    The index is None for an element between the common start and the common end of both lists.

    >>> _old_indexes(["a", "b", "c", "d"], ["a", "x", "d"])
    [0, None, 3]
    """
    most = min(len(old), len(new))
    start = next((place for place in range(most) if old[place] != new[place]), most)
    end = next((count for count in range(most - start) if old[-1 - count] != new[-1 - count]), most - start)
    tail = list(range(len(old) - end, len(old)))
    return [*range(start), *[None] * (len(new) - start - end), *tail]
