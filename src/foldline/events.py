"""What happened, told to whoever listens: a callable of the caller's, the log, and the trace that is running.

An event is told after what it tells of is a fact: a fold is "committed" once the ledger has it. Nobody who listens can
disturb the session, and no event holds what was said: only numbers, names and reasons.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

KINDS = ("measured", "warned", "planned", "started", "committed", "skipped", "failed", "pruned", "recalled", "repaired")
"""Everything that is ever told."""

_LOG = logging.getLogger("foldline")
_LEVELS = {"measured": logging.DEBUG, "failed": logging.WARNING}


class Event(NamedTuple):
    """Something that happened in a session."""

    kind: str
    session: str
    facts: Mapping[str, Any]

    def __str__(self) -> str:
        told = ", ".join(f"{name} {value}" for name, value in self.facts.items() if value not in ("", None))
        return f"{self.session or 'session'}: {self.kind}{': ' * bool(told)}{told}"


Listener = Callable[[Event], None]


def heard(listener: Listener | None) -> bool:
    """Whether anybody would hear of what happens at every turn."""
    return listener is not None or _LOG.isEnabledFor(logging.DEBUG) or "opentelemetry.trace" in sys.modules


def tell(event: Event, listener: Listener | None = None) -> None:
    """Tell everybody; a listener that fails is told about in the log."""
    level = _LEVELS.get(event.kind, logging.INFO)
    if _LOG.isEnabledFor(level):
        _LOG.log(level, "%s", event)
    _trace(event)
    if listener is None:
        return
    try:
        listener(event)
    except Exception:  # noqa: BLE001 (whatever a listener raises, the session goes on)
        _LOG.warning("a listener failed at %s", event.kind, exc_info=True)


def _trace(event: Event) -> None:
    """Add the event to the running OpenTelemetry span, where the host uses it."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return
    span = trace.get_current_span()
    if span.is_recording():
        facts = {f"foldline.{name}": value for name, value in event.facts.items() if value is not None}
        span.add_event(f"foldline.{event.kind}", {"foldline.session": event.session, **facts})
