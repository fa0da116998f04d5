"""The view: the messages to send, composed from a timeline and its fold.

Order: system, memory, pins, digest, history, input. Between folds a view only grows at its end.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, NamedTuple

from foldline.errors import InputError
from foldline.fold import Digest, Fold
from foldline.measure.estimator import format_tokens
from foldline.message import Message, Text, user
from foldline.models.table import Model
from foldline.models.table import model as model_of
from foldline.placeholders import NO_EARLIER_PROMPT, missing_messages
from foldline.plan.gate import Need, Verdict
from foldline.plan.timeline import Timeline, handle
from foldline.view.bound_thinking import BINDING_BETA, DROP_BLOCK
from foldline.view.breakpoints import place
from foldline.view.identity import ViewIdentity
from foldline.view.request_body import request_body
from foldline.wire.formats import request_format
from foldline.wire.rendering import Rendered, render
from foldline.wire.repair import RepairedHistory, repair

_VISIBLE = re.compile(r"[^\s\x00-\x1f\x7f\xad\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufeff]")


class View(NamedTuple):
    """The messages to send, with their sizes. `print(view)` shows tokens by block.

    The class is a named tuple, because a view is made at every turn and a frozen dataclass takes twice as long to
    create.
    """

    messages: tuple[Message, ...]
    blocks: dict[str, int]
    """Tokens by block, in the order of the view."""
    tokens: int
    exact: bool
    source: str
    """The counter or usage report that `tokens` comes from."""
    window: int
    usable: int
    verdict: Verdict
    cut: int
    """Position of the first message after the folded part."""
    assumption: str = ""
    """The reason why the window is a guess; "" if the policy or the model table states it."""
    breakpoints: int = 0
    """The maximum number of cache breakpoints that `render` sets."""
    format: str = ""
    """The session's wire format."""
    repairs: RepairedHistory | None = None
    """The repaired messages for that format, used when the view is rendered.

    All views between two folds share this object.
    """
    identity: ViewIdentity | None = None
    """Identifies this view, so that a reply can be assigned to it (see `Session.add`).

    `str(view.identity)` is the same in every process.
    """
    unbound: int = 0
    """Number of messages whose thinking is bound to an earlier view.

    This thinking is left out, or the provider drops it.
    """
    drops_blocks: bool = False
    """Whether the provider is asked to drop this thinking (`bound_thinking` in the policy)."""
    native: Digest | None = None
    """The digest whose native summary the view shows; None if the view shows no native summary."""

    model: Model | None = None
    tools: tuple[Any, ...] | None = ()
    """The tool definitions of the session; None if they were counted in another process and not given to this one."""

    @property
    def need(self) -> Need:
        """How urgent a fold is."""
        return self.verdict.need

    @property
    def notice(self) -> str:
        """A warning for the agent that a fold will come soon, so that it can save notes; "" while no rule has fired."""
        if not self.verdict.fired:
            return ""
        used = f"{self.tokens:,} of {self.usable:,} tokens are in use"
        return f"{used}, older messages will soon be folded ({self.verdict.fired[0]})"

    def render(self, format: str = "") -> Rendered:
        """The view in a wire format (by default the session's), with cache breakpoints if the format has them.

        Raises `InputError` if there is no message to send, because every provider refuses an empty list.
        """
        target = format or self.format
        if target == self.format and self.repairs is not None:
            with self.repairs.lock:
                messages = self.repairs.update(self.messages).messages
        else:
            messages = repair(self._readable_messages(), target).messages
        rendered, wire_format = render(messages, target), request_format(target)
        elements = rendered.body[wire_format.list_key]
        if not elements or not any(map(_shows_something, self.messages)):
            held = f"all {len(self.messages)} messages are blank or system texts" if self.messages else "no message"
            raise InputError(f"there is nothing to send: {held}", hint="add a message of the user first")
        if wire_format.join_turns is not None:
            rendered = replace(rendered, body={**rendered.body, wire_format.list_key: wire_format.join_turns(elements)})
        rendered = place(rendered, self.breakpoints, self.tools or ())
        if self.unbound and self.drops_blocks and target == "anthropic":
            return replace(rendered, parameters=DROP_BLOCK, betas=(*rendered.betas, BINDING_BETA))
        return rendered

    def request(self, format: str = "", *, max_tokens: int | None = None, **extra: Any) -> dict[str, Any]:
        """The whole request in a wire format (by default the session's), as keyword arguments for the SDK's call.

        It has the model, the system text, the session's tools and the messages. `extra` is added to it: `temperature`,
        `tool_choice`, `stream`, … `max_tokens` limits the reply; Anthropic demands a limit, so there the default is the
        number of tokens that the policy reserves for the reply.

            client.messages.create(**view.request("anthropic", max_tokens=2_000))
            client.chat.completions.create(**view.request("openai"))
            client.responses.create(**view.request("openai-responses"))
            client.models.generate_content(**view.request("gemini"))
        """
        if self.tools is None:
            hint = "give them again when you open the session: tools=…"
            raise InputError("the tools of this session were given in another process", hint=hint)
        return request_body(
            self.render(format),
            model=self.model or model_of(""),
            tools=self.tools,
            max_tokens=max_tokens,
            reply_room=self.window - self.usable,
            extra=extra,
        )

    def _readable_messages(self) -> tuple[Message, ...]:
        """The messages, for a format other than that of the native summary.

        The readable digest replaces the native summary.
        """
        if self.native is None or self.native.native is None:
            return self.messages
        block = self.native.native.message
        return tuple([self.native.message if message is block else message for message in self.messages])

    def __str__(self) -> str:
        width = max(len(name) for name in self.blocks)
        lines = []
        for name, size in self.blocks.items():
            if name == "history" and self.cut:
                lines.append(f"{'─' * 3} fold line: {handle(0, self.cut - 1)} above are kept in the record {'─' * 3}")
            share = size / max(1, self.usable)
            lines.append(f"{name:<{width}} {size:>9,} {share:>6.1%} {'█' * round(share * 40)}".rstrip())
        used, usable = format_tokens(self.tokens, self.exact), format_tokens(self.usable, True)
        total = f"{used} of {usable} usable ({self.window:,} window{', assumed' * bool(self.assumption)})"
        reason = f": {self.verdict.reason}" if self.verdict.reason else ""
        return "\n".join([*lines, f"{total}, {self.source}. {self.need.name}{reason}"])


def identity_of(view: View | ViewIdentity | str | None) -> ViewIdentity | None:
    """The identity of a view.

    If the argument is already an identity, as an object or as text, it is returned as an object.
    """
    if isinstance(view, View):
        return view.identity
    return ViewIdentity.parse(view) if isinstance(view, str) else view


def marker(first: int, last: int, *, kept: int = 0) -> Message:
    """The one-line message that replaces messages that were folded without a digest.

    `kept` is the number of messages of the range that are still in the view.
    """
    return user(missing_messages(last - first + 1 - kept, handle(first, last), partly=kept > 0), kind="note")


def head(timeline: Timeline, fold: Fold | None = None) -> tuple[Message, ...]:
    """The messages before the unfolded part: system messages, pins, digest, and messages that the fold carried over.

    A native summary precedes the pins, because only system messages may come before it.
    """
    fold = fold or timeline.fold
    lead = tuple(timeline.messages[: timeline.lead])
    if fold is None:
        return lead
    kept = {*fold.pinned, *fold.carried}
    pinned = tuple([timeline.kept_message(index, kept) for index in fold.pinned])
    carried = tuple([timeline.kept_message(index, kept) for index in fold.carried])
    digest = (fold.digest.message,) if fold.digest else ()
    if fold.digest and (native := fold.digest.message_for(timeline.target)) is not fold.digest.message:
        return (*lead, native, *pinned, *carried)
    if digest and digest[0].role == "system":
        return lead + digest + _from_user(timeline, fold, pinned + carried)
    return lead + _from_user(timeline, fold, pinned + digest + carried)


def _from_user(timeline: Timeline, fold: Fold, middle: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages after the system messages.

    If the first of these messages is not a user message, a marker is added before it.
    """
    first = middle[0] if middle else timeline.shown[fold.cut] if fold.cut < len(timeline) else None
    if first is None or first.role == "user" or fold.cut <= timeline.lead:
        return middle
    return (marker(timeline.lead, fold.cut - 1, kept=len(fold.pinned) + len(fold.carried)), *middle)


def messages_of(timeline: Timeline, format: str = "anthropic") -> tuple[Message, ...]:
    """The messages of the view. If any message is broken, the messages are repaired for a wire format."""
    messages = head(timeline) + tuple(timeline.shown[timeline.cut :])
    return repair(messages, format).messages if _is_broken(timeline) else messages


def _is_broken(timeline: Timeline) -> bool:
    """Whether the view has an unpaired call or result, a repeated id, or a blank message."""
    broken = timeline.broken
    if not broken:
        return False
    return broken[-1] >= timeline.cut or any(
        index in broken for index in (timeline.fold.carried if timeline.fold else ())
    )


class ComposedView:
    """The messages of a timeline's view.

    They are reused for the next view, so until the next fold only new messages are read.
    """

    def __init__(self, timeline: Timeline, format: str, model: Model | None = None) -> None:
        self.timeline, self.format = timeline, format
        self.model = model if model and model.name else None
        self._fold: Fold | None = None
        self._list: list[Message] = []
        self._shown = 0
        self._broken = RepairedHistory(format, self.model)
        self.repairs = RepairedHistory(format, self.model)
        self.native: Digest | None = None
        """The digest whose native summary the view shows."""

    def messages(self) -> tuple[Message, ...]:
        """The messages of the view. If any message is broken, they are repaired."""
        timeline = self.timeline
        if timeline.fold is not self._fold:
            self._fold, self._list, self._shown = timeline.fold, list(head(timeline)), timeline.cut
            self._broken = RepairedHistory(self.format, self.model)
            self.repairs = RepairedHistory(self.format, self.model)
            digest = timeline.fold.digest if timeline.fold else None
            is_native = digest is not None and digest.message_for(timeline.target) is not digest.message
            self.native = digest if is_native else None
        self._list += timeline.shown[self._shown :]
        self._shown = len(timeline.shown)
        if _is_broken(timeline):
            return self._broken.update(self._list, grown=True, ending=False).messages
        return tuple(self._list)


def _shows_something(message: Message) -> bool:
    """Whether a message is not a system message, and has a visible text or a part that is not text."""
    if message.role == "system" or message.text == NO_EARLIER_PROMPT:
        return False
    return any(not isinstance(part, Text) or _VISIBLE.search(part.text) for part in message.parts)
