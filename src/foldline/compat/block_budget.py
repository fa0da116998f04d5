"""Block budget: builds a prompt from blocks (memory, summary, history), each with a cap on its size.

`AgentConfig` is the documented configuration. `MemoryManager` loads memory, summary and history from a storage and
builds the messages of a request. `PromptAssembler` builds them from blocks that the caller passes. Nothing is stored,
and the caller's objects are not changed. `block_caps` applies the caps.

    manager = MemoryManager(storage, context_history_max_words=1_000)
    messages = await manager.build_messages("mail", "ann", "And now?", "You are helpful.")
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from inspect import isawaitable
from typing import Any, Protocol

from foldline.compat.block_caps import AgentConfig, BlockReport, Blocks, FittedBlocks, fit_blocks, size_of
from foldline.compat.caller_messages import CallerMessages, PlainMessage, render_list
from foldline.compat.counters import CountFunction, counter_of
from foldline.errors import ConfigError
from foldline.measure.estimator import WORDS, Counter
from foldline.message import Message, Text, system, user
from foldline.placeholders import message_without_handles
from foldline.plan.timeline import timeline_of
from foldline.view.compose import marker
from foldline.wire.field_access import pick, text_of

__all__ = ["AgentConfig", "AssembledPrompt", "MemoryManager", "MemoryPort", "PromptAssembler"]

MEMORY_HEADING = "## Your Memory"
SUMMARY_HEADING = "## Conversation Summary"

_LOG = logging.getLogger("foldline.block_budget")
_HISTORY, _TOTAL = "context_history_max_words", "context_total_max_words"
_STRICT = ("anthropic", "gemini")
"""Formats in which the list of messages must begin with a user message and cannot hold the system prompt."""


class MemoryPort(Protocol):
    """The storage of a bot: its messages in all channels, its memory, and the summary of older messages.

    The methods may be plain or async functions.
    """

    def load_history(self) -> Sequence[Any] | Awaitable[Sequence[Any]]:
        """All messages in order, each with `role`, `content`, `channel` and `sender_id`."""

    def load_global_memory(self) -> str | Awaitable[str]:
        """The memory as text."""

    def load_global_summary(self) -> str | Awaitable[str]:
        """The summary of older messages."""


class MemoryManager:
    """Builds the messages of each request from a storage, under the caps of the documented configuration.

    `owner_aliases` are the ids of the bot's owner. An id is a text, or an object or mapping with `address` and
    `channel`. In the history, messages from these ids are labelled `owner`. The other settings are those of
    `AgentConfig`.
    """

    def __init__(
        self,
        storage: MemoryPort,
        *,
        owner_aliases: Sequence[Any] = (),
        context_token_counter: Counter | CountFunction | None = None,
        **settings: Any,
    ) -> None:
        if not hasattr(storage, "load_history"):
            raise ConfigError(
                f"a {type(storage).__name__} is not a storage",
                hint="it needs load_history, load_global_memory and load_global_summary; or use PromptAssembler",
            )
        self._storage = storage
        self._assembler = PromptAssembler(_config(settings), counter=context_token_counter, owner_aliases=owner_aliases)

    @property
    def config(self) -> AgentConfig:
        """The caps and other settings that this manager uses."""
        return self._assembler.config

    async def build_messages(
        self,
        channel: str,  # noqa: ARG002 (documented)
        sender_id: str,  # noqa: ARG002 (documented)
        user_message: str,
        system_prompt: str,
    ) -> list[Any]:
        """The messages of a request: system message, the labelled history that fits, and the new message.

        The system message and the new message have the same type as the stored messages. The history has the messages
        of all channels, so `channel` and `sender_id` have no effect.
        """
        history = await _awaited(self._storage.load_history())
        made = self._assembler.assemble(
            base_prompt=system_prompt,
            user_message=_like(history, "user", user_message),
            memory=await _awaited(self._storage.load_global_memory()),
            summary=await _awaited(self._storage.load_global_summary()),
            history=history,
        )
        return [_like(history, "system", made.system), *made.turns]


@dataclass(frozen=True, slots=True, kw_only=True)
class AssembledPrompt:
    """A prompt: the system text, the messages in the caller's format, and a report on the caps."""

    system: str
    turns: list[Any]
    """The history that fits, followed by the new message."""
    report: BlockReport
    format: str

    @property
    def messages(self) -> list[Any]:
        """System message, history and new message as one list."""
        if self.format in _STRICT:
            raise ConfigError(
                f"a list of {self.format} messages cannot hold the system prompt",
                hint="send `turns` as the messages, and `system` in the request's system field",
            )
        return [*render_list([system(self.system)], self.format), *self.turns]


class PromptAssembler:
    """Assembles prompts under one configuration, with the application's token counter."""

    def __init__(
        self,
        config: AgentConfig | None = None,
        *,
        counter: Counter | CountFunction | None = None,
        format: str | None = None,
        owner_aliases: Sequence[Any] = (),
    ) -> None:
        self.config = config or AgentConfig()
        self._format = format
        self._owners = frozenset(map(_alias, owner_aliases))
        self.fallback = self.config.context_budget_mode == "tokens" and counter is None
        self._counter: Counter = WORDS
        if counter is not None and self.config.context_budget_mode == "tokens":
            self._counter = counter_of(counter)
        if self.fallback:
            _LOG.warning("context_budget_mode is tokens, but no counter was given: counting words")

    def assemble(
        self, *, base_prompt: str, user_message: Any, memory: str = "", summary: str = "", history: Sequence[Any] = ()
    ) -> AssembledPrompt:
        """The prompt in parts. `user_message` is a text, or a message in the format of the history."""
        caller = CallerMessages([*history, *([] if isinstance(user_message, str) else [user_message])], self._format)
        new = caller.messages[len(history) :] or (user(str(user_message)),)
        shown = [self._labelled(message, item) for message, item in zip(caller.messages, history, strict=False)]
        timeline = timeline_of(shown, (size_of(message, self._counter) for message in shown))
        blocks = Blocks(memory=memory, digest=summary, history=timeline)
        fitted = fit_blocks(blocks, self._caps(len(timeline), caller.format), self._counter, _headed)
        report = replace(fitted.report, fallback=self.fallback)
        _LOG.debug("context budget: %s", report)
        return AssembledPrompt(
            system="\n\n".join(filter(None, (base_prompt, _headed(fitted.memory, fitted.digest)))),
            turns=caller.restore((*_opening(fitted, caller.format), *fitted.history, *new)),
            report=report,
            format=caller.format,
        )

    def _caps(self, count: int, format: str) -> AgentConfig:
        """The settings for a prompt in this format, with a history of `count` messages.

        If the list must begin with a user message, the caps are lowered by the size of the marker for omitted messages.
        """
        config = replace(self.config, context_budget_mode="words") if self.fallback else self.config
        if format not in _STRICT:
            return config
        size = size_of(_omission_marker(count), self._counter)
        return replace(
            config,
            context_history_max_words=max(1, config.context_history_max_words - size),
            context_total_max_words=max(1, config.context_total_max_words - size),
        )

    def _labelled(self, message: Message, item: Any) -> Message:
        """The message with a label (channel and sender) before its text.

        A message that has no channel, or that already has the label, is returned unchanged.
        """
        channel, sender = (
            text_of(pick(item, "channel")),
            text_of(pick(item, "senderId")) or text_of(pick(item, "sender")),
        )
        first = next((part for part in message.parts if isinstance(part, Text)), None)
        if not channel or first is None:
            return message
        is_owner = bool(self._owners & {(sender, channel), (sender, "")})
        label = f"[{channel} / {'owner' if is_owner else sender or 'unknown'}]\n"
        if first.text.startswith(label):
            return message
        labelled = Text(text=label + first.text)
        return message.with_parts(*(labelled if part is first else part for part in message.parts))


def _config(settings: dict[str, Any]) -> AgentConfig:
    """The keyword settings as an `AgentConfig`.

    A history cap above the total cap is lowered to the total cap.
    """
    known = AgentConfig.__dataclass_fields__
    for name in settings:
        if name not in known:
            raise ConfigError(f"unknown setting {name!r}", hint=f"use one of {', '.join(known)}")
    total, history = settings.get(_TOTAL), settings.get(_HISTORY, AgentConfig().context_history_max_words)
    if isinstance(total, int) and isinstance(history, int) and total < history:
        settings = {**settings, _HISTORY: total}
    return AgentConfig(**settings)


async def _awaited(found: Any) -> Any:
    return await found if isawaitable(found) else found


def _like(history: Sequence[Any], role: str, text: str) -> Any:
    """A new message of the same type as the newest stored message.

    If that type cannot be created, a `PlainMessage` is returned.
    """
    newest: Any = history[-1] if history else None
    if isinstance(newest, dict):
        return {"role": role, "content": text}
    if isinstance(newest, Message):
        return Message(role=role, parts=(Text(text=text),))
    try:
        made: Any = type(newest)(role=role, content=text)
    except Exception:  # noqa: BLE001 (the class of a host may require other arguments)
        return PlainMessage(role=role, content=text)
    return made


def _alias(given: Any) -> tuple[str, str]:
    """The id and the channel of one item of `owner_aliases`. The channel is "" if the id is valid in all channels."""
    return text_of(given) or text_of(pick(given, "address")), text_of(pick(given, "channel"))


def _headed(memory: str, summary: str) -> str:
    """The text of memory and summary, each under its heading. An empty block is left out."""
    blocks = ((MEMORY_HEADING, memory), (SUMMARY_HEADING, summary))
    return "\n\n".join(f"{heading}\n\n{text}" for heading, text in blocks if text.strip())


def _omission_marker(left_out: int) -> Message:
    return message_without_handles(marker(0, max(0, left_out - 1)))


def _opening(fitted: FittedBlocks, format: str) -> tuple[Message, ...]:
    """A tuple with a user message that says how many messages are omitted; () if the list needs no such message.

    A list needs this message if the format demands a user message at the start and the first kept message is not from
    the user.
    """
    cut = fitted.report.left_out
    opens = format not in _STRICT or not cut or fitted.history[0].role == "user"
    return () if opens else (_omission_marker(cut),)
