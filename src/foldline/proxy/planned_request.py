"""Decides what to send for a request: the client's own bytes, or the view of its folded session.

The decision uses only values in memory. If the session has to be folded before the request is sent, the new messages
are first written to the ledger.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from foldline.errors import FoldlineError
from foldline.fold import COMPACTIONS
from foldline.models.table import model as model_of
from foldline.plan.gate import gate, headroom
from foldline.plan.timeline import traits_of
from foldline.proxy.configuration import ProxySettings
from foldline.proxy.conversation import ClientConversation, Headroom
from foldline.proxy.conversations import ConversationGroup, Conversations, Located
from foldline.proxy.folded_request import folded_body, is_unfolded
from foldline.proxy.recall_relay import RecallTrail
from foldline.proxy.recall_replies import tools_with_recall
from foldline.proxy.session_edits import fold_before, release_long_prompt, rewind
from foldline.proxy.session_names import new_session_name
from foldline.session.record import ATTEMPTS
from foldline.session.session import Session
from foldline.view.identity import ViewIdentity

BYTES_PER_TOKEN = 2
"""A token is assumed to have at least this many bytes. So 400,000 bytes certainly fit a window of 200,000 tokens."""
LARGE_BYTES = 200_000
"""A request with more bytes than this counts as large (see `RequestPlanner.is_large`)."""
MOST_PER_BYTE, MOST_PER_MESSAGE = 2, 100
"""The upper limit for the tokens of a message without media: the first number for each byte, plus the second number."""
COLD_S = 270.0
"""After a pause of this many seconds, the session may be folded before the request is sent.

The prompt cache may have expired by then, which makes a fold cheaper.
"""


@dataclass(slots=True, kw_only=True)
class Ticket:
    """The data that is needed to record an exchange."""

    group: ConversationGroup
    located: Located
    conversation: ClientConversation | None
    identity: ViewIdentity | None = None
    """The identity of the view that was sent. None if the session is new and the client's own request was sent."""
    model: str = ""
    tools: str = ""
    format: str = ""
    is_folded: bool = False
    fold_key: str = ""
    """The key of the fold in the view that was sent."""
    sent_body: bytes = b""
    """The body that was sent; empty if the client's own body was sent."""
    sent_at: float = 0.0
    """When the request was sent, in seconds since 1970."""
    is_edited: bool = False
    """Whether the client changed messages that it had sent before."""
    is_retried: bool = False
    is_held_out: bool = False
    recall: RecallTrail | None = None
    """The recall calls that were answered; None if the tool was not offered."""
    _entered: ClientConversation | None = None

    def enter(self) -> None:
        """Count this request in `in_flight` of its conversation while it is being answered."""
        if self.conversation is not None and self._entered is None:
            self._entered = self.conversation
            self._entered.in_flight += 1

    def leave(self) -> None:
        """Undo `enter`. If `leave` is called again, nothing happens."""
        if self._entered is not None:
            self._entered.in_flight -= 1
            self._entered = None


class RequestPlanner:
    """Decides what to send for each request. All methods block."""

    def __init__(self, settings: ProxySettings, conversations: Conversations) -> None:
        self.settings, self.conversations = settings, conversations

    def plan(self, ticket: Ticket) -> bytes | None:
        """The body to send; None if the client's own body is to be sent."""
        located, conversation = ticket.located, ticket.conversation
        if conversation is None:
            if not self.may_overflow(ticket):
                return None
            self.create(ticket)
            self.write(ticket)
            return self._view_body(ticket)
        ticket.is_held_out = self.is_held_out(conversation)
        if ticket.is_held_out:
            return None
        self.catch_up(ticket)
        located = ticket.located
        if located.is_compacted or located.alignment.place < conversation.length:
            self.write(ticket)  # first shorten, fork or restart the session
        else:
            self._follow_settings(ticket)
            if self._is_due(ticket):
                self.write(ticket)
        return self._view_body(ticket)

    def is_ready(self, ticket: Ticket) -> bool:
        """Whether `plan` can return the body without writing or folding. The request must continue a conversation."""
        conversation, located = ticket.conversation, ticket.located
        if conversation is None:
            return False
        if self.is_held_out(conversation):
            return True
        if located.alignment.place != conversation.length or not conversation.is_current():
            return False
        is_new = located.alignment.elements < len(located.history)
        if not is_new or conversation.settings != (ticket.model, ticket.tools):
            return False
        return _has_headroom(conversation, located) or not self._is_due(ticket)

    def body(self, ticket: Ticket) -> bytes | None:
        """The same as `plan`, for a request for which `is_ready` is True. Nothing is written or folded."""
        if ticket.conversation is not None:
            ticket.is_held_out = self.is_held_out(ticket.conversation)
        return None if ticket.is_held_out else self._view_body(ticket, plan=False)

    def count_body(self, located: Located) -> bytes | None:
        """The body for a request that counts tokens; None if the client's own body is to be sent."""
        conversation = located.conversation
        if conversation is None or self.is_held_out(conversation) or located.is_compacted:
            return None
        state = conversation.session.state
        if is_unfolded(state, conversation.start) or located.alignment.place < state.timeline.cut:
            return None
        return folded_body(state, located.history, located.alignment.places, conversation.recalled)

    def fold_now(self, ticket: Ticket) -> bytes | None:
        """Fold the session of a request that the provider refused as too large, and return the new body.

        Returns None if nothing can be folded.
        """
        if ticket.conversation is None:
            self.create(ticket)
        self.write(ticket)
        if self._session(ticket).fold(refused=True) is None:
            return None
        return self._view_body(ticket, plan=False)

    # The session

    def create(self, ticket: Ticket) -> ClientConversation:
        """Create the session of a new conversation."""
        group, history = ticket.group, ticket.located.history
        opened = self.conversations.ledger_of(group.tenant)
        taken = {one.session.name for one in group.conversations}
        names = _SessionNames(self.conversations, group.tenant, taken)
        for _ in range(ATTEMPTS):
            name = new_session_name(group.client_id, names)
            session = opened.session(
                name,
                model=ticket.model or self.settings.model,
                policy=self.settings.policy,
                tools=self._tools(ticket),
                format=ticket.format,
            )
            if not session.state.timeline.messages:
                break
            taken.add(name)  # another process has created this session meanwhile
        conversation = self.conversations.add(group, session)
        conversation.settings = (ticket.model, ticket.tools)
        system = history.system()
        if system:
            session.add(*system)
        conversation.begin(len(system))
        ticket.conversation = conversation
        return conversation

    def catch_up(self, ticket: Ticket) -> bool:
        """Read what other programs have changed in the session, then find the request's messages in the session again.

        Other processes that share the ledger may have added messages. The web page and foldline's commands may have
        added notes. Returns False if nothing has changed.
        """
        conversation, located = ticket.conversation, ticket.located
        if conversation is None or located.is_compacted:
            return False
        if not (self.conversations.shared or conversation.is_behind()) or not conversation.catch_up():
            return False
        found = conversation.align(located.history)
        ticket.located = Located(history=located.history, conversation=conversation, alignment=found)
        return True

    def write(self, ticket: Ticket) -> None:
        """Add the new messages of a request to its session.

        If the client changed an earlier message, this message and all later messages are written to a new branch.

        A newly recorded reply is an exception, as long as no request of the client has contained it. If this request
        contains another version of the reply, that version replaces the recorded reply.
        """
        self.catch_up(ticket)
        conversation, located = ticket.conversation, ticket.located
        if conversation is None:
            return
        history = located.history
        if located.is_compacted:
            conversation.restart()
        found = conversation.align(history, None if located.is_compacted else located.alignment)
        conversation = self._at(ticket, conversation, found.place)
        messages = history.new_messages(found.elements)
        if messages:
            conversation.session.add(*messages)
            first = conversation.length
            conversation.extend(messages)
            found = found._replace(places=[*found.places, *range(first + 1, conversation.length + 1)])
        if located.is_compacted:
            fold_before(conversation.session, conversation.start, reason=COMPACTIONS["client"])
        ticket.located = Located(
            history=history,
            conversation=conversation,
            alignment=found._replace(elements=len(history), place=conversation.length),
        )

    def _at(self, ticket: Ticket, conversation: ClientConversation, place: int) -> ClientConversation:
        """A conversation with only the first `place` messages of the session.

        If the session has no later messages, the conversation itself is returned. If the client has not sent back any
        of the later messages yet, and no request of the conversation is being answered, the conversation itself is
        shortened and returned. In all other cases, the result is a new branch.
        """
        if place == conversation.length:
            return conversation
        if place >= conversation.confirmed and not conversation.in_flight:
            session = conversation.session
            rewind(session, place)
            conversation.truncate(place)
            return conversation
        fork = self.conversations.fork(ticket.group, conversation, place)
        ticket.conversation = fork
        return fork

    def _session(self, ticket: Ticket) -> Session:
        assert ticket.conversation is not None  # noqa: S101 (for the type checker)
        return ticket.conversation.session

    def _follow_settings(self, ticket: Ticket) -> None:
        """Update the model and the tools of the session if the client has changed them."""
        conversation = ticket.conversation
        if conversation is None or conversation.settings == (ticket.model, ticket.tools):
            return
        conversation.session.use(model=ticket.model or None, tools=self._tools(ticket))
        conversation.settings = (ticket.model, ticket.tools)

    def _tools(self, ticket: Ticket) -> list[Any] | tuple[()]:
        """The tools of a request. They include the recall tool if the proxy offers it."""
        scan = ticket.located.history.scan
        offered = tools_with_recall(scan, ticket.format) if self.settings.offers_recall else None
        tools = scan.field("tools") if offered is None else offered
        return tools if isinstance(tools, list) else ()

    def is_held_out(self, conversation: ClientConversation) -> bool:
        """Whether a session is recorded but never folded (see `ProxySettings.holdout_ratio`).

        The result depends only on the name of the session.
        """
        share = self.settings.holdout_ratio
        if not share:
            return False
        drawn = blake2b(conversation.session.name.encode(), digest_size=4).digest()
        return int.from_bytes(drawn, "big") < share * (1 << 32)

    # The size

    def may_overflow(self, ticket: Ticket) -> bool:
        """Whether a client's request may be too large for the window. Only the length of its body is checked."""
        return len(ticket.located.history.scan.data) > self._least_bytes(ticket)

    def is_large(self, ticket: Ticket, body: bytes | None) -> bool:
        """Whether a request may be too large for the provider, whose window may be smaller than the configured
        window.
        """
        length = len(ticket.located.history.scan.data) if body is None else len(body)
        return self.settings.mode == "fold" and length > min(LARGE_BYTES, self._least_bytes(ticket))

    def _least_bytes(self, ticket: Ticket) -> int:
        """The number of bytes up to which a request certainly fits the window."""
        window = self.settings.policy.window_tokens or model_of(ticket.model or self.settings.model).window
        return window * BYTES_PER_TOKEN

    @staticmethod
    def measure_headroom(conversation: ClientConversation) -> None:
        """Compute how much the session can grow, so that planning its next request takes less time."""
        state = conversation.session.state
        tokens = 0 if state.needs_times else headroom(state.load(), state.policy, state.latched)
        conversation.headroom = Headroom(state, len(state.timeline.messages), tokens)

    def _is_due(self, ticket: Ticket) -> bool:
        """Whether the session may have to be folded before this request is sent."""
        session, located = self._session(ticket), ticket.located
        state = session.state
        new = located.history.new_messages(located.alignment.elements)
        added = sum(state.size(message) for message in new)
        load = state.load()
        grown = load._replace(
            request=load.request + added,
            history=load.history + added,
            count=load.count + len(new),
            upper=load.upper + added if load.upper else 0,
        )
        if any(rule.action != "warn" for rule in gate(grown, state.policy, state.latched).fired) or (
            max(grown.request, grown.upper) > state.usable
        ):
            return True
        last = state.timeline.messages[-1].meta.at if state.timeline.messages else None
        return state.needs_times and last is not None and time.time() - last > COLD_S

    # The body

    def _view_body(self, ticket: Ticket, *, plan: bool = True) -> bytes | None:
        """The body for the current view; None if nothing is folded.

        If `plan` is True and the policy demands a fold, the fold is made first.
        """
        session, located = self._session(ticket), ticket.located
        conversation = ticket.conversation
        is_written = located.alignment.elements == len(located.history)
        if plan and is_written:
            release_long_prompt(session)
            session.view()
        state = session.state
        ticket.identity = state.identity().extension
        if conversation is None or is_unfolded(state, conversation.start):
            if state.unbound:  # the client's own request contains thinking that the view leaves out
                ticket.identity = ticket.identity.with_unknown_prefix
            return None
        if located.alignment.place < state.timeline.cut:
            raise FoldlineError("the request has only messages that the fold removed")
        ticket.is_folded, ticket.fold_key = True, state.identity().fold_key
        return folded_body(state, located.history, located.alignment.places, conversation.recalled)


def _has_headroom(conversation: ClientConversation, located: Located) -> bool:
    """Whether the new messages of a request are certainly so small that the session need not be folded. Only the bytes
    of the messages are counted, so messages with images or files are excluded.
    """
    known, state = conversation.headroom, conversation.session.state
    if known is None or known.state is not state or known.length != len(state.timeline.messages):
        return False
    scan, start = located.history.scan, located.alignment.elements
    size = scan.list_end - (scan.ends[start - 1] if start else scan.list_start)
    if MOST_PER_BYTE * size + MOST_PER_MESSAGE * (len(located.history) - start) >= known.tokens:
        return False
    return not any(traits_of(message).has_media for message in located.history.new_messages(start))


class _SessionNames:
    """The session names that are taken: those in `names`, and those of the tenant's sessions that have messages.

    The name of a session without messages may be used again. Such a session is left over from a process that ended
    before it added a message.
    """

    def __init__(self, conversations: Conversations, tenant: str, names: set[str]) -> None:
        self._store, self._names = conversations.ledger_of(tenant).store, names

    def __contains__(self, name: object) -> bool:
        store = self._store
        return name in self._names or any(store.head(branch).length for branch in store.branches(str(name)))
