"""One request of a provider's client: the body to send in place of the client's own body, and the reply to record.

While nothing is folded, the client's own body is sent unchanged. A request that has only a part of the history, for
example because of `previous_response_id`, is never changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import Any

from foldline.errors import WireError
from foldline.events import LOG
from foldline.integrations.followed_session import FollowedSession, PreparedRequest
from foldline.integrations.item_codec import wire_codec
from foldline.message import Message
from foldline.proxy.api_calls import ApiCall
from foldline.session.session import Session
from foldline.view.bound_thinking import BINDING_BETA, DROP_BLOCK, THINKING_OFF, must_not_think
from foldline.wire.field_access import key_in
from foldline.wire.formats import Format, request_format
from foldline.wire.streaming.assembler import Assembler

_PARTIAL = ("previous_response_id", "conversation", "thread_id", "thread")
"""Fields that refer to messages that the provider has stored. A request with such a field has only a part of the
history.
"""

_LARGE_TOKENS = 50_000
"""A request with more tokens than this counts as large (see `ClientExchange.is_large`)."""


class ClientRequests:
    """Makes an exchange for each request of one wrapped client."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._followed: dict[str, FollowedSession] = {}
        """A followed session for each wire format that the client has used. All of them follow the same session."""
        self._lock = Lock()

    def begin(self, call: ApiCall, body: Any) -> ClientExchange | None:
        """The exchange for a request; None if the request is passed on without being read."""
        if call.kind != "create" or not isinstance(body, Mapping) or any(body.get(key) for key in _PARTIAL):
            return None
        try:
            with self._lock:
                if call.format not in self._followed:
                    self._followed[call.format] = FollowedSession(self.session, wire_codec(call.format))
            return ClientExchange(self._followed[call.format], call, body)
        except Exception:  # noqa: BLE001 (the client must not notice a fault of foldline)
            LOG.warning("foldline failed, the request is sent as it is", exc_info=True)
            return None


class ClientExchange:
    """One request and its reply."""

    def __init__(self, followed: FollowedSession, call: ApiCall, body: Mapping[str, Any]) -> None:
        self._followed, self._format = followed, request_format(call.format)
        self._body, self._list_key = body, key_in(body, self._format.list_key)
        items = body.get(self._list_key)
        tools = body.get("tools") or body.get("functions")
        self._request = PreparedRequest(items=())
        if isinstance(items, list) and items:
            self._request = followed.prepare(
                items,
                system=_system(body, self._format),
                tools=tools if isinstance(tools, list) else (),
                model=call.model or str(body.get("model") or ""),
            )
        self._reply = Assembler(call.format)

    def fold_refused(self) -> bool:
        """Fold the session after the provider refused the request as too large; False if nothing can be folded.

        After the fold, `folded_body` returns the smaller body.
        """
        folded = self._followed.fold_refused(self._request)
        if folded is None:
            return False
        self._request = folded
        return True

    @property
    def is_large(self) -> bool:
        """Whether the request may be too large for the provider.

        If so, the beginning of the response is checked for a refusal before the client reads it, because the provider's
        window may be smaller than foldline assumes.
        """
        view = self._request.view
        return view is not None and view.tokens > min(_LARGE_TOKENS, view.window // 2)

    @property
    def folded_body(self) -> dict[str, Any] | None:
        """The body to send; None if the client's own body is to be sent."""
        if not self._request.is_changed:
            return None
        elements = list(self._request.items)
        if self._format.join_turns is not None:
            elements = self._format.join_turns(elements)
        body = {**self._body, self._list_key: elements}
        if self._drops_blocks:
            thinking = body.get("thinking")
            given = dict(thinking) if isinstance(thinking, Mapping) else {}
            body["thinking"] = {**DROP_BLOCK["thinking"], **given}
        if self._format.name == "anthropic" and must_not_think(body.get("thinking"), elements):
            body["thinking"] = THINKING_OFF
        return body

    @property
    def betas(self) -> str:
        """A value that must be added to the header `anthropic-beta`; "" if none is needed."""
        return BINDING_BETA if self._request.is_changed and self._drops_blocks else ""

    @property
    def _drops_blocks(self) -> bool:
        view = self._request.view
        return view is not None and bool(view.unbound) and view.drops_blocks and self._format.name == "anthropic"

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the reply."""
        try:
            self._reply.feed(data)
        except Exception:  # noqa: BLE001 (the client must not notice a fault of foldline)
            LOG.warning("foldline failed to read a reply", exc_info=True)

    def finish(self) -> None:
        """Add the reply to the session, as far as it was received. Later calls have no effect."""
        request, self._request = self._request, PreparedRequest(items=())
        if request.branch is None:
            return
        try:
            reply = self._reply.finish()
        except Exception:  # noqa: BLE001 (the client must not notice a fault of foldline)
            LOG.warning("foldline failed to read a reply", exc_info=True)
            return
        if reply is not None:
            self._followed.record(request, *reply.messages)


def _system(body: Mapping[str, Any], format: Format) -> tuple[Message, ...]:
    """The system message of a request, as a tuple.

    The tuple is empty if the request has no system field, or if the field cannot be read.
    """
    value = body.get(key_in(body, format.system_key)) if format.system_key else None
    if value is None or format.parse_system is None:
        return ()
    try:
        return (format.parse_system(value),)
    except WireError:
        return ()
