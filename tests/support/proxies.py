"""A running proxy, and an upstream that keeps the bytes of each request and answers with given bytes."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from foldline.proxy.application import Application
from foldline.proxy.configuration import ProxySettings
from foldline.proxy.service import build, listen, server
from foldline.proxy.upstreams import Upstreams


@dataclass
class RunningProxy:
    """A proxy on loopback."""

    url: str
    application: Application


@contextmanager
def proxy(
    *upstreams: str,
    mode: Any = "off",
    clock: Callable[[], float] = time.time,
    reporters: Sequence[Any] = (),
    **given: Any,
) -> Iterator[RunningProxy]:
    """Run a proxy for the length of a block."""
    settings = ProxySettings(upstreams=Upstreams.parse(upstreams), mode=mode, port=0, **given)
    bound = listen("127.0.0.1", 0)
    application = build(settings, clock, reporters=reporters)
    running = server(application)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    try:
        yield RunningProxy(f"http://127.0.0.1:{bound.getsockname()[1]}", application)
    finally:
        running.should_exit = True
        thread.join(20)
        bound.close()


@dataclass
class RawUpstream:
    """A server that keeps what it receives and sends the given pieces, each in a write of its own."""

    url: str = ""
    answers: list[Sequence[bytes]] = field(default_factory=list)
    """The pieces of each answer, with head and framing; the last answer is used again."""
    requests: list[tuple[bytes, bytes]] = field(default_factory=list)
    """Head and body of each request."""
    gone: threading.Event = field(default_factory=threading.Event)
    """Set when a client closes its connection before its answer ended."""
    hold: asyncio.Event | None = None
    pause_s: float = 0.0

    def answer(self, *pieces: bytes) -> None:
        self.answers.append(pieces)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.requests.append((head, await _body(head, reader)))
                pieces = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                for piece in pieces:
                    if piece == STALL:
                        if await reader.read(1) == b"":
                            self.gone.set()
                        return
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(self.pause_s)
                if CLOSE in pieces:
                    return
        writer.close()


STALL = b"\0stall"
"""A piece that sends nothing more until the client goes."""
CLOSE = b""
"""A piece that closes the connection after the answer."""


async def _body(head: bytes, reader: asyncio.StreamReader) -> bytes:
    names = {name.strip().lower(): value.strip() for name, _, value in (x.partition(b":") for x in head.split(b"\r\n"))}
    if b"chunked" in names.get(b"transfer-encoding", b""):
        body = b""
        while size := int(await reader.readline(), 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
        return body
    return await reader.readexactly(int(names.get(b"content-length", b"0")))


@contextmanager
def raw_upstream(*pieces: bytes) -> Iterator[RawUpstream]:
    """Run such a server for the length of a block."""
    upstream, loop, started = RawUpstream(), asyncio.new_event_loop(), threading.Event()
    if pieces:
        upstream.answer(*pieces)
    found: list[asyncio.Server] = []

    async def start() -> None:
        one = await asyncio.start_server(_quiet(upstream.serve), "127.0.0.1", 0, limit=1 << 20)
        found.append(one)
        upstream.url = f"http://127.0.0.1:{one.sockets[0].getsockname()[1]}"
        started.set()

    def run() -> None:
        loop.run_until_complete(start())
        loop.run_forever()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0.01))
        loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    started.wait(10)
    try:
        yield upstream
    finally:
        loop.call_soon_threadsafe(found[0].close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


def _quiet(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]],
) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]:
    async def run(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except (asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.close()

    return run


def whole(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    """A response with a length."""
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def chunked(*pieces: bytes, headers: Sequence[str] = ("content-type: text/event-stream",)) -> list[bytes]:
    """A streamed response in HTTP chunks."""
    head = "\r\n".join(["HTTP/1.1 200 OK", "transfer-encoding: chunked", *headers, "", ""]).encode("latin-1")
    return [head, *(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces if piece), b"0\r\n\r\n"]
