"""The reading calls of the page's API."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256
from threading import Lock
from typing import Any

from foldline import __version__
from foldline.cli.shared.output import without_secrets
from foldline.errors import InputError
from foldline.page.advice import advice
from foldline.page.fold_rows import whole_fold
from foldline.page.message_rows import message_rows, whole_message
from foldline.page.money_report import money_report
from foldline.page.request_rows import RequestWindow
from foldline.page.session_reader import SessionReader
from foldline.page.session_summary import (
    request_report,
    session_contents,
    session_outline,
    session_report,
    session_summary,
)
from foldline.page.sources import PageSources
from foldline.recall.search import RecallQuery, search

_CACHED = 256
"""Maximum number of answers in the cache."""
_RECALL_TOKENS = 6_000


class PageApi:
    """Answers the calls of the page."""

    def __init__(self, sources: PageSources) -> None:
        self.sources = sources
        self._answers: OrderedDict[tuple[Any, ...], dict[str, Any]] = OrderedDict()
        self._lock = Lock()

    def _cached(
        self, make: Callable[[SessionReader], dict[str, Any]], owner: str, session: str, branch: str
    ) -> dict[str, Any]:
        """The answer of `make` for the current version of a session. The answer is cached."""
        reader = self.sources.reader(owner, session, branch)
        key = (make.__name__, owner, session, branch, reader.version())
        with self._lock:
            found = self._answers.get(key)
        if found is None:
            found = make(reader)
            with self._lock:
                self._answers[key] = found
                while len(self._answers) > _CACHED:
                    self._answers.popitem(last=False)
        return found

    def status(self) -> dict[str, Any]:
        """The version of foldline, and which sessions the page serves."""
        sources = self.sources
        return {
            "foldline": __version__,
            "ledger": sources.label,
            "owners": len(sources.owners()),
            "logs": list(sources.logs),
            "read_only": sources.read_only,
        }

    def sessions(self) -> dict[str, Any]:
        """All sessions."""
        rows = self.sources.sessions()
        return {"version": sha256(repr(rows).encode()).hexdigest()[:16], "sessions": rows}

    def summary(self, **where: str) -> dict[str, Any]:
        """The figures of a session for the list."""
        return self._cached(session_summary, **where)

    def session(self, **where: str) -> dict[str, Any]:
        """The report about a session."""
        report = self._cached(session_report, **where)
        return {**report, "owner": where["owner"], "can_change": self.sources.can_change(where["owner"])}

    def outline(self, **where: str) -> dict[str, Any]:
        """The folds, pins and settings of a session, without its size."""
        outline = self._cached(session_outline, **where)
        return {**outline, "owner": where["owner"], "can_change": self.sources.can_change(where["owner"])}

    def contents(self, **where: str) -> dict[str, Any]:
        """What fills the history of a session."""
        return self._cached(session_contents, **where)

    def requests(self, **where: str) -> dict[str, Any]:
        """The requests of a session."""
        return self._cached(request_report, **where)

    def window(self, *, number: int, **where: str) -> dict[str, Any]:
        """The window at a request."""
        return RequestWindow(self.sources.reader(**where)).window_at(number)

    def messages(self, *, start: int, stop: int, **where: str) -> dict[str, Any]:
        """A range of messages."""
        return message_rows(self.sources.reader(**where), start, stop)

    def message(self, *, number: int, whole: bool, **where: str) -> dict[str, Any]:
        """One message."""
        return whole_message(self.sources.reader(**where), number, whole=whole)

    def fold(self, *, number: int, **where: str) -> dict[str, Any]:
        """One fold."""
        return whole_fold(self.sources.reader(**where), number)

    def recall(self, *, query: str, everywhere: bool, **where: str) -> dict[str, Any]:
        """Search a session, or all sessions of its owner."""
        if not query.strip():
            raise InputError("the query is empty", hint="write a question or some words")
        reader = self.sources.reader(**where)
        found = search(
            reader.store, reader.branch, RecallQuery(query=query, tokens=_RECALL_TOKENS, everywhere=everywhere)
        )
        answer: dict[str, Any] = without_secrets({"query": query, **found.to_dict()})
        return answer

    def advice(self, **where: str) -> dict[str, Any]:
        """What could leave the window now."""
        return self._cached(advice, **where)

    def totals(self, **where: str) -> dict[str, Any]:
        """The number of requests of a session, and what its folds saved."""
        report = self.requests(**where)
        return {"requests": len(report["requests"]), "saving": report["saving"]}

    def money(self, *, by: str, source: str) -> dict[str, Any]:
        """Tokens and money of all sessions."""
        sources = self.sources
        stores = [sources.ledger_of(owner).store for owner in sources.owners()]
        key = ("money", by, source, self.sessions()["version"])
        with self._lock:
            found = self._answers.get(key)
        if found is None:
            found = money_report(stores, sources.logs, by=by, source=source)
            with self._lock:
                self._answers[key] = found
        return found
