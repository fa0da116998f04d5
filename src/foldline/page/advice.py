"""Finds messages that could leave the window now: the largest, oldest, superseded and repeated ones."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

from foldline.cli.shared.output import first_words
from foldline.page.session_reader import SessionReader
from foldline.plan.fold_cost import CacheState
from foldline.plan.prune import REPEAT_CHARS
from foldline.plan.timeline import Timeline, handle
from foldline.session.preview import preview_of
from foldline.session.state import State
from foldline.tool_calls import read_key

_EACH = 4
"""Maximum number of messages of each kind in the list."""
_LEAST_SHARE = 0.01
"""A message that takes less than this share of the usable window is not listed."""
_WORDS = 120


def advice(reader: SessionReader) -> dict[str, Any]:
    """The messages that are worth folding. They are sorted by the number of requests after which their fold has paid
    off, then by size.

    Each row says what a fold that removes the message would do. `pays_with` is the number of requests after which the
    fold has saved what it cost; None if this is unknown, or if the fold would never save as much. `cache` is the state
    of the provider's prompt cache: `warm`, `unsent`, `expired` or `none`.
    """
    with reader.lock:
        state = reader.state()
        cache = reader.cache_of(state)
        least = max(50, int(_LEAST_SHARE * state.usable))
        found = _candidates(state.timeline, least)
        rows = [
            {"kind": kind, "because": because, **_row(state, index, least, cache, reader.scale())}
            for index, (kind, because) in found.items()
        ]
    return {"version": reader.version(), "cache": cache, "rows": sorted(rows, key=_rank)}


def _rank(row: dict[str, Any]) -> tuple[bool, bool, int, int]:
    """The sort key of a row."""
    later = row["pays_with"]
    return not row["leaves"], later is None, later or 0, -row["tokens"]


def _candidates(timeline: Timeline, least: int) -> dict[int, tuple[str, str]]:
    """For each message to list, by index: the reason why it is listed, as a word (such as `repeated`) and as a text."""
    stop = timeline.tail
    live = [
        index for index in range(timeline.cut, stop) if index not in timeline.pins and timeline.tokens(index) >= least
    ]
    found: dict[int, tuple[str, str]] = {}
    for kind, pairs in (("superseded", _superseded(timeline)), ("repeated", _repeated(timeline))):
        listed = [(index, later) for index, later in pairs if index in live]
        for index, later in sorted(listed, key=lambda pair: -timeline.tokens(pair[0]))[:_EACH]:
            found.setdefault(
                index, (kind, f"{'read again' if kind == 'superseded' else 'the same text'} in {handle(later)}")
            )
    for index in sorted(live, key=lambda index: -timeline.tokens(index))[:_EACH]:
        found.setdefault(index, ("largest", "one of the largest messages in the window"))
    for index in live[:2]:
        found.setdefault(index, ("oldest", "one of the oldest messages in the window"))
    return found


def _superseded(timeline: Timeline) -> Iterator[tuple[int, int]]:
    """Pairs of indexes: a result whose call was repeated later, and the later result."""
    calls: dict[str, str] = {}
    newest: dict[str, int] = {}
    for index in range(timeline.cut, len(timeline)):
        message = timeline.messages[index]
        for call in message.calls:
            calls[call.id] = read_key(call)
        for result in message.results:
            key = calls.get(result.call_id, "")
            if key and key in newest:
                yield newest[key], index
            if key:
                newest[key] = index


def _repeated(timeline: Timeline) -> Iterator[tuple[int, int]]:
    """Pairs of indexes: a result, and a later result with the same text."""
    newest: dict[bytes, int] = {}
    for index in range(timeline.cut, len(timeline)):
        for result in timeline.messages[index].results:
            if len(result.text) < REPEAT_CHARS:
                continue
            key = blake2b(result.text.encode("utf-8", "replace"), digest_size=16).digest()
            if key in newest:
                yield newest[key], index
            newest[key] = index


def cut_after(state: State, index: int) -> int:
    """The first cut after a message. A fold with this cut removes all messages up to the end of the message's step."""
    return state.timeline.first_cut(state.policy.atom, index + 1)


def _row(state: State, index: int, least: int, cache: CacheState, scale: float) -> dict[str, Any]:
    timeline = state.timeline
    plan = state.plan_before(cut_after(state, index))
    row = {
        "message": index + 1,
        "role": timeline.messages[index].role,
        "starts": first_words(timeline.messages[index], _WORDS),
        "tokens": round(timeline.tokens(index) * scale),
        "leaves": "",
        "frees": None,
        "saves": None,
        "costs": None,
        "pays_with": None,
    }
    if plan.fold is None or plan.fold.before - plan.fold.after < least:
        return row
    preview = preview_of(state, plan.fold, None, cache)
    each = preview.money_before, preview.money_after
    saves = None if each[0] is None or each[1] is None else each[0] - each[1]
    return {
        **row,
        "leaves": preview.leaves,
        "frees": preview.before - preview.after,
        "saves": saves,
        "costs": preview.money_once,
        "pays_with": preview.pays_with,
    }
