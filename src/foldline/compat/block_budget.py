"""Block budget: a prompt of system text, memory, summary, the newest history and a new message, each under a cap.

`AgentConfig` is the documented configuration, `MemoryManager` assembles the prompt. Nothing is stored, and the caller's
objects are not changed. `block_caps` applies the caps.

    manager = MemoryManager(AgentConfig(context_history_max_words=1_000))
    messages = manager.build_messages(
        base_prompt="You are helpful.", memory=memory, summary=summary, history=history, user_message="And now?"
    )
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from foldline.compat.block_caps import BlockCaps, BlockReport, Blocks, FittedBlocks, fit_blocks, size_of
from foldline.compat.caller_messages import CallerMessages, render_list
from foldline.errors import ConfigError
from foldline.measure.estimator import WORDS, Counter
from foldline.message import Message, Text, system, user
from foldline.plan.timeline import timeline_of
from foldline.policy import Policy
from foldline.view.compose import marker
from foldline.wire.field_access import pick, text_of

MEMORY_HEADING = "## Your Memory"
SUMMARY_HEADING = "## Conversation Summary"

_LOG = logging.getLogger("foldline.block_budget")
_STRICT = ("anthropic", "gemini")
"""Formats whose list must begin with a user message and cannot hold the system prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """The caps, in the unit of `context_budget_mode`; the documented field names say `words` in both modes."""

    context_budget_mode: Literal["words", "tokens"] = "words"
    context_memory_max_words: int = 300
    context_summary_max_words: int = 500
    context_history_max_words: int = 2_500
    context_total_max_words: int = 4_500
    """Cap for base prompt, memory, summary and history together, without the new message."""
    context_dedupe_summary_against_memory: bool = True
    context_min_recent_messages: int = Policy.preset("squidbot").keep_messages
    """How many of the newest messages stay, shortened if necessary."""

    def __post_init__(self) -> None:
        for knob in fields(self):
            value = getattr(self, knob.name)
            if knob.type == "int" and (not isinstance(value, int) or isinstance(value, bool) or value <= 0):
                raise ConfigError(f"{knob.name} must be a whole number above 0, not {value!r}")
        if self.context_budget_mode not in ("words", "tokens"):
            raise ConfigError(
                f"context_budget_mode cannot be {self.context_budget_mode!r}", hint='use "words" or "tokens"'
            )
        if self.context_total_max_words < self.context_history_max_words:
            raise ConfigError(
                f"context_total_max_words ({self.context_total_max_words}) is smaller than context_history_max_words",
                hint="raise the total or lower the history",
            )

    def caps(self) -> BlockCaps:
        """The same settings as block caps."""
        return BlockCaps(
            unit=self.context_budget_mode,
            memory_cap=self.context_memory_max_words,
            digest_cap=self.context_summary_max_words,
            history_cap=self.context_history_max_words,
            total_cap=self.context_total_max_words,
            dedupe_digest=self.context_dedupe_summary_against_memory,
            keep_messages=self.context_min_recent_messages,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AssembledPrompt:
    """A prompt: the system text, the messages in the caller's format, and a report of the caps."""

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
                hint="call assemble(), and send its `system` in the request's system field",
            )
        return [*render_list([system(self.system)], self.format), *self.turns]


class MemoryManager:
    """Assembles prompts under one configuration, with a token counter that the application passes."""

    def __init__(
        self, config: AgentConfig | None = None, *, counter: Counter | None = None, format: str | None = None
    ) -> None:
        self.config = config or AgentConfig()
        self._format = format
        self.fallback = self.config.context_budget_mode == "tokens" and counter is None
        self._caps = self.config.caps()
        self._counter = counter if counter and self.config.context_budget_mode == "tokens" else WORDS
        if self.fallback:
            self._caps = replace(self._caps, unit="words")
            _LOG.warning("context_budget_mode is tokens, but no counter was given: counting words")

    def build_messages(
        self, *, base_prompt: str, user_message: Any, memory: str = "", summary: str = "", history: Sequence[Any] = ()
    ) -> list[Any]:
        """System message, the history that fits, and the new message, in the format of the history."""
        return self.assemble(
            base_prompt=base_prompt, user_message=user_message, memory=memory, summary=summary, history=history
        ).messages

    def assemble(
        self, *, base_prompt: str, user_message: Any, memory: str = "", summary: str = "", history: Sequence[Any] = ()
    ) -> AssembledPrompt:
        """The prompt in parts. `user_message` is a text, or a message in the format of the history."""
        caller = CallerMessages([*history, *([] if isinstance(user_message, str) else [user_message])], self._format)
        new = caller.messages[len(history) :] or (user(str(user_message)),)
        shown = [_labelled(message, item) for message, item in zip(caller.messages, history, strict=False)]
        timeline = timeline_of(shown, (size_of(message, self._counter) for message in shown))

        def frame(memory: str, digest: str) -> str:
            return system_text(base_prompt, memory, digest)

        caps = _reduced(
            self._caps, size_of(_omission_marker(len(timeline)), self._counter) if caller.format in _STRICT else 0
        )
        fitted = fit_blocks(Blocks(memory=memory, digest=summary, history=timeline), caps, self._counter, frame)
        report = replace(fitted.report, fallback=self.fallback)
        _LOG.debug("context budget: %s", report)
        return AssembledPrompt(
            system=frame(fitted.memory, fitted.digest),
            turns=caller.restore((*_opening(fitted, caller.format), *fitted.history, *new)),
            report=report,
            format=caller.format,
        )


def system_text(base_prompt: str, memory: str, summary: str) -> str:
    """The system prompt: the base, then memory and summary under headings; an empty block is left out."""
    blocks = ((MEMORY_HEADING, memory), (SUMMARY_HEADING, summary))
    return "\n\n".join([base_prompt, *(f"{heading}\n\n{text}" for heading, text in blocks if text.strip())])


def _reduced(caps: BlockCaps, size: int) -> BlockCaps:
    """The caps for history and total reduced by `size`, the size of the line that precedes a cut history."""
    history, total = caps.history_cap or 1, caps.total_cap or 1
    return replace(caps, history_cap=max(1, history - size), total_cap=max(1, total - size)) if size else caps


def _omission_marker(left_out: int) -> Message:
    return marker(0, max(0, left_out - 1))


def _opening(fitted: FittedBlocks, format: str) -> tuple[Message, ...]:
    """A marker for the omitted messages if the list must begin with a user message and does not; else ()."""
    cut = fitted.report.left_out
    opens = format not in _STRICT or not cut or fitted.history[0].role == "user"
    return () if opens else (_omission_marker(cut),)


def _labelled(message: Message, item: Any) -> Message:
    """The message with its channel and sender before its text; unchanged if it has no channel."""
    channel = text_of(pick(item, "channel"))
    if not channel:
        return message
    sender = text_of(pick(item, "senderId")) or text_of(pick(item, "sender")) or "unknown"
    first = next((part for part in message.parts if isinstance(part, Text)), None)
    if first is None:
        return message
    label = Text(text=f"[{channel} / {sender}]\n{first.text}")
    return message.with_parts(*(label if part is first else part for part in message.parts))
