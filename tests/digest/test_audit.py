"""The loss report of a digest: shown facts, missing facts, unsourced claims."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline import Session
from foldline.digest.audit import audit
from foldline.digest.extract.facts import Facts, extract_facts
from foldline.digest.local import local_digest_text, with_certain_facts
from foldline.digest.markup import HEADINGS
from foldline.fold import Digest, Fold, Loss
from foldline.message import Message, user
from foldline.policy import Policy
from support.work import Work, works


def parser() -> Facts:
    work = Work()
    work.ask("Port the parser to Rust. Never touch wire_format.json!")
    work.call("Edit", "updated", file_path="/w/src/parser.rs", new_string="fn parse_header(raw: &[u8]) -> Header {")
    work.call("Bash", "error: cannot find value trailer\nexit code: 101", command="cargo test --all")
    return extract_facts(work.messages, 0)


def model(*lines: str) -> str:
    """A model's digest with every heading."""
    return "\n".join([*HEADINGS[:-1], *lines, HEADINGS[-1], "none"])


@given(works(), st.integers(60, 2_000))
@pytest.mark.promise("I19")
def test_kept_and_missing_facts_add_up_to_all_facts(messages: list[Message], cap: int) -> None:
    facts = extract_facts(messages, 0)
    text = local_digest_text(facts, max_tokens=cap, count_tokens=len, header="[h]")
    loss = audit(text, facts)
    assert 0 <= loss.kept <= loss.facts
    assert len(loss.missing) == min(20, loss.facts - loss.kept)
    assert not loss.unsourced, "the local digest claims nothing of its own"


@given(works(), st.integers(100, 3_000), st.floats(0, 1))
def test_what_is_added_to_a_models_digest_shows_more_within_the_token_limit(
    messages: list[Message], cap: int, floor: float
) -> None:
    facts = extract_facts(messages, 0)
    text = model("- something was done")
    before = audit(text, facts)
    longer, loss = with_certain_facts(text, facts, min_coverage=floor, max_tokens=cap, count_tokens=len)
    assert longer.startswith(text)
    assert longer == text or len(longer) <= cap
    assert loss.kept == before.kept + loss.carried
    assert loss.carried >= 0


def test_the_most_important_missing_fact_comes_first_with_its_handle() -> None:
    loss = audit(model("- The parser is being ported."), parser())
    assert loss.missing[0] == "Port the parser to Rust. Never touch wire_format.json! [#1]"
    assert any(said.startswith("cargo test --all") and said.endswith("[#4-5]") for said in loss.missing)
    assert loss.coverage < 0.5


def test_a_paraphrased_sentence_counts_as_shown() -> None:
    text = model("- The user wants to port the parser to Rust and said that wire_format.json must never be touched.")
    assert not any("Never touch" in said for said in audit(text, parser()).missing)


@pytest.mark.parametrize("text", [model("- ported"), "The parser was ported."])
def test_the_users_words_the_state_and_the_changed_files_are_added_to_any_models_digest(text: str) -> None:
    longer, loss = with_certain_facts(text, parser(), min_coverage=0.9, max_tokens=4_000, count_tokens=len)
    added = longer.removeprefix(text).split("\n")
    for line in (
        "# User's words",
        "User: Port the parser to Rust. Never touch wire_format.json! [#1]",
        "# Status",
        "- Failed: cargo test --all: error: cannot find value trailer [#4-5]",
        "# Files changed",
        "- /w/src/parser.rs: parse_header [#3]",
    ):
        assert line in added
    assert loss.coverage >= 0.9
    assert loss.carried > 0


@pytest.mark.parametrize(
    ("line", "claim"),
    [
        ("- changed src/invented_file.rs", "invented_file.rs"),
        ("- closed issue ZZ-9876", "ZZ-9876"),
        ("- see commit deadbee1", "deadbee1"),
        ('- the user asked: "please rewrite everything in Haskell"', "please rewrite everything in Haskell"),
    ],
)
def test_a_claim_without_a_source_is_reported(line: str, claim: str) -> None:
    assert audit(model(line), parser()).unsourced == (claim,)


@pytest.mark.parametrize(
    "line",
    ["- changed src/parser.rs [#2-3]", '- the user said "Never touch wire_format.json"', "- asked to port the parser"],
)
def test_text_of_the_transcript_is_not_reported_as_a_claim(line: str) -> None:
    assert audit(model(line), parser()).unsourced == ()


def test_facts_of_kept_messages_do_not_count_as_lost() -> None:
    assert audit("", parser(), kept_indexes=range(5)).facts == 0


def test_without_facts_the_coverage_is_complete() -> None:
    assert str(audit("", extract_facts([], 0))) == "0 of 0 facts are shown (100%)"


def test_a_printed_fold_names_the_missing_facts() -> None:
    loss = Loss(facts=12, kept=10, carried=3, missing=("Never log [#1]", "a.go [#4]"), unsourced=("b.go",))
    digest = Digest(message=user("…", kind="digest"), by="claude-haiku-4-5", loss=loss)
    fold = Fold(
        cut=40, pinned=(0,), before=38_000, after=12_000, reason="request above 85%", digest=digest, digest_tokens=900
    )
    assert str(fold).split("\n") == [
        "40 messages left the view, but 1 of them stay: ~38,000 → ~12,000 tokens. request above 85%",
        "replaced by a digest of 900 tokens, written by claude-haiku-4-5",
        "10 of 12 facts are shown (83%), 3 of them added below the model's text",
        "2 are only available by recall:",
        "  Never log [#1]",
        "  a.go [#4]",
        "claimed by the digest but not found in the folded messages:",
        "  b.go",
    ]


def test_every_fold_of_a_session_has_a_loss_report() -> None:
    session = Session(policy=Policy.preset("balanced").but(window_tokens=4_000, reply_tokens=0))
    for place in range(60):
        session.add(user(f"Look at part_{place}.py. {'It is long. ' * 60}"), {"role": "assistant", "content": "ok"})
        session.view()
    fold = session.state.timeline.fold
    assert fold is not None
    assert fold.digest is not None
    assert fold.digest.loss is not None
    assert f"{fold.digest.loss.facts:,} facts are shown" in str(fold)
