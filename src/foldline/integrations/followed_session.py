"""Updates a session from a history that a framework keeps, and returns what to send instead of the history.

A framework passes its whole history to the model at every call. `FollowedSession.prepare` determines which messages of
the history are new, adds them to the session, and returns the items of the view. For a message that the view shows
unchanged, the item is the framework's own object. `FollowedSession.record` adds the reply. If foldline fails, the error
is logged, and the history is sent unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import RLock
from typing import Any

from foldline.events import LOG
from foldline.integrations.followed_branch import FollowedBranch, HistoryMatch
from foldline.integrations.item_codec import ItemCodec
from foldline.ledger import MAIN
from foldline.message import Message
from foldline.placeholders import message_without_handles
from foldline.session.record import BranchRecord
from foldline.session.reply_ties import tie_replies
from foldline.session.session import Session
from foldline.view.compose import View

MAX_BRANCHES = 16
"""Maximum number of branches of a session in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRequest:
    """What to send instead of a history."""

    items: Sequence[Any]
    """The items to send; the caller's own list if nothing was changed."""
    is_changed: bool = False
    branch: FollowedBranch | None = None
    """The branch that holds the messages of the history. None if foldline failed; the reply is then not recorded."""
    place: int = 0
    """The length of the branch when the request was prepared."""
    view: View | None = None


class FollowedSession:
    """A session that is updated from histories. Histories that differ become branches of the session."""

    def __init__(self, session: Session | Callable[[], Session], codec: ItemCodec) -> None:
        """`session` is the session, or a function that opens it.

        The function is first called by `prepare` or `follow`. So an exception of the function is logged and not raised.
        If an adapter calls these methods in a thread, the function does not block the event loop.
        """
        self._open, self.codec = session, codec
        self._lock = RLock()
        self._branches: list[FollowedBranch] = []
        """The branches in memory, the most recently used one last. Empty until the session is opened."""

    @cached_property
    def session(self) -> Session:
        """The session."""
        return self._open if isinstance(self._open, Session) else self._open()

    def prepare(
        self,
        items: Sequence[Any],
        *,
        system: Sequence[Message] = (),
        tools: Sequence[Any] | None = None,
        model: str = "",
    ) -> PreparedRequest:
        """The request to send instead of a history. Never raises: if foldline fails, the history is sent unchanged.

        `system` are system messages that are not items of the history. `tools` are the tool definitions of the request.
        `model` is used if the session has no model.
        """
        try:
            with self._lock:
                return self._prepare(items, system, tools, model)
        except Exception:  # noqa: BLE001 (the caller must not notice a fault of foldline)
            LOG.warning("foldline failed, the history is sent as it is", exc_info=True)
            return PreparedRequest(items=items)

    def fold_refused(self, request: PreparedRequest) -> PreparedRequest | None:
        """Fold the session after the provider refused a request as too large, and return the smaller request.

        Returns None if nothing can be folded, or if the session has changed since the request was prepared. Never
        raises.
        """
        branch = request.branch
        if branch is None:
            return None
        try:
            with self._lock:
                branch.session.refresh()
                is_unchanged = len(branch.session) == branch.length == request.place and not branch.is_stale
                if not is_unchanged or branch.session.fold(refused=True) is None:
                    return None
                return self._request_of(branch, request.items)
        except Exception:  # noqa: BLE001 (the caller gets the provider's refusal)
            branch.is_stale = True
            LOG.warning("foldline failed to fold a request that is too large", exc_info=True)
            return None

    def record(self, request: PreparedRequest, *replies: Any) -> None:
        """Add a reply to the session. `replies` are messages, or items that the codec reads. Never raises."""
        if request.branch is None or request.view is None:
            return
        try:
            with self._lock:
                self._record(request, request.branch, request.view, replies)
        except Exception:  # noqa: BLE001 (the caller must not notice a fault of foldline)
            request.branch.is_stale = True
            LOG.warning("foldline failed to record a reply", exc_info=True)

    def follow(self, items: Sequence[Any], *, shorten: bool = False) -> None:
        """Add the new messages of a history to the session, without making a view. Never raises.

        If the session has messages that are not in the history, they are removed from the session before the new
        messages are added. A ledger keeps the removed messages. If the history has no new messages, nothing is removed,
        unless `shorten` is True.

        A history that differs does not become a branch, because a program that opens the session again must find the
        last history in the session itself.
        """
        try:
            with self._lock:
                branch = self._own_branch()
                match = branch.align(items, complete=True)
                if match.place < branch.length and (match.new or shorten):
                    branch.truncate(match.place)
                if match.place == branch.length:
                    branch.add(items, match, ())
        except Exception:  # noqa: BLE001 (the caller must not notice a fault of foldline)
            for branch in self._branches[-1:]:
                branch.is_stale = True
            LOG.warning("foldline failed to record a history", exc_info=True)

    def _own_branch(self) -> FollowedBranch:
        """The branch of the session itself. It is created if necessary."""
        found = next((each for each in self._branches if each.session is self.session), None)
        if found is None:
            found = FollowedBranch(self.session, self.codec)
            self._branches.append(found)
        self._use(found)
        return found

    def _prepare(
        self, items: Sequence[Any], system: Sequence[Message], tools: Sequence[Any] | None, model: str
    ) -> PreparedRequest:
        branch, match = self._locate(items)
        try:
            self._configure(branch, system, tools, model)
            if match.place < branch.length:
                branch = self._shortened(branch, match)
            branch.add(items, match, system)
            return self._request_of(branch, items)
        except BaseException:
            branch.is_stale = True
            raise

    def _request_of(self, branch: FollowedBranch, items: Sequence[Any]) -> PreparedRequest:
        """The request for the current view of a branch. `items` are the items of the branch's history."""
        view = branch.session.view()
        shown = branch.items_of(view, None if branch.session.state.setup.has_recall else message_without_handles)
        return PreparedRequest(
            items=items if shown is None else shown,
            is_changed=shown is not None,
            branch=branch,
            place=branch.length,
            view=view,
        )

    def _locate(self, items: Sequence[Any]) -> tuple[FollowedBranch, HistoryMatch]:
        """The branch that shares the most messages with a history, and the result of its `align`.

        If the history begins with all messages of a branch, this branch is preferred.
        """
        if not self._branches:
            self._own_branch()
        best, found = self._branches[-1], self._branches[-1].align(items)
        if not best.is_continued(found):
            for other in reversed(self._branches[:-1]):
                aligned = other.align(items)
                if (other.is_continued(aligned), aligned.place) > (best.is_continued(found), found.place):
                    best, found = other, aligned
        self._use(best)
        return best, found

    def _shortened(self, branch: FollowedBranch, match: HistoryMatch) -> FollowedBranch:
        """The branch, shortened to the messages that the history has.

        If the framework has never sent back any of the removed messages, the branch itself is shortened. Otherwise, the
        result is a new branch.
        """
        if match.place >= branch.confirmed:
            branch.truncate(match.place)
            return branch
        return self._fork(branch, match.place)

    def _fork(self, branch: FollowedBranch, place: int) -> FollowedBranch:
        record, names = branch.session.record, {each.name for each in self._branches}
        if isinstance(record, BranchRecord):
            names |= {each.name for each in record.store.branches(record.branch.session)}
        number = 2
        while (name := f"{MAIN}-{number}") in names:
            number += 1
        fork = branch.fork(name, place)
        self._use(fork)
        return fork

    def _use(self, branch: FollowedBranch) -> None:
        if branch is not self._branches[-1]:
            self._branches = [*(each for each in self._branches if each is not branch), branch][-MAX_BRANCHES:]

    def _configure(
        self, branch: FollowedBranch, system: Sequence[Message], tools: Sequence[Any] | None, model: str
    ) -> None:
        """Update the model and the tools of the session, and the size of system messages that are not in the
        session.
        """
        session = branch.session
        if system and branch.length and not branch.has_instructions():
            tokens = sum(map(session.size, system))
            if tokens != session.state.setup.extra:
                session.use(extra_tokens=tokens)
        name = model if model and not session.model.name else None
        definitions = None if tools is None or list(tools) == branch.tools else tools
        if name is not None or definitions is not None:
            session.use(model=name, tools=definitions)
        if tools is not None:
            branch.tools = list(tools)

    def _record(self, request: PreparedRequest, branch: FollowedBranch, view: View, replies: Sequence[Any]) -> None:
        messages = [
            message for each in replies for message in ([each] if isinstance(each, Message) else self.codec.read(each))
        ]
        if not messages or view.identity is None:
            return
        tied = tie_replies(messages, view.identity.extension)
        branch.refresh()
        if branch.length != request.place:
            if branch.chain.has_at(request.place, tied):
                return  # the reply is already in the branch
            branch = self._fork(branch, request.place)
        branch.session.add(*tied)
        branch.chain.extend(tied)
