"""The simulated provider's server: credentials, accounts, addresses, and what it keeps of a request."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from typing import Any

import pytest

import foldline
from foldline import digesters
from foldline.testing import SimulatedProvider
from foldline.testing.provider import ScriptedReply, fail
from support.provider_requests import anthropic, chat, text, user

HEADERS = {"x-api-key": "sk-secret-1", "anthropic-version": "2023-06-01"}


def post(provider: SimulatedProvider, path: str, body: Any, headers: dict[str, str] | None = None) -> tuple[int, Any]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(provider.url + path, data, HEADERS if headers is None else headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            return reply.status, json.loads(reply.read() or b"null")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read() or b"null")


def test_no_credential_is_kept_or_shown() -> None:
    with SimulatedProvider() as provider:
        post(provider, "/v1/messages", anthropic(user()))
        post(provider, "/v1/messages", anthropic())
        kept = repr(provider.requests) + repr(vars(provider)) + repr([vars(a) for a in provider._accounts.values()])
    assert "sk-secret" not in kept


def test_a_request_without_a_credential_is_refused() -> None:
    with SimulatedProvider() as provider:
        status, body = post(provider, "/v1/messages", anthropic(user()), {})
        assert (status, body["error"]["type"]) == (401, "authentication_error")
        assert post(provider, "/v1/chat/completions", chat(user()), {})[0] == 401
        assert post(provider, "/v1beta/models/gemini-3-pro:generateContent", {}, {})[0] == 403
        assert len(provider.refused) == 3


def test_anthropic_asks_for_its_version() -> None:
    with SimulatedProvider() as provider:
        status, body = post(provider, "/v1/messages", anthropic(user()), {"x-api-key": "x"})
    assert (status, body["error"]["message"]) == (400, "anthropic-version: header is required")


@pytest.mark.parametrize("data", [b"", b"{", b'{"x": NaN}', b"\xff\xfe", b'"\\ud800"', b"[" * 100_000, b"null", b"3"])
def test_a_body_that_is_no_request_is_refused(data: bytes) -> None:
    with SimulatedProvider() as provider:
        for path in ("/v1/messages", "/v1/chat/completions", "/v1/responses", "/v1beta/models/g:generateContent"):
            assert post(provider, path, data)[0] == 400, path
        assert len(provider.refused) == 4


def test_an_unknown_address_is_not_found() -> None:
    with SimulatedProvider() as provider:
        assert post(provider, "/v1/complete", {})[0] == 404
        assert post(provider, "/v1beta/models/gemini-3-pro:predict", {})[0] == 404


def test_a_beta_query_is_the_same_address() -> None:
    with SimulatedProvider() as provider:
        assert post(provider, "/v1/messages?beta=true", anthropic(user()))[0] == 200


def test_two_credentials_share_no_cache() -> None:
    body = anthropic(user([text("word " * 3_000, cache_control={"type": "ephemeral"})]))
    with SimulatedProvider() as provider:
        reads = [
            post(provider, "/v1/messages", body, {**HEADERS, "x-api-key": key})[1]["usage"]["cache_read_input_tokens"]
            for key in ("a", "b", "a")
        ]
        assert len(provider.bill.requests) == 3
    assert reads[:2] == [0, 0]
    assert reads[2] > 3_000


def test_counting_uses_up_no_scripted_answer_and_is_free() -> None:
    body = anthropic(user())
    del body["max_tokens"]
    with SimulatedProvider() as provider:
        provider.script("scripted")
        assert post(provider, "/v1/messages/count_tokens", body)[0] == 200
        reply = post(provider, "/v1/messages", anthropic(user()))[1]
        assert reply["content"][0]["text"] == "scripted"
        assert len(provider.bill.requests) == 1


def test_a_scripted_failure_is_no_refusal_and_costs_nothing() -> None:
    with SimulatedProvider() as provider:
        provider.script(fail(429, retry_after=7), fail("empty"))
        status, body = post(provider, "/v1/messages", anthropic(user()))
        assert (status, body["error"]["type"]) == (429, "rate_limit_error")
        assert post(provider, "/v1/messages", anthropic(user())) == (200, None)
        assert provider.refused == []
        assert provider.bill.requests == []
        assert len(provider.requests) == 2


def test_a_slow_reply_comes_late() -> None:
    with SimulatedProvider() as provider:
        provider.script(ScriptedReply(text="late", seconds=0.05))
        assert post(provider, "/v1/messages", anthropic(user()))[1]["content"][0]["text"] == "late"


def test_many_clients_at_once_are_all_answered() -> None:
    with SimulatedProvider() as provider:
        statuses: list[int] = []
        bodies = [anthropic(user(f"client {number}")) for number in range(40)]

        def send(body: Any) -> None:
            statuses.append(post(provider, "/v1/messages", body)[0])

        threads = [threading.Thread(target=send, args=(body,)) for body in bodies]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert statuses == [200] * 40
        assert len(provider.requests) == 40


def test_the_same_requests_get_the_same_answers() -> None:
    def run() -> list[Any]:
        with SimulatedProvider() as provider:
            provider.script(ScriptedReply(thinking="hm", text="hi"))
            return [post(provider, "/v1/messages", anthropic(user()))[1] for _ in range(2)]

    assert run() == run()


def folded_by(provider: SimulatedProvider) -> foldline.Fold:
    """The fold of a session whose digest the provider writes."""
    digester = digesters.anthropic("claude-haiku-4-5", base_url=provider.url, api_key="any")
    session = foldline.Session(model="claude-sonnet-5", digester=digester)
    for turn in range(8):
        session.add({"role": "user", "content": f"Part {turn}: " + "the queue keeps its order. " * 300})
        session.add({"role": "assistant", "content": f"Part {turn} is done."})
    session.add({"role": "user", "content": "And now?"})
    made = session.fold(force=True)
    assert made is not None
    return made


def test_a_request_for_a_digest_gets_one_and_leaves_the_script_to_the_agent() -> None:
    with SimulatedProvider() as provider:
        provider.script("for the agent")
        made = folded_by(provider)
        assert made.digest is not None
        assert (made.digest.by, made.digest.cause) == ("claude-haiku-4-5", "")
        assert post(provider, "/v1/messages", anthropic(user()))[1]["content"][0]["text"] == "for the agent"


def test_answers_can_be_scripted_for_one_model() -> None:
    with SimulatedProvider() as provider:
        provider.script(*["This is no digest."] * 3, model="claude-haiku-4-5")
        made = folded_by(provider)
        assert made.digest is not None
        assert made.digest.by == "local"
        assert "lacks the headings" in made.digest.cause
