"""The newest calls as they were made, one for each place (a file, a folder, a command).

They show how the tools are called, with full paths, and where the agent looked last.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from math import log
from typing import Any, NamedTuple

from foldline.tool_calls import InterpretedCall

_MAX_PLACES = 80
_CALL_CHARS = 260
_LONG_CHARS = 400
"""A longer argument is content, which is not shown."""


class MadeCall(NamedTuple):
    """The newest call at a place."""

    text: str
    message_index: int
    times: int = 1
    """Number of calls at this place."""
    is_folder: bool = False
    """Whether the place is a folder. Its full path stands nowhere else in a digest."""

    def weight(self, end: int) -> float:
        """How likely the place is needed again from message `end` on; higher is likelier."""
        return (0.8 if self.is_folder else 0.0) + log(1 + self.times) - 0.45 * log(max(1, end - self.message_index))


class CallLog:
    """Collects the calls while messages are read."""

    def __init__(self, prior: Mapping[str, MadeCall], clean: Callable[[str], str]) -> None:
        """`clean` removes secrets from a text."""
        self.calls, self._clean = dict(prior), clean

    def add(self, index: int, name: str, arguments: Mapping[str, Any], call: InterpretedCall) -> None:
        """Add a call that reads, searches or runs something."""
        if call.kind == "edit" or call.tasks:
            return
        shown = {key: value for key, value in arguments.items() if _is_short(value) and key != "description"}
        place = self._clean(call.path or call.command or str(shown.get("path") or ""))
        if not place or len(shown) + ("description" in arguments) < len(arguments):
            return
        old = self.calls.pop(place, None)
        text = self._clean(f"{name} {json.dumps(shown, ensure_ascii=False)}")
        if len(text) <= _CALL_CHARS:
            self.calls[place] = MadeCall(text, index, old.times + 1 if old else 1, is_folder=_is_folder(place))
        if len(self.calls) > _MAX_PLACES:
            worst = min(self.calls, key=lambda key: (self.calls[key].weight(index + 1), key))
            del self.calls[worst]


def _is_folder(place: str) -> bool:
    return "/" in place and " " not in place and "." not in place.rpartition("/")[2]


def _is_short(value: object) -> bool:
    return isinstance(value, int | float) or (isinstance(value, str) and len(value) <= _LONG_CHARS)
