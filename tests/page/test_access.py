"""Who may use the page: this machine or the holder of the token, and no page of another site."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

import foldline
from foldline.page.app import page_app
from foldline.session import Ledger
from support.pages import HEADERS, add_session

PIN = {"session": "talk", "handle": "#1"}
TOKEN = "correct-horse"


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    with foldline.open(":memory:") as opened:
        add_session(opened, "talk", 1)
        yield opened


def client(ledger: Ledger, *, host: str = "127.0.0.1:8461", address: str = "127.0.0.1", token: str = "") -> TestClient:
    app = page_app(ledger.store, token=token)
    return TestClient(app, base_url=f"http://{host}", client=(address, 50_000))


@pytest.mark.parametrize("host", ["127.0.0.1:8461", "localhost", "[::1]:8461"])
def test_this_machine_needs_no_token(ledger: Ledger, host: str) -> None:
    assert client(ledger, host=host).get("/api/sessions").status_code == 200


@pytest.mark.parametrize(("host", "address"), [("evil.example", "127.0.0.1"), ("127.0.0.1:8461", "192.0.2.7")])
def test_another_name_or_machine_is_refused_without_a_token(ledger: Ledger, host: str, address: str) -> None:
    """A site can give its own name the address 127.0.0.1; its requests then carry its name."""
    for path in ("/api/sessions", "/api/openapi.json", "/"):
        assert client(ledger, host=host, address=address).get(path).status_code == 403


def test_with_a_token_every_call_needs_it_and_the_files_do_not(ledger: Ledger) -> None:
    remote = client(ledger, host="page.example", address="192.0.2.7", token=TOKEN)
    assert remote.get("/").status_code == 200
    assert remote.get("/api/sessions").status_code == 401
    assert remote.get("/api/sessions", headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert remote.get("/api/sessions", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {**HEADERS, "Origin": "http://evil.example"},
        {**HEADERS, "Origin": "null"},
        {**HEADERS, "Sec-Fetch-Site": "cross-site"},
        {**HEADERS, "Sec-Fetch-Site": "same-site"},
        {**HEADERS, "Sec-Fetch-Site": "none"},
    ],
)
def test_a_change_from_another_site_is_refused(ledger: Ledger, headers: dict[str, str]) -> None:
    assert client(ledger).post("/api/pin", json=PIN, headers=headers).status_code == 403
    assert not ledger.session("talk").pins


def test_a_change_must_be_json(ledger: Ledger) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        answer = client(ledger).post("/api/pin", content=b"{}", headers={**HEADERS, "Content-Type": kind})
        assert answer.status_code == 415
    for body in (b"", b"[]", b"{", b"[" * 100_000):
        answer = client(ledger).post("/api/pin", content=body, headers={**HEADERS, "Content-Type": "application/json"})
        assert answer.status_code == 400


def test_a_change_from_the_page_itself_is_made(ledger: Ledger) -> None:
    headers = {**HEADERS, "Origin": "http://127.0.0.1:8461", "Sec-Fetch-Site": "same-origin"}
    assert client(ledger).post("/api/pin", json=PIN, headers=headers).status_code == 200
    assert list(ledger.session("talk").pins) == ["#1"]


def test_a_changing_call_cannot_be_made_with_get(ledger: Ledger) -> None:
    assert client(ledger).get("/api/pin", params=PIN).status_code in (404, 405)
    assert not ledger.session("talk").pins


@pytest.mark.parametrize("path", ["/", "/style.css", "/main.js", "/api/sessions", "/api/nothing", "/nothing.html"])
def test_every_response_forbids_foreign_content(ledger: Ledger, path: str) -> None:
    headers = client(ledger).get(path).headers
    assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize("path", ["/../app.py", "/..%2f..%2fapp.py", "/%2e%2e/app.py", "/static/../../app.py"])
def test_files_outside_the_folder_are_not_served(ledger: Ledger, path: str) -> None:
    assert client(ledger).get(path).status_code == 404
