"""What a user changes on the page, in a real browser: each change asks first, is made, and can be taken back."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, Page, Route, expect

import foldline
from foldline.message import assistant, user
from foldline.plan.timeline import left_handles
from foldline.session import Ledger, Session
from support.browsers import Visit, served_ledger, visit
from support.pages import conversation, small_policy, with_usage

NAME = "fix-the-parser"


def toast(page: Page, text: str) -> None:
    expect(page.get_by_role("status").get_by_text(re.compile(text))).to_be_visible()


def meter(session: Session) -> str:
    return f"~{session.load().request / 1_000:.0f}k of {session.usable / 1_000:.0f}k"


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


def test_a_pin_is_shown_at_once_and_the_list_stays_in_place(visitor: Visit, example: Ledger) -> None:
    page = visitor.session(tab="transcript", message=100)
    row = page.get_by_role("button", name=re.compile("^#100 "))
    button = page.get_by_role("button", name="Pin", exact=True)
    expect(button).to_be_visible()
    page.wait_for_timeout(800)
    before = row.bounding_box()
    waiting: list[Route] = []

    def hold(route: Route) -> None:
        waiting.append(route)

    page.route("**/api/session?*", hold)  # the session is not measured again yet
    button.click()
    expect(page.get_by_role("button", name="Unpin", exact=True)).to_be_visible()
    expect(page.locator(".flag.pin")).to_be_visible()
    page.route("**/api/session?*", lambda route: route.continue_())
    for route in waiting:
        route.continue_()
    page.wait_for_timeout(2_000)
    assert row.bounding_box() == before
    assert sorted(example.session(NAME).pins) == ["#100", "task"]


def test_a_folded_message_is_brought_back_as_a_copy_that_is_named(visitor: Visit, example: Ledger) -> None:
    length = len(example.session(NAME).timeline)
    page = visitor.session(tab="transcript", message=10)
    page.get_by_role("button", name="Bring back").click()
    toast(page, f"A copy of #10 .*was added as #{length + 1}")
    row = page.get_by_role("button", name=re.compile("^#10 "))
    expect(row).to_contain_text(f"brought back as #{length + 1}")
    expect(page.get_by_role("button", name="Unpin")).to_be_visible()
    assert example.session(NAME).state.snapshot.pins["#10"] == length


def test_bringing_a_message_back_is_undone(visitor: Visit, example: Ledger) -> None:
    session = example.session(NAME)
    size, sent = session.load().request, session.view().render().body
    page = visitor.session(tab="transcript", message=10)
    facts = page.locator(".session-head")
    expect(facts).to_contain_text(f"{len(session)} messages")
    expect(facts).to_contain_text(meter(session))
    page.get_by_role("button", name="Bring back").click()
    toast(page, "A copy of #10 .*was added as #114. It stays in every request until you unpin it")
    row = page.get_by_role("button", name=re.compile("^#10 "))
    expect(row).to_contain_text("brought back as #114")
    undo(page)
    toast(page, r"The copy #114 of #10 left the request\.$")
    expect(row).not_to_contain_text("brought back")
    expect(facts).to_contain_text("113 messages, 1 removed note")
    expect(facts).to_contain_text(meter(session))
    assert example.session(NAME).view().render().body == sent
    assert example.session(NAME).load().request == size
    page.get_by_role("button", name="Newest", exact=True).click()
    expect(page.get_by_role("button", name=re.compile("^#114 "))).to_contain_text("removed copy of #10")


def test_both_searches_mark_what_is_folded_and_what_was_removed(visitor: Visit, example: Ledger) -> None:
    session = example.session(NAME)
    session.pin(handle="#88")
    session.unpin("#88", at_once=True)
    query = "how exact is the counting underneath"
    for place in (f"#/search?q={query}", f"#/session?session={NAME}&tab=recall&q={query}"):
        page = visitor.open(place)
        lines = page.locator(".passage-line")
        original = lines.filter(has=page.get_by_role("link", name="#88", exact=True)).first
        expect(original.locator(".chip").first).to_have_text("folded")
        copy = lines.filter(has=page.get_by_role("link", name="#114", exact=True)).first
        expect(copy.locator(".chip").first).to_have_text("removed copy of #88")
        above, below = original.bounding_box(), copy.bounding_box()
        assert above is not None
        assert below is not None
        assert above["y"] < below["y"]


def test_a_copy_that_was_sent_leaves_with_its_pin_and_the_cost_is_named(visitor: Visit, example: Ledger) -> None:
    session = example.session(NAME)
    session.pin(handle="#10")
    session.add(assistant("I see."), user("Go on. " + "word " * 300))
    session.add(assistant("Yes."), user("And now?"))
    page = visitor.session(tab="transcript", message=114)
    page.get_by_role("button", name="Unpin").click()
    toast(
        page,
        r"The copy #114 of #10 left the request\. The next request rewrites the cache from there: ~[0-9]+ tokens, \$",
    )
    expect(page.get_by_role("button", name="Bring back")).to_be_visible()
    expect(page.get_by_text("it left the request together with its pin")).to_be_visible()
    assert "#10" not in example.session(NAME).pins
    page.get_by_role("button", name="Bring back").click()
    toast(page, "The copy #114 of #10 is pinned again")
    assert len(example.session(NAME)) == 118
    assert example.session(NAME).state.shows(113)


def test_after_a_fold_no_copy_without_a_pin_is_left(visitor: Visit, example: Ledger) -> None:
    session = example.session(NAME)
    session.pin(handle="#10")
    session.add(assistant("I see."), user("Go on. " + "word " * 300))
    session.unpin("#10")
    page = visitor.session(tab="transcript", message=109)
    page.get_by_role("button", name="Fold up to here…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(re.compile("Leaves the request.*#114"))
    dialog.get_by_role("button", name="Fold now").click()
    toast(page, "Folded: ")
    folded = example.session(NAME)
    assert not [message for message in folded.view().messages if message.kind == "note"]
    page.get_by_role("tab", name="Window").click()
    expect(page.get_by_role("region", name="The window now")).to_contain_text("Folds")
    expect(page.locator(".filled .kind").first).to_be_visible()
    expect(page.locator(".filled")).not_to_contain_text("note")


def test_a_message_with_undo_stays_and_covers_no_content(visitor: Visit) -> None:
    page = visitor.session(tab="transcript", message=100)
    page.clock.install()
    page.get_by_role("button", name="Pin", exact=True).click()
    toast(page, "Pinned #100")
    page.clock.fast_forward(25_000)
    note, list_box = page.locator(".toast").bounding_box(), page.locator(".transcript").bounding_box()
    assert note is not None
    assert list_box is not None
    assert note["y"] + note["height"] <= list_box["y"]
    page.clock.fast_forward(6_000)
    expect(page.locator(".toast")).to_have_count(0)


def test_a_pin_is_removed_from_the_window(visitor: Visit, example: Ledger) -> None:
    page = visitor.session()
    card = page.get_by_role("region", name="Kept in every request")
    expect(card).to_contain_text("first prompt, kept by the policy")
    card.get_by_role("button", name="Unpin #1").click()
    toast(page, "Removed the pin task. It stays in every request all the same, because it is the system prompt")
    expect(card.get_by_role("listitem").first).to_contain_text("system prompt")
    expect(page.get_by_role("button", name="Unpin")).to_have_count(0)
    assert not example.session(NAME).pins
    undo(page)
    toast(page, "Pinned task")
    assert [*example.session(NAME).pins] == ["task"]
    expect(card.get_by_role("button", name="Unpin #1")).to_be_visible()


def test_a_fold_up_to_a_message_is_previewed_edited_made_and_taken_back(visitor: Visit, example: Ledger) -> None:
    before = example.session(NAME).timeline.cut
    page = visitor.session(tab="transcript", message=109)
    page.get_by_role("button", name="Fold up to here…").click()
    dialog = page.get_by_role("dialog", name="Preview: fold up to and with #109")
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
    left = sum(map(len, session.timeline.fold.left))
    expect(page.get_by_text(f"{left} no longer sent")).to_be_visible()
    undo(page)
    toast(page, "The fold is taken back")
    assert example.session(NAME).timeline.cut == before


def test_the_figures_of_a_preview_follow_the_edited_digest(visitor: Visit) -> None:
    page = visitor.session(tab="transcript", message=109)
    page.get_by_role("button", name="Fold up to here…").click()
    dialog = page.get_by_role("dialog")
    kept = dialog.locator(".stat", has_text="Facts kept")
    before = kept.inner_text()
    title = dialog.locator("h3")
    expect(title).to_have_text(re.compile("Digest by local, ~[0-9.]+k? tokens"))
    dialog.get_by_role("button", name="Edit the digest").click()
    field = dialog.get_by_role("textbox", name="Digest")
    original = field.input_value()
    field.fill("Only this line.")
    expect(title).to_have_text(re.compile("Digest by hand, ~[0-9]+ tokens"))
    expect(kept).to_contain_text(re.compile(r"0 of [0-9]+ \(0%\)"))
    expect(dialog.get_by_text(re.compile("Not in the digest: [0-9]+ facts"))).to_be_visible()
    promised = [kept.inner_text().split("(")[0].split("\n")[-1].strip(), title.inner_text().split("~")[1]]
    field.fill(original)
    expect(title).to_have_text(re.compile("Digest by local"))
    assert kept.inner_text() == before
    field.fill("Only this line.")
    expect(title).to_have_text(re.compile("Digest by hand"))
    dialog.get_by_role("button", name="Fold now").click()
    toast(page, "Folded: ")
    page.get_by_role("tab", name="Folds").click()
    detail = page.locator(".fold-detail")
    expect(detail.locator(".stat", has_text="Facts kept")).to_contain_text(promised[0])
    expect(detail.locator(".stat", has_text="Digest").first).to_contain_text(promised[1].removesuffix(" tokens"))


def test_a_fold_can_be_undone_although_the_figures_for_its_digest_were_not_computed_yet(
    visitor: Visit, example: Ledger
) -> None:
    before = example.session(NAME).timeline.cut
    page = visitor.session(tab="transcript", message=109)
    page.get_by_role("button", name="Fold up to here…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Edit the digest").click()
    waiting: list[Route] = []

    def hold(route: Route) -> None:
        waiting.append(route)

    page.route("**/api/revise", hold)  # the answer comes only after the fold
    with page.expect_request("**/api/revise"):
        dialog.get_by_role("textbox", name="Digest").fill("Only FL-2231 is open.")
    dialog.get_by_role("button", name="Fold now").click()
    toast(page, "Folded: ")
    for route in waiting:
        route.continue_()
    page.wait_for_timeout(1_000)
    undo(page)
    toast(page, "The fold is taken back")
    assert example.session(NAME).timeline.cut == before


def test_no_figures_are_computed_for_a_digest_that_was_folded_at_once(visitor: Visit) -> None:
    page = visitor.session(tab="transcript", message=109)
    page.get_by_role("button", name="Fold up to here…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Edit the digest").click()
    dialog.get_by_role("textbox", name="Digest").fill("Only FL-2231 is open.")
    dialog.get_by_role("button", name="Fold now").click()
    toast(page, "Folded: ")
    page.wait_for_timeout(1_500)
    toast(page, "Folded: ")
    expect(page.get_by_role("status").get_by_role("button", name="Undo")).to_be_visible()


def test_an_edited_digest_is_not_discarded_without_a_question(visitor: Visit) -> None:
    page = visitor.session(tab="transcript", message=109)
    page.get_by_role("button", name="Fold up to here…").click()
    preview = page.get_by_role("dialog", name="Preview: fold up to and with #109")
    preview.get_by_role("button", name="Edit the digest").click()
    field = preview.get_by_role("textbox", name="Digest")
    field.fill("My own text.")
    page.keyboard.press("Escape")
    question = page.get_by_role("dialog", name="Discard your text?")
    expect(question).to_be_visible()
    page.keyboard.press("Escape")
    expect(question).to_have_count(0)
    expect(field).to_have_value("My own text.")
    preview.get_by_role("button", name="Cancel").click()
    question.get_by_role("button", name="Discard it").click()
    expect(preview).to_have_count(0)


def test_no_cache_is_named_if_the_provider_reports_none(chromium: Browser) -> None:
    with foldline.open(":memory:") as ledger:
        session = ledger.session("talk", model="claude-sonnet-5", policy=small_policy(20_000))
        for number, one in enumerate(conversation(12)):
            session.add(with_usage(one, input=2_000 + 300 * number) if one.role == "assistant" else one)
        with served_ledger(ledger) as address, visit(chromium, address) as tab:
            page = tab.session("talk")
            advice = page.locator(".advice li").filter(has_text="frees").first
            expect(advice).to_contain_text("costs nothing, as the provider reports no cache")
            advice.get_by_role("button", name="Fold up to here…").click()
            expect(page.get_by_role("dialog")).to_contain_text("nothing, the provider reports no cache")
            page.get_by_role("dialog").get_by_role("button", name="Fold now").click()
            toast(page, "Folded: ")
            page.get_by_role("tab", name="Folds").click()
            page.get_by_role("button", name="Unfold…").click()
            expect(page.get_by_role("dialog")).to_contain_text("return to the request")
            expect(page.get_by_role("dialog")).not_to_contain_text("cache")


def test_a_preview_can_be_cancelled(visitor: Visit, example: Ledger) -> None:
    before = example.session(NAME).folds
    page = visitor.session(tab="folds")
    page.get_by_role("button", name="Preview a fold now").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert example.session(NAME).folds == before


def test_a_fold_is_undone_and_made_again(visitor: Visit, example: Ledger) -> None:
    folds, size = example.session(NAME).folds, meter(example.session(NAME))
    page = visitor.session(tab="folds")
    page.get_by_role("button", name="Unfold…").click()
    dialog = page.get_by_role("dialog", name=re.compile(r"^Take back fold \d+\?$"))
    dialog.get_by_role("button", name="Cancel").click()
    assert example.session(NAME).folds == folds
    page.get_by_role("button", name="Unfold…").click()
    expect(dialog).to_contain_text("of 22k: the request would not fit, so the next request folds again")
    dialog.get_by_role("button", name="Unfold").click()
    toast(page, "Unfolded")
    expect(page.get_by_text(re.compile("^Taken back on "))).to_be_visible()
    assert example.session(NAME).folds == folds - 1
    undo(page)
    toast(page, f"Fold {folds} applies again: {size}")
    expect(page.get_by_role("button", name="Unfold…")).to_be_visible()
    assert example.session(NAME).folds == folds


def test_a_fold_that_was_taken_back_earlier_is_listed_and_restored(visitor: Visit, example: Ledger) -> None:
    session = example.session(NAME)
    folds, fold = session.folds, session.timeline.fold
    assert fold is not None
    session.unfold()
    page = visitor.session(tab="folds")
    expect(page.get_by_role("heading", name=f"Fold {folds - 1}", exact=True)).to_be_visible()
    page.get_by_role("link", name=re.compile(f"Fold {folds}.*taken back")).click()
    expect(page.get_by_role("heading", name=f"Fold {folds}", exact=True)).to_be_visible()
    expect(page.get_by_text("First request with it")).to_be_visible()
    expect(page.get_by_role("heading", name="Digest", exact=True)).to_be_visible()
    page.get_by_role("button", name="Fold again").click()
    toast(page, f"Fold {folds} applies again")
    expect(page.get_by_role("link", name=re.compile(f"Fold {folds}.*applies now"))).to_be_visible()
    restored = example.session(NAME).timeline.fold
    assert restored is not None
    assert (restored.digest, restored.cut, restored.reason) == (fold.digest, fold.cut, fold.reason)


def test_an_unfold_does_not_change_what_was_sent_and_saved(visitor: Visit, example: Ledger) -> None:
    page = visitor.session()
    saved = page.get_by_role("region", name="The window now").locator(".stat", has_text="Saved by folds")
    before = saved.inner_text()
    labels = page.locator(".chart-folds a")
    expect(labels).to_have_text([str(number) for number in range(1, example.session(NAME).folds + 1)])
    example.session(NAME).unfold()
    expect(labels.last).to_have_accessible_name(re.compile("Unfold of fold"))
    expect(labels).to_have_count(example.session(NAME).folds + 2)
    assert saved.inner_text() == before
    labels.last.click()
    expect(page.get_by_text(re.compile("^Taken back on "))).to_be_visible()


def test_an_older_fold_says_why_it_cannot_be_taken_back(visitor: Visit) -> None:
    page = visitor.session(tab="folds", fold=2)
    expect(page.get_by_text("take back the newer folds first")).to_be_visible()
    expect(page.get_by_role("button", name="Unfold…")).to_have_count(0)


def test_advice_leads_to_a_preview_and_to_a_pin(visitor: Visit, example: Ledger) -> None:
    page = visitor.session()
    card = page.get_by_role("region", name="What to do now")
    expect(card).to_contain_text(re.compile("frees ~"))
    card.get_by_role("button", name=re.compile("Fold up to here")).first.click()
    expect(page.get_by_role("dialog")).to_contain_text("Leaves the request")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    card.get_by_role("button", name=re.compile("^Pin #")).first.click()
    toast(page, "Pinned #")
    assert len(example.session(NAME).pins) == 2


def test_an_error_of_a_change_is_shown(visitor: Visit, example: Ledger) -> None:
    page = visitor.session(tab="folds")
    page.get_by_role("button", name="Preview a fold now").click()
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


def test_a_taken_back_fold_says_which_messages_returned(visitor: Visit, example: Ledger) -> None:
    session = example.session(NAME)
    fold = session.timeline.fold
    assert fold is not None
    session.unfold()
    before = session.timeline.fold
    assert before is not None
    back = left_handles(fold, before)
    assert back != left_handles(fold)
    page = visitor.session(tab="folds", fold=session.folds + 1)
    state = page.locator(".fold-detail .hint")
    expect(state).to_contain_text(f"Of its messages, {back} are in the request again.")
    expect(state).to_contain_text(f"Fold {session.folds} still covers the others.")


def test_an_unfold_says_what_the_next_request_does_and_pays(visitor: Visit, example: Ledger) -> None:
    example.session(NAME).use(policy=foldline.Policy.preset("balanced").but(window_tokens=200_000))
    page = visitor.session(tab="folds")
    page.get_by_role("button", name="Unfold…").click()
    dialog = page.get_by_role("dialog", name=re.compile(r"^Take back fold \d+\?$"))
    expect(dialog).to_contain_text("Rewriting the prompt cache costs nothing: the cache has expired")
    expect(dialog).not_to_contain_text("fold again")
    dialog.get_by_role("button", name="Unfold").click()
    toast(page, "Unfolded: .* are in the request again")
    expect(page.get_by_role("status").get_by_text("fold again")).to_have_count(0)


def test_a_fold_that_was_never_sent_is_undone_and_extended_without_cost(visitor: Visit, example: Ledger) -> None:
    session = example.session(NAME)
    usage = {"input": 12, "cache_read": 9_000, "cache_write": 900}
    session.add(user("And now?"), with_usage(assistant("I read on."), **usage), user("Go on."))
    page = visitor.session(tab="transcript", message=105)
    advice = page.get_by_role("region", name="What to do now").locator("li").filter(has_text="frees").first
    page.get_by_role("tab", name="Window").click()
    expect(advice).to_contain_text(re.compile(r"costs \$0\.[0-9]+ once"))
    page.get_by_role("tab", name="Transcript").click()
    page.get_by_role("button", name="Fold up to here…").click()
    page.get_by_role("dialog").get_by_role("button", name="Fold now").click()
    toast(page, "Folded: ")
    page.get_by_role("tab", name="Window").click()
    expect(advice).to_contain_text("costs nothing, as no request was sent since the last fold")
    page.get_by_role("tab", name="Folds").click()
    page.get_by_role("button", name="Preview a fold now").click()
    forced = page.get_by_role("dialog").get_by_role("button", name="Preview that")
    forced.click()
    once = page.get_by_role("dialog").locator(".stat", has_text="Once, to rewrite the cache")
    expect(once).to_contain_text("nothing, no request was sent since the last fold")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Unfold…").click()
    dialog = page.get_by_role("dialog", name=re.compile(r"^Take back fold \d+\?$"))
    expect(dialog).to_contain_text("Rewriting the prompt cache costs nothing: no request was sent since the fold")
    dialog.get_by_role("button", name="Cancel").click()
    usage = {"input": 12, "cache_read": 4_000, "cache_write": 3_000}
    session.refresh()
    session.view()
    session.add(with_usage(assistant("Done."), **usage), user("Thanks. One more thing."))
    page.get_by_role("button", name="Unfold…").click()
    expect(dialog).to_contain_text(re.compile(r"The next request rewrites the prompt cache: ~[0-9.]+k tokens"))


def test_a_warm_cache_has_a_price_in_the_question_before_an_unfold(visitor: Visit, example: Ledger) -> None:
    session = example.session(NAME)
    usage = {"input": 12, "cache_read": 9_000, "cache_write": 900}
    session.add(user("And now?"), with_usage(assistant("I read on."), **usage), user("Go on."))
    page = visitor.session(tab="folds")
    page.get_by_role("button", name="Unfold…").click()
    dialog = page.get_by_role("dialog", name=re.compile(r"^Take back fold \d+\?$"))
    expect(dialog).to_contain_text(
        re.compile(r"The next request rewrites the prompt cache: ~[0-9.]+k tokens, \$0\.[0-9]+")
    )
    expect(dialog).to_contain_text("the next request folds again")


def test_an_unfold_takes_back_only_the_fold_that_its_question_named(visitor: Visit, example: Ledger) -> None:
    session = example.session(NAME)
    page = visitor.session(tab="folds")
    page.get_by_role("button", name="Unfold…").click()
    dialog = page.get_by_role("dialog", name=f"Take back fold {session.folds}?")
    expect(dialog.get_by_text("Each later request: $")).to_be_visible()
    session.unfold()  # in another tab
    folds = session.folds
    dialog.get_by_role("button", name="Unfold").click()
    toast(page, f"fold {folds + 1} cannot be taken back: fold {folds} is the newest fold now")
    visitor.errors.clear()  # the browser logs the status 409
    assert example.session(NAME).folds == folds
    expect(page.locator(".fold-row").first).to_contain_text("taken back")


def test_undo_takes_back_only_its_own_fold(visitor: Visit, example: Ledger) -> None:
    session = example.session(NAME)
    number = session.folds
    page = visitor.session(tab="folds")
    page.get_by_role("button", name="Unfold…").click()
    page.get_by_role("dialog").get_by_role("button", name="Unfold").click()
    toast(page, "Unfolded")
    session.unfold()  # in another tab
    undo(page)
    toast(page, f"fold {number} cannot be restored: ")
    assert example.session(NAME).folds == number - 2
    page = visitor.session(tab="folds", fold=number - 1)
    page.get_by_role("button", name="Fold again").click()
    toast(page, f"Fold {number - 1} applies again")
    session.refold()
    undo(page)
    toast(page, f"fold {number - 1} cannot be taken back: fold {number} is the newest fold now")
    assert example.session(NAME).folds == number
    visitor.errors.clear()
