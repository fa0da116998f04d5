"""Counter-examples that the properties of the engine once found, each as small as it can be told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from foldline.errors import ViewTooLarge
from foldline.message import Message, Text, ToolCall, ToolResult, assistant, system, tool, user
from foldline.policy import Policy
from foldline.session import Session
from foldline.view.compose import View

FULL = "fold when request > 100%"


def session(window: int, *rules: str, pins: tuple[int, ...] = (), **knobs: Any) -> Session:
    """A session in a small window, counted in characters over 4 so that sizes can be read off."""
    knobs = {"counter": "chars/4", "leave": "marker", "reply_tokens": 0, "window_tokens": window, **knobs}
    made = Session(policy=Policy().but(**{"rules": rules or (FULL,), **knobs}))
    made.timeline.pins.update(pins)
    return made


def step(name: str, chars: int = 400) -> list[Message]:
    """A call and its result of so many characters."""
    return [assistant("", ToolCall(id=name, name="run")), tool(name, name.ljust(chars, "r"))]


def talk(turns: int, chars: int = 200) -> list[Message]:
    """Prompts and replies."""
    return [
        message
        for turn in range(turns)
        for message in (user(f"ask {turn} ".ljust(chars, "u")), assistant(f"say {turn} ".ljust(chars, "a")))
    ]


def recount(made: Session, view: View) -> int:
    """The size of a view, counted anew."""
    return made.state.tools + sum(map(made.size, view.messages))


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


class TestLanding:
    def test_a_fold_that_had_to_be_made_lands_below_its_trigger_too(self) -> None:
        """A floor of almost the whole window once left a request that asked for the next fold at once."""
        made = session(1_000, "fold when request > 75%", keep_tokens=900)
        made.add(*talk(12, chars=180), user("and?"))
        view = made.view()
        assert made.folds == 1
        assert view.tokens <= 750
        assert not view.need

    @pytest.mark.parametrize("rule", ["history > 200", "history >= 200", "count > 4", "count >= 4"])
    def test_a_fold_satisfies_every_rule_that_asked_for_it(self, rule: str) -> None:
        made = session(1_000, "fold when request > 75%", f"clip when {rule}", target_ratio=0.7)
        made.add(*talk(9), user("and?"))
        view = made.view()
        assert made.folds == 1
        assert not view.need
        assert made.view().messages == view.messages

    def test_at_least_is_already_too_much_when_it_is_reached(self) -> None:
        """`>= 50%` of 1,000 lets 499 stand, not 500."""
        made = session(1_000, "clip when request >= 50%", leave="nothing")
        made.add(*talk(12, chars=200), user("u" * 200))
        assert made.view().tokens < 500

    def test_what_stands_in_front_is_counted_for_each_cut(self) -> None:
        """Seven messages of 57 fit into 400, but in front of a reply they need a line more: then six stay, not none."""
        made = session(400, leave="nothing", keep_tokens=2_000)
        made.add(*talk(12, chars=228), user("and?"))
        view = made.view()
        assert (view.cut, len(view.messages)) == (18, 7)
        assert recount(made, view) == view.tokens == 6 * 57 + 1

    def test_one_request_pays_for_one_fold(self) -> None:
        """By cost, the fold just made once looked like a bargain to make again."""
        made = Session(model="claude-sonnet-5", policy=Policy.preset("thrifty").but(window_tokens=8_000))
        for number in range(60):
            made.add(*talk(1, chars=2_000), user(f"{number}?"))
            folds = made.folds
            messages = made.view().messages
            assert made.view().messages == messages
            assert made.folds - folds <= 1
            made.add(assistant("yes"))
        assert made.folds


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
            assert f"{len(kept):,} of {whole} characters shown; the whole is {name}," in text

    def test_a_result_is_not_replaced_by_a_longer_stub(self) -> None:
        made = session(10_000, prune_arrival_tokens=1)
        short, long = (ToolResult(call_id=name, parts=(Text(text=name * 9),)) for name in ("x", "y" * 400))
        made.add(user("go"), assistant("", *(ToolCall(id=part.call_id, name="run") for part in (short, long))))
        made.add(Message(role="tool", parts=(short, long)))
        first, second = made.view().messages[-1].results
        assert first is short
        assert second.text.endswith("the whole is #3, ask recall for it]")

    def test_long_arguments_give_way_as_json(self) -> None:
        made = session(400)
        call = ToolCall(id="w", name="write", arguments=json.dumps({"path": "a.py", "text": "解" * 3_000}))
        made.add(user("go"), assistant("", call), tool("w", "done"))
        view = made.view()
        [sent] = [call for message in view.messages for call in message.calls]
        left = json.loads(sent.arguments)
        assert left["path"] == "a.py"
        assert left["text"] == "解" * 100 + "[2,900 characters left out; the whole is #2]"


class TestInFront:
    @pytest.mark.parametrize("knobs", [{"leave": "nothing"}, {"leave": "digest", "digest_role": "system"}])
    def test_a_line_stands_in_front_of_a_reply_and_is_counted(self, knobs: dict[str, Any]) -> None:
        """A conversation begins with a user; where none is left in front, one line speaks for those that left."""
        made = session(300, pins=(2,), **knobs)
        made.add(system("Be brief."), user("Go."), *step("a", 40), *talk(4), user("On."), *step("b"))
        view = made.view()
        assert view.cut == 13
        shown = [message for message in view.messages if message.role != "system"]
        assert shown[0].text == "[9 earlier messages not shown here: of #2-13, ask recall for them]"
        assert [message.role for message in shown[1:]] == ["assistant", "tool", "user", "assistant", "tool"]
        assert recount(made, view) == view.tokens == sum(view.blocks.values()) <= 300

    def test_a_marker_counts_what_is_really_not_shown(self) -> None:
        made = session(300, keep_first_prompt=True)
        made.add(user("the task"), assistant("a" * 600), *talk(2), user("and?"))
        view = made.view()
        assert view.cut == 6
        assert [message.text for message in view.messages[:2]] == [
            "the task",
            "[5 earlier messages not shown here: of #1-6, ask recall for them]",
        ]


class TestRefusal:
    @pytest.mark.parametrize("knobs", [{}, {"counter": "model"}, {"rules": ("warn when request >= 90%",)}])
    def test_the_bill_adds_up(self, knobs: dict[str, Any]) -> None:
        """An estimate is refused by its upper bound; the bill once named less than it asked for."""
        made = session(300, **knobs)
        made.add(system("s" * 400), user("u" * 4_000))
        with pytest.raises(ViewTooLarge) as raised:
            made.view()
        error = raised.value
        assert error.tokens == sum(error.bill.values()) > error.limit == 300
        assert error.bill["system"] >= 100
