"""Stores the history of a framework that does not store its messages itself.

The items are kept in memory, as the framework gave them, and in a session. After a restart, they are read from the
session. If the session fails, the items in memory are used, and the error is logged.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import RLock
from typing import Any

from foldline.events import LOG
from foldline.integrations.followed_session import FollowedSession, PreparedRequest
from foldline.integrations.item_codec import ItemCodec
from foldline.session.session import Session


class StoredHistory:
    """The items of one conversation."""

    def __init__(self, session: Session, codec: ItemCodec) -> None:
        self.followed, self._codec = FollowedSession(session, codec), codec
        self._items: list[Any] | None = None
        self._lock = RLock()

    def items(self) -> list[Any]:
        """All items, folded or not, in their order."""
        with self._lock:
            if self._items is None:
                messages = [message for message in self.followed.session.messages if message.role != "system"]
                self._items = list(self._codec.write(messages, None))
            return list(self._items)

    def append(self, items: Sequence[Any]) -> None:
        """Add items at the end."""
        self.replace([*self.items(), *items])

    def replace(self, items: Sequence[Any]) -> None:
        """Replace the history by these items.

        Messages that are no longer part of it stay on another branch of the session.
        """
        with self._lock:
            self._items = list(items)
            self.followed.follow(self._items)

    def pop(self) -> Any:
        """Remove the last item and return it; None if there is none."""
        with self._lock:
            items = self.items()
            last = items.pop() if items else None
            self._items = items
            self.followed.follow(items, shorten=True)
            return last

    def clear(self) -> None:
        """Remove all items from the history. A ledger keeps them."""
        with self._lock:
            self._items = []
            try:
                self.followed.session.clear()
            except Exception:  # noqa: BLE001 (the caller must not notice a fault of foldline)
                LOG.warning("foldline failed to clear a session", exc_info=True)

    def prepare(self, **options: Any) -> PreparedRequest:
        """What to send for all items (see `FollowedSession.prepare`)."""
        return self.followed.prepare(self.items(), **options)
