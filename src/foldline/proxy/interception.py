"""The interface between the code that passes requests on and the code that records, folds or answers them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from foldline.message import Message, ToolCall
from foldline.proxy.api_calls import ApiCall
from foldline.proxy.forwarded_headers import RawHeaders


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRequest:
    """A request of a client to an API that foldline can read."""

    call: ApiCall
    headers: RawHeaders
    body: bytes
    """The body as the client sent it, possibly compressed."""
    query: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnAnswer:
    """A complete response that foldline writes itself."""

    status: int
    body: bytes
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingRequest:
    """What is sent to the provider."""

    body: bytes
    is_rewritten: bool = False
    """Whether the body differs from the client's body. If so, the body is not compressed."""
    betas: tuple[str, ...] = ()
    """Values of the header `anthropic-beta` that are added to the client's own values."""
    notes: tuple[tuple[str, str], ...] = ()
    """Foldline's own headers for the response."""
    answer: OwnAnswer | None = None
    """A response that foldline writes itself. If it is set, nothing is sent to the provider."""
    is_large: bool = False
    """Whether the request may be too large for the window. If so, the beginning of the response is examined before it
    is passed on.
    """
    offers_recall: bool = False
    """Whether the body offers the recall tool, whose calls the proxy answers."""
    ticket: Any = None
    """What the interceptor needs to record the response; None if nothing is recorded."""


@dataclass(slots=True, kw_only=True)
class ReceivedResponse:
    """The response of a provider, as far as it was received."""

    status: int
    headers: RawHeaders
    chunks: list[bytes] = field(default_factory=list)
    is_complete: bool = False
    """Whether the provider sent the complete response."""
    is_dropped: bool = False
    """Whether the response was too large to be kept."""
    size: int = 0

    def keep(self, chunk: bytes, limit: int) -> None:
        """Keep a chunk for the record, unless the response has become too large."""
        self.size += len(chunk)
        if self.size > limit:
            self.chunks, self.is_dropped = [], True
        elif not self.is_dropped:
            self.chunks.append(chunk)


class Interceptor(Protocol):
    """Decides what is sent and records what came back. No method raises."""

    async def prepare(self, request: ClientRequest) -> OutgoingRequest:
        """What to send to the provider instead of a client's request."""

    async def retry(
        self, request: ClientRequest, sent: OutgoingRequest, error: ReceivedResponse
    ) -> OutgoingRequest | None:
        """The request to send after the provider refused a request; None if the refusal is to be passed on."""

    async def recall(self, sent: OutgoingRequest, calls: Sequence[ToolCall]) -> list[Message]:
        """The results of recall calls in the reply to a request."""

    def record(
        self, request: ClientRequest, sent: OutgoingRequest, response: ReceivedResponse
    ) -> asyncio.Future[None] | None:
        """Begin to record an exchange.

        Returns a future that is done when the exchange is recorded; None if nothing is recorded.
        """

    async def close(self) -> None:
        """Wait until all exchanges are recorded, and release all resources."""


class PassThrough:
    """An interceptor that changes and records nothing."""

    async def prepare(self, request: ClientRequest) -> OutgoingRequest:
        """Return the client's request unchanged."""
        return OutgoingRequest(body=request.body)

    async def retry(
        self,
        request: ClientRequest,  # noqa: ARG002 (nothing is retried)
        sent: OutgoingRequest,  # noqa: ARG002
        error: ReceivedResponse,  # noqa: ARG002
    ) -> OutgoingRequest | None:
        """Returns None, because every refusal is passed on."""
        return None

    async def recall(self, sent: OutgoingRequest, calls: Sequence[ToolCall]) -> list[Message]:  # noqa: ARG002
        """Returns no results, because the recall tool is not offered."""
        return []

    def record(
        self,
        request: ClientRequest,  # noqa: ARG002 (nothing is recorded)
        sent: OutgoingRequest,  # noqa: ARG002
        response: ReceivedResponse,  # noqa: ARG002
    ) -> asyncio.Future[None] | None:
        """Returns None, because nothing is recorded."""
        return None

    async def close(self) -> None:
        """Do nothing."""
