"""Block budget: the configuration, the assembly of a prompt, words and tokens, and the debug log."""

from __future__ import annotations

import asyncio
import copy
import logging
import subprocess
import sys
from dataclasses import FrozenInstanceError, dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.compat.block_budget import AgentConfig, MemoryManager, PromptAssembler
from foldline.compat.block_caps import size_of
from foldline.errors import ConfigError, ViewTooLarge
from foldline.measure.estimator import CHARS_4, WORDS, Counter, Estimator
from foldline.message import Message, assistant, user
from foldline.wire.formats import format_of
from foldline.wire.validate import check
from support.chats import chats, wire

PROVIDERS = ["openai", "anthropic", "openai-responses", "gemini"]
MEMORY = "# Facts\n- likes tea\n- lives in Rome"
SUMMARY = "They met in May.\n• Likes  TEA\n\nThey plan a trip."


@dataclass(frozen=True)
class Said:
    """A bot's own message."""

    role: str
    content: str
    channel: str | None = None
    sender_id: str | None = None


def config(**caps: Any) -> AgentConfig:
    return AgentConfig(**{f"context_{name}": value for name, value in caps.items()})


def build(config: AgentConfig | None = None, counter: Counter | None = None, **blocks: Any) -> list[Any]:
    blocks = {"base_prompt": "You are a bot.", "user_message": "And now?", **blocks}
    return PromptAssembler(config, counter=counter).assemble(**blocks).messages


def words(messages: list[Any]) -> int:
    return sum(len(message["content"].split()) for message in messages)


def numbered(count: int, size: int) -> list[dict[str, str]]:
    """History of messages with `size` words each, the first of which is its number."""
    return [
        {"role": ("user", "assistant")[n % 2], "content": " ".join([f"n{n}", *["word"] * (size - 1)])}
        for n in range(count)
    ]


class TestConfig:
    @pytest.mark.promise("S4.1", "S4.2", "S4.3", "S4.4", "S4.5", "S4.6", "S4.7", "S4.22")
    def test_the_defaults_are_the_documented_ones(self) -> None:
        found = AgentConfig()
        assert found.context_budget_mode == "words"
        assert found.context_memory_max_words == 300
        assert found.context_summary_max_words == 500
        assert found.context_history_max_words == 2500
        assert found.context_total_max_words == 4500
        assert found.context_dedupe_summary_against_memory is True
        assert found.context_min_recent_messages == 2
        with pytest.raises(FrozenInstanceError):
            found.context_total_max_words = 1  # type: ignore[misc]  # that it cannot be set is the point

    @pytest.mark.promise("S4.8")
    @pytest.mark.parametrize("value", [0, -1, 1.5, True, "300", None])
    @pytest.mark.parametrize(
        "name", ["memory_max_words", "summary_max_words", "history_max_words", "total_max_words", "min_recent_messages"]
    )
    def test_every_limit_must_be_above_zero(self, name: str, value: Any) -> None:
        with pytest.raises(ConfigError, match=f"context_{name} must be a whole number above 0"):
            config(**{name: value})

    @pytest.mark.promise("S4.9")
    def test_the_total_must_not_be_below_the_history(self) -> None:
        assert config(history_max_words=10, total_max_words=10).context_total_max_words == 10
        with pytest.raises(ConfigError, match="raise context_total_max_words"):
            config(history_max_words=11, total_max_words=10)

    @pytest.mark.promise("S4.10", "S4.11")
    def test_the_mode_must_be_words_or_tokens(self) -> None:
        assert config(budget_mode="tokens").context_budget_mode == "tokens"
        with pytest.raises(ConfigError, match='use "words" or "tokens"'):
            config(budget_mode="bytes")


class TestAssembly:
    @pytest.mark.promise("S4.12", "S4.18")
    def test_blocks_are_assembled_in_the_documented_order(self) -> None:
        made = build(memory=MEMORY, summary=SUMMARY, history=numbered(2, 3))
        assert [message["role"] for message in made] == ["system", "user", "assistant", "user"]
        assert made[0]["content"] == (
            "You are a bot.\n\n## Your Memory\n\n# Facts\n- likes tea\n- lives in Rome\n\n"
            "## Conversation Summary\n\nThey met in May.\n\nThey plan a trip."
        )
        assert made[-1] == {"role": "user", "content": "And now?"}

    @pytest.mark.promise("S4.12")
    def test_duplicate_lines_are_removed_before_truncation(self) -> None:
        """The line of memory that a summary line repeats may itself be cut away: it was compared before."""
        made = build(config(memory_max_words=2), memory="# Facts\n- likes tea", summary="likes tea\nmet in May")
        assert (
            made[0]["content"] == "You are a bot.\n\n## Your Memory\n\n# Facts\n\n## Conversation Summary\n\nmet in May"
        )

    @pytest.mark.promise("S4.18")
    @pytest.mark.parametrize("summary", ["", "  \n", "- LIKES tea", "likes tea\n* lives in rome"])
    def test_an_empty_summary_has_no_heading(self, summary: str) -> None:
        assert "## Conversation Summary" not in build(memory=MEMORY, summary=summary)[0]["content"]

    @pytest.mark.promise("S4.6", "S4.13")
    def test_removing_duplicate_lines_can_be_switched_off(self) -> None:
        made = build(config(dedupe_summary_against_memory=False), memory=MEMORY, summary=SUMMARY)
        assert SUMMARY in made[0]["content"]

    @pytest.mark.promise("S4.13", "F19")
    def test_a_minus_sign_is_no_bullet_and_case_does_not_matter(self) -> None:
        made = build(memory="5 degrees\n• one fact", summary="-5 degrees\n\n• ONE  fact\nend")
        assert made[0]["content"].endswith("## Conversation Summary\n\n-5 degrees\n\nend")

    @pytest.mark.promise("S4.2", "S4.3", "S4.22", "F20")
    def test_a_block_is_truncated_exactly_to_its_cap(self) -> None:
        """One long line is cut to the word; lines stay whole otherwise."""
        line = " ".join(f"w{n}" for n in range(1000))
        made = build(memory=line, summary=line.replace("w", "s"))
        system = made[0]["content"].split("\n\n")
        assert system[2].split() == [f"w{n}" for n in range(300)], "memory keeps its head"
        assert system[4].split() == [f"s{n}" for n in range(500, 1000)], "a summary keeps its newest end"
        lines = "\n".join(f"- one two three {n}" for n in range(100))
        kept = build(config(memory_max_words=22), memory=lines)[0]["content"].split("\n\n")[2]
        assert kept == "\n".join(f"- one two three {n}" for n in range(4)), "whole lines, not 22 words in a row"

    @pytest.mark.promise("S4.4", "S4.15", "S4.16", "S4.22")
    def test_history_keeps_its_newest_messages_in_order(self) -> None:
        made = build(config(history_max_words=35), history=numbered(50, 10))[1:-1]
        assert [message["content"].split()[0] for message in made] == ["n47", "n48", "n49"]

    @pytest.mark.promise("S4.7", "S4.15")
    def test_the_newest_messages_stay_even_above_the_history_cap(self) -> None:
        history = numbered(9, 100)
        made = build(config(history_max_words=10, min_recent_messages=3), history=history)[1:-1]
        assert made == history[-3:]

    @pytest.mark.promise("S4.5", "S4.17", "S4.22")
    def test_the_total_takes_from_history_first(self) -> None:
        caps = config(history_max_words=100, total_max_words=100, memory_max_words=40, summary_max_words=40)
        memory = "\n".join(f"memory fact {n}" for n in range(13))
        summary = "\n".join(f"summary fact {n}" for n in range(13))
        made = build(caps, memory=memory, summary=summary, history=numbered(20, 5))
        assert memory in made[0]["content"]
        assert summary in made[0]["content"]
        assert words(made[:-1]) <= 100 + words([{"content": "You are a bot."}])
        assert len(made[1:-1]) == 3

    @pytest.mark.promise("S4.17")
    def test_the_newest_messages_stay_whole_while_memory_has_words(self) -> None:
        caps = config(history_max_words=100, total_max_words=100, memory_max_words=40, summary_max_words=40)
        memory, summary = "fact " * 30, "event " * 30
        history = numbered(4, 40)
        made = build(caps, memory=memory, summary=summary, history=history)
        assert made[1:-1] == history[-2:]
        assert "## Conversation Summary" not in made[0]["content"]
        assert made[0]["content"].count("fact") == 17, "the rest of 100 words, less three of the heading"

    @pytest.mark.promise("S4.17", "F21")
    def test_newest_messages_that_alone_exceed_the_total_are_shortened(self) -> None:
        history = numbered(2, 5000)
        made = build(memory=MEMORY, summary=SUMMARY, history=history)
        assert MEMORY in made[0]["content"]
        assert "They plan a trip." in made[0]["content"], "huge messages do not empty other blocks"
        sizes = [words([message]) for message in made[1:-1]]
        assert 4_400 < sum(sizes) <= 4_500, "as much as fits stays"
        assert abs(sizes[0] - sizes[1]) <= 1, "both are shortened alike"
        assert [message["content"].split()[0] for message in made[1:-1]] == ["n0", "n1"]
        assert all(message["content"].endswith("characters left out]") for message in made[1:-1])

    @pytest.mark.promise("S4.17", "F21")
    def test_huge_messages_become_stubs_before_the_summary_is_shortened(self) -> None:
        caps = config(history_max_words=100, total_max_words=120, memory_max_words=100, summary_max_words=100)
        history = [{"role": "user", "content": "h " * 500}, {"role": "assistant", "content": "g " * 500}]
        made = build(caps, memory="m " * 90, summary="s " * 90, history=history)
        assert made[0]["content"].split().count("m") == 90
        assert made[0]["content"].split().count("s") > 0
        assert words(made[:-1]) <= 120 + words([{"content": "You are a bot."}])
        assert [message["content"].endswith("characters left out]") for message in made[1:-1]] == [True, True]

    def test_the_new_message_is_never_touched(self) -> None:
        text = "word " * 9000
        assert build(user_message=text, history=numbered(3, 10))[-1]["content"] == text

    @pytest.mark.promise("S4.5")
    def test_the_base_prompt_is_not_counted(self) -> None:
        base, history = "word " * 5000, numbered(2, 100)
        made = build(base_prompt=base, memory=MEMORY, history=history)
        assert made[0]["content"] == f"{base}\n\n## Your Memory\n\n{MEMORY}"
        assert made[1:-1] == history

    def test_a_prompt_that_cannot_fit_raises_with_the_size_of_each_block(self) -> None:
        call = {
            "id": "a",
            "type": "function",
            "function": {"name": "run", "arguments": '{"x": "' + "word " * 99 + '"}'},
        }
        history = [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "a", "content": "done"},
        ]
        with pytest.raises(ViewTooLarge, match=r"> 50 words \(history .*raise context_total_max_words"):
            build(config(history_max_words=50, total_max_words=50), history=history)


class TestCallersObjects:
    @pytest.mark.promise("S4.16", "S4.19")
    def test_the_callers_objects_are_not_changed(self) -> None:
        history = [*numbered(3, 4000), {"role": "user", "content": "hi", "channel": "mail", "sender_id": "ann"}]
        blocks: dict[str, Any] = {"memory": MEMORY, "summary": SUMMARY, "history": history}
        before = copy.deepcopy(blocks)
        first = build(**blocks)
        assert blocks == before
        assert build(**blocks) == first, "the same again"

    @pytest.mark.promise("S4.16")
    def test_messages_without_a_channel_are_returned_as_the_same_objects(self) -> None:
        history = numbered(4, 3)
        made = build(history=history)
        assert all(one is other for one, other in zip(made[1:-1], history, strict=True))

    @pytest.mark.promise("S4.12", "S4.16", "S4.25")
    def test_channels_stay_together_and_are_named(self) -> None:
        """Recent talk is recent talk, wherever it took place."""
        history = [
            {"role": "user", "content": f"word {n}", "channel": ("mail", "chat")[n % 2], "sender_id": f"ann{n % 3}"}
            for n in range(30)
        ]
        made = build(config(history_max_words=19), history=history)[1:-1]
        assert [message["content"] for message in made] == [
            "[chat / ann0]\nword 27",
            "[mail / ann1]\nword 28",
            "[chat / ann2]\nword 29",
        ]
        for message, source in zip(made, history[-3:], strict=True):
            assert {**message, "content": 0} == {**source, "content": 0}, "role, channel and sender as they were"
        assert history[-1]["content"] == "word 29"

    @pytest.mark.promise("S4.16", "S4.25")
    def test_objects_stay_objects(self) -> None:
        history = [Said("user", "hello", "mail", "ann"), Said("assistant", "hi"), Said("user", "huge " * 9000, "chat")]
        made = build(config(min_recent_messages=3), history=history)
        assert made[1] == Said("user", "[mail / ann]\nhello", "mail", "ann")
        assert made[2] is history[1]
        assert made[3].content.startswith("[chat / unknown]\nhuge huge")
        assert made[3].content.endswith("characters left out]")
        assert (made[3].channel, made[3].sender_id, made[3].role) == ("chat", None, "user")
        assert (made[0].role, made[4].role, made[4].content) == ("system", "user", "And now?")

    def test_messages_stay_messages(self) -> None:
        history = [user("hello"), assistant("hi")]
        made = build(history=history, user_message=user("now?"))
        assert all(isinstance(message, Message) for message in made)
        assert made[1] is history[0]
        assert made[-1] == user("now?")

    @pytest.mark.parametrize("provider", ["anthropic", "gemini"])
    def test_formats_without_a_system_message_get_it_separately(self, provider: str) -> None:
        history = wire([user("hello"), assistant("hi")], provider)
        assembler = PromptAssembler(format=provider)
        made = assembler.assemble(base_prompt="You are a bot.", user_message="And now?", history=history)
        assert made.system == "You are a bot."
        assert not check(provider, made.turns)
        with pytest.raises(ConfigError, match="send `turns` as the messages"):
            assert made.messages

    @given(chats(lead=False), st.integers(20, 200), st.integers(0, 80), st.integers(1, 4), st.sampled_from(PROVIDERS))
    def test_a_call_is_never_separated_from_its_result(
        self, messages: list[Message], room: int, more: int, floor: int, provider: str
    ) -> None:
        """Our own rule wins over the documented one: no budget, however small, leaves a result without its call."""
        caps = config(history_max_words=room, total_max_words=room + more, min_recent_messages=floor)
        assembler = PromptAssembler(caps, format=provider)
        history = wire(messages, provider)
        try:
            made = assembler.assemble(base_prompt="You are a bot.", user_message="And now?", history=history)
        except ViewTooLarge:
            return
        assert not check(provider, made.turns)
        read = format_of(provider).parse
        said = sum(size_of(read(turn, None), WORDS) for turn in made.turns[:-1])
        assert len(made.system.removeprefix("You are a bot.").split()) + said <= room + more


class Storage:
    """A bot's storage in memory."""

    def __init__(self, history: list[Any] | None = None, memory: str = "", summary: str = "") -> None:
        self.history, self.memory, self.summary = history or [], memory, summary

    async def load_history(self) -> list[Any]:
        return list(self.history)

    async def load_global_memory(self) -> str:
        return self.memory

    async def load_global_summary(self) -> str:
        return self.summary


class PlainStorage(Storage):
    """The same without async functions."""

    def load_history(self) -> list[Any]:  # type: ignore[override]
        return self.history

    def load_global_memory(self) -> str:  # type: ignore[override]
        return self.memory

    def load_global_summary(self) -> str:  # type: ignore[override]
        return self.summary


def managed(storage: Storage, **settings: Any) -> list[Any]:
    manager = MemoryManager(storage, **settings)
    return asyncio.run(manager.build_messages("cli", "local", "next?", "You are a bot."))


class TestMemoryManager:
    @pytest.mark.promise("S4.12", "S4.18")
    @pytest.mark.parametrize("storage", [Storage, PlainStorage])
    def test_the_documented_call_builds_the_whole_request(self, storage: type[Storage]) -> None:
        history = [
            Said("user", "hello", "mail", "ann"),
            Said("assistant", "hi", "mail", "assistant"),
            Said("user", "ok"),
        ]
        made = managed(storage(history, MEMORY, SUMMARY))
        assert made == [
            Said(
                "system",
                f"You are a bot.\n\n## Your Memory\n\n{MEMORY}\n\n"
                "## Conversation Summary\n\nThey met in May.\n\nThey plan a trip.",
            ),
            Said("user", "[mail / ann]\nhello", "mail", "ann"),
            Said("assistant", "[mail / assistant]\nhi", "mail", "assistant"),
            Said("user", "ok"),
            Said("user", "next?"),
        ]
        assert made[3] is history[2]
        assert history[0].content == "hello"

    def test_an_empty_storage_gives_prompt_and_message(self) -> None:
        made = managed(Storage())
        assert [(message.role, message.content) for message in made] == [
            ("system", "You are a bot."),
            ("user", "next?"),
        ]

    @pytest.mark.promise("S4.4", "S4.15")
    def test_settings_are_given_by_their_documented_names(self) -> None:
        history = [Said("user", f"old{number}", "cli", "local") for number in range(4)]
        settings = {"context_history_max_words": 8, "context_total_max_words": 100, "context_min_recent_messages": 1}
        made = managed(Storage(history), **settings)
        assert [message.content for message in made[1:-1]] == ["[cli / local]\nold2", "[cli / local]\nold3"]
        with pytest.raises(ConfigError, match="unknown setting 'context_words'"):
            MemoryManager(Storage(), context_words=1)
        with pytest.raises(ConfigError, match="a AgentConfig is not a storage"):
            MemoryManager(AgentConfig())  # type: ignore[arg-type]

    @pytest.mark.promise("S4.17")
    def test_the_total_takes_history_then_summary_then_memory(self) -> None:
        history = [Said("user", f"old{number}", "cli", "local") for number in range(4)]
        made = managed(
            Storage(history, "m0 m1 m2", "s0 s1 s2"), context_total_max_words=14, context_history_max_words=14
        )
        assert [message.content for message in made[1:-1]] == ["[cli / local]\nold2", "[cli / local]\nold3"]
        assert made[0].content == "You are a bot.\n\n## Your Memory\n\nm0 m1 m2"

    @pytest.mark.promise("S4.16")
    def test_history_is_labelled_once(self) -> None:
        history = [Said("user", "hello", "mail", "ann"), Said("assistant", "hi", "mail", "assistant")]
        once = managed(Storage(history))[1:-1]
        twice = managed(Storage(once))[1:-1]
        assert twice == once
        assert [one is other for one, other in zip(twice, once, strict=True)] == [True, True]

    @pytest.mark.parametrize(
        ("alias", "label"),
        [
            ("ann", "owner"),
            ({"address": "ann"}, "owner"),
            ({"address": "ann", "channel": "mail"}, "owner"),
            ({"address": "ann", "channel": "chat"}, "ann"),
            ("bob", "ann"),
        ],
    )
    def test_the_owner_is_named_by_an_alias(self, alias: Any, label: str) -> None:
        made = managed(Storage([Said("user", "hello", "mail", "ann")]), owner_aliases=[alias])
        assert made[1].content == f"[mail / {label}]\nhello"

    @pytest.mark.promise("S4.23")
    def test_a_plain_function_counts_tokens(self) -> None:
        settings = {"context_budget_mode": "tokens", "context_memory_max_words": 12}
        made = managed(Storage(memory="a b c d e f g h"), context_token_counter=len, **settings)
        assert made[0].content.endswith("## Your Memory\n\na b c d e f")


class TestTokens:
    @pytest.mark.promise("S4.11", "S4.23", "S4.22")
    def test_without_a_counter_words_are_counted_with_one_warning(self, caplog: pytest.LogCaptureFixture) -> None:
        history = numbered(50, 10)
        with caplog.at_level(logging.WARNING):
            assembler = PromptAssembler(config(budget_mode="tokens", history_max_words=35))
            for _ in range(5):
                made = assembler.assemble(base_prompt="bot", user_message="now?", history=history)
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert "counting words" in caplog.text
        assert made.report.fallback
        assert made.report.unit == "words"
        assert len(made.turns) == 4

    @pytest.mark.promise("S4.23", "S4.24")
    @pytest.mark.parametrize("counter", [CHARS_4, Estimator()], ids=lambda counter: counter.name)
    def test_with_a_counter_every_cap_holds_in_tokens(self, counter: Counter, caplog: pytest.LogCaptureFixture) -> None:
        line = "A line of the memory, quite long, 日本語 included."
        caps = config(
            budget_mode="tokens",
            memory_max_words=50,
            summary_max_words=60,
            history_max_words=200,
            total_max_words=300,
        )
        memory = "\n".join(f"{n} {line}" for n in range(50))
        summary = "\n".join(f"{line} {n}" for n in range(50))
        with caplog.at_level(logging.WARNING):
            made = PromptAssembler(caps, counter=counter).assemble(
                base_prompt="You are a bot.",
                user_message="now?",
                memory=memory,
                summary=summary,
                history=numbered(99, 20),
            )
        assert not caplog.records
        assert made.report.unit == "tokens"
        parts = made.system.split("\n\n")
        assert 0 < counter.count(parts[2]).tokens <= 50
        assert memory.startswith(parts[2])
        assert 0 < counter.count(parts[4]).tokens <= 60
        assert summary.endswith(parts[4])
        history = sum(counter.count(message["content"]).tokens for message in made.turns[:-1])
        assert 0 < history <= 200
        blocks = made.system.removeprefix("You are a bot.\n\n")  # the caps are about memory, summary and history
        assert counter.count(blocks).tokens + history <= 300

    def test_words_mode_ignores_the_token_counter(self) -> None:
        made = PromptAssembler(counter=CHARS_4).assemble(base_prompt="bot", user_message="now?", memory="a b c")
        assert made.report.unit == "words"
        assert made.report.before["memory"] == WORDS.count("a b c").tokens


@pytest.mark.promise("S4.20")
def test_a_debug_log_says_what_the_caps_did(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="foldline"):
        build(config(history_max_words=40), memory="word " * 400, summary=SUMMARY + "\nword", history=numbered(9, 10))
    assert [record.levelname for record in caplog.records] == ["DEBUG"]
    assert caplog.messages == [
        "context budget: memory 400 → 300, digest 12 → 12, history 90 → 40 words; 5 messages left out"
    ]


@pytest.mark.promise("S4.21")
def test_importing_loads_no_tokenizer() -> None:
    code = (
        "import sys; from foldline.compat.block_budget import PromptAssembler\n"
        "PromptAssembler().assemble(base_prompt='b', user_message='u')\n"
        "print(*sorted({m.split('.')[0] for m in sys.modules} - sys.stdlib_module_names))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"tiktoken", "splintr", "numpy", "openai", "anthropic", "rich", "click"} & set(done.stdout.split())


@pytest.mark.promise("S4.19", "S4.22")
def test_assembling_does_not_change_the_history() -> None:
    """A consolidation that counts messages by their place finds them where they were."""
    history, cursor = numbered(120, 50), 100
    unseen = history[cursor:]
    build(history=history)
    assert len(history) == 120
    assert history[cursor:] == unseen
    assert all(one is other for one, other in zip(history[cursor:], unseen, strict=True))
