"""Decides what to send for a request: the client's own bytes, or the view of its folded session.

Only values in memory are used. But if the session has to be folded now, its new messages are written to the ledger
first.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from hashlib import blake2b

from foldline.errors import FoldlineError
from foldline.models.table import model as model_of
from foldline.plan.gate import gate
from foldline.proxy.configuration import ProxySettings
from foldline.proxy.conversation import ClientConversation
from foldline.proxy.conversations import ConversationGroup, Conversations, Located
from foldline.proxy.folded_request import folded_body, is_unfolded
from foldline.proxy.session_edits import fold_before, rewind
from foldline.proxy.session_names import new_session_name
from foldline.session.session import Session
from foldline.view.identity import ViewIdentity

CHARS_PER_TOKEN = 2
"""A request is certainly not too large if it has fewer characters than this number times the tokens of the window."""
LARGE_CHARS = 200_000
"""A request with more characters than this may be too large for a provider whose window is smaller than the configured
one.
"""
COLD_S = 270.0
"""After a pause of this many seconds, the prompt cache may have expired. A fold is then cheaper."""


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
    sent_text: str = ""
    """The body that was sent; "" if it was the client's own."""
    sent_at: float = 0.0
    """When the request was sent, in seconds since 1970."""
    is_edited: bool = False
    """Whether the client changed messages that it had sent before."""
    is_retried: bool = False
    is_held_out: bool = False
    _entered: ClientConversation | None = None

    def enter(self) -> None:
        """Add 1 to the number of requests of the conversation that are being answered."""
        if self.conversation is not None and self._entered is None:
            self._entered = self.conversation
            self._entered.in_flight += 1

    def leave(self) -> None:
        """Undo `enter`. Later calls have no effect."""
        if self._entered is not None:
            self._entered.in_flight -= 1
            self._entered = None


class RequestPlanner:
    """Decides what to send for each request. All methods block."""

    def __init__(self, settings: ProxySettings, conversations: Conversations) -> None:
        self.settings, self.conversations = settings, conversations
        self._windows: dict[str, int] = {}
        """The window of each model in tokens. They are cached, because a lookup takes longer than
        the rest of the work.
        """

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
        if located.is_compacted or located.alignment.place < conversation.length:
            self.write(ticket)  # the session is moved back, forked or restarted first
        else:
            self._follow_settings(ticket)
            if self._is_due(ticket):
                self.write(ticket)
        return self._view_body(ticket)

    def count_body(self, located: Located) -> bytes | None:
        """The body for a request that counts tokens; None if the client's own body is to be sent."""
        conversation = located.conversation
        if conversation is None or self.is_held_out(conversation) or located.is_compacted:
            return None
        state = conversation.session.state
        if is_unfolded(state, conversation.start) or located.alignment.place < state.timeline.cut:
            return None
        return folded_body(state, located.history, located.alignment.places)

    def fold_now(self, ticket: Ticket) -> bytes | None:
        """The body after a fold, for a request that the provider refused as too large; None if
        nothing can be folded.
        """
        if ticket.conversation is None:
            self.create(ticket)
        self.write(ticket)
        session = self._session(ticket)
        if session.fold() is None and session.fold(force=True) is None:
            return None
        return self._view_body(ticket, plan=False)

    # The session

    def create(self, ticket: Ticket) -> ClientConversation:
        """Create the session of a new conversation."""
        group, history = ticket.group, ticket.located.history
        opened = self.conversations.ledger_of(group.tenant)
        taken = {one.session.name for one in group.conversations}
        name = new_session_name(group.client_id, _SessionNames(self.conversations, group.tenant, taken))
        tools = history.scan.field("tools")
        session = opened.session(
            name,
            model=ticket.model or self.settings.model,
            policy=self.settings.policy,
            tools=tools if isinstance(tools, list) else (),
            format=ticket.format,
        )
        conversation = self.conversations.add(group, session)
        conversation.settings = (ticket.model, ticket.tools)
        system = history.system()
        if system:
            session.add(*system)
        conversation.start = len(system)
        conversation.confirmed = conversation.start
        ticket.conversation = conversation
        return conversation

    def write(self, ticket: Ticket) -> None:
        """Add the new messages of a request to its session.

        If the client changed earlier messages, they go to a new branch.
        """
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
            fold_before(conversation.session, conversation.start, reason="compacted by the client")
        ticket.located = Located(
            history=history,
            conversation=conversation,
            alignment=found._replace(elements=len(history), place=conversation.length),
        )

    def _at(self, ticket: Ticket, conversation: ClientConversation, place: int) -> ClientConversation:
        """The conversation, shortened so that it ends at `place`.

        If only an unconfirmed reply has to go, the same conversation is shortened; else the result is a new branch.
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
        """Tell the session that the client changed the model or the tools."""
        conversation = ticket.conversation
        if conversation is None or conversation.settings == (ticket.model, ticket.tools):
            return
        tools = ticket.located.history.scan.field("tools")
        conversation.session.use(model=ticket.model or None, tools=tools if isinstance(tools, list) else ())
        conversation.settings = (ticket.model, ticket.tools)

    def is_held_out(self, conversation: ClientConversation) -> bool:
        """Whether a session belongs to the share that is never folded. The name of the session
        determines the result.
        """
        share = self.settings.holdout_ratio
        if not share:
            return False
        drawn = blake2b(conversation.session.name.encode(), digest_size=4).digest()
        return int.from_bytes(drawn, "big") < share * (1 << 32)

    # The size

    def may_overflow(self, ticket: Ticket) -> bool:
        """Whether a client's request may be too large for its window. Only its length is checked."""
        return len(ticket.located.history.scan.text) > self._least_chars(ticket)

    def is_large(self, ticket: Ticket, body: bytes | None) -> bool:
        """Whether the provider may refuse a request as too large. Its window may be smaller than the configured one."""
        length = len(ticket.located.history.scan.text) if body is None else len(body)
        return self.settings.mode == "fold" and length > min(LARGE_CHARS, self._least_chars(ticket))

    def _least_chars(self, ticket: Ticket) -> int:
        """A request with at most this number of characters certainly fits its window."""
        name = ticket.model or self.settings.model
        if name not in self._windows:
            self._windows[name] = self.settings.policy.window_tokens or model_of(name).window
        return self._windows[name] * CHARS_PER_TOKEN

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

        `plan` lets the session fold first if its policy demands it.
        """
        session, located = self._session(ticket), ticket.located
        conversation = ticket.conversation
        is_written = located.alignment.elements == len(located.history)
        if plan and is_written:
            session.view()
        else:
            session.refresh()
        state = session.state
        ticket.identity = state.identity().extension
        if conversation is None or is_unfolded(state, conversation.start):
            return None
        if located.alignment.place < state.timeline.cut:
            raise FoldlineError("the request ends before the fold")
        ticket.is_folded, ticket.fold_key = True, state.identity().fold_key
        return folded_body(state, located.history, located.alignment.places)


class _SessionNames:
    """The names of a tenant's sessions."""

    def __init__(self, conversations: Conversations, tenant: str, names: set[str]) -> None:
        self._store, self._names = conversations.ledger_of(tenant).store, names

    def __contains__(self, name: object) -> bool:
        return name in self._names or bool(self._store.branches(str(name)))
