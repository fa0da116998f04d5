"""Hypothesis strategies for histories: sound ones, broken ones, and ones that came in a wire format.

    from strategies import arrived, broken, sound

`sound()` gives conversations that every format accepts: parallel calls, rejected calls, signed thinking, images, texts
in many scripts, tiny and huge. `broken()` gives the same after a few faults: something dropped, doubled, swapped,
blanked, cut off, or in the wrong place. `arrived(format)` gives sound conversations parsed from that format's JSON, so
every message has its exact wire form. All of them are lists of neutral messages.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from foldline.message import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult, assistant, system, user
from foldline.wire.formats import REQUEST_FORMATS, format_of
from foldline.wire.rendering import leading_system, render

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
ROLES = ("user", "assistant", "system", "tool")
KINDS = ("", "note", "digest", "shell", "legend")


def texts() -> SearchStrategy[str]:
    """Visible text: plain, CJK, emoji, base64, special tokens, code, very long."""
    odd = (
        *(
            "fix the parser",
            "日本語のテキスト",
            "정말",
            "👩‍👩‍👧 🎉",
            PNG * 3,
            "<|endoftext|><|im_start|>",
            "[INST] <<SYS>>",
        ),
        *("\x00 nul", '{"a": [1, 2]}', "x" * 5000, "line\n\n  line\n", "def f():\n\treturn 1"),
    )
    said = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
    return st.sampled_from(odd) | said.filter(lambda text: bool(text.strip()))


def blanks() -> SearchStrategy[str]:
    """Text without a visible character."""
    return st.sampled_from(("", " ", "\n\n", "\t  \r\n", "\u2003"))


def media() -> SearchStrategy[Media]:
    """Media that every format takes from a user."""
    return st.just(Media(kind="image", mime="image/png", data=PNG))


def names() -> SearchStrategy[str]:
    """Tool names that every format takes."""
    return st.sampled_from(("read", "run", "search", "mcp__files__read"))


@st.composite
def sound(draw: DrawFn, *, turns: int = 3) -> list[Message]:
    """A conversation that every format accepts without repair."""
    made = [system(text) for text in draw(st.lists(texts(), max_size=1))]
    count = 0
    for _ in range(draw(st.integers(1, turns))):
        shown: tuple[Part, ...] = (draw(media()),) if draw(st.integers(0, 5)) == 0 else ()
        made.append(Message(role="user", parts=(Text(text=draw(texts())), *shown), kind=draw(st.sampled_from(KINDS))))
        for _ in range(draw(st.integers(0, 2))):
            width = draw(st.sampled_from((1, 1, 2, 3)))
            calls = tuple(ToolCall(id=f"call_{count + place}", name=draw(names())) for place in range(width))
            count += width
            made += [_reply(draw, calls), Message(role="tool", parts=tuple(draw(results(call)) for call in calls))]
        if draw(st.booleans()):
            made.append(assistant(draw(texts())))
    if made[-1].role == "assistant":
        made.append(user(draw(texts())))
    return made


def _reply(draw: DrawFn, calls: tuple[ToolCall, ...]) -> Message:
    thought = (Thinking(text=draw(texts()), signature="c2lnbmVk"),) if draw(st.booleans()) else ()
    said = (Text(text=draw(texts())),) if draw(st.booleans()) else ()
    return Message(role="assistant", parts=(*thought, *said, *calls))


@st.composite
def results(draw: DrawFn, call: ToolCall) -> ToolResult:
    """The result of a call: successful, failed, or rejected by a person."""
    said, bad = draw(st.sampled_from((("", False), ("[rejected by the user] ", True), ("error: ", True))))
    return ToolResult(call_id=call.id, name=call.name, parts=(Text(text=said + draw(texts())),), is_error=bad)


@st.composite
def arrived(draw: DrawFn, format: str) -> list[Message]:
    """A sound conversation that was parsed from a format, with exact wire forms."""
    said = draw(sound())
    target = format_of(format)
    body = render(said, format).body
    lead = list(leading_system(said, target))
    return lead + [target.parse(element, None) for element in body[target.list_key]]


@st.composite
def broken(draw: DrawFn, *, accidents: int = 4) -> list[Message]:
    """A conversation with a few faults, from a random format."""
    format = draw(st.sampled_from(("", *REQUEST_FORMATS)))
    made = draw(arrived(format) if format else sound())
    for _ in range(draw(st.integers(1, accidents))):
        if not made:
            break
        place, other = draw(st.integers(0, len(made) - 1)), draw(st.integers(0, len(made)))
        match draw(st.sampled_from(("drop", "double", "move", "cut", "behead", "stray", "merge", *["edit"] * 5))):
            case "drop":
                del made[place]
            case "double":
                made.insert(other, made[place])
            case "move":
                moved = made.pop(place)
                made.insert(min(other, len(made)), moved)
            case "cut":
                del made[other:]
            case "behead":
                del made[:other]
            case "stray":
                made.insert(other, draw(strays()))
            case "merge" if place + 1 < len(made):
                after = made.pop(place + 1)
                made[place] = Message(role=made[place].role, parts=after.parts + made[place].parts)
            case _:
                made[place] = _edited(draw, made[place], [call.id for message in made for call in message.calls])
    return made


def _edited(draw: DrawFn, message: Message, ids: list[str]) -> Message:
    """A message with a part lost, doubled, moved, blanked, or tied to another call; or with another role."""
    parts = list(message.parts)
    place = draw(st.integers(0, len(parts) - 1)) if parts else 0
    match draw(st.sampled_from(("lose", "double", "turn", "blank", "half", "stray", "role", "kind", *["tie"] * 4))):
        case "lose" if parts:
            del parts[place]
        case "double" if parts:
            parts.append(parts[place])
        case "turn":
            parts.reverse()
        case "blank" if parts:
            parts[place] = Text(text=draw(blanks()))
        case "half" if parts:
            parts[place] = Text(text="half of an emoji: \ud83d")
        case "stray":
            parts.insert(place, draw(stray_parts()))
        case "role":
            return replace(message, role=draw(st.sampled_from(ROLES)), wire=None)
        case "kind":
            return replace(message, kind=draw(st.sampled_from(KINDS)), wire=None)
        case "tie" if parts:
            parts[place] = _tied(draw, parts[place], draw(st.sampled_from((*ids, "gone", "", "terminal:0", "i" * 80))))
        case _:
            pass
    return message.with_parts(*parts)


_ARGUMENTS = ("{}", "", '{"cut', '{"x": NaN}', '{"x": [-Infinity, 1e999]}', '["a"]')


def _tied(draw: DrawFn, part: Part, name: str) -> Part:
    wire = part.wire and part.wire._replace(exact=False)
    if isinstance(part, ToolCall):
        tool = draw(st.sampled_from((part.name, "files.read", "", "n" * 90)))
        return replace(part, id=name, name=tool, arguments=draw(st.sampled_from(_ARGUMENTS)), wire=wire)
    if isinstance(part, ToolResult):
        inner: tuple[Part, ...] = draw(st.sampled_from((part.parts, (), (Text(text=" "),))))
        interim, bad = draw(st.booleans()), draw(st.booleans())
        return replace(part, call_id=name, parts=inner, wire=wire, interim=interim, is_error=bad)
    return part


def strays() -> SearchStrategy[Message]:
    """Messages that fit in no place of a conversation."""
    return st.builds(
        lambda part, role, kind: Message(role=role, parts=(part,) if part else (), kind=kind),
        st.none() | stray_parts(),
        st.sampled_from(ROLES),
        st.sampled_from(KINDS),
    ) | st.sampled_from(WIRE_STRAYS).map(lambda stray: format_of(stray[0]).parse(dict(stray[1]), None))


WIRE_STRAYS: tuple[tuple[str, dict[str, object]], ...] = (
    ("anthropic", {"role": "system", "content": "a word in between"}),
    ("anthropic", {"role": "user", "content": []}),
    ("anthropic", {"role": "assistant", "content": [{"type": "text", "text": ""}]}),
    ("anthropic", {"role": "assistant", "content": [{"type": "thinking", "thinking": "cut off", "signature": ""}]}),
    ("anthropic", {"role": "assistant", "content": [{"type": "server_tool_use", "id": "s", "name": "w", "input": {}}]}),
    ("openai", {"role": "developer", "content": "a word in between"}),
    ("openai", {"role": "assistant", "content": None}),
    ("openai", {"role": "assistant", "content": "x", "tool_calls": []}),
    ("openai", {"role": "function", "name": "old", "content": "legacy"}),
    ("openai-responses", {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"}),
    ("openai-responses", {"type": "web_search_call", "id": "ws_1", "status": "completed"}),
    ("openai-responses", {"type": "item_from_the_future", "id": "if_1"}),
    ("gemini", {"role": "model", "parts": [{"text": ""}]}),
    ("gemini", {"role": "model", "parts": [{"text": "", "thoughtSignature": "c2ln"}]}),
    ("gemini", {"role": "model", "parts": [{"executableCode": {"language": "PYTHON", "code": "1"}}]}),
)
"""Elements that break real histories, with their format."""


@st.composite
def stray_parts(draw: DrawFn) -> Part:
    """A part that fits in no message."""
    call = f"call_{draw(st.integers(0, 3))}"
    parts: tuple[Part, ...] = (
        Text(text=draw(texts())),
        Text(text=draw(blanks())),
        Thinking(text="unsigned"),
        Thinking(text="signed, but not here", signature="c2ln"),
        Media(kind="audio", mime="audio/wav", data="UklGRg=="),
        Media(kind="image", url="https://example.org/a.png"),
        ToolCall(id=call, name="run"),
        ToolCall(id="", name="run"),
        ToolResult(call_id=call, parts=(Text(text=draw(texts())),)),
        ToolResult(call_id=call, parts=(Text(text="still running"),), interim=True),
        ToolResult(call_id="", name="run", parts=(Text(text=draw(texts())), Media(kind="image", data=PNG))),
        Opaque(kind="mystery", value={"a": 1}),
    )
    return draw(st.sampled_from(parts))
