"""Records an exchange after its response was passed on. Then folds the session if the policy requires a fold."""

from __future__ import annotations

from dataclasses import replace

from foldline.errors import Conflict, FoldlineError, ViewTooLarge
from foldline.events import LOG, Event, emit
from foldline.ledger.recall_requests import add_recall_requests
from foldline.ledger.receipts import RECEIPT, Receipt, add_receipt, receipt_body
from foldline.message import Message
from foldline.proxy.configuration import ProxySettings
from foldline.proxy.conversation import ClientConversation, RecalledReply
from foldline.proxy.conversations import RECALLED
from foldline.proxy.exchange_counters import ExchangeCounters
from foldline.proxy.folded_request import is_unfolded
from foldline.proxy.interception import ReceivedResponse
from foldline.proxy.planned_request import RequestPlanner, Ticket
from foldline.proxy.receipt_writer import make_receipt
from foldline.proxy.reply_reading import read_reply
from foldline.proxy.session_edits import release_long_prompt
from foldline.session.record import ATTEMPTS, BranchRecord, too_many_conflicts
from foldline.session.reply_ties import tie_replies
from foldline.view.identity import UNKNOWN_VIEW

MIN_TRUNCATED = 2_000
"""Only requests of at least this many tokens are checked for truncation, because estimates of smaller requests are less
certain.
"""
TRUNCATED_RATIO = 0.5
"""If the provider reports less than this share of the estimated tokens, the request was truncated."""


class ExchangeRecorder:
    """Writes exchanges to the ledger. All methods block."""

    def __init__(self, settings: ProxySettings, planner: RequestPlanner, counters: ExchangeCounters) -> None:
        self.settings, self.planner, self.counters = settings, planner, counters

    def record(self, ticket: Ticket, response: ReceivedResponse) -> Receipt | None:
        """Record a request and its reply. Returns the receipt; None if the provider reported no usage."""
        if response.status != 200:
            return None
        reply = read_reply(response, ticket.format, limit=self.settings.max_bytes)
        messages = list(reply.messages) if reply is not None else []
        conversation, receipt = self._record(ticket, messages)
        self._note_recall(ticket, conversation, messages)
        ticket.group.use(conversation)
        located = ticket.located
        if located.conversation is conversation:
            conversation.remember(located.history, located.alignment.places)
        if self.settings.mode == "fold" and not self.planner.is_held_out(conversation) and response.is_complete:
            self._fold_if_due(conversation)
            self.planner.measure_headroom(conversation)
        return receipt

    def _record(self, ticket: Ticket, reply: list[Message]) -> tuple[ClientConversation, Receipt | None]:
        """Record an exchange. If another process has added messages to the session meanwhile, these messages are read
        first.
        """
        for attempt in range(ATTEMPTS):
            try:
                # if another process has added messages since the last read, adding the reply raises `Conflict`
                is_current = attempt == 0 and bool(reply) and _is_plain(ticket) and _is_current(ticket)
                if not is_current and self.planner.catch_up(ticket):
                    ticket.identity = UNKNOWN_VIEW  # the messages were added after the request was sent
                if reply and _is_plain(ticket):
                    return self._record_at_once(ticket, reply)
                return self._record_in_steps(ticket, reply)
            except Conflict:
                if ticket.conversation is None:
                    raise
        raise too_many_conflicts()

    def _note_recall(self, ticket: Ticket, conversation: ClientConversation, reply: list[Message]) -> None:
        """Store the recall calls of a reply, because the client has not seen them and will not send them back.

        If the model wrote several replies, the usage of each reply before the last one is stored, too.
        """
        trail, end = ticket.recall, conversation.length
        if trail is None or not trail.calls:
            return
        store, branch = conversation.session.record.search_target()
        if trail.usages:
            model = reply[-1].meta.model if reply else ""
            add_recall_requests(store, branch, trail.usages, model=model or ticket.model, at=ticket.sent_at)
        if not reply or not conversation.chain.has_at(end - len(reply), reply):
            return
        first = end - len(reply) + 1
        conversation.recalled[first] = RecalledReply(end, trail.elements)
        store.event(branch, RECALLED, {"first": first, "last": end, "elements": trail.elements})

    def _record_at_once(self, ticket: Ticket, reply: list[Message]) -> tuple[ClientConversation, Receipt | None]:
        """Record an exchange in one transaction: new messages, reply and receipt. The exchange must only add messages
        at the end of its session.
        """
        conversation, located = ticket.conversation, ticket.located
        assert conversation is not None  # noqa: S101 (for the type checker)
        session, history, found = conversation.session, located.history, located.alignment
        new = history.new_messages(found.elements)
        if session.state.needs_times:
            new = [message.with_meta(replace(message.meta, at=ticket.sent_at)) for message in new]
        tied = self._tied(ticket, conversation, reply)
        receipt = self._receipt(ticket, conversation, reply)
        record = session.record
        if receipt is not None and isinstance(record, BranchRecord):
            record.next_events = [(RECEIPT, receipt_body(receipt))]
        session.add(*new, *tied)
        first = conversation.length
        conversation.extend([*new, *tied])
        end = first + len(new)
        places = [*found.places, *range(first + 1, end + 1)]
        alignment = found._replace(elements=len(history), place=end, places=places)
        ticket.located = replace(located, alignment=alignment)
        if receipt is not None:
            self._report_truncation(conversation, receipt.usage.prompt, _estimate(ticket, conversation, len(tied)))
        return conversation, receipt

    def _record_in_steps(self, ticket: Ticket, reply: list[Message]) -> tuple[ClientConversation, Receipt | None]:
        """Record an exchange in several transactions.

        This is for a new session, or for a request or reply that may need a new branch.
        """
        conversation = ticket.conversation or self.planner.create(ticket)
        self.planner.write(ticket)
        conversation = ticket.conversation or conversation
        estimate = _estimate(ticket, conversation, 0)
        if reply:
            conversation = self._add_reply(ticket, conversation, reply)
        receipt = self._receipt(ticket, conversation, reply)
        if receipt is not None:
            add_receipt(*conversation.session.record.search_target(), receipt)
            self._report_truncation(conversation, receipt.usage.prompt, estimate)
        return conversation, receipt

    def _receipt(self, ticket: Ticket, conversation: ClientConversation, reply: list[Message]) -> Receipt | None:
        usage = reply[-1].meta.usage if reply else None
        if usage is None:
            return None
        return make_receipt(ticket, conversation, usage, window=self.settings.policy.window_tokens or 0)

    def _tied(self, ticket: Ticket, conversation: ClientConversation, reply: list[Message]) -> list[Message]:
        """The messages of the reply, each with the `ViewIdentity` of the view that was sent to the model."""
        state = conversation.session.state
        own = state.identity().extension if is_unfolded(state, conversation.start) else UNKNOWN_VIEW
        return tie_replies(reply, ticket.identity or own)

    def _add_reply(
        self, ticket: Ticket, conversation: ClientConversation, messages: list[Message]
    ) -> ClientConversation:
        """Add a reply after its request.

        If the client has already continued without the reply, the reply is added on a new branch.
        """
        place = ticket.located.alignment.place
        tied = self._tied(ticket, conversation, messages)
        if conversation.length > place:
            if conversation.chain.has_at(place, messages):
                return conversation  # the client has already sent the reply back
            conversation = self.planner.conversations.fork(ticket.group, conversation, place)
        conversation.session.add(*tied)
        conversation.extend(tied)
        return conversation

    def _report_truncation(self, conversation: ClientConversation, reported: int, estimate: int) -> None:
        """Emit an event if the provider has silently truncated the request.

        A request counts as truncated if the provider reports far fewer tokens than were sent. If several requests in a
        row are truncated, only one event is emitted.
        """
        is_truncated = estimate >= MIN_TRUNCATED and reported < estimate * TRUNCATED_RATIO
        self.counters.add(truncated=is_truncated)
        is_known, conversation.is_truncated = conversation.is_truncated, is_truncated
        if is_known or not is_truncated:
            return
        facts = {"sent": estimate, "read": reported}
        store, branch = conversation.session.record.search_target()
        store.event(branch, "truncated", facts)
        emit(Event("truncated", conversation.session.name, facts), self.planner.conversations.listener)

    def _fold_if_due(self, conversation: ClientConversation) -> None:
        """Fold the session now if the policy requires a fold, so that the client's next request need not wait."""
        try:
            release_long_prompt(conversation.session)
            conversation.session.fold_if_due()
        except ViewTooLarge as error:
            LOG.warning("%s: the next request may not fit: %s", conversation.session.name, error)
        except FoldlineError as error:
            LOG.warning("%s: the session was not folded: %s", conversation.session.name, error)


def _is_plain(ticket: Ticket) -> bool:
    """Whether a request only adds messages at the end of its session, so that one transaction can record it."""
    conversation, located = ticket.conversation, ticket.located
    if conversation is None or located.is_compacted or located.conversation is not conversation:
        return False
    return located.alignment.place == conversation.length


def _is_current(ticket: Ticket) -> bool:
    """Whether the conversation of a request has as many messages as its session has in memory."""
    conversation = ticket.conversation
    if conversation is None or not isinstance(record := conversation.session.record, BranchRecord):
        return False
    return record.known_length == conversation.length


def _estimate(ticket: Ticket, conversation: ClientConversation, reply: int) -> int:
    """The estimated number of tokens in the request that was sent.

    `reply` is the number of messages in the reply. They are the last messages of the session, and are not counted. If
    the session was folded after the request was sent, the size is unknown and the result is 0.
    """
    state = conversation.session.state
    if ticket.is_folded is is_unfolded(state, conversation.start):
        return 0
    identity, prefix = state.identity(), state.timeline.prefix
    return identity.tokens + identity.tools - (prefix[-1] - prefix[-1 - reply])
