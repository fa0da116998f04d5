"""The loss report of a digest: shown facts, missing facts, unsourced claims."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline import Session
from foldline.digest.audit import audit
from foldline.digest.extract.extraction import extract_facts
from foldline.digest.extract.facts import Facts
from foldline.digest.local import local_digest_text, with_certain_facts
from foldline.digest.markup import HEADINGS
from foldline.digest.shortening import shorten_request
from foldline.fold import Digest, Fold, Loss
from foldline.message import Message, assistant, user
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
        "39 messages left the view (1 before the cut stays): ~38,000 → ~12,000 tokens. request above 85%",
        "replaced by a digest of 900 tokens, written by claude-haiku-4-5",
        "10 of 12 facts are shown (83%), 3 of them added below the model's text",
        "facts are a sample: of names, paths and numbers, at most 150 are counted",
        "2 are only available by recall:",
        "  Never log [#1]",
        "  a.go [#4]",
        "claimed by the digest but not found in the folded messages:",
        "  b.go",
    ]


def test_a_loss_report_says_that_it_counts_and_lists_a_sample() -> None:
    loss = audit("", extract_facts([user(" ".join(f"part_{number}.py" for number in range(400)))], 0))
    assert (loss.facts, loss.kept, len(loss.missing)) == (1, 0, 1), "the names of a prompt count with the prompt"
    work = [user("Look."), assistant("\n".join(f"see part_{number}.py" for number in range(400)))]
    printed = str(audit("", extract_facts(work, 0))).split("\n")
    assert printed[:3] == [
        "0 of 151 facts are shown (0%)",
        "facts are a sample: of names, paths and numbers, at most 150 are counted",
        "151 are only available by recall, the 20 most important:",
    ]
    assert len(printed) == 3 + 20


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


FILLER = "then look at the other parts of the plan while people keep every small thing simple "


def asked_for_ports(count: int, filler: str = FILLER) -> Fold:
    """The fold of a session in which each prompt sets one port."""
    session = Session(policy=Policy.preset("balanced").but(window_tokens=12_000))
    for place in range(count):
        session.add(user(f"Please set the port of service {place} to {port(place)} on host db{place}. {filler}"))
        session.add({"role": "assistant", "content": "Done."})
    fold = session.fold()
    assert fold is not None
    return fold


def port(place: int) -> int:
    return 7_000 + 13 * place


@pytest.mark.parametrize(("count", "filler"), [(30, FILLER * 12), (263, FILLER * 2), (500, FILLER)])
def test_every_prompt_without_its_number_in_the_digest_is_counted_as_missing(count: int, filler: str) -> None:
    fold = asked_for_ports(count, filler)
    assert fold.digest is not None
    assert fold.digest.loss is not None
    left = [index // 2 for part in fold.left for index in part if index % 2 == 0]
    text, loss = fold.digest.message.text, fold.digest.loss
    assert (loss.facts, loss.kept) == (len(left), sum(f" {port(place)} " in text for place in left))
    assert f" {port(left[-1])} " in text, "the newest prompt is never left out"


def test_a_missing_prompt_is_reported_with_its_number_and_its_handle() -> None:
    digest = asked_for_ports(263).digest
    assert digest is not None
    assert digest.loss is not None
    newest = next(place for place in range(262, 0, -1) if f"[#{2 * place + 1}]" in digest.loss.missing[0])
    assert digest.loss.missing[0].startswith(f"Please set the port of service {newest} to {port(newest)} on host db")
    assert len(digest.loss.missing) == len(set(digest.loss.missing)) == 20


def test_prompts_that_are_too_old_to_be_kept_are_counted_and_named_by_one_handle() -> None:
    messages = [user(f"Please check the door number {place}.") for place in range(420)]
    loss = audit("", extract_facts(messages, 0))
    assert (loss.facts, loss.kept) == (420, 0)
    assert loss.missing[0] == "120 old prompts [#2-121]"


def test_a_repeated_prompt_is_one_fact() -> None:
    facts = extract_facts([user("Please go on."), user("Now test it."), user("Please go on.")], 0)
    assert audit("", facts).missing == ("Please go on. [#3]", "Now test it. [#2]")
    assert audit("# Turns\nUser: Please go on. [#1]", facts).missing == ("Now test it. [#2]",)


def test_words_of_other_prompts_do_not_show_a_prompt() -> None:
    facts = extract_facts([user("Please test the parser."), user("Test the lexer, please."), user("Lexer parser")], 0)
    text = "[h]\n# Turns\nUser: Please test the parser. [#1]\nUser: Lexer parser [#3]"
    assert audit(text, facts).missing == ("Test the lexer, please. [#2]",)


def test_a_name_inside_a_longer_word_does_not_show_a_prompt() -> None:
    facts = extract_facts([user("Set the port to 701.")], 0)
    assert audit("The user wants to set the port to 7013.", facts).kept == 0
    assert audit("The user wants to set the port to 701.", facts).kept == 1


def test_a_missing_identifier_is_reported_with_its_handle() -> None:
    work = Work()
    work.ask("List the commits.")
    record = '{"id":7,"url":"https://example.org/repositories/demo","commit_id":"0bc3f2a91d","state":"open"}'
    work.call("Bash", f"[{record},{record}]", command="gh api commits")
    missing = audit("", extract_facts(work.messages, 0)).missing
    assert "0bc3f2a91d [#3]" in missing
    assert len(missing) == len(set(missing))


def test_a_shortened_prompt_keeps_its_numbers_and_names() -> None:
    text = f"Please {FILLER * 3}and set the timeout of db7 in src/app.py to 450 ms, {FILLER * 3}."
    short = shorten_request(text, 120)
    assert len(short) <= 120
    assert all(name in short for name in ("db7", "src/app.py", "450"))
    assert short.startswith("Please then look")
