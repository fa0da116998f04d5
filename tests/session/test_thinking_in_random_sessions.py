"""Preserved thinking in random sessions: a block is sent only behind the prefix that it was written for.

The prefix is compared with the request that the block answered: model, system, tools and every block before it. The
same view must be composed live and after the ledger is opened again.
"""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import foldline
from foldline import Policy, Session
from foldline.errors import InputError
from foldline.models.table import model as model_of

MODELS = ("claude-opus-5-5", "claude-fable-5-1", "claude-sonnet-5")


def tool(name: str) -> dict[str, Any]:
    return {"name": name, "description": "Runs.", "input_schema": {"type": "object", "properties": {}}}


TOOLS = ([tool("a"), tool("b")], [tool("a"), tool("c")], [tool("a")])
"""The first two lists have the same size."""


def policy(window: int = 12_000, **knobs: Any) -> Policy:
    values = {"window_tokens": window, "reply_tokens": 500, "keep_tokens": 1_500, "prune_arrival_tokens": 400, **knobs}
    return Policy(**{"rules": ("fold when request > 80%",), "background": False, **values})


POLICIES = (policy(), policy(prune_arrival_tokens=900), policy(9_000), policy(prune_arrival_tokens=None))


def blocks(request: dict[str, Any]) -> list[Any]:
    """The blocks of all messages of a request, with their roles and without cache marks."""
    found = []
    for message in request["messages"]:
        content = message["content"]
        content = [{"type": "text", "text": content}] if isinstance(content, str) else content
        found += [(message["role"], plain(block)) for block in content]
    return found


def plain(value: Any) -> Any:
    if isinstance(value, list):
        return [plain(each) for each in value]
    return {key: plain(each) for key, each in value.items() if key != "cache_control"} if type(value) is dict else value


def front(request: dict[str, Any]) -> Any:
    return request["model"], plain(request.get("system")), plain(request.get("tools"))


class Driver:
    """A random conversation on a ledger. Every request is checked."""

    def __init__(self, path: Path, seed: int) -> None:
        self.random, self.path, self.number = random.Random(seed), path, 0
        self.tools, self.model = TOOLS[0], MODELS[0]
        self.made: dict[str, tuple[Any, list[Any]]] = {}
        """For each signature: the front and the blocks of the request that its reply answered."""
        self.ledger = foldline.open(path)
        self.session = self.ledger.session("s", model=self.model, tools=self.tools, policy=POLICIES[0])
        self.previous: list[Any] | None = None
        """The blocks of the last request, if nothing was changed since then."""
        self.folds = self.sent = 0

    def request(self, session: Session | None = None) -> dict[str, Any]:
        return (session or self.session).view().request("anthropic", max_tokens=500)

    def turn(self) -> None:
        request = self.request()
        found = blocks(request)
        self.check(request)
        if self.previous is not None and self.session.folds == self.folds:
            assert found[: len(self.previous)] == self.previous, "the prefix changed without a cause"
        self.previous, self.folds = found, self.session.folds
        self.number += 1
        self.made[f"SIG{self.number}"] = front(request), found
        if self.random.random() < 0.1:
            self.ask()  # while the reply is on its way
        self.reply()

    def reply(self) -> None:
        name, number = self.session.model.name, self.number
        content: list[Any] = [{"type": "thinking", "thinking": "hm", "signature": f"SIG{number}"}]
        content.append({"type": "text", "text": f"said {number}"})
        called = self.random.random() < 0.5
        if called:
            content.append({"type": "tool_use", "id": f"toolu_{number}", "name": "a", "input": {}})
        reply: dict[str, Any] = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": name}
        reply |= {"content": content, "stop_reason": "tool_use" if called else "end_turn"}
        if self.random.random() < 0.5:
            reply["usage"] = {"input_tokens": 900 + 40 * len(self.session), "output_tokens": 40}
        self.session.add(reply)
        if called and self.random.random() < 0.9:
            text = f"line {number}\n" * self.random.choice((5, 150, 260))
            result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": text}
            self.session.add({"role": "user", "content": [result]})
        else:
            self.ask()

    def ask(self) -> None:
        self.session.add({"role": "user", "content": f"question {self.number} " + "word " * 60})

    def check(self, request: dict[str, Any]) -> None:
        """Every bound block stands behind the request that it answered."""
        found = blocks(request)
        signed = [(at, block["signature"]) for at, (_, block) in enumerate(found) if block["type"] == "thinking"]
        self.sent += len(signed)
        if not model_of(request["model"]).binds_thinking:
            return
        for at, signature in signed:
            made_front, made = self.made[signature]
            assert front(request) == made_front, signature
            assert found[:at] == made, signature

    def change(self) -> None:
        self.previous = None
        kinds = ("model", "tools", "policy", "fold", "unfold", "refold", "rewind", "pin", "unpin", "open")
        kind = self.random.choice(kinds)
        session = self.session
        if kind == "model":
            session.use(model=self.random.choice(MODELS))
        elif kind == "tools":
            self.tools = self.random.choice(TOOLS)
            session.use(tools=self.tools)
        elif kind == "policy":
            session.use(policy=self.random.choice(POLICIES))
        elif kind == "fold":
            session.fold(force=True)
        elif kind == "unfold" and session.folds:
            session.unfold()
        elif kind == "refold":
            with suppress(InputError):  # no fold was taken back, or the fold would remove a pinned message
                session.refold()
        elif kind == "rewind" and len(session) > 4:
            session.rewind(self.random.randrange(len(session) - 4, len(session)))
            self.ask()
        elif kind == "pin":
            session.pin(handle=f"#{self.random.randint(1, len(session))}")
        elif kind == "unpin" and session.pins:
            session.unpin(self.random.choice(sorted(session.pins)), at_once=self.random.random() < 0.5)
        elif kind == "open":
            self.ledger.close()
            self.tools = self.random.choice(TOOLS)
            self.ledger = foldline.open(self.path)
            self.session = self.ledger.session("s", tools=self.tools)

    def compare_with_reopened(self) -> None:
        with foldline.open(self.path) as other:
            reopened = other.session("s", tools=self.tools)
            try:
                expected = self.request()
            except foldline.FoldlineError:
                return
            assert self.request(reopened) == expected
            assert reopened.view().unbound == self.session.view().unbound


@pytest.mark.parametrize("seed", range(6))
def test_a_block_is_only_sent_behind_the_prefix_it_was_written_for(tmp_path: Path, seed: int) -> None:
    driver = Driver(tmp_path / "a.db", seed)
    driver.ask()
    for step in range(40):
        driver.turn()
        if driver.random.random() < 0.3:
            driver.change()
        if step % 4 == 0:
            driver.compare_with_reopened()
    driver.ledger.close()
    assert driver.sent
