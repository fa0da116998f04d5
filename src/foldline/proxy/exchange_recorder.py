"""Records an exchange after its response was passed on, and folds the session if it has become due."""

from __future__ import annotations

from foldline.errors import FoldlineError, ViewTooLarge
from foldline.events import LOG
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


class ExchangeRecorder:
    """Writes exchanges to the ledger. All methods block."""

    def __init__(self, settings: ProxySettings, planner: RequestPlanner) -> None:
        self.settings, self.planner = settings, planner

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
        if messages:
            conversation = self._add_reply(ticket, conversation, messages)
        ticket.group.use(conversation)
        if located.conversation is conversation:
            conversation.remember(located.history, located.alignment.places)
        usage = messages[-1].meta.usage if messages else None
        receipt = None
        if usage is not None:
            receipt = write_receipt(ticket, conversation, usage, window=self.settings.policy.window_tokens or 0)
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

    def _fold_if_due(self, conversation: ClientConversation) -> None:
        """Fold the session now, while the client works, if its policy demands it."""
        try:
            conversation.session.view()
        except ViewTooLarge as error:
            LOG.warning("%s: the next request may not fit: %s", conversation.session.name, error)
        except FoldlineError as error:
            LOG.warning("%s: it was not folded: %s", conversation.session.name, error)
