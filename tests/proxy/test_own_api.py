"""The API under /foldline/ is for this machine, or for whoever has the token."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from foldline.errors import ConfigError
from foldline.proxy.configuration import ProxySettings
from foldline.proxy.upstreams import Upstreams
from support.proxies import proxy
from support.proxy_agents import Agent, folding

pytest.importorskip("aiohttp")
TOKEN = "a-long-random-token"


def get(url: str, **headers: str) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_without_a_token_only_this_machine_s_own_names_are_allowed() -> None:
    with proxy("http://127.0.0.1:9") as running:
        assert get(f"{running.url}/foldline/metrics")[0] == 200
        assert get(f"{running.url}/foldline/metrics", Host="localhost:1")[0] == 200
        assert get(f"{running.url}/foldline/metrics", Host="attacker.invalid")[0] == 401


@pytest.mark.parametrize("given", ["", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN} x"])
def test_with_a_token_nothing_else_opens_the_api(given: str) -> None:
    with proxy("http://127.0.0.1:9", token=TOKEN) as running:
        assert get(f"{running.url}/foldline/metrics", **({"Authorization": given} if given else {}))[0] == 401
        assert get(f"{running.url}/foldline/metrics", Authorization=f"Bearer {TOKEN}")[0] == 200
        assert json.loads(get(f"{running.url}/foldline/health")[1]) == {"status": "ok"}


def test_a_proxy_that_others_can_reach_needs_a_token() -> None:
    upstreams = Upstreams.parse(["http://127.0.0.1:9"])
    with pytest.raises(ConfigError, match="no token is set"):
        ProxySettings(upstreams=upstreams, mode="off", host="0.0.0.0")
    assert TOKEN not in repr(ProxySettings(upstreams=upstreams, mode="off", host="0.0.0.0", token=TOKEN))


def test_receipts_and_the_price_of_a_cold_cache_can_be_read(tmp_path: Path) -> None:
    with folding(tmp_path, window=200_000) as (provider, running):
        system = "Read before you write. " * 300
        extra = {"cache_control": {"type": "ephemeral"}}
        agent = Agent(running.url, headers={"x-foldline-session": "a/b c"}, system=system, extra=extra)
        agent.work(provider, 4)
        status, body = get(f"{running.url}/foldline/api/receipts/a%2Fb%20c?limit=3")
        found = json.loads(body)
        assert (status, len(found["receipts"]), found["sum"]["requests"]) == (200, 3, 3)
        assert found["receipts"][0]["usage"]["cache_write"] > 1_000
        cold = json.loads(get(f"{running.url}/foldline/api/cache/a%2Fb%20c")[1])
        assert (cold["is_cold"], cold["tokens"] > 1_000, cold["usd"] > 0) == (False, True, True)
        totals = json.loads(get(f"{running.url}/foldline/api/receipt")[1])
        assert totals["usd"] == pytest.approx(provider.bill.usd)
        assert get(f"{running.url}/foldline/api/receipts/unknown")[0] == 404
        assert get(f"{running.url}/foldline/api/receipts/a%2Fb%20c?after=x")[0] == 400
        assert b"sk-test" not in body


def test_a_proxy_whose_ledger_is_gone_is_not_ready(tmp_path: Path) -> None:
    with folding(tmp_path) as (_, running):
        assert get(f"{running.url}/foldline/ready")[0] == 200
        running.application.interceptor.conversations.store.tx.pool.close()  # type: ignore[attr-defined]
        assert get(f"{running.url}/foldline/ready")[0] == 503
        assert get(f"{running.url}/foldline/health")[0] == 200


def test_the_page_shows_the_sessions_of_the_proxy(tmp_path: Path) -> None:
    pytest.importorskip("starlette")
    with folding(tmp_path, window=200_000, token=TOKEN) as (provider, running):
        Agent(running.url, headers={"x-foldline-session": "work"}).work(provider, 4)
        status, page = get(f"{running.url}/foldline/")
        assert (status, b"<!doctype html" in page.lower()) == (200, True)
        assert get(f"{running.url}/foldline/api/sessions")[0] == 401
        status, found = get(f"{running.url}/foldline/api/sessions", Authorization=f"Bearer {TOKEN}")
        assert (status, b'"work"' in found) == (200, True)
