"""Collects tool calls for the digest, and finds open work: calls without a result, background work without a report.

For each place (a file, a folder, a command), the newest call that read, searched or ran something is kept. These calls
show how the tools are called, with full paths, and where the agent looked last.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from math import log
from typing import Any, NamedTuple

from foldline.message import ToolCall
from foldline.tool_calls import InterpretedCall

_MAX_PLACES, _CALL_CHARS = 80, 260
_LONG_CHARS = 400
"""An argument with more characters than this is content. A call with such an argument is not kept."""


class MadeCall(NamedTuple):
    """The newest call at a place."""

    text: str
    message_index: int
    times: int = 1
    """Number of calls at this place."""
    is_folder: bool = False
    """Whether the place is a folder. Other sections of a digest do not show the full path of a folder."""

    def weight(self, end: int) -> float:
        """A score for the probability that the place is needed again from message `end` on. Higher
        means more likely.
        """
        return (0.8 if self.is_folder else 0.0) + log(1 + self.times) - 0.45 * log(max(1, end - self.message_index))


class CallLog:
    """Collects the calls while messages are read. `clean` removes secrets from a text."""

    def __init__(self, prior: Mapping[str, MadeCall], clean: Callable[[str], str]) -> None:
        self.calls, self._clean = dict(prior), clean

    def add(self, index: int, name: str, arguments: Mapping[str, Any], call: InterpretedCall) -> None:
        """Add a call that reads, searches or runs something."""
        shown = {key: value for key, value in arguments.items() if key != "description"}
        place = call.path or call.command or str(shown.get("path") or "")
        if call.kind == "edit" or call.tasks or not place or not all(map(_is_short, shown.values())):
            return
        place = self._clean(place)
        old = self.calls.pop(place, None)
        text = self._clean(f"{name} {json.dumps(shown, ensure_ascii=False)}")
        if len(text) <= _CALL_CHARS:
            is_folder = "/" in place and " " not in place and "." not in place.rpartition("/")[2]
            self.calls[place] = MadeCall(text, index, old.times + 1 if old else 1, is_folder)
        if len(self.calls) > _MAX_PLACES:
            del self.calls[min(self.calls, key=lambda key: (self.calls[key].weight(index + 1), key))]


def _is_short(value: object) -> bool:
    return isinstance(value, int | float) or (isinstance(value, str) and len(value) <= _LONG_CHARS)


# Open work

OPEN_WORK_CHARS = 500
"""Maximum length of an entry for a call without a result or for background work without a report."""
NO_RESULT, NO_REPORT = ": no result yet", " runs, no report yet"
OPEN_CALL = re.compile(rf"(.+) \((\S+)\){NO_RESULT}")
RUNNING = re.compile(rf".+: (\S+){NO_REPORT}")
_WORDS_CHARS, _READ_CHARS, _HEAD_CHARS = 300, 4_000, 2_000
_STARTED = re.compile(
    r"\b(?:launched|running|started|runs|moved|queued|submitted)\b[^\n]{0,40}\b(?:background|asynchronously|async)\b"
    r"|\b(?:async|background)[\w -]{0,30}\b(?:launched|started|running|queued|submitted)\b",
    re.IGNORECASE,
)
_WORK_ID = re.compile(
    r"\b(?:agent|task|shell|bash|job|process|run)?[ _]?id[\"'`]?(?: is)?[:= ]{1,3}[\"'`]?([A-Za-z0-9][\w.-]{2,63})",
    re.IGNORECASE,
)
_ENDED = re.compile(
    r"\b(?:completed?|finished|failed|killed|stopped|cancell?ed|exited|done|exit[ _]code)\b", re.IGNORECASE
)
_GOES_ON = re.compile(r"<status>running|\bstill running\b", re.IGNORECASE)


def call_words(call: ToolCall, clean: Callable[[str], str]) -> str:
    """The name and the arguments of a call on one line, without secrets and shortened. `clean` removes secrets."""
    words = " ".join(f"{call.name} {clean(call.arguments[:_READ_CHARS])}".split())
    return words if len(words) <= _WORDS_CHARS else f"{words[:_WORDS_CHARS]} …"


def reports_end(text: str) -> bool:
    """Whether a text says that something has ended. False if it says that the work still runs."""
    return _ENDED.search(text) is not None and _GOES_ON.search(text) is None


def background_id(text: str) -> str:
    """The id of the work that a result says was started in the background; "" if it says no such thing.

    >>> background_id("Async agent launched successfully. agentId: a1b2c3")
    'a1b2c3'
    >>> background_id("Command running in background with ID: bash_1")
    'bash_1'
    """
    head = text[:_HEAD_CHARS]
    found = _WORK_ID.search(head) if _STARTED.search(head) else None
    return found[1].rstrip(".") if found else ""
