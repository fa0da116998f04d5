"""Long conversations through the proxy are folded, and the provider refuses nothing."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from foldline.testing.provider import ScriptedReply
from support.proxy_agents import BOUND, MODELS, POLICY, WINDOW, Agent, elements, folding, sessions, sizes

pytest.importorskip("aiohttp")
FORMATS = ("anthropic", "openai", "openai-responses", "gemini")


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize("format", FORMATS)
def test_sixty_requests_with_tools_through_several_folds_are_all_accepted(
    tmp_path: Path, format: str, streams: bool
) -> None:
    with folding(tmp_path) as (provider, running):
        agent = Agent(running.url, format, streams=streams, headers={"x-foldline-session": "work"})
        agent.work(provider, 60, words=200)
        assert provider.refused == []
        assert agent.answers[-1][1]["x-foldline-session"] == "work"
        assert int(agent.answers[-1][1]["x-foldline-folds"]) >= 2
        assert max(sizes(provider)) < len(json.dumps(agent.body())) * 0.6
    ((name, messages, folds),) = sessions(tmp_path)
    assert (name, folds >= 2) == ("work", True)
    assert messages >= len(agent.messages)


@pytest.mark.parametrize("format", FORMATS)
def test_between_folds_the_request_only_grows_at_its_end(tmp_path: Path, format: str) -> None:
    with folding(tmp_path) as (provider, running):
        agent = Agent(running.url, format, headers={"x-foldline-session": "work"})
        agent.work(provider, 60, words=200)
        folds = [int(headers.get("x-foldline-folds", 0)) for _, headers, _ in agent.answers]
        assert folds[-1] >= 2
        for number in range(1, len(folds)):
            before, after = elements(provider.requests[number - 1]), elements(provider.requests[number])
            if folds[number] == folds[number - 1]:
                assert after[: len(before)] == before, number


@pytest.mark.parametrize("model", [BOUND, MODELS["anthropic"]])
def test_thinking_that_is_bound_to_its_prefix_is_not_sent_behind_another_one(tmp_path: Path, model: str) -> None:
    with folding(tmp_path) as (provider, running):
        extra = {"thinking": {"type": "adaptive"}} if model == BOUND else {}
        agent = Agent(running.url, "anthropic", model=model, headers={"x-foldline-session": "work"}, extra=extra)
        agent.work(provider, 60, words=200, thinking="Let me think about this step by step.")
        assert provider.refused == []
        assert int(agent.answers[-1][1]["x-foldline-folds"]) >= 2


def test_a_long_turn_goes_on_without_thinking_when_a_fold_removed_its_beginning(tmp_path: Path) -> None:
    with folding(tmp_path) as (provider, running):
        extra = {"thinking": {"type": "enabled", "budget_tokens": 1_024}, "max_tokens": 2_000}
        agent = Agent(running.url, "anthropic", headers={"x-foldline-session": "work"}, extra=extra)
        for number in range(40):
            call = (("bash", {"command": f"cat src/file{number}.py"}),)
            provider.script(ScriptedReply(thinking="One by one." * (number == 0), calls=call))
            if number == 0:
                agent.say("Look at every file.")
            else:
                agent.answer_calls(f"result {number}: " + f"word{number} " * 200)
            status, headers, data = agent.answers[-1]
            assert status == 200, data
        assert int(headers["x-foldline-folds"]) >= 1
        assert provider.requests[1].body["thinking"] == extra["thinking"]
        assert provider.requests[-1].body["thinking"] == {"type": "disabled"}


def test_a_short_conversation_reaches_the_provider_byte_for_byte(tmp_path: Path) -> None:
    with folding(tmp_path) as (provider, running):
        agent = Agent(running.url, headers={"x-foldline-session": "work"})
        agent.work(provider, 8)
        sent = [request.body for request in provider.requests]
        assert sent[-1]["messages"] == agent.messages[:-1]
        assert "x-foldline-folds" not in agent.answers[-1][1]


def test_tokens_are_counted_for_the_folded_view_and_open_no_session(tmp_path: Path) -> None:
    with folding(tmp_path) as (provider, running):
        agent = Agent(running.url, headers={"x-foldline-session": "work"})
        count = "/v1/messages/count_tokens?beta=true"
        body = {"model": agent.model, "messages": [{"role": "user", "content": "hello"}]}
        assert agent.post(count, body)[0] == 200
        agent.work(provider, 60, words=200)
        whole = {key: value for key, value in agent.body().items() if key not in ("stream", "max_tokens")}
        whole["messages"] = whole["messages"] + [{"role": "user", "content": "How large is it?"}]
        status, _, data = agent.post(count, whole)
        assert status == 200
        assert json.loads(data)["input_tokens"] < WINDOW
        assert provider.refused == []
    assert [name for name, _, _ in sessions(tmp_path)] == ["work"]


def test_a_refusal_as_too_large_becomes_a_fold_and_a_second_attempt(tmp_path: Path) -> None:
    import dataclasses

    roomy = dataclasses.replace(POLICY, window_tokens=200_000)
    with folding(tmp_path, window=9_000, policy=roomy) as (provider, running):
        agent = Agent(running.url, headers={"x-foldline-session": "work"})
        agent.work(provider, 40, words=200)
        overflows = [request for request in provider.refused if "prompt is too long" in str(request.error)]
        assert overflows
        assert provider.refused == overflows
        assert {status for status, _, _ in agent.answers} == {200}


def test_another_refusal_is_passed_on_and_not_retried(tmp_path: Path) -> None:
    from foldline.testing.provider import fail

    with folding(tmp_path) as (provider, running):
        agent = Agent(running.url, headers={"x-foldline-session": "work"})
        provider.script(fail(429), fail(529), fail(400, message="messages.0: something else is wrong"))
        for status in (429, 529, 400):
            agent.messages = []
            assert agent.say("hello")[0] == status
        assert len(provider.requests) == 3


def test_a_client_that_resumes_a_history_over_the_limit_is_folded_at_once(tmp_path: Path) -> None:
    with folding(tmp_path) as (provider, running):
        agent = Agent(running.url, headers={"x-foldline-session": "work"})
        for number in range(40):
            agent.messages += [
                {"role": "user", "content": f"Question {number}: " + "why is that so? " * 40},
                {"role": "assistant", "content": f"Answer {number}: " + "because of the build. " * 40},
            ]
        assert agent.say("Go on.")[0] == 200
        assert provider.refused == []
        assert len(elements(provider.requests[-1])) < 40


def test_a_broken_ledger_lets_every_request_pass(tmp_path: Path) -> None:
    with folding(tmp_path) as (provider, running):
        agent = Agent(running.url, headers={"x-foldline-session": "work"})
        agent.work(provider, 4)
        running.application.interceptor.conversations.store.tx.pool.close()  # type: ignore[attr-defined]
        agent.work(provider, 12)
        assert provider.refused == []
        assert [request.body["messages"] for request in provider.requests][-1] == agent.messages[:-1]


def test_observe_mode_records_and_changes_nothing(tmp_path: Path) -> None:
    with folding(tmp_path, window=200_000, mode="observe") as (provider, running):
        agent = Agent(running.url, headers={"x-foldline-session": "work"})
        agent.work(provider, 40, words=200)
        assert provider.requests[-1].body["messages"] == agent.messages[:-1]
    assert sessions(tmp_path) == [("work", 1 + len(agent.messages), 0)]


def test_a_held_out_session_is_only_observed(tmp_path: Path) -> None:
    with folding(tmp_path, window=200_000, holdout_ratio=1.0) as (provider, running):
        agent = Agent(running.url, headers={"x-foldline-session": "work"})
        agent.work(provider, 40, words=200)
        assert provider.requests[-1].body["messages"] == agent.messages[:-1]
    assert sessions(tmp_path) == [("work", 1 + len(agent.messages), 0)]


def test_compressed_requests_are_read_and_the_folded_one_is_sent_plain(tmp_path: Path) -> None:
    import gzip
    import http.client
    from urllib.parse import urlsplit

    with folding(tmp_path) as (provider, running):
        agent = Agent(running.url, headers={"x-foldline-session": "work"})
        agent.work(provider, 40, words=200)
        agent.messages.append({"role": "user", "content": "And now compressed."})
        connection = http.client.HTTPConnection(urlsplit(running.url).netloc, timeout=20)
        headers = {"content-encoding": "gzip", "x-api-key": agent.key, "anthropic-version": "2023-06-01"}
        body = gzip.compress(json.dumps(agent.body()).encode())
        connection.request("POST", agent.path, body, {**headers, **agent.headers})
        assert connection.getresponse().status == 200
        connection.close()
        assert len(elements(provider.requests[-1])) < 40


def test_a_model_that_is_switched_keeps_the_session(tmp_path: Path) -> None:
    with folding(tmp_path) as (provider, running):
        agent = Agent(running.url, headers={"x-foldline-session": "work"})
        agent.work(provider, 40, words=200)
        agent.model = BOUND
        agent.work(provider, 20, words=200)
        assert provider.refused == []
    ((_, messages, folds),) = sessions(tmp_path)
    assert (messages, folds > 1) == (1 + len(agent.messages), True)


@pytest.mark.parametrize("client_marks", [1, 3])
def test_a_request_after_a_fold_reads_the_first_prompt_from_the_cache(tmp_path: Path, client_marks: int) -> None:
    mark = {"type": "ephemeral"}
    system = [{"type": "text", "text": f"You are careful ({n}).", "cache_control": mark} for n in range(client_marks)]
    seconds = itertools.count(1_800_000_000.0, 3.0)
    with folding(tmp_path, clock=lambda: next(seconds)) as (provider, running):
        headers = {"x-foldline-session": "work"}
        agent = Agent(running.url, headers=headers, streams=False, extra={"cache_control": mark, "system": system})
        provider.script(ScriptedReply(text="I will."))
        agent.say("Mend the parser. " + "Take care of the details. " * 250)
        agent.work(provider, 60, words=200)
        assert provider.refused == []
        folds = [int(headers.get("x-foldline-folds", 0)) for _, headers, _ in agent.answers]
        assert folds[-1] >= 3
        read = [json.loads(data)["usage"]["cache_read_input_tokens"] for _, _, data in agent.answers]
        after = [read[at] for at in range(1, len(folds)) if folds[at] > folds[at - 1] >= 1]
        assert all(tokens > 1_000 for tokens in after) is (client_marks == 1)  # at most four marks are allowed


@pytest.mark.parametrize("is_alone", [True, False])
def test_a_prompt_that_takes_half_of_the_window_does_not_prevent_folds(tmp_path: Path, is_alone: bool) -> None:
    with folding(tmp_path, policy=POLICY.but(digest_tokens=2_000)) as (provider, running):
        agent = Agent(running.url, headers={"x-foldline-session": "work"})
        call: Any = (("bash", {"command": "make"}),)
        provider.script(ScriptedReply(text="I will.", calls=call if is_alone else ()))
        prompt = "Mend the parser. " + "Take care of the details. " * (1_200 if is_alone else 900)
        agent.say(prompt)
        for number in range(24 if is_alone else 0):
            provider.script(ScriptedReply(text=f"Step {number}.", calls=call))
            agent.answer_calls(f"result {number}: " + f"word{number} " * 200)
        agent.work(provider, 0 if is_alone else 40, words=200)
        assert provider.refused == []
        assert not any("x-foldline-fault" in headers for _, headers, _ in agent.answers)
        assert int(agent.answers[-1][1]["x-foldline-folds"]) >= 2
        assert (prompt in json.dumps(provider.requests[-1].body)) is is_alone
