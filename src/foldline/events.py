"""Events of a session. Events go to the caller's listener, the log, and the current OpenTelemetry span.

An event is emitted after the change that it reports. For example, "committed" means that the fold is already in the
ledger. An exception in a listener does not disturb the session. Events hold numbers, names and reasons, never the text
of a message.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

KINDS: dict[str, tuple[tuple[str, ...], str]] = {
    "measured": (("tokens", "usable"), "the request was measured, before any fold"),
    "corrected": (
        ("reported", "expected", "ratio"),
        "agreeing usage figures differ much from the estimate, so foldline uses them. `ratio`: reported / expected",
    ),
    "assumed": (("window", "reason"), "the model's window is a guess; emitted once for each model"),
    "warned": (("reason",), "a rule with the action `warn` or `pause` begins to fire"),
    "planned": (("cut", "reason"), "a fold will be made"),
    "started": (("cut", "by"), "a digest is being written; `by` is the name of the model, or `local`"),
    "committed": (
        ("cut", "before", "after", "by", "thinking_left_out"),
        "the fold is in the record; `before` and `after` are the tokens of the request",
    ),
    "skipped": (("reason",), "a fold was due or requested, but was not made"),
    "failed": (("cause",), "the model wrote no usable digest, or a background fold failed"),
    "pruned": (("results",), "large results became stubs, before they were sent for the first time or at a fold"),
    "unbound": (
        ("messages",),
        "thinking is left out, because it was written after other messages, with other tools or by another model",
    ),
    "repaired": (("messages",), "added messages break a rule of the provider; the view is repaired"),
    "interrupted": (("stop", "lost"), "a streamed reply ended too early; what was received is in the session"),
    "recalled": (("handle", "tokens"), "`recall` returned messages"),
    "truncated": (("sent", "read"), "the proxy saw that the provider read far fewer tokens than were sent"),
}
"""For each kind of event: the names of its facts, and when the event is emitted."""

TRACE = "opentelemetry.trace"
"""The name of OpenTelemetry's module. If the program has imported it, events are added to the current span."""
LOG = logging.getLogger("foldline")
_LEVELS = {
    "measured": logging.DEBUG,
    "assumed": logging.WARNING,
    "corrected": logging.WARNING,
    "failed": logging.WARNING,
    "truncated": logging.WARNING,
}


class Event(NamedTuple):
    """Something that happened in a session."""

    kind: str
    session: str
    facts: Mapping[str, Any]

    def __str__(self) -> str:
        facts = ", ".join(f"{name} {value}" for name, value in self.facts.items() if value not in ("", None))
        return f"{self.session or 'session'}: {self.kind}{': ' * bool(facts)}{facts}"


Listener = Callable[[Event], None]


def emit(event: Event, listener: Listener | None = None) -> None:
    """Send an event to the log, the current OpenTelemetry span and the listener.

    An exception of the listener is logged.
    """
    level = _LEVELS.get(event.kind, logging.INFO)
    if LOG.isEnabledFor(level):
        LOG.log(level, "%s", event)
    trace = sys.modules.get(TRACE)
    if trace is not None and (span := trace.get_current_span()).is_recording():
        facts = {f"foldline.{name}": value for name, value in event.facts.items() if value is not None}
        span.add_event(f"foldline.{event.kind}", {"foldline.session": event.session, **facts})
    if listener is None:
        return
    try:
        listener(event)
    except Exception:
        LOG.warning("a listener failed at %s", event.kind, exc_info=True)
