"""Stores the history of a framework that does not store its messages itself.

The items are kept in memory, as the framework gave them, and in a session. After a restart, they are read from the
session. If the session raises an error, the items in memory are used, and the error is logged.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import RLock
from typing import Any

from foldline.events import LOG
from foldline.integrations.followed_branch import INSTRUCTIONS
from foldline.integrations.followed_session import FollowedSession, PreparedRequest
from foldline.integrations.item_codec import ItemCodec
from foldline.integrations.session_choice import MAX_OPEN_SESSIONS
from foldline.ledger.trace_chain import TraceChain
from foldline.message import Message
from foldline.session.session import Session


class StoredHistory:
    """The items of one conversation."""

    def __init__(self, session: Session, codec: ItemCodec, items: Sequence[Any] = ()) -> None:
        """`items` are the first items of a new session."""
        self.followed, self._codec = FollowedSession(session, codec), codec
        self._items: list[Any] | None = None
        self._shown = TraceChain()
        """The hash chain of the list that `show` returned or that was last passed to `take_back`."""
        self._shown_count = 0
        """The number of items in the list that `show` returned last."""
        self._lock = RLock()
        if items and not len(session):
            self.replace(items)

    def items(self) -> list[Any]:
        """All items in order, folded or not. After a restart, they are read from the session."""
        with self._lock:
            if self._items is None:
                messages = [each for each in self.followed.session.messages if each.meta.source != INSTRUCTIONS]
                self._items = list(self._codec.write(messages, None))
            return list(self._items)

    def append(self, items: Sequence[Any]) -> None:
        """Add items at the end."""
        with self._lock:
            self._items = [*self.items(), *items]
            self.followed.follow(self._items)

    def replace(self, items: Sequence[Any]) -> None:
        """Replace the history by these items. A ledger keeps the messages that are no longer part of the history."""
        with self._lock:
            self._items = list(items)
            self.followed.follow(self._items, shorten=True)

    def pop(self) -> Any:
        """Remove the last item and return it; None if there is none."""
        with self._lock:
            items = self.items()
            last = items.pop() if items else None
            if items:
                self.replace(items)
            else:
                self.clear()  # removes the system messages, too, which `replace` would keep
            return last

    def clear(self) -> None:
        """Remove all items from the history. A ledger keeps them."""
        with self._lock:
            self._items = []
            try:
                self.followed.session.clear()
            except Exception:  # noqa: BLE001 (the caller must not notice a fault of foldline)
                LOG.warning("foldline failed to clear a session", exc_info=True)

    def take_back(self, items: Sequence[Any]) -> None:
        """Record the items that a framework has added at the end of the list that `show` returned.

        If the framework has changed the items that `show` returned, the whole list becomes the history.
        """
        known = self._shown_count
        if len(items) >= known and self._shown.has_at(0, self._messages(items[:known])):
            self.append(items[known:])
        else:
            self.replace(items)
        self._set_shown(items)

    def show(self, join: Callable[[list[Any]], list[Any]] = list, **options: Any) -> list[Any]:
        """The items to send now, which replace the framework's own list.

        `join` is applied to the items before the framework gets them. `options` are those of `FollowedSession.prepare`.
        """
        shown = join(list(self.prepare(**options).items))
        self._set_shown(shown)
        return shown

    def _set_shown(self, items: Sequence[Any]) -> None:
        self._shown, self._shown_count = TraceChain(0, self._messages(items)), len(items)

    def _messages(self, items: Sequence[Any]) -> list[Message]:
        return [message for item in items for message in self._codec.read(item)]

    def prepare(self, **options: Any) -> PreparedRequest:
        """What to send instead of all items (see `FollowedSession.prepare`)."""
        return self.followed.prepare(self.items(), **options)


class OpenHistories:
    """The most recently used histories, by id.

    If a framework writes its memory as JSON and reads it again, the history is found by the id in the JSON.
    """

    def __init__(self) -> None:
        self._open: OrderedDict[str, StoredHistory] = OrderedDict()
        self._lock = RLock()

    def find(self, name: str, make: Callable[[], StoredHistory]) -> StoredHistory:
        """The history with this id; a new history if the id is not known."""
        with self._lock:
            if name not in self._open:
                self._open[name] = make()
            self._open.move_to_end(name)
            while len(self._open) > MAX_OPEN_SESSIONS:
                self._open.popitem(last=False)
            return self._open[name]
