"""The sessions of an adapter, one for each conversation name, and the requests that a model is answering."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from threading import Lock
from typing import Any

from foldline.integrations.followed_session import FollowedSession, PreparedRequest
from foldline.integrations.item_codec import ItemCodec
from foldline.policy import Policy
from foldline.session.open_ledger import Ledger
from foldline.session.session import Session

MAX_OPEN_SESSIONS = 256
"""Maximum number of open sessions. If a closed session is in a ledger, it is opened again when it is needed."""


class FollowedSessions:
    """The sessions of one adapter."""

    def __init__(
        self,
        source: Session | Ledger | None,
        codec: ItemCodec,
        *,
        policy: Policy | str | None = None,
        default_name: str = "agent",
    ) -> None:
        """If `source` is a session, all conversations use it. If it is a ledger, each conversation gets its own session
        in the ledger. If it is None, each conversation gets a session in memory. `policy` is the policy of new
        sessions.
        """
        self._source, self._codec, self._policy, self._default_name = source, codec, policy, default_name
        self._open: OrderedDict[str, FollowedSession] = OrderedDict()
        self._lock = Lock()

    def session_of(self, name: str = "") -> FollowedSession:
        """The followed session of the conversation with this name."""
        key = "" if isinstance(self._source, Session) else name or self._default_name
        with self._lock:
            found = self._open.get(key)
            if found is None:
                found = self._open[key] = FollowedSession(partial(self._session, key), self._codec)
            self._open.move_to_end(key)
            while len(self._open) > MAX_OPEN_SESSIONS:
                self._open.popitem(last=False)
        return found

    def _session(self, name: str) -> Session:
        if isinstance(self._source, Session):
            return self._source
        if self._source is None:
            return Session(policy=self._policy, name=name)
        return self._source.session(name, policy=self._policy)


class PendingRequests:
    """The requests that a model is answering, for frameworks that report a request and its reply separately."""

    def __init__(self) -> None:
        self._requests: dict[str, tuple[FollowedSession, PreparedRequest]] = {}

    async def prepare(
        self, run: str, followed: FollowedSession, items: Sequence[Any], **options: Any
    ) -> PreparedRequest:
        """What to send instead of a run's history (see `FollowedSession.prepare`). A run has one request at a time."""
        prepared = await asyncio.to_thread(followed.prepare, items, **options)
        self._requests[run] = followed, prepared
        return prepared

    async def record(self, run: str, *replies: Any) -> None:
        """Record the reply to the open request of a run. Has no effect if the run has no open request."""
        followed, prepared = self._requests.pop(run, (None, None))
        if followed is not None and prepared is not None:
            await asyncio.to_thread(followed.record, prepared, *replies)

    def discard(self, run: str) -> None:
        """Forget the open request of a run, because the request failed."""
        self._requests.pop(run, None)
