"""Window budget: the estimate, the gate, the slice, and the documented examples."""

from __future__ import annotations

import ast
import asyncio
import subprocess
import sys
from bisect import bisect_left
from dataclasses import FrozenInstanceError, dataclass, fields
from importlib import import_module
from json import dumps
from math import ceil
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

import foldline.compat.window_budget as face
import foldline.window_budget as barrel
from foldline.digest.prompt import CONDENSER_BRIEF
from foldline.errors import ConfigError
from foldline.message import Message
from foldline.policy import Policy
from foldline.session import Session
from foldline.window_budget import (
    DEFAULT_POLICY,
    AgentMessage,
    AssistantMessage,
    BashExecutionMessage,
    BranchSummaryMessage,
    BudgetPolicy,
    CompactionSummaryMessage,
    CondensePlan,
    CondenserDeps,
    CustomMessage,
    ImageBlock,
    Model,
    SummarizeDeps,
    Summary,
    TextBlock,
    ThinkingBlock,
    TokenEstimate,
    ToolCallBlock,
    ToolResultMessage,
    Usage,
    UserMessage,
    budget_limit,
    estimate_context,
    estimate_message_tokens,
    estimate_tokens,
    flatten_transcript,
    is_over_budget,
    plan_slice,
    prefix_tokens,
)
from strategies import broken, sound
from support.chats import wire
from support.hosts import ROLES, Hostile, anything, transcripts

NAMES = [
    *["create_condenser", "condense", "condense_scope", "summarize", "DEFAULT_POLICY"],
    *["estimate_tokens", "estimate_message_tokens", "prefix_tokens", "is_over_budget", "budget_limit"],
    *["plan_slice", "build_summary_prompt", "flatten_transcript", "CONDENSER_BRIEF"],
    *["BudgetPolicy", "TokenEstimate", "CondensePlan", "Summary", "CondenserDeps"],
    *["SummarizeDeps", "CompleteFn", "Condenser", "CondenseScope", "AgentMessage"],
]
HOME = Path(barrel.__file__).parent


def policy(keep: int, ratio: float = 0.75, reserve: int | None = None) -> BudgetPolicy:
    return BudgetPolicy(trigger_ratio=ratio, keep_recent=keep, reserve_tokens=reserve)


def talk(count: int, chars: int = 36) -> list[Any]:
    """Questions and answers of the same size: 16 tokens each, with 36 characters."""
    kinds: tuple[Any, Any] = (UserMessage, AssistantMessage)
    return [kinds[n % 2](content=f"{n} ".ljust(chars, "x")) for n in range(count)]


def call(name: str, text: str = "") -> AssistantMessage:
    return AssistantMessage(content=[ToolCallBlock(id=name, name="run", arguments={"text": text})])


def result(name: str, text: str = "done") -> ToolResultMessage:
    return ToolResultMessage(toolCallId=name, content=[TextBlock(text=text)])


def torn(dropped: Any, kept: Any) -> list[str]:
    """Ids of calls that a cut parted from a result."""
    replies = [each for each in dropped if isinstance(each, AssistantMessage)]
    asked = {block.id for each in replies for block in each.content if isinstance(block, ToolCallBlock)}
    return [each.toolCallId for each in kept if isinstance(each, ToolResultMessage) and each.toolCallId in asked]


class TestSurface:
    @pytest.mark.promise("S0.1")
    def test_one_module_offers_the_documented_names(self) -> None:
        assert set(NAMES) <= set(barrel.__all__)
        for name in barrel.__all__:
            assert getattr(barrel, name) is getattr(face, name)

    @pytest.mark.promise("S0.1")
    @pytest.mark.parametrize(
        ("path", "names"),
        [
            (
                "contract",
                "BudgetPolicy CondensePlan Summary CondenserDeps CompleteFn Condenser CondenseScope AgentMessage",
            ),
            ("condenser", "create_condenser condense condense_scope DEFAULT_POLICY"),
            ("budget", "estimate_tokens is_over_budget plan_slice"),
            ("budget.estimate", "estimate_tokens estimate_message_tokens prefix_tokens CHARS_PER_TOKEN IMAGE_TOKENS"),
            ("budget.gate", "is_over_budget budget_limit"),
            ("budget.slice", "plan_slice"),
            ("summarize", "summarize condense_scope SummarizeDeps CONDENSER_BRIEF"),
            ("summarize.prompt", "CONDENSER_BRIEF flatten_transcript build_summary_prompt"),
            ("summarize.condense", "summarize SummarizeDeps condense_scope"),
        ],
    )
    def test_the_documented_modules_offer_the_objects_of_the_package(self, path: str, names: str) -> None:
        module = import_module(f"foldline.window_budget.{path}")
        for name in names.split():
            assert getattr(module, name) is getattr(barrel, name)

    @pytest.mark.promise("S0.3", "S0.32")
    @pytest.mark.parametrize("module", ["contract", "messages", "budget/estimate", "budget/gate", "budget/slice"])
    def test_types_and_arithmetic_use_no_clock_file_or_network(self, module: str) -> None:
        tree = ast.parse((HOME / f"{module}.py").read_text())
        imported = {each.module or "" for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)}
        assert not imported & {
            "asyncio",
            "os",
            "time",
            "pathlib",
            "socket",
            "foldline.session",
            "foldline.digest.prompt",
        }
        functions = {each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
        assert module.startswith("budget/") or functions <= {"__post_init__", "__call__"}
        assert not any(isinstance(each, ast.AsyncFunctionDef) for each in ast.walk(tree))

    @pytest.mark.promise("S0.4", "S0.5", "S0.6", "S0.7", "S0.8", "S0.41")
    @pytest.mark.parametrize(
        ("made", "names"),
        [
            (BudgetPolicy(0.5, 10), ("trigger_ratio", "keep_recent", "reserve_tokens")),
            (TokenEstimate(1, 2, False), ("context_tokens", "context_window", "anchored")),
            (CondensePlan(0, [], []), ("cut", "kept", "dropped")),
            (Summary(None, 0), ("message", "covered_count")),
            (CondenserDeps(), ("complete", "model", "policy")),
            (SummarizeDeps(), ("complete", "model", "scope", "prior_digest", "signal", "max_tokens")),
        ],
    )
    def test_values_are_frozen_and_named_as_documented(self, made: Any, names: tuple[str, ...]) -> None:
        assert tuple(field.name for field in fields(made))[: len(names)] == names
        with pytest.raises(FrozenInstanceError):
            setattr(made, names[0], 1)

    @pytest.mark.promise("S0.4", "S0.8", "S0.41")
    def test_optional_fields_have_the_documented_defaults(self) -> None:
        assert BudgetPolicy(trigger_ratio=1, keep_recent=0).reserve_tokens is None
        assert CondenserDeps() == CondenserDeps(complete=None, model=None, policy=None)
        assert SummarizeDeps().scope == "session"
        assert SummarizeDeps(scope="branch").prior_digest is None

    @pytest.mark.promise("S0.4", "S0.11")
    @pytest.mark.parametrize(
        "wrong",
        [
            lambda: policy(1, ratio=0.0),
            lambda: policy(1, ratio=1.01),
            lambda: policy(1, ratio=float("nan")),
            lambda: policy(-1),
            lambda: policy(1.5),  # type: ignore[arg-type]  # a caller may
            lambda: policy(1, reserve=-1),
            lambda: SummarizeDeps(scope="galaxy"),  # type: ignore[arg-type]  # a caller may
        ],
    )
    def test_impossible_settings_are_refused(self, wrong: Any) -> None:
        with pytest.raises(ConfigError):
            wrong()

    @pytest.mark.promise("S0.11", "S0.12")
    def test_the_scopes_and_the_seven_kinds(self) -> None:
        assert get_args(barrel.CondenseScope) == ("session", "branch")
        roles = [
            next(field.default for field in fields(kind) if field.name == "role") for kind in get_args(AgentMessage)
        ]
        assert roles == list(ROLES)

    @pytest.mark.promise("S0.50")
    def test_the_default_policy(self) -> None:
        found = DEFAULT_POLICY
        assert (found.trigger_ratio, found.keep_recent, found.reserve_tokens) == (0.75, 6000, 2048)


class TestEstimate:
    @pytest.mark.promise("S0.16", "S0.17", "S0.18", "S0.19")
    def test_the_documented_formula(self) -> None:
        assert (barrel.CHARS_PER_TOKEN, barrel.IMAGE_TOKENS) == (3.6, 1024)
        assert estimate_message_tokens(UserMessage(content="x" * 36)) == 10 + 4 + 2
        assert estimate_message_tokens(UserMessage(content="x" * 37)) == 11 + 4 + 2
        picture = ImageBlock(data="A" * 100_000, mimeType="image/png")
        assert estimate_message_tokens(UserMessage(content=[picture, picture])) == 2 * (1024 + 2) + 4
        reply = AssistantMessage(
            content=[
                ThinkingBlock(thinking="x" * 5),
                TextBlock(text="x" * 5),
                ToolCallBlock(id="1", name="run", arguments={"a": "b"}),
            ]
        )
        written = 5 + 5 + len("run") + len('{"a":"b"}')
        assert estimate_message_tokens(reply) == ceil(written / 3.6) + 4 + 3 * 2 + 6
        assert estimate_message_tokens(result("1", "x" * 36)) == 10 + 4 + 2

    @pytest.mark.promise("S0.16", "S0.22", "S0.23")
    @given(transcripts())
    def test_sums_and_prefixes(self, messages: list[Any]) -> None:
        each = [estimate_message_tokens(message) for message in messages]
        prefix = prefix_tokens(messages)
        assert prefix == [sum(each[:place]) for place in range(len(messages) + 1)]
        assert prefix[0] == 0
        assert estimate_tokens(messages) == sum(each)

    @pytest.mark.promise("S0.22")
    def test_an_empty_transcript_has_size_zero(self) -> None:
        assert estimate_tokens([]) == 0
        assert prefix_tokens([]) == [0]

    @pytest.mark.promise("S0.12", "S0.20", "S0.21")
    @pytest.mark.parametrize(
        "make",
        [
            lambda text: UserMessage(content=text),
            lambda text: AssistantMessage(content=[ThinkingBlock(thinking=text)]),
            lambda text: call("1", text),
            lambda text: result("1", text),
            lambda text: BashExecutionMessage(command="cat", output=text),
            lambda text: BashExecutionMessage(command=text),
            lambda text: CustomMessage(content=text),
            lambda text: BranchSummaryMessage(summary=text),
            lambda text: CompactionSummaryMessage(summary=text),
            lambda text: SimpleNamespace(role="observer", content=text),
            lambda text: SimpleNamespace(role="observer", seen=text),
            lambda text: SimpleNamespace(role="user", content={"odd": text}),
            lambda text: {"role": "observer", "seen": text},
        ],
    )
    def test_the_estimate_of_every_role_errs_high(self, make: Any) -> None:
        small, large = (estimate_message_tokens(make("x" * size)) for size in (10, 3610))
        assert large - small >= 1000
        assert small > 10 / 3.6

    @pytest.mark.promise("S0.15")
    def test_no_tokenizer_is_loaded(self) -> None:
        code = (
            "import sys; from foldline.window_budget import *; estimate_tokens([UserMessage(content='hello')] * 9);"
            "print([name for name in sys.modules if 'tokenizer' in name or name in ('splintr', 'tiktoken')])"
        )
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert run.stdout.strip() == "[]"

    @pytest.mark.promise("F5")
    def test_the_engine_counts_dense_text_higher_than_the_documented_constants(self) -> None:
        text = "設定を確認してください。" * 50
        session = Session(model="claude-sonnet-4-5")
        session.add({"role": "user", "content": text})
        assert estimate_message_tokens(UserMessage(content=text)) == ceil(len(text) / 3.6) + 6
        assert session.view().tokens > 2 * ceil(len(text) / 3.6)


class TestGate:
    @pytest.mark.promise("S0.24", "S0.25")
    @pytest.mark.parametrize(
        "model", [Model(contextWindow=10_000), SimpleNamespace(context_window=10_000), {"contextWindow": 10_000}]
    )
    def test_the_limit_is_the_documented_formula(self, model: Any) -> None:
        assert budget_limit(model, DEFAULT_POLICY) == (10_000 - 2048) * 0.75
        assert budget_limit(model, policy(1, ratio=0.5)) == 5_000
        assert budget_limit(model, policy(1, reserve=10_001)) == 0
        assert is_over_budget(talk(1), model, policy(1, reserve=10_001))

    def test_a_model_without_a_window_gets_the_one_of_the_model_table(self) -> None:
        assert budget_limit("gpt-4o", policy(1, ratio=1)) == 128_000
        assert budget_limit(SimpleNamespace(id="gpt-4o"), policy(1, ratio=1)) == 128_000

    @pytest.mark.promise("S0.26")
    def test_the_gate_is_strict(self) -> None:
        messages = talk(10)
        size = estimate_tokens(messages)
        assert size == 160
        assert not is_over_budget(messages, Model(contextWindow=2 * size), policy(1, ratio=0.5))
        assert is_over_budget(messages, Model(contextWindow=2 * size - 2), policy(1, ratio=0.5))
        assert not is_over_budget([], Model(contextWindow=0), policy(1))


class TestSlice:
    @pytest.mark.promise("S0.6", "S0.27", "S0.55")
    def test_the_tail_holds_at_most_what_is_to_be_kept(self) -> None:
        messages = talk(10)
        for keep, cut in [(160, 0), (159, 1), (144, 1), (143, 2), (48, 7), (16, 9)]:
            plan = plan_slice(messages, policy(keep))
            assert (plan.cut, plan.kept, plan.dropped) == (cut, messages[cut:], messages[:cut])

    @pytest.mark.promise("S0.27", "S0.29")
    @given(transcripts().map(lambda made: [each for each in made if each.role not in ("toolResult", "assistant")]))
    def test_without_tools_it_is_the_documented_search(self, messages: list[Any]) -> None:
        prefix = prefix_tokens(messages)
        for keep in (1, 50, 300, 1_000, 10_000):
            if not messages or estimate_message_tokens(messages[-1]) > keep:
                continue
            documented = bisect_left(prefix, prefix[-1] - keep) if prefix[-1] > keep else 0
            assert plan_slice(messages, policy(keep)).cut == documented

    @pytest.mark.promise("S0.27")
    def test_consecutive_prompts_can_be_cut(self) -> None:
        messages = [UserMessage(content="x" * 36) for _ in range(10)]
        assert plan_slice(messages, policy(48)).cut == 7

    @pytest.mark.promise("S0.28")
    def test_results_at_the_cut_are_dropped_with_their_call(self) -> None:
        messages = [*talk(2), call("1"), call("2"), result("1", "x" * 360), result("2"), *talk(2)]
        for keep in range(1, estimate_tokens(messages)):
            plan = plan_slice(messages, policy(keep))
            assert plan.cut not in (3, 4, 5)
        assert plan_slice(messages, policy(estimate_tokens(messages[4:]))).cut == 6

    @pytest.mark.promise("S0.28")
    @pytest.mark.parametrize("content", [5, {"odd": "x" * 90}, object()])
    def test_a_result_that_cannot_be_read_is_still_a_result(self, content: Any) -> None:
        odd = SimpleNamespace(role="toolResult", toolCallId="1", content=content)
        messages = [*talk(3), call("1"), odd, *talk(2)]
        for keep in range(1, estimate_tokens(messages)):
            assert plan_slice(messages, policy(keep)).cut != 4

    @pytest.mark.promise("S0.29")
    @pytest.mark.parametrize("role", [role for role in ROLES if role != "toolResult"] + ["observer"])
    def test_any_other_role_may_open_the_tail(self, role: str) -> None:
        opening = SimpleNamespace(role=role, content="x" * 36, summary="x" * 36, command="x" * 36)
        messages = [*talk(4), opening, *talk(2)]
        assert plan_slice(messages, policy(estimate_tokens(messages[4:]))).cut == 4

    @pytest.mark.promise("S0.30", "S0.31")
    def test_the_cut_is_zero_when_nothing_can_be_dropped(self) -> None:
        assert plan_slice([], policy(0)).cut == 0
        assert plan_slice(talk(4), policy(1_000)).cut == 0
        for stuck in ([call("1"), result("1"), result("1")], [result("1")] * 3, talk(1, 9_000)):
            assert plan_slice(stuck, policy(1)) == CondensePlan(0, stuck, stuck[:0])

    @pytest.mark.promise("F1")
    def test_a_huge_last_message_does_not_stop_folding(self) -> None:
        asked = [*talk(4), UserMessage(content="x" * 90_000)]
        assert plan_slice(asked, DEFAULT_POLICY).cut == 4
        answered = [*talk(4), call("1"), result("1", "x" * 90_000)]
        assert plan_slice(answered, DEFAULT_POLICY).cut == 4

    def test_system_messages_are_not_dropped_alone(self) -> None:
        order = {"role": "system", "content": "Be brief."}
        assert plan_slice([order, {"role": "user", "content": "x" * 900}], policy(1)).cut == 0

    @pytest.mark.parametrize("apart", [1, 5])
    def test_a_result_that_comes_late_is_kept_with_its_call_or_dropped_with_it(self, apart: int) -> None:
        messages = [*talk(2), call("1"), *talk(apart), result("1"), *talk(3)]
        for keep in range(1, estimate_tokens(messages)):
            plan = plan_slice(messages, policy(keep))
            assert not 2 < plan.cut <= 3 + apart

    @given(transcripts() | st.lists(anything(), max_size=6), st.sampled_from((0, 1, 30, 200, 1_000, 9_000)))
    def test_kept_and_dropped_are_the_list(self, messages: list[Any], keep: int) -> None:
        plan = plan_slice(messages, policy(keep))
        assert (plan.kept, plan.dropped) == (messages[plan.cut :], messages[: plan.cut])
        assert plan.kept or not messages
        if plan.cut:
            assert getattr(plan.kept[0], "role", "") != "toolResult"
            assert not torn(plan.dropped, plan.kept)

    @given(sound() | broken(), st.sampled_from((1, 30, 200)))
    def test_slices_of_wire_messages_never_begin_with_a_result(self, messages: list[Message], keep: int) -> None:
        plan = plan_slice(messages, policy(keep))
        asked = {call.id for message in plan.dropped for call in message.calls}
        again = {call.id for message in plan.kept for call in message.calls}
        for message in plan.kept if plan.cut else ():
            assert not {part.call_id for part in message.results} & asked - again
        assert not plan.cut or plan.kept[0].role == "assistant" or not plan.kept[0].results

    @given(sound(), st.sampled_from(("openai", "anthropic", "gemini", "openai-responses")))
    def test_slices_of_dicts_never_begin_with_a_result(self, messages: list[Message], provider: str) -> None:
        elements = wire(messages, provider)
        plan = plan_slice(elements, policy(30))
        assert (plan.kept, plan.dropped) == (elements[plan.cut :], elements[: plan.cut])
        opening = dumps(plan.kept[0]) if plan.cut else ""
        assert not any(mark in opening for mark in ('"tool"', "tool_result", "functionResponse", "call_output"))


class TestAnchor:
    MODEL = Model(contextWindow=200_000)
    REPLY = AssistantMessage(content="x" * 36, usage=Usage(input=100, cacheRead=8_900, output=12), timestamp=5_000)

    @pytest.mark.promise("S0.5", "F4")
    def test_usage_anchors_the_figure_on_the_messages_it_measured(self) -> None:
        before = talk(3)
        plain = estimate_context(before, self.MODEL)
        assert plain == TokenEstimate(context_tokens=48, context_window=200_000, anchored=False)
        found = estimate_context([*before, self.REPLY], self.MODEL)
        assert (found.context_tokens, found.anchored) == (9_000 + 12, True)
        later = estimate_context([*before, self.REPLY, UserMessage(content="x" * 36)], self.MODEL)
        assert later.context_tokens == 9_012 + 16

    @pytest.mark.promise("F4")
    def test_after_a_fold_only_newer_usage_counts(self) -> None:
        head = UserMessage(content="[session digest — older turns condensed]\nmuch", timestamp=5_000)
        assert not estimate_context([head, self.REPLY], self.MODEL).anchored
        newer = AssistantMessage(content="y" * 36, usage=Usage(input=700, output=12), timestamp=6_000)
        assert estimate_context([head, self.REPLY, newer], self.MODEL) == TokenEstimate(712, 200_000, True)

    def test_the_condenser_uses_reported_usage_if_it_is_larger(self) -> None:
        full = AssistantMessage(content="x", usage=Usage(input=180_000, output=9))
        messages = [*talk(600, chars=200), full]
        condenser = barrel.create_condenser(CondenserDeps(model=self.MODEL))
        assert not is_over_budget(messages, self.MODEL, DEFAULT_POLICY)
        out = asyncio.run(condenser(messages))
        assert out is not messages
        assert asyncio.run(condenser(out)) is out


class TestHosts:
    @pytest.mark.promise("S0.13", "S0.14")
    def test_a_hosts_own_messages_are_read_by_their_role_and_come_back_as_they_are(self) -> None:
        @dataclass(frozen=True)
        class PlainMessage:
            role: str
            content: str

        messages = [PlainMessage("user" if n % 2 == 0 else "assistant", "x" * 360) for n in range(10)]
        plan = plan_slice(messages, policy(300))
        assert plan.cut
        assert all(kept is own for kept, own in zip(plan.kept, messages[plan.cut :], strict=True))
        assert flatten_transcript(messages).count("» you: ") == 5

    @given(st.lists(anything(), max_size=5))
    def test_an_unreadable_element_is_still_counted(self, messages: list[Any]) -> None:
        assert estimate_tokens(messages) >= 4 * len(messages)
        assert is_over_budget(messages, Model(contextWindow=1), policy(1)) == bool(messages)
        assert isinstance(flatten_transcript(messages), str)

    def test_one_unreadable_element_does_not_hide_the_calls_of_others(self) -> None:
        asked = {"type": "function", "id": "1", "function": {"name": "run", "arguments": "{}"}}
        messages = [
            {"role": "user", "content": "x" * 900},
            {"role": "assistant", "content": None, "tool_calls": [asked]},
            {"role": "tool", "tool_call_id": "1", "content": "x" * 900},
            Hostile(),
            {"role": "user", "content": "and?"},
        ]
        assert "» agent.call run" in flatten_transcript(messages)
        assert all(plan_slice(messages, policy(keep)).cut != 2 for keep in range(0, 600, 9))


class TestFramework:
    @pytest.mark.promise("S0.57")
    def test_the_frameworks_engine_is_another_preset(self) -> None:
        mine, theirs = Policy.preset("indus"), Policy.preset("indus-framework")
        assert (mine.keep_tokens, mine.keep_turns, mine.rules[0].ratio) == (6_000, 0, 0.75)
        assert (theirs.keep_tokens, theirs.keep_turns, theirs.rules[0].ratio) == (0, 8, 0.8)
        assert theirs.digest_header == "[condensed earlier context]"

    @pytest.mark.promise("S0.57")
    def test_it_keeps_eight_whole_turns_under_its_own_header(self) -> None:
        session = Session(policy=Policy.preset("indus-framework").but(window_tokens=8_000))
        for turn in range(12):
            session.add({"role": "user", "content": f"q{turn} ".ljust(900, "x")})
            session.add({"role": "assistant", "content": f"a{turn} ".ljust(1200, "x")})
        session.add({"role": "user", "content": "q12"})
        said = [message.text for message in session.view().messages]
        assert said[0].startswith("[condensed earlier context]\n")
        assert [text.split()[0] for text in said[1:]] == [f"{who}{turn}" for turn in range(5, 12) for who in "qa"] + [
            "q12"
        ]


EXAMPLES = [
    """
from foldline.window_budget import create_condenser, CondenserDeps
condenser = create_condenser(CondenserDeps()) # no model bound
out = await condenser(messages)
assert out is messages # identity: nothing to do without a window to measure
""",
    """
from foldline.window_budget import create_condenser, CondenserDeps, BudgetPolicy
from foldline.window_budget import AssistantMessage, TextBlock
async def stub_complete(model, context, options=None, logger=None):
    return AssistantMessage(content=[TextBlock(type="text", text="# Objective\\nport budgeting")])
condenser = create_condenser(CondenserDeps(
    complete=stub_complete,
    model=my_model,
    policy=BudgetPolicy(trigger_ratio=0.75, keep_recent=6000, reserve_tokens=2048),
))
rebuilt = await condenser(long_transcript) # -> [digest_message, *recent_tail]
""",
    """
from foldline.window_budget import (
    estimate_tokens, is_over_budget, budget_limit, plan_slice, DEFAULT_POLICY,
)
estimate_tokens(messages) # heuristic total
budget_limit(model, DEFAULT_POLICY) # (contextWindow - 2048) * 0.75
if is_over_budget(messages, model, DEFAULT_POLICY):
    plan = plan_slice(messages, DEFAULT_POLICY) # plan.cut / plan.kept / plan.dropped
""",
    """
from foldline.window_budget import condense_scope, SummarizeDeps
summary = await condense_scope(abandoned_branch_messages, SummarizeDeps(model=my_model))
# summary.message text starts with '[branch digest — archived from a path not taken]'
""",
]
"""As printed in the documentation, with the modules' names changed and the indentation that a web page loses."""


@pytest.mark.promise("S0.58")
def test_the_documented_examples_run_as_printed() -> None:
    messages = talk(60, chars=3_600)
    model = Model(contextWindow=60_000)
    names: dict[str, Any] = {
        "messages": messages,
        "long_transcript": messages,
        "abandoned_branch_messages": messages,
        "model": model,
        "my_model": model,
    }
    for example in EXAMPLES:
        code = compile(example, "example", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        found = eval(code, names)
        if asyncio.iscoroutine(found):
            asyncio.run(found)
    assert names["out"] is messages
    assert names["rebuilt"][0].content == "[session digest — older turns condensed]\n# Objective\nport budgeting"
    assert names["rebuilt"][1:] == messages[names["plan"].cut :] == names["plan"].kept
    assert estimate_tokens(names["plan"].kept) <= 6_000
    assert names["summary"].message.content.startswith("[branch digest — archived from a path not taken]\n")


def test_the_brief_is_that_of_the_digest_module() -> None:
    assert barrel.CONDENSER_BRIEF is CONDENSER_BRIEF
