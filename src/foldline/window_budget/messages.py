# ruff: noqa: N815  (the field names are the documented ones)
"""The message, block and model types that the documented examples use.

You need not use these types: every function of this API also accepts wire dicts and any object with `role` and
`content`. A digest has the type of your own user messages. If that type cannot be created, the digest is a
`UserMessage`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A text block."""

    text: str
    type: str = "text"


@dataclass(frozen=True, slots=True)
class ThinkingBlock:
    """A thinking block."""

    thinking: str
    thinkingSignature: str | None = None
    type: str = "thinking"


@dataclass(frozen=True, slots=True)
class ToolCallBlock:
    """A tool call; a `ToolResultMessage` holds its result."""

    id: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    type: str = "toolCall"


@dataclass(frozen=True, slots=True)
class ImageBlock:
    """An image, in base64."""

    data: str = field(repr=False)
    mimeType: str
    type: str = "image"


Block: TypeAlias = TextBlock | ThinkingBlock | ToolCallBlock | ImageBlock
Content: TypeAlias = str | Sequence[Block]


@dataclass(frozen=True, slots=True)
class Usage:
    """The token counts that the provider reported for a request. Each token is in only one of these counts."""

    input: int = 0
    output: int = 0
    cacheRead: int = 0
    cacheWrite: int = 0


@dataclass(frozen=True, slots=True)
class UserMessage:
    """A user message. Times are milliseconds since 1970."""

    content: Content
    timestamp: float | None = None
    role: str = "user"


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """A model reply."""

    content: Content
    usage: Usage | None = None
    stopReason: str = "stop"
    errorMessage: str | None = None
    model: str = ""
    timestamp: float | None = None
    role: str = "assistant"


@dataclass(frozen=True, slots=True)
class ToolResultMessage:
    """The result of one tool call."""

    toolCallId: str
    content: Content
    toolName: str = ""
    isError: bool = False
    timestamp: float | None = None
    role: str = "toolResult"


@dataclass(frozen=True, slots=True)
class BashExecutionMessage:
    """A shell command that the user ran, with its output."""

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
    """A message that an extension of the host added."""

    content: Content
    customType: str = ""
    timestamp: float | None = None
    role: str = "custom"


@dataclass(frozen=True, slots=True)
class BranchSummaryMessage:
    """The summary of an abandoned branch."""

    summary: str
    timestamp: float | None = None
    role: str = "branchSummary"


@dataclass(frozen=True, slots=True)
class CompactionSummaryMessage:
    """A summary that the host wrote."""

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
    """A model: its window, name and reply limit."""

    contextWindow: int
    id: str = ""
    maxTokens: int | None = None


@dataclass(slots=True)
class Context:
    """The request passed to a completer."""

    messages: list[Any]
    systemPrompt: str | None = None
    tools: list[Any] | None = None
    """Always None, because a digest is written without tools."""


@dataclass
class SimpleStreamOptions:
    """The options passed to a completer. The window budget sets the first three options; a host may set the others."""

    reasoning: str | None = None
    signal: Any = None
    maxTokens: int | None = None
    temperature: float | None = None
    apiKey: str | None = field(default=None, repr=False)
    sessionId: str | None = None
    onPayload: Callable[[Any], None] | None = None
    headers: dict[str, str] | None = field(default=None, repr=False)
    thinkingBudgets: Any = None
