"""Records an exchange after its response was passed on, and folds the session if it has become due."""

from __future__ import annotations

from foldline.errors import FoldlineError, ViewTooLarge
from foldline.events import LOG, Event, emit
from foldline.ledger.receipts import Receipt
from foldline.message import Message
from foldline.proxy.configuration import ProxySettings
from foldline.proxy.conversation import ClientConversation
from foldline.proxy.folded_request import is_unfolded
from foldline.proxy.interception import ReceivedResponse
from foldline.proxy.planned_request import RequestPlanner, Ticket
from foldline.proxy.receipt_writer import write_receipt
from foldline.proxy.reply_reading import read_reply
from foldline.session.reply_ties import tie_replies
from foldline.view.identity import UNKNOWN_VIEW

MIN_TRUNCATED = 2_000
"""Smaller requests are not checked for truncation, because estimates of them are less certain."""
TRUNCATED_RATIO = 0.5
"""A request of which the provider reports less than this share of the estimated tokens was truncated."""


class ExchangeRecorder:
    """Writes exchanges to the ledger. All methods block."""

    def __init__(self, settings: ProxySettings, planner: RequestPlanner) -> None:
        self.settings, self.planner = settings, planner
        self.truncations = 0
        """Number of requests of which the provider silently left out a part."""

    def record(self, ticket: Ticket, response: ReceivedResponse) -> Receipt | None:
        """Record a request and its reply. Returns the receipt; None if the provider reported no usage."""
        if response.status != 200:
            return None
        reply = read_reply(response, ticket.format, limit=self.settings.max_bytes)
        conversation = ticket.conversation or self.planner.create(ticket)
        self.planner.write(ticket)
        conversation = ticket.conversation or conversation
        located = ticket.located
        messages = list(reply.messages) if reply is not None else []
        estimate = _estimate(ticket, conversation)
        if messages:
            conversation = self._add_reply(ticket, conversation, messages)
        ticket.group.use(conversation)
        if located.conversation is conversation:
            conversation.remember(located.history, located.alignment.places)
        usage = messages[-1].meta.usage if messages else None
        receipt = None
        if usage is not None:
            receipt = write_receipt(ticket, conversation, usage, window=self.settings.policy.window_tokens or 0)
            self._report_truncation(conversation, usage.prompt, estimate)
        if self.settings.mode == "fold" and not self.planner.is_held_out(conversation) and response.is_complete:
            self._fold_if_due(conversation)
        return receipt

    def _add_reply(
        self, ticket: Ticket, conversation: ClientConversation, messages: list[Message]
    ) -> ClientConversation:
        """Add a reply after its request, on a branch of its own if the client already went on without it."""
        place = ticket.located.alignment.place
        state = conversation.session.state
        own = state.identity().extension if is_unfolded(state, conversation.start) else UNKNOWN_VIEW
        tied = tie_replies(messages, ticket.identity or own)
        if conversation.length > place:
            if conversation.has_at(place, messages):
                return conversation  # the client has already sent it back
            conversation = self.planner.conversations.fork(ticket.group, conversation, place)
        conversation.session.add(*tied)
        conversation.extend(tied)
        return conversation

    def _report_truncation(self, conversation: ClientConversation, reported: int, estimate: int) -> None:
        """Report a provider that read far fewer tokens than were sent: it left out a part without saying so."""
        if estimate < MIN_TRUNCATED or reported >= estimate * TRUNCATED_RATIO:
            return
        facts = {"sent": estimate, "read": reported}
        store, branch = conversation.session.record.search_target()
        store.event(branch, "truncated", facts)
        emit(Event("truncated", conversation.session.name, facts), self.planner.conversations.listener)
        self.truncations += 1

    def _fold_if_due(self, conversation: ClientConversation) -> None:
        """Fold the session now, while the client works, if its policy demands it."""
        try:
            conversation.session.view()
        except ViewTooLarge as error:
            LOG.warning("%s: the next request may not fit: %s", conversation.session.name, error)
        except FoldlineError as error:
            LOG.warning("%s: it was not folded: %s", conversation.session.name, error)


def _estimate(ticket: Ticket, conversation: ClientConversation) -> int:
    """An estimate of the tokens of the request that was sent, before its reply is added; 0 if it cannot be told."""
    state = conversation.session.state
    if ticket.is_folded is is_unfolded(state, conversation.start):
        return 0  # the session was folded after the request was sent
    identity = state.identity()
    return identity.tokens + identity.tools
