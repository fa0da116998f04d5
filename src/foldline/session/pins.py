"""Pins of a session: messages that no fold may remove from the view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foldline.errors import Conflict, InputError, check_type
from foldline.message import user
from foldline.plan.timeline import handle as handle_of
from foldline.recall.excerpt import searchable_text
from foldline.recall.handles import parse_handle
from foldline.session.record import ATTEMPTS, too_many_conflicts

if TYPE_CHECKING:
    from foldline.session.session import Session


def pin(session: Session, text: str = "", *, handle: str = "", name: str = "") -> tuple[str, ...]:
    """Pin the messages of a handle, or add a text as a note and pin the note. Returns the names of the pins."""
    for value, what in ((text, "the text of a pin"), (handle, "a handle"), (name, "the name of a pin")):
        check_type(value, str, what, hint='pin("the port is 4711") or pin(handle="#12")')
    if bool(text) == bool(handle):
        raise InputError("pin needs a text or a handle", hint='pin("the port is 4711") or pin(handle="#12")')
    if text:
        return (_pin_message(session, _add_note(session, text), name),)
    session.refresh()
    length, wanted = len(session.timeline), parse_handle(handle)
    if wanted.segment is not None:
        raise InputError(f"the message {handle} is not in this session", hint="pin its text instead")
    if wanted.last >= length:
        raise InputError(f"there is no message {handle_of(wanted.last)}", hint=f"the session has {length} messages")
    if name and wanted.first != wanted.last:
        what = f"the name {name!r} can be given to only one message, but {handle} names several"
        raise InputError(what, hint="leave out the name (each pin gets the handle of its message), or pin one message")
    return tuple(_pin_message(session, at, name) for at in range(wanted.first, wanted.last + 1))


def _pin_message(session: Session, position: int, name: str) -> str:
    """Pin a message.

    If the view does not show the message unchanged, its text is added as a note at the end, and the note is pinned.
    """
    name, moves = name or handle_of(position), session.state.snapshot.moves
    for _ in range(ATTEMPTS):
        if session.state.snapshot.moves != moves:
            break
        if not session.state.shows(position):
            position = _repeat(session, position)
            continue
        try:
            session.record.pin(name, position, session.state.snapshot.version.entry)
        except Conflict:
            session.refresh()
            continue
        session.reload()
        return name
    raise too_many_conflicts()


def _repeat(session: Session, position: int) -> int:
    """The position of a pin or note in the view that repeats the text of the message at `position`.

    If there is no such pin or note, a note with this text is added, and its position is returned.
    """
    timeline = session.timeline
    text = "".join(searchable_text(message) for message in session.record.read(position, position + 1))
    if not text:
        raise InputError(
            f"{handle_of(position)} has no text to pin", hint="pass a text, or the handle of a message with text"
        )
    notes = [at for at in range(timeline.cut, len(timeline)) if timeline.messages[at].kind == "note"]
    shown = [index for index in (*timeline.pins, *notes) if session.state.shows(index)]
    known = [index for index in shown if timeline.messages[index].text == text]
    return known[0] if known else _add_note(session, text)


def _add_note(session: Session, text: str) -> int:
    """Add a note to the session and return its position."""
    position = session.record.append([user(text, kind="note")]).length - 1
    session.refresh()
    return position
