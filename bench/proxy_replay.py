"""Compares the cost of recorded sessions with and without the proxy, at a provider with a simulated prompt cache.

Each session file is replayed as a client would send it: every request has the history so far, and a cache breakpoint at
its end. A simulated clock advances by the mean pause of the recording. The replies are those of the recording. The
ratio of the two costs is printed, for each session and in total.

    python -m bench proxy_replay --data FOLDER --sessions 40 --window 40000
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from foldline.errors import FoldlineError

MODEL = "claude-sonnet-4-5"
GOAL, WORST = 0.5, 1.02
PAUSE_S = 60.0
"""The longest pause between two messages, in seconds."""
SYSTEM = "You are a careful engineer. " + "Read before you write, and test what you change. " * 400
MARK = {"type": "ephemeral"}


@dataclass
class Clock:
    """A clock that the replay sets."""

    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        """The time in seconds since 1970."""
        return self.now


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A request of the recording: the history that it sends, its reply, and when it was sent."""

    length: int
    reply: list[Any]
    at: float


def request_body(elements: list[Any], length: int) -> dict[str, Any]:
    """The request with the first `length` messages, and with a cache breakpoint at its end."""
    system = [{"type": "text", "text": SYSTEM, "cache_control": MARK}]
    body = {"model": MODEL, "max_tokens": 1_000, "system": system, "messages": elements[:length]}
    return {**body, "cache_control": MARK}


def account(clock: Clock) -> Any:
    """An account at a provider whose window is never too small."""
    from foldline.testing.provider.account import Account
    from foldline.testing.provider.window_rules import SimulatedModel

    models = {MODEL: SimulatedModel(window=100_000_000, overflow="ignore")}
    return Account(models=models, clock=clock, takes_foreign=True, enforces_binding=False, needs_tools=False)


def send(provider: Any, body: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    reply = provider.answer("anthropic", body)
    return reply.error, reply.body


async def bill(
    elements: list[Any], played: list[Exchange], policy: Any, place: str, *, folds: bool
) -> tuple[float, int]:
    """The cost of all requests in US dollars, and the number of refused requests."""
    from foldline.proxy.api_calls import ApiCall
    from foldline.proxy.configuration import ProxySettings
    from foldline.proxy.conversations import Conversations
    from foldline.proxy.interception import ClientRequest, ReceivedResponse
    from foldline.proxy.recording_interceptor import RecordingInterceptor
    from foldline.proxy.upstreams import Upstreams

    clock = Clock()
    provider, refused = account(clock), 0
    settings = ProxySettings(
        upstreams=Upstreams.parse(["http://127.0.0.1:9"]),
        ledger=place,
        policy=policy,
        prepare_s=60,
        mode="fold" if folds else "observe",
    )
    interceptor = RecordingInterceptor(settings, Conversations(place), clock)
    headers = [(b"x-foldline-session", b"replay"), (b"x-api-key", b"none")]
    for one in played:
        clock.now = max(clock.now, 1_800_000_000.0 + one.at)
        body = json.dumps(request_body(elements, one.length)).encode()
        request = ClientRequest(call=ApiCall("anthropic", "create"), headers=headers, body=body)
        outgoing = await interceptor.prepare(request)
        error, message = send(provider, json.loads(outgoing.body))
        if error is not None:
            refused += 1
            continue
        message = {**message, "content": one.reply}
        response = ReceivedResponse(status=200, headers=[], chunks=[json.dumps(message).encode()], is_complete=True)
        interceptor.record(request, outgoing, response)
        await interceptor.settle()
    await interceptor.close()
    return provider.bill.usd, refused


def prepared(path: Path, most: int) -> tuple[list[Any], list[Exchange]]:
    """The messages of a session file as requests send them, and its requests."""
    import foldline

    found = foldline.read(path)
    session = foldline.Session(format="anthropic", model=MODEL, policy=replace(foldline.Policy(), window_tokens=10**9))
    session.add(*(message for message in found.messages if message.role != "system"))
    elements: list[Any] = []
    for element in session.view().render("anthropic").body["messages"]:
        content = element["content"]
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        kept = [without_mark(one) for one in blocks if one["type"] not in ("thinking", "redacted_thinking")]
        if elements and elements[-1]["role"] == element["role"]:
            elements[-1]["content"] += kept
        elif kept:
            elements.append({"role": element["role"], "content": kept})
    times = [message.meta.at for message in found.messages if message.meta.at is not None]
    pause = (times[-1] - times[0]) / max(1, len(elements)) if times else 0.0
    played = [
        Exchange(length=index, reply=element["content"], at=index * min(pause, PAUSE_S))
        for index, element in enumerate(elements)
        if index and element["role"] == "assistant"
    ]
    return elements, played[:most]


def without_mark(block: Any) -> Any:
    """A content block without its cache breakpoint."""
    return {key: value for key, value in block.items() if key != "cache_control"}


def main(argv: list[str]) -> int:
    from foldline.policy import Policy
    from foldline.proxy.configuration import DEFAULT_PRESET

    options = argparse.ArgumentParser(prog="python -m bench proxy_replay", description=__doc__)
    options.add_argument("--data", required=True, help="a folder with session files")
    options.add_argument("--sessions", type=int, default=40)
    options.add_argument("--window", type=int, default=40_000)
    options.add_argument("--policy", default=DEFAULT_PRESET, help="the preset")
    options.add_argument("--requests", type=int, default=150, help="at most this many requests of a session")
    given = options.parse_args(argv)
    policy = replace(Policy.preset(given.policy), window_tokens=given.window)
    files = sorted(path for path in Path(given.data).rglob("*.jsonl*") if path.is_file())
    total, plain, worst, count = 0.0, 0.0, 0.0, 0
    for path in files:
        if count >= given.sessions:
            break
        try:
            elements, played = prepared(path, given.requests)
        except (FoldlineError, ValueError, KeyError) as error:
            print(f"{path.name[:12]}: left out ({type(error).__name__})")
            continue
        if len(played) < 3:
            continue
        count += 1
        with tempfile.TemporaryDirectory() as place:
            without, _ = asyncio.run(bill(elements, played, policy, f"{place}/a.db", folds=False))
            with_proxy, refused = asyncio.run(bill(elements, played, policy, f"{place}/b.db", folds=True))
        ratio = with_proxy / without if without else 1.0
        total, plain, worst = total + with_proxy, plain + without, max(worst, ratio)
        print(f"{path.name[:12]}: {len(played):4} requests, {without:8.4f} → {with_proxy:8.4f} dollars, "
              f"ratio {ratio:.3f}, {refused} refused", flush=True)  # fmt: skip
    share = total / plain if plain else 1.0
    print(f"{count} sessions: ratio {share:.3f} (goal {GOAL}), worst session {worst:.3f} (goal {WORST})")
    return 0 if share <= GOAL and worst <= WORST else 1
