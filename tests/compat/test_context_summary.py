"""The summarizer of a context window policy: cumulative summaries, savings, and the wait after a failure."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

import foldline
from foldline.compat.context_policy import AgentSpec, CompactionConfig, ContextWindowPolicy, is_summary
from foldline.compat.context_summary import CompactionState, acompact, compact, session_policy, summarizer_model
from foldline.digest.digester import Digester
from foldline.errors import ConfigError
from foldline.message import Message, Meta, Text, ToolCall, ToolResult, assistant, system, user
from foldline.policy import Policy
from foldline.session import Session
from foldline.testing import FAULTS, INJECTED, LEAKED, Scripted, faulty
from support.chats import wire

POLICY = ContextWindowPolicy(autocompact_threshold=4_000)
SAID = "They built the house and painted its door, and the next thing they will do is the garden behind the house."
COOL = Policy.preset("awaken").cooldown_messages


def talk(turns: int, start: int = 0) -> list[Message]:
    said: list[Message] = [system("Be brief.")] if not start else []
    for turn in range(start, start + turns):
        said += [user(f"Build room {turn}. " + "wall " * 300), assistant(f"Room {turn} is built. " + "brick " * 300)]
    return said


def scripted(text: str = SAID) -> tuple[Scripted, Digester]:
    function = Scripted(text)
    return function, Digester(complete=function, model="claude-haiku-4-5")


def test_a_function_can_be_the_digester() -> None:
    messages = wire(talk(9))
    made, state = compact(messages, POLICY, digester=lambda call: SAID)
    assert SAID in made[1]["content"]
    assert [event.summary for event in state.events] == [SAID]
    assert asyncio.run(acompact(messages, POLICY, digester=lambda call: SAID))[0] == made
    with pytest.raises(ConfigError, match="not a digester: int"):
        compact(messages, POLICY, digester=7)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize("name", ["nonsense", "summarizer"])
def test_an_unknown_argument_is_refused_with_the_known_ones(name: str) -> None:
    options: dict[str, Any] = {name: 1}
    for call in (compact, lambda *given, **named: asyncio.run(acompact(*given, **named))):
        with pytest.raises(ConfigError, match=f"unknown argument '{name}': use one of digester, state, clock"):
            call(wire(talk(9)), POLICY, **options)


@pytest.mark.promise("S3.25", "S3.26", "S3.32", "S3.39", "S3.41")
def test_a_later_summary_includes_the_previous_one() -> None:
    function, digester = scripted()
    messages, state = compact(talk(9), POLICY, digester=digester, clock=lambda: 7.0)
    config = CompactionConfig()
    assert function.asks[0].system == config.summarizer_system_prompt
    assert function.asks[0].text.startswith(config.summarizer_user_prompt.partition("{")[0])
    assert "<existing-summary>\n\n</existing-summary>" in function.asks[0].text
    summary = next(message for message in messages if is_summary(message))
    assert summary.text == f"<conversation-summary>\n{SAID}\n</conversation-summary>"
    assert (summary.role, summary.meta.hidden) == ("system", True)
    [event] = state.events
    assert (event.summary, event.at) == (SAID, 7.0)
    assert event.post_tokens < 0.5 * event.pre_tokens
    again, state = compact([*messages, *talk(9, start=9)], POLICY, digester=digester, state=state)
    assert f"<existing-summary>\n{SAID}\n</existing-summary>" in function.asks[1].text
    assert "Build room 12." in function.asks[1].text
    assert "conversation-summary" not in function.asks[1].text
    assert sum(map(is_summary, again)) == 1
    assert len(state.events) == 2


@pytest.mark.promise("S3.33")
def test_hidden_messages_are_not_shown_to_the_model() -> None:
    function, digester = scripted()
    messages = talk(9)
    messages.insert(3, replace(user("the host's own INTERNAL note"), meta=Meta(hidden=True)))
    compact(messages, POLICY, digester=digester)
    assert "INTERNAL" not in function.asks[0].text
    assert "kept from the model" not in function.asks[0].text


@pytest.mark.promise("S3.27", "S3.28")
def test_length_and_model_of_the_summary_follow_the_settings() -> None:
    function, digester = scripted()
    compact(talk(9), POLICY, CompactionConfig(summary_max_tokens=77), digester=digester)
    assert function.asks[0].max_tokens == 77
    compact(talk(9), POLICY, CompactionConfig(summary_model="claude-haiku-4-5"), digester=digester)
    assert function.asks[-1].model == "claude-haiku-4-5"
    assert summarizer_model(CompactionConfig(), "claude-sonnet-5") == "claude-sonnet-5"
    other = CompactionConfig(summary_model="anthropic/claude-haiku-4-5")
    assert summarizer_model(other, "claude-sonnet-5") == "claude-haiku-4-5"
    assert summarizer_model(CompactionConfig(summary_model="our-own-tune"), "claude-sonnet-5") == "our-own-tune"
    with pytest.raises(ConfigError, match="is made by"):
        summarizer_model(CompactionConfig(summary_model="gpt-5-mini"), "claude-sonnet-5")


@pytest.mark.promise("S3.24", "S3.37")
def test_without_a_digester_or_when_it_is_off_nothing_happens() -> None:
    function, digester = scripted()
    messages = talk(9)
    assert compact(messages, POLICY)[0] is messages
    assert compact(messages, POLICY, CompactionConfig(mode="off"), digester=digester)[0] is messages  # type: ignore[arg-type]  # as in a file
    assert compact(messages, ContextWindowPolicy(), digester=digester)[0] is messages
    assert not function.asks


@pytest.mark.promise("S3.31", "F15")
def test_a_summary_that_saves_too_little_is_not_used_and_not_retried_at_once() -> None:
    function, digester = scripted(SAID + "\nand then another wall" * 700)
    config = CompactionConfig(summary_max_tokens=20_000, min_savings_ratio=0.0)
    messages = talk(9)
    loose = ContextWindowPolicy(autocompact_threshold=4_000)
    same, state = compact(messages, loose, replace(config, summary_max_tokens=3_000), digester=digester)
    assert same is messages
    assert "larger than its cap" in state.refused
    later = [*messages, *talk(1, start=9)]
    assert compact(later, loose, config, digester=digester, state=state)[0] is later
    assert len(function.asks) == 1, "it cools down"
    grown = [*messages, *talk(COOL // 2, start=9)]
    compact(grown, loose, replace(config, summary_max_tokens=3_000), digester=digester, state=state)
    assert len(function.asks) == 2


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault not in {"hang", "late"}])
def test_the_list_stays_valid_whatever_a_digester_does(fault: str) -> None:
    messages = wire(talk(9))
    made, state = compact(messages, POLICY, digester=faulty(fault))
    assert (made is messages) == bool(state.refused)
    for gone in (LEAKED, INJECTED):
        assert gone not in str(made)


def test_compact_and_acompact_give_the_same_result() -> None:
    def run(how: Any) -> Any:
        made = how(talk(9), POLICY, digester=scripted()[1], state=CompactionState(), clock=lambda: 1.0)
        return asyncio.run(made) if asyncio.iscoroutine(made) else made

    assert run(compact) == run(acompact)


@pytest.mark.promise("S3.36", "S3.24", "S3.35")
def test_a_session_made_from_settings_compacts_behind_the_next_reply() -> None:
    function, digester = scripted()
    spec = AgentSpec(context_policy=POLICY, sections={"compaction": {"mode": "background"}})
    with foldline.open(":memory:", digester=digester) as ledger:
        session = ledger.session("run-7", model="claude-sonnet-4-5", policy=session_policy(spec, "claude-sonnet-4-5"))
        session.add(*talk(9), user("And now?"))
        assert not any(map(is_summary, session.view().messages)), "the view does not wait for a summary"
        assert ledger.wait(30)
        messages = session.view().messages
        [summary] = filter(is_summary, messages)
        assert SAID in summary.text
        assert messages[-1].text == "And now?"
        assert len(function.asks) == 1


@pytest.mark.promise("S3.36", "S3.37")
@pytest.mark.parametrize(
    "spec",
    [AgentSpec(), AgentSpec(context_policy=POLICY, sections={"compaction": {"mode": "off"}})],
    ids=["no threshold", "off"],
)
def test_settings_without_compaction_give_a_policy_without_it(spec: AgentSpec) -> None:
    policy = session_policy(spec, "claude-sonnet-4-5")
    assert (policy.leave, policy.digest_model) == ("marker", "")


DOCUMENTED = {
    "execution_mode": "background",
    "summarizer_system_prompt": "You are a conversation summarizer. Be concise but complete.",
    "summarizer_user_prompt": "Update the cumulative conversation summary.\n\n"
    "<existing-summary>\n{previous_summary}\n</existing-summary>\n\n"
    "<new-conversation>\n{messages}\n</new-conversation>",
    "summary_max_tokens": 1024,
    "summary_model": "claude-3-haiku",
    "min_savings_ratio": 0.3,
    "raw_retention": "preserve_durable",
}


@pytest.mark.promise("S3.23", "S3.25", "S3.26", "S3.36")
def test_a_background_session_uses_every_documented_setting() -> None:
    function, digester = scripted()
    spec = AgentSpec(context_policy=POLICY, sections={"compaction": DOCUMENTED})
    with foldline.open(":memory:", digester=digester) as ledger:
        policy = session_policy(spec, "claude-sonnet-4-5")
        session = ledger.session("run-7", model="claude-sonnet-4-5", policy=policy)
        session.add(*talk(9), user("And now?"))
        session.view()
        assert ledger.wait(30)
        assert sum(map(is_summary, session.view().messages)) == 1
    [ask] = function.asks
    assert ask.system == DOCUMENTED["summarizer_system_prompt"]
    assert ask.text.startswith(
        "Update the cumulative conversation summary.\n\n<existing-summary>\n\n</existing-summary>"
    )
    assert ask.max_tokens == 1024
    assert ask.model == "claude-3-haiku"


@pytest.mark.promise("S3.28")
def test_a_summary_model_is_accepted_if_the_agents_model_is_unknown() -> None:
    for model in ("", "our-own-tune"):
        assert summarizer_model(CompactionConfig(summary_model="claude-3-haiku"), model) == "claude-3-haiku"


@pytest.mark.promise("F18")
def test_a_large_result_in_a_session_names_the_handle_of_its_whole_text() -> None:
    session = Session(policy=session_policy(AgentSpec()))
    call = ToolCall(id="a", name="run", arguments="{}")
    result = ToolResult(call_id="a", parts=(Text(text="line\n" * 3_000),))
    session.add(user("go"), Message(role="assistant", parts=(call,)), Message(role="tool", parts=(result,)))
    assert "the whole is #3]" in str(session.view().messages)
