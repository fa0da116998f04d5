"""Conversations that grow, and a driver that asks for a view at every request.

A conversation is drawn as a list of events (a prompt, a step with parallel calls, a reply, an accident) with a size and
a script each: few choices per message, so that long ones stay cheap and shrink to the event that matters.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from foldline.errors import ViewTooLarge
from foldline.message import Media, Message, Part, Text, Thinking, ToolCall, ToolResult, assistant, system, user
from foldline.plan.gate import Need, gate
from foldline.session import Session
from foldline.session.record import MemoryRecord
from foldline.view.compose import View
from foldline.wire.formats import REQUEST_FORMATS, format_of
from foldline.wire.rendering import leading_system, render
from strategies import PNG

SIZES = (1, 30, 150, 600, 3_000, 15_000)
"""Characters of a text, from a word to far more than the smallest window."""
SCRIPTS = {
    "prose": "The parser fails on an empty line, so look at the reader first. ",
    "cjk": "解析器は空の行で失敗するので、まず読み取り部分を見てください。",
    "code": "def read(line):\n    return line.strip() or None\n\n",
    "json": '{"name": "a\\"b", "sizes": [1, 2, 3], "ok": true},\n',
    "base64": PNG,
    "emoji": "👩‍👩‍👧🎉e\u0301 ",
    "marks": "<|endoftext|>[INST]<<SYS>> ",
}
TALK = ("ask", "ask", "step", "step", "step", "parallel", "thinking", "item", "answer", "failed", "shell")
"""What happens in sound conversations."""
RARE = ("picture", "shot", "read", "read", "arguments", "queue", "note", "mixed", "late system", "essay")
ACCIDENTS = ("interrupted", "orphan", "blank", "silent", "twice", "pending")
"""What happens in broken ones."""


def text(script: str, size: int, salt: str = "") -> str:
    """A text of about `size` characters that begins with its salt, so that no two are alike; it is never blank."""
    line, start = SCRIPTS[script], f"{salt} " if salt else ""
    return (start + line * (size // len(line) + 1))[: max(size, len(salt))]


class Talk:
    """A conversation in the making."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.calls = 0

    def salt(self) -> str:
        """A word that stands nowhere else."""
        return f"m{len(self.messages)}"

    def play(self, kind: str, size: int, script: str) -> None:
        """Let one event happen."""
        short = kind in {"ask", "queue", "picture", "note", "shell", "late system"}
        words = text(script, min(size, 600) if short else size, self.salt())
        match kind:
            case "ask" | "queue" | "picture" | "essay":
                shown = (Media(kind="image", mime="image/png", data=PNG),) * (kind == "picture")
                self.messages.append(Message(role="user", parts=(Text(text=words), *shown)))
                if kind == "queue":
                    self.messages.append(user(text(script, 20, self.salt())))
            case "answer":
                self.messages.append(assistant(words))
            case "shell" | "note":
                self.messages.append(user(words, kind=kind))
            case "late system":
                self.messages.append(system(words))
            case "orphan":
                result = ToolResult(call_id="gone", name="run", parts=(Text(text=words),))
                self.messages.append(Message(role="tool", parts=(result,)))
            case "blank" | "silent":
                role = "user" if kind == "blank" else "assistant"
                self.messages.append(Message(role=role, parts=(Text(text=" \n"),) * (size > 1)))
            case "twice" if self.messages:
                self.messages.append(self.messages[-1])
            case _:
                self.step(kind, size, script)

    def step(self, kind: str, size: int, script: str) -> None:
        """A reply with calls, and what became of them."""
        width = 3 if kind == "parallel" else 1
        arguments = json.dumps({"cmd": "go", "file": text(script, size)}, ensure_ascii=False)
        name, given = {
            "arguments": ("write", arguments),
            "read": ("read", json.dumps({"file_path": "src/app.py"})),
        }.get(kind, ("run", json.dumps({"cmd": f"step {self.calls}"})))
        calls = tuple(ToolCall(id=f"call_{self.calls + n}", name=name, arguments=given) for n in range(width))
        self.calls += width
        thought: Part = Thinking(text=text(script, min(size, 600), "hm"), signature=f"c2ln{self.calls:04}")
        if kind == "item":
            self.messages.append(Message(role="assistant", parts=(thought,)))
        said: tuple[Part, ...] = (thought,) if kind == "thinking" else ()
        self.messages.append(Message(role="assistant", parts=(*said, *calls)))
        if kind == "interrupted":
            return
        results = [self.result(call, kind, size, script, n) for n, call in enumerate(calls)]
        if kind == "parallel" and size % 4:
            self.messages += [Message(role="tool", parts=(result,)) for result in results]
        elif kind == "mixed":
            words = Text(text=text(script, 30, self.salt() + " and now this:"))
            self.messages.append(Message(role="user", parts=(*results, words)))
        else:
            self.messages.append(Message(role="tool", parts=tuple(results)))

    def result(self, call: ToolCall, kind: str, size: int, script: str, place: int) -> ToolResult:
        """What a call was answered with."""
        if kind == "arguments":
            return ToolResult(call_id=call.id, name=call.name, parts=(Text(text="done"),))
        size = size if place == 0 else 60
        salt = "" if kind == "read" else f"{self.salt()}.{place}"
        parts: tuple[Part, ...] = (Text(text=text(script, size, salt)),)
        if kind == "shot":
            parts += (Media(kind="image", mime="image/png", data=PNG),)
        return ToolResult(
            call_id=call.id, name=call.name, parts=parts, is_error=kind == "failed", interim=kind == "pending"
        )


@st.composite
def events(draw: DrawFn, kinds: Sequence[str], most: int, largest: int) -> list[tuple[str, int, str]]:
    """What happens one after the other, with sizes and scripts."""
    bound = draw(st.sampled_from((150, 600, largest)))
    event = st.sampled_from(tuple(product(kinds, [size for size in SIZES if size <= bound], SCRIPTS)))
    return [draw(event) for _ in range(draw(st.integers(1, most)))]


def played(happened: Iterable[tuple[str, int, str]], lead: str = "") -> list[Message]:
    """The conversation in which these events happened; it begins with the user and ends where a request is due."""
    talk = Talk()
    if lead:
        talk.messages.append(system(lead))
    talk.play("ask", 30, "prose")
    for event in happened:
        talk.play(*event)
    if talk.messages[-1].role not in {"user", "tool"}:
        talk.play("ask", 30, "prose")
    return talk.messages


@st.composite
def talks(
    draw: DrawFn, *, kinds: Sequence[str] = TALK + RARE, most: int = 20, largest: int = SIZES[-1]
) -> list[Message]:
    """A sound conversation, neutral or as it came from a provider."""
    lead = draw(st.sampled_from(("", "You are terse.", "You are terse.\n" * 20)))
    made = played(draw(events(kinds, most, largest)), lead)
    provider = draw(st.sampled_from(("", "", *REQUEST_FORMATS)))
    return as_arrived(made, provider) if provider else made


def accidents(*, most: int = 16) -> SearchStrategy[list[Message]]:
    """A conversation in which things went wrong."""
    return events(TALK + ACCIDENTS * 2, most, 3_000).map(played)


def as_arrived(messages: Sequence[Message], provider: str) -> list[Message]:
    """The same conversation as it would have come from a provider, each element with its exact wire form."""
    target = format_of(provider)
    body = render(messages, provider).body
    return [*leading_system(messages, target), *(target.parse(element, None) for element in body[target.list_key])]


def spoken(message: Message) -> tuple[object, ...]:
    """What a person said in a message, beside results."""
    return tuple(part for part in message.parts if not isinstance(part, ToolResult))


@dataclass(frozen=True, kw_only=True)
class Sent:
    """One request: what would have been sent, or why it was refused."""

    given: int
    """How many messages the session had been given."""
    before: int
    """The size of the request before anything was done about it."""
    need: Need
    """How urgent it was to do something."""
    folds: int
    """Folds made for this request."""
    view: View | None
    refused: ViewTooLarge | None


def request_points(messages: Sequence[Message]) -> list[int]:
    """After how many messages a client would send: everything is answered, and the model speaks next."""
    return [
        count
        for count in range(1, len(messages) + 1)
        if messages[count - 1].role in {"user", "tool"}
        and (count == len(messages) or messages[count].role == "assistant")
    ]


def drive(session: Session, messages: Sequence[Message], *, pins: Iterable[int] = ()) -> Iterator[Sent]:
    """Add message by message, and ask for a view whenever a client would."""
    points = set(request_points(messages))
    assert isinstance(session.record, MemoryRecord)
    session.record.pins.update({str(index): index for index in pins})
    session.reload()
    for count, message in enumerate(messages, start=1):
        session.add(message)
        if count in points:
            yield ask(session)


def turning_points(session: Session, messages: Sequence[Message]) -> list[Sent]:
    """The requests for which a fold was made, and the last one: between them a view only grows."""
    made = list(drive(session, messages))
    return [sent for sent in made if sent.folds or sent is made[-1]]


def ask(session: Session) -> Sent:
    """One request."""
    folds, load = session.folds, session.load()
    view: View | None = None
    refused: ViewTooLarge | None = None
    try:
        view = session.view()
    except ViewTooLarge as error:
        refused = error
    return Sent(
        given=len(session.timeline),
        before=load.request,
        need=gate(load, session.policy).need,
        folds=session.folds - folds,
        view=view,
        refused=refused,
    )


def blocks(body: dict[str, Any]) -> list[str]:
    """A request as the run of blocks the provider caches, without cache marks: what must not change between folds."""
    run = [
        f"{key} {_bare(_listed(body[key]))}" for key in ("system", "instructions", "systemInstruction") if key in body
    ]
    for element in body.get("messages") or body.get("contents") or body.get("input") or []:
        inner = element.get("content", element.get("parts"))
        rest = {key: value for key, value in element.items() if key not in {"content", "parts"}}
        run += [_bare([rest, block]) for block in _listed(inner)]
    return run


def _listed(value: Any) -> list[Any]:
    """Content as blocks: a mark makes a list of a plain string, and means the same."""
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    return value if isinstance(value, list) else [value]


def _bare(value: Any) -> str:
    return json.dumps(_unmarked(value), ensure_ascii=False)


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unmarked(item) for key, item in value.items() if key != "cache_control"}
    if isinstance(value, list):
        return [_unmarked(item) for item in value]
    return value
