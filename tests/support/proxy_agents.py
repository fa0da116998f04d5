"""Agents that talk to a proxy over HTTP as real clients do: they send their whole history with every request."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import foldline
from foldline import ledger
from foldline.ledger.receipts import Receipt, read_receipts
from foldline.policy import Policy
from foldline.testing.provider import ScriptedReply, SimulatedModel, SimulatedProvider
from support.proxies import RunningProxy, proxy

MODELS = {
    "anthropic": "claude-sonnet-4-5",
    "openai": "gpt-5.1",
    "openai-responses": "gpt-5.1",
    "gemini": "gemini-3-pro",
}
BOUND = "claude-opus-5-5"
"""A model that binds its thinking to everything before it."""
WINDOW = 12_000
POLICY = replace(
    Policy.preset("balanced"), window_tokens=WINDOW, reply_tokens=1_000, digest_tokens=800, min_gain_tokens=200
)
TOOL: dict[str, Any] = {
    "name": "bash",
    "description": "Run a command.",
    "parameters": {"type": "object", "properties": {}},
}


@dataclass
class Agent:
    """A client in one wire format, with one tool."""

    url: str
    format: str = "anthropic"
    model: str = ""
    key: str = "sk-test"
    headers: dict[str, str] = field(default_factory=dict)
    streams: bool = True
    messages: list[dict[str, Any]] = field(default_factory=list)
    answers: list[tuple[int, dict[str, str], bytes]] = field(default_factory=list)
    system: str = "You are a careful engineer."
    extra: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.model = self.model or MODELS[self.format]

    def body(self) -> dict[str, Any]:
        if self.format == "anthropic":
            tool: dict[str, Any] = {"name": "bash", "description": "Run a command.", "input_schema": TOOL["parameters"]}
            body: dict[str, Any] = {"model": self.model, "max_tokens": 500, "messages": self.messages}
            return {**body, "system": self.system, "tools": [tool], "stream": self.streams, **self.extra}
        if self.format == "openai":
            system = {"role": "system", "content": self.system}
            tools: list[Any] = [{"type": "function", "function": TOOL}]
            body = {"model": self.model, "messages": [system, *self.messages], "tools": tools, "stream": self.streams}
            return {**body, **({"stream_options": {"include_usage": True}} if self.streams else {}), **self.extra}
        if self.format == "openai-responses":
            tools = [{"type": "function", "strict": False, **TOOL}]
            body = {"model": self.model, "instructions": self.system, "input": self.messages, "tools": tools}
            return {**body, "store": False, "include": ["reasoning.encrypted_content"], "stream": self.streams}
        tools = [
            {
                "functionDeclarations": [
                    {**TOOL, "parameters": {"type": "OBJECT", "properties": {"command": {"type": "STRING"}}}}
                ]
            }
        ]
        instruction = {"parts": [{"text": self.system}]}
        return {"contents": self.messages, "systemInstruction": instruction, "tools": tools}

    @property
    def path(self) -> str:
        action = "streamGenerateContent?alt=sse" if self.streams else "generateContent"
        return {
            "anthropic": "/v1/messages?beta=true",
            "openai": "/v1/chat/completions",
            "openai-responses": "/v1/responses",
            "gemini": f"/v1beta/models/{self.model}:{action}",
        }[self.format]

    def post(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
        headers = {"content-type": "application/json", **self.headers}
        headers |= {"anthropic": {"x-api-key": self.key, "anthropic-version": "2023-06-01"}}.get(
            self.format, {"authorization": f"Bearer {self.key}", "x-goog-api-key": self.key}
        )
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=60)
        try:
            connection.request("POST", path, json.dumps(body), headers)
            response = connection.getresponse()
            return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
        finally:
            connection.close()

    def send(self) -> tuple[int, dict[str, str], bytes]:
        """Send the history, and add the reply to it."""
        status, headers, data = self.post(self.path, self.body())
        self.answers.append((status, headers, data))
        if status == 200:
            self.messages += self.reply(data)
        return self.answers[-1]

    def reply(self, data: bytes) -> list[dict[str, Any]]:
        """The reply as the client sends it back."""
        from foldline.wire.streaming.assembler import Assembler

        assembler = Assembler(self.format)
        assembler.feed(data)
        found = assembler.finish()
        assert found is not None
        assert found.complete, data[-400:]
        value: Any = found.value
        if self.format == "anthropic":
            return [{"role": "assistant", "content": value["content"]}]
        if self.format == "openai":
            return [{key: item for key, item in value["choices"][0]["message"].items() if item is not None}]
        if self.format == "openai-responses":
            return [{key: item for key, item in one.items() if key != "status"} for one in value["output"]]
        return [value["candidates"][0]["content"]]

    def say(self, text: str) -> tuple[int, dict[str, str], bytes]:
        """Send a message of the user."""
        if self.format == "gemini":
            self.messages.append({"role": "user", "parts": [{"text": text}]})
        elif self.format == "openai-responses":
            self.messages.append({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
        else:
            self.messages.append({"role": "user", "content": text})
        return self.send()

    def answer_calls(self, text: str) -> tuple[int, dict[str, str], bytes]:
        """Send the results of the calls in the last reply."""
        if self.format == "anthropic":
            calls = [block for block in self.messages[-1]["content"] if block["type"] == "tool_use"]
            if not calls:
                return self.say(text)
            results = [{"type": "tool_result", "tool_use_id": one["id"], "content": text} for one in calls]
            self.messages.append({"role": "user", "content": results})
        elif self.format == "openai":
            calls = self.messages[-1]["tool_calls"]
            self.messages += [{"role": "tool", "tool_call_id": one["id"], "content": text} for one in calls]
        elif self.format == "openai-responses":
            calls = [one for one in self.messages if one.get("type") == "function_call"]
            done = {one["call_id"] for one in self.messages if one.get("type") == "function_call_output"}
            self.messages += [
                {"type": "function_call_output", "call_id": one["call_id"], "output": text}
                for one in calls
                if one["call_id"] not in done
            ]
        else:
            calls = [part["functionCall"] for part in self.messages[-1]["parts"] if "functionCall" in part]
            answers = [
                {
                    "functionResponse": {
                        **({"id": one["id"]} if "id" in one else {}),
                        "name": one["name"],
                        "response": {"out": text},
                    }
                }
                for one in calls
            ]
            self.messages.append({"role": "user", "parts": answers})
        return self.send()

    def work(self, provider: SimulatedProvider, requests: int, *, thinking: str = "", words: int = 120) -> None:
        """Go on for some requests: a question, three tool calls, an answer, and again."""
        for number in range(requests):
            step, said = number % 4, thinking and f"{thinking} {number}"
            if step < 3:
                call = (("bash", {"command": f"grep -n line{number} src/file{number}.py"}),)
                provider.script(ScriptedReply(thinking=said, text=f"Looking at step {number}.", calls=call))
            else:
                provider.script(ScriptedReply(thinking=said, text=f"Step {number} is done. " + "It went well. " * 10))
            if step == 0:
                self.say(f"Please look at part {number}. " + "Take care of the details. " * 10)
            else:
                self.answer_calls(f"result {number}: " + f"word{number} " * words)
            status, _, data = self.answers[-1]
            assert status == 200, data


@contextmanager
def folding(tmp_path: Path, window: int = WINDOW, **given: Any) -> Iterator[tuple[SimulatedProvider, RunningProxy]]:
    models = dict.fromkeys([*MODELS.values(), BOUND, "gpt-5", "gemini-3-flash"], SimulatedModel(window=window))
    options: dict[str, Any] = {"mode": "fold", "policy": POLICY, "ledger": str(tmp_path / "ledger.db"), **given}
    clock = options.setdefault("clock", time.time)
    with SimulatedProvider(models=models, clock=clock) as provider, proxy(provider.url, **options) as running:
        yield provider, running


def sizes(provider: SimulatedProvider) -> list[int]:
    return [len(json.dumps(request.body)) for request in provider.requests]


def sessions(tmp_path: Path) -> list[tuple[str, int, int]]:
    """Name, messages and folds of every session of every tenant."""
    found = []
    store = ledger.open(tmp_path / "ledger.db")
    for owner in ledger.owners(store):
        with foldline.open(tmp_path / "ledger.db", owner=owner) as opened:
            found += [(info.name, info.messages, info.folds) for info in opened.sessions() if info.messages]
    store.close()
    return found


def branch_names(tmp_path: Path, session: str = "work") -> list[str]:
    """The names of a session's branches, of whichever tenant has it."""
    store = ledger.open(tmp_path / "ledger.db")
    try:
        owned = [ledger.for_owner(store, owner).branches(session) for owner in ledger.owners(store)]
        return [branch.name for branches in owned for branch in branches]
    finally:
        store.close()


def receipts(tmp_path: Path, session: str = "work") -> list[Receipt]:
    """The receipts of a session, of whichever tenant has it."""
    store = ledger.open(tmp_path / "ledger.db")
    try:
        return [
            one
            for owner in ledger.owners(store)
            for one in read_receipts(ledger.for_owner(store, owner), session, limit=10_000)
        ]
    finally:
        store.close()


def elements(request: Any) -> list[Any]:
    key = {"openai_responses": "input", "gemini": "contents"}.get(request.format, "messages")
    found: list[Any] = request.body[key]
    return found
