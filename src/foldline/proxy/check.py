"""Checks the configuration of a proxy for faults that would occur when the proxy runs."""

from __future__ import annotations

import socket
import ssl
from contextlib import closing

from yarl import URL

from foldline import ledger
from foldline.errors import FoldlineError
from foldline.models.table import model as model_of
from foldline.proxy.configuration import ProxySettings
from foldline.proxy.service import TlsFiles, listen
from foldline.proxy.telemetry import open_telemetry

CONNECT_S = 5.0


def check_configuration(
    settings: ProxySettings, tls: TlsFiles | None = None, *, telemetry: bool = False
) -> list[tuple[str, str]]:
    """The name of each check, with the fault that the check found; "" if it found none."""
    found = [("address", _address_fault(settings))]
    bases = {"all": settings.upstreams.shared, **settings.upstreams.by_vendor}
    found += [(f"upstream {name} ({base})", _upstream_fault(base)) for name, base in bases.items() if base is not None]
    if settings.ledger:
        found.append(("ledger", _ledger_fault(settings.ledger)))
    if settings.model and not settings.policy.window_tokens and not model_of(settings.model).is_window_known:
        found.append((f"model {settings.model}", "the window of this model is unknown; set window_tokens"))
    if tls is not None and (tls.certificate or tls.key):
        found.append(("TLS", _tls_fault(tls)))
    if telemetry:
        found.append(("telemetry", _telemetry_fault()))
    return found


def _address_fault(settings: ProxySettings) -> str:
    try:
        with closing(listen(settings.host, settings.port)):
            return ""
    except FoldlineError as error:
        return str(error)


def _upstream_fault(base: URL) -> str:
    """The reason why a provider cannot be reached; "" if it can be reached. No request is sent."""
    host, port = base.host or "", base.port or 443
    try:
        with socket.create_connection((host, port), timeout=CONNECT_S) as plain:
            if base.scheme == "https":
                with ssl.create_default_context().wrap_socket(plain, server_hostname=host):
                    return ""
            return ""
    except OSError as error:
        return f"{host}:{port} cannot be reached ({error.strerror or error})"


def _tls_fault(tls: TlsFiles) -> str:
    if not tls.certificate or not tls.key:
        return "set both --tls-certificate and --tls-key"
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(tls.certificate, tls.key)
    except (OSError, ssl.SSLError) as error:
        return f"the certificate or its key cannot be used ({error.strerror or error})"
    return ""


def _telemetry_fault() -> str:
    try:
        open_telemetry()
    except FoldlineError as error:
        return str(error)
    return ""


def _ledger_fault(url: str) -> str:
    try:
        ledger.schema_version(url, wait_s=CONNECT_S)
    except FoldlineError as error:
        return str(error)
    return ""
