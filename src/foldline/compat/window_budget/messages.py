# ruff: noqa: N815  (the field names are the documented ones)
"""The messages, blocks and model that the documented examples name.

Nobody has to use them: every function here reads whatever has a `role` and a `content`, a host's own objects and wire
dicts included. They are for those who have no host, and for the one message that foldline itself adds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A text."""

    text: str
    type: str = "text"


@dataclass(frozen=True, slots=True)
class ThinkingBlock:
    """What the model thought."""

    thinking: str
    thinkingSignature: str | None = None
    type: str = "thinking"


@dataclass(frozen=True, slots=True)
class ToolCallBlock:
    """A call that a `ToolResultMessage` answers."""

    id: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    type: str = "toolCall"


@dataclass(frozen=True, slots=True)
class ImageBlock:
    """A picture, in base64."""

    data: str = field(repr=False)
    mimeType: str
    type: str = "image"


Block: TypeAlias = TextBlock | ThinkingBlock | ToolCallBlock | ImageBlock
Content: TypeAlias = str | Sequence[Block]


@dataclass(frozen=True, slots=True)
class Usage:
    """What the provider says a request held; the figures do not overlap."""

    input: int = 0
    output: int = 0
    cacheRead: int = 0
    cacheWrite: int = 0


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What the user said. Times are milliseconds since 1970."""

    content: Content
    timestamp: float | None = None
    role: str = "user"


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """What the model said, thought and called."""

    content: Content
    usage: Usage | None = None
    stopReason: str = "stop"
    errorMessage: str | None = None
    model: str = ""
    timestamp: float | None = None
    role: str = "assistant"


@dataclass(frozen=True, slots=True)
class ToolResultMessage:
    """The answer to one call."""

    toolCallId: str
    content: Content
    toolName: str = ""
    isError: bool = False
    timestamp: float | None = None
    role: str = "toolResult"


@dataclass(frozen=True, slots=True)
class BashExecutionMessage:
    """A command the user ran himself."""

    command: str
    output: str = ""
    exitCode: int | None = None
    cancelled: bool = False
    truncated: bool = False
    excludeFromContext: bool = False
    timestamp: float | None = None
    role: str = "bashExecution"


@dataclass(frozen=True, slots=True)
class CustomMessage:
    """A note of an extension."""

    content: Content
    customType: str = ""
    timestamp: float | None = None
    role: str = "custom"


@dataclass(frozen=True, slots=True)
class BranchSummaryMessage:
    """What came of a branch that was left."""

    summary: str
    timestamp: float | None = None
    role: str = "branchSummary"


@dataclass(frozen=True, slots=True)
class CompactionSummaryMessage:
    """What the host itself condensed before."""

    summary: str
    timestamp: float | None = None
    role: str = "compactionSummary"


AgentMessage: TypeAlias = (
    UserMessage
    | AssistantMessage
    | ToolResultMessage
    | BashExecutionMessage
    | CustomMessage
    | BranchSummaryMessage
    | CompactionSummaryMessage
)


@dataclass(frozen=True, slots=True)
class Model:
    """As much of a model as the budget needs."""

    contextWindow: int
    id: str = ""
    maxTokens: int | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """What a completer is asked."""

    systemPrompt: str
    messages: Sequence[Any]


@dataclass(frozen=True, slots=True)
class SimpleStreamOptions:
    """How it is asked."""

    reasoning: str | None = None
    signal: Any = None
    maxTokens: int | None = None
