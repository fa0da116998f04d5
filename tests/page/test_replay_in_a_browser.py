"""The view Replay in a real browser: what policies would have done with a dropped transcript, and why."""

from __future__ import annotations

import json
import re
from pathlib import Path

from playwright.sync_api import expect

from foldline.session import Ledger
from support import sessions
from support.browsers import Visit
from support.command import ROOT

DEMO = ROOT / "src" / "foldline" / "cli" / "demo.json.gz"


def test_the_format_of_an_unknown_transcript_can_be_chosen(visitor: Visit, tmp_path: Path) -> None:
    file = tmp_path / "odd.json"
    file.write_text('{"turns": 3}')
    page = visitor.open("#/replay")
    page.locator("#file").set_input_files(file)
    expect(page.get_by_role("alert")).to_contain_text("odd.json")
    visitor.errors.clear()  # the browser logs the status 400
    file.write_text('[{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Yes."}]')
    page.get_by_label("Format").select_option("anthropic")
    page.locator("#file").set_input_files([])
    page.locator("#file").set_input_files(file)
    expect(page.get_by_text("anthropic, 2 messages")).to_be_visible()
    visitor.errors.clear()


def test_a_replay_explains_its_policies_and_is_shown_again_later(visitor: Visit, tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    file.write_text(sessions.claude_code())
    page = visitor.open("#/replay")
    page.get_by_label("Window").select_option("32000")
    page.locator("#file").set_input_files(file)
    expect(page.get_by_role("row", name=re.compile("verbatim never folds; a request"))).to_be_visible()
    expect(page.get_by_text(re.compile("Facts kept: the share of the facts"))).to_be_visible()
    page.locator(".chart .u-over").hover()
    expect(page.locator(".chart-note")).to_contain_text(re.compile("Request [0-9]+.*balanced: ~"))
    page.get_by_role("link", name="Money").click()
    page.get_by_role("link", name="Replay").click()
    expect(page.get_by_role("row", name=re.compile("balanced"))).to_be_visible()
    expect(page.get_by_label("Window")).to_have_value("32000")


def test_a_replay_names_its_limits_and_explains_the_margin(visitor: Visit) -> None:
    page = visitor.open("#/replay")
    page.get_by_label("Window").select_option("32000")
    page.locator("#file").set_input_files(DEMO)
    legend = page.get_by_role("list").filter(has_text="usable window")
    expect(legend).to_contain_text("usable window: 24k")
    expect(legend).to_contain_text("largest estimate that is sent: ~21k")
    expect(page.get_by_text("The usable window is the window of 32k minus 8k for the reply")).to_contain_text(
        "a request is sent only if its estimate plus 15% fits: up to ~21k. For the same reason, balanced folds at ~19k"
    )


def test_a_replay_says_why_requests_were_refused_and_what_would_help(visitor: Visit) -> None:
    page = visitor.open("#/replay")
    page.get_by_label("Window").select_option("32000")
    page.locator("#file").set_input_files(DEMO)
    reason = page.locator(".refused")
    expect(reason).to_contain_text("verbatim refused 34 of 56 requests. It does not fold, so all messages must fit")
    expect(reason).to_contain_text("~67k tokens (~77k with the margin of an estimate). The usable window is 24k")
    expect(page.get_by_text("What would help: use a policy that folds, such as balanced, or choose")).to_be_visible()
    assert visitor.findings() == []
    page.get_by_role("button", name="Replay with a window of 128k").click()
    expect(page.get_by_text("The usable window is the window of 128k minus")).to_be_visible()
    expect(page.get_by_label("Window")).to_have_value("128000")
    expect(page.get_by_text("refused 34")).to_have_count(0)


def test_a_replay_names_the_message_that_alone_is_too_large(visitor: Visit, tmp_path: Path) -> None:
    file = tmp_path / "long.json"
    log = "\n".join(f"worker {line} failed" for line in range(12_000))
    file.write_text(json.dumps([{"role": "user", "content": log}, {"role": "assistant", "content": "I see."}]))
    page = visitor.open("#/replay")
    page.get_by_label("Window").select_option("32000")
    page.locator("#file").set_input_files(file)
    reason = page.locator(".refused").filter(has_text="balanced and thrifty refused 1 of 1 request.")
    expect(reason).to_contain_text(re.compile("Message #1 alone is too large: ~[0-9]+k"))
    expect(page.get_by_text("No request fits, so there is nothing to draw.")).to_be_visible()


def test_a_replay_says_that_the_system_prompt_and_tools_alone_are_too_large(visitor: Visit, tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    reply = {"role": "assistant", "content": "Yes.", "usage": {"input_tokens": 41_000, "output_tokens": 5}}
    file.write_text(json.dumps([{"role": "user", "content": "Does it build?"}, reply]))
    page = visitor.open("#/replay")
    page.get_by_label("Window").select_option("32000")
    page.get_by_label("Format").select_option("anthropic")
    page.locator("#file").set_input_files(file)
    expect(page.locator(".refused").first).to_contain_text(
        "No fold can remove the system prompt and tools that are not in the file: ~41k, which alone is too large"
    )
    expect(page.get_by_text("What would help: use fewer or shorter tools").first).to_be_visible()


def test_a_binary_file_is_not_replayed(visitor: Visit, tmp_path: Path) -> None:
    file = tmp_path / "picture.png"
    file.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    page = visitor.open("#/replay")
    page.locator("#file").set_input_files(file)
    expect(page.get_by_role("alert")).to_have_text(re.compile("picture.png is not a text file"))


def test_a_transcript_is_replayed_from_a_file(visitor: Visit, tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    file.write_text(sessions.claude_code())
    page = visitor.open("#/replay")
    page.get_by_label("Window").select_option("32000")
    page.locator("#file").set_input_files(file)
    expect(page.get_by_role("row", name=re.compile("balanced"))).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("everything, always"))).to_be_visible()


def test_a_session_is_replayed_beside_what_was_really_sent(visitor: Visit, example: Ledger) -> None:
    page = visitor.session()
    page.locator(".session-head").get_by_role("link", name="Replay").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Replay")
    rows = page.get_by_role("region", name="Policies").get_by_role("row")
    recorded = rows.filter(has_text="as recorded")
    expect(recorded).to_contain_text("as the provider reported it; all other rows are estimates")
    expect(recorded).to_contain_text(re.compile(rf"estimates{example.session('fix-the-parser').folds}[0-9]+k\$0\.4"))
    expect(rows.filter(has_text="verbatim")).to_contain_text("refused")
    page.get_by_role("combobox", name="Window").select_option("64000")
    expect(rows.filter(has_text="balanced")).to_contain_text(re.compile("half of it30"))
    page.get_by_role("link", name="fix-the-parser").click()
    expect(page.get_by_role("tab", name="Window")).to_have_attribute("aria-selected", "true")
