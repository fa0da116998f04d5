"""Measures how fast a streamed reply is assembled, and whether the time grows linearly with its size.

Each provider streams the same text in small deltas. The figures are megabytes of events per second, microseconds per
event, and the time for twice the text divided by the time for the text (2.0 is linear). The time of `json.loads` for
the same events is printed for comparison.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from foldline.wire.streaming import Assembler

CHUNK_BYTES = 16_384
DELTA_CHARS = 20
TRIES = 5
LINE = "Grüße aus Ulm, it rains; "


def main(argv: Sequence[str]) -> int:
    """Run the bench and print its figures."""
    parser = argparse.ArgumentParser(prog="python -m bench stream", description=__doc__)
    parser.add_argument("--chars", type=int, default=500_000, help="characters of text in the reply")
    options = parser.parse_args(argv)
    print(f"{options.chars:,} characters in deltas of {DELTA_CHARS}, read in chunks of {CHUNK_BYTES:,} bytes")
    for provider, make in EVENTS.items():
        once, twice = (make((LINE * (size // len(LINE) + 1))[:size]) for size in (options.chars, 2 * options.chars))
        data, texts = _bytes(once), [json.dumps(event) for event in once]
        seconds, parsing = _best(_assemble, provider, data), _best(_parse, texts)
        growth = _best(_assemble, provider, _bytes(twice)) / seconds
        print(
            f"{provider:17} {len(data) / 1e6:5.1f} MB  {len(data) / 1e6 / seconds:5.1f} MB/s  "
            f"{seconds / len(once) * 1e6:5.1f} us/event (json alone {parsing / len(once) * 1e6:4.1f})  "
            f"twice the text: {growth:.2f}x the time"
        )
    return 0


def _anthropic(text: str) -> list[dict[str, Any]]:
    deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(text)]
    return [
        {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
    ]


def _chat(text: str) -> list[dict[str, Any]]:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    deltas: list[tuple[dict[str, str], str | None]] = [({"content": piece}, None) for piece in _pieces(text)]
    ends = [*deltas, ({}, "stop")]
    return [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": end}]} for delta, end in ends]


def _responses(text: str) -> list[dict[str, Any]]:
    part = {"type": "output_text", "text": text, "annotations": []}
    item = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]}
    place = {"item_id": "m", "output_index": 0, "content_index": 0}
    return [
        {"type": "response.created", "response": {"id": "r", "object": "response", "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        *({"type": "response.output_text.delta", **place, "delta": piece} for piece in _pieces(text)),
        {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": [item]}},
    ]


def _gemini(text: str) -> list[dict[str, Any]]:
    contents = [{"role": "model", "parts": [{"text": piece}]} for piece in _pieces(text)]
    chunks: list[dict[str, Any]] = [{"candidates": [{"content": content, "index": 0}]} for content in contents]
    return [*chunks, {"candidates": [{"finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 1}}]


EVENTS: dict[str, Callable[[str], list[dict[str, Any]]]] = {
    "anthropic": _anthropic,
    "openai": _chat,
    "openai-responses": _responses,
    "gemini": _gemini,
}


def _pieces(text: str) -> list[str]:
    return [text[at : at + DELTA_CHARS] for at in range(0, len(text), DELTA_CHARS)]


def _bytes(events: list[dict[str, Any]]) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


def _assemble(provider: str, data: bytes) -> None:
    assembler = Assembler(provider)
    for at in range(0, len(data), CHUNK_BYTES):
        assembler.feed(data[at : at + CHUNK_BYTES])
    reply = assembler.finish()
    if reply is None or not reply.complete:
        raise AssertionError(f"{provider}: the assembled reply is not complete")


def _parse(texts: list[str]) -> None:
    for text in texts:
        json.loads(text)


def _best(run: Callable[..., None], *given: Any) -> float:
    """The minimum processor time of several runs. Other work on the machine can only increase it."""
    times = []
    for _ in range(TRIES):
        start = time.process_time()
        run(*given)
        times.append(time.process_time() - start)
    return min(times)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
