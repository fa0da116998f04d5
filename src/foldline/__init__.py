"""foldline keeps a long LLM conversation inside the model's context window, and keeps every message for ever.

The public names are imported when they are first used, so that `import foldline` stays as light as the interpreter.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foldline.errors import ConfigError, FoldlineError, FormatUnknown, InputError, ViewTooLarge, WireError
    from foldline.message import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult, Usage
    from foldline.plan.gate import Need
    from foldline.policy import Policy
    from foldline.session import Ledger, Preview, Session, open  # noqa: A004
    from foldline.session.async_session import AsyncSession
    from foldline.view.compose import View
    from foldline.wire import Rendered, Request, Transcript, parse, read, render

__version__ = "0.1.0"

_HOME = {
    "AsyncSession": "session.async_session",
    "ConfigError": "errors",
    "FoldlineError": "errors",
    "FormatUnknown": "errors",
    "InputError": "errors",
    "Ledger": "session",
    "Media": "message",
    "Message": "message",
    "Need": "plan.gate",
    "Opaque": "message",
    "Part": "message",
    "Policy": "policy",
    "Preview": "session",
    "Rendered": "wire",
    "Request": "wire",
    "Session": "session",
    "Text": "message",
    "Thinking": "message",
    "ToolCall": "message",
    "ToolResult": "message",
    "Transcript": "wire",
    "Usage": "message",
    "View": "view.compose",
    "ViewTooLarge": "errors",
    "WireError": "errors",
    "open": "session",
    "parse": "wire",
    "read": "wire",
    "render": "wire",
}

__all__ = [
    "AsyncSession",
    "ConfigError",
    "FoldlineError",
    "FormatUnknown",
    "InputError",
    "Ledger",
    "Media",
    "Message",
    "Need",
    "Opaque",
    "Part",
    "Policy",
    "Preview",
    "Rendered",
    "Request",
    "Session",
    "Text",
    "Thinking",
    "ToolCall",
    "ToolResult",
    "Transcript",
    "Usage",
    "View",
    "ViewTooLarge",
    "WireError",
    "open",
    "parse",
    "read",
    "render",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'foldline' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"foldline.{home}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
