"""How the environment decides the way to a provider. It never adds credentials to a client's request."""

from __future__ import annotations

import http.client
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from support.proxies import RunningProxy, proxy, raw_upstream, whole

pytest.importorskip("aiohttp")
BASIC = "Basic dXNlcjpwdw=="
"""The credentials `user:pw`."""


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def status_of(running: RunningProxy, **headers: str) -> int:
    connection = http.client.HTTPConnection(urlsplit(running.url).netloc, timeout=20)
    try:
        connection.request("POST", "/v1/messages", b"{}", headers)
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize("headers", [{"authorization": "Bearer of-the-client"}, {"x-api-key": "of-the-client"}])
def test_credentials_of_a_netrc_file_are_never_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, headers: dict[str, str]
) -> None:
    file = tmp_path / "netrc"
    file.write_text("default login someone password else\n")
    monkeypatch.setenv("NETRC", str(file))
    with raw_upstream(whole(b"{}")) as upstream, proxy(upstream.url) as running:
        assert status_of(running, **headers) == 200
        head = upstream.requests[-1][0].decode()
    assert "of-the-client" in head
    assert "Basic" not in head


@pytest.mark.parametrize("scheme", ["http://", ""])
def test_the_proxy_that_the_environment_names_is_used(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    with raw_upstream(whole(b"{}")) as named, proxy("http://provider.invalid") as running:
        monkeypatch.setenv("HTTP_PROXY", f"{scheme}user:pw@{urlsplit(named.url).netloc}")
        assert status_of(running, authorization="Bearer of-the-client") == 200
        head = named.requests[-1][0].decode()
    assert head.startswith("POST http://provider.invalid/v1/messages HTTP/1.1\r\n")
    assert f"proxy-authorization: {BASIC}".lower() in head.lower()
    assert "bearer of-the-client" in head.lower()


@pytest.mark.parametrize("address", ["http://127.0.0.1:9", "https://127.0.0.1:9", "http://[127.0.0.1"])
def test_hosts_without_a_proxy_and_proxies_that_are_not_supported_are_left_out(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    with raw_upstream(whole(b"{}")) as upstream, proxy(upstream.url) as running:
        monkeypatch.setenv("HTTP_PROXY", address)
        if address.endswith(":9"):
            monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        assert status_of(running) == 200
