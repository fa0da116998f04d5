"""The conversations that the proxy has in memory, by tenant and client id.

All other conversations are only in the ledger.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from foldline import ledger
from foldline.events import Listener
from foldline.ledger import MAIN, Branch, Store
from foldline.ledger.receipts import last_receipt
from foldline.proxy.body_scan import BodyScan, NotScannable, continue_scan, scan_body, shared_elements
from foldline.proxy.cache_misses import answered_request
from foldline.proxy.client_summaries import is_client_summary
from foldline.proxy.conversation import Alignment, ClientConversation, ClientHistory, RecalledReply, client_history
from foldline.recall.text_index import TextIndex
from foldline.session.open_ledger import Ledger
from foldline.session.record import BranchRecord
from foldline.session.session import Session
from foldline.wire.formats import Format, request_format

MAX_OPEN = 256
"""Maximum number of groups of conversations in memory."""
RECALLED = "recalled"
"""The kind of event in which a reply with recall calls is stored."""
MAX_IN_GROUP = 16
"""Maximum number of conversations of one group in memory."""
AT_ONCE_BYTES = 32_768
"""A request is located at once only if at most this many bytes are new since the previous request. Reading this many
bytes takes less than a millisecond.
"""


@dataclass(slots=True, eq=False)
class ConversationGroup:
    """The conversations of one tenant under one client id ("" if the client gives none)."""

    tenant: str
    client_id: str
    conversations: list[ClientConversation] = field(default_factory=list)
    """The most recently used conversations of the group, the newest last."""
    plain: bytes = b""
    """The last request body in which no compaction item of foldline was found. In the next body, only the part that
    differs from this body is searched.
    """
    sealed: BodyScan | None = None
    """The last request body in which compaction items of foldline were found."""
    order: asyncio.Lock = field(default_factory=asyncio.Lock)
    """A lock: only one task at a time works on the group."""
    pending: int = 0
    """The number of tasks that work on the group or wait for the lock."""

    def use(self, conversation: ClientConversation) -> None:
        """Make a conversation the most recently used one."""
        if conversation in self.conversations:
            self.conversations.remove(conversation)
        self.conversations.append(conversation)
        idle = [one for one in self.conversations[:-MAX_IN_GROUP] if not one.in_flight]
        for one in idle:
            self.conversations.remove(one)


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """The conversation that the history of a request belongs to."""

    history: ClientHistory
    conversation: ClientConversation | None
    """None if the conversation is new."""
    alignment: Alignment
    is_compacted: bool = False
    """Whether the client has compacted the conversation, so that the request's history is a summary and the later
    messages.
    """


class Conversations:
    """Opens, finds and keeps conversations. All methods block."""

    def __init__(self, url: str, listener: Listener | None = None, *, shared: bool = False) -> None:
        self.url, self.listener = url, listener
        self.shared = shared
        """Whether other processes may serve the same conversations."""
        self.store: Store = ledger.open(url, index=TextIndex(), groups_commits=True)
        self._ledgers: OrderedDict[str, Ledger] = OrderedDict()
        self._groups: OrderedDict[tuple[str, str], ConversationGroup] = OrderedDict()
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the ledger. A fold that is still being made is discarded."""
        for one in self._ledgers.values():
            one.worker.close()
        self.store.close()

    def ledger_of(self, tenant: str) -> Ledger:
        """The ledger of a tenant."""
        with self._lock:
            found = self._ledgers.get(tenant)
            if found is None:
                found = Ledger(ledger.for_owner(self.store, tenant), listener=self.listener)
                self._ledgers[tenant] = found
        return found

    def group(self, tenant: str, client_id: str) -> ConversationGroup:
        """The group of a tenant and a client id."""
        with self._lock:
            found = self._groups.setdefault((tenant, client_id), ConversationGroup(tenant, client_id))
            self._groups.move_to_end((tenant, client_id))
            while len(self._groups) > MAX_OPEN:
                key, oldest = next(iter(self._groups.items()))
                if any(one.in_flight for one in oldest.conversations):
                    break
                del self._groups[key]
        return found

    def groups(self) -> list[ConversationGroup]:
        """All groups in memory."""
        with self._lock:
            return list(self._groups.values())

    def live(self) -> list[dict[str, Any]]:
        """The branches whose requests are being answered."""
        return [
            {"tenant": group.tenant, "session": branch.session, "branch": branch.name, "in_flight": one.in_flight}
            for group in self.groups()
            for one in list(group.conversations)
            if one.in_flight
            for _, branch in (one.session.record.search_target(),)
        ]

    # Finding

    def locate(self, group: ConversationGroup, data: bytes, name: str) -> Located:
        """Find the conversation that the history in a request body belongs to.

        `name` is the name of the body's wire format.
        """
        format = request_format(name)
        best = self._nearest(group, data, format)
        if self.shared and best is not None and best.conversation is not None and best.conversation.catch_up():
            best = self._nearest(group, data, format)
        if best is not None and _is_continued(best):
            return best
        whole = client_history(scan_body(data, format.list_key), format)
        if not group.conversations or self.shared:
            self._open_stored(group, whole)
        others = (one for one in reversed(group.conversations) if best is None or one is not best.conversation)
        found = [*([best] if best is not None else []), *(_located(one, whole) for one in others)]
        known = [one for one in found if _is_known(one, group)]
        if known:
            return max(known, key=lambda one: (_is_continued(one), one.alignment.place - _start(one)))
        if len(whole) > whole.lead and group.client_id and is_client_summary(whole.message(whole.lead)):
            summarized = next((one for one in reversed(group.conversations) if one.first_reply is not None), None)
            if summarized is not None:
                return Located(
                    history=whole,
                    conversation=summarized,
                    alignment=Alignment(0, summarized.length, []),
                    is_compacted=True,
                )
        return Located(history=whole, conversation=None, alignment=Alignment(whole.lead, 0, [0] * whole.lead))

    @property
    def reads_at_once(self) -> bool:
        """Whether the ledger can be read now without waiting: it is a SQLite file, and an open connection is free."""
        pool = self.store.tx.pool
        return not self.shared and pool.group_commit is not None and pool.has_open_connection

    def locate_at_once(self, group: ConversationGroup, data: bytes, name: str) -> Located | None:
        """The same as `locate` if a request adds only a few bytes to a conversation in memory; else None.

        The ledger is not read.
        """
        try:
            best = self._nearest(group, data, request_format(name), most_bytes=AT_ONCE_BYTES)
        except NotScannable:
            return None
        return best if best is not None and _is_continued(best) else None

    def _nearest(
        self, group: ConversationGroup, data: bytes, format: Format, *, most_bytes: int | None = None
    ) -> Located | None:
        """The conversation whose last request shares the most leading messages with this request.

        Returns None if no conversation shares a message, or if more than `most_bytes` bytes come after these messages.
        """
        best, most = None, 0
        for one in reversed(group.conversations):
            if one.history is not None and one.history.format is format:
                shared = shared_elements(data, one.history.scan)
                if shared > most:
                    best, most = one, shared
        if best is None or best.history is None:
            return None
        if most_bytes is not None and len(data) - best.history.scan.ends[most - 1] > most_bytes:
            return None
        scan = continue_scan(data, format.list_key, best.history.scan, most)
        history = client_history(scan, format, best.history)
        alignment = best.align(history, best.shared_alignment(history))
        return Located(history=history, conversation=best, alignment=alignment)

    def _open_stored(self, group: ConversationGroup, history: ClientHistory) -> None:
        """Open the stored conversations that a request may continue, for example after a restart."""
        opened = self.ledger_of(group.tenant)
        branches: list[Branch] = []
        if group.client_id:
            for number in range(1, MAX_IN_GROUP + 1):
                name = group.client_id if number == 1 else f"{group.client_id}.{number}"
                found = opened.store.branches(name)
                if not found:
                    break
                branches += found
        else:
            known = opened.store.find([*history.system(), *history.new_messages(history.lead)])
            branches = [known.branch] if known is not None else []
        for branch in branches[-MAX_IN_GROUP:]:
            open_one = next((one for one in group.conversations if one.branch == branch), None)
            if open_one is not None:
                open_one.catch_up()
                continue
            messages = [stored.message for stored in opened.store.read(branch)]
            if not messages:
                continue  # the process that created the session died before it added messages
            session = opened.session(branch.session, branch=branch.name)
            conversation = self._conversation(session)
            conversation.load(messages)
            receipt = last_receipt(opened.store, branch)
            conversation.sent = answered_request(receipt) if receipt is not None else None
            for event in opened.store.events(branch, kind=RECALLED):
                conversation.recalled[event.body["first"]] = RecalledReply(event.body["last"], event.body["elements"])
            group.conversations.append(conversation)

    def _conversation(self, session: Session) -> ClientConversation:
        if isinstance(session.record, BranchRecord):
            session.record.guards_head = True
        return ClientConversation(session)

    def add(self, group: ConversationGroup, session: Session) -> ClientConversation:
        """Add a conversation for a new session."""
        conversation = self._conversation(session)
        group.use(conversation)
        return conversation

    def fork(self, group: ConversationGroup, origin: ClientConversation, place: int) -> ClientConversation:
        """A new branch with the first `place` messages of a conversation."""
        session = origin.session
        target = session.record.search_target()
        taken = {one.name for one in target[0].branches(target[1].session)}
        number = 2
        while (name := f"{MAIN}-{number}") in taken:
            number += 1
        conversation = self._conversation(session.branch(name, at=place))
        conversation.chain, conversation.confirmed = origin.chain.first(place), place
        conversation.first_reply = origin.first_reply if origin.replied_before(place) else None
        conversation.settings, conversation.sent = origin.settings, origin.sent
        conversation.recalled = {first: reply for first, reply in origin.recalled.items() if reply.last <= place}
        group.use(conversation)
        return conversation


def _located(conversation: ClientConversation, history: ClientHistory) -> Located:
    return Located(history=history, conversation=conversation, alignment=conversation.align(history))


def _start(located: Located) -> int:
    return located.conversation.start if located.conversation is not None else 0


def _is_continued(located: Located) -> bool:
    """Whether the request has all messages of the conversation, or all except the last reply."""
    found = located.conversation
    return found is not None and located.alignment.place >= found.confirmed > found.start


def _is_known(located: Located, group: ConversationGroup) -> bool:
    """Whether a request belongs to a conversation.

    If the client gives an id, one common message is enough. Without an id, one of the common messages must be a reply,
    because only the client that received a reply can send it back.
    """
    found, place = located.conversation, located.alignment.place
    if found is None or place <= found.start:
        return False
    return bool(group.client_id) or found.replied_before(place)
