"""A session as JSON: its row in the list, and the report with blocks, limits, contents, folds and pins."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from foldline.cli.shared.output import first_words, without_secrets
from foldline.ledger.records import SessionInfo
from foldline.page.fold_rows import fold_rows
from foldline.page.request_rows import RequestWindow
from foldline.page.session_reader import MessageFacts, SessionReader
from foldline.plan.gate import limit
from foldline.plan.timeline import handle
from foldline.session.block_table import HIDDEN
from foldline.session.folding import is_cooling
from foldline.session.state import State

_TOP = 12
"""Maximum number of tools, servers and files in a list. The others are added up in one row."""
_MCP = "mcp__"
_WORDS = 120


def list_row(owner: str, info: SessionInfo, source: str = "ledger") -> dict[str, Any]:
    """The row of a session in the list. Only the ledger's counts are used."""
    return {
        "owner": owner,
        "session": info.name,
        "branches": list(info.branches),
        "messages": info.messages,
        "folds": info.folds,
        "made_at": info.made_at,
        "last_at": info.last_at,
        "source": source,
        "parent": _parent(info.name),
    }


def _parent(name: str) -> str:
    """The name of the session that a session belongs to; "" if there is none.

    If a client has further conversations under the same id, their names end in a number.

    >>> _parent("3f0c.2"), _parent("ticket-42")
    ('3f0c', '')
    """
    stem, _, number = name.rpartition(".")
    return stem if stem and number.isdecimal() else ""


def session_summary(reader: SessionReader) -> dict[str, Any]:
    """The figures in the row of a session: its model, its size and its states."""
    state = reader.state()
    view = state.view()
    return {
        "version": reader.version(),
        "model": state.model.name,
        "tokens": view.tokens,
        "exact": view.exact,
        "usable": view.usable,
        "window": view.window,
        "marks": _marks(state),
        "states": _states(reader, state),
        "folds": state.snapshot.folds,
        "last_fold_at": log.folds[-1].at if (log := reader.log()).folds else None,
    }


def session_outline(reader: SessionReader) -> dict[str, Any]:
    """The folds, pins and settings of a session, from its log. No message is measured, so this takes little time."""
    log, used = reader.log(), reader.setup()
    cut = log.fold.cut if log.fold else 0
    return {
        "version": reader.version(),
        "model": used.model.name,
        "session": reader.branch.session,
        "branch": reader.branch.name,
        "branches": [one.name for one in reader.store.branches(reader.branch.session)],
        "messages": log.head.length,
        "folds": len(log.folds),
        "cut": cut,
        "folded": handle(0, cut - 1) if cut else "",
        "pins": _pins(reader),
        "fold_list": fold_rows(reader),
        "policy": [str(rule) for rule in used.policy.rules],
    }


def session_report(reader: SessionReader) -> dict[str, Any]:
    """The outline of a session and its size by block."""
    state = reader.state()
    view = state.view()
    return {
        **session_outline(reader),
        **session_summary(reader),
        "source": view.source,
        "assumption": view.assumption,
        "need": view.need.name,
        "reason": view.verdict.reason,
        "notice": view.notice,
        "blocks": [{"name": name, "tokens": size} for name, size in view.blocks.items() if size],
        "refusal": _refusal(state),
    }


def session_contents(reader: SessionReader) -> dict[str, Any]:
    """The content of the view's history: tokens by kind, tool, MCP server and file."""
    state = reader.state()
    return {"version": reader.version(), "contents": _contents(reader, state, state.view().blocks)}


def _marks(state: State) -> list[dict[str, Any]]:
    """The sizes in tokens at which the policy warns and folds, and the size of the largest request that fits."""
    marks = [
        {"name": rule.action, "tokens": round(limit(rule, state.usable)), "rule": str(rule)}
        for rule in state.policy.rules
        if rule.basis == "request"
    ]
    return [*marks, {"name": "hard", "tokens": state.usable, "rule": "the largest request that fits"}]


def _states(reader: SessionReader, state: State) -> list[str]:
    """The states of a session, any of `folding`, `full`, `fold due`, `warned`, `breaker open` and `cold cache`."""
    found, verdict = [], state.view().verdict
    job = reader.store.jobs.get(reader.branch)
    if job.is_held and job.until_at > time.time():
        found.append("folding")
    if verdict.need.name == "HARD":
        found.append("full")
    elif verdict.need.name == "SOFT":
        found.append("fold due")
    elif verdict.fired:
        found.append("warned")
    if is_cooling(state):
        found.append("breaker open")
    if reader.is_cold():
        found.append("cold cache")
    return found


def _refusal(state: State) -> dict[str, Any] | None:
    refusal = state.snapshot.refusal
    return None if refusal is None else {"at": refusal.at, "cause": without_secrets(refusal.cause)}


def _pins(reader: SessionReader) -> list[dict[str, Any]]:
    rows = []
    for pin in reader.log().pins:
        if pin.position is None:
            continue
        words = [first_words(message, _WORDS) for message in reader.messages(pin.position, pin.position + 1)]
        rows.append({"name": pin.name, "message": pin.position + 1, "starts": words[0] if words else ""})
    return sorted(rows, key=lambda row: row["message"])


def _contents(reader: SessionReader, state: State, blocks: dict[str, int]) -> list[dict[str, Any]]:
    """The content of the view's history: tokens by kind, each with its tools, MCP servers and files.

    The counts are scaled so that they add up to the sizes of the blocks `history` and `pins`.
    """
    timeline, facts = state.timeline, reader.facts()
    fold = timeline.fold
    first = timeline.cut if fold else timeline.lead
    shown = [*(sorted({*fold.pinned, *fold.carried}) if fold else ()), *range(first, len(timeline))]
    sizes = {index: timeline.tokens(index) for index in range(first, len(timeline))}
    rows = _by_kind((facts[index], sizes.get(index, facts[index].tokens)) for index in shown if index < len(facts))
    total = sum(row["tokens"] for row in rows)
    target = blocks.get("history", 0) + blocks.get("pins", 0)
    scale = target / total if total else 0.0
    return [_scaled(row, scale) for row in rows]


def _by_kind(messages: Iterable[tuple[MessageFacts, int]]) -> list[dict[str, Any]]:
    kinds: Counter[str] = Counter()
    groups: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for one, size in messages:
        ratio = size / max(1, one.tokens)
        for share in one.shares:
            tokens = round(share.tokens * ratio)
            kinds[share.kind] += tokens
            if share.tool:
                groups[share.kind]["tools"][share.tool] += tokens
                groups[share.kind]["files"][share.path] += tokens if share.path else 0
                if share.tool.startswith(_MCP):
                    groups[share.kind]["servers"][share.tool.removeprefix(_MCP).partition("__")[0]] += tokens
    return [
        {
            "name": kind,
            "tokens": tokens,
            **{name: _top(groups[kind][name]) for name in ("tools", "servers", "files")},
        }
        for kind, tokens in kinds.most_common()
        if tokens
    ]


def _top(counts: Counter[str]) -> list[dict[str, Any]]:
    known = [(name, tokens) for name, tokens in counts.most_common() if name and tokens]
    rows = [{"name": without_secrets(name), "tokens": tokens} for name, tokens in known[:_TOP]]
    rest = sum(tokens for _, tokens in known[_TOP:])
    return [*rows, {"name": f"{len(known) - _TOP} others", "tokens": rest}] if rest else rows


def _scaled(row: dict[str, Any], scale: float) -> dict[str, Any]:
    scaled = {**row, "tokens": round(row["tokens"] * scale)}
    for name in ("tools", "servers", "files"):
        scaled[name] = [{**one, "tokens": round(one["tokens"] * scale)} for one in row[name]]
    return scaled


def request_report(reader: SessionReader) -> dict[str, Any]:
    """The requests of a session, its folds over time, what the folds saved, and how many turns are left."""
    window = RequestWindow(reader)
    rows, view = window.rows(), reader.state().view()
    soft = [mark["tokens"] for mark in _marks(reader.state()) if mark["name"] in ("fold", "clip", "hard")]
    turns, requests = window.room_left(view.tokens, min(soft))
    return {
        "version": reader.version(),
        "requests": rows,
        "saving": window.saving(rows),
        "turns_left": turns,
        "requests_left": requests,
        "usable": view.usable,
        "window": view.window,
        "marks": _marks(reader.state()),
        "hidden": view.blocks.get(HIDDEN, 0),
    }
