"""The interceptor that records conversations and folds them. If it fails, the client's own request is sent.

Planning and recording run in threads. All work on one group of conversations is done in the order of its arrival, so
that the reply to a request is recorded before the client's next request is planned.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from foldline.events import LOG
from foldline.json_text import decode, encode
from foldline.ledger.receipts import Receipt
from foldline.proxy.api_calls import ApiCall
from foldline.proxy.body_scan import NotScannable, scan_body
from foldline.proxy.compaction_answers import (
    SEALED,
    compaction_answer,
    compaction_request,
    with_readable_items,
    without_last,
)
from foldline.proxy.configuration import ProxySettings
from foldline.proxy.content_codings import NotDecodable, decode_body
from foldline.proxy.conversations import ConversationGroup, Conversations, Located
from foldline.proxy.credentials import hash_key, tenant_of
from foldline.proxy.exchange_counters import ExchangeCounters
from foldline.proxy.exchange_recorder import ExchangeRecorder
from foldline.proxy.forwarded_headers import header
from foldline.proxy.interception import ClientRequest, OutgoingRequest, ReceivedResponse
from foldline.proxy.overflow_signals import is_overflow
from foldline.proxy.partial_requests import PARTIAL, partial_refusal
from foldline.proxy.planned_request import RequestPlanner, Ticket
from foldline.proxy.session_names import client_session_id
from foldline.redact.redact import redact_error
from foldline.wire.formats import request_format

T = TypeVar("T")
THREADS = 8


class _Busy(Exception):
    """Earlier work on the same group takes too long."""


class RecordingInterceptor:
    """Records exchanges and folds sessions."""

    def __init__(
        self, settings: ProxySettings, conversations: Conversations, clock: Callable[[], float] = time.time
    ) -> None:
        self.settings, self.conversations, self._clock = settings, conversations, clock
        self.planner = RequestPlanner(settings, conversations)
        self.recorder = ExchangeRecorder(settings, self.planner)
        self.counters = ExchangeCounters()
        self._key = hash_key(conversations.store)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="foldline-proxy")
        self._stuck: set[ConversationGroup] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    # Planning

    async def prepare(self, request: ClientRequest) -> OutgoingRequest:
        """The request to send: the client's own, or the one for its folded session."""
        try:
            text = self._text(request)
        except NotDecodable as error:
            return self._pass_on(request, error)
        group = self._group(request)
        try:
            async with asyncio.timeout(self.settings.prepare_s):
                outgoing = await self._run(group, lambda: self._plan(request, group, text))
        except NotScannable:
            return OutgoingRequest(body=request.body, notes=(("recorded", "no"),))
        except Exception as error:  # noqa: BLE001 (any fault of our own: the client's request is sent)
            return self._pass_on(request, error)
        if isinstance(outgoing.ticket, Ticket) and outgoing.ticket.conversation is not None:
            outgoing.ticket.enter()
        return outgoing

    def _plan(self, request: ClientRequest, group: ConversationGroup, text: str) -> OutgoingRequest:
        call = request.call
        own_items = SEALED in text
        if own_items:
            text = self._readable(text, call.format)
        located = self.conversations.locate(group, text, call.format)
        scan = located.history.scan
        if any(scan.field(key) for key in PARTIAL):
            if self.settings.refuses_partial and call.kind == "create":
                return OutgoingRequest(body=request.body, answer=partial_refusal(call.format, scan.field))
            raise NotScannable("it carries only what is new")
        if call.kind == "count":
            body = self.planner.count_body(located) if self.settings.mode == "fold" else None
            return OutgoingRequest(body=body or request.body, is_rewritten=body is not None)
        model = call.model or str(scan.field("model") or "")
        if self.settings.answers_compaction:
            answer = self._answer_compaction(group, located, call, model)
            if answer is not None:
                return answer
        ticket = Ticket(
            group=group,
            located=located,
            conversation=located.conversation,
            model=model,
            tools=scan.field_text("tools"),
            format=call.format,
            sent_at=self._clock(),
            is_edited=_is_edited(located),
        )
        body = self.planner.plan(ticket) if self.settings.mode == "fold" and call.kind == "create" else None
        if body is None and own_items:
            body = encode(text)
        return self._outgoing(request, body, ticket)

    def _readable(self, text: str, name: str) -> str:
        """A request body in which each compaction item that this proxy wrote is replaced by a readable message."""
        format = request_format(name)
        return with_readable_items(text, scan_body(text, format.list_key), format, self._key)

    def _answer_compaction(
        self, group: ConversationGroup, located: Located, call: ApiCall, model: str
    ) -> OutgoingRequest | None:
        """The answer to a client's request to compact its conversation; None if the request is another one."""
        asked = compaction_request(located.history, call.kind)
        if asked is None:
            return None
        history, found = without_last(located.history, asked.asked), located.conversation
        alignment = found.align(history) if found is not None else located.alignment
        told = Located(history=history, conversation=found, alignment=alignment)
        ticket = Ticket(group=group, located=told, conversation=found, model=model, format=call.format)
        conversation = found or self.planner.create(ticket)
        self.planner.write(ticket)
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
            if body is not None:
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
        """The client's own request. It is sent after an error in foldline, which is logged."""
        self.counters.add(faults=1)
        LOG.warning("a request is passed on unchanged: %s: %s", type(error).__name__, redact_error(error))
        return OutgoingRequest(body=request.body, notes=(("fault", type(error).__name__),))

    # Retrying

    async def retry(
        self, request: ClientRequest, sent: OutgoingRequest, error: ReceivedResponse
    ) -> OutgoingRequest | None:
        """Fold the session and return its smaller request, if the provider refused `sent` as too large.

        None if the provider refused it for another reason, or if nothing can be folded.
        """
        ticket = sent.ticket
        if not isinstance(ticket, Ticket) or self.settings.mode != "fold" or request.call.kind != "create":
            return None
        try:
            coding = header(error.headers, b"content-encoding")
            body = decode_body(b"".join(error.chunks), coding, limit=self.settings.max_bytes)
            if not is_overflow(error.status, body) or (
                ticket.conversation and self.planner.is_held_out(ticket.conversation)
            ):
                return None
            async with asyncio.timeout(self.settings.prepare_s * 4):
                folded = await self._run(ticket.group, lambda: self.planner.fold_now(ticket))
        except Exception as fault:  # noqa: BLE001 (the provider's refusal is passed on)
            self._pass_on(request, fault)
            return None
        if folded is None:
            return None
        self.counters.add(retried=1)
        ticket.is_retried = True
        return self._outgoing(request, folded, ticket)

    # Recording

    def record(self, request: ClientRequest, sent: OutgoingRequest, response: ReceivedResponse) -> None:
        """Begin to record an exchange. All earlier work on its group is done first."""
        ticket = sent.ticket
        if request.call.kind != "count":
            self.counters.add(requests=1, folded=int(sent.is_rewritten))
        if not isinstance(ticket, Ticket):
            return
        task = asyncio.get_running_loop().create_task(self._record(ticket, sent, response))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _record(self, ticket: Ticket, sent: OutgoingRequest, response: ReceivedResponse) -> None:
        try:
            receipt = await self._run(ticket.group, lambda: self._write(ticket, sent, response))
            if receipt is not None:
                self.counters.add_receipt(receipt)
                self.counters.set(truncated=self.recorder.truncations)
        except Exception as error:  # noqa: BLE001 (the client has its response)
            self.counters.add(faults=1)
            LOG.warning("an exchange was not recorded: %s: %s", type(error).__name__, redact_error(error))

    def _write(self, ticket: Ticket, sent: OutgoingRequest, response: ReceivedResponse) -> Receipt | None:
        ticket.leave()
        if sent.is_rewritten:
            ticket.sent_text = decode(sent.body)
        return self.recorder.record(ticket, response)

    async def readiness(self) -> str:
        """The reason why the proxy cannot record requests; "" if it can."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self.settings.prepare_s):
                await loop.run_in_executor(self._threads, self.conversations.store.branches, "settings")
        except Exception as error:  # noqa: BLE001 (every fault means that nothing can be recorded)
            return f"the ledger does not answer ({type(error).__name__})"
        return ""

    async def settle(self) -> None:
        """Wait until all exchanges so far are recorded."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """Wait until all exchanges are recorded, then close the ledger."""
        await self.settle()
        self._threads.shutdown(wait=True)
        self.conversations.close()

    # Order

    async def _run(self, group: ConversationGroup, work: Callable[[], T]) -> T:
        """Run work in a thread, after all earlier work on the group."""
        if group in self._stuck:
            raise _Busy("earlier work on this session takes too long")
        await group.order.acquire()
        future = asyncio.get_running_loop().run_in_executor(self._threads, work)

        def release(_: asyncio.Future[Any]) -> None:
            self._stuck.discard(group)
            group.order.release()

        future.add_done_callback(release)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            if not future.done():
                self._stuck.add(group)
                future.add_done_callback(_ignore)
            raise

    def _group(self, request: ClientRequest) -> ConversationGroup:
        tenant = "" if self.settings.single_user else tenant_of(request.headers, request.query, self._key)
        return self.conversations.group(tenant, client_session_id(request.headers))

    def _text(self, request: ClientRequest) -> str:
        coding = header(request.headers, b"content-encoding")
        limit = self.settings.max_bytes
        return decode(decode_body(request.body, coding, limit=limit) if coding else request.body)


def _ignore(future: asyncio.Future[Any]) -> None:
    """Read the exception of work that was abandoned, so that asyncio does not report it."""
    if not future.cancelled():
        future.exception()


def _is_edited(located: Located) -> bool:
    """Whether the client changed or removed messages that it had sent before."""
    found = located.conversation
    return located.is_compacted or (found is not None and located.alignment.place < found.confirmed)


def _cache_note(ticket: Ticket) -> list[tuple[str, str]]:
    """The header that says whether the cache of the previous request has expired, and how much more the request then
    costs.
    """
    sent = ticket.conversation.sent if ticket.conversation is not None else None
    price = sent.cold if sent is not None else None
    if price is None:
        return []
    state = "cold" if ticket.sent_at > price.expires_at else "warm"
    usd = f"; usd={price.usd:.4f}" if price.usd is not None else ""
    return [("cache", f"{state}; expires={price.expires_at:.0f}; tokens={price.tokens}{usd}")]
