"""What a user changes on the page, in a real browser: each change asks first, is made, and can be taken back."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, Page, expect

from foldline.session import Ledger
from support.browsers import Visit, served_ledger, visit

NAME = "fix-the-parser"


def toast(page: Page, text: str) -> None:
    expect(page.get_by_role("status").get_by_text(re.compile(text))).to_be_visible()


def undo(page: Page) -> None:
    page.get_by_role("status").get_by_role("button", name="Undo").last.click()


def test_a_message_is_pinned_and_the_pin_is_taken_back(visitor: Visit, example: Ledger) -> None:
    page = visitor.session(tab="transcript", message=100)
    page.get_by_role("button", name="Pin", exact=True).click()
    toast(page, "Pinned #100")
    assert sorted(example.session(NAME).pins) == ["#100", "task"]
    expect(page.locator(".flag.pin").first).to_be_visible()
    undo(page)
    toast(page, "Removed the pin #100")
    assert sorted(example.session(NAME).pins) == ["task"]


def test_a_pin_is_removed_from_the_window(visitor: Visit, example: Ledger) -> None:
    page = visitor.session()
    page.get_by_role("button", name="Unpin").click()
    toast(page, "Removed the pin task")
    expect(page.get_by_role("button", name="Unpin")).to_have_count(0)
    assert not example.session(NAME).pins


def test_a_fold_up_to_a_message_is_previewed_edited_made_and_taken_back(visitor: Visit, example: Ledger) -> None:
    before = example.session(NAME).timeline.cut
    page = visitor.session(tab="transcript", message=109)
    page.get_by_role("button", name="Fold up to here…").click()
    dialog = page.get_by_role("dialog", name="Preview of the fold")
    expect(dialog).to_contain_text("Leaves the request")
    expect(dialog).to_contain_text("Each later request")
    assert example.session(NAME).timeline.cut == before
    dialog.get_by_role("button", name="Edit the digest").click()
    dialog.get_by_role("textbox", name="Digest").fill("Only FL-2231 is open.")
    dialog.get_by_role("button", name="Fold now").click()
    toast(page, "Folded: ")
    session = example.session(NAME)
    assert session.timeline.cut > before
    assert session.timeline.fold is not None
    assert session.timeline.fold.digest is not None
    assert "Only FL-2231 is open." in session.timeline.fold.digest.message.text
    expect(page.get_by_text(re.compile(f"{session.timeline.cut} above the line"))).to_be_visible()
    undo(page)
    toast(page, "The fold is taken back")
    assert example.session(NAME).timeline.cut == before


def test_a_preview_can_be_cancelled(visitor: Visit, example: Ledger) -> None:
    before = example.session(NAME).folds
    page = visitor.session(tab="folds")
    page.get_by_role("button", name="Preview the next fold").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert example.session(NAME).folds == before


def test_a_fold_is_undone_and_made_again(visitor: Visit, example: Ledger) -> None:
    folds = example.session(NAME).folds
    page = visitor.session(tab="folds")
    page.get_by_role("button", name="Unfold…").click()
    dialog = page.get_by_role("dialog", name="Undo the newest fold?")
    dialog.get_by_role("button", name="Cancel").click()
    assert example.session(NAME).folds == folds
    page.get_by_role("button", name="Unfold…").click()
    dialog.get_by_role("button", name="Unfold").click()
    toast(page, "Unfolded")
    expect(page.get_by_role("heading", name=f"Fold {folds - 1}")).to_be_visible()
    assert example.session(NAME).folds == folds - 1
    undo(page)
    toast(page, "Folded: ")
    expect(page.get_by_role("heading", name=f"Fold {folds}", exact=True)).to_be_visible()
    assert example.session(NAME).folds == folds


def test_advice_leads_to_a_preview_and_to_a_pin(visitor: Visit, example: Ledger) -> None:
    page = visitor.session()
    card = page.get_by_role("region", name="What to do now")
    expect(card).to_contain_text(re.compile("frees ~"))
    card.get_by_role("button", name=re.compile("Preview a fold up to")).first.click()
    expect(page.get_by_role("dialog")).to_contain_text("Leaves the request")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    card.get_by_role("button", name=re.compile("^Pin #")).first.click()
    toast(page, "Pinned #")
    assert len(example.session(NAME).pins) == 2


def test_an_error_of_a_change_is_shown(visitor: Visit, example: Ledger) -> None:
    page = visitor.session(tab="folds")
    page.get_by_role("button", name="Preview the next fold").click()
    dialog = page.get_by_role("dialog")
    if dialog.get_by_role("button", name="Preview that").count():
        dialog.get_by_role("button", name="Preview that").click()
    expect(dialog.get_by_role("button", name="Fold now")).to_be_visible()
    example.session(NAME).pin("Changed by somebody else.")
    dialog.get_by_role("button", name="Fold now").click()
    toast(page, "has changed since this preview was made")
    visitor.errors.clear()  # the browser logs the status 409


def test_a_read_only_page_offers_no_change(chromium: Browser, example: Ledger) -> None:
    with served_ledger(example, read_only=True) as address, visit(chromium, address) as tab:
        page = tab.session(tab="transcript", message=100)
        expect(page.get_by_role("button", name="Copy handle")).to_be_visible()
        assert page.get_by_role("button", name=re.compile("Pin|Fold up")).count() == 0
        page.get_by_role("tab", name="Folds").click()
        expect(page.get_by_role("heading", name="Next fold")).to_be_visible()
        assert page.get_by_role("button", name=re.compile("Unfold|Preview")).count() == 0
