"""A Responses request whose `input` is a plain text is recorded and continued like one with a list."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.json_text import encode
from foldline.proxy.body_scan import scan_body
from foldline.proxy.plain_text_input import with_listed_input
from foldline.testing.provider import ScriptedReply
from foldline.wire.formats import request_format
from support.proxies import proxy, raw_upstream, whole
from support.proxy_agents import Agent, folding, sessions

pytest.importorskip("aiohttp")
RESPONSES = request_format("openai-responses")
VALUES = st.dictionaries(
    st.text(max_size=8), st.text() | st.integers() | st.lists(st.integers(), max_size=3), max_size=4
)


def test_a_plain_text_reaches_the_provider_unchanged_and_begins_a_session(tmp_path: Path) -> None:
    with folding(tmp_path) as (provider, running):
        agent = Agent(running.url, "openai-responses", streams=False)
        provider.script(ScriptedReply(text="It is green."), ScriptedReply(text="It is still green."))
        status, headers, data = agent.post(agent.path, {**agent.body(), "input": "Is the build green?"})
        assert status == 200
        assert "x-foldline-recorded" not in headers
        assert provider.requests[-1].body["input"] == "Is the build green?"
        agent.messages = [{"role": "user", "content": "Is the build green?"}, *agent.reply(data)]
        agent.say("And now?")
        assert provider.refused == []
    assert [messages for _, messages, _ in sessions(tmp_path)] == [5]  # with the instructions


@pytest.mark.parametrize("refuses", [True, False])
def test_a_plain_text_that_continues_a_stored_response_is_a_partial_request(tmp_path: Path, refuses: bool) -> None:
    options: dict[str, Any] = {"mode": "fold", "ledger": str(tmp_path / "ledger.db"), "refuses_partial": refuses}
    with raw_upstream(whole(b"{}")) as upstream, proxy(upstream.url, **options) as running:
        agent = Agent(running.url, "openai-responses")
        body = {"model": "gpt-5.1", "input": "Go on.", "previous_response_id": "resp_1"}
        status, headers, data = agent.post(agent.path, body)
    if refuses:
        assert (status, json.loads(data)["error"]["code"]) == (400, "previous_response_not_found")
    else:
        assert (status, headers["x-foldline-recorded"]) == (200, "no")


@given(text=st.text(), before=VALUES, after=VALUES, is_ascii=st.booleans())
def test_the_list_has_the_text_and_the_rest_of_the_body_stays(
    text: str, before: dict[str, Any], after: dict[str, Any], is_ascii: bool
) -> None:
    fields = {key: value for key, value in (before | after).items() if key != "input"}
    body = {key: fields[key] for key in before if key in fields} | {"input": text} | fields
    listed = with_listed_input(encode(json.dumps(body, ensure_ascii=is_ascii)), RESPONSES)
    assert listed is not None
    assert json.loads(listed) == body | {"input": [{"role": "user", "content": text}]}
    assert len(scan_body(listed, "input").ends) == 1


@pytest.mark.parametrize(
    "body", [b'{"input": [1]}', b'{"input": 1}', b'{"messages": "x"}', b'{"input": "x"', b"", b"[]"]
)
def test_other_bodies_have_no_plain_text(body: bytes) -> None:
    assert with_listed_input(body, RESPONSES) is None
    assert with_listed_input(b'{"messages": "x"}', request_format("openai")) is None
