"""A hostile stream cannot cause false figures, invalid JSON or unbounded memory."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.agent_events import SOUND, call, lines, reply, result
from support.watching import watch_json

NOISE = st.one_of(
    st.sampled_from(
        [b"", b"\0\0", b"\xff\xfe{", b"\xe2\x9c", b"null", b"17", b'"text"', b"[1, 2]", b'{"half": ', b"\r"]
    ),
    st.sampled_from([b"[" * 100_000, b'{"a":' * 3_000, b"9" * 5_000, b'{"type": "assistant"} trailing']),
    st.binary(max_size=30).map(lambda noise: noise.replace(b"\n", b"").replace(b"{", b"")),
)


@given(st.lists(st.tuples(SOUND, st.lists(NOISE, max_size=2)), max_size=8), st.sampled_from([b"\n", b"\r\n"]))
@settings(max_examples=60)
def test_garbage_between_events_changes_nothing_but_its_count(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[Any, list[bytes]]], end: bytes
) -> None:
    clean = lines(*(event for event, _ in steps))
    noisy = b"".join(
        b"".join(noise + end for noise in noises) + json.dumps(event).encode() + end for event, noises in steps
    )
    told, told_in_noise = watch_json(tmp_path_factory, clean), watch_json(tmp_path_factory, noisy)
    told[-1].pop("garbage")
    told_in_noise[-1].pop("garbage")
    assert told_in_noise == told


NUMBERS = (
    *("1e400", "-1e400", "NaN", "Infinity", "-Infinity", "-5", "1.5", "1e5", "true", '"123"', "null", "[1]", "{}"),
    *("9" * 400, "9" * 5_000, "1e308", "-0.0", "0.1e1", "18446744073709551616"),
)


@given(st.lists(st.sampled_from(NUMBERS), min_size=5, max_size=5))
def test_no_number_in_a_stream_gives_an_impossible_figure(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[str]
) -> None:
    usage = {"input_tokens": "@0", "cache_read_input_tokens": "@1", "output_tokens": "@2"}
    message = {"id": "m", "model": "claude-sonnet-4-5", "content": [], "usage": usage}
    window = {"claude-sonnet-4-5": {"contextWindow": "@4"}}
    odd = lines({"type": "assistant", "message": message}, result(total_cost_usd="@3", modelUsage=window)).decode()
    for place, number in enumerate(numbers):
        odd = odd.replace(f'"@{place}"', number)
    for told in watch_json(tmp_path_factory, odd.encode() + lines(reply(1_000), result()), "--cost-limit", "1000000"):
        assert told.get("used", 0) >= 0
        assert told.get("window", 1) >= 1
        assert told.get("cost_usd", 0.0) >= 0
    assert told["used"] == 1_000


@pytest.mark.parametrize("depth", [50, 200, 400, 900, 5_000])
@pytest.mark.parametrize("place", ["content", "usage", "input"])
def test_json_nested_at_any_depth_does_no_harm(
    tmp_path_factory: pytest.TempPathFactory, depth: int, place: str
) -> None:
    nest = '[{"content": ' * depth + "1" + "}]" * depth
    inside = {"content": nest, "usage": nest, "input": f'[{{"type": "tool_use", "name": "Edit", "input": {nest}}}]'}
    key = "usage" if place == "usage" else "content"
    event = (
        f'{{"type": "assistant", "session_id": "s1", "message": {{"role": "assistant", "{key}": {inside[place]}}}}}\n'
    )
    told = watch_json(tmp_path_factory, event.encode() + lines(reply(1_000), result()))
    assert told[-1]["used"] == 1_000
    assert told[-1]["turns"] == 1


def test_memory_stays_bounded_with_calls_that_are_never_answered() -> None:
    """Calls without results, files without end, sessions without number."""
    code = (
        "import json, resource, sys\nfrom foldline.watch.watcher import Watcher\n"
        "watch = Watcher()\nfor line in sys.stdin.buffer:\n    watch.feed(json.loads(line))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )

    def peak(count: int) -> int:
        stream = b"".join(
            lines(
                reply(9, call("Bash", f"b{number}", command=f"{number} " + "c" * 2_000)),
                reply(9, call("Write", f"w{number}", file_path=f"/w/{number}", content=f"{number} " * 400)),
            )
            for number in range(count)
        )
        done = subprocess.run([sys.executable, "-c", code], input=stream, capture_output=True, check=True)
        return int(done.stdout)

    assert peak(4_000) < 1.5 * peak(400)
