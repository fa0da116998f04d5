"""Blocks under their caps: whole lines, one end, each line once, and history giving way before anything else."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.compat.block_caps import AgentConfig, Blocks, FittedBlocks, cut_to_newest, fit_blocks, shorten, size_of
from foldline.compat.text_caps import End, dedupe, fit_text, line_key
from foldline.errors import ConfigError, ViewTooLarge
from foldline.measure.estimator import CHARS_4, WORDS, Counter, Estimator
from foldline.message import Media, Message, Text, ToolCall, assistant, tool, user
from foldline.plan.timeline import Timeline, timeline_of
from support.chats import chats, texts

COUNTERS: list[Counter] = [WORDS, CHARS_4, Estimator()]
counters = st.sampled_from(COUNTERS)
ends = st.sampled_from(["head", "tail"])
pages = st.lists(
    st.one_of(
        st.sampled_from(
            ["", "# Facts", "- likes tea", "* Likes  TEA", "• likes tea", "```python", "```", "~~~", "x = 1"]
        ),
        st.text(max_size=30).filter(lambda text: "\n" not in text),
        texts(40).map(lambda text: text.replace("\n", " ")),
    ),
    max_size=30,
).map("\n".join)


def words(text: str) -> int:
    return len(text.split())


def timeline(messages: list[Message], counter: Counter = WORDS) -> Timeline:
    return timeline_of(messages, (size_of(message, counter) for message in messages))


def frame(memory: str, digest: str) -> str:
    return "\n".join([*(["## Memory", memory] if memory else []), *(["## Digest", digest] if digest else [])])


def fit(caps: AgentConfig, *, memory: str = "", digest: str = "", history: list[Message] | None = None) -> FittedBlocks:
    blocks = Blocks(memory=memory, digest=digest, history=timeline(history or []))
    return fit_blocks(blocks, caps, WORDS, frame)


def attempt(caps: AgentConfig, **blocks: Any) -> FittedBlocks | ViewTooLarge:
    try:
        return fit(caps, **blocks)
    except ViewTooLarge as error:
        return error


class TestText:
    @given(pages, st.integers(0, 60), ends, counters)
    def test_it_fits(self, text: str, cap: int, end: Literal["head", "tail"], counter: Counter) -> None:
        kept = fit_text(text, cap, end, counter)
        assert kept == "" or counter.count(kept).tokens <= cap
        assert (kept == text) == (counter.count(text).tokens <= cap or not text)
        assert fit_text(kept, cap, end, counter) == kept

    @pytest.mark.promise("F20")
    @given(pages.filter(lambda text: "```" not in text and "~~~" not in text), st.integers(40, 60), ends)
    def test_lines_stay_whole(self, text: str, cap: int, end: Literal["head", "tail"]) -> None:
        """No line of these is larger than the cap: what stays is a run of lines from one end, as long as can be."""
        lines, kept = text.split("\n"), fit_text(text, cap, end, WORDS).split("\n")
        if kept != [""]:
            assert kept == (lines[: len(kept)] if end == "head" else lines[-len(kept) :])
        more = lines[: len(kept) + 1] if end == "head" else lines[-len(kept) - 1 :]
        assert kept == lines or words("\n".join(more)) > cap

    @pytest.mark.parametrize("end", ["head", "tail"])
    def test_a_line_larger_than_the_cap_is_cut_at_a_word(self, end: Literal["head", "tail"]) -> None:
        long = " ".join(f"w{n}" for n in range(100))
        kept = fit_text(f"# Title\n{long}" if end == "head" else f"{long}\nlast words", 10, end, WORDS)
        assert kept == (
            "# Title\nw0 w1 w2 w3 w4 w5 w6 w7" if end == "head" else "w92 w93 w94 w95 w96 w97 w98 w99\nlast words"
        )

    @pytest.mark.promise("I20")
    @given(st.text(alphabet="漢字かな語🙂", min_size=60, max_size=200), st.integers(1, 10), ends)
    def test_a_word_larger_than_the_cap_is_cut_at_a_character(
        self, text: str, cap: int, end: Literal["head", "tail"]
    ) -> None:
        kept = fit_text(text, cap, end, CHARS_4)
        assert kept
        assert len(kept) == 4 * cap
        assert text.startswith(kept) if end == "head" else text.endswith(kept)
        kept.encode()  # no half of a character

    def test_code_that_is_cut_is_closed(self) -> None:
        text = "# Build\n```sh\nmake all\nmake test\n```\n## Next"
        assert fit_text(text, 6, "head", WORDS) == "# Build\n```sh\nmake all\n```"
        assert fit_text(text, 6, "tail", WORDS) == "```sh\nmake test\n```\n## Next"

    def test_a_cap_of_nothing_keeps_nothing(self) -> None:
        assert fit_text("a b", 0, "head", WORDS) == ""


class TestDedupe:
    @pytest.mark.promise("S4.13", "F19")
    @pytest.mark.parametrize(
        "line",
        [
            "Likes tea",
            "  likes tea  ",
            "LIKES TEA",
            "- likes tea",
            "* likes tea",
            "• likes tea",
            "•likes tea",
            "likes \t tea",
        ],
    )
    def test_the_same_fact_in_other_clothes_is_dropped(self, line: str) -> None:
        assert dedupe(f"Born in Rome\n{line}\nHas a cat", "# Facts\n-   Likes   tea") == ("Born in Rome\nHas a cat", 1)

    @pytest.mark.promise("S4.13", "F19")
    @pytest.mark.parametrize(
        ("line", "memory"),
        [
            ("-5 degrees", "5 degrees"),
            ("*so* it goes", "so* it goes"),
            ("likes tea and milk", "likes tea"),
            ("", ""),
            ("   ", "\n"),
            ("-", "-"),
            ("--- x", "-- x"),
        ],
    )
    def test_what_is_not_the_same_stays(self, line: str, memory: str) -> None:
        assert dedupe(f"before\n{line}\nafter", memory) == (f"before\n{line}\nafter", 0)

    @pytest.mark.promise("S4.14")
    @given(pages, pages)
    def test_everything_else_is_unchanged(self, digest: str, memory: str) -> None:
        kept, removed = dedupe(digest, memory)
        known = {line_key(line) for line in memory.split("\n")} - {""}
        rest, lines = iter(digest.split("\n")), kept.split("\n") if kept or removed < digest.count("\n") + 1 else []
        assert all(line in rest for line in lines), "the kept lines are lines of the digest, in order"
        assert len(lines) + removed == digest.count("\n") + 1
        if "```" not in digest and "~~~" not in digest:
            assert lines == [line for line in digest.split("\n") if line_key(line) not in known]
        assert dedupe(kept, memory) == (kept, 0)

    @pytest.mark.promise("F19")
    def test_blank_lines_and_code_survive(self) -> None:
        digest = "likes tea\n\n```\nlikes tea\n```\n\nend"
        assert dedupe(digest, "likes tea\n```\n```") == ("\n```\nlikes tea\n```\n\nend", 1)


class TestHistory:
    @pytest.mark.promise("S4.15", "S4.16")
    @given(chats(lead=False), st.integers(1, 200), st.integers(1, 5))
    def test_newest_first_within_the_budget_with_a_floor(self, messages: list[Message], room: int, floor: int) -> None:
        made = timeline(messages)
        cut = cut_to_newest(made, room, floor)
        kept = messages[cut:]
        assert len(kept) >= min(floor, len(messages))
        assert kept[-1] is messages[-1]
        legal = [0, *made.cuts["step"]]
        assert cut in legal, "no step is split"
        size = made.prefix[-1] - made.prefix[cut]
        at_floor = max(place for place in legal if place <= max(0, len(messages) - floor))
        assert size <= room or cut == at_floor
        longer = [place for place in legal if place < cut]
        assert not longer or made.prefix[-1] - made.prefix[longer[-1]] > room or cut > at_floor

    def test_unanswered_messages_of_a_group_are_history_too(self) -> None:
        """A run of unanswered prompts must not escape the budget."""
        messages = [user(f"one two three {n}") for n in range(50)]
        assert cut_to_newest(timeline(messages), 12, 2) == 47


CAPS = AgentConfig(
    context_memory_max_words=20,
    context_summary_max_words=20,
    context_history_max_words=40,
    context_total_max_words=60,
)
LINES = "\n".join(f"fact number {n}" for n in range(10))
OTHERS = "\n".join(f"other fact {n}" for n in range(10))


class TestTotal:
    @pytest.mark.promise("S4.17")
    def test_history_gives_way_first_then_digest_then_memory(self) -> None:
        history = [user(f"message {n} has six words") for n in range(8)]
        whole = fit(replace(CAPS, context_total_max_words=1000), memory=LINES, digest=OTHERS, history=history)
        assert (words(whole.memory), words(whole.digest), len(whole.history)) == (18, 18, 8)
        seen = []
        for total in range(90, 11, -1):
            caps = replace(CAPS, context_total_max_words=total, context_history_max_words=10)
            made = fit(caps, memory=LINES, digest=OTHERS, history=history)
            seen.append((words(made.memory), words(made.digest), sum(words(each.text) for each in made.history)))
        assert all(after[n] <= before[n] for before, after in pairwise(seen) for n in range(3))
        assert all(digest == 18 or history == seen[-1][2] for _, digest, history in seen), "history before digest"
        assert all(memory == 18 or digest == 0 for memory, digest, _ in seen), "digest before memory"
        assert seen[0][1] == 18
        assert seen[-1][:2] == (0, 0)

    @pytest.mark.promise("S4.3", "F20")
    def test_which_end_stays_is_a_setting(self) -> None:
        text = "first line\nmiddle line\nlast line"
        caps = replace(
            CAPS,
            context_summary_max_words=2,
            context_memory_max_words=2,
            context_dedupe_summary_against_memory=False,
        )
        cases: list[tuple[End, str]] = [("head", "first line"), ("tail", "last line")]
        for end, stays in cases:
            settings = replace(caps, context_summary_end=end, context_memory_end=end)
            made = fit(settings, digest=text, memory=text)
            assert (made.digest, made.memory) == (stays, stays)

    @pytest.mark.parametrize("name", ["context_memory_end", "context_summary_end"])
    def test_an_end_must_be_head_or_tail(self, name: str) -> None:
        settings: dict[str, Any] = {name: "middle"}
        with pytest.raises(ConfigError, match='use "head" or "tail"'):
            AgentConfig(**settings)

    @pytest.mark.promise("S4.17", "F21")
    def test_huge_messages_are_shortened_before_digest_and_memory(self) -> None:
        history = [user("huge " * 500), assistant("vast " * 500)]
        made = fit(CAPS, memory=LINES, digest=OTHERS, history=history)
        assert (words(made.memory), words(made.digest)) == (18, 18), "their own caps are 20"
        assert made.report.shortened == 2
        assert all(message.text.endswith(" characters left out]") for message in made.history)
        room = 60 - words(made.memory) - words(made.digest)
        assert room - 8 < sum(words(message.text) for message in made.history) <= room
        assert [message.role for message in made.history] == ["user", "assistant"]

    @given(chats(lead=False), pages, pages, st.integers(1, 80), st.integers(0, 80))
    def test_messages_are_shortened_only_if_the_newest_alone_exceed_the_total(
        self, history: list[Message], memory: str, digest: str, room: int, more: int
    ) -> None:
        caps = replace(CAPS, context_history_max_words=room, context_total_max_words=room + more)
        made = attempt(caps, memory=memory, digest=digest, history=history)
        if isinstance(made, FittedBlocks) and made.report.shortened:
            kept = history[made.report.left_out :]
            assert sum(size_of(message, WORDS) for message in kept) > room + more

    @given(
        chats(lead=False), pages, pages, st.integers(1, 60), st.integers(1, 60), st.integers(0, 80), st.integers(1, 4)
    )
    def test_it_fits_or_says_so(
        self, history: list[Message], memory: str, digest: str, cap: int, room: int, more: int, floor: int
    ) -> None:
        caps = AgentConfig(
            context_memory_max_words=cap,
            context_summary_max_words=cap,
            context_history_max_words=room,
            context_total_max_words=room + more,
            context_min_recent_messages=floor,
        )
        made = attempt(caps, memory=memory, digest=digest, history=history)
        if isinstance(made, ViewTooLarge):
            assert made.tokens > room + more
            assert made.bill["system"] == 0, "memory and digest were given up before"
            return
        assert words(made.memory) <= cap
        assert words(made.digest) <= cap
        said = sum(size_of(message, WORDS) for message in made.history)
        assert words(frame(made.memory, made.digest)) + said <= room + more
        assert made == attempt(caps, memory=memory, digest=digest, history=history), "the same again"
        assert len(made.history) >= min(floor, len(history))
        kept = history[len(history) - len(made.history) :]
        assert [message.role for message in made.history] == [message.role for message in kept]
        assert [message.calls for message in made.history] == [message.calls for message in kept]
        assert made.report.left_out + len(made.history) == len(history)


class TestStub:
    @given(texts(80), st.integers(0, 80), counters)
    def test_a_shortened_message_is_smaller(self, text: str, room: int, counter: Counter) -> None:
        message = user(text)
        made = shorten(message, room, counter)
        if made is None:
            return
        assert size_of(made, counter) < size_of(message, counter)
        shown, _, line = made.text.rpartition("\n")
        assert text.startswith(shown)
        assert line == f"[{len(text) - len(shown):,} characters left out]"

    def test_calls_ids_and_pictures_are_not_touched(self) -> None:
        call = ToolCall(id="a", name="run", arguments='{"x": 1}')
        picture = Media(kind="image", data="AAAA")
        made = shorten(Message(role="assistant", parts=(Text(text="word " * 99), call, picture)), 40, WORDS)
        assert made is not None
        assert made.parts[1:] == (call, picture)
        result = shorten(tool("a", "word " * 99), 20, WORDS)
        assert result is not None
        assert result.results[0].call_id == "a"
        assert size_of(result, WORDS) <= 20

    def test_a_short_message_stays(self) -> None:
        assert shorten(user("hi"), 0, WORDS) is None


@pytest.mark.promise("S4.20")
def test_the_report_says_what_was_done() -> None:
    made = fit(CAPS, memory=LINES, digest=LINES, history=[user("a b c d e f g")] * 9)
    report = made.report
    assert report.before == {"memory": 30, "digest": 30, "history": 63}
    assert report.after == {"memory": 18, "digest": 0, "history": 35}
    assert (report.removed_lines, report.left_out, report.fallback) == (10, 4, False)
    assert str(report) == (
        "memory 30 → 18, digest 30 → 0, history 63 → 35 words; 10 duplicate digest lines removed; 4 messages left out"
    )
