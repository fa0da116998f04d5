"""The view: the messages to send, composed from a timeline and its fold.

Order: system, memory, pins, digest, history, input. Between folds a view only grows at its end.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, NamedTuple

from foldline.errors import InputError, check_type
from foldline.fold import Digest, Fold
from foldline.measure.estimator import format_tokens
from foldline.message import Message, Text, user
from foldline.models.table import Model
from foldline.models.table import model as model_of
from foldline.placeholders import NO_EARLIER_PROMPT, edited_texts, missing_messages, without_advice
from foldline.plan.gate import Need, Verdict
from foldline.plan.timeline import Timeline, handle
from foldline.view.bound_thinking import (
    BINDING_BETA,
    DROP_BLOCK,
    THINKING_OFF,
    has_thinking,
    has_thinking_on,
    must_not_think,
    without_thinking,
)
from foldline.view.breakpoints import place
from foldline.view.identity import ViewIdentity
from foldline.view.request_body import request_body
from foldline.wire.formats import request_format
from foldline.wire.rendering import Rendered, render
from foldline.wire.repair import RepairedHistory, repair

BAR = 40
"""Length in characters of the bar of a block that fills the usable window. The bar of a larger block is cut off."""
_VISIBLE = re.compile(r"[^\s\x00-\x1f\x7f\xad\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufeff]")


class View(NamedTuple):
    """The messages to send, with their sizes. `print(view)` shows tokens by block.

    The class is a named tuple, because a view is made at every turn. A frozen dataclass takes twice as long to create.
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
    """Index of the first message after the folded part."""
    assumption: str = ""
    """The reason why the window is a guess; "" if the policy or the model table states it."""
    breakpoints: int = 0
    """The maximum number of cache breakpoints that `render` sets."""
    format: str = ""
    """The session's wire format."""
    repairs: RepairedHistory | None = None
    """Repairs the messages for the format `format` when the view is rendered.

    All views between two folds share this object, so each of them repairs only the new messages.
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
    """Whether the provider is asked to drop thinking that is bound to an earlier view (`bound_thinking` in the policy).
    """
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
        """A warning for the agent that a fold will come soon, so that it can save notes; "" if no fold rule fired."""
        if not self.verdict.fired:
            return ""
        used = f"{self.tokens:,} of {self.usable:,} tokens are in use"
        return f"{used}, older messages will soon be folded ({self.verdict.fired[0]})"

    def render(self, format: str = "") -> Rendered:
        """The view in a wire format, with cache breakpoints if the format has them.

        By default, the session's format is used. Raises `InputError` if there is no message to send, because every
        provider refuses an empty list.
        """
        target = format or self.format
        wire_format = request_format(target)
        rendered = render(self.repaired_messages(target), target)
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

    def repaired_messages(self, format: str = "") -> tuple[Message, ...]:
        """The messages, repaired by the rules of a wire format. By default, the session's format is used.

        A message that needs no repair is the same object as in `messages`.
        """
        target = format or self.format
        if target == self.format and self.repairs is not None:
            with self.repairs.lock:
                return tuple(self.repairs.update(self.messages).messages)
        return tuple(repair(self._readable_messages(), target, self.model).messages)

    def request(self, format: str = "", *, max_tokens: int | None = None, **extra: Any) -> dict[str, Any]:
        """The whole request in a wire format, as keyword arguments for the SDK's call.

        By default, the session's format is used. The request has the model, the system text, the session's tools and
        the messages. `extra` is added to the request: `temperature`, `tool_choice`, `stream`, … `max_tokens` limits the
        reply. Anthropic requires this limit, so for Anthropic the default is the number of tokens that the policy
        reserves for the reply. Anthropic's SDK accepts such a long reply only with `stream=True`. In a stream, OpenAI's
        Chat Completions report usage only with `stream_options={"include_usage": True}`. Anthropic refuses a thinking
        budget in the middle of a turn if another model began the turn, or if the beginning of the turn was folded. In
        such a request, thinking is off, even if you pass a budget.

            client.messages.create(**view.request("anthropic", max_tokens=2_000))
            client.chat.completions.create(**view.request("openai"))
            client.responses.create(**view.request("openai-responses"))
            client.models.generate_content(**view.request("gemini"))
        """
        if self.tools is None:
            hint = "give them again when you open the session: tools=…"
            text = "the tools of this session were given in another process, and are unknown in this process"
            raise InputError(text, hint=hint)
        rendered = self.render(format)
        if rendered.parameters and not has_thinking_on(extra):
            rendered = self._without_thinking().render(format)
        if rendered.format == "anthropic" and must_not_think(extra.get("thinking"), rendered.body["messages"]):
            extra = {**extra, "thinking": THINKING_OFF}
        return request_body(
            rendered,
            model=self.model or model_of(""),
            tools=self.tools,
            max_tokens=max_tokens,
            reply_room=self.window - self.usable,
            window=self.window,
            extra=extra,
        )

    def _without_thinking(self) -> View:
        """The view for a request in which thinking is off.

        Such a request must not ask the provider to drop thinking blocks, so the view contains no thinking.
        """
        messages = tuple([without_thinking(each) if has_thinking(each) else each for each in self.messages])
        return self._replace(messages=messages, unbound=0, repairs=None, native=None)

    def _readable_messages(self) -> tuple[Message, ...]:
        """The messages for a format that cannot contain the provider's own summary (see `native`).

        The digest of the same messages, which is readable text, replaces this summary.
        """
        if self.native is None or self.native.native is None:
            return self.messages
        block = self.native.native.message
        return tuple([self.native.message if message is block else message for message in self.messages])

    def __str__(self) -> str:
        width = max(len(name) for name in self.blocks)
        lines: list[str] = []
        lead = next((index for index, one in enumerate(self.messages) if one.role != "system"), len(self.messages))
        for name, size in self.blocks.items():
            if name == "history" and self.cut > lead:
                lines.append(f"{'─' * 3} fold line: {handle(0, self.cut - 1)} above are kept in the record {'─' * 3}")
            share = size / max(1, self.usable)
            bar = "█" * round(min(share, 1) * BAR) + "…" * (share > 1)
            lines.append(f"{name:<{width}} {size:>9,} {share:>6.1%} {bar}".rstrip())
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
    hint = "pass the view that the reply answers, or str(view.identity)"
    check_type(view, (str, ViewIdentity, type(None)), "view", hint=hint)
    return ViewIdentity.parse(view) if isinstance(view, str) else view


def marker(first: int, last: int, *, kept: int = 0) -> Message:
    """A message with one line, which replaces messages that were folded without a digest.

    `kept` is the number of messages from `first` to `last` that are still in the view.
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
    before, after = (
        tuple([timeline.kept_message(index, kept) for index in each if index not in timeline.removed])
        for each in around_digest(timeline, fold)
    )
    if fold.digest is None:
        return lead + _from_user(timeline, fold, before + after)
    digest = fold.digest.message_for(timeline.target)
    if digest is not fold.digest.message:
        return (*lead, digest, *after)
    if digest.role == "system":
        return (*lead, digest, *_from_user(timeline, fold, after))
    return lead + _from_user(timeline, fold, (*before, digest, *after))


def around_digest(timeline: Timeline, fold: Fold) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Indexes of the messages that a fold keeps: first those that the view shows before the digest, then those after
    it.
    """
    digest = fold.digest
    is_first = digest is not None and (
        digest.message.role == "system" or digest.message_for(timeline.target) is not digest.message
    )
    return ((), (*fold.pinned, *fold.carried)) if is_first else (fold.pinned, fold.carried)


def _from_user(timeline: Timeline, fold: Fold, middle: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages after the system messages.

    If the first of these messages is not a user message, a marker is added before it.
    """
    first = middle[0] if middle else next(iter(timeline.messages_from(fold.cut)), None)
    if first is None or first.role == "user" or fold.cut <= timeline.lead:
        return middle
    gone = marker(timeline.lead, fold.cut - 1, kept=len(fold.pinned) + len(fold.carried))
    return (gone if timeline.has_recall else edited_texts(gone, without_advice), *middle)


def messages_of(timeline: Timeline, format: str = "anthropic") -> tuple[Message, ...]:
    """The messages of the view. If any message is broken, the messages are repaired for a wire format."""
    messages = head(timeline) + tuple(timeline.messages_from(timeline.cut))
    return repair(messages, format).messages if _is_broken(timeline) else messages


def _is_broken(timeline: Timeline) -> bool:
    """Whether the view has an unpaired call or result, a repeated id, or a blank message.

    A message that the fold carried over is checked only if the view shows the whole message. If the view leaves out
    tool results of the message, the check would need the calls of these results, and a session that is opened again may
    not have read them.
    """
    broken, fold = timeline.broken, timeline.fold
    if not broken or broken[-1] >= timeline.cut:
        return bool(broken)
    if fold is None:
        return False
    kept = {*fold.pinned, *fold.carried}
    return any(
        index in broken and timeline.kept_message(index, kept) is timeline.shown[index] for index in fold.carried
    )


class ComposedView:
    """The messages of a timeline's view.

    The messages are kept for the next view, so until the next fold only new messages are read.
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
        """The messages of the view. If any message is broken, the messages are repaired."""
        timeline = self.timeline
        if timeline.fold is not self._fold:
            self._fold, self._list, self._shown = timeline.fold, list(head(timeline)), timeline.cut
            self._broken = RepairedHistory(self.format, self.model)
            self.repairs = RepairedHistory(self.format, self.model)
            digest = timeline.fold.digest if timeline.fold else None
            is_native = digest is not None and digest.message_for(timeline.target) is not digest.message
            self.native = digest if is_native else None
        self._list += timeline.messages_from(self._shown)
        self._shown = len(timeline.shown)
        if _is_broken(timeline):
            return self._broken.update(self._list, grown=True, ending=False).messages
        return tuple(self._list)


def _shows_something(message: Message) -> bool:
    """Whether a message is not a system message, and has a visible text or a part that is not text."""
    if message.role == "system" or message.text == NO_EARLIER_PROMPT:
        return False
    return any(not isinstance(part, Text) or _VISIBLE.search(part.text) for part in message.parts)
