"""The interceptor that records conversations and folds them. If it fails, the client's own request is sent.

Recording runs in threads. Planning also runs in threads, unless it takes less than a millisecond. All work on the
conversations with the same tenant and client id (a `ConversationGroup`) is done in the order of its arrival. So the
reply to a request is recorded before the client's next request is planned.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from foldline.events import LOG
from foldline.ledger.receipts import Receipt
from foldline.message import Message, ToolCall
from foldline.proxy.api_calls import ApiCall
from foldline.proxy.body_scan import NotScannable, common_length, scan_body
from foldline.proxy.compaction_answers import (
    SEALED,
    compaction_answer,
    compaction_request,
    with_readable_items,
    without_request,
)
from foldline.proxy.configuration import ProxySettings
from foldline.proxy.content_codings import NotDecodable, decode_body
from foldline.proxy.conversations import ConversationGroup, Conversations, Located
from foldline.proxy.credentials import CredentialHash, hash_key
from foldline.proxy.exchange_counters import ExchangeCounters
from foldline.proxy.exchange_recorder import ExchangeRecorder
from foldline.proxy.exchange_reports import Reporter, exchange_report, report_to
from foldline.proxy.forwarded_headers import header
from foldline.proxy.group_work import GroupWork
from foldline.proxy.interception import ClientRequest, OutgoingRequest, ReceivedResponse
from foldline.proxy.partial_requests import PARTIAL, partial_refusal
from foldline.proxy.plain_text_input import with_listed_input
from foldline.proxy.planned_request import RequestPlanner, Ticket
from foldline.proxy.recall_offer import body_with_recall, recall_results
from foldline.proxy.session_names import client_session_id
from foldline.redact.redact import redact_error
from foldline.wire.formats import request_format
from foldline.wire.overflow_signals import is_overflow_answer


class UnplannedRequest(NamedTuple):
    """A request that was passed on unchanged because planning it failed.

    If possible, the request is recorded after its response.
    """

    group: ConversationGroup
    body: bytes
    sent_at: float


class RecordingInterceptor:
    """Records exchanges and folds sessions."""

    def __init__(
        self,
        settings: ProxySettings,
        conversations: Conversations,
        clock: Callable[[], float] = time.time,
        counters: ExchangeCounters | None = None,
        reporters: Sequence[Reporter] = (),
    ) -> None:
        self.settings, self.conversations, self._clock = settings, conversations, clock
        self.planner = RequestPlanner(settings, conversations)
        self.counters = counters or ExchangeCounters()
        self.recorder = ExchangeRecorder(settings, self.planner, self.counters)
        self.reporters = reporters
        self._key = hash_key(conversations.store)
        self._credentials = CredentialHash(self._key)
        self._work = GroupWork()
        self._tasks: set[asyncio.Task[None]] = set()

    # Planning

    async def prepare(self, request: ClientRequest) -> OutgoingRequest:
        """The request to send: the client's own request, or the request for the folded session."""
        try:
            body = self._body(request)
        except NotDecodable as error:
            return self._pass_on(request, error)
        group, started_at = self._group(request), self._clock()
        try:
            outgoing = await self._planned(request, group, body)
        except NotScannable:
            return OutgoingRequest(body=request.body, notes=(("recorded", "no"),))
        except Exception as error:  # noqa: BLE001 (after any error in foldline, the client's own request is sent)
            late = UnplannedRequest(group, body, started_at) if request.call.kind == "create" else None
            return replace(self._pass_on(request, error), ticket=late)
        if outgoing.answer is not None:
            answered = ReceivedResponse(status=outgoing.answer.status, headers=(), is_complete=True)
            report = exchange_report(request, outgoing, answered, None, self._clock(), started_at)
            report_to(self.reporters, report)
        if isinstance(outgoing.ticket, Ticket) and outgoing.ticket.conversation is not None:
            outgoing.ticket.enter()
        return outgoing

    async def _planned(self, request: ClientRequest, group: ConversationGroup, body: bytes) -> OutgoingRequest:
        """The plan for a request. If planning takes less than a millisecond, it is done in the event loop, else in a
        thread.
        """
        outgoing = None if group.pending else self._plan_at_once(request, group, body)
        if outgoing is not None:
            return outgoing
        async with asyncio.timeout(self.settings.prepare_s):
            return await self._work.run(group, lambda: self._plan(request, group, body))

    def _plan(self, request: ClientRequest, group: ConversationGroup, given: bytes) -> OutgoingRequest:
        call = request.call
        read = self._readable(group, given) if call.format == "openai-responses" else given
        located = self._locate(group, read, call.format)
        scan = located.history.scan
        if any(scan.field(key) for key in PARTIAL):
            if self.settings.refuses_partial and call.kind == "create":
                return OutgoingRequest(body=request.body, answer=partial_refusal(call.format, scan.field))
            raise NotScannable("the request contains only the new messages")
        if call.kind == "count":
            body = self.planner.count_body(located) if self.settings.mode == "fold" else None
            body = self._offer(located, body, call.format) or body
            return OutgoingRequest(body=body or request.body, is_rewritten=body is not None)
        model = call.model or str(scan.field("model") or "")
        if self.settings.answers_compaction:
            answer = self._answer_compaction(group, located, call, model)
            if answer is not None:
                return answer
        ticket = self._ticket(call, group, located, self._clock())
        body = self.planner.plan(ticket) if self.settings.mode == "fold" and call.kind == "create" else None
        if body is None and read is not given:
            body = read
        offered = self._offer(ticket.located, body, call.format) if call.kind == "create" else None
        return replace(self._outgoing(request, offered or body, ticket), offers_recall=offered is not None)

    def _plan_at_once(self, request: ClientRequest, group: ConversationGroup, body: bytes) -> OutgoingRequest | None:
        """The same as `_plan`, if planning takes less than a millisecond and so needs no thread; else None.

        The usual request adds a few messages to a conversation in memory, and nothing has to be written before it is
        sent. Such a request needs no thread.
        """
        call, conversations, settings = request.call, self.conversations, self.settings
        if call.kind != "create" or settings.offers_recall or not conversations.reads_at_once:
            return None
        if call.format == "openai-responses" and self._readable(group, body) is not body:
            return None
        located = conversations.locate_at_once(group, body, call.format)
        if located is None or any(located.history.scan.field(key) for key in PARTIAL):
            return None
        if settings.answers_compaction and compaction_request(located.history, call.kind) is not None:
            return None
        ticket = self._ticket(call, group, located, self._clock())
        if settings.mode != "fold":
            return self._outgoing(request, None, ticket)
        if not self.planner.is_ready(ticket):
            return None
        return self._outgoing(request, self.planner.body(ticket), ticket)

    def _locate(self, group: ConversationGroup, data: bytes, format: str) -> Located:
        """Find the conversation of a request, whose messages may be given as one plain text."""
        try:
            return self.conversations.locate(group, data, format)
        except NotScannable:
            listed = with_listed_input(data, request_format(format))
            if listed is None:
                raise
            return self.conversations.locate(group, listed, format)

    def _ticket(self, call: ApiCall, group: ConversationGroup, located: Located, sent_at: float) -> Ticket:
        scan = located.history.scan
        return Ticket(
            group=group,
            located=located,
            conversation=located.conversation,
            model=call.model or str(scan.field("model") or ""),
            tools=scan.field_text("tools"),
            format=call.format,
            sent_at=sent_at,
            is_edited=_is_edited(located),
        )

    def _offer(self, located: Located, body: bytes | None, format: str) -> bytes | None:
        """The request body with the recall tool; None if the tool is not offered."""
        if not self.settings.offers_recall or self.settings.mode != "fold":
            return None
        return body_with_recall(located, body, format)

    async def recall(self, sent: OutgoingRequest, calls: Sequence[ToolCall]) -> list[Message]:
        """The results of recall calls, read from the session of a request."""
        ticket: Ticket = sent.ticket
        return await self._work.run(ticket.group, lambda: recall_results(ticket.conversation, calls))

    def _readable(self, group: ConversationGroup, data: bytes) -> bytes:
        """A request body in which each compaction item that this proxy wrote is replaced by a readable message."""
        known = common_length(data, group.plain)
        if data.find(SEALED, max(0, known - len(SEALED))) < 0:
            group.plain = data
            return data
        group.sealed = scan_body(data, request_format("openai-responses").list_key, group.sealed)
        return with_readable_items(group.sealed, self._key)

    def _answer_compaction(
        self, group: ConversationGroup, located: Located, call: ApiCall, model: str
    ) -> OutgoingRequest | None:
        """The answer to a client's request to compact its conversation.

        Returns None if the request asks for no compaction, or if no digest can be written.
        """
        asked = compaction_request(located.history, call.kind)
        if asked is None:
            return None
        history, found = without_request(located.history, asked), located.conversation
        alignment = found.align(history) if found is not None else located.alignment
        told = Located(history=history, conversation=found, alignment=alignment)
        ticket = Ticket(group=group, located=told, conversation=found, model=model, format=call.format)
        conversation = found or self.planner.create(ticket)
        if alignment.elements < len(history) or alignment.place < conversation.confirmed:
            self.planner.write(ticket)  # the session may lack messages that the client wants to compact
        conversation = ticket.conversation or conversation
        conversation.session.refresh()
        answer = compaction_answer(asked, conversation, history, model, self._key)
        if answer is None:
            return None
        self.counters.add(compactions=1)
        notes = (("session", conversation.session.name.encode("ascii", "replace").decode()), ("answered", "compaction"))
        return OutgoingRequest(body=b"", answer=answer, notes=notes)

    def _outgoing(self, request: ClientRequest, body: bytes | None, ticket: Ticket) -> OutgoingRequest:
        notes: list[tuple[str, str]] = []
        if ticket.conversation is not None:
            session = ticket.conversation.session
            notes.append(("session", session.name.encode("ascii", "replace").decode()))
            if ticket.is_folded:
                notes.append(("folds", str(session.folds)))
            notes += _cache_note(ticket)
        return OutgoingRequest(
            body=request.body if body is None else body,
            is_rewritten=body is not None,
            notes=tuple(notes),
            is_large=self.planner.is_large(ticket, body),
            ticket=ticket,
        )

    def _pass_on(self, request: ClientRequest, error: BaseException) -> OutgoingRequest:
        """Log an error of foldline, and return the client's own request."""
        self.counters.add(faults=1)
        LOG.warning("a request is passed on unchanged: %s: %s", type(error).__name__, redact_error(error))
        return OutgoingRequest(body=request.body, notes=(("fault", type(error).__name__),))

    # Retrying

    async def retry(
        self, request: ClientRequest, sent: OutgoingRequest, error: ReceivedResponse
    ) -> OutgoingRequest | None:
        """If the provider refused `sent` as too large, fold the session and return the smaller request.

        Returns None if the provider refused `sent` for another reason, or if nothing can be folded.
        """
        ticket = sent.ticket
        if not isinstance(ticket, Ticket) or self.settings.mode != "fold" or request.call.kind != "create":
            return None
        try:
            coding = header(error.headers, b"content-encoding")
            body = decode_body(b"".join(error.chunks), coding, limit=self.settings.max_bytes)
            if not is_overflow_answer(error.status, body) or (
                ticket.conversation and self.planner.is_held_out(ticket.conversation)
            ):
                return None
            async with asyncio.timeout(self.settings.prepare_s * 4):
                folded = await self._work.run(ticket.group, lambda: self.planner.fold_now(ticket))
        except Exception as fault:  # noqa: BLE001 (the client then gets the provider's refusal)
            self._pass_on(request, fault)
            return None
        if folded is None:
            return None
        self.counters.add(retried=1)
        ticket.is_retried = True
        return self._outgoing(request, folded, ticket)

    # Recording

    def record(
        self, request: ClientRequest, sent: OutgoingRequest, response: ReceivedResponse
    ) -> asyncio.Future[None] | None:
        """Begin to record an exchange. It is recorded after all earlier work on the same `ConversationGroup`."""
        ticket = sent.ticket
        if request.call.kind != "count":
            self.counters.add(requests=1, folded=isinstance(ticket, Ticket) and ticket.is_folded)
        ended_at = self._clock()
        if not isinstance(ticket, Ticket | UnplannedRequest):
            if request.call.kind != "count":
                report_to(self.reporters, exchange_report(request, sent, response, None, ended_at))
            return None
        task = asyncio.get_running_loop().create_task(self._record(request, sent, response, ended_at))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _record(
        self, request: ClientRequest, sent: OutgoingRequest, response: ReceivedResponse, ended_at: float
    ) -> None:
        receipt = None
        try:
            receipt = await self._work.run(sent.ticket.group, lambda: self._write(request, sent, response))
            if receipt is not None:
                self.counters.add_receipt(receipt)
        except Exception as error:  # noqa: BLE001 (the client already has its response)
            self.counters.add(faults=1)
            LOG.warning("an exchange was not recorded: %s: %s", type(error).__name__, redact_error(error))
        report_to(self.reporters, exchange_report(request, sent, response, receipt, ended_at))

    def _write(self, request: ClientRequest, sent: OutgoingRequest, response: ReceivedResponse) -> Receipt | None:
        if isinstance(sent.ticket, UnplannedRequest):
            located = self._locate(sent.ticket.group, sent.ticket.body, request.call.format)
            late = self._ticket(request.call, sent.ticket.group, located, sent.ticket.sent_at)
            return self.recorder.record(late, response)
        ticket: Ticket = sent.ticket
        ticket.leave()
        if sent.is_rewritten:
            ticket.sent_body = sent.body
        return self.recorder.record(ticket, response)

    async def readiness(self) -> str:
        """The reason why the proxy cannot record requests; "" if it can record them."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self.settings.prepare_s):
                await loop.run_in_executor(self._work.threads, self.conversations.store.branches, "settings")
        except Exception as error:  # noqa: BLE001 (after any error, nothing can be recorded)
            return f"the ledger does not answer ({type(error).__name__})"
        return ""

    async def settle(self) -> None:
        """Wait until all exchanges so far are recorded."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """Wait until all exchanges are recorded, then close the ledger."""
        await self.settle()
        self._work.close()
        self.conversations.close()

    def _group(self, request: ClientRequest) -> ConversationGroup:
        tenant = "" if self.settings.single_user else self._credentials.tenant(request.headers, request.query)
        return self.conversations.group(tenant, client_session_id(request.headers))

    def _body(self, request: ClientRequest) -> bytes:
        """The body of a request, decompressed."""
        coding = header(request.headers, b"content-encoding")
        return decode_body(request.body, coding, limit=self.settings.max_bytes) if coding else request.body


def _is_edited(located: Located) -> bool:
    """Whether the client changed or removed messages that it had sent before."""
    found = located.conversation
    return located.is_compacted or (found is not None and located.alignment.place < found.confirmed)


def _cache_note(ticket: Ticket) -> list[tuple[str, str]]:
    """The header that says whether the cache of the previous request has expired, and what an expired cache costs."""
    sent = ticket.conversation.sent if ticket.conversation is not None else None
    price = sent.cold if sent is not None else None
    if price is None:
        return []
    state = "cold" if ticket.sent_at > price.expires_at else "warm"
    usd = f"; usd={price.usd:.4f}" if price.usd is not None else ""
    return [("cache", f"{state}; expires={price.expires_at:.0f}; tokens={price.tokens}{usd}")]
