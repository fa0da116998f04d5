"""What a fold keeps: pins, prompts that wait, words beside results, and a user's line in front."""

from __future__ import annotations

import json
from typing import Any

import pytest

from foldline.message import Message, Text, ToolCall, ToolResult, assistant, system, tool, user
from foldline.view.compose import messages_of
from support.small_sessions import balanced, recount, session, step, steps, talk


class TestPins:
    @pytest.mark.parametrize("knobs", [{"prune_arrival_tokens": 50}, {"prune_fold_tokens": 50}])
    def test_a_pinned_result_is_not_pruned(self, knobs: dict[str, Any]) -> None:
        """Not on arrival, and not at a fold."""
        made = session(1_500, pins=(12,), preview_chars=50, target_ratio=0.9, **knobs)
        made.add(user("go"), *(message for name in "abcdefg" for message in step(name, 1_200)))
        assert sum(message is made.timeline.messages[12] for message in made.view().messages) == 1

    def test_a_pinned_result_stays_whole_when_the_window_is_full(self) -> None:
        made = session(450, pins=(2,), preview_chars=50)
        calls = tuple(ToolCall(id=name, name="run") for name in "xy")
        made.add(user("go"), assistant("", *calls), tool("x", "x" * 1_200), tool("y", "y" * 1_200))
        first, second = made.view().messages[-2:]
        assert first is made.timeline.messages[2]
        assert second.results[0].text.startswith("y" * 50 + "\n[pruned")

    def test_a_pin_among_results_stays_with_its_call(self) -> None:
        made = session(300, pins=(3,))
        calls = tuple(ToolCall(id=name, name="run") for name in "xy")
        made.add(user("go"), assistant("", *calls), tool("x", "1"), tool("y", "2"), *talk(6))
        view = made.view()
        assert view.cut > 3
        assert [message.role for message in view.messages].count("tool") == 2
        assert [call.id for message in view.messages for call in message.calls] == ["x", "y"]


class TestPrompts:
    def test_prompts_wait_together_whatever_stands_between_them(self) -> None:
        """A note of the host between two prompts once made the first one look answered."""
        made = session(200)
        waiting = [user("first this"), user("the host says hello", kind="note"), user("then that")]
        made.add(*talk(4), *waiting)
        view = made.view()
        assert view.cut > 0
        assert list(view.messages[-3:]) == waiting

    @pytest.mark.parametrize(
        "text",
        [
            "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>",
            "# AGENTS.md instructions\n\n<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>",
            "<environment_context>\n  <cwd>/w</cwd>\n</environment_context>",
            "<user_instructions>\nBe brief.\n</user_instructions>",
            "<turn_aborted>\nThe user interrupted the previous turn on purpose.\n</turn_aborted>",
            "[Request interrupted by user]",
        ],
    )
    def test_text_of_the_agent_program_is_neither_the_first_nor_the_newest_prompt(self, text: str) -> None:
        made = session(400, keep_first_prompt=True)
        made.add(user(text), user("port the parser"), *talk(4), user("now test it"), assistant("tested"))
        made.add(user(text), *step("a", 900), *step("b", 900))
        view = made.view()
        assert view.cut > 0
        prompts = [message.text for message in view.messages if message.is_prompt]
        assert prompts == ["port the parser", "now test it"]

    def test_words_beside_results_stay_and_count_as_what_is_shown(self) -> None:
        """The user spoke in the message that carries results; the results leave with their call, the words stay."""
        made = session(400)
        result = ToolResult(call_id="x", parts=(Text(text="r" * 800),))
        spoken = Message(role="user", parts=(result, Text(text="and now this")))
        made.add(user("go"), assistant("", ToolCall(id="x", name="run")), spoken, *step("a", 600), *step("b", 900))
        view = made.view()
        assert view.cut == 5
        assert [message.text for message in view.messages if message.is_prompt] == ["and now this"]
        assert [result.call_id for message in view.messages for result in message.results] == ["b"]
        assert recount(made, view) == view.tokens == sum(view.blocks.values())


class TestInFront:
    @pytest.mark.parametrize("knobs", [{"leave": "nothing"}, {"leave": "digest", "digest_role": "system"}])
    def test_a_line_stands_in_front_of_a_reply_and_is_counted(self, knobs: dict[str, Any]) -> None:
        """A conversation begins with a user; where none is left in front, one line speaks for those that left."""
        made = session(300, pins=(2,), **knobs)
        made.add(system("Be brief."), user("Go."), *step("a", 40), *talk(4), user("On."), *step("b"))
        view = made.view()
        assert view.cut == 13
        shown = [message for message in view.messages if message.role != "system"]
        assert shown[0].text == "[9 earlier messages not shown here: of #2-13]"
        assert [message.role for message in shown[1:]] == ["assistant", "tool", "user", "assistant", "tool"]
        assert recount(made, view) == view.tokens == sum(view.blocks.values()) <= 300

    def test_a_marker_counts_what_is_really_not_shown(self) -> None:
        made = session(300, keep_first_prompt=True)
        made.add(user("the task"), assistant("a" * 600), *talk(2), user("and?"))
        view = made.view()
        assert view.cut == 6
        assert [message.text for message in view.messages[:2]] == [
            "the task",
            "[5 earlier messages not shown here: of #1-6]",
        ]


class TestStubs:
    def test_a_stub_of_a_stub_tells_of_the_whole(self) -> None:
        """Pruned on arrival and pruned again when the window was full: the figures are those of the record."""
        made = session(600, prune_arrival_tokens=300, preview_chars=1_000)
        made.add(user("go"), *step("a", 4_000), user("u" * 1_600))
        made.add(*step("b", 2_400))
        shown = [message.results[0].text for message in made.view().messages if message.results]
        assert shown
        for text in shown:
            name, whole = ("#3", "4,000") if text.startswith("a") else ("#6", "2,400")
            kept = text.split("\n[pruned, ")[0]
            assert f"{len(kept):,} of {whole} characters shown; the whole is {name}]" in text

    def test_a_result_is_not_replaced_by_a_longer_stub(self) -> None:
        made = session(10_000, prune_arrival_tokens=1)
        short, long = (ToolResult(call_id=name, parts=(Text(text=name * 9),)) for name in ("x", "y" * 400))
        made.add(user("go"), assistant("", *(ToolCall(id=part.call_id, name="run") for part in (short, long))))
        made.add(Message(role="tool", parts=(short, long)))
        first, second = made.view().messages[-1].results
        assert first is short
        assert second.text.endswith("the whole is #3]")

    def test_long_arguments_give_way_as_json(self) -> None:
        made = session(400)
        call = ToolCall(id="w", name="write", arguments=json.dumps({"path": "a.py", "text": "解" * 3_000}))
        made.add(user("go"), assistant("", call), tool("w", "done"))
        view = made.view()
        [sent] = [call for message in view.messages for call in message.calls]
        left = json.loads(sent.arguments)
        assert left["path"] == "a.py"
        assert left["text"] == "解" * 100 + "[2,900 characters left out; the whole is #2]"


def test_a_small_window_keeps_the_talk_and_not_the_room_for_a_digest() -> None:
    """The cap of a digest, 2,000 tokens, once made every fold in a window of that size impossible."""
    small = balanced(1_200)
    small.add(system("Be brief."), user("Fix the build. " * 10), *steps(20))
    view = small.view()
    assert view.tokens <= 1_200
    assert any(message.text == "Fix the build. " * 10 for message in view.messages)
    assert view.messages[-1].results


def test_views_that_grow_are_the_views_made_from_scratch() -> None:
    """A view is carried on from the last one; folds, stubs and late system messages must not leave it behind."""
    long = balanced(3_000)
    for number, message in enumerate([system("a"), system("b"), user("go"), *steps(60, chars=700), system("note")]):
        long.add(message)
        if number >= 3 and message.role != "assistant":
            assert long.view().messages == messages_of(long.timeline)
    assert long.folds > 3
