"""Writes the request for a folded session. The digest and kept messages replace the folded part of the history.

Everything else is copied from the client's request: all other fields, and every message after the cut that the view
shows unchanged. So between two folds, the request only grows at its end, as the client's request does.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from foldline.json_text import dumps, encode, loads
from foldline.message import Message
from foldline.proxy.conversation import ClientHistory
from foldline.session.state import State
from foldline.view.compose import head
from foldline.wire.formats import Format, LossCollector


def is_unfolded(state: State, start: int) -> bool:
    """Whether the view of a session is the client's history without a change.

    `start` is the position of its first message.
    """
    fold = state.timeline.fold
    if fold is None:
        return not state.pruned
    return fold.cut <= start and not (fold.pinned or fold.carried or fold.stubs or fold.digest or state.pruned)


def folded_body(state: State, history: ClientHistory, places: Sequence[int]) -> bytes:
    """The request body with the view of a session.

    `places` has an entry for each message of the request that is in the session: the number of messages in the session
    up to and including it. The messages after these are new.
    """
    pieces = _head_elements(state, history.format) + _kept_elements(state, history, places)
    scan, lead = history.scan, [history.scan.element(index) for index in range(history.lead)]
    if history.format.join_turns is not None:
        joined = history.format.join_turns([loads(piece) for piece in lead + pieces])
        pieces, lead = [dumps(element) for element in joined], []
    text = scan.text
    return encode(text[: scan.list_start + 1] + ",".join(lead + pieces) + text[scan.list_end - 1 :])


def _head_elements(state: State, format: Format) -> list[str]:
    """The JSON texts of the messages before the cut: pins, digest, and messages that the fold carried over."""
    timeline = state.timeline
    loss = LossCollector()
    return [text for message in head(timeline)[timeline.lead :] for text in _rendered(message, format, loss)]


def _kept_elements(state: State, history: ClientHistory, places: Sequence[int]) -> list[str]:
    """The JSON texts of the messages after the cut.

    If the view shows a message unchanged, the client's own text is used.
    """
    timeline, scan, loss = state.timeline, history.scan, LossCollector()
    first = bisect_right(places, timeline.cut, lo=min(history.lead, len(places)))
    kept: list[str] = []
    before = places[first - 1] if first > history.lead else -1
    for index in range(first, len(history)):
        place = places[index] if index < len(places) else 0
        position = place - 1
        is_new = index >= len(places) or place == before or position >= len(timeline.messages)
        if is_new or timeline.shown[position] is timeline.messages[position]:
            kept.append(scan.element(index))
        else:
            kept += _rendered(timeline.shown[position], history.format, loss)
        before = place
    return kept


def _rendered(message: Message, format: Format, loss: LossCollector) -> list[str]:
    elements: list[Any] = format.render(message, loss)
    return [dumps(_without_marks(element) if format.name == "anthropic" else element) for element in elements]


def _without_marks(element: Any) -> Any:
    """A rendered message without its cache marks, which are those of an earlier request.

    Messages in the client's own text keep the marks of this request.
    """
    if not isinstance(element, dict):
        return element
    content = element.get("content")
    kept = {key: value for key, value in element.items() if key != "cache_control"}
    return {**kept, "content": [_without_marks(block) for block in content]} if isinstance(content, list) else kept
