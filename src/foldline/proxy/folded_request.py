"""Writes the request for a folded session. The digest and kept messages replace the folded part of the history.

All other fields are copied from the client's request. The messages after the cut are also copied from it, except for
those that the view changes. So between two folds, the request only grows at its end, as the client's request does.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from foldline.json_text import decode, dumps, encode, loads
from foldline.message import NOTE, Message
from foldline.proxy.conversation import ClientHistory, RecalledReply
from foldline.proxy.pin_marks import added_mark, with_mark
from foldline.session.state import State
from foldline.view.bound_thinking import THINKING_OFF, must_not_think
from foldline.view.compose import head
from foldline.wire.formats import Format, LossCollector


def is_unfolded(state: State, start: int) -> bool:
    """Whether the view of a session is the same as the client's history.

    `start` is the position of the history's first message in the session.
    """
    fold = state.timeline.fold
    if fold is None:
        return not state.pruned
    return fold.cut <= start and not (fold.pinned or fold.carried or fold.stubs or fold.digest or state.pruned)


def folded_body(
    state: State, history: ClientHistory, places: Sequence[int], recalled: Mapping[int, RecalledReply] | None = None
) -> bytes:
    """The request body with the view of a session.

    `places` has one number for each of the request's leading messages that the session contains: the number of messages
    in the session up to and including this message. All later messages of the request are new.
    """
    scan = history.scan
    pieces, pins = _head_elements(state, history.format)
    pieces += _kept_elements(state, history, places, recalled or {})
    lead = [scan.element(index) for index in range(history.lead)]
    if history.format.join_turns is not None:
        joined = history.format.join_turns([_value(piece) for piece in lead + pieces])
        pieces, lead = [encode(dumps(element)) for element in joined], []
    if history.format.name == "anthropic" and must_not_think(scan.field("thinking"), _DecodedElements(pieces)):
        scan = scan.with_shorter_field("thinking", encode(dumps(THINKING_OFF)))
    body = scan.with_elements(lead + pieces)
    if pins and history.format.name == "anthropic" and (mark := added_mark(body, scan.list_start)):
        pieces[pins - 1] = with_mark(pieces[pins - 1], mark)
        body = scan.with_elements(lead + pieces)
    return body


class _DecodedElements(Sequence[Mapping[str, Any]]):
    """The decoded values of JSON elements. An element is decoded when it is read."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = pieces

    def __len__(self) -> int:
        return len(self._pieces)

    def __getitem__(self, index: Any) -> Any:
        return _value(self._pieces[index])


def _head_elements(state: State, format: Format) -> tuple[list[bytes], int]:
    """The JSON texts of the messages before the cut: pins, digest, and messages that the fold carried over.

    The second value is the number of elements up to the last pin; 0 if nothing is pinned.
    """
    timeline, loss = state.timeline, LossCollector()
    pinned = timeline.fold.pinned if timeline.fold is not None else ()
    elements: list[bytes] = []
    pins = 0
    for message in head(timeline)[timeline.lead :]:
        elements += _rendered(message, format, loss)
        if pinned and message is timeline.shown[pinned[-1]]:
            pins = len(elements)
    return elements, pins


def recalled_body(history: ClientHistory, places: Sequence[int], recalled: Mapping[int, RecalledReply]) -> bytes | None:
    """The client's request body plus the recall calls that the client has not seen; None if there are no such calls."""
    if not recalled:
        return None
    scan, pieces = history.scan, list[bytes]()
    was_replaced = False
    for index in range(len(history)):
        place = places[index] if index < len(places) else 0
        replaced = _recalled(recalled, place, places[index - 1] if index else -1)
        pieces += [scan.element(index)] if replaced is None else replaced
        if was_replaced and replaced is None:
            _join_last(pieces, history.format)
        was_replaced = replaced is not None
    return scan.with_elements(pieces)


def _join_last(pieces: list[bytes], format: Format) -> None:
    """Join the last two elements if both hold tool results, because the results of one reply must be in one message."""
    joined = format.join(_value(pieces[-2]), _value(pieces[-1])) if format.join is not None else None
    if joined is not None:
        pieces[-2:] = [encode(dumps(joined))]


def _recalled(recalled: Mapping[int, RecalledReply], place: int, before: int) -> list[bytes] | None:
    """The JSON texts that replace a message; None if the message does not belong to a reply with recall calls.

    The first message of such a reply is replaced by `RecalledReply.elements`; the list for its other messages is empty.
    `place` and `before` are the places of the message and of the previous message in the session.
    """
    for first, reply in recalled.items():
        if first <= place <= reply.last:
            return [encode(element) for element in reply.elements] if before < first else []
    return None


def _kept_elements(
    state: State, history: ClientHistory, places: Sequence[int], recalled: Mapping[int, RecalledReply]
) -> list[bytes]:
    """The JSON texts of the messages after the cut.

    If the view shows a message unchanged, the client's own text is used. The client's history has no notes, so the
    session's notes are inserted. A note is inserted before the first reply that is newer than the note; if there is no
    such reply, the note is inserted at the end. At its position in the session, the note might separate a call from the
    result of the call, which providers refuse.
    """
    timeline, scan, loss = state.timeline, history.scan, LossCollector()
    first = bisect_right(places, timeline.cut, lo=min(history.lead, len(places)))
    kept: list[bytes] = []
    before = places[first - 1] if first > history.lead else -1
    was_replaced, usable = False, _unchanged(state, recalled)
    notes = _notes(state)
    for index in range(first, len(history)):
        place = places[index] if index < len(places) else 0
        position = place - 1
        replaced = _recalled(usable, place, before) if usable else None
        is_new = index >= len(places) or place == before or position >= len(timeline.messages)
        if notes and (history.message(index) if is_new else timeline.messages[position]).role == "assistant":
            while notes and (is_new or notes[0] < position):
                kept += _rendered(timeline.shown[notes.pop(0)], history.format, loss)
        if replaced is not None:
            kept += replaced
        elif is_new or timeline.shown[position] is timeline.messages[position]:
            kept.append(scan.element(index))
        else:
            kept += _rendered(timeline.shown[position], history.format, loss)
        if was_replaced and replaced is None:
            _join_last(kept, history.format)
        was_replaced = replaced is not None
        before = place
    for note in notes:
        kept += _rendered(timeline.shown[note], history.format, loss)
    return kept


def _notes(state: State) -> list[int]:
    """The positions of the notes after the cut. The client's request does not have these notes."""
    timeline = state.timeline
    notes = [at for at in range(timeline.cut, len(timeline)) if timeline.messages[at].kind == NOTE]
    return [at for at in notes if at not in timeline.removed]


def _unchanged(state: State, recalled: Mapping[int, RecalledReply]) -> dict[int, RecalledReply]:
    """The replies with recall calls that the view shows unchanged.

    If a fold has removed the thinking of a reply, the thinking in the reply's recall calls is invalid, too. Such a
    reply is left out of the result, so the reply is sent as the client has it, without recall calls.
    """
    shown, messages = state.timeline.shown, state.timeline.messages
    return {
        first: reply
        for first, reply in recalled.items()
        if first > state.timeline.cut
        and all(shown[at] is messages[at] for at in range(first - 1, min(reply.last, len(messages))))
    }


def _rendered(message: Message, format: Format, loss: LossCollector) -> list[bytes]:
    elements: list[Any] = format.render(message, loss)
    return [encode(dumps(_without_marks(element) if format.name == "anthropic" else element)) for element in elements]


def _value(element: bytes) -> Any:
    return loads(decode(element))


def _without_marks(element: Any) -> Any:
    """A rendered message without its cache breakpoints, which were set for an earlier request."""
    if not isinstance(element, dict):
        return element
    content = element.get("content")
    kept = {key: value for key, value in element.items() if key != "cache_control"}
    return {**kept, "content": [_without_marks(block) for block in content]} if isinstance(content, list) else kept
