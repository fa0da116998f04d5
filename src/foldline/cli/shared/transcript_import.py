"""Adds a transcript to a ledger as a session. Compactions that the agent made become folds.

A new session is built in memory and added in one transaction. If the session exists already, only the new messages of
the transcript are added.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from foldline import ledger
from foldline.cli.shared.settings import Settings
from foldline.errors import Conflict, InputError
from foldline.ledger import MAIN
from foldline.ledger.agent_session import add_agent_session
from foldline.message import Message
from foldline.session import Ledger, Session
from foldline.session.record import BranchRecord
from foldline.session.reply_ties import tie_replies
from foldline.session.transcript_session import append_context, compacted_messages, session_of
from foldline.view.identity import UNKNOWN_VIEW
from foldline.wire import Transcript

ATTEMPTS = 5
"""How often an import begins again because another process has appended messages to the session meanwhile."""


def add_transcript(target: Ledger, name: str, transcript: Transcript, settings: Settings) -> dict[str, Any]:
    """Add one conversation as a session, in one transaction; returns its report row."""
    messages, compacted = transcript.messages, compacted_messages(transcript)
    if any(info.name == name for info in target.sessions()):
        for attempt in range(ATTEMPTS):
            try:
                new = _append_new(target, name, messages, compacted)
                break
            except Conflict:
                if attempt == ATTEMPTS - 1:
                    raise
        add_agent_session(target.store, name, transcript.session)
    else:
        target.load(_export_lines(name, transcript, settings))
        new = len(messages)
    figures = {"messages": len(messages), "new": new, "compacted": compacted}
    return {"session": name, "format": transcript.format, **figures}


def transcript_session(transcript: Transcript, settings: Settings, **options: Any) -> Session:
    """A session with all messages of a transcript, and with the policy and the model of the settings."""
    return session_of(transcript, model=settings.model(transcript.model), policy=settings.policy, **options)


def _export_lines(name: str, transcript: Transcript, settings: Settings) -> list[str]:
    """A new session as the lines of an export."""
    with Ledger(ledger.open(":memory:")) as temporary:
        record = BranchRecord(temporary.store, temporary.store.session(name, MAIN))
        transcript_session(transcript, settings, record=record, name=name)
        add_agent_session(temporary.store, name, transcript.session)
        return list(temporary.export())


def _append_new(target: Ledger, name: str, messages: Sequence[Message], compacted: int) -> int:
    """Append the messages that a session does not have yet, and return their number.

    If the file is an older copy, the number is 0. Notes that were added to the session, such as the text of a pin, are
    in no file and are not compared.
    """
    store, branch = target.store, target.store.session(name, MAIN)
    head = store.head(branch)  # read first, so that messages which another process appends from now on are a conflict
    known = notes = notes_before_cut = 0
    for stored in store.read(head):
        if known == len(messages):
            break
        if stored.message == messages[known]:
            known += 1
        elif stored.message.kind == "note":
            notes += 1
            notes_before_cut += known <= compacted
        else:
            raise InputError(
                f"session {name!r} exists already and differs from the file at #{known + notes + 1}",
                hint="import it under another name with --session",
            )
    if known < len(messages):
        earlier = tie_replies(messages[known:compacted], UNKNOWN_VIEW)
        after = store.append(branch, earlier, expected=head.key).head
        session = target.session(name)
        if isinstance(session.record, BranchRecord):
            session.record.guards_head = True
        append_context(session, messages, max(known, compacted), compacted, shift=notes_before_cut, length=after.length)
    return len(messages) - known
