"""The page that the proxy serves: it follows an agent that talks through the proxy, and shows its receipts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from support.browsers import visit
from support.proxy_agents import Agent, folding

pytest.importorskip("aiohttp")


def test_the_page_follows_an_agent_that_talks_through_the_proxy(chromium: Browser, tmp_path: Path) -> None:
    with folding(tmp_path) as (provider, running), visit(chromium, f"{running.url}/foldline/") as tab:
        agent = Agent(running.url, "anthropic", headers={"x-foldline-session": "work"})
        agent.work(provider, 4, words=200)
        page = tab.open()
        row = page.get_by_role("link", name=re.compile("^work"))
        expect(row).to_contain_text(re.compile("[0-9]+ messages"))
        row.click()
        expect(page.get_by_role("heading", name="Request 4")).to_be_visible()
        agent.work(provider, 40, words=200)
        expect(page.get_by_role("heading", name="Request 44")).to_be_visible()
        expect(page.get_by_text("Folds", exact=True).last).to_be_visible()
        page.get_by_role("tab", name="Folds").click()
        expect(page.get_by_role("heading", name="What it lost")).to_be_visible()


def test_a_pin_of_the_page_is_in_the_agents_next_request(chromium: Browser, tmp_path: Path) -> None:
    with folding(tmp_path) as (provider, running), visit(chromium, f"{running.url}/foldline/") as tab:
        agent = Agent(running.url, "anthropic", headers={"x-foldline-session": "work"})
        agent.work(provider, 4, words=200)
        page = tab.open()
        row = page.get_by_role("link", name=re.compile("^work"))
        expect(row).to_be_visible()
        expect(page.get_by_role("main").get_by_role("listitem")).to_have_count(1)  # not the proxy's own settings
        row.click()
        page.get_by_role("tab", name="Transcript").click()
        page.get_by_role("spinbutton", name="Message number").fill("3")
        page.get_by_role("spinbutton", name="Message number").press("Enter")
        page.get_by_role("button", name="Pin", exact=True).click()
        expect(page.get_by_role("status").get_by_text(re.compile("Pinned #3"))).to_be_visible()
        agent.work(provider, 40, words=200)
        assert provider.refused == []
        page.get_by_role("tab", name="Window").click()
        expect(page.get_by_role("region", name="Kept in every request")).to_contain_text("#3")


def test_a_folded_message_that_the_page_brings_back_is_in_the_agents_next_request(
    chromium: Browser, tmp_path: Path
) -> None:
    with folding(tmp_path) as (provider, running), visit(chromium, f"{running.url}/foldline/") as tab:
        agent = Agent(running.url, "anthropic", headers={"x-foldline-session": "work"})
        agent.work(provider, 40, words=200)
        lost = "result 1: " + "word1 " * 200
        assert lost not in json.dumps(provider.requests[-1].body)
        page = tab.open()
        page.get_by_role("link", name=re.compile("^work")).click()
        page.get_by_role("tab", name="Transcript").click()
        page.get_by_role("spinbutton", name="Message number").fill("4")
        page.get_by_role("spinbutton", name="Message number").press("Enter")
        page.get_by_role("button", name="Bring back").click()
        expect(page.get_by_role("status").get_by_text(re.compile("A copy of #4 was added"))).to_be_visible()
        sent = len(provider.requests)
        agent.work(provider, 40, words=200)
        assert lost.strip() in json.dumps(provider.requests[sent].body)
        assert provider.refused == []
