"""A session as JSON: its row in the list, and the report with blocks, limits, contents, folds and pins."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from foldline.cli.shared.output import first_words, without_secrets
from foldline.fold import compactions
from foldline.ledger.receipts import RECEIPT
from foldline.ledger.records import SessionInfo
from foldline.measure.message_size import message_tokens
from foldline.page.fold_rows import fold_rows
from foldline.page.request_rows import RequestWindow
from foldline.page.session_reader import MessageFacts, SessionReader, copied_message
from foldline.plan.gate import HIDDEN, bound, limit
from foldline.plan.timeline import left_handles
from foldline.session.folding import is_cooling
from foldline.session.state import State

_TOP = 12
"""Maximum number of tools, servers and files in a list. The others are added up in one row."""
_MCP = "mcp__"
_WORDS = 120


def cost_of(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What the requests of a session cost, and what its cache misses cost; None if no price is known."""
    paid = [row["usd"] for row in rows if row["usd"] is not None]
    missed = [row["missed_usd"] for row in rows if row["missed_usd"] is not None]
    return {"usd": sum(paid) if paid else None, "missed_usd": sum(missed) if missed else None}


def list_row(owner: str, info: SessionInfo, source: str = "ledger") -> dict[str, Any]:
    """The row of a session in the list of sessions. No message is read."""
    return {
        "owner": owner,
        "session": info.name,
        "branches": list(info.branches),
        "messages": info.messages,
        "folds": info.folds,
        "made_at": info.made_at,
        "last_at": info.last_at,
        "source": source,
    }


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
        "reports_usage": _reports_usage(reader),
        "states": _states(reader, state),
        "cache": reader.cache_state(),
        "folds": state.snapshot.folds,
        "compactions": _compactions(reader),
        "last_fold_at": max([one.at for one in reader.log().folds if not reader.fold(one).compacted_by], default=None),
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
        "compactions": _compactions(reader),
        "cut": cut,
        "folded": left_handles(log.fold),
        "left": sum(map(len, log.fold.left)) if log.fold else 0,
        "removed": [index + 1 for index in sorted(log.removed)],
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


def _compactions(reader: SessionReader) -> list[dict[str, Any]]:
    return [one._asdict() for one in compactions(reader.fold(fold) for fold in reader.log().folds)]


def _marks(state: State) -> list[dict[str, Any]]:
    """The sizes in tokens at which the policy warns and folds, and the size of the largest request that fits.

    Each result has two sizes: `tokens` applies now, and `measured` applies as soon as the provider has reported the
    size of a request. If the size of the request is only an estimate now, for example directly after a fold, `measured`
    is larger than `tokens`.
    """
    load = state.load()
    marks = []
    for rule in state.policy.rules:
        if rule.basis == "request":
            tokens, measured = bound(rule, load), limit(rule, load.usable)
            margin = " less the margin of an estimate" if tokens < measured else ""
            row = {"name": rule.action, "tokens": round(tokens), "measured": round(measured), "rule": f"{rule}{margin}"}
            marks.append(row)
    largest = {"tokens": state.usable, "measured": state.usable, "rule": "the largest request that fits"}
    return [*marks, {"name": "hard", **largest}]


def _reports_usage(reader: SessionReader) -> bool:
    """Whether the newest reply reports the size of its request."""
    newest = (message for message in reversed(reader.newest_messages()) if message.role == "assistant")
    return any(message.meta.usage is not None for message in islice(newest, 1))


def _states(reader: SessionReader, state: State) -> list[str]:
    """The states of a session.

    Any of `held out`, `folding`, `full`, `fold due`, `warned`, `breaker open` and `cold cache`.
    """
    found, verdict = [], state.view().verdict
    receipt = reader.store.last_event(reader.branch, RECEIPT)
    if receipt is not None and receipt.body["is_held_out"]:
        found.append("held out")
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
    if reader.cache_state() == "expired":
        found.append("cold cache")
    return found


def _refusal(state: State) -> dict[str, Any] | None:
    refusal = state.snapshot.refusal
    return None if refusal is None else {"at": refusal.at, "cause": without_secrets(refusal.cause)}


def kept_by(reader: SessionReader, index: int) -> str:
    """Why no fold removes a message: `pin`, `system`, `policy`, or "" if a fold may remove it."""
    return next((str(row["by"]) for row in _pins(reader) if row["message"] == index + 1), "")


def _pins(reader: SessionReader) -> list[dict[str, Any]]:
    """The messages that no fold removes: the system messages, the pins, and the first prompt if the policy keeps it.

    `by` says why a message stays: `pin`, `system` or `policy`. `block` is the block of the window in which a message is
    counted. `copy_of` is the number of the folded message that a note repeats; None for other messages.
    """
    log, used = reader.log(), reader.setup()
    named = {pin.position: pin.name for pin in log.pins if pin.position is not None}
    first = reader.first_prompt() if used.policy.keep_first_prompt else None
    if first is not None and log.fold and any(first in one for one in log.fold.left):
        first = None  # for example, the agent's own compaction removed it
    cut, pinned = (log.fold.cut, log.fold.pinned) if log.fold else (0, ())
    lead, rows = reader.lead(), []
    for index in sorted({*range(lead), *named, *([] if first is None else [first])}):
        original = copied_message(named.get(index, ""), index)
        for message in reader.messages(index, index + 1):
            is_pin = index in pinned or (index in named and index >= cut)
            rows.append(
                {
                    "name": named.get(index, ""),
                    "message": index + 1,
                    "starts": first_words(message, _WORDS),
                    "tokens": round(message_tokens(message, used.counter, used.framing) * reader.scale()),
                    "by": "pin" if index in named else "system" if index < lead else "policy",
                    "block": "system" if index < lead else "pins" if is_pin else "history",
                    "copy_of": None if original is None else original + 1,
                }
            )
    return rows


def _contents(reader: SessionReader, state: State, blocks: dict[str, int]) -> list[dict[str, Any]]:
    """The content of the view's history: tokens by kind, each with its tools, MCP servers and files.

    The counts are scaled so that they add up to the sizes of the blocks `history` and `pins`. An agent's own summary is
    in the block `digest`.
    """
    timeline, facts = state.timeline, reader.facts()
    fold = timeline.fold
    first = timeline.cut if fold else timeline.lead
    shown = [*(sorted({*fold.pinned, *fold.carried}) if fold else ()), *range(first, len(timeline))]
    sizes = {index: timeline.tokens(index) for index in range(first, len(timeline))}
    known = [
        index for index in shown if index < len(facts) and not (fold and index == first and _is_digest(facts[index]))
    ]
    rows = _by_kind((index, facts[index], sizes.get(index, facts[index].tokens)) for index in known)
    total = sum(row["tokens"] for row in rows)
    target = blocks.get("history", 0) + blocks.get("pins", 0)
    scale = target / total if total else 0.0
    return [_scaled(row, scale) for row in rows]


def _is_digest(facts: MessageFacts) -> bool:
    return any(share.kind == "digest" for share in facts.shares)


def _by_kind(messages: Iterable[tuple[int, MessageFacts, int]]) -> list[dict[str, Any]]:
    """The tokens by kind. Each message is given as its index, its facts and its size in the view.

    In the row of a file, `message` is the number of the message in which the file takes the most room.
    """
    kinds: Counter[str] = Counter()
    largest: dict[tuple[str, str], tuple[int, int]] = {}
    groups: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for index, one, size in messages:
        ratio = size / max(1, one.tokens)
        for share in one.shares:
            tokens = round(share.tokens * ratio)
            kinds[share.kind] += tokens
            if share.tool:
                groups[share.kind]["tools"][share.tool] += tokens
                groups[share.kind]["files"][share.path] += tokens if share.path else 0
                place = share.kind, share.path
                largest[place] = max(largest.get(place, (0, 0)), (tokens, index + 1))
                if share.tool.startswith(_MCP):
                    groups[share.kind]["servers"][share.tool.removeprefix(_MCP).partition("__")[0]] += tokens
    return [
        {
            "name": kind,
            "tokens": tokens,
            **{name: _top(groups[kind][name]) for name in ("tools", "servers")},
            "files": _top(groups[kind]["files"], {path: largest[kind, path][1] for path in groups[kind]["files"]}),
        }
        for kind, tokens in kinds.most_common()
        if tokens
    ]


def _top(counts: Counter[str], messages: Mapping[str, int] | None = None) -> list[dict[str, Any]]:
    """The largest counts, each with its message in `messages`. All other counts are added up in one row."""
    known = [(name, tokens) for name, tokens in counts.most_common() if name and tokens]
    rows = [
        {"name": without_secrets(name), "tokens": tokens, "message": messages[name] if messages else None}
        for name, tokens in known[:_TOP]
    ]
    rest = sum(tokens for _, tokens in known[_TOP:])
    return [*rows, {"name": f"{len(known) - _TOP} others", "tokens": rest, "message": None}] if rest else rows


def _scaled(row: dict[str, Any], scale: float) -> dict[str, Any]:
    scaled = {**row, "tokens": round(row["tokens"] * scale)}
    for name in ("tools", "servers", "files"):
        scaled[name] = [{**one, "tokens": round(one["tokens"] * scale)} for one in row[name]]
    return scaled


def request_report(reader: SessionReader) -> dict[str, Any]:
    """The requests of a session, its folds over time, what foldline's folds saved, and how many turns are left."""
    window = RequestWindow(reader)
    rows, view = window.rows(), reader.state().view()
    size = "measured" if _reports_usage(reader) else "tokens"
    soft = [mark[size] for mark in _marks(reader.state()) if mark["name"] in ("fold", "clip", "hard")]
    room = window.room_left(view.tokens, min(soft))
    return {
        "version": reader.version(),
        "requests": rows,
        "folds": window.fold_marks(),
        "saving": window.costs.saving(rows),
        "cost": cost_of(rows),
        "unreported": sum(not row["exact"] for row in rows),
        **room._asdict(),
        "usable": view.usable,
        "window": view.window,
        "marks": _marks(reader.state()),
        "hidden": view.blocks.get(HIDDEN, 0),
    }
