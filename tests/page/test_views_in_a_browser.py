"""Every view of the page in a real browser: what it shows, how it follows the ledger, and that it harms nobody."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

import foldline
from foldline.ledger import for_owner
from foldline.message import assistant, tool, user
from foldline.session import Ledger
from support.browsers import Visit, served, served_ledger, visit
from support.pages import conversation, small_policy, with_usage

VIEWS: dict[str, tuple[str, str]] = {
    "sessions": ("#/", "fix-the-parser"),
    "window": ("#/session?session=fix-the-parser&tab=window", "What fills history and pins"),
    "transcript": ("#/session?session=fix-the-parser&tab=transcript", "are no longer sent to the model"),
    "folds": ("#/session?session=fix-the-parser&tab=folds&fold=2", "What it lost"),
    "recall": ("#/session?session=fix-the-parser&tab=recall&q=AssertionError", "passage"),
    "search": ("#/search?q=AssertionError", "passage"),
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
    expect(page.locator(".session.child")).to_contain_text("fix-the-parser/search")
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
    expect(card.get_by_text(re.compile("^Not in any message: counted by the provider"))).to_be_visible()
    card.locator("summary", has_text="tool results").click()
    expect(card.get_by_text("By file").first).to_be_visible()
    file = card.locator(".contents").get_by_role("link").filter(has_text="src/foldline/").first
    sizes = card.locator(".kind > summary small, .kind > .hbar small").all_inner_texts()
    shares = [int(text.removesuffix("%")) for text in sizes]
    assert 98 <= sum(shares) <= 102
    file.click()
    expect(page.get_by_role("tab", name="Transcript")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("button", name="Copy handle")).to_be_visible()


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


def test_a_cause_links_the_summary_that_came_in(chromium: Browser) -> None:
    with foldline.open(":memory:") as ledger:
        session = ledger.session("talk", model="claude-sonnet-5", policy="verbatim")
        session.add([user("one"), with_usage(assistant("yes"), input=10, cache_write=20_000)])
        session.add([user("What was done so far.", kind="digest"), user("two")])
        session.add(with_usage(assistant("yes"), input=10, cache_read=4_000, cache_write=9_000))
        with served_ledger(ledger) as address, visit(chromium, address) as tab:
            page = tab.session("talk", request=2)
            fault = page.get_by_text(re.compile("Cause: the client replaced its history by a summary"))
            fault.get_by_role("link", name="#3").click()
            expect(page.get_by_role("button", name=re.compile("^#3 digest"))).to_be_visible()


def test_every_fold_of_the_chart_can_be_reached_and_none_covers_another(visitor: Visit, example: Ledger) -> None:
    example.session("fix-the-parser").unfold()
    example.session("fix-the-parser").refold()
    page = visitor.session()
    labels = page.locator(".chart-folds a")
    folds = example.session("fix-the-parser").folds
    expect(labels).to_have_count(folds + 1)
    expect(labels.last).to_have_accessible_name(f"Unfold of fold {folds}, Restored: fold {folds}")
    boxes = [box for label in labels.all() if (box := label.bounding_box())]
    for place, box in enumerate(boxes):
        for other in boxes[:place]:
            apart_x = box["x"] >= other["x"] + other["width"] - 1 or other["x"] >= box["x"] + box["width"] - 1
            assert apart_x or box["y"] != other["y"]
    labels.nth(1).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Fold 2", exact=True)).to_be_visible()


def test_a_phone_shows_the_cost_the_saving_and_the_misses_of_each_session(chromium: Browser, example: Ledger) -> None:
    size = {"width": 390, "height": 844}
    with served_ledger(example) as address, visit(chromium, address, viewport=size) as tab:
        page = tab.open("#/money?by=session")
        table = page.get_by_role("region", name="By session")
        for name in ("cost", "saved", "cache misses"):
            box = table.get_by_role("columnheader", name=name, exact=True).bounding_box()
            assert box is not None
            assert box["x"] + box["width"] <= size["width"], name


def test_money_shows_what_each_session_and_all_sessions_saved(visitor: Visit) -> None:
    page = visitor.open("#/money?by=session")
    total = page.get_by_role("region", name="Total")
    expect(total).to_contain_text(re.compile(r"Saved by folds, net\s*~\$0\.\d+"))
    expect(total).to_contain_text("~ marks an estimate")
    table = page.get_by_role("region", name="By session")
    expect(table.get_by_role("columnheader", name="saved")).to_be_visible()
    expect(table.locator("td.saved").first).to_have_text(re.compile(r"^~\$0\.\d+"))


def test_the_transcript_is_read_with_the_keyboard(visitor: Visit) -> None:
    page = visitor.session(tab="transcript", message=104)
    row = page.get_by_role("button", name=re.compile("^#104 "))
    row.focus()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("button", name=re.compile("^#105 "))).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name=re.compile("^#105 "))).to_have_attribute("aria-expanded", "true")
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


def test_a_link_leads_to_its_message_although_other_messages_are_open(visitor: Visit) -> None:
    page = visitor.session(tab="transcript", message=10)
    for number in (20, 24, 48):
        page.get_by_label("Message number").fill(str(number))
        page.get_by_label("Message number").press("Enter")
        opened = page.get_by_role("button", name=re.compile(f"^#{number} "))
        expect(opened).to_have_attribute("aria-expanded", "true")
        expect(opened).to_be_focused()
    page.get_by_role("tab", name="Folds").click()
    page.evaluate("location.hash = location.hash.replace(/tab=folds.*/, 'tab=transcript&message=26')")
    row = page.get_by_role("button", name=re.compile("^#26 "))
    expect(row).to_be_in_viewport()
    page.wait_for_timeout(1_000)
    box, around = row.bounding_box(), page.locator(".transcript").bounding_box()
    assert box
    assert around
    assert around["y"] <= box["y"] <= around["y"] + 120
    assert page.evaluate("scrollY") == 0


def test_rows_that_arrive_late_do_not_take_the_focus_from_a_number_that_is_being_typed(visitor: Visit) -> None:
    page = visitor.open("#/")
    late: list[Any] = []

    def hold(route: Any) -> None:
        late.append(route)

    page.route("**/api/messages?*", hold)
    page = visitor.session(tab="transcript", message=10)
    field = page.get_by_label("Message number")
    field.fill("20")
    page.route("**/api/messages?*", lambda route: route.continue_())
    for route in late:
        route.continue_()
    expect(page.get_by_role("button", name=re.compile("^#10 "))).to_have_attribute("aria-expanded", "true")
    expect(field).to_be_focused()
    field.press("Enter")
    expect(page.get_by_role("button", name=re.compile("^#20 "))).to_be_focused()
    field.press("Enter")
    expect(page.get_by_role("button", name=re.compile("^#20 "))).to_be_focused()


def test_a_row_that_is_scrolled_away_keeps_the_focus(visitor: Visit) -> None:
    page = visitor.session(tab="transcript", message=10)
    row = page.get_by_role("button", name=re.compile("^#10 "))
    expect(row).to_be_focused()
    page.locator(".transcript").evaluate("list => list.scrollTo(0, list.scrollHeight)")
    expect(row).not_to_be_in_viewport()
    expect(page.get_by_role("button", name=re.compile("^#100 "))).to_be_visible()
    expect(row).to_be_focused()


def test_a_fold_says_what_a_fact_is_and_where_the_full_text_is(visitor: Visit) -> None:
    page = visitor.session(tab="folds", fold=1)
    expect(page.get_by_text(re.compile("All [0-9]+ facts are in the digest. The full text of #3-16"))).to_be_visible()
    expect(page.get_by_text(re.compile("^A fact is a request, a changed file"))).to_be_visible()


def test_a_lost_fact_leads_to_the_place_where_it_stands(visitor: Visit) -> None:
    page = visitor.session(tab="folds")
    expect(page.get_by_text("can only be recalled")).to_be_visible()
    expect(page.locator(".facts li")).to_have_count(20)
    every = page.get_by_role("button", name=re.compile(r"Show all \d+"))
    count = int(every.inner_text().removeprefix("Show all "))
    assert count > 20
    every.click()
    expect(page.locator(".facts li")).to_have_count(count)
    fact = page.locator(".facts a").nth(1)
    text = re.sub(r" \([^()]+\)$", "", fact.locator("bdi").inner_text())  # without the file that the name belongs to
    fact.click()
    found = page.locator(".m-open mark").first
    expect(found).to_be_in_viewport()
    assert " ".join(found.inner_text().split()).lower() == " ".join(text.split()).lower()


def test_all_messages_are_searched_from_the_start_page(visitor: Visit) -> None:
    page = visitor.open()
    page.get_by_role("searchbox").fill("handle")
    page.get_by_role("link", name="Search all messages for “handle”").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Search all messages")
    summary = page.get_by_text(
        re.compile(r"The first 10 passages, the best first: \d+ messages with words of the search")
    )
    expect(summary).to_contain_text("The list is cut")
    expect(page.locator(".passage")).to_have_count(10)
    page.get_by_role("button", name="Show more").click()
    expect(page.locator(".passage").nth(10)).to_be_visible()
    page.locator(".passage-line pre").first.click()
    expect(page.get_by_role("tab", name="Transcript")).to_have_attribute("aria-selected", "true")
    expect(page.locator(".m-open mark").first).to_be_visible()


def test_a_name_is_searched_and_its_message_opens_at_the_match(visitor: Visit) -> None:
    page = visitor.session(tab="recall")
    page.get_by_role("searchbox").fill("prune_arrival_ratio")
    page.keyboard.press("Enter")
    expect(page.locator(".passage mark").first).to_have_text("prune_arrival_ratio")
    page.locator(".passage a.m-number", has_text="#20").click()
    expect(page.locator(".m-open mark").first).to_be_in_viewport()
    expect(page.get_by_role("button", name=re.compile("^#20 "))).to_be_focused()
    page.go_back()
    expect(page.get_by_role("searchbox")).to_have_value("prune_arrival_ratio")


def test_a_result_without_the_words_is_called_related_or_near(visitor: Visit) -> None:
    page = visitor.session(tab="recall", q="prune_arrival_ratio")
    expect(page.locator(".passage").first).to_be_visible()
    for line in page.locator(".passage-line").all():
        has_words = line.locator("mark").count() > 0
        assert has_words != bool(re.search("related|near a match", line.inner_text())), line.inner_text()


def test_every_place_of_a_text_is_found_with_the_keyboard(visitor: Visit) -> None:
    page = visitor.session(tab="transcript")
    field = page.get_by_role("searchbox", name="Find in the messages")
    field.fill("prune_arrival_ratio")
    count = page.locator(".find-count")
    expect(count).to_have_text(re.compile(r"^\d+ in \d+ messages$"))
    places = int(count.inner_text().split()[0])
    assert places >= 3
    seen = set()
    for _ in range(places):
        before = count.inner_text()
        field.press("Enter")
        expect(count).not_to_have_text(before)
        mark = page.locator("mark.current")
        expect(mark).to_be_in_viewport()
        expect(mark).to_have_text(re.compile("^prune_arrival_ratio$", re.IGNORECASE))
        expect(field).to_be_focused()
        seen.add(count.inner_text())
    assert seen == {f"{number} of {before.split(' of ')[1]}" for number in range(1, places + 1)}
    last = count.inner_text()
    field.press("Shift+Enter")
    expect(count).not_to_have_text(last)
    field.fill("no such text anywhere")
    expect(count).to_have_text("not found")


def test_a_match_stands_in_the_middle_and_the_head_of_its_message_stays(visitor: Visit) -> None:
    page = visitor.session(tab="transcript", find="prune_arrival_ratio")
    mark = page.locator("mark.current")
    expect(mark).to_be_in_viewport()
    page.wait_for_timeout(500)
    place, sight = mark.bounding_box(), page.locator(".transcript").bounding_box()
    assert place is not None
    assert sight is not None
    assert abs(place["y"] + place["height"] / 2 - sight["y"] - sight["height"] / 2) < sight["height"] / 6
    expect(page.locator(".item.open", has=mark).locator(".m-row")).to_be_in_viewport(ratio=0.9)


def test_a_view_that_is_left_at_once_reports_no_error(visitor: Visit) -> None:
    page = visitor.session(tab="folds")
    expect(page.locator(".facts a").first).to_be_visible()
    for wait in (0, 20, 60, 100):
        page.locator(".facts a").first.click()
        page.wait_for_timeout(wait)
        page.get_by_role("link", name="Money").click()
        page.wait_for_timeout(400)
        page.go_back()
        page.get_by_role("tab", name="Folds").click()
        expect(page.locator(".facts a").first).to_be_visible()
    assert visitor.errors == []


LATE_ANSWERS = """(late) => {
    const send = window.fetch;
    window.fetch = async (path, options) => {
        const answer = await send(path, options);
        const delay = new RegExp(`api/${late}([?]|$)`).test(path) ? 700 : 60;
        await new Promise((resume) => setTimeout(resume, delay));
        return answer;
    };
}"""


@pytest.mark.parametrize("late", ["sessions", "outline"])
def test_a_view_that_was_left_while_it_was_loading_does_not_come_back(visitor: Visit, late: str) -> None:
    page = visitor.open("#/replay")
    expect(page.get_by_role("heading", name="Replay")).to_be_visible()
    page.evaluate(LATE_ANSWERS, late)
    session = "#/session?session=fix-the-parser&tab=recall&q=prune_arrival_ratio"
    for last, heading, title in (
        ("#/replay", "Replay", "foldline: replay"),
        ("#/money", "Money", "foldline: money"),
        ("#/", "Sessions", "foldline: sessions"),
        (session, "fix-the-parser", "fix-the-parser: foldline"),
        ("#/search", "Search all messages", "foldline: search"),
    ):
        for place in ("#/", session, "#/money", "#/", last):
            page.evaluate("place => { location.hash = place; }", place)
            page.wait_for_timeout(15)
        page.wait_for_timeout(900)  # the answers for the views that were left have arrived
        expect(page.locator("h1")).to_have_text([heading])
        expect(page).to_have_title(title)
        assert page.evaluate("location.hash").startswith(last.partition("?")[0])
        assert ("session=" in page.evaluate("location.hash")) == (last == session)


def test_a_click_on_a_bar_chooses_its_request(visitor: Visit) -> None:
    page = visitor.session()
    expect(page.get_by_role("heading", name="Request 56")).to_be_visible()
    over = page.locator(".u-over")
    box = over.bounding_box()
    assert box
    for number in (1, 31, 56):
        for share in (0.2, 0.5, 0.8):
            at = (number - 1 + share) / 56 * box["width"]
            over.click(position={"x": at, "y": box["height"] - 8})
            expect(page.get_by_role("heading", name=f"Request {number}", exact=True)).to_be_visible()
    over.hover(position={"x": 30.5 / 56 * box["width"], "y": 50})
    expect(page.locator(".chart-note")).to_contain_text(re.compile("Request 31: .*cache miss"))


def test_a_request_that_does_not_exist_is_named_and_the_largest_is_one_click_away(visitor: Visit) -> None:
    page = visitor.session(request=10)
    field = page.get_by_label("Request number")
    expect(field).to_have_value("10")
    field.fill("500")
    field.press("Enter")
    expect(page.get_by_role("status").get_by_text("There is no request 500: the newest is request")).to_be_visible()
    expect(field).to_have_value("10")
    page.get_by_role("button", name="Largest").click()
    largest = page.evaluate(
        "fetch('api/requests?session=fix-the-parser').then((answer) => answer.json())"
        ".then(({requests}) => requests.reduce((most, row) => (row.tokens > most.tokens ? row : most)).number)"
    )
    expect(field).to_have_value(str(largest))


def test_the_wheel_does_not_change_a_number(visitor: Visit) -> None:
    page = visitor.session(request=10)
    field = page.get_by_label("Request number")
    expect(field).to_have_value("10")
    field.focus()
    field.hover()
    page.mouse.wheel(0, 200)
    page.wait_for_timeout(300)
    expect(field).to_have_value("10")


def test_the_name_of_a_file_is_not_cut(visitor: Visit) -> None:
    page = visitor.session()
    card = page.get_by_role("region", name="The window now")
    card.locator("summary", has_text="tool results").click()
    names = card.locator(".groups .path > :last-child")
    expect(names.first).to_be_visible()
    for name in names.all():
        right = "(node) => node.getBoundingClientRect().right"
        assert name.evaluate(right) <= name.locator("xpath=ancestor::*[@class='hbar-name']").evaluate(right) + 1


def test_a_time_in_the_future_is_shown_with_its_date(visitor: Visit) -> None:
    page = visitor.session(tab="folds")
    expect(page.locator(".fold-row").first).to_be_visible()
    text = page.evaluate("import('./format.js').then(({ago}) => ago(Date.now() / 1000 + 7200))")
    assert re.search(r"\d{1,2} \w+ \d{4}, \d{2}:\d{2}", text)


def test_two_requests_are_compared_and_the_address_keeps_them(visitor: Visit) -> None:
    page = visitor.session(request=30, against=20)
    table = page.get_by_role("table").filter(has_text="In the request")
    expect(table.get_by_role("columnheader", name="Request 20")).to_be_visible()
    expect(table.get_by_role("row", name=re.compile("^Request"))).to_contain_text(re.compile(r"1\dk1\dk"))
    page.get_by_role("slider", name="Request").fill("31")
    expect(page.get_by_text(re.compile(r"paid again, for \$0\.0"))).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="Request 31")).to_be_visible()
    expect(table.get_by_role("columnheader", name="Request 20")).to_be_visible()


def test_a_session_shows_its_cost_and_its_sub_agents(visitor: Visit) -> None:
    page = visitor.session()
    expect(page.get_by_role("region", name="The window now")).to_contain_text(re.compile(r"Cost\$0\.\d+"))
    card = page.get_by_role("region", name="Sub-agents and further conversations")
    expect(card).to_contain_text(re.compile(r"67 requests, \$0\.\d+"))
    card.get_by_role("link", name="fix-the-parser/search").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("fix-the-parser/search")
    page.locator(".crumbs").get_by_role("link", name="fix-the-parser").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("fix-the-parser")


def test_the_tab_key_reaches_a_message_at_the_fold_line(visitor: Visit) -> None:
    page = visitor.session(tab="transcript")
    expect(page.get_by_text("are no longer sent to the model")).to_be_visible()
    expect(page.locator('button.m-row[tabindex="0"]')).to_have_count(1)  # until then, the row is still loading
    page.get_by_role("button", name="Newest").focus()
    for _ in range(4):
        page.keyboard.press("Tab")
        if "m-row" in (page.evaluate("document.activeElement.className") or ""):
            break
    assert "m-row" in page.evaluate("document.activeElement.className")
    page.keyboard.press("ArrowDown")
    assert "m-row" in page.evaluate("document.activeElement.className")


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
            page.get_by_role("spinbutton", name="Message number").fill("2000")
            page.get_by_role("spinbutton", name="Message number").press("Enter")
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


def test_the_heading_of_a_chosen_fold_comes_into_sight(visitor: Visit) -> None:
    page = visitor.session(tab="folds")
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    page.get_by_role("link", name=re.compile("^Fold 1 ")).dispatch_event("click")
    expect(page.get_by_role("heading", name="Fold 1")).to_be_in_viewport()


def test_all_lost_facts_are_not_called_the_most_important(visitor: Visit) -> None:
    page = visitor.session(tab="folds", fold=6)
    expect(page.get_by_text("most important")).to_be_visible()
    page.get_by_role("button", name=re.compile("^Show all")).click()
    expect(page.get_by_text("most important")).to_be_hidden()


def test_folds_that_cost_money_are_not_shown_as_a_saving(chromium: Browser) -> None:
    with foldline.open(":memory:") as ledger:
        session = ledger.session("talk", model="claude-sonnet-5", policy=small_policy(60_000))
        size = 0
        for one in conversation(12):
            at = time.time() - 250 + 5 * len(session)
            size += session.size(one)
            timed = replace(one, meta=replace(one.meta, at=at))
            session.add(with_usage(timed, cache_read=size, input=12) if one.role == "assistant" else timed)
        preview = session.preview(before="#9")
        assert preview is not None
        session.approve(preview)
        session.add(user("And?"), with_usage(assistant("Yes."), cache_write=session.load().request))
        with served_ledger(ledger) as address, visit(chromium, address) as tab:
            page = tab.open()
            cost = page.locator(".session-money .lost")
            expect(cost).to_have_text(re.compile(r"^cost ~\$0\.[0-9]+ more$"))
            expect(page.locator(".session-money .saved")).to_have_count(0)
            page = tab.open("#/money?by=session&source=ledger")
            expect(page.locator("td.lost")).to_have_text(re.compile(r"^cost ~\$0\.[0-9]+ more$"))
            expect(page.get_by_role("region", name="Total")).to_contain_text("Folds cost more than they saved")
            session.unfold()
            page = tab.session("talk")
            expect(page.locator(".stat", has_text="Folds cost more than they saved")).to_contain_text("~$0.0")
            expect(page.get_by_text("0 (1 taken back)")).to_be_visible()


def test_a_fold_mark_has_its_label_next_to_a_warning_mark(visitor: Visit, example: Ledger) -> None:
    session = example.session("fix-the-parser")
    session.fold(force=True)
    page = visitor.session()
    expect(page.locator(".mark.fold em")).to_be_visible()
    page.get_by_role("tab", name="Folds").click()
    expect(page.locator(".next-fold")).to_contain_text("as soon as the next reply reports the size of its request")


def test_the_cause_of_a_miss_links_to_its_fold(visitor: Visit) -> None:
    page = visitor.session()
    page.get_by_text(re.compile("cache misses: ")).click()
    expect(page.locator(".misses").get_by_role("link", name="fold 2")).to_have_count(0)
    page.locator(".misses").get_by_role("link", name="fold 3").click()
    expect(page.get_by_role("heading", name="Fold 3", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name=re.compile("^request [0-9]+$"))).to_be_visible()


def test_a_request_names_the_messages_that_came_and_left(visitor: Visit) -> None:
    page = visitor.session(tab="folds", fold=2)
    page.get_by_role("link", name=re.compile("^request [0-9]+$")).click()
    moved = page.locator(".came-went")
    expect(moved).to_contain_text(re.compile("New: #[0-9-]+ Left: #"))
    moved.get_by_role("link").last.click()
    expect(page.get_by_role("tab", name="Transcript")).to_have_attribute("aria-selected", "true")


def test_sessions_of_other_owners_are_mentioned(chromium: Browser) -> None:
    with foldline.open(":memory:") as ledger:
        served = Ledger(for_owner(ledger.store, "key-none"))
        served.session("talk", model="claude-sonnet-5").add([user("one"), with_usage(assistant("yes"), input=10)])
        with served_ledger(ledger) as address, visit(chromium, address) as tab:
            text = "1 session of other owners is not shown.*start the page with “foldline page --all-owners”"
            page = tab.open()
            expect(page.get_by_text(re.compile(text))).to_be_visible()
            expect(page.get_by_text("There are no sessions yet")).to_have_count(0)
            page = tab.open("#/money")
            expect(page.get_by_text(re.compile(text))).to_be_visible()
            expect(page.get_by_text("No reply in the sessions that are shown has token usage.")).to_be_visible()
        with served_ledger(ledger, all_owners=True) as address, visit(chromium, address) as tab:
            page = tab.open()
            expect(page.locator(".session")).to_have_count(1)
            expect(page.get_by_text("of other owners")).to_have_count(0)


def test_a_wrong_token_and_an_unknown_address_are_named(chromium: Browser, example: Ledger) -> None:
    with served_ledger(example, token="right") as address, visit(chromium, address) as tab:
        page = tab.open()
        page.get_by_label("This page needs the token").fill("wrong")
        page.get_by_role("button", name="Open").click()
        expect(page.get_by_role("alert")).to_have_text("This token was refused.")
        page.get_by_label("This page needs the token").fill("right")
        page.get_by_role("button", name="Open").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Sessions")
        tab.errors.clear()  # the browser logs the status 401
        page = tab.open("#/nonsense")
        expect(page.get_by_text("There is no view “nonsense”")).to_be_visible()


def test_the_legend_of_the_requests_follows_the_ledger(chromium: Browser) -> None:
    with foldline.open(":memory:") as ledger:
        session = ledger.session("talk", model="claude-sonnet-5", policy="verbatim")
        session.add(user("one"), with_usage(assistant("yes"), input=10, cache_write=20_000), user("two"))
        with served_ledger(ledger) as address, visit(chromium, address) as tab:
            page = tab.session("talk")
            card = page.get_by_role("region", name="Requests")
            expect(card.get_by_text("read from cache").first).to_be_visible()
            expect(card.get_by_text("cache miss", exact=True)).to_have_count(0)
            session.add(with_usage(assistant("yes"), input=10, cache_write=21_000), user("three"))
            expect(card.get_by_text("cache miss", exact=True)).to_be_visible()
