"""Runs the proxy: opens the socket, starts the server, and stops it without cutting off responses."""

from __future__ import annotations

import gc
import logging
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import uvicorn

from foldline.errors import ConfigError
from foldline.proxy.application import Application
from foldline.proxy.configuration import ProxySettings
from foldline.proxy.conversations import Conversations
from foldline.proxy.exchange_counters import ExchangeCounters
from foldline.proxy.exchange_reports import Reporter, log_report
from foldline.proxy.interception import PassThrough
from foldline.proxy.own_api import Handler, OwnApi
from foldline.proxy.receipt_api import receipt_reads
from foldline.proxy.recording_interceptor import RecordingInterceptor
from foldline.proxy.server_workers import fork_workers
from foldline.proxy.telemetry import open_telemetry

STOP_S = 30
"""Maximum number of seconds to wait for running responses when the server stops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """The certificate and key for HTTPS. If they are "", the proxy serves HTTP."""

    certificate: str = ""
    key: str = ""


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises `ConfigError` if the address cannot be used."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen(2048)
    except OSError as error:
        found.close()
        raise ConfigError(f"cannot listen on {host}:{port} ({error.strerror})", hint="choose another --port") from None
    return found


def build(
    settings: ProxySettings,
    clock: Callable[[], float] = time.time,
    counters: ExchangeCounters | None = None,
    reporters: Sequence[Reporter] = (),
) -> Application:
    """The application of a proxy. Opens the ledger, which is closed when the server stops."""
    if settings.mode == "off":
        return Application(settings, PassThrough(), OwnApi(settings))
    conversations = Conversations(settings.ledger, shared=settings.is_shared)
    interceptor = RecordingInterceptor(settings, conversations, clock, counters, reporters)
    own = OwnApi(
        settings,
        ready=interceptor.readiness,
        settle=interceptor.settle,
        reads=receipt_reads(conversations.store, interceptor.counters),
        metrics=interceptor.counters.metrics,
        page=_page(conversations, settings.token),
    )
    return Application(settings, interceptor, own)


def _page(conversations: Conversations, token: str) -> Handler | None:
    """The web page; None if it is not installed."""
    if find_spec("foldline.page") is None or find_spec("foldline.page.app") is None or find_spec("starlette") is None:
        return None
    make: Callable[..., Handler] = import_module("foldline.page.app").page_app
    return make(conversations.store, live=conversations.live, token=token, all_owners=True)


def server(application: Application, *, tls: TlsFiles | None = None) -> uvicorn.Server:
    """A server for the application."""
    files: dict[str, Any] = {"ssl_certfile": tls.certificate, "ssl_keyfile": tls.key} if tls and tls.certificate else {}
    logging.getLogger("uvicorn.error").addFilter(_is_news)
    config = uvicorn.Config(
        application,
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        log_level="warning",
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=STOP_S,
        **files,
    )
    return uvicorn.Server(config)


def _is_news(record: logging.LogRecord) -> bool:
    """False for log messages of the server that repeat what foldline logs itself."""
    text = record.getMessage()
    return "returned without completing response" not in text and "Unsupported upgrade request" not in text


def serve(  # noqa: PLR0913  # all but one are keyword arguments
    settings: ProxySettings,
    *,
    tls: TlsFiles | None = None,
    started: Callable[[str], None] | None = None,
    descriptor: int | None = None,
    workers: int = 0,
    telemetry: bool = False,
) -> None:
    """Run the proxy until it gets SIGTERM or SIGINT. `started` is called with the address.

    `descriptor` is the file descriptor of a listening socket that another process has opened. `workers` is the number
    of worker processes. If it is 0, this process serves the socket itself. `telemetry` reports exchanges to
    OpenTelemetry.
    """
    bound = listen(settings.host, settings.port) if descriptor is None else socket.socket(fileno=descriptor)
    try:
        counters = ExchangeCounters(max(1, workers))
        host, port = bound.getsockname()[:2]
        scheme = "https" if tls and tls.certificate else "http"
        address = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
        if workers:
            if started is not None:
                started(address)
            index = fork_workers(workers)
            if index is None:
                return
            counters.worker = index
        reporters = (log_report, open_telemetry()) if telemetry else (log_report,)
        application = build(settings, counters=counters, reporters=reporters)
        gc.collect()
        gc.freeze()  # otherwise, each full collection stops all responses for about 50 ms
        if started is not None and not workers:
            started(address)
        server(application, tls=tls).run(sockets=[bound])
    finally:
        bound.close()
