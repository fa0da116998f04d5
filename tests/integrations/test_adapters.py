"""What every adapter must do, tried through the real client or framework against the strict simulated provider.

A case that cannot apply to an adapter is skipped with the reason. pi is a program without a Python API: its cases are
in `test_real_pi.py`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import foldline
from foldline import Policy, Session
from foldline.message import Thinking
from foldline.testing import SimulatedProvider
from foldline.testing.provider import ScriptedReply, SimulatedModel, call, fail
from support.framework_agents import CLAUDE, GEMINI, GPT, MODES, Pieces, close_loop, read_file
from support.framework_agents.registry import AGENTS, agent_class

pytestmark = [  # the frameworks have many warnings of their own
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*EXPERIMENTAL:UserWarning"),
]

WINDOW = 4_000
TURNS = 10
"""A conversation of so many turns does not fit the window."""
HELD_AFTER = 8
"""The number of events of a stream that are sent at once. In each format, one of them has text."""
POLICY = Policy.preset("balanced").but(window_tokens=WINDOW, reply_tokens=400)


@pytest.fixture
def provider(name: str) -> Iterator[SimulatedProvider]:
    scale = getattr(agent_class(name), "scale", 1)  # Hermes needs a larger window
    models = {model: SimulatedModel(window=WINDOW * scale) for model in (CLAUDE, GPT, GEMINI)}
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


def thought(turn: int) -> str:
    """What the model thinks in a turn."""
    return f"Let me look at file {turn} first."


def converse(agent: Any, provider: SimulatedProvider, turns: int, start: int = 0, *, thinks: bool = False) -> list[str]:
    """Run turns with one tool call each."""
    answers = []
    for turn in range(start, start + turns):
        provider.script(
            ScriptedReply(
                calls=(("read_file", {"path": f"src/part_{turn}.py"}),),
                thinking=thought(turn) if thinks else "",
            ),
            f"Done {turn}.",
        )
        answers.append(agent.ask(f"Please read part {turn} and say what line {turn} is about."))
    return answers


class HeldProvider(SimulatedProvider):
    """Sends the rest of a streamed reply only after a piece of the reply has arrived at the caller."""

    pieces: Pieces | None = None
    """Where the pieces of the next reply arrive; None if no reply is held back."""
    sent = 0
    is_overtaken = False
    """Whether the rest had to be sent although no piece had arrived."""

    @property
    def event_pause_s(self) -> float:  # the server asks for it after each event
        if self.pieces is not None:
            self.sent += 1
            if self.sent == HELD_AFTER and not self.pieces.has_begun.wait(20):
                self.is_overtaken = True
        return 0.0

    @event_pause_s.setter
    def event_pause_s(self, _: float) -> None:
        pass


def finish(agent: Any) -> None:
    """End the conversation of an agent that only then records its last messages."""
    if getattr(agent, "records_late", False):
        agent.finish()


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
    agent = make(provider, session, mode)
    answers = converse(agent, provider, TURNS)
    finish(agent)
    assert answers == [f"Done {turn}." for turn in range(TURNS)]
    assert refusals(provider) == []
    assert session.folds >= 1
    last = str(bodies(provider)[-1])
    assert f"read part {TURNS - 1} and say" in last
    assert read_file("src/part_1.py") not in last
    assert len(session) >= TURNS * 4
    replies = " ".join(str(message.parts) for message in session.messages if message.role == "assistant")
    for turn in range(TURNS):  # smolagents writes calls as texts, so only their content is compared
        assert f"src/part_{turn}.py" in replies
        assert f"Done {turn}." in replies


@pytest.mark.parametrize("mode", [mode for mode in MODES if "stream" in mode])
def test_a_stream_arrives_piece_by_piece_and_reaches_the_record(
    make: Callable[..., Any], mode: str, provider: SimulatedProvider
) -> None:
    text = " ".join(f"This is sentence {number} of the answer." for number in range(8))
    arrived = []
    session = Session(policy=POLICY)
    for each in (None, session):
        with HeldProvider(models=provider.models) as held:
            agent = make(held, each, mode)
            converse(agent, held, 1)
            held.pieces = agent.pieces = Pieces()
            held.script(text)
            assert agent.ask("Tell me a story.") == text
            assert not held.is_overtaken, "the pieces were collected before the caller got the first"
            assert refusals(held) == []
            arrived.append(agent.pieces)
            finish(agent)
    assert "".join(arrived[0]).strip().startswith(text)  # some frameworks repeat the whole text at the end
    assert len(arrived[0]) > 5
    assert arrived[1] == arrived[0]
    assert [message.role == "assistant" for message in session.messages[-4:]] == [False, True, False, True]
    assert session.messages[-1].text == text


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


def sent_back(provider: SimulatedProvider) -> list[list[int]]:
    """For each request, the earlier replies whose signed thinking it has."""
    signed = [_signatures(request.reply.body) for request in provider.requests]
    return [
        [reply for reply in range(number) if signed[reply] and signed[reply] <= _signatures(request.body)]
        for number, request in enumerate(provider.requests)
    ]


def _signatures(value: Any) -> set[str]:
    if isinstance(value, list):
        return {text for each in value for text in _signatures(each)}
    if not isinstance(value, dict):
        return set()
    found = {_plain(value[key]) for key in ("signature", "thoughtSignature", "encrypted_content") if value.get(key)}
    return found.union(*map(_signatures, value.values()))


def _plain(signature: str) -> str:
    """A signature in the usual alphabet of base64. Google's clients use the other one."""
    return signature.replace("-", "+").replace("_", "/")


@pytest.mark.parametrize("mode", MODES)
def test_signed_thinking_is_recorded_and_sent_back_as_by_the_framework_alone(
    make: Callable[..., Any], mode: str, provider: SimulatedProvider
) -> None:
    with SimulatedProvider(models=provider.models) as alone:
        converse(make(alone, None, mode, thinking=True), alone, 2, thinks=True)
    session = Session(policy=POLICY)
    converse(make(provider, session, mode, thinking=True), provider, 2, thinks=True)
    assert sent_back(provider) == sent_back(alone)
    assert refusals(provider) == []
    signed = set().union(*(_signatures(request.reply.body) for request in provider.requests))
    if not signed:  # Chat Completions have no thinking
        return
    assert sent_back(alone) == [[], [0], [0], [0, 2]]
    found = [part for message in session.messages for part in message.parts if isinstance(part, Thinking)]
    assert [part.text for part in found] == [thought(0), thought(1)]
    if provider.requests[0].format != "gemini":  # Gemini signs the call, not the thought
        assert {_plain(part.signature) for part in found} == signed


@pytest.mark.parametrize("mode", MODES)
def test_thinking_of_the_last_reply_is_sent_back_unless_a_fold_makes_it_invalid(
    make: Callable[..., Any], mode: str, provider: SimulatedProvider
) -> None:
    session = Session(policy=POLICY)
    converse(make(provider, session, mode, thinking=True), provider, TURNS, thinks=True)
    assert refusals(provider) == []
    assert session.folds >= 1
    signed = [bool(_signatures(request.reply.body)) for request in provider.requests]
    sent = sent_back(provider)
    missing = [number for number in range(1, len(sent)) if signed[number - 1] and number - 1 not in sent[number]]
    # Claude's thinking is valid only with the messages before it, which a fold replaces
    assert len(missing) <= (session.folds if provider.requests[0].model == CLAUDE else 0)


def test_the_reported_usage_anchors_the_measure(
    name: str, make: Callable[..., Any], provider: SimulatedProvider
) -> None:
    if name.startswith("llama-index"):
        pytest.skip("a memory of LlamaIndex does not see the usage of replies")
    if name == "hermes":
        pytest.skip("Hermes passes the size of the last request to its engine, not the usage of each reply")
    session = Session(policy=POLICY)
    converse(make(provider, session), provider, 3)
    assert session.state.gauge.is_anchored
    assert session.messages[-1].meta.usage is not None


def test_tools_and_system_are_counted(name: str, make: Callable[..., Any], provider: SimulatedProvider) -> None:
    if name == "hermes":
        pytest.skip("the engine of Hermes does not see tools and system, only the size of the whole request")
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


@pytest.mark.parametrize("thinks", [False, True], ids=["plain", "thinking"])
def test_an_agent_goes_on_from_the_ledger_after_a_restart(
    make: Callable[..., Any], thinks: bool, provider: SimulatedProvider, tmp_path: Path
) -> None:
    with foldline.open(tmp_path / "ledger.db") as ledger:
        agent = make(provider, ledger.session("work", policy=POLICY), thinking=thinks)
        converse(agent, provider, TURNS, thinks=thinks)
        provider.script("You are welcome.")
        agent.ask("Thank you.")  # takes a fold that was made after the last reply
        finish(agent)
        folds, length = ledger.session("work").folds, len(ledger.session("work"))
    assert folds >= 1
    before = _history(bodies(provider)[-1], agent)
    with foldline.open(tmp_path / "ledger.db") as ledger:
        session = ledger.session("work")
        again = make(provider, session, thinking=thinks)
        again.adopt(agent)
        provider.script("Still here.")
        assert again.ask("Are you there?") == "Still here."
        finish(again)
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
            finish(agent)
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


@pytest.mark.parametrize("mode", [mode for mode in MODES if "stream" in mode])
@pytest.mark.parametrize("kind", ["stream_error", "broken_stream"])
def test_an_error_in_a_stream_has_the_effect_that_it_has_without_foldline(
    name: str, make: Callable[..., Any], kind: Any, mode: str, provider: SimulatedProvider
) -> None:
    found = []
    for session in (None, Session(policy=POLICY)):
        with SimulatedProvider(models=provider.models) as each:
            agent = make(each, session, mode)
            converse(agent, each, 1)
            each.script(fail(kind, message="the model is tired"), "I am back.")
            found.append((_outcome(agent, "Are you there? " * 20), _outcome(agent, "And now?"), refusals(each)))
    alone, folded = found
    assert folded[0] == alone[0]
    if name == "hermes":  # it takes the part that arrived as the answer, and asks the model to go on
        assert folded == alone
        return
    assert folded[1:] == ("I am back.", [])
    if name != "google-adk":  # alone, ADK sends two prompts in a row, which are refused; foldline joins them
        assert alone == folded


def _outcome(agent: Any, prompt: str) -> type[BaseException] | str:
    """The answer to a prompt; the type of the error if there is no answer."""
    try:
        return str(agent.ask(prompt))
    except Exception as error:  # noqa: BLE001 (any of the framework)
        return type(error)


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
    if not getattr(agent, "records_late", False):
        assert "foldline failed" in caplog.text
    provider.script(fail(400, message="the model is tired"))
    with pytest.raises(Exception, match="the model is tired"):
        agent.ask("Hello?")
