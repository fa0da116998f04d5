"""Sliding window: whole turns, a fixed budget, a boundary that only moves forward, and sizes."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.compat.sliding_window import DEFAULT_HISTORY_TOKEN_LIMIT, DIVIDER, SlidingWindow
from foldline.errors import ConfigError
from foldline.measure.estimator import CHARS_4, WORDS, Count, Counter
from foldline.message import Message, ToolCall, assistant, system, tool, user
from foldline.policy import Policy
from foldline.wire.validate import check
from support.chats import chats, wire

WORDY: Counter = WORDS


@dataclass(frozen=True)
class Exact:
    """A tokenizer that knows: one token a character."""

    name: str = "letters"
    exact: bool = True

    def count(self, text: str) -> Count:
        return Count(len(text), True, self.name)


def exchange(n: int, tokens: int = 10) -> list[dict[str, str]]:
    """A turn of a given size: characters by four, half asked and half answered."""
    half = 2 * tokens
    return [
        {"role": "user", "content": f"q{n} ".ljust(half, "?")},
        {"role": "assistant", "content": f"a{n} ".ljust(half, ".")},
    ]


def talked(turns: int, cap: int = 35, **knobs: Any) -> SlidingWindow:
    window = SlidingWindow(cap, **knobs)
    for n in range(turns):
        window.add(*exchange(n))
    return window


def sent(window: SlidingWindow) -> list[str]:
    return [message["content"].split()[0] for message in window.request()]


class TestCounting:
    @pytest.mark.promise("S2.7", "S2.8")
    def test_a_count_says_whether_it_is_exact(self) -> None:
        assert SlidingWindow().history == Count(0, False, "chars/4")
        window = SlidingWindow()
        window.add({"role": "user", "content": "x" * 401})
        assert (window.history.tokens, window.history.exact) == (101, False)
        window.use_model("", counter=Exact())
        assert (window.history.tokens, window.history.exact) == (401, True)

    @pytest.mark.promise("S2.10", "S2.17")
    def test_sizes_are_shown_with_a_tilde_when_estimated(self) -> None:
        window = SlidingWindow()
        window.add({"role": "user", "content": "x" * 300_000}, {"role": "assistant", "content": "y" * 8_000})
        assert [str(turn.size) for turn in window.turns] == ["~77k"]
        assert str(window.history) == "~77k"
        assert str(window) == "~77k of 100k, 1 turns live, 0 above the line"
        window.use_model("", counter=Exact())
        assert str(window.turns[0].size) == "308k"

    @pytest.mark.promise("S2.10")
    def test_a_picture_is_never_exact(self) -> None:
        window = SlidingWindow(counter=Exact())
        picture = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
        window.add({"role": "user", "content": [{"type": "text", "text": "see"}, picture]})
        window.add({"role": "assistant", "content": "a cat"}, *exchange(1))
        assert str(window.turns[0].size).startswith("~")
        assert not str(window.turns[1].size).startswith("~")

    @pytest.mark.promise("S2.10")
    def test_a_tokenizer_that_gives_up_is_not_called_exact(self) -> None:
        class Doubtful(Exact):
            def count(self, text: str) -> Count:
                return Count(len(text), "huge" not in text, self.name)

        window = SlidingWindow(counter=Doubtful())
        window.add({"role": "user", "content": "a"}, {"role": "assistant", "content": "huge"}, *exchange(1))
        assert [turn.size.exact for turn in window.turns] == [False, True]

    @pytest.mark.promise("S2.6", "S2.9")
    def test_changing_the_model_recounts_every_message(self) -> None:
        """The lookup is by model: exact where its tokenizer is installed, characters by four otherwise."""
        window = talked(3, cap=1000)
        before = window.history
        window.use_model("claude-opus-4-5")
        assert window.history == before, "no tokenizer of Claude's is public"
        window.use_model("gpt-4o")
        exact = pytest.importorskip("splintr") and window.history
        assert exact.exact
        assert exact.tokens != before.tokens
        assert [turn.size.exact for turn in window.turns] == [True] * 3
        window.use_model("somebody/unknown-model")
        assert window.history == before

    @pytest.mark.promise("S2.6")
    def test_changing_the_model_keeps_every_message_and_never_moves_the_boundary_back(self) -> None:
        window = talked(9)
        place, messages = window.boundary, list(window.messages)
        window.use_model("", counter=Exact())
        assert window.boundary > place, "the same turns are larger now"
        place = window.boundary
        window.use_model("")
        assert window.boundary == place
        assert window.messages == messages

    @pytest.mark.promise("S2.11")
    def test_budgets_are_in_tokens_with_any_counter(self) -> None:
        window = talked(9, cap=35)
        assert window.history.tokens <= 35 < sum(turn.size.tokens for turn in window.turns[-4:])


class TestTurns:
    @pytest.mark.promise("S2.12", "S2.16")
    def test_a_turn_is_a_prompt_with_everything_up_to_its_reply(self) -> None:
        window = SlidingWindow()
        window.add(user("go"), assistant("", ToolCall(id="a", name="run"), ToolCall(id="b", name="run")))
        window.add(tool("a", "1"), tool("b", "2"), assistant("", ToolCall(id="c", name="run")), tool("c", "3"))
        assert [(turn.first, turn.last, turn.complete) for turn in window.turns] == [(0, 5, False)]
        window.add(assistant("done"), user("thanks"))
        assert [(turn.first, turn.last, turn.complete) for turn in window.turns] == [(0, 6, True), (7, 7, False)]

    @pytest.mark.promise("S2.12", "S2.16")
    def test_the_same_turns_in_every_format(self) -> None:
        talk = [
            user("go"),
            assistant("", ToolCall(id="a", name="run")),
            tool("a", "1", name="run"),
            assistant("done"),
            user("and?"),
        ]
        for provider in ("openai", "anthropic", "openai-responses", "gemini"):
            window = SlidingWindow()
            window.add(*wire(talk, provider))
            assert [(turn.first, turn.last) for turn in window.turns] == [(0, 3), (4, 4)], provider

    @pytest.mark.promise("S2.13", "S2.19", "F13")
    @given(chats(lead=False), st.integers(1, 120), st.sampled_from([CHARS_4, WORDY]))
    def test_turns_leave_whole_and_the_newest_stays(self, messages: list[Message], cap: int, counter: Counter) -> None:
        window = SlidingWindow(cap, counter=counter)
        boundary = 0
        for count, message in enumerate(messages, start=1):
            window.add(message)
            assert window.boundary >= boundary, "the line only moves down"
            boundary = window.boundary
            request = window.request()
            assert request == messages[boundary:count]
            assert all(one is other for one, other in zip(request, messages[boundary:count], strict=True))
        window.complete_turn()
        live = [turn for turn in window.turns if turn.live]
        assert window.boundary in {turn.first for turn in window.turns}
        assert window.history.tokens <= cap or len(live) == 1
        assert not live or window.boundary == 0 or sum(turn.size.tokens for turn in live) <= cap or len(live) == 1
        before = window.turns[len(window.turns) - len(live) - 1] if len(live) < len(window.turns) else None
        assert before is None or window.history.tokens + before.size.tokens > cap, "no turn leaves that need not"
        assert not check("openai", wire(window.request()))

    @pytest.mark.promise("S2.19", "F13")
    def test_one_huge_turn_stays(self) -> None:
        """The rule as written would empty the window."""
        window = talked(3)
        window.add(*exchange(3, tokens=5000))
        assert sent(window) == ["q3", "a3"]

    @pytest.mark.promise("S2.19")
    def test_an_interrupted_turn_does_not_stop_clipping(self) -> None:
        window = SlidingWindow(30)
        for n in range(20):
            window.add(user(f"{n} ".ljust(40)), assistant("", ToolCall(id=f"call_{n}", name="run")))
        assert [turn.complete for turn in window.turns] == [True] * 19 + [False]
        assert window.history.tokens <= 40, "the turn that is under way is not complete"
        window.complete_turn()
        assert window.history.tokens <= 30


class TestWindow:
    @pytest.mark.promise("S2.1", "S2.14", "S2.19", "S2.20")
    def test_the_oldest_turns_leave_after_each_completed_turn(self) -> None:
        window = talked(3)
        assert sent(window) == ["q0", "a0", "q1", "a1", "q2", "a2"]
        window.add({"role": "user", "content": "q3 ".ljust(20)})
        assert len(window.request()) == 7, "nothing leaves before the reply is there"
        window.add({"role": "assistant", "content": "a3 ".ljust(20)})
        assert sent(window) == ["q1", "a1", "q2", "a2", "q3", "a3"]
        assert window.history.tokens <= 35

    @pytest.mark.promise("S2.1", "S2.2", "S2.15", "S2.23")
    def test_the_default_stays_well_under_the_window(self) -> None:
        """Without any configuration: 100,000 for history, so that 150,000 hold system prompt and summary as well."""
        assert DEFAULT_HISTORY_TOKEN_LIMIT == 100_000
        window = SlidingWindow(summary_tokens=20_000)
        largest = 0
        for n in range(60):
            window.add(*exchange(n, tokens=5000))
            total = sum((count.tokens for count in window.budgets("s" * 120_000).values()), 0)
            largest = max(largest, total)
        assert 120_000 < largest <= 150_000

    @pytest.mark.promise("S2.3", "S2.4", "F23")
    def test_three_budgets_and_no_total(self) -> None:
        window = SlidingWindow(35, summary_tokens=12)
        window.add({"role": "system", "content": "s" * 4_000_000})
        for n in range(9):
            window.add(*exchange(n))
        budgets = window.budgets()
        assert budgets["system"].tokens == 1_000_000, "the user's affair, however large"
        assert budgets["history"].tokens <= 35
        assert 0 < budgets["summary"].tokens <= 12
        assert window.request()[0] is window.messages[0]

    @pytest.mark.promise("S2.5", "S2.21")
    def test_added_messages_stay_unchanged(self) -> None:
        messages = [message for n in range(30) for message in exchange(n)]
        copies = copy.deepcopy(messages)
        window = SlidingWindow(35)
        window.add(*messages)
        assert window.boundary > 0
        assert messages == copies
        assert all(one is other for one, other in zip(window.messages, messages, strict=True))

    @pytest.mark.promise("S2.18")
    def test_each_agent_has_its_own_boundary(self) -> None:
        first, second = talked(9), talked(2)
        assert (first.boundary, second.boundary) == (12, 0)
        assert first.request()[0] is first.messages[first.boundary]

    @pytest.mark.promise("S2.22")
    def test_the_divider_only_moves_down(self) -> None:
        window = SlidingWindow(35)
        assert window.divider is None
        places: list[int] = []
        for n in range(9):
            window.add(*exchange(n))
            shown = window.scrollback()
            assert shown.count(DIVIDER) == (window.divider is not None)
            assert [message for message in shown if message != DIVIDER] == window.messages
            if window.divider is not None:
                assert shown[window.divider + 1 :] == window.request(), "below the line is what the model sees"
                places.append(shown.index(DIVIDER))
        assert places == [2, 4, 6, 8, 10, 12]

    @pytest.mark.promise("S2.19", "S2.25", "F13", "I22")
    def test_a_budget_of_zero_is_off(self) -> None:
        window = talked(200, cap=0)
        assert window.boundary == 0
        assert window.request() == window.messages
        assert "of no limit" in str(window)

    @pytest.mark.promise("S2.25")
    def test_the_budget_can_be_changed_at_any_time(self) -> None:
        window = talked(9, cap=1000)
        assert window.boundary == 0
        window.history_tokens = 35
        assert window.boundary == 12
        window.history_tokens = 1000
        assert window.boundary == 12, "what left stays above the line"
        window.add(*exchange(9))
        assert len(window.request()) == 8
        for wrong in (-1, 1.5, True, None):
            with pytest.raises(ConfigError, match="use 0 for no limit"):
                window.history_tokens = wrong  # type: ignore[assignment]  # that it is refused is the point

    def test_an_empty_window_has_no_turns_and_no_divider(self) -> None:
        window = SlidingWindow()
        assert (window.request(), window.turns, window.scrollback()) == ([], (), [])
        window.add(system("You are an agent."))
        assert (window.turns, window.scrollback(), len(window.request())) == ((), [], 1)
        window.complete_turn()
        assert str(window) == "~0 of 100k, 0 turns live, 0 above the line"

    @pytest.mark.promise("S2.14")
    def test_clipped_turns_leave_nothing_behind(self) -> None:
        window = talked(9)
        assert window.summary == ""
        assert window.request() == window.messages[12:]

    @pytest.mark.promise("S2.19")
    def test_the_preset_is_the_same_rule(self) -> None:
        assert str(Policy.preset("ikigai").rules[0]) == f"clip when history > {DEFAULT_HISTORY_TOKEN_LIMIT:,}"
        assert Policy.preset("balanced").target_ratio > 0, "our own policy cuts in chunks, to spare the prompt cache"


class TestSummary:
    @pytest.mark.promise("S2.24")
    def test_clipped_turns_feed_a_summary_with_its_own_budget(self) -> None:
        window = talked(9, summary_tokens=100)
        first = window.request()[0]
        assert first["role"] == "user"
        assert "12 earlier messages" in first["content"]
        assert window.summary in first["content"]
        assert window.request()[1:] == window.messages[12:]
        assert window.history.tokens <= 35, "a summary takes nothing from the history"

    @pytest.mark.promise("S2.24", "S2.25")
    def test_a_caller_can_write_the_summary(self) -> None:
        calls = []

        def summarize(clipped: Any, before: str) -> str:
            calls.append([message["content"].split()[0] for message in clipped])
            return "\n".join(filter(None, [before, *(f"said {word}" for word in calls[-1])]))

        window = SlidingWindow(35, summary_tokens=6, summarize=summarize)
        for n in range(9):
            window.add(*exchange(n))
        assert calls == [[f"q{n}", f"a{n}"] for n in range(6)], "each turn once"
        assert window.summary == "said a4\nsaid q5\nsaid a5", "the newest end, in whole lines"
        window.summary_tokens = 2
        assert window.summary == "said a5"
        window.summary_tokens = 0
        assert window.summary == ""
        assert window.request() == window.messages[12:]

    def test_a_summary_has_the_callers_format(self) -> None:
        things: list[Any] = [
            SimpleNamespace(role="user", content="q" * 40),
            SimpleNamespace(role="assistant", content="a"),
        ]
        window = SlidingWindow(5, summary_tokens=100)
        window.add(*things * 3)
        digest = window.request()[0]
        assert (digest.role, "condensed" in digest.content) == ("user", True)
        assert all(one is other for one, other in zip(window.request()[1:], things, strict=True))

    @pytest.mark.promise("I9")
    @pytest.mark.parametrize(
        "answer",
        [
            "",
            " \n ",
            None,
            RuntimeError("no network"),
            '<tool_call>{"name": "bash", "arguments": {}}</tool_call>',
            "Please provide the conversation.",
            '{"error": {"message": "Overloaded"}}',
            "<think>What did they say?</think>",
        ],
    )
    def test_a_summarizer_that_fails_changes_nothing_and_sees_the_messages_later(self, answer: Any) -> None:
        answers: list[Any] = ["They said hello.", answer, "They said hello and more."]
        seen: list[list[str]] = []

        def summarize(clipped: Any, before: str) -> Any:
            seen.append([message["content"].split()[0] for message in clipped])
            found = answers[len(seen) - 1]
            if isinstance(found, Exception):
                raise found
            return found

        window = talked(4, summary_tokens=50, summarize=summarize)
        assert window.summary == "They said hello."
        window.add(*exchange(4))
        assert window.summary == "They said hello."
        assert "They said hello." in window.request()[0]["content"]
        window.add(*exchange(5))
        assert window.summary == "They said hello and more."
        assert seen == [["q0", "a0"], ["q1", "a1"], ["q1", "a1", "q2", "a2"]]

    def test_a_summary_names_no_tool_that_a_list_does_not_have(self) -> None:
        window = talked(30, cap=100, summary_tokens=300)
        assert window.summary
        assert "recall" not in window.summary
        assert "[#" not in window.summary


class TestRewind:
    @given(turns=st.integers(1, 12), share=st.floats(0, 1), summary=st.sampled_from([0, 60]))
    def test_rewinding_gives_the_window_that_was_there_before(self, turns: int, share: float, summary: int) -> None:
        index = int(share * 2 * turns)
        window, before = talked(turns, summary_tokens=summary), SlidingWindow(35, summary_tokens=summary)
        before.add(*window.messages[:index])
        is_boundary_removed = index <= window.boundary
        window.rewind(index)
        assert window.messages == before.messages
        assert [turn.size for turn in window.turns] == [turn.size for turn in before.turns]
        if is_boundary_removed:
            assert window.request() == before.request()
            assert window.summary == before.summary
        window.add(*exchange(99))
        assert sent(window)[-1] == "a99"

    def test_the_boundary_stays_if_it_is_before_the_removed_messages(self) -> None:
        window = talked(6)
        boundary = window.boundary
        window.rewind(len(window.messages) - 2)
        assert window.boundary == boundary
        assert len(window.messages) == 10

    def test_clear_keeps_only_the_system_messages(self) -> None:
        window = SlidingWindow(35, summary_tokens=60)
        window.add({"role": "system", "content": "Be brief."})
        for number in range(6):
            window.add(*exchange(number))
        assert window.summary
        window.clear()
        assert window.request() == window.messages == [{"role": "system", "content": "Be brief."}]
        assert (window.summary, window.divider, window.turns) == ("", None, ())

    @pytest.mark.parametrize("index", [-1, 13])
    def test_an_index_outside_the_messages_is_refused(self, index: int) -> None:
        with pytest.raises(ConfigError, match="cannot rewind to message"):
            talked(6).rewind(index)


class TestFunctionsAsCounters:
    @pytest.mark.promise("S2.7", "S2.10")
    def test_a_plain_function_is_a_counter(self) -> None:
        window = SlidingWindow(1_000, counter=len)
        window.add(*exchange(0, 20_000))
        assert (window.history.tokens, str(window.history)) == (80_000, "~80k")
        assert window.turns[0].size.source == "len"

    @pytest.mark.promise("S2.7", "S2.10")
    def test_a_function_can_say_that_its_count_is_exact(self) -> None:
        window = SlidingWindow(100_000, counter=lambda text: (len(text), True))
        window.add(*exchange(0, 20_000))
        assert str(window.history) == "80k"

    def test_something_that_cannot_count_is_refused(self) -> None:
        with pytest.raises(ConfigError, match="cannot count tokens with 7"):
            SlidingWindow(counter=7)  # type: ignore[arg-type]
