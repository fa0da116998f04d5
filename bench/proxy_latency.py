"""Measures the time to the first event through the proxy, through a bare pass-through, and through litellm, in one run.

The provider is a stub that streams, and all servers are on loopback. The requests of a round go to all servers in turn,
so that other work on the machine affects all of them. `added` is the difference to the requests that go to the stub
directly. The load average of the machine is printed before and after. The exit status is 1 if a goal is missed.

    python -m bench proxy_latency
    python -m bench proxy_latency --litellm /path/to/venv/bin/litellm
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

EVENTS = 20
LITELLM = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
}
"""Variables with which litellm starts without a network and without a key."""
_WORDS = "the build of this project fails because one test reads a file that another test has already removed from disk"
MODEL = "claude-sonnet-4-5"
_PATH = "/v1/messages"
GOALS = {"20 kB, added p50": 1.5, "400 kB, added p50": 5.0, "400 kB, added p99": 25.0}
"""The most milliseconds that the proxy may add to the first event."""
FACTOR = 5
"""How many times as many requests a second as litellm the proxy must serve."""


# Servers, each in a process of its own


def events(size: int) -> list[bytes]:
    """The events of a streamed reply to a request of this many bytes."""
    usage = {"input_tokens": 10, "cache_creation_input_tokens": 0, "output_tokens": 15}
    usage["cache_read_input_tokens"] = size // 5
    message: dict[str, Any] = {"id": "msg_0", "type": "message", "role": "assistant", "model": MODEL, "content": []}
    message |= {"stop_reason": None, "stop_sequence": None, "usage": usage}
    found: list[dict[str, Any]] = [{"type": "message_start", "message": message}]
    found += [{"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}]
    delta = {"type": "text_delta", "text": "word "}
    found += [{"type": "content_block_delta", "index": 0, "delta": delta}] * (EVENTS - 5)
    found += [{"type": "content_block_stop", "index": 0}]
    found += [{"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": usage}]
    found += [{"type": "message_stop"}]
    return [f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in found]


async def read_all(receive: Any) -> bytes:
    pieces = []
    while True:
        message = await receive()
        pieces.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(pieces)


def stub() -> Any:
    """A provider that answers every request with the same stream."""

    async def application(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        sent = events(len(await read_all(receive)))
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for event in sent:
            await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    return application


def bare(upstream: str) -> Any:
    """A proxy that only passes requests on."""
    import aiohttp

    found: list[aiohttp.ClientSession] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        if not found:
            found.append(aiohttp.ClientSession(auto_decompress=False, connector=aiohttp.TCPConnector(limit=0)))
        body = await read_all(receive)
        headers = {name.decode(): value.decode() for name, value in scope["headers"] if name != b"host"}
        async with found[0].post(upstream + scope["path"], data=body, headers=headers) as response:
            kept = [(name, value) for name, value in response.raw_headers if name.lower() != b"transfer-encoding"]
            await send({"type": "http.response.start", "status": response.status, "headers": kept})
            async for chunk in response.content.iter_any():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    return application


def serve(role: str, port: int, upstream: str) -> int:
    import uvicorn

    application = stub() if role == "stub" else bare(upstream)
    uvicorn.run(application, port=port, log_level="warning", lifespan="off", access_log=False, ws="none")
    return 0


class Server(NamedTuple):
    """A running server."""

    url: str
    pid: int

    def cpu_seconds(self) -> float:
        """The processor time that the server has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def process(command: list[str], port: int, seconds: float = 20.0) -> Iterator[Server]:
    """Run a server until the `with` block ends. Yields its address and its process id when it listens."""
    env = {**os.environ, **LITELLM}
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
    try:
        until = time.monotonic() + seconds
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            if running.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"{command[:4]} did not start")
            time.sleep(0.05)
        yield Server(f"http://127.0.0.1:{port}", running.pid)
    finally:
        running.terminate()
        running.wait(20)


@contextmanager
def servers(place: Path, litellm: str = "", *, window: int = 0) -> Iterator[dict[str, Server]]:
    """The stub and the proxies in front of it."""
    own = [sys.executable, "-m", "bench", "proxy_latency"]
    with ExitStack() as stack:
        port = free_port()
        found = {"direct": stack.enter_context(process([*own, "--role", "stub", "--port", str(port)], port))}
        port = free_port()
        command = [*own, "--role", "bare", "--port", str(port), "--upstream", found["direct"].url]
        found["bare"] = stack.enter_context(process(command, port))
        port = free_port()
        command = [sys.executable, "-m", "foldline.cli", "serve", "-u", found["direct"].url, "--port", str(port)]
        command += ["--ledger", str(place / "ledger.db"), *(["--window", str(window)] if window else [])]
        found["foldline"] = stack.enter_context(process(command, port))
        if litellm:
            port = free_port()
            config = place / "litellm.yaml"
            values = {"model": f"anthropic/{MODEL}", "api_base": found["direct"].url, "api_key": "none"}
            config.write_text(json.dumps({"model_list": [{"model_name": MODEL, "litellm_params": values}]}))
            command = [litellm, "--config", str(config), "--port", str(port), "--host", "127.0.0.1"]
            found["litellm"] = stack.enter_context(process(command, port, 120.0))
        yield found


# The client


@dataclass
class Talk:
    """A conversation whose history has a given size and grows by a question and an answer with each request."""

    name: str
    size: int
    elements: list[str] = field(default_factory=list)
    number: int = 0

    def __post_init__(self) -> None:
        drawn = random.Random(self.name)
        words = _WORDS.split()
        while sum(map(len, self.elements)) < self.size:
            text = " ".join(drawn.choices(words, k=120))
            role = "assistant" if len(self.elements) % 2 else "user"
            self.elements.append(json.dumps({"role": role, "content": [{"type": "text", "text": text}]}))
        self.elements = self.elements[: len(self.elements) // 2 * 2]

    def body(self, more: str = "") -> bytes:
        """The body of the next request. Its question ends with `more`."""
        self.number += 1
        self.elements.append(json.dumps({"role": "user", "content": f"question {self.number} {more}"}))
        body = f'{{"model":"{MODEL}","max_tokens":100,"stream":true,"messages":[{",".join(self.elements)}]}}'
        answer = [{"type": "text", "text": "word " * (EVENTS - 5)}]
        self.elements.append(json.dumps({"role": "assistant", "content": answer}))
        return body.encode()


async def first_event(client: Any, url: str, name: str, body: bytes) -> float:
    """Seconds until the first event of a response. The rest of the response is read, too."""
    headers = {"x-api-key": "none", "authorization": "Bearer none", "x-foldline-session": name}
    headers |= {"anthropic-version": "2023-06-01", "content-type": "application/json"}
    start = time.perf_counter()
    async with client.post(url + _PATH, data=body, headers=headers) as response:
        assert response.status == 200, await response.text()
        await response.content.readany()
        seconds = time.perf_counter() - start
        await response.read()
    return seconds


async def in_turn(urls: dict[str, str], *, size: int, requests: int) -> dict[str, list[float]]:
    """Send one request after the other, to all servers in turn. The first three requests of a conversation are not
    counted.
    """
    import aiohttp

    found: dict[str, list[float]] = {name: [] for name in urls}
    async with aiohttp.ClientSession() as client:
        talks: dict[str, Talk] = {}
        for number in range(requests):
            if number % 20 == 0:
                talks = {name: Talk(f"{name}-{size}-{number}", size) for name in urls}
            for name in random.sample(list(urls), len(urls)):
                seconds = await first_event(client, urls[name], talks[name].name, talks[name].body())
                if number % 20 > 2:
                    found[name].append(seconds)
            await asyncio.sleep(0.05)  # as if the client worked; meanwhile, the exchange is recorded
    return found


async def at_rate(url: str, talks: list[Talk], *, rate: float, seconds: float) -> list[float]:
    """Send requests at a fixed rate, even if earlier requests have not ended."""
    import aiohttp

    found: list[float] = []
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:

        async def one(talk: Talk) -> None:
            found.append(await first_event(client, url, talk.name, talk.body()))

        start, tasks = time.perf_counter(), []
        for number in range(int(rate * seconds)):
            await asyncio.sleep(max(0.0, start + number / rate - time.perf_counter()))
            tasks.append(asyncio.create_task(one(talks[number % len(talks)])))
        await asyncio.gather(*tasks)
    return found


async def throughput(url: str, name: str, *, size: int, seconds: float, connections: int = 16) -> float:
    """Requests per second over several connections."""
    import aiohttp

    count, end = 0, time.perf_counter() + seconds
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:

        async def work(number: int) -> None:
            nonlocal count
            talk = Talk(f"{name}-t{number}", size)
            while time.perf_counter() < end:
                await first_event(client, url, talk.name, talk.body())
                count += 1

        await asyncio.gather(*(work(number) for number in range(connections)))
    return count / seconds


def at(values: list[float], share: float) -> float:
    """A percentile in milliseconds."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1e3


def show(title: str, size: str, found: dict[str, list[float]]) -> dict[str, float]:
    """Print the figures of one measurement; what foldline adds, by the names of the goals."""
    print(title)
    added = dict[str, float]()
    for name, values in found.items():
        figures = {share: at(values, share) for share in (0.5, 0.99)}
        more = {f"p{share * 100:.0f}": value - at(found["direct"], share) for share, value in figures.items()}
        line = f"  {name:9} p50 {figures[0.5]:7.2f} ms, p99 {figures[0.99]:8.2f}"
        print(line + f"   added p50 {more['p50']:6.2f}, p99 {more['p99']:7.2f}" * (name != "direct"))
        if name == "foldline":
            added = {f"{size}, added {share}": value for share, value in more.items()}
    return added


def misses(added: dict[str, float], rates: dict[str, float]) -> list[str]:
    """The goals that were missed."""
    found = [f"{name}: {added[name]:.2f} ms (goal {goal})" for name, goal in GOALS.items() if added[name] > goal]
    if "litellm" in rates and rates["foldline"] < FACTOR * rates["litellm"]:
        found.append(f"{rates['foldline'] / rates['litellm']:.1f} times the requests of litellm (goal {FACTOR})")
    return found


async def run(urls: dict[str, str], given: argparse.Namespace) -> list[str]:
    """Run all measurements and return the goals that were missed."""
    single = await in_turn(urls, size=20_000, requests=given.requests)
    added = show("first event, 20 kB bodies, one at a time", "20 kB", single)
    quick = {name: url for name, url in urls.items() if name != "litellm"}
    loaded: dict[str, list[float]] = {name: [] for name in quick}
    talks = {name: [Talk(f"{name}-large-{n}", 400_000) for n in range(25)] for name in quick}
    for name, url in quick.items():
        await at_rate(
            url, talks[name], rate=10, seconds=2.5
        )  # the first request of each conversation is recorded and not counted
        await asyncio.sleep(given.settle)
    for _ in range(given.rounds):
        for name in random.sample(list(quick), len(quick)):
            loaded[name] += await at_rate(quick[name], talks[name], rate=given.rate, seconds=4)
    added |= show(f"first event, 400 kB bodies, {given.rate:.0f} requests a second", "400 kB", loaded)
    rates = {name: [] for name in urls}  # type: dict[str, list[float]]
    for number in range(3):
        for name, url in urls.items():
            rates[name].append(await throughput(url, f"{name}-{number}", size=20_000, seconds=3))
    best = {name: statistics.median(values) for name, values in rates.items()}
    print("requests a second, 16 connections, 20 kB bodies: " + ", ".join(f"{n} {v:,.0f}" for n, v in best.items()))
    return misses(added, best)


def main(argv: list[str]) -> int:
    options = argparse.ArgumentParser(prog="python -m bench proxy_latency", description=__doc__)
    options.add_argument("--requests", type=int, default=200, help="requests of the first measurement")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--rate", type=float, default=50.0)
    options.add_argument(
        "--settle", type=float, default=2.0, help="seconds to wait until large conversations are recorded"
    )
    options.add_argument("--litellm", default=os.environ.get("FOLDLINE_LITELLM", ""), help="the command of litellm")
    options.add_argument("--role", choices=["stub", "bare"], help=argparse.SUPPRESS)
    options.add_argument("--port", type=int, default=0, help=argparse.SUPPRESS)
    options.add_argument("--upstream", default="", help=argparse.SUPPRESS)
    given = options.parse_args(argv)
    if given.role:
        return serve(given.role, given.port, given.upstream)
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as place, servers(Path(place), given.litellm) as started:
        missed = asyncio.run(run({name: one.url for name, one in started.items()}, given))
    print(f"load average: {before:.1f} before, {os.getloadavg()[0]:.1f} after; processors: {os.cpu_count()}")
    print("missed goals: " + ("; ".join(missed) or "none"))
    return 1 if missed else 0
