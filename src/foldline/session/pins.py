"""Pins of a session: messages that no fold may remove from the view.

To pin a text, the text is added as a note. To pin a message that is no longer in the view, a note with the text of the
message is added, and this note is pinned. If the pin of a note is removed, the note leaves the view, but it stays in
the record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from foldline.errors import Conflict, InputError, check_type
from foldline.message import NOTE, user
from foldline.plan.timeline import handle as handle_of
from foldline.recall.excerpt import searchable_text
from foldline.recall.handles import parse_handle
from foldline.session.record import ATTEMPTS, too_many_conflicts
from foldline.session.state import State

if TYPE_CHECKING:
    from foldline.session.session import Session


def pin(session: Session, text: str = "", *, handle: str = "", name: str = "") -> tuple[str, ...]:
    """Pin the messages of a handle, or add a text as a note and pin the note. Returns the names of the pins."""
    for value, what in ((text, "the text of a pin"), (handle, "a handle"), (name, "the name of a pin")):
        check_type(value, str, what, hint='pin("the port is 4711") or pin(handle="#12")')
    if bool(text) == bool(handle):
        raise InputError("pin needs a text or a handle", hint='pin("the port is 4711") or pin(handle="#12")')
    if text:
        return (_pin_message(session, _add_note(session, text), name, is_note=True),)
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


def unpin(session: Session, name: str, *, at_once: bool) -> None:
    """Remove a pin. A note that was added only to be pinned leaves the view, too (see `Session.unpin`)."""
    for _ in range(ATTEMPTS):
        session.refresh()
        snapshot = session.state.snapshot
        if name not in snapshot.pins:
            names = ", ".join(map(repr, snapshot.pins))
            raise InputError(f"unknown pin {name!r}", hint=f"the pins are {names}" if names else "nothing is pinned")
        position = snapshot.pins[name]
        is_own = position in snapshot.notes and [*snapshot.pins.values()].count(position) == 1
        leaves = is_own and (at_once or not is_answered(session.state, position))
        try:
            session.record.unpin(name, snapshot.version.entry, removed=position if leaves else None)
        except Conflict:
            continue
        session.reload()
        return
    raise too_many_conflicts()


def is_answered(state: State, position: int, start: int = 0) -> bool:
    """Whether a reply follows the message at `position`. Replies before the index `start` do not count."""
    later = state.timeline.messages[max(position + 1, start) :]
    return any(message.role == "assistant" for message in later)


def _pin_message(session: Session, position: int, name: str, *, is_note: bool = False) -> str:
    """Pin a message.

    If the view does not show the message unchanged, its text is added as a note at the end, and the note is pinned.
    `is_note` says that the message is such a note.
    """
    name, moves = name or handle_of(position), session.state.snapshot.moves
    for _ in range(ATTEMPTS):
        state = session.state
        if state.snapshot.moves != moves:
            break
        if not state.shows(position) and not _can_return(state, position):
            position, is_note = _repeat(session, position)
            continue
        is_own = is_note or position in state.snapshot.notes
        try:
            session.record.pin(name, position, state.snapshot.version.entry, is_note=is_own)
        except Conflict:
            session.refresh()
            continue
        session.reload()
        return name
    raise too_many_conflicts()


def _can_return(state: State, position: int) -> bool:
    """Whether a note that left the view with its pin can be shown again in its old place at no cost.

    This is so if no reply was added since the note left the view.
    """
    removed, fold = state.snapshot.removed.get(position), state.timeline.fold
    if removed is None or position < state.timeline.cut or (fold is not None and position in fold.removed):
        return False
    return not is_answered(state, position, removed.length)


def _repeat(session: Session, position: int) -> tuple[int, bool]:
    """The position of a message that has the same text as the message at `position`, and whether it is a new note.

    It is a pinned message or a note that the view shows or can show again (see `_can_return`). If there is none, a note
    with this text is added.
    """
    state, timeline = session.state, session.timeline
    text = "".join(searchable_text(message) for message in session.record.read(position, position + 1))
    if not text:
        raise InputError(
            f"{handle_of(position)} has no text to pin", hint="pass a text, or the handle of a message with text"
        )
    notes = [at for at in range(timeline.cut, len(timeline)) if timeline.messages[at].kind == NOTE]
    usable = [index for index in (*timeline.pins, *notes) if state.shows(index) or _can_return(state, index)]
    known = [index for index in usable if timeline.messages[index].text == text]
    return (known[0], False) if known else (_add_note(session, text), True)


def _add_note(session: Session, text: str) -> int:
    """Add a note to the session and return its position."""
    position = session.record.append([user(text, kind=NOTE)]).length - 1
    session.refresh()
    return position
