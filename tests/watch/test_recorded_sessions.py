"""Every recorded Claude Code session as a stream: figures, flags, compactions and dead ends."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from foldline.text_lines import LineSplitter, raw_lines_of_file
from foldline.watch.agent_events import load
from foldline.watch.meter import Meter
from foldline.watch.watcher import Watcher
from support.watching import named

DATA = Path(os.environ.get("FOLDLINE_DATA", "/nowhere"))


FILES = sorted(DATA.glob("entire-c*/*.jsonl.gz"))
pytestmark = pytest.mark.skipif(not FILES, reason="FOLDLINE_DATA names no recorded sessions")


WINDOW = 200_000


BUFFER = 13_000
"""What Claude Code keeps free below the room for a reply before it compacts by itself."""


RESERVES = (20_000, 32_000)
"""The room that its versions of that time kept for a reply."""


def events(file: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(file, "rt") as lines:
        for line in lines:
            event = json.loads(line)
            if isinstance(event, dict) and not str(event.get("type")).startswith(
                ("session_meta", "event_msg", "response")
            ):
                yield event


def provider_says(event: dict[str, Any]) -> int:
    """The prompt of a call of the main agent, by the provider's three figures; 0 where it says nothing."""
    if event.get("type") != "assistant" or event.get("isSidechain") is True:
        return 0
    usage = event["message"].get("usage") or {}
    parts = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return sum(usage.get(name) or 0 for name in parts)


@pytest.mark.promise("F7")
def test_occupancy_is_the_providers_figure_at_every_call() -> None:
    calls = 0
    for file in FILES:
        watch = Watcher()
        for event in events(file):
            watch.feed(event)
            said = provider_says(event)
            if said:
                calls += 1
                assert watch.meter.used == said, file.name
    assert calls > 1_000


class _Seen(NamedTuple):
    file: str
    before: int
    warned: bool
    due: bool


def compactions(window: int | None) -> list[_Seen]:
    """Every automatic compaction in the data, with what the meter had said before it."""
    found: list[_Seen] = []
    for file in FILES:
        meter = Meter(window=window)
        for event in events(file):
            flags = (meter.should_warn, meter.should_compact)
            compaction = meter.feed(event)
            if compaction is not None and compaction.trigger == "auto":
                found.append(_Seen(file.name, compaction.before or 0, *flags))
    return found


@pytest.mark.promise("S1.7", "S1.8")
def test_both_flags_precede_every_automatic_compaction_with_the_agents_own_window() -> None:
    """The window an agent can use ends where it keeps room for its reply; by that window both flags come in time."""
    by_reserve = {reserve: compactions(WINDOW - reserve) for reserve in RESERVES}
    assert len(by_reserve[RESERVES[0]]) > 10
    for at, one in enumerate(by_reserve[RESERVES[0]]):
        fits = [by_reserve[reserve][at] for reserve in RESERVES if WINDOW - reserve - BUFFER <= one.before]
        assert fits, one
        assert all(seen.warned and seen.due for seen in fits), one


@pytest.mark.promise("S1.7")
def test_the_warning_precedes_them_even_with_the_whole_window() -> None:
    found = compactions(WINDOW)
    assert sum(seen.warned for seen in found) >= 0.9 * len(found)


def test_recorded_sessions_have_few_dead_ends() -> None:
    for file in FILES:
        watch = Watcher()
        for event in events(file):
            watch.feed(event)
        assert watch.dead_ends <= 10, file.name


@pytest.mark.skipif(not DATA.is_dir(), reason="FOLDLINE_DATA names no folder")
def test_every_recorded_session_that_is_full_gets_its_compaction() -> None:
    full = turns = files = 0
    for file in sorted(DATA.glob("entire-claude-code/*.jsonl.gz")):
        watch, files = Watcher(), files + 1
        notices = [
            notice
            for line in raw_lines_of_file(str(file), LineSplitter())
            if (event := load(line)) is not None
            for notice in watch.feed(event)
        ]
        notices += watch.end()
        turns += bool(named(notices, "turn"))
        if watch.meter.should_compact and watch.last_error is not None:
            full += 1
            assert named(notices, "intervention"), file.name
    assert turns > 0.9 * files
    assert full
