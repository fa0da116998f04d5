"""Adds a transcript to a ledger as a session. Its own compactions become folds.

A new session is built in memory and added in one transaction. If the session exists already, only the new messages of
the transcript are added.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any

from foldline import ledger
from foldline.cli.shared.settings import Settings
from foldline.errors import InputError
from foldline.fold import Fold
from foldline.ledger import MAIN
from foldline.message import Message
from foldline.replay import context_segments
from foldline.session import Ledger, Session
from foldline.session.reply_ties import tie_replies
from foldline.view.identity import UNKNOWN_VIEW
from foldline.wire import Transcript


def add_transcript(target: Ledger, name: str, transcript: Transcript, settings: Settings) -> dict[str, Any]:
    """Add one conversation as a session, in one transaction; returns its report row."""
    messages = transcript.messages
    compacted = len(messages) - len(context_segments(transcript)[-1])
    if any(info.name == name for info in target.sessions()):
        new = _append_new(target, name, messages, compacted)
    else:
        target.load(_export_lines(name, transcript, settings))
        new = len(messages)
    figures = {"messages": len(messages), "new": new, "compacted": compacted}
    return {"session": name, "format": transcript.format, **figures}


def _export_lines(name: str, transcript: Transcript, settings: Settings) -> list[str]:
    """A new session as the lines of an export. A compaction by the agent becomes a fold."""
    with Ledger(ledger.open(":memory:")) as temporary:
        model = settings.model(transcript.model)
        session = temporary.session(name, model=model, policy=settings.policy, tools=transcript.tools)
        fill_session(session, transcript)
        return list(temporary.export())


def fill_session(session: Session, transcript: Transcript) -> None:
    """Add all messages of a transcript to a new session, so that a message has the same number as in the file."""
    segments = context_segments(transcript)
    first, compacted = len(segments[0]), len(transcript.messages) - len(segments[-1])
    seen, lost = transcript.messages[:first], transcript.messages[first:compacted]
    session.record.append(tie_replies(seen, session.state.identity().extension))
    session.record.append(tie_replies(lost, UNKNOWN_VIEW))
    _append_context(session, transcript.messages, max(first, compacted), compacted)
    session.refresh()


def _compaction(messages: Sequence[Message], cut: int) -> Fold:
    """The fold for a compaction by the agent.

    The fold has no digest, because the agent's summary is the first message after the cut.
    """
    return Fold(
        cut=cut,
        reason="compacted by the agent itself",
        made_at=cut,
        before=_reported(reversed(messages[:cut])),
        after=_reported(messages[cut:]),
    )


def _reported(messages: Iterable[Message]) -> int:
    """The request size in tokens that the first message with usage reports; 0 if no message has usage."""
    return next((message.meta.usage.prompt for message in messages if message.meta.usage), 0)


def _append_new(target: Ledger, name: str, messages: Sequence[Message], compacted: int) -> int:
    """Append the messages that a session does not have yet; returns their number."""
    store, branch = target.store, target.store.session(name, MAIN)
    known = 0
    for stored, message in zip_longest(store.read(branch), messages):
        if stored is None:
            break
        if stored.message != message:
            raise InputError(
                f"session {name!r} exists already and differs from the file at #{known + 1}",
                hint="import it under another name with --session",
            )
        known += 1
    if known < len(messages):
        head, session = store.head(branch), target.session(name)
        earlier = tie_replies(messages[known:compacted], UNKNOWN_VIEW)
        store.append(branch, earlier, expected=head.key)
        _append_context(session, messages, max(known, compacted), compacted)
    return len(messages) - known


def _append_context(session: Session, messages: Sequence[Message], start: int, compacted: int) -> None:
    """Append the messages from `start` on.

    They are in the agent's context, so they follow the fold of its compaction.
    """
    session.refresh()
    if start == compacted > session.timeline.cut:
        session.record.fold(_compaction(messages, compacted), session.state.snapshot.version.entry)
        session.refresh()
    fold = session.timeline.fold
    is_same = (fold.cut if fold else 0) == compacted
    identity = session.state.identity().extension if is_same else UNKNOWN_VIEW
    session.record.append(tie_replies(messages[start:], identity))
