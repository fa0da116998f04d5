"""What the proxy adds to a request before it is sent, early and late in a long session that is folded again and again.

The client sends its whole history each time. Printed are medians of the time to plan a request, by its number, with the
size of the client's body beside them. No network is used.

    python -m bench proxy_turns --requests 2000
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

SAMPLE = 20


async def run(requests: int, ledger: str, *, window: int) -> list[tuple[float, int, bool]]:
    """Plan and record the requests of one session; returns seconds, bytes and whether it was folded, for each."""
    from foldline.policy import Policy
    from foldline.proxy.api_calls import ApiCall
    from foldline.proxy.configuration import ProxySettings
    from foldline.proxy.conversations import Conversations
    from foldline.proxy.interception import ClientRequest, ReceivedResponse
    from foldline.proxy.recording_interceptor import RecordingInterceptor
    from foldline.proxy.upstreams import Upstreams

    policy = replace(Policy.preset("balanced"), window_tokens=window, reply_tokens=2_000, digest_tokens=1_500)
    upstreams = Upstreams.parse(["http://127.0.0.1:9"])
    settings = ProxySettings(upstreams=upstreams, ledger=ledger, policy=policy, prepare_s=60)
    interceptor = RecordingInterceptor(settings, Conversations(ledger))
    head = '{"model":"claude-sonnet-4-5","max_tokens":100,"messages":['
    elements: list[str] = []
    found: list[tuple[float, int, bool]] = []
    for number in range(requests):
        elements.append(json.dumps({"role": "user", "content": f"question {number} " + "why is that so? " * 20}))
        body = f"{head}{','.join(elements)}]}}".encode()
        headers = [(b"x-foldline-session", b"bench"), (b"x-api-key", b"k")]
        request = ClientRequest(call=ApiCall("anthropic", "create"), headers=headers, body=body)
        start = time.perf_counter()
        outgoing = await interceptor.prepare(request)
        found.append((time.perf_counter() - start, len(body), outgoing.is_rewritten))
        content = [{"type": "text", "text": f"answer {number} " + "because of the build. " * 10}]
        usage = {"input_tokens": len(outgoing.body) // 4, "output_tokens": 60}
        reply: dict[str, Any] = {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
        }
        reply |= {"content": content, "stop_reason": "end_turn", "stop_sequence": None, "usage": usage}
        response = ReceivedResponse(status=200, headers=[], chunks=[json.dumps(reply).encode()], is_complete=True)
        interceptor.record(request, outgoing, response)
        elements.append(json.dumps({"role": "assistant", "content": content}))
        await interceptor.settle()
    await interceptor.close()
    return found


def main(argv: list[str]) -> int:
    options = argparse.ArgumentParser(prog="python -m bench proxy_turns", description=__doc__)
    options.add_argument("--requests", type=int, default=2_000)
    options.add_argument("--window", type=int, default=20_000)
    given = options.parse_args(argv)
    with tempfile.TemporaryDirectory() as place:
        found = asyncio.run(run(given.requests, str(Path(place, "ledger.db")), window=given.window))
    for at in (10, 50, 200, 1_000, 2_000, given.requests):
        part = found[max(0, at - SAMPLE) : at]
        if at <= given.requests and part:
            ms = statistics.median(seconds for seconds, _, _ in part) * 1e3
            least = min(seconds for seconds, _, _ in part) * 1e3
            folded = sum(is_folded for _, _, is_folded in part)
            print(
                f"request {at:>6,}: p50 {ms:6.2f} ms, least {least:5.2f}, body {part[-1][1]:>9,} bytes, folded {folded}"
            )
    return 0
