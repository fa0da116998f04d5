"""An overflow that a provider reports inside a response with status 200, or not at all."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline import ledger
from foldline.events import Event
from foldline.testing.provider import SimulatedModel, SimulatedProvider
from foldline.wire.overflow_signals import stream_overflow
from support.proxies import chunked, proxy, raw_upstream, whole
from support.proxy_agents import MODELS, POLICY, Agent, folding

pytest.importorskip("aiohttp")
TEXT = "Your input exceeds the context window of this model. Please adjust your input and try again."
ERROR = {"code": "context_length_exceeded", "message": TEXT}


def sse(*events: Any) -> bytes:
    return b"".join(b"event: x\ndata: " + json.dumps(event).encode() + b"\n\n" for event in events)


CREATED = {"type": "response.created", "response": {"status": "in_progress"}}
FAILED = {"type": "response.failed", "response": {"status": "failed", "error": ERROR}}
OVERFLOWS = {
    "responses": sse(CREATED, {"type": "response.in_progress"}, FAILED),
    "responses, as an error event": sse(CREATED, {"type": "error", **ERROR}),
    "chat completions": sse({"error": ERROR}),
    "anthropic": sse({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 9"}}),
    "llama.cpp": b'{"error": {"type": "exceed_context_size_error", "message": "request exceeds"}}',
}
OTHERS = {
    "a reply": sse(CREATED, {"type": "response.output_item.added"}),
    "a rate limit": sse(CREATED, {"type": "response.failed", "response": {"error": {"code": "rate_limit_exceeded"}}}),
    "an overload": sse({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    "a reply about overflows": sse({"choices": [{"delta": {"content": "prompt is too long"}}]}),
    "a body": b'{"id": "x", "error": null, "output": [{"text": "prompt is too long"}]}',
    "no events": b"data: [DONE]\n\n",
}


@pytest.mark.parametrize("name", OVERFLOWS)
@given(data=st.data())
def test_an_overflow_is_found_however_the_stream_is_cut(name: str, data: st.DataObject) -> None:
    whole_text = OVERFLOWS[name]
    cut = data.draw(st.integers(0, len(whole_text) - 2))
    assert stream_overflow(whole_text[:cut]) in (None, b"") or stream_overflow(whole_text[:cut])
    assert stream_overflow(whole_text)


@pytest.mark.parametrize("name", OTHERS)
def test_other_beginnings_are_ordinary_responses(name: str) -> None:
    assert stream_overflow(OTHERS[name]) == b""


def test_a_stream_that_has_only_begun_is_undecided() -> None:
    assert stream_overflow(b"") is None
    assert stream_overflow(sse(CREATED)) is None
    assert stream_overflow(sse(CREATED) + b"event: response.fai") is None


def test_an_overflow_inside_a_stream_is_folded_and_the_client_sees_one_ordinary_stream(tmp_path: Path) -> None:
    """The provider's window is smaller than the configured one."""
    with folding(tmp_path, window=9_000) as (provider, running):
        agent = Agent(running.url, "openai-responses", headers={"x-foldline-session": "work"})
        agent.work(provider, 40, words=200)
        overflows = [request for request in provider.refused if TEXT in str(request.error)]
        assert overflows
        assert provider.refused == overflows
        for _, _, answer in agent.answers:
            assert (answer.count(b"event: response.created"), answer.count(b"response.failed")) == (1, 0)


def test_a_stream_that_fails_for_another_reason_passes_as_it_is(tmp_path: Path) -> None:
    failed = sse(CREATED, {"type": "response.failed", "response": {"error": {"code": "server_error"}}})
    with raw_upstream() as upstream:
        upstream.answer(*chunked(failed[:40], failed[40:]))
        with proxy(upstream.url, mode="fold", ledger=str(tmp_path / "ledger.db"), policy=POLICY) as running:
            agent = Agent(running.url, "openai-responses")
            agent.messages.append({"type": "message", "role": "user", "content": "why? " * 8_000})
            status, _, data = agent.post(agent.path, agent.body())
            assert (status, data) == (200, failed)
            assert len(upstream.requests) == 1


@pytest.mark.parametrize("format", MODELS)
def test_silent_truncation_raises_an_event(tmp_path: Path, format: str, caplog: pytest.LogCaptureFixture) -> None:
    models = dict.fromkeys(MODELS.values(), SimulatedModel(window=8_000, overflow="truncate"))
    policy = replace(POLICY, window_tokens=200_000)
    with SimulatedProvider(models=models) as provider:
        with proxy(provider.url, mode="observe", ledger=str(tmp_path / "ledger.db"), policy=policy) as running:
            agent = Agent(running.url, format, headers={"x-foldline-session": "work"})
            agent.work(provider, 40, words=300)
        assert provider.refused == []
    store = ledger.open(tmp_path / "ledger.db")
    own = [ledger.for_owner(store, owner) for owner in ledger.owners(store)]
    found = [event for one in own for branch in one.branches("work") for event in one.events(branch, kind="truncated")]
    store.close()
    assert found
    assert all(event.body["read"] < event.body["sent"] / 2 for event in found)
    emitted = [record.args[0] for record in caplog.records if isinstance(record.args, tuple) and record.args]
    truncations = [event for event in emitted if isinstance(event, Event) and event.kind == "truncated"]
    assert [(event.session, event.facts) for event in truncations] == [("work", event.body) for event in found]


@pytest.mark.parametrize("format", MODELS)
def test_an_ordinary_session_raises_no_truncation_event(tmp_path: Path, format: str) -> None:
    with folding(tmp_path) as (provider, running):
        agent = Agent(running.url, format, headers={"x-foldline-session": "work"})
        agent.work(provider, 40, words=200)
        assert running.application.interceptor.counters.totals().truncated == 0  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("format", "field", "named"),
    [
        ("openai-responses", "previous_response_id", "previous_response_not_found"),
        ("anthropic", "thread_id", "thread_unsupported_request"),
    ],
)
def test_requests_that_carry_only_what_is_new_are_passed_on_or_refused(
    tmp_path: Path, format: str, field: str, named: str
) -> None:
    with raw_upstream(whole(b"{}")) as upstream:
        for refuses in (False, True):
            options: dict[str, Any] = {
                "mode": "fold",
                "ledger": str(tmp_path / "ledger.db"),
                "refuses_partial": refuses,
            }
            with proxy(upstream.url, **options) as running:
                agent = Agent(running.url, format)
                body = {**agent.body(), field: "resp_1"}
                status, headers, data = agent.post(agent.path, body)
            if refuses:
                assert (status, len(upstream.requests)) == (400, 1)
                assert named in data.decode()
            else:
                assert (status, headers["x-foldline-recorded"], len(upstream.requests)) == (200, "no", 1)
