"""A refusal has a bill that adds up, and a setting means what it says."""

from __future__ import annotations

import inspect
import json
from typing import Any

import pytest

from foldline.errors import ViewTooLarge
from foldline.message import Message, Text, Thinking, ToolCall, assistant, system, tool, user
from foldline.policy import Policy, presets
from foldline.session import Session
from support.knobs import small
from support.small_sessions import cuts, exchange, session, tight

FOLDS = ("balanced", "thrifty", "indus", "indus-framework")


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

    def test_the_bill_has_no_thinking_that_the_provider_drops(self) -> None:
        made = Session(model="gpt-5", policy=Policy.preset("verbatim").but(window_tokens=300, reply_tokens=0))
        thought = Message(role="assistant", parts=(Thinking(text="hm " * 900, signature="c2ln"), Text(text="a" * 900)))
        made.add(user("u" * 900), thought, user("v" * 900))
        with pytest.raises(ViewTooLarge) as raised:
            made.view()
        error = raised.value
        assert error.tokens == sum(error.bill.values())
        assert all(amount >= 0 for amount in error.bill.values())
        assert error.bill["history"] < 900


class TestBill:
    @pytest.mark.promise("F16")
    def test_call_arguments_count_as_they_are_sent(self) -> None:
        """Escapes and quotes are on the wire too."""
        text = 'say "hi"\n' * 400
        arguments = json.dumps({"text": text})
        made = Session(policy=Policy.preset("awaken"))
        made.add(user("go"), assistant("", ToolCall(id="a", name="write", arguments=arguments)), tool("a", "ok"))
        assert made.view().tokens >= len(arguments) // 4 > len(text) // 4

    @pytest.mark.promise("F16")
    def test_tool_schemas_count_and_a_request_above_all_floors_is_refused_with_its_bill(self) -> None:
        schema = {"name": "run", "description": "Runs.", "input_schema": {"enum": ["x" * 50] * 40}}
        made = Session(policy=small("awaken", 1_200), tools=[schema])
        size = len(json.dumps(schema, separators=(",", ":"))) // 4
        assert size <= made.state.tools <= size + 1
        made.add(system("s" * 400), *exchange(0), *exchange(1), user("u" * 2_800))
        with pytest.raises(ViewTooLarge) as raised:
            made.view()
        bill = raised.value.bill
        assert (bill["system"], bill["tools"]) == (100, made.state.tools)
        assert bill["history"] >= 700
        assert sum(bill.values()) == raised.value.tokens > raised.value.limit == 1_200
        assert "system 100" in str(raised.value)


class TestRole:
    @pytest.mark.promise("F22")
    @pytest.mark.parametrize("name", FOLDS)
    def test_a_digest_is_the_users_and_marked(self, name: str) -> None:
        made = Session(policy=small(name, 4_000))
        cuts(made, 60)
        [digest] = [message for message in made.view().messages if message.kind == "digest"]
        assert digest.role == "user"
        assert digest.text.startswith(made.policy.digest_header)

    @pytest.mark.promise("F22")
    def test_the_presets_whose_designs_say_so_use_the_system_role(self) -> None:
        assert {name for name in presets() if Policy.preset(name).digest_role == "system"} == {"awaken", "squidbot"}
        for name in ("awaken", "squidbot"):
            made = Session(policy=small(name, 4_000, leave="digest"))
            cuts(made, 60)
            assert [message.role for message in made.view().messages if message.kind == "digest"] == ["system"]

    @pytest.mark.promise("F22")
    def test_the_knob_says_why(self) -> None:
        lines = inspect.getsource(Policy).splitlines()
        place = next(number for number, line in enumerate(lines) if line.strip().startswith("digest_role:"))
        assert "may take the digest for instructions" in lines[place + 1]


class TestTotal:
    @pytest.mark.promise("F23")
    @pytest.mark.parametrize("name", ["balanced", "thrifty", "verbatim"])
    def test_the_total_of_our_own_policies_is_the_window(self, name: str) -> None:
        made = Session(policy=Policy.preset(name).but(window_tokens=4_000, reply_tokens=1_000, counter="chars/4"))
        assert made.usable == 3_000
        made.add(system("s" * 13_000), user("so?"))
        with pytest.raises(ViewTooLarge, match=r"> 3,000 \(system 3,250"):
            made.view()


@pytest.mark.promise("I22")
class TestSettings:
    def test_declared_limits_win(self) -> None:
        known = Session(model="claude-sonnet-5")
        assert known.window > 100_000
        declared = Session(model="claude-sonnet-5", policy=Policy(window_tokens=9_000, reply_tokens=500))
        assert (declared.window, declared.usable) == (9_000, 8_500)

    def test_another_model_has_its_own_limits(self) -> None:
        talk = [message for number in range(100) for message in exchange(number, 4_000)]
        found = {}
        for model in ("claude-sonnet-5", "gpt-4o"):
            made = Session(model=model)
            made.add(*talk, user("so?"))
            found[model] = made.view()
        large, tight = found.values()
        assert large.window > tight.window
        assert large.cut == 0
        assert tight.cut > 0
        assert tight.tokens <= tight.usable

    def test_a_policy_without_rules_never_folds(self) -> None:
        made = tight(rules=())
        made.add(*exchange(0, 9_000), user("so?"))
        with pytest.raises(ViewTooLarge, match=r'never folds: use Policy.preset\("balanced"\).but\(window_tokens=…\)'):
            made.view()
        assert made.folds == 0

    def test_without_a_limit_no_result_is_pruned_on_arrival(self) -> None:
        for limit, whole in ((0.25, False), (None, True)):
            made = tight(prune_arrival_ratio=limit)
            made.add(user("go"), assistant("", ToolCall(id="a", name="run")), tool("a", "word " * 1_000))
            assert (made.view().messages[-1] is made.timeline.messages[-1]) == whole

    def test_nothing_left_behind_is_nothing(self) -> None:
        made = tight(leave="nothing", atom="turn", keep_first_prompt=False)
        cuts(made, 60)
        assert made.folds
        assert all(message in made.timeline.messages for message in made.view().messages)

    def test_without_breakpoints_there_are_no_marks(self) -> None:
        for knobs, marked in (({}, True), ({"breakpoints": 0}, False)):
            made = tight(**knobs)
            made.add(system("s"), *exchange(0), user("so?"))
            assert ("cache_control" in json.dumps(made.view().render("anthropic").body)) == marked
