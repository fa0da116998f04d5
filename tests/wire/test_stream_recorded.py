"""Streams that a real client recorded, when they are at hand: `FOLDLINE_DATA` names the folder that holds them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from foldline.message import tool, user
from foldline.wire.rendering import render
from foldline.wire.streaming import Assembler, StreamedReply
from foldline.wire.validate import check
from support.streams import sse

DATA = os.environ.get("FOLDLINE_DATA")
pytestmark = pytest.mark.skipif(not DATA, reason="FOLDLINE_DATA is not set")


def recorded() -> list[list[dict[str, Any]]]:
    """The chunks of every recorded Gemini stream."""
    files = Path(DATA or ".").glob("gemini-cli/*.responses.jsonl")
    found = [json.loads(line) for path in files for line in path.read_text().splitlines()]
    return [entry["response"] for entry in found if entry["method"] == "generateContentStream"]


def assemble(chunks: list[dict[str, Any]]) -> StreamedReply:
    assembler = Assembler("gemini")
    assembler.feed(sse([("", chunk) for chunk in chunks]))
    reply = assembler.finish()
    assert reply is not None
    return reply


def test_recorded_gemini_streams_come_back_whole() -> None:
    assert recorded()
    for chunks in recorded():
        candidates = [candidate for chunk in chunks for candidate in chunk.get("candidates", [])]
        parts = [part for candidate in candidates for part in candidate.get("content", {}).get("parts", [])]
        said = "".join(part["text"] for part in parts if part.get("text") and not part.get("thought"))
        made = [part["functionCall"]["args"] for part in parts if "functionCall" in part]
        reply = assemble(chunks)
        calls = [call for message in reply.messages for call in message.calls]
        assert "".join(message.text for message in reply.messages) == said
        assert [json.loads(call.arguments) for call in calls] == made
        assert reply.complete
        assert reply.usage is not None
        assert reply.usage.prompt == chunks[-1]["usageMetadata"]["promptTokenCount"]


def test_recorded_gemini_streams_are_sendable_at_every_cut() -> None:
    for chunks in recorded():
        for count in range(1, len(chunks)):
            reply = assemble(chunks[:count])
            calls = [call for message in reply.messages for call in message.calls]
            results = [tool(call.id, "done", name=call.name) for call in calls]
            body = render([user("go"), *reply.messages, *results, user("on")], "gemini").body
            assert check("gemini", body) == ()
            assert not reply.complete
