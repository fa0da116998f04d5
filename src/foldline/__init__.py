"""foldline keeps a long LLM conversation inside the model's context window, and stores every message permanently.

The public names are imported when they are first used, so that `import foldline` is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foldline import digesters
    from foldline.errors import ConfigError, FoldlineError, FormatUnknown, InputError, ViewTooLarge, WireError
    from foldline.fitting import fit
    from foldline.integrations.wrapped_clients import wrap
    from foldline.message import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult, Usage
    from foldline.plan.gate import Need
    from foldline.policy import Policy
    from foldline.recall.tools import Tools
    from foldline.session import Ledger, Preview, Session, open  # noqa: A004
    from foldline.session.async_session import AsyncSession
    from foldline.session.async_tools import AsyncTools
    from foldline.view.compose import View
    from foldline.wire import Rendered, Request, Transcript, parse, read, render
    from foldline.wire.overflow_signals import is_overflow

__version__ = "0.2.0"

__all__ = ["AsyncSession", "AsyncTools", "Tools"]
__all__ += ["ConfigError", "FoldlineError", "FormatUnknown", "InputError", "Ledger", "Media", "Message"]
__all__ += ["Need", "Opaque", "Part", "Policy", "Preview", "Rendered", "Request", "Session", "Text", "Thinking"]
__all__ += ["ToolCall", "ToolResult", "Transcript", "Usage", "View", "ViewTooLarge", "WireError", "open", "parse"]
__all__ += ["digesters", "fit", "is_overflow", "read", "read_all", "render", "wrap"]

_MODULES = {
    "errors": ("ConfigError", "FoldlineError", "FormatUnknown", "InputError", "ViewTooLarge", "WireError"),
    "fitting": ("fit",),
    "integrations.wrapped_clients": ("wrap",),
    "message": ("Media", "Message", "Opaque", "Part", "Text", "Thinking", "ToolCall", "ToolResult", "Usage"),
    "plan.gate": ("Need",),
    "policy": ("Policy",),
    "session": ("Ledger", "Preview", "Session", "open"),
    "recall.tools": ("Tools",),
    "session.async_session": ("AsyncSession",),
    "session.async_tools": ("AsyncTools",),
    "view.compose": ("View",),
    "wire": ("Rendered", "Request", "Transcript", "parse", "read", "read_all", "render"),
    "wire.overflow_signals": ("is_overflow",),
}


def __getattr__(name: str) -> Any:
    if name == "digesters":
        return import_module("foldline.digesters")
    for module, names in _MODULES.items():
        if name in names:
            value = globals()[name] = getattr(import_module(f"foldline.{module}"), name)
            return value
    raise AttributeError(f"module 'foldline' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
