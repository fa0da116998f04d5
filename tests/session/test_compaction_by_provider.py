"""Compaction by the provider in the middle of a session, judged by the strict simulated provider."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import foldline
from foldline import Session
from foldline.policy import Policy
from foldline.testing.provider import Account, ScriptedReply

CLAUDE, SONNET, GPT, MINI = "claude-opus-5-5", "claude-sonnet-5-5", "gpt-5.5", "gpt-5-mini"
BETAS = ("compact-2026-09-04",)
FORMATS = {"anthropic": CLAUDE, "openai-responses": GPT}
FORMAT = pytest.mark.parametrize("format", FORMATS)
SECRET = "The port of the staging server is 8417."
FILLER = "Some more words about it. " * 100
Body = dict[str, Any]


class Agent:
    """A client of the simulated provider that keeps its conversation in a session."""

    def __init__(self, session: Session, account: Account | None = None) -> None:
        self.session, self.account, self.turns = session, account or Account(), 0

    @property
    def is_claude(self) -> bool:
        return self.session.format == "anthropic"

    def body(self) -> Body:
        rendered = self.session.view().render()
        limit = {"max_tokens": 1_000} if self.is_claude else {}
        return {"model": self.session.model.name, **limit, **rendered.body}

    def send(self, body: Body, reply: ScriptedReply | None = None) -> Any:
        name, betas = self.session.format.replace("-", "_"), BETAS if self.is_claude else ()
        answer = self.account.answer(name, body, betas=betas, model=self.session.model.name, reply=reply)
        assert answer.error is None, (answer.error.rule, answer.error.message)
        return answer.body

    def turn(self, text: str = "") -> Body:
        """One turn with thinking; the request that was sent."""
        self.turns += 1
        words = text or f"Question {self.turns}."
        self.session.add({"role": "user", "content": words})
        body = self.body()
        thought = "hm" if self.session.format in FORMATS else ""
        self.session.add(self.send(body, ScriptedReply(thinking=thought, text=f"Answer {self.turns}. {FILLER}")))
        return body

    def compact(self, *meanwhile: Body) -> None:
        """Let the provider compact the conversation, and add its block behind the messages that came meanwhile."""
        body = self.body()
        self.session.add(*meanwhile)
        if self.is_claude:
            reply = self.send({**body, "compaction": {"type": "summarize"}}, ScriptedReply(text=SECRET))
        else:
            reply = self.send({**body, "input": [*body["input"], {"type": "compaction_trigger"}]})
        self.session.add(reply)


def agent(format: str, **options: Any) -> Agent:
    made = Agent(Session(model=FORMATS[format], format=format, **options))
    made.turn("Set up the staging server.")
    made.turn(f"Question 2. {SECRET}")
    return made


def elements(body: Body) -> list[Body]:
    found: list[Body] = body.get("messages") or body.get("input") or body.get("contents") or []
    return found


def first_type(body: Body) -> str:
    """The type of the first block or item."""
    first = elements(body)[0]
    content = first.get("content")
    return str(first["type"]) if "type" in first else str(content[0]["type"]) if isinstance(content, list) else "text"


@FORMAT
def test_a_block_replaces_everything_before_it(format: str) -> None:
    agent_ = agent(format)
    agent_.compact()
    body = agent_.turn("What now?")
    assert first_type(body) == "compaction"
    assert "Set up the staging server." in str(elements(body)[1])  # the policy keeps the first prompt
    assert "What now?" in str(elements(body)[-1])
    assert "Question 2" not in str(body)
    assert "Answer" not in str(body)
    assert "What now?" in str(agent_.turn())


@FORMAT
def test_what_a_block_replaces_stays_in_the_record(format: str) -> None:
    agent_ = agent(format)
    agent_.compact()
    assert "8417" in str(agent_.session.recall("staging server port"))
    assert agent_.session.folds == 1


@FORMAT
def test_the_prefix_grows_only_at_its_end_after_a_block(format: str) -> None:
    agent_ = agent(format, policy=Policy(breakpoints=0))
    agent_.compact()
    bodies = [elements(agent_.turn()) for _ in range(4)]
    for earlier, later in pairwise(bodies):
        assert later[: len(earlier)] == earlier


@FORMAT
def test_a_second_block_replaces_the_first(format: str) -> None:
    agent_ = agent(format)
    agent_.compact()
    agent_.turn()
    agent_.compact()
    body = agent_.turn()
    assert first_type(body) == "compaction"
    assert str(body).count("'compaction'") == 1
    agent_.session.unfold()
    assert str(agent_.turn()).count("'compaction'") == (1 if format == "anthropic" else 2)


@FORMAT
def test_a_local_fold_after_a_block_covers_it(format: str) -> None:
    agent_ = agent(format)
    agent_.compact()
    for _ in range(4):
        agent_.turn()
    assert agent_.session.fold(force=True, digest="All is well.") is not None
    body = agent_.turn()
    assert "'compaction'" not in str(body)
    assert "All is well." in str(body)
    agent_.session.unfold()
    assert first_type(agent_.turn()) == "compaction"


@FORMAT
def test_a_local_digest_after_a_block_still_tells_what_the_block_told(format: str) -> None:
    agent_ = agent(format)
    agent_.compact()
    for _ in range(4):
        agent_.turn()
    assert agent_.session.fold(force=True) is not None
    assert "8417" in str(agent_.turn())


def test_a_local_digest_keeps_facts_that_only_the_block_has() -> None:
    session = Session(model=CLAUDE, format="anthropic")
    block = {"type": "compaction", "content": "The server is at staging.example.net:8417.", "signature": "c2ln"}
    session.add({"role": "assistant", "content": [block]})
    for number in range(4):
        session.add({"role": "user", "content": f"Question {number}."}, {"role": "assistant", "content": FILLER})
    session.add({"role": "user", "content": "Go on."})
    assert session.fold(force=True) is not None
    assert "staging.example.net" in str(session.view().render().body)


@FORMAT
def test_unfold_shows_the_replaced_messages_again(format: str) -> None:
    agent_ = agent(format)
    agent_.compact()
    agent_.turn()
    agent_.session.unfold()
    body = agent_.turn()
    assert "Question 2" in str(body)
    assert first_type(body) != "compaction"
    assert "signature" not in str([block for block in elements(body) if "summary" in str(block)])


@FORMAT
@pytest.mark.parametrize(
    ("other", "model"),
    [
        ("anthropic", SONNET),
        ("openai-responses", "grok-4"),
        ("openai", "gpt-4.1"),
    ],
)
def test_another_model_gets_a_readable_digest_and_the_maker_its_block_again(
    format: str, other: str, model: str
) -> None:
    agent_ = agent(format)
    agent_.compact()
    agent_.turn()
    agent_.session.use(model=model, format=other)
    body = agent_.turn()
    assert "8417" in str(body)
    assert "'compaction'" not in str(body)
    agent_.session.use(model=FORMATS[format], format=format)
    body = agent_.turn()
    assert first_type(body) == "compaction"


@pytest.mark.parametrize("target", ["anthropic", "openai-responses", "openai", "gemini"])
@FORMAT
def test_a_view_rendered_in_another_format_has_the_digest(format: str, target: str) -> None:
    agent_ = agent(format)
    agent_.compact()
    agent_.turn("And now?")
    body = agent_.session.view().render(target).body
    assert ("'compaction'" in str(body)) == (target == format)
    assert "8417" in str(body) or target == format


@FORMAT
@pytest.mark.parametrize(("other", "model"), [("anthropic", SONNET), ("openai-responses", "grok-4")])
def test_a_block_in_an_unfolded_history_is_not_sent_to_another_model(format: str, other: str, model: str) -> None:
    agent_ = agent(format)
    agent_.compact()
    agent_.turn()
    agent_.session.unfold()
    agent_.session.use(model=model, format=other)
    body = agent_.turn()
    assert "'compaction'" not in str(body)
    assert "Question 2" in str(body)
    agent_.session.use(model=FORMATS[format], format=format)
    agent_.turn()


def test_openai_reads_its_item_with_another_model_of_the_vendor() -> None:
    agent_ = agent("openai-responses")
    agent_.compact()
    agent_.session.use(model=MINI)
    assert first_type(agent_.turn()) == "compaction"


def test_openai_compacts_inside_a_reply() -> None:
    agent_ = agent("openai-responses")
    agent_.session.add({"role": "user", "content": "Look at the log." + " It is long." * 400})
    body = {**agent_.body(), "context_management": [{"type": "compaction", "compact_threshold": 1_000}]}
    reply = agent_.send(body, ScriptedReply(thinking="hm", text="It is fine."))
    assert reply["output"][0]["type"] == "compaction"
    agent_.session.add(reply)
    body = agent_.turn("Thanks.")
    assert first_type(body) == "compaction"
    assert "Look at the log." in str(body)
    assert "It is fine." in str(body)
    assert "Question 2" not in str(body)


def test_the_compact_endpoint_of_openai_gives_a_session_its_item() -> None:
    agent_ = agent("openai-responses")
    reply = agent_.account.answer("openai_responses", agent_.body(), endpoint="compact")
    agent_.session.add(*reply.body["output"])
    assert first_type(agent_.turn()) == "compaction"


@FORMAT
def test_a_prompt_without_an_answer_is_kept_behind_the_block(format: str) -> None:
    agent_ = agent(format)
    agent_.session.add({"role": "user", "content": "Do not forget this."})
    agent_.compact()
    body = agent_.body()
    assert first_type(body) == "compaction"
    assert "Do not forget this." in str(elements(body)[-1])
    agent_.send(body)


@FORMAT
def test_messages_that_came_while_the_provider_compacted_stay_behind_the_block(format: str) -> None:
    agent_ = agent(format)
    agent_.compact({"role": "user", "content": "One more thing."}, {"role": "user", "content": "And another."})
    body = agent_.turn("Go on.")
    assert first_type(body) == "compaction"
    assert "One more thing." in str(body)
    assert str(body).index("One more thing.") < str(body).index("And another.") < str(body).index("Go on.")
    assert "Question 2" not in str(body)
    view = agent_.session.view()
    assert sum(view.blocks.values()) == view.tokens


@FORMAT
def test_pins_stand_behind_the_block(format: str) -> None:
    agent_ = agent(format)
    agent_.session.pin("Never push to main.")
    agent_.turn()
    agent_.compact()
    body = agent_.turn()
    assert first_type(body) == "compaction"
    assert "Never push to main." in str(body)


@FORMAT
@pytest.mark.parametrize("leave", ["digest", "marker", "nothing"])
def test_every_policy_takes_a_block(format: str, leave: Any) -> None:
    agent_ = agent(format, policy=Policy(leave=leave))
    agent_.compact()
    assert first_type(agent_.turn()) == "compaction"
    agent_.session.use(model=SONNET, format="anthropic")
    assert "#1-" in str(agent_.body()) or "8417" in str(agent_.body())
    agent_.turn()


def test_a_failed_compaction_replaces_nothing() -> None:
    session = Session(model=CLAUDE, format="anthropic")
    session.add({"role": "user", "content": "go"})
    session.add({"role": "assistant", "content": [{"type": "compaction", "content": None}]})
    assert session.folds == 0
    assert "go" in str(session.view().render().body)


def test_a_block_of_the_earlier_beta_with_an_answer_in_its_message() -> None:
    agent_ = agent("anthropic")
    block = {"type": "compaction", "content": SECRET}
    agent_.session.add({"role": "user", "content": "Look at the log."})
    agent_.session.add({"role": "assistant", "content": [block, {"type": "text", "text": "It is fine."}]})
    agent_.session.add({"role": "user", "content": "Thanks."})
    body = agent_.body()
    reply = agent_.account.answer("anthropic", body, betas=["compact-2026-01-12"])
    assert reply.error is None, reply.error
    assert str(body).count("'compaction'") == 1
    assert "It is fine." in str(body)
    assert "Question 2" not in str(body)
    agent_.session.use(model="gpt-4.1", format="openai")
    assert "8417" in str(agent_.body())
    assert "It is fine." in str(agent_.body())


def test_a_block_that_calls_a_tool_keeps_the_call_and_its_result() -> None:
    agent_ = agent("anthropic")
    block = {"type": "compaction", "content": SECRET}
    call = {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {}}
    agent_.session.add({"role": "user", "content": "Look at the log."})
    agent_.session.add({"role": "assistant", "content": [block, call]})
    agent_.session.add(
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}]}
    )
    body = {**agent_.body(), "tools": [{"name": "bash", "description": "Run.", "input_schema": {"type": "object"}}]}
    reply = agent_.account.answer("anthropic", body, betas=["compact-2026-01-12"])
    assert reply.error is None, reply.error
    assert "toolu_1" in str(body)


@FORMAT
def test_another_process_sends_the_same_bytes(format: str, tmp_path: Path) -> None:
    address = str(tmp_path / "ledger.db")
    with foldline.open(address) as ledger:
        first = Agent(ledger.session("talk", model=FORMATS[format], format=format))
        first.turn("Set up the staging server.")
        first.turn(f"Question 2. {SECRET}")
        first.compact()
        first.turn()
        body = first.body()
    with foldline.open(address) as ledger:
        again = Agent(ledger.session("talk"), first.account)
        assert again.body() == body
        assert first_type(again.turn()) == "compaction"
        again.session.use(model="gpt-4.1", format="openai")
        assert "8417" in str(again.turn())
    with foldline.open(address) as ledger:
        again = Agent(ledger.session("talk"), first.account)
        assert "8417" in str(again.turn())
        again.session.use(model=FORMATS[format], format=format)
        assert first_type(again.turn()) == "compaction"
        again.session.unfold()
        assert "Question 2" in str(again.turn())


@FORMAT
def test_the_measured_size_is_that_of_the_shown_digest(format: str) -> None:
    agent_ = agent(format)
    agent_.compact()
    agent_.turn()
    view = agent_.session.view()
    assert sum(view.blocks.values()) == view.tokens
    agent_.session.use(model="gemini-2.5-pro", format="gemini")
    other = agent_.session.view()
    assert sum(other.blocks.values()) == other.tokens
    assert other.blocks["digest"] > 0
