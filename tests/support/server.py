"""A real HTTP server on loopback that answers as a provider does, for the real SDKs to talk to.

It replays what it was given: a JSON body, or the bytes of an event stream in chunks of any size, cut off if asked.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the server says to the next request: JSON when `stream` is empty, otherwise these bytes as events."""

    value: Any = None
    stream: bytes = b""
    chunk_bytes: int = 64
    cut: bool = False
    """True to close the connection without ending the body."""


class Provider:
    """The running server: set `answer`, read `requests`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.answer = Answer()
        self.requests: list[dict[str, Any]] = []


@contextmanager
def provider() -> Iterator[Provider]:
    """Run a server for the length of a block."""
    server = _Server(("127.0.0.1", 0), _Handler)
    state = Provider(f"http://127.0.0.1:{server.server_port}")
    server.RequestHandlerClass = type("_Bound", (_Handler,), {"provider": state})
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report what went wrong, except that a client hung up: after an error in a stream, the SDKs do."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    provider: Provider

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.provider.requests.append({"path": self.path, "body": json.loads(body)})
        answer = self.provider.answer
        if answer.stream:
            self._stream(answer)
        else:
            data = json.dumps(answer.value).encode()
            self._head("application/json", "content-length", str(len(data)))
            self.wfile.write(data)

    def _stream(self, answer: Answer) -> None:
        self._head("text/event-stream; charset=utf-8", "transfer-encoding", "chunked")
        for at in range(0, len(answer.stream), answer.chunk_bytes):
            piece = answer.stream[at : at + answer.chunk_bytes]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()
        if answer.cut:
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")

    def _head(self, kind: str, framing: str, value: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header(framing, value)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: test output is for results."""
