"""Finds work that is still open: calls without a result, and work that goes on in the background without a report."""

from __future__ import annotations

import re
from collections.abc import Callable

from foldline.message import ToolCall

OPEN_WORK_CHARS = 500
"""Maximum length of an entry for a call without a result or for background work without a report."""
_CALL_CHARS, _READ_CHARS = 300, 4_000
NO_RESULT, NO_REPORT = ": no result yet", " runs, no report yet"
OPEN_CALL = re.compile(rf"(.+) \((\S+)\){NO_RESULT}")
RUNNING = re.compile(rf".+: (\S+){NO_REPORT}")
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
_HEAD_CHARS = 2_000


def call_words(call: ToolCall, clean: Callable[[str], str]) -> str:
    """The name and the arguments of a call on one line, without secrets and shortened. `clean` removes secrets."""
    words = " ".join(f"{call.name} {clean(call.arguments[:_READ_CHARS])}".split())
    return words if len(words) <= _CALL_CHARS else f"{words[:_CALL_CHARS]} …"


def reports_end(text: str) -> bool:
    """True for a text that says that something has ended, and not that it still runs."""
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
