"""`foldline statusline`: the figures it shows, for any input."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given

from foldline.watch import meter
from foldline.watch import status_line as statusline
from support.agent_events import ANYTHING
from support.watching import spawn

GIVEN = {
    "model": {"id": "claude-opus-4-6", "display_name": "Opus 4.6"},
    "context_window": {
        "context_window_size": 200_000,
        "current_usage": {
            "input_tokens": 10_000,
            "output_tokens": 99_000,
            "cache_creation_input_tokens": 20_000,
            "cache_read_input_tokens": 130_000,
        },
    },
    "cost": {"total_cost_usd": 1.234},
}


def test_the_status_line_shows_tokens_window_and_cost() -> None:
    done = spawn("statusline", given=json.dumps(GIVEN).encode())
    assert done.stdout.decode() == "Opus 4.6 ▰▰▰▰▰▰▰▰▱▱ 80% 160k/200k, time to compact $1.23\n"


def test_right_after_a_compaction_the_status_line_shows_no_figure() -> None:
    context = {"context_window_size": 200_000, "current_usage": None, "used_percentage": None}
    assert statusline.line({"context_window": context}) == "▱▱▱▱▱▱▱▱▱▱ not measured yet"
    assert statusline.line({"context_window": {**context, "used_percentage": 40}}) == "▰▰▰▰▱▱▱▱▱▱ 40% 80k/200k"


def test_the_status_line_uses_the_thresholds_of_the_meter() -> None:
    assert (statusline.WARN, statusline.COMPACT) == (meter.WARN_RATIO, meter.COMPACT_RATIO)


@given(ANYTHING)
def test_any_json_gives_exactly_one_line(value: Any) -> None:
    assert len(statusline.line(value, colour=True).splitlines()) <= 1


@pytest.mark.parametrize("given", [b"", b"\xff", b"null", b"[" * 100_000])
def test_garbage_gives_an_empty_line(given: bytes) -> None:
    done = spawn("statusline", given=given)
    assert (done.returncode, done.stdout) == (0, b"\n")


def test_the_status_line_imports_almost_nothing() -> None:
    code = (
        "import sys; sys.argv = ['foldline', 'statusline']\nfrom foldline.cli import main\n"
        "try:\n main()\nexcept SystemExit:\n print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], input=b"{}", capture_output=True, check=True)
    loaded = set(done.stdout.decode().split())
    assert not {"click", "rich", "tomllib", "foldline.wire", "foldline.errors"} & loaded
