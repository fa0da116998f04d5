"""The usage of every request in the session files of Claude Code, Codex and pi, and in a ledger.

All lines are read, also those of sub-agents and abandoned branches, because their requests were paid for, too. A reply
may be in several lines or in several files. It counts once, with its last figures.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any, NamedTuple

from foldline import text_lines
from foldline.errors import FoldlineError
from foldline.ledger import Store
from foldline.ledger.agent_session import agent_session_ids
from foldline.ledger.recall_requests import read_recall_requests
from foldline.ledger.records import SessionInfo, StoredMessage
from foldline.measure.paid_again import RequestChain
from foldline.message import REPLY_TO_VIEW, Message, Usage
from foldline.models.table import Prices, usage_cost
from foldline.models.table import model as model_of
from foldline.page.session_reader import SessionReader
from foldline.session.transcript_session import reply_starts
from foldline.wire import read_all
from foldline.wire.anthropic.usage import anthropic_usage
from foldline.wire.field_access import list_at, object_at, string_at, time_of
from foldline.wire.session_logs.claude_code import session_id
from foldline.wire.session_logs.codex import REPLY_ID
from foldline.wire.session_logs.usage import codex_usage, pi_usage

DEFAULT_FOLDERS = (".claude/projects", ".config/claude/projects", ".codex/sessions", ".pi/agent/sessions")
"""Where the agents keep their session files, relative to the home folder."""
_MARKS = (
    '"usage"',
    "token_count",
    "session_meta",
    "turn_context",
    '"type":"session"',
    '"type": "session"',
    "model_change",
)
"""A line that holds none of these texts has no usage, so it is not parsed."""
_KINDS = ("assistant", "message", "session", "session_meta", "turn_context", "model_change", "event_msg")
"""The types of the lines that are read."""
_MILLION = 1_000_000


class UsageRow(NamedTuple):
    """The usage of one request."""

    at: float | None
    """Seconds since 1970; None if the file does not say."""
    project: str
    model: str
    session: str
    """The name of the session, as it is printed."""
    identity: str
    """The agent's own id of the session or of the sub-agent, which is the same in every log and ledger."""
    chain: str
    """The conversation that the request continues: a session, or a sub-agent of it."""
    usage: Usage
    left: int | None = 0
    """Tokens of the previous request that a fold removed. None if a summary replaced the history."""
    new: int = 0
    """Tokens of this request that were not in the previous request; 0 if unknown."""


class UsageReader:
    """Reads files and ledgers. `rows` has each request once, even if several lines or files report it.

    `format` is the format of files that are not session files of Claude Code, Codex or pi. If `format`
    is None, the format is detected.
    """

    def __init__(self, format: str | None = None) -> None:
        self._format = format
        self._rows: dict[object, UsageRow] = {}
        self._logged: set[str] = set()
        """The identities of the sessions that were read from logs."""
        self.unreadable: list[str] = []
        """The files that could not be read, with the reason."""
        self._unreported = 0
        self._silent: set[tuple[str, bytes]] = set()
        """The owner, and the key of the first message, of each reply in a ledger that has no usage."""
        self.in_logs = 0
        """Number of ledger sessions that were not counted, because their logs had been read."""

    @property
    def rows(self) -> list[UsageRow]:
        """The requests, oldest first. Requests without a time come before all others."""
        return sorted(self._rows.values(), key=lambda row: row.at or 0.0)

    def read_file(self, path: str) -> None:
        """Read a session file. A line that cannot be read is left out."""
        log = _LogState(path)
        try:
            for line in text_lines.lines_of_file(path):
                if not any(mark in line.text for mark in _MARKS):
                    continue
                try:
                    value = json.loads(line.text)
                except (ValueError, RecursionError):
                    continue
                if isinstance(value, dict):
                    for key, row in log.take(value, line.number):
                        self._add_logged(key, row)
            if not log.is_known:
                self._read_transcripts(path)
        except (FoldlineError, OSError) as error:
            text = str(error)
            self.unreadable.append(text if text.startswith(path) else f"{path}: {text}")
        self._unreported += log.unreported

    @property
    def unreported(self) -> int:
        """Number of replies without a reported usage, for example interrupted ones."""
        return self._unreported + len(self._silent)

    def _read_transcripts(self, path: str) -> None:
        """Read a file that is not a session file of Claude Code, Codex or pi."""
        for number, transcript in enumerate(read_all(path, self._format)):
            name = f"{Path(path).name}-{number + 1}" if number else Path(path).name
            session = transcript.session
            before: Usage | None = None
            for index, message in enumerate(transcript.messages):
                usage, meta = message.meta.usage, message.meta
                if usage is not None and usage != before:
                    model = meta.model or transcript.model or "?"
                    row = UsageRow(meta.at, "?", model, session or name, session, f"{path}/{number}", usage)
                    reply = meta.reply or (session or (path, number), index)
                    self._add_logged(_reply_key(reply, usage), row)
                before = usage if message.role == "assistant" else None

    def _add_logged(self, key: object, row: UsageRow) -> None:
        self._rows[key] = row
        self._logged.add(row.identity)

    def read_ledger(self, store: Store) -> None:
        """Read all sessions of a ledger, except those whose logs were read before.

        If the proxy answered a recall call, the request whose reply has this call is in no log of an agent. So such
        requests are read for all sessions. A message that several branches or sessions share counts once. A reply that
        was removed from its session counts, because it was paid for. If a reply has no time of its own, for example
        because a proxy recorded it, the time when it was stored is used.
        """
        for info in store.sessions():
            ids = agent_session_ids(store, info.name)
            logged = ids & self._logged
            self._read_recall_requests(store, info, min(logged, default=info.name))
            if logged:
                self.in_logs += 1
                continue
            identity = next(iter(ids)) if len(ids) == 1 else info.name
            for name in info.branches:
                for stored, left, new in self._replies(SessionReader(store, store.session(info.name, name))):
                    meta = stored.message.meta
                    if meta.usage is not None:
                        made_up = meta.reply.startswith((REPLY_TO_VIEW, REPLY_ID))
                        reply = (identity, meta.reply) if made_up else meta.reply or stored.key
                        chain = f"{info.name}/{name}"
                        at, model = meta.at or stored.at, meta.model or "?"
                        row = UsageRow(at, "ledger", model, info.name, identity, chain, meta.usage, left, new)
                        self._rows[_reply_key(reply, meta.usage, owner=store.owner)] = row

    def _replies(self, reader: SessionReader) -> Iterator[tuple[StoredMessage, int | None, int]]:
        """The messages of a branch that have usage, each with the `left` and `new` of its row (see `UsageRow`).

        `new` is counted only for a request that is smaller than the previous request; otherwise `new` is 0. The
        function `paid_again` ignores it for larger requests.
        """
        history, before, added = reader.fold_history(), None, list[Message]()
        read: list[tuple[bytes, str, Usage | None]] = []
        left: int | None = 0
        new = 0
        for stored in reader.store.read_used(reader.branch):
            usage = stored.message.meta.usage
            read.append((stored.key, stored.message.role, usage))
            if usage is not None:
                if before is not None and any(one.role != "assistant" for one in added):  # it begins another reply
                    place = history.applied_at(before.position), history.applied_at(stored.position)
                    left, last = reader.left_tokens(history, *place), before.message.meta.usage
                    if any(one.kind == "digest" for one in added):  # the client replaced its history by a summary
                        left = None
                    new = _size(reader, added) if last and usage.prompt < last.prompt else 0
                yield stored, left, new
                before, added = stored, []
            added.append(stored.message)
        starts = reply_starts((role, usage) for _, role, usage in read)
        for start, stop in pairwise([*starts, len(read)]):
            reply = takewhile(lambda one: one[1] == "assistant", read[start:stop])
            if all(usage is None for _, _, usage in reply):
                self._silent.add((reader.store.owner, read[start][0]))

    def _read_recall_requests(self, store: Store, info: SessionInfo, session: str) -> None:
        """Read the requests whose replies called the recall tool. The proxy answered these calls itself."""
        for branch in store.branches(info.name):
            for one in read_recall_requests(store, branch):
                chain = f"{info.name}/{branch.name}"
                row = UsageRow(one.at, "ledger", one.model, session, info.name, chain, one.usage)
                self._rows[store.owner, info.name, one.key] = row


def _size(reader: SessionReader, messages: Sequence[Message]) -> int:
    state = reader.state()
    return state.scaled(sum(map(state.size, messages)))


def _reply_key(reply: object, usage: Usage, *, owner: str = "", part: int = 0) -> object:
    """A key that is different for each reply. The id is not enough, because some servers give replies the same id.

    The output tokens are not in the key, because the first lines of a reply report fewer of them than the last line.
    """
    return owner, reply, part, usage.input, usage.cache_read, usage.cache_write


class _LogState:
    """The session, project and model that the lines of one file have named so far."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.session = Path(path).name.removesuffix(".gz").removesuffix(".jsonl")
        self.project = self.model = self.identity = ""
        self._is_named = False
        self.total: Any = None
        self.is_known = False
        """Whether a line of a known session log was read."""
        self.unreported = 0

    def take(self, value: Mapping[str, Any], number: int) -> Iterator[tuple[object, UsageRow]]:
        """The requests that a line reports, each with a key. Requests with the same key are counted once."""
        kind, payload = string_at(value, "type"), object_at(value, "payload")
        at = time_of(value.get("timestamp"))
        self.is_known = self.is_known or kind in _KINDS
        if kind == "assistant":
            yield from self._claude_code(value, at, number)
        elif kind == "message" and (usage := pi_usage(object_at(value, "message").get("usage"))):
            message = object_at(value, "message")
            key = (self.session, string_at(value, "id") or number)
            yield key, self._row(at, usage, model=string_at(message, "model"))
        elif kind == "message":
            self.unreported += string_at(object_at(value, "message"), "role") == "assistant"
        elif kind in ("session", "session_meta", "turn_context", "model_change"):
            source = payload or value
            self.project = string_at(source, "cwd") or self.project
            self.model = string_at(source, "model") or string_at(source, "modelId") or self.model
            if kind in ("session", "session_meta") and not self._is_named:
                self.session = string_at(source, "id") or self.session
                self._is_named = True  # a later line of this type was copied from the session that this one continues
        elif kind == "event_msg" and string_at(payload, "type") == "token_count":
            total = object_at(payload, "info").get("total_token_usage")
            usage = codex_usage(payload)
            if usage and (total is None or total != self.total):
                self.total = total
                yield (self.session, number), self._row(at, usage)

    def _claude_code(
        self, value: Mapping[str, Any], at: float | None, number: int
    ) -> Iterator[tuple[object, UsageRow]]:
        message = object_at(value, "message")
        model = string_at(message, "model")
        if model.startswith("<"):  # written by the client itself, for example after an error
            return
        self.project = string_at(value, "cwd") or self.project
        self.identity = session_id(value) or self.identity
        self.session = self.identity.split("/", 1)[0] or self.session
        agent = string_at(value, "agentId") or ("sub-agent" if value.get("isSidechain") else "")
        reply = string_at(message, "id") or str(number)
        figures = object_at(message, "usage")
        for part, one in enumerate((figures, *_extra_passes(figures))):
            usage = anthropic_usage(one)
            if usage is not None:
                row = self._row(at, usage, model=model, agent=f"{agent}{part or ''}")
                yield _reply_key(reply, usage, part=part), row

    def _row(self, at: float | None, usage: Usage, *, model: str = "", agent: str = "") -> UsageRow:
        chain = f"{self.path}/{agent}"
        identity = self.identity or self.session
        return UsageRow(at, self.project or "?", model or self.model or "?", self.session, identity, chain, usage)


def _extra_passes(figures: Mapping[str, Any]) -> list[Any]:
    """The extra model runs of a reply (compactions, advisors), which the main figures of its usage do not include."""
    passes = list_at(figures, "iterations")
    return [entry for entry in passes if string_at(entry, "type") not in ("message", "fallback_message", "")]


class UsageTotal:
    """Tokens and cost of several requests."""

    def __init__(self) -> None:
        self.requests = self.input = self.cache_read = self.cache_write = self.output = self.missed = 0
        self.cost = self.miss_cost = 0.0
        self.unpriced = 0

    def add(self, row: UsageRow, missed: int, prices: Prices | None) -> None:
        """Add a request. `missed` is the number of its tokens that were no longer in the cache."""
        usage = row.usage
        self.requests += 1
        self.input += usage.input
        self.cache_read += usage.cache_read
        self.cache_write += usage.cache_write
        self.output += usage.output
        self.missed += missed
        self.unpriced += prices is None
        if prices is not None:
            self.cost += usage_cost(usage, prices)
            paid = prices.write if usage.cache_write else prices.input
            self.miss_cost += missed * max(0.0, paid - prices.read) / _MILLION

    def as_json(self) -> dict[str, Any]:
        """The figures for `--json`."""
        return {**vars(self), "cost": round(self.cost, 6), "miss_cost": round(self.miss_cost, 6)}


def with_misses(rows: Iterable[UsageRow]) -> Iterator[tuple[UsageRow, int, Prices | None]]:
    """Each request, the number of its missed tokens (see `paid_again`), and its prices.

    A session file does not say where the agent compacted the conversation. A request of less than half the size of the
    previous request is taken to come after a compaction.
    """
    chains: dict[tuple[str, str], RequestChain] = {}
    prices: dict[str, Prices | None] = {}
    for row in rows:
        usage, key = row.usage, (row.chain, row.model)
        if row.model not in prices:
            prices[row.model] = model_of(row.model).prices
        chain = chains.setdefault(key, RequestChain())
        is_compacted = row.left == 0 and chain.previous is not None and 2 * usage.prompt < chain.previous.prompt
        left = None if is_compacted else row.left
        yield row, chain.paid_again(usage, left=left, new=row.new), prices[row.model]


def _date(row: UsageRow) -> date | None:
    """The day of a request in local time; None if the time is unknown."""
    return datetime.fromtimestamp(row.at, tz=UTC).astimezone().date() if row.at else None


def _day(row: UsageRow) -> str:
    day = _date(row)
    return day.isoformat() if day else "unknown"


GROUPS: dict[str, Callable[[UsageRow], str]] = {
    "day": _day,
    "month": lambda row: _day(row)[:7],
    "project": lambda row: row.project,
    "model": lambda row: row.model,
    "session": lambda row: row.session,
}
"""What requests can be grouped by."""


def usage_totals(
    rows: Iterable[UsageRow], groups: tuple[str, ...], first: date | None
) -> tuple[dict[tuple[str, ...], UsageTotal], UsageTotal, list[str]]:
    """The total of each group, sorted by name; the total of all requests; and the models without a price."""
    totals: dict[tuple[str, ...], UsageTotal] = {}
    overall, unpriced = UsageTotal(), set[str]()
    for row, missed, prices in with_misses(rows):
        day = _date(row)
        if first is not None and (day is None or day < first):
            continue
        if prices is None:
            unpriced.add(row.model)
        for total in (totals.setdefault(tuple(GROUPS[name](row) for name in groups), UsageTotal()), overall):
            total.add(row, missed, prices)
    return dict(sorted(totals.items())), overall, sorted(unpriced)
