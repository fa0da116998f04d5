"""The HTTP server of the simulated provider, on loopback: reads requests, writes replies, streams and failures."""

from __future__ import annotations

import itertools
import json
import socket
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from foldline.testing.provider.error_reply import ErrorReply, RequestRefused
from foldline.testing.provider.json_rules import parse_body
from foldline.testing.provider.routes import Route, format_of_headers, route_of
from foldline.testing.provider.script import ScriptedFailure
from foldline.testing.provider.streams import error_event, failed_response, stream_of

if TYPE_CHECKING:
    from foldline.testing.provider.simulated import SimulatedProvider

MAX_BYTES = 64 * 1024 * 1024
KEYS = ("x-api-key", "authorization", "x-goog-api-key")
"""Headers with credentials. The values of these headers only distinguish accounts and are not stored."""
BREAK_AFTER = 3
"""Number of events that are sent before a broken stream ends."""


class ProviderServer(ThreadingHTTPServer):
    """A server for one simulated provider."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, provider: SimulatedProvider) -> None:
        super().__init__(("127.0.0.1", 0), ProviderHandler)
        self.provider = provider

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore the error if a client closes its connection."""


class ProviderHandler(BaseHTTPRequestHandler):
    """Answers the requests of one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    """Send each write at once.

    Otherwise the kernel holds back the body until the client has acknowledged the headers, which takes 40 ms.
    """
    server: ProviderServer

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""

    def do_HEAD(self) -> None:
        """Answer a client that checks whether the server runs."""
        self._send(200, b"")

    def do_GET(self) -> None:
        """Answer with the list of models; any other address gets an error."""
        if self.path.partition("?")[0] not in {"/v1/models", "/v1beta/models"}:
            self._send_error(self._not_found())
            return
        names = sorted(self.server.provider.models or ())
        entries = [{"id": name, "object": "model", "type": "model", "display_name": name} for name in names]
        self._send_json(200, {"object": "list", "data": entries, "has_more": False})

    def do_POST(self) -> None:
        """Judge and answer a request."""
        data = self._read()
        route = route_of(self.path)
        if data is None or route is None:
            too_large = ErrorReply(
                format="anthropic",
                rule="request_too_large",
                message="Request exceeds the maximum size",
                status=413,
                type="request_too_large",
            )
            self._send_error(self._not_found() if route is None else too_large)
            return
        refused = self._check_headers(route)
        if refused is None:
            try:
                self._answer(route, parse_body(route.format, data))
            except RequestRefused as error:
                refused = error.reply
        if refused is not None:
            self.server.provider.note_refusal(route, refused)
            self._send_error(refused)

    def _read(self) -> bytes | None:
        size = int(self.headers.get("content-length") or 0)
        if size > MAX_BYTES:
            self.close_connection = True
            return None
        return self.rfile.read(size)

    def _not_found(self) -> ErrorReply:
        format = format_of_headers({name.lower() for name in self.headers})
        text = f"Invalid URL ({self.command} {self.path.partition('?')[0]})"
        kind = "not_found_error" if format == "anthropic" else "invalid_request_error"
        return ErrorReply(format=format, rule="address", message=text, status=404, type=kind)

    def _check_headers(self, route: Route) -> ErrorReply | None:
        """The error for a request that lacks a credential or the version header; None if neither is missing."""
        if not any(self.headers.get(name) for name in KEYS):
            words = {
                "anthropic": "x-api-key header is required",
                "gemini": "Method doesn't allow unregistered callers. Please use API Key or other form of API consumer "
                "identity to call this API.",
            }.get(route.format, "You didn't provide an API key.")
            kind = "authentication_error" if route.format == "anthropic" else "invalid_request_error"
            status = 403 if route.format == "gemini" else 401
            return ErrorReply(format=route.format, rule="credential", message=words, status=status, type=kind)
        if route.format == "anthropic" and not self.headers.get("anthropic-version"):
            return ErrorReply(format=route.format, rule="version", message="anthropic-version: header is required")
        return None

    def _answer(self, route: Route, body: Any) -> None:
        provider = self.server.provider
        betas = tuple(part.strip() for part in ",".join(self.headers.get_all("anthropic-beta") or ()).split(","))
        credential = next(self.headers[name] for name in KEYS if self.headers.get(name))
        entry, reply = provider.receive(route, body, betas=tuple(filter(None, betas)), credential=credential)
        streams = route.streams or (isinstance(body, dict) and bool(body.get("stream")))
        if isinstance(entry, ScriptedFailure):
            self._fail(route, entry, reply.body, body, streams=streams)
        elif reply.error is not None:
            if streams and route.format == "openai_responses" and reply.error.rule == "window":
                self._stream(failed_response(reply.error, str(body.get("model"))))
            else:
                self._send_error(reply.error)
        elif streams and route.endpoint == "create":
            self._stream(stream_of(route.format, reply.body, body))
        else:
            self._send_json(200, reply.body)

    def _fail(self, route: Route, failure: ScriptedFailure, reply: dict[str, Any], body: Any, *, streams: bool) -> None:
        """Answer with a scripted failure."""
        if failure.kind == "timeout":
            self.server.provider.wait_until_closed()
            self._drop()
        elif failure.kind == "garbage":
            self._send(200, b'<html>{"broken": ', "application/json")
        elif failure.kind == "empty":
            self._send(200, b"", "application/json")
        elif failure.kind in {"broken_stream", "stream_error"} and streams:
            events = itertools.islice(stream_of(route.format, reply, body), BREAK_AFTER)
            ending = [error_event(failure.reply(route.format))] if failure.kind == "stream_error" else []
            self._stream(itertools.chain(events, ending), breaks=failure.kind == "broken_stream")
        elif failure.kind == "broken_stream":
            self._drop()
        else:
            self._send_error(failure.reply(route.format), retry_after=failure.retry_after)

    def _drop(self) -> None:
        """Close the connection without an answer."""
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _stream(self, events: Iterator[bytes], *, breaks: bool = False) -> None:
        """Send the events of a stream in HTTP chunks. A broken stream ends without the last chunk."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("cache-control", "no-cache")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event in events:
            self.wfile.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")
            self.wfile.flush()
            if self.server.provider.event_pause_s:
                time.sleep(self.server.provider.event_pause_s)
        if breaks:
            self._drop()
        else:
            self.wfile.write(b"0\r\n\r\n")

    def _send_error(self, error: ErrorReply, retry_after: int = 0) -> None:
        headers = {"retry-after": str(retry_after)} if retry_after else {}
        self._send_json(error.status, error.body(), headers)

    def _send_json(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        self._send(status, json.dumps(body).encode(), "application/json", headers)

    def _send(
        self, status: int, data: bytes, kind: str = "application/json", headers: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.send_header("request-id", "req_simulated")
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)
