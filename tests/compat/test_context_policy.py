"""Context window policy: settings, truncation, previews and compaction plans."""

from __future__ import annotations

import copy
from dataclasses import FrozenInstanceError, dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.compat.context_policy import (
    MIN_COMPACTION_GAIN_TOKENS,
    AgentSpec,
    ArtifactCompaction,
    CompactionConfig,
    CompactionConfigKey,
    CompactionExecutionMode,
    CompactionPlan,
    CompactionRawRetention,
    ContextCompactionMode,
    ContextWindowPolicy,
    apply_summary,
    breakpoints,
    plan_compaction,
    transform,
    trim_to_compaction_boundary,
)
from foldline.errors import ConfigError, ViewTooLarge
from foldline.measure.estimator import CHARS_4
from foldline.measure.message_size import TEXT_ONLY, message_tokens, tools_tokens
from foldline.message import Message, ToolCall, assistant, system, tool, user
from foldline.wire.formats import format_of
from foldline.wire.validate import check
from support.chats import chats, wire

BIG = "\n".join(f"line {n}" for n in range(5000))
TOOLS = [{"name": "run", "description": "runs " * 100, "input_schema": {"type": "object"}}]
SUFFIX, FRONTIER = ContextCompactionMode.KeepRecentRawSuffix, ContextCompactionMode.CompactToSafeFrontier


def tokens(messages: list[Any]) -> int:
    return sum(message_tokens(message, CHARS_4, TEXT_ONLY) for message in messages)


def call(name: str, text: str = "") -> Message:
    return assistant(text, ToolCall(id=name, name="run", arguments='{"x": 1}'))


def talk(turns: int, size: int = 400) -> list[Message]:
    """A system prompt and turns of one tool round each: four messages of `size` characters a turn."""
    messages = [system("You are an agent.")]
    for n in range(turns):
        messages += [
            user(f"q{n} ".ljust(size, "?")),
            call(f"call_{n}", f"c{n} ".ljust(size, "-")),
            tool(f"call_{n}", f"r{n} ".ljust(size, "=")),
            assistant(f"a{n} ".ljust(size, ".")),
        ]
    return messages


def long_turn(steps: int, size: int = 400) -> list[Message]:
    """One user message and hundreds of tool rounds."""
    rounds = (message for n in range(steps) for message in (call(f"call_{n}"), tool(f"call_{n}", "r" * size)))
    return [system("You are an agent."), user("Fix the whole build."), *rounds]


def window(tokens: int, **more: Any) -> ContextWindowPolicy:
    return ContextWindowPolicy(max_context_tokens=tokens + 1000, max_output_tokens=1000, **more)


class TestSettings:
    @pytest.mark.promise("S3.1", "S3.2", "S3.3", "S3.4", "S3.5", "S3.6", "S3.7", "S3.8")
    def test_every_agent_has_a_policy(self) -> None:
        policy = AgentSpec().context_policy
        assert policy == ContextWindowPolicy(
            max_context_tokens=200_000,
            max_output_tokens=16_384,
            min_recent_messages=10,
            enable_prompt_cache=True,
            autocompact_threshold=None,
            compaction_mode=ContextCompactionMode.KeepRecentRawSuffix,
            compaction_raw_suffix_messages=2,
        )
        with pytest.raises(FrozenInstanceError):
            policy.min_recent_messages = 1  # type: ignore[misc]  # that it cannot be set is the point

    @pytest.mark.promise("S3.5")
    def test_prompt_caching_can_be_switched_off(self) -> None:
        assert breakpoints(ContextWindowPolicy()) == 4
        assert breakpoints(ContextWindowPolicy(enable_prompt_cache=False)) == 0

    @pytest.mark.parametrize(
        ("settings", "says"),
        [
            ({"max_context_tokens": 0}, "max_context_tokens"),
            ({"max_context_tokens": 100, "max_output_tokens": 100}, "is not below"),
            ({"min_recent_messages": -1}, "min_recent_messages"),
            ({"autocompact_threshold": 0}, "autocompact_threshold"),
            ({"compaction_raw_suffix_messages": 1.5}, "compaction_raw_suffix_messages"),
            ({"compaction_mode": "forget"}, "keep_recent_raw_suffix, compact_to_safe_frontier"),
        ],
    )
    def test_impossible_settings_are_refused(self, settings: dict[str, Any], says: str) -> None:
        with pytest.raises(ConfigError, match=says):
            ContextWindowPolicy(**settings)
        assert ContextWindowPolicy(compaction_mode="compact_to_safe_frontier").compaction_mode is FRONTIER  # type: ignore[arg-type]  # as a file says it

    @pytest.mark.promise("S3.16")
    def test_previews_are_tuned_in_a_section(self) -> None:
        assert AgentSpec().artifact_compaction == ArtifactCompaction(
            threshold_tokens=2048, preview_max_chars=1600, preview_max_lines=24
        )
        tuned = {"context_transform": {"artifact_compaction": {"threshold_tokens": 7, "preview_max_lines": 3}}}
        assert AgentSpec(sections=tuned).artifact_compaction == ArtifactCompaction(
            threshold_tokens=7, preview_max_lines=3
        )

    @pytest.mark.promise("S3.16")
    @pytest.mark.parametrize("name", ["threshold_tokens", "preview_max_chars", "preview_max_lines"])
    @pytest.mark.parametrize("value", [0, -5, 2.5, True, "9"])
    def test_each_preview_setting_is_at_least_one(self, name: str, value: Any) -> None:
        with pytest.raises(ConfigError, match=f"{name} must be a whole number of at least 1"):
            AgentSpec(sections={"context_transform": {"artifact_compaction": {name: value}}})

    @pytest.mark.promise("S3.23", "S3.24", "S3.25", "S3.26", "S3.27", "S3.28", "S3.29", "S3.30")
    def test_summaries_are_configured_in_a_section(self) -> None:
        found = AgentSpec().compaction
        assert found == CompactionConfig()
        assert found.mode is CompactionExecutionMode.Background
        assert found.summarizer_system_prompt
        assert {"{messages}", "{previous_summary}"} <= set(found.summarizer_user_prompt.split())
        assert (found.summary_max_tokens, found.summary_model) == (None, None)
        assert found.min_savings_ratio == 0.3
        assert found.raw_retention is CompactionRawRetention.PreserveDurable
        section = {"execution_mode": "off", "summary_max_tokens": 1024, "summary_model": "claude-3-haiku"}
        tuned = AgentSpec(sections={"compaction": section}).compaction
        assert tuned == CompactionConfig(
            mode=CompactionExecutionMode.Off, summary_max_tokens=1024, summary_model="claude-3-haiku"
        )

    @pytest.mark.parametrize(
        ("section", "says"),
        [
            ({"mode": "sometimes"}, "background, off"),
            ({"min_savings_ratio": 1.5}, "between 0 and 1"),
            ({"summary_max_tokens": 0}, "summary_max_tokens"),
            ({"summarizer_user_prompt": "sum up"}, "{messages}"),
            ({"raw_retention": "drop"}, "preserve_durable"),
            ({"sumary_model": "x"}, "summary_model"),
            ("off", "must be a mapping"),
        ],
    )
    def test_a_wrong_section_is_refused(self, section: Any, says: str) -> None:
        with pytest.raises(ConfigError, match=says):
            AgentSpec(sections={"compaction": section})


class TestTruncation:
    @pytest.mark.promise("S3.9")
    def test_the_oldest_leave_when_the_budget_is_exceeded(self) -> None:
        messages = talk(20)
        policy = window(3000, min_recent_messages=2)
        made = transform(messages, policy)
        assert tokens(made) <= 3000
        assert made[2:] == messages[len(messages) - len(made) + 2 :], "system, one line, and the newest messages"
        assert "not shown here" in made[1].text
        assert len(transform(messages, policy, tools=TOOLS)) < len(made), "tool schemas take their share"

    @pytest.mark.promise("S3.9", "F16")
    def test_a_request_of_exactly_the_budget_fits(self) -> None:
        messages = talk(5)
        schemas = tools_tokens(TOOLS, CHARS_4, TEXT_ONLY)
        exact = window(tokens(messages) + schemas)
        assert transform(messages, exact, tools=TOOLS) is messages
        smaller = replace(exact, max_context_tokens=exact.max_context_tokens - 1, min_recent_messages=2)
        assert transform(messages, smaller, tools=TOOLS) is not messages

    @pytest.mark.promise("S3.9", "F16")
    def test_call_arguments_count(self) -> None:
        """What is sent counts, not only what is said."""
        huge = assistant("", ToolCall(id="a", name="write", arguments='{"text": "' + "x" * 40_000 + '"}'))
        messages = [
            user("old"),
            huge,
            tool("a", "ok"),
            assistant("written"),
            user("go on"),
            assistant("yes"),
            user("so?"),
        ]
        made = transform(messages, window(5000, min_recent_messages=2))
        assert huge not in made
        assert made[-1] is messages[-1]

    @pytest.mark.promise("S3.10")
    def test_leading_system_messages_stay(self) -> None:
        lead = [system("one " * 100), system("two " * 100)]
        made = transform([*lead, *talk(30)[1:]], window(1500, min_recent_messages=2))
        assert made[0] is lead[0]
        assert made[1] is lead[1]

    @pytest.mark.promise("S3.4", "S3.11", "F16")
    def test_the_newest_messages_stay_and_what_cannot_be_sent_is_refused(self) -> None:
        messages = talk(20)
        assert transform(messages, window(1200))[-10:] == messages[-10:]
        with pytest.raises(ViewTooLarge, match=r"> 700 \(.*history.*raise max_context_tokens") as caught:
            transform(messages, window(700))
        assert caught.value.bill["history"] > 700

    @pytest.mark.promise("S3.12", "S3.13", "I6")
    @given(chats(), st.integers(50, 2000), st.integers(0, 4), st.sampled_from(["openai", "anthropic"]))
    def test_the_result_fits_and_is_valid_or_an_error_says_why(
        self, talk: list[Message], room: int, floor: int, provider: str
    ) -> None:
        messages = wire(talk, provider)
        copies = copy.deepcopy(messages)
        policy = window(room, min_recent_messages=floor)
        read = format_of(provider).parse
        whole = tokens([read(message, None) for message in messages])
        try:
            made = transform(messages, policy)
        except ViewTooLarge:
            assert whole > room
            return
        assert messages == copies, "nothing given is changed"
        assert not check(provider, made)
        assert tokens([read(message, None) for message in made]) <= room
        assert (made is messages) == (whole <= room)
        assert transform(made, policy) is made
        asked = [message for message in messages if read(message, None).is_prompt]
        assert any(message is asked[-1] for message in made), "what the user asked last"
        kept = [message for message in made if any(message is one for one in messages)]
        assert kept == [message for message in messages if any(message is one for one in kept)], "in their order"

    @pytest.mark.promise("S3.13")
    def test_a_dangling_call_is_closed(self) -> None:
        """A call whose result never came would be refused by every provider, for ever."""
        broken = [*talk(20), user("go"), call("dead"), user("stop, do this instead")]
        made = transform(wire(broken), window(1500, min_recent_messages=3))
        assert not check("openai", made)
        answers = [message for message in made if message.get("tool_call_id") == "dead"]
        assert ["no result" in message["content"] for message in answers] == [True]

    @pytest.mark.promise("S3.12")
    def test_parallel_results_leave_with_their_call(self) -> None:
        calls = tuple(ToolCall(id=f"p{n}", name="run") for n in range(5))
        group = [assistant("", *calls), *(tool(each.id, "r" * 400) for each in calls)]
        for floor in range(12):
            made = transform([*talk(8), *group, user("next")], window(1600, min_recent_messages=floor))
            assert not check("openai", wire(made))

    def test_one_long_turn_keeps_what_was_asked(self) -> None:
        messages = long_turn(200)
        made = transform(messages, window(3000))
        assert messages[1] in made
        assert tokens(made) <= 3000
        assert made[-10:] == messages[-10:]

    @pytest.mark.promise("S3.9", "S3.11")
    @pytest.mark.parametrize("provider", ["openai", "gemini"])
    def test_a_row_of_user_messages_is_truncated_like_any_other(self, provider: str) -> None:
        messages = wire([user(f"note {number} " + "word " * 100) for number in range(60)], provider)
        made = transform(messages, ContextWindowPolicy(max_context_tokens=4000, max_output_tokens=500))
        assert 10 < len(made) < 40
        assert made[-10:] == messages[-10:]
        assert not check(provider, made)

    def test_the_note_about_removed_messages_names_no_tool(self) -> None:
        made = transform(wire(talk(200)), window(3000))
        assert "earlier messages not shown here]" in str(made)
        assert "recall" not in str(made)


class TestPreviews:
    @pytest.mark.promise("S3.14", "S3.15")
    def test_a_large_result_becomes_a_preview(self) -> None:
        messages = [user("go"), call("a"), tool("a", BIG)]
        made = transform(messages)
        shown, _, indicator = made[2].results[0].text.rpartition("\n")
        assert shown == "\n".join(f"line {n}" for n in range(24)), "24 lines are shorter than 1,600 characters here"
        assert f"{len(BIG):,} characters" in indicator
        assert "recall" not in indicator, "a list has no recall tool"
        assert made[0] is messages[0]
        assert made[1] is messages[1]

    @pytest.mark.promise("S3.14")
    def test_characters_may_be_the_shorter_bound(self) -> None:
        made = transform([user("go"), call("a"), tool("a", "x" * 50_000)])
        shown, _, _ = made[2].results[0].text.rpartition("\n")
        assert shown == "x" * 1600

    @pytest.mark.promise("S3.14")
    @pytest.mark.parametrize(("size", "whole"), [(2047 * 4, True), (2047 * 4 + 1, False), (2048 * 4, False)])
    def test_the_threshold_is_inclusive(self, size: int, whole: bool) -> None:
        messages = [user("go"), call("a"), tool("a", "x" * size)]
        assert (transform(messages) is messages) == whole

    @pytest.mark.promise("S3.14")
    def test_previews_come_before_truncation(self) -> None:
        """With the result as a preview everything fits, so nothing is dropped."""
        messages = [*talk(3), user("go"), call("a"), tool("a", BIG)]
        made = transform(messages, window(3000))
        assert made[:-1] == messages[:-1]
        assert "[pruned, too large to send" in made[-1].results[0].text

    @pytest.mark.promise("S3.16")
    def test_preview_sizes_follow_the_settings(self) -> None:
        spec = AgentSpec(
            sections={
                "context_transform": {
                    "artifact_compaction": {"threshold_tokens": 100, "preview_max_chars": 50, "preview_max_lines": 2}
                }
            }
        )
        messages = [user("go"), call("a"), tool("a", BIG[:1000])]
        made = transform(messages, spec.context_policy, artifacts=spec.artifact_compaction)
        assert made[2].results[0].text.startswith("line 0\nline 1\n[pruned")

    @pytest.mark.promise("S3.17")
    def test_only_tool_results_are_previewed(self) -> None:
        messages = [system(BIG), user(BIG), assistant(BIG), user("so?")]
        assert transform(messages) is messages

    def test_a_preview_that_would_be_larger_is_not_made(self) -> None:
        messages = [user("go"), call("a"), tool("a", "short")]
        assert transform(messages, artifacts=ArtifactCompaction(threshold_tokens=1)) is messages

    @pytest.mark.parametrize("provider", ["openai", "anthropic", "openai-responses", "gemini"])
    def test_previews_work_in_every_format(self, provider: str) -> None:
        messages = wire([user("go"), call("a"), tool("a", BIG, name="run"), assistant("done"), user("so?")], provider)
        made = transform(messages)
        assert not check(provider, made)
        assert len(str(made)) < 3000
        assert "[pruned, too large to send" in str(made[2])
        assert "recall" not in str(made)
        assert all(made[place] is messages[place] for place in (0, 1, 3, 4))

    def test_previews_work_on_objects(self) -> None:
        @dataclass(frozen=True)
        class Block:
            text: str
            type: str = "text"

        @dataclass(frozen=True)
        class Result:
            content: tuple[Block, ...]
            role: str = "toolResult"
            toolCallId: str = "a"  # noqa: N815  # as such hosts spell it
            extra: int = 7

        @dataclass(frozen=True)
        class Called:
            role: str = "assistant"
            content: tuple[Any, ...] = ({"type": "toolCall", "id": "a", "name": "run", "arguments": {}},)

        given: list[Any] = [SimpleNamespace(role="user", content="go"), Called(), Result((Block(BIG),))]
        made = transform(given)
        assert made[0] is given[0]
        assert made[1] is given[1]
        assert isinstance(made[2], Result)
        assert made[2].extra == 7
        assert made[2].content[0].text.endswith(f"of {len(BIG):,} characters shown]")
        assert given[2].content[0].text == BIG


def compact(messages: list[Message], threshold: int = 5000, **more: Any) -> CompactionPlan | None:
    config = CompactionConfig(summary_max_tokens=more.pop("summary", 100), **more.pop("config", {}))
    return plan_compaction(messages, ContextWindowPolicy(autocompact_threshold=threshold, **more), config)


class TestCompaction:
    @pytest.mark.promise("S3.6", "S3.19")
    def test_a_compaction_is_due_only_above_its_threshold(self) -> None:
        messages = talk(20)
        assert plan_compaction(messages, ContextWindowPolicy()) is None, "None is off"
        assert compact(messages, threshold=tokens(messages)) is None
        found = compact(messages, threshold=tokens(messages) - 1)
        assert found is not None
        assert found.before == tokens(messages)

    @pytest.mark.promise("S3.24")
    def test_execution_mode_is_another_name_of_mode(self) -> None:
        off = CompactionConfig(execution_mode="off")  # type: ignore[arg-type]  # as in a file
        assert off == CompactionConfig(mode="off")  # type: ignore[arg-type]
        assert AgentSpec(sections={"compaction": {"execution_mode": "off"}}).compaction == off
        assert AgentSpec(sections={CompactionConfigKey: off}).compaction is off
        with pytest.raises(ConfigError, match="mode cannot be 'later'"):
            CompactionConfig(execution_mode="later")  # type: ignore[arg-type]

    def test_mode_off_plans_no_compaction(self) -> None:
        assert compact(talk(20), config={"mode": CompactionExecutionMode.Off}) is None

    @pytest.mark.promise("S3.8", "S3.20")
    @pytest.mark.parametrize("suffix", [0, 1, 2, 3, 4, 5, 8, 9])
    def test_the_last_messages_stay_raw(self, suffix: int) -> None:
        messages = [*talk(20), user("and now?")]
        found = compact(messages, compaction_raw_suffix_messages=suffix)
        assert found is not None
        assert len(messages) - found.boundary >= max(1, suffix)
        assert len(messages) - found.boundary <= suffix + 2, "no more than whole steps need"
        assert found.covered == tuple(range(1, found.boundary)), "everything before, but the system prompt"

    @pytest.mark.promise("S3.21")
    @pytest.mark.parametrize("floor", [0, 1, 4, 10, 30])
    def test_compact_to_safe_frontier_reaches_the_last_closed_call(self, floor: int) -> None:
        messages = [*talk(20), user("and now?")]
        found = compact(messages, compaction_mode=FRONTIER, min_recent_messages=floor)
        assert found is not None
        assert len(messages) - found.boundary >= max(1, floor)
        assert len(messages) - found.boundary <= floor + 2
        open_call = [*messages, call("x", "looking"), tool("x", "r"), call("y")]
        frontier = compact(open_call, compaction_mode=FRONTIER, min_recent_messages=0)
        assert frontier is not None
        assert frontier.boundary <= len(messages) + 2, "an open call stays"

    @pytest.mark.promise("S3.22", "S3.38")
    @given(chats(largest=900), st.sampled_from([SUFFIX, FRONTIER]), st.integers(0, 8), st.integers(1, 400))
    def test_no_boundary_separates_a_call_from_its_result(
        self, messages: list[Message], mode: ContextCompactionMode, floor: int, threshold: int
    ) -> None:
        found = plan_compaction(
            messages,
            ContextWindowPolicy(
                autocompact_threshold=threshold,
                compaction_mode=mode,
                compaction_raw_suffix_messages=floor,
                min_recent_messages=floor,
            ),
            CompactionConfig(summary_max_tokens=1, min_savings_ratio=0.0),
        )
        if found is None:
            return
        asked = {each.id for message in messages[: found.boundary] for each in message.calls}
        answered = {each.call_id for message in messages[: found.boundary] for each in message.results}
        assert asked == answered
        assert len(messages) - found.boundary >= min(floor, len(messages) - 1)
        last = max(index for index, message in enumerate(messages) if message.is_prompt)
        assert last not in found.covered
        assert found.before - found.after >= MIN_COMPACTION_GAIN_TOKENS
        made = apply_summary(messages, found, "What happened before.")
        assert not check("openai", wire(made))
        assert [message for message in made if message in messages] == [
            message for index, message in enumerate(messages) if index not in found.covered
        ]

    @pytest.mark.promise("S3.38")
    def test_the_latest_turn_stays_raw_when_the_rest_is_enough(self) -> None:
        """Older user messages may be summarized; this one, with all its steps, may not."""
        messages = [*talk(20), user("now this"), *(m for n in range(5) for m in (call(f"n{n}"), tool(f"n{n}", "r")))]
        found = compact(messages)
        assert found is not None
        assert messages[found.boundary].text == "now this"
        assert found.raw == ()

    @pytest.mark.promise("S3.20", "S3.38")
    @pytest.mark.parametrize("mode", [SUFFIX, FRONTIER])
    def test_one_long_turn_can_be_compacted(self, mode: ContextCompactionMode) -> None:
        """The rule as written would keep hundreds of tool rounds raw, for ever."""
        messages = long_turn(300)
        found = compact(messages, compaction_mode=mode)
        assert found is not None
        assert found.after < 5000
        assert found.raw == (1,), "what the user asked stays word for word"
        assert 1 not in found.covered
        made = apply_summary(messages, found, "Two of three modules build.")
        assert made[2] is messages[1]
        assert made[3:] == messages[found.boundary :]

    @pytest.mark.promise("S3.18", "S3.38", "S3.39", "F22")
    def test_a_summary_replaces_what_truncation_would_drop(self) -> None:
        messages = wire(talk(20))
        found = plan_compaction(messages, ContextWindowPolicy(autocompact_threshold=5000))
        assert found is not None
        made = apply_summary(messages, found, "They built it.")
        assert made[0] is messages[0]
        assert made[1] == {
            "role": "system",
            "content": "<conversation-summary>\nThey built it.\n</conversation-summary>",
        }
        assert made[2:] == messages[found.boundary :]
        assert len(messages) == 81, "the record keeps everything"
        later = plan_compaction([*made, *wire(talk(20))], ContextWindowPolicy(autocompact_threshold=5000))
        assert later is not None
        again = apply_summary([*made, *wire(talk(20))], later, "And sold it.")
        assert [message["content"] for message in again if "summary>" in str(message["content"])] == [
            "<conversation-summary>\nAnd sold it.\n</conversation-summary>"
        ]

    @pytest.mark.promise("S3.31")
    def test_a_small_conversation_is_compacted_too(self) -> None:
        messages = [user("old context " * 700), assistant("ack"), user("so?"), assistant("yes"), user("and?")]
        found = plan_compaction(messages, ContextWindowPolicy(autocompact_threshold=2_000))
        assert found is not None
        assert found.covered[0] == 0
        assert found.before - found.after >= MIN_COMPACTION_GAIN_TOKENS

    @pytest.mark.promise("S3.34")
    def test_a_summary_is_applied_only_to_the_messages_it_was_made_for(self) -> None:
        messages = wire(talk(20))
        found = plan_compaction(messages, ContextWindowPolicy(autocompact_threshold=5000))
        assert found is not None
        grown = [*messages, *wire(talk(1))]
        assert len(apply_summary(grown, found, "They built it.")) < len(messages)
        changed = [*messages[:5], {"role": "user", "content": "something else"}, *messages[6:]]
        for other in (messages[: found.boundary - 1], messages[3:], changed, apply_summary(messages, found, "Built.")):
            assert apply_summary(other, found, "They built it.") is other

    @pytest.mark.promise("S3.29")
    def test_the_extreme_settings_of_the_design_are_accepted(self) -> None:
        messages = wire(talk(20))
        small = ContextWindowPolicy(autocompact_threshold=1)
        assert plan_compaction(messages, small) is not None
        assert plan_compaction(messages, small, CompactionConfig(min_savings_ratio=1.0)) is None

    @pytest.mark.promise("I9")
    @pytest.mark.parametrize(
        "summary",
        [
            "",
            "\u200b",
            "  \n\t ",
            '<tool_call>{"name": "bash", "arguments": {}}</tool_call>',
            "Please provide the conversation.",
            "word " * 200_000,
        ],
        ids=["empty", "zero-width", "blank", "tool call", "request", "too large"],
    )
    def test_a_text_that_is_no_summary_replaces_nothing(self, summary: str) -> None:
        messages = wire(talk(20))
        found = plan_compaction(messages, ContextWindowPolicy(autocompact_threshold=5000))
        assert found is not None
        assert apply_summary(messages, found, summary) is messages

    @pytest.mark.promise("S3.40")
    def test_a_loaded_list_begins_at_its_latest_summary(self) -> None:
        first, second = (
            {"role": "system", "content": f"<conversation-summary>\n{text}\n</conversation-summary>"} for text in "ab"
        )
        old, new = ({"role": "user", "content": text} for text in ("old", "new"))
        assert trim_to_compaction_boundary([old, first, old, second, new]) == [second, new]
        prompt = {"role": "system", "content": "Be brief."}
        trimmed = [prompt, second, new]
        assert trim_to_compaction_boundary([prompt, first, old, second, new]) == trimmed
        assert trim_to_compaction_boundary(trimmed) is trimmed
        for untouched in ([], [prompt, old, new], [prompt]):
            assert trim_to_compaction_boundary(untouched) is untouched

    @pytest.mark.promise("S3.29", "S3.31")
    def test_a_summary_that_saves_too_little_is_not_planned(self) -> None:
        messages = talk(20)
        covered = tokens(messages[1:-4])
        assert covered - MIN_COMPACTION_GAIN_TOKENS < covered * 0.9
        cheap = {"min_savings_ratio": 0.0}
        assert compact(messages, summary=covered - MIN_COMPACTION_GAIN_TOKENS, config=cheap) is not None
        assert compact(messages, summary=covered - MIN_COMPACTION_GAIN_TOKENS + 1, config=cheap) is None
        assert compact(messages, summary=int(covered * 0.6)) is not None
        assert compact(messages, summary=int(covered * 0.8)) is None
        assert compact(messages, summary=int(covered * 0.8), config={"min_savings_ratio": 0.1}) is not None
