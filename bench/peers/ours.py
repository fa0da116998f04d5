"""foldline: a session with a preset and a counter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bench.peers.talk import Call, Said, Talk, picture
from foldline.message import Media, Message, Part, Text, ToolCall, ToolResult
from foldline.policy import Policy
from foldline.session import Session
from foldline.view.compose import View
from foldline.wire.validate import check


class Refused(Exception):
    """A provider would refuse the view."""


class Ours:
    """A session with a budget. No tokens are reserved for the reply, so the budget is the whole window.

    A marker replaces the folded messages, because the summarizers of all peers are stubs. With `digest`, the local
    digest is used.
    """

    def __init__(
        self, budget: int, *, preset: str = "balanced", counter: str = "chars/4", model: str = "", digest: bool = False
    ) -> None:
        policy = Policy.preset(preset).but(
            window_tokens=budget, reply_tokens=0, reserve_tokens=0, counter=counter, rules=_rules(preset, budget)
        )
        if policy.leave == "digest" and not digest:
            policy = policy.but(leave="marker")
        self.session = Session(policy=policy, model=model)

    def native(self, talk: Sequence[Said]) -> list[Message]:
        """The messages in the form that the peer takes."""
        return [_message(said) for said in talk]

    def add(self, native: list[Message]) -> None:
        """Add messages."""
        self.session.add(*native)

    def view(self) -> View:
        """The view that would be sent."""
        return self.session.view()

    def said(self, view: View) -> Talk:
        """The view as a `Talk`. Raises `Refused` if the view breaks a rule of Anthropic or OpenAI."""
        for provider in ("anthropic", "openai"):
            for violation in check(provider, view.render(provider).body):
                raise Refused(f"{provider} {violation.code}")
        return [said for message in view.messages for said in _said(message)]


def _rules(preset: str, budget: int) -> tuple[str, ...]:
    """The rules of the preset. An absolute limit on history is replaced by the budget, because it would never be
    reached.
    """
    rules = tuple(str(rule) for rule in Policy.preset(preset).rules)
    return tuple(f"clip when history > {budget:,}" if "history >" in rule else rule for rule in rules)


def _message(said: Said) -> Message:
    parts: list[Part] = [Text(text=said.text)] if said.text and said.role != "tool" else []
    parts += [Media(kind="image", mime="image/png", data=picture())] * said.images
    parts += [ToolCall(id=call.id, name=call.name, arguments=call.arguments) for call in said.calls]
    if said.role == "tool":
        parts.append(ToolResult(call_id=said.answers, parts=(Text(text=said.text),)))
    return Message(role=said.role, parts=tuple(parts))


def _said(message: Message) -> Iterable[Said]:
    results = message.results
    for result in results:
        yield Said("tool", result.text, answers=result.call_id)
    calls = tuple(Call(call.id, call.name, call.arguments) for call in message.calls)
    images = sum(isinstance(part, Media) for part in message.parts)
    if message.text or calls or images or not results:
        yield Said(message.role, message.text, calls, images=images)
