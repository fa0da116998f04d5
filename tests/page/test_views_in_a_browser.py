"""Every view of the page in a real browser: what it shows, how it follows the ledger, and that it harms nobody."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

import foldline
from foldline.message import assistant, tool, user
from foldline.session import Ledger
from support import sessions
from support.browsers import Visit, served, served_ledger, visit
from support.pages import conversation

VIEWS: dict[str, tuple[str, str]] = {
    "sessions": ("#/", "fix-the-parser"),
    "window": ("#/session?session=fix-the-parser&tab=window", "What fills the history"),
    "transcript": ("#/session?session=fix-the-parser&tab=transcript", "are no longer sent to the model"),
    "folds": ("#/session?session=fix-the-parser&tab=folds&fold=2", "What it lost"),
    "recall": ("#/session?session=fix-the-parser&tab=recall&q=AssertionError", "passage"),
    "money": ("#/money", "Cache misses"),
    "replay": ("#/replay", "Drop a transcript here"),
}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_view_shows_its_content_is_accessible_and_fits(
    chromium: Browser, example: Ledger, theme: Any, width: int
) -> None:
    with (
        served_ledger(example) as address,
        visit(chromium, address, color_scheme=theme, viewport={"width": width, "height": 844}) as tab,
    ):
        for name, (place, text) in VIEWS.items():
            page = tab.open(place)
            expect(page.get_by_text(text).first).to_be_visible()
            page.wait_for_timeout(400)
            assert tab.findings() == [], name
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
            assert page.evaluate("document.documentElement.dataset.theme") == theme


def test_the_list_shows_meters_states_and_savings_and_finds_sessions(visitor: Visit, example: Ledger) -> None:
    notes = example.session("release-notes")
    nearly_full = int(notes.load().request / 0.8)
    notes.use(policy=foldline.Policy.preset("balanced").but(window_tokens=nearly_full, reply_tokens=0))
    page = visitor.open()
    row = page.get_by_role("listitem").filter(has_text=f"{example.session('fix-the-parser').folds} folds")
    expect(row).to_contain_text("of 22k")
    expect(row).to_contain_text(re.compile("saved ~\\$"))
    expect(page.get_by_role("listitem").filter(has_text="release-notes")).to_contain_text("warned")
    expect(page.locator(".session.child")).to_contain_text("fix-the-parser.2")
    page.get_by_role("searchbox").fill("release")
    expect(page.locator(".session")).to_have_count(1)
    page.get_by_role("searchbox").fill("")
    page.get_by_role("combobox", name="Show").select_option("warned")
    expect(page.locator(".session").filter(has_text="release-notes")).to_have_count(1)
    expect(page.locator(".session.child")).to_have_count(0)
    page.get_by_role("link", name=re.compile("release-notes")).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("release-notes")


def test_the_window_names_its_blocks_marks_and_contents(visitor: Visit) -> None:
    page = visitor.session()
    card = page.get_by_role("region", name="The window now")
    for text in ("Digest", "History", "Tool definitions", "folds 20k", "warns 15k", "Until the next fold"):
        expect(card).to_contain_text(text)
    card.locator("summary", has_text="tool results").click()
    expect(card.get_by_text("By file").first).to_be_visible()
    expect(card).to_contain_text("src/foldline/")


def test_the_cause_of_the_miss_at_request_31_is_named(visitor: Visit) -> None:
    page = visitor.session()
    slider = page.get_by_role("slider", name="Request")
    slider.fill("31")
    expect(page.get_by_role("heading", name="Request 31")).to_be_visible()
    expect(
        page.get_by_text(re.compile("Cache miss: [0-9.]+k tokens.*the cache expired, 25 minutes after"))
    ).to_be_visible()
    slider.press("ArrowRight")
    expect(page.get_by_role("heading", name="Request 32")).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("tool results"))).to_contain_text(re.compile("[+−]"))
    page.get_by_text(re.compile("cache misses: ")).click()
    page.get_by_role("button", name="Request 31").click()
    expect(page.get_by_role("heading", name="Request 31")).to_be_visible()


def test_the_transcript_is_read_with_the_keyboard(visitor: Visit) -> None:
    page = visitor.session(tab="transcript", message=96)
    row = page.get_by_role("button", name=re.compile("^#96 "))
    row.focus()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("button", name=re.compile("^#97 "))).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name=re.compile("^#97 "))).to_have_attribute("aria-expanded", "true")
    expect(page.get_by_role("button", name="Copy handle").last).to_be_visible()
    page.keyboard.press("Home")
    expect(page.get_by_role("button", name=re.compile("^#1 "))).to_be_focused()
    page.keyboard.press("End")
    expect(page.get_by_role("button", name=re.compile("^#113 "))).to_be_focused()


def test_tabs_are_changed_with_arrow_keys(visitor: Visit) -> None:
    page = visitor.session()
    page.get_by_role("tab", name="Window").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Transcript")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("tabpanel", name="Transcript")).to_be_visible()


def test_the_fold_line_opens_to_the_digest_and_its_sources_lead_to_messages(visitor: Visit) -> None:
    page = visitor.session(tab="transcript")
    page.get_by_text(re.compile("Digest by local")).click()
    link = page.locator(".line-digest .handle").nth(2)
    number = re.search(r"\d+", link.inner_text())
    assert number
    link.click()
    row = page.get_by_role("button", name=re.compile(f"^#{number[0]} "))
    expect(row).to_have_attribute("aria-expanded", "true")
    expect(row).to_be_in_viewport()


def test_a_lost_fact_is_found_again(visitor: Visit) -> None:
    """The way back: from the loss report to the search, and from there to the message."""
    page = visitor.session(tab="folds")
    expect(page.get_by_text("can only be recalled")).to_be_visible()
    page.locator(".facts a").first.click()
    expect(page.locator("mark").first).to_be_visible()
    page.locator(".passage a.m-number").first.click()
    expect(page.locator(".m-open pre").first).to_be_visible()


def test_the_theme_can_be_changed_and_is_remembered(visitor: Visit) -> None:
    page = visitor.open()
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    page.get_by_role("button", name="Switch between light and dark").click()
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_the_page_follows_a_session_that_grows(visitor: Visit, example: Ledger) -> None:
    page = visitor.session("release-notes", tab="transcript")
    expect(page.get_by_text("60 messages").first).to_be_visible()
    with foldline.open(str(example.store.tx.pool.database.path)) as other:  # type: ignore[attr-defined]
        other.session("release-notes").add(user("One more thing."), assistant("Here it is."))
    expect(page.get_by_text("62 messages").first).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^#62 .*Here it is"))).to_be_visible()
    page.get_by_role("link", name="Sessions").first.click()
    expect(page.get_by_role("listitem").filter(has_text="release-notes")).to_contain_text("62 messages")


def test_hostile_content_is_shown_as_text(chromium: Browser) -> None:
    hostile = (
        "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'><svg onload=window.hacked=3>"
        "<iframe src='javascript:parent.hacked=4'></iframe> [x](javascript:alert(1)) {{7*7}} \u202egnp.exe\u2066 "
        "\x1b[31mred\x1b[0m\x1b]8;;https://evil.example\x07link\x1b]8;;\x07\x00\x07 \u061c https://evil.example/a.png"
    )
    with foldline.open(":memory:") as ledger:
        session = ledger.session(hostile[:40], policy="verbatim")
        call = foldline.ToolCall(id="c1", name="<b>tool</b>", arguments='{"path": "<img src=x>"}')
        session.add(user(hostile), assistant(hostile, call), tool("c1", "x" * 1_000_000 + hostile), assistant("ok"))
        with served_ledger(ledger) as address, visit(chromium, address) as tab:
            tab.open()
            expect(tab.page.get_by_text("<script>").first).to_be_visible()
            page = tab.session(hostile[:40], tab="transcript", message=1)
            opened = page.locator(".m-open pre").first
            expect(opened).to_contain_text("<script>window.hacked = 1</script>")
            text = opened.inner_text()
            assert "⟨U+202E⟩" in text
            assert "\x1b" not in text
            assert "red" in text
            tab.session(hostile[:40], tab="transcript", message=3)
            expect(page.get_by_role("button", name=re.compile("Show more"))).to_be_visible()
            tab.session(hostile[:40], tab="recall", q="<script>window")
            expect(page.locator("mark").first).to_be_visible()
            assert page.evaluate("window.hacked") is None
            assert page.locator("main img, main iframe, main script").count() == 0


def test_a_million_characters_open_piece_by_piece(chromium: Browser) -> None:
    with foldline.open(":memory:") as ledger:
        ledger.session("long", policy="verbatim").add(user("y" * 1_000_000), assistant("ok"))
        with served_ledger(ledger) as address, visit(chromium, address) as tab:
            page = tab.session("long", tab="transcript", message=1)
            more = page.get_by_role("button", name=re.compile(r"Show more \(980,000 characters left\)"))
            more.click()
            expect(page.get_by_role("button", name=re.compile("960,000"))).to_be_visible()


def test_a_long_session_draws_only_the_rows_in_sight(chromium: Browser, tmp_path: Path) -> None:
    with foldline.open(tmp_path / "long.db") as ledger:
        session = ledger.session("long", model="claude-sonnet-5", policy="verbatim")
        session.record.append(conversation(1_000, lines=2))
        with served_ledger(ledger) as address, visit(chromium, address) as tab:
            asked: list[str] = []
            tab.page.on("request", lambda one: asked.append(one.url) if "/messages?" in one.url else None)
            page = tab.session("long", tab="transcript")
            expect(page.get_by_role("button", name=re.compile("^#4000 "))).to_be_visible()
            assert page.locator(".item").count() < 60
            assert len(asked) <= 2
            page.get_by_role("spinbutton").fill("2000")
            page.get_by_role("spinbutton").press("Enter")
            expect(page.get_by_role("button", name=re.compile("^#2000 "))).to_be_in_viewport()
            assert page.locator(".item").count() < 60


def test_a_page_of_another_site_can_neither_read_nor_change(chromium: Browser, example: Ledger) -> None:
    async def foreign(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            start = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]}
            await send(start)
            await send({"type": "http.response.body", "body": b"<!doctype html><title>other</title>"})

    attack = """async (address) => {
        const pin = JSON.stringify({session: "fix-the-parser", handle: "#5"});
        const tries = {
            read: () => fetch(address + "api/sessions"),
            plain: () => fetch(address + "api/pin", {method: "POST", body: pin}),
            json: () => fetch(address + "api/pin", {method: "POST", body: pin, headers:
                {"Content-Type": "application/json", "X-Foldline": "1"}}),
            blind: () => fetch(address + "api/pin", {method: "POST", mode: "no-cors", body: pin}),
        };
        const found = {};
        for (const [name, call] of Object.entries(tries)) {
            try { const answer = await call(); found[name] = [answer.type, await answer.text()]; }
            catch (error) { found[name] = "refused"; }
        }
        return found;
    }"""
    with served_ledger(example) as address, served(foreign) as other:
        page = chromium.new_page()
        page.goto(other.replace("127.0.0.1", "localhost"))
        found = page.evaluate(attack, address)
        page.close()
    assert found == dict.fromkeys(("read", "plain", "json", "blind"), "refused")
    assert list(example.session("fix-the-parser").pins) == ["task"]


def test_the_page_asks_for_its_token_and_keeps_it(chromium: Browser, example: Ledger) -> None:
    with served_ledger(example, token="correct-horse") as address:
        with visit(chromium, address) as tab:
            tab.open("#token=correct-horse")
            expect(tab.page.get_by_role("link", name=re.compile("release-notes"))).to_be_visible()
            assert "correct-horse" not in tab.page.url
        context = chromium.new_context()
        page = context.new_page()
        page.goto(address)
        page.get_by_label("This page needs the token").fill("correct-horse")
        page.get_by_role("button", name="Open").click()
        expect(page.get_by_role("link", name=re.compile("release-notes"))).to_be_visible()
        context.close()


def test_a_transcript_is_replayed_from_a_file(visitor: Visit, tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    file.write_text(sessions.claude_code())
    page = visitor.open("#/replay")
    page.get_by_label("Window").select_option("32000")
    page.locator("#file").set_input_files(file)
    expect(page.get_by_role("row", name=re.compile("balanced"))).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("everything, always"))).to_be_visible()
