"""What every adapter must do, tried through the real client or framework against the strict simulated provider."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import foldline
from foldline import Policy, Session
from foldline.testing import SimulatedProvider
from foldline.testing.provider import ScriptedReply, SimulatedModel, call, fail
from support.framework_agents import CLAUDE, GEMINI, GPT, MODES, close_loop, read_file
from support.framework_agents.registry import AGENTS, agent_class

pytestmark = [  # the frameworks have many warnings of their own
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*EXPERIMENTAL:UserWarning"),
]

WINDOW = 4_000
TURNS = 10
"""A conversation of so many turns does not fit the window."""
POLICY = Policy.preset("balanced").but(window_tokens=WINDOW, reply_tokens=400)


@pytest.fixture
def provider() -> Iterator[SimulatedProvider]:
    models = {name: SimulatedModel(window=WINDOW) for name in (CLAUDE, GPT, GEMINI)}
    with SimulatedProvider(models=models) as running:
        yield running


@pytest.fixture(params=AGENTS)
def name(request: pytest.FixtureRequest) -> str:
    """An adapter with a model class."""
    return str(request.param)


@pytest.fixture
def make(name: str) -> Iterator[Callable[..., Any]]:
    """Makes agents of the adapter, and closes them after the test."""
    maker = agent_class(name)
    if maker is None:
        pytest.skip(f"the packages for {name} are not installed")
    made: list[Any] = []

    def make_agent(
        provider: SimulatedProvider, session: Session | None, mode: str = "sync", *, thinking: bool = False
    ) -> Any:
        made.append(maker(provider, session, mode, thinking=thinking))
        return made[-1]

    yield make_agent
    for agent in made:
        agent.close()
    close_loop()


def converse(agent: Any, provider: SimulatedProvider, turns: int, start: int = 0, **reply: Any) -> list[str]:
    """Run turns with one tool call each."""
    answers = []
    for turn in range(start, start + turns):
        provider.script(
            ScriptedReply(calls=(("read_file", {"path": f"src/part_{turn}.py"}),), **reply), f"Done {turn}."
        )
        answers.append(agent.ask(f"Please read part {turn} and say what line {turn} is about."))
    return answers


def bodies(provider: SimulatedProvider) -> list[Any]:
    return [request.body for request in provider.requests]


def refusals(provider: SimulatedProvider) -> list[str]:
    return [str(request.error and request.error.message) for request in provider.refused]


@pytest.mark.parametrize("mode", MODES)
def test_under_budget_the_requests_are_those_of_the_framework_alone(
    make: Callable[..., Any], mode: str, provider: SimulatedProvider
) -> None:
    alone, folded = SimulatedProvider(), provider
    with alone:
        expected = converse(make(alone, None, mode), alone, 2)
        answers = converse(make(folded, Session(policy=POLICY), mode), folded, 2)
    assert answers == expected == ["Done 0.", "Done 1."]
    assert _neutral(bodies(folded)) == _neutral(bodies(alone))
    assert refusals(provider) == []


def _neutral(value: Any) -> Any:
    """Bodies without what differs from run to run: signatures and random ids."""
    if isinstance(value, list):
        return [_neutral(each) for each in value]
    if isinstance(value, dict):
        random = ("signature", "thoughtSignature", "encrypted_content", "id", "tool_use_id", "call_id", "tool_call_id")
        return {key: _neutral(each) for key, each in value.items() if key not in random}
    return value


@pytest.mark.parametrize("mode", MODES)
def test_a_long_conversation_is_folded_and_nothing_is_refused(
    make: Callable[..., Any], mode: str, provider: SimulatedProvider
) -> None:
    session = Session(policy=POLICY)
    answers = converse(make(provider, session, mode), provider, TURNS)
    assert answers == [f"Done {turn}." for turn in range(TURNS)]
    assert refusals(provider) == []
    assert session.folds >= 1
    last = str(bodies(provider)[-1])
    assert f"read part {TURNS - 1} and say" in last
    assert read_file("src/part_1.py") not in last
    assert len(session) >= TURNS * 4


def test_without_foldline_the_same_conversation_is_refused(
    make: Callable[..., Any], provider: SimulatedProvider
) -> None:
    with pytest.raises((Exception, SystemExit), match=r"(?i)too long|context|token"):  # CrewAI ends the program
        converse(make(provider, None), provider, 2 * TURNS)


def test_parallel_calls_stay_together(make: Callable[..., Any], provider: SimulatedProvider) -> None:
    session = Session(policy=POLICY)
    agent = make(provider, session)
    for turn in range(5):
        calls = tuple(("read_file", {"path": f"src/part_{turn}_{part}.py"}) for part in range(3))
        provider.script(ScriptedReply(calls=calls), f"Done {turn}.")
        assert agent.ask(f"Read the three files of part {turn}.") == f"Done {turn}."
    assert refusals(provider) == []
    assert session.folds >= 1


def test_thinking_is_sent_back_or_left_out_as_the_provider_demands(
    make: Callable[..., Any], provider: SimulatedProvider
) -> None:
    session = Session(policy=POLICY)
    converse(make(provider, session, thinking=True), provider, TURNS, thinking="Let me look at the file first.")
    assert refusals(provider) == []
    assert session.folds >= 1


def test_the_reported_usage_anchors_the_measure(
    name: str, make: Callable[..., Any], provider: SimulatedProvider
) -> None:
    if name == "llama-index":
        pytest.skip("a memory of LlamaIndex does not see the usage of replies")
    session = Session(policy=POLICY)
    converse(make(provider, session), provider, 3)
    assert session.state.gauge.is_anchored
    assert session.messages[-1].meta.usage is not None


def test_tools_and_system_are_counted(make: Callable[..., Any], provider: SimulatedProvider) -> None:
    session = Session(policy=POLICY)
    converse(make(provider, session), provider, 1)
    blocks = session.load().blocks
    assert blocks["tools"] > 10
    assert blocks["system"] > 5 or session.state.setup.extra > 5


def test_between_folds_the_request_only_grows_at_its_end(make: Callable[..., Any], provider: SimulatedProvider) -> None:
    session = Session(policy=POLICY)
    agent = make(provider, session)
    counts = []
    for turn in range(TURNS):
        converse(agent, provider, 1, start=turn)
        counts.append(session.folds)
    changes = 0
    sent = [_history(body, agent) for body in bodies(provider)]
    for before, after in pairwise(sent):
        changes += after[: len(before)] != before
    assert changes <= counts[-1]


def _history(body: Any, agent: Any) -> list[Any]:
    """The messages of a request, without the fields that the framework itself changes later."""
    found, changed = (
        body.get("messages") or body.get("input") or body.get("contents"),
        getattr(agent, "changed_fields", ()),
    )
    return [{key: value for key, value in each.items() if key not in changed} for each in found]


def test_an_agent_goes_on_from_the_ledger_after_a_restart(
    make: Callable[..., Any], provider: SimulatedProvider, tmp_path: Path
) -> None:
    with foldline.open(tmp_path / "ledger.db") as ledger:
        agent = make(provider, ledger.session("work", policy=POLICY))
        converse(agent, provider, TURNS)
        folds, length = ledger.session("work").folds, len(ledger.session("work"))
    assert folds >= 1
    before = _history(bodies(provider)[-1], agent)
    with foldline.open(tmp_path / "ledger.db") as ledger:
        session = ledger.session("work")
        again = make(provider, session)
        again.adopt(agent)
        provider.script("Still here.")
        assert again.ask("Are you there?") == "Still here."
        assert len(session) == length + 2
        assert session.folds == folds
    assert _history(bodies(provider)[-1], agent)[: len(before)] == before
    assert refusals(provider) == []


def test_two_agents_at_once_do_not_mix(make: Callable[..., Any], provider: SimulatedProvider) -> None:
    sessions = [Session(policy=POLICY), Session(policy=POLICY)]
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            agent = make(provider, sessions[number])
            for turn in range(6):
                agent.ask(f"Agent {number} asks {turn}: " + read_file(f"agent_{number}.py"))
            agent.close()
        except BaseException as error:  # noqa: BLE001 (raised again below)
            failures.append(error)
        finally:
            close_loop()

    threads = [threading.Thread(target=work, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    for number, session in enumerate(sessions):
        texts = " ".join(message.text for message in session.messages)
        assert f"Agent {number} asks 5" in texts
        assert f"Agent {1 - number} asks" not in texts
    assert refusals(provider) == []


def test_an_error_of_the_model_arrives_unchanged(make: Callable[..., Any], provider: SimulatedProvider) -> None:
    errors = []
    for session in (None, Session(policy=POLICY)):
        agent = make(provider, session)
        provider.script(fail(400, message="the model is tired"))
        with pytest.raises(Exception, match="the model is tired") as caught:
            agent.ask("Hello?")
        errors.append(caught.value)
    assert type(errors[0]) is type(errors[1])


def test_a_fault_of_foldline_does_not_stop_the_agent(
    make: Callable[..., Any], provider: SimulatedProvider, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with foldline.open(tmp_path / "ledger.db") as ledger:
        agent = make(provider, ledger.session("work", policy=POLICY))
        converse(agent, provider, 1)
    provider.script(call("read_file", path="a.py"), "I read it.")  # the ledger is closed: every call of it fails
    assert agent.ask("Read a.py") == "I read it."
    assert "foldline failed" in caplog.text
    provider.script(fail(400, message="the model is tired"))
    with pytest.raises(Exception, match="the model is tired"):
        agent.ask("Hello?")
